#include "gpu/ldcache.h"

#include <elf.h>

#include "base/str.h"

/* ---- the form ---- */

#define OLD_MAGIC "ld.so-1.7.0"
#define NEW_MAGIC "glibc-ld.so.cache1.1"

enum {
	OLD_HEADER = 16, /* the magic, padded, and the number of entries */
	OLD_ENTRY = 12,
	ALIGNMENT = 8,    /* of the new form behind the old one */
	NAME_BYTES = 256, /* of a library's, with the NUL: they are names of files */
	PATH_BYTES = 4096,
	HWCAPS_MAX = 1024,
	GENERATOR_MAX = 256,
	EXTENSION_MAGIC = (int)0xeaa42174,
	SECTION_GENERATOR = 0,
	SECTION_HWCAPS = 1,
	SECTIONS_MAX = 64,
	ENDIAN = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 2 : 3,
};
/* Of an entry's hwcap: its lower half counts the names of SECTION_HWCAPS. */
#define HWCAP_EXTENSION (1ull << 62)
#define GENERATOR "svrun"

struct header {
	char magic[20];
	uint32_t count, strings;
	uint8_t flags, padding[3];
	uint32_t extension, unused[3];
};
struct entry {
	uint32_t flags, key, value, osversion;
	uint64_t hwcap;
};
struct extension {
	uint32_t magic, count;
};
struct section {
	uint32_t tag, flags, offset, size;
};

static const struct {
	uint8_t bits;
	uint16_t machine;
	uint32_t flags;
} kinds[] = {
	{64, EM_X86_64, 0x0303},
	{32, EM_386, 0x0003},
	{32, EM_X86_64, 0x0803},
	{64, EM_AARCH64, 0x0a03},
	{64, EM_PPC64, 0x0503},
	{64, EM_S390, 0x0403},
};

uint32_t ldcache_flags(const struct elf_kind *k)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].bits == k->bits && kinds[i].machine == k->machine)
			return kinds[i].flags;
	return 0;
}

/* ---- reading ---- */

static int damaged(struct err *e, const char *what)
{
	return err_set(e, ERR_CORRUPT, "ld.so.cache: %s", what);
}

/* The text at `at` of p[0..n], which ends with a NUL; NULL: it is none, or too long. */
static const char *text_at(const char *p, size_t n, uint64_t at, size_t max)
{
	return at < n && strnlen(p + at, max) < max ? p + at : NULL;
}

/* Where the new form begins. */
static int find_new(const char **p, size_t *n, struct err *e)
{
	uint32_t count;
	size_t skip;

	if (*n >= OLD_HEADER && memcmp(*p, OLD_MAGIC, strlen(OLD_MAGIC)) == 0) {
		memcpy(&count, *p + OLD_HEADER - sizeof(count), sizeof(count));
		skip = (OLD_HEADER + (size_t)count * OLD_ENTRY + ALIGNMENT - 1) &
		       ~(size_t)(ALIGNMENT - 1);
		if (skip >= *n)
			return damaged(e, "it has only the form of before glibc 2.2");
		*p += skip;
		*n -= skip;
	}
	if (*n < sizeof(struct header) || memcmp(*p, NEW_MAGIC, strlen(NEW_MAGIC)) != 0)
		return damaged(e, "it does not begin as one");
	return 0;
}

/* The bytes of a cache: offsets of texts count from the new form's beginning, others from the
 * file's. */
struct bytes {
	const char *file, *p; /* p: the new form */
	size_t size, n;       /* of each, to the end */
};

/* The names of one section of the extension: offsets of texts. */
static int read_hwcaps(
	struct ldcache *c, const struct bytes *b, const struct section *s, struct err *e)
{
	uint32_t at;

	if (c->hwcaps || s->size % sizeof(at) || s->offset > b->size ||
		s->size > b->size - s->offset || s->size / sizeof(at) > HWCAPS_MAX)
		return damaged(e, "its names of hardware capabilities");
	c->hwcaps = mem_array(s->size / sizeof(at) + 1, sizeof(*c->hwcaps));
	for (size_t i = 0; i < s->size / sizeof(at); i++) {
		memcpy(&at, b->file + s->offset + i * sizeof(at), sizeof(at));
		c->hwcaps[i] = text_at(b->p, b->n, at, NAME_BYTES);
		if (!c->hwcaps[i])
			return damaged(e, "a name that leads out of it");
		c->nhwcaps++;
	}
	return 0;
}

/* Nobody depends on it: one that is no text is not kept. */
static void read_generator(struct ldcache *c, const struct bytes *b, const struct section *s)
{
	if (s->size == 0 || s->size > GENERATOR_MAX || s->offset > b->size ||
		s->size > b->size - s->offset)
		return;
	c->generator = b->file + s->offset;
	c->ngenerator = s->size;
}

static int read_extension(struct ldcache *c, const struct bytes *b, uint32_t at, struct err *e)
{
	struct extension x;
	struct section s;

	if (at == 0)
		return 0;
	if (at > b->size || b->size - at < sizeof(x))
		return damaged(e, "its extension leads out of it");
	memcpy(&x, b->file + at, sizeof(x));
	if (x.magic != (uint32_t)EXTENSION_MAGIC) /* glibc before 2.33 had no use for the field */
		return 0;
	if (x.count > SECTIONS_MAX || (b->size - at - sizeof(x)) / sizeof(s) < x.count)
		return damaged(e, "its extension leads out of it");
	for (uint32_t i = 0; i < x.count; i++) {
		memcpy(&s, b->file + at + sizeof(x) + i * sizeof(s), sizeof(s));
		if (s.tag == SECTION_GENERATOR)
			read_generator(c, b, &s);
		if (s.tag == SECTION_HWCAPS && read_hwcaps(c, b, &s, e) < 0)
			return -1;
	}
	return 0;
}

int ldcache_read(struct ldcache *c, const char *p, size_t n, struct err *e)
{
	struct bytes b = {.file = p, .size = n};
	struct header h;
	struct entry x;

	*c = (struct ldcache){0};
	if (find_new(&p, &n, e) < 0)
		return -1;
	b.p = p;
	b.n = n;
	memcpy(&h, p, sizeof(h));
	if (h.count > LDCACHE_ENTRIES_MAX)
		return damaged(e, "more than 32768 entries");
	if (h.count > (n - sizeof(h)) / sizeof(x))
		return damaged(e, "it ends before its last entry");
	if (read_extension(c, &b, h.extension, e) < 0)
		return -1;
	c->v = mem_array((size_t)h.count + 1, sizeof(*c->v));
	for (uint32_t i = 0; i < h.count; i++) {
		memcpy(&x, p + sizeof(h) + i * sizeof(x), sizeof(x));
		struct ld_entry l = {.soname = text_at(p, n, x.key, NAME_BYTES),
			.path = text_at(p, n, x.value, PATH_BYTES),
			.flags = x.flags,
			.hwcap = x.hwcap};

		if (!l.soname || !l.path)
			return damaged(e, "a name that leads out of it");
		if ((l.hwcap & HWCAP_EXTENSION) && (uint32_t)l.hwcap >= c->nhwcaps)
			return damaged(e, "an entry for hardware that it does not name");
		c->v[c->n++] = l;
	}
	return 0;
}

void ldcache_fini(struct ldcache *c)
{
	mem_free_ref(&c->v);
	mem_free_ref(&c->hwcaps);
	c->n = c->nhwcaps = c->ngenerator = 0;
	c->generator = NULL;
}

/* ---- order ---- */

static uint32_t number(const char **p)
{
	uint32_t v = 0;

	while (**p >= '0' && **p <= '9')
		v = v * 10 + (uint32_t)(*(*p)++ - '0');
	return v;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* glibc's _dl_cache_libcmp(): runs of digits count as numbers. */
static int compare_names(const char *a, const char *b)
{
	while (*a) {
		if (is_digit(*a) && is_digit(*b)) {
			uint32_t x = number(&a), y = number(&b);

			if (x != y)
				return x < y ? -1 : 1;
		} else if (is_digit(*a) || is_digit(*b)) {
			return is_digit(*a) ? 1 : -1;
		} else if (*a != *b) {
			return *a - *b;
		} else {
			a++;
			b++;
		}
	}
	return *a - *b;
}

/* The loader searches from the greatest name to the least, and of one name takes the first that
 * fits it: which is why hwcap does not matter here, and what is equal keeps its order. */
static int compare(const struct ld_entry *a, const struct ld_entry *b)
{
	int rc = compare_names(b->soname, a->soname);

	if (rc || a->flags == b->flags)
		return rc;
	return a->flags < b->flags ? 1 : -1;
}

struct ranked {
	struct ld_entry x;
	size_t at;
};

static int compare_ranked(const void *pa, const void *pb)
{
	const struct ranked *a = pa, *b = pb;
	int rc = compare(&a->x, &b->x);

	return rc ? rc : (a->at > b->at) - (a->at < b->at);
}

static void sort(struct ld_entry *v, size_t n)
{
	auto_free struct ranked *r = NULL;
	size_t i = 1;

	while (i < n && compare(&v[i - 1], &v[i]) <= 0)
		i++;
	if (i >= n)
		return;
	r = mem_array(n, sizeof(*r));
	for (i = 0; i < n; i++)
		r[i] = (struct ranked){v[i], i};
	qsort(r, n, sizeof(*r), compare_ranked);
	for (i = 0; i < n; i++)
		v[i] = r[i].x;
}

/* ---- merging ---- */

/* Is it in that folder itself? */
bool ldcache_lies_in(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	while (n > 1 && dir[n - 1] == '/')
		n--;
	return strncmp(path, dir, n) == 0 && path[n] == '/' && !strchr(path + n + 1, '/');
}

void ldcache_drop(struct ldcache *c, const struct strings *without)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->n; i++) {
		bool gone = false;

		for (size_t k = 0; k < without->n && !gone; k++)
			gone = ldcache_lies_in(c->v[i].path, without->v[k]) ||
			       str_eq(c->v[i].path, without->v[k]);
		if (!gone)
			c->v[kept++] = c->v[i];
	}
	c->n = kept;
}

/* Ours before what is equal to it. */
static size_t merge(
	const struct ld_entry *ours, size_t nours, const struct ldcache *c, struct ld_entry *out)
{
	size_t n = 0, i = 0, k = 0;

	while (i < nours || k < c->n)
		out[n++] = k == c->n || (i < nours && compare(&ours[i], &c->v[k]) <= 0) ? ours[i++]
											: c->v[k++];
	return n;
}

/* ---- writing ---- */

/* Add a text and say where it is from the beginning. A name is most often the end of its path. */
static int put_texts(struct buf *b, const struct ld_entry *l, struct entry *x, struct err *e)
{
	size_t n = strlen(l->path), tail = strlen(l->soname);

	x->value = (uint32_t)b->len;
	if (buf_add(b, l->path, n + 1, e) < 0)
		return -1;
	if (tail <= n && str_eq(l->path + n - tail, l->soname)) {
		x->key = x->value + (uint32_t)(n - tail);
		return 0;
	}
	x->key = (uint32_t)b->len;
	return buf_add(b, l->soname, tail + 1, e);
}

/* The section of hwcaps is kept as it was: entries count its names. */
static int put_extension(struct buf *b, const struct ldcache *c, const uint32_t *hwcaps,
	uint32_t generator, struct err *e)
{
	size_t at = b->len, n = c->generator ? c->ngenerator : strlen(GENERATOR);
	struct extension x = {(uint32_t)EXTENSION_MAGIC, c->nhwcaps ? 2 : 1};
	struct section s[2] = {
		{SECTION_GENERATOR, 0, generator, (uint32_t)n},
		{SECTION_HWCAPS, 0, (uint32_t)(at + sizeof(x) + sizeof(s)),
			(uint32_t)(c->nhwcaps * sizeof(*hwcaps))},
	};

	if (buf_add(b, &x, sizeof(x), e) < 0 || buf_add(b, s, x.count * sizeof(*s), e) < 0)
		return -1;
	return c->nhwcaps ? buf_add(b, hwcaps, c->nhwcaps * sizeof(*hwcaps), e) : 0;
}

static int write_all(
	struct buf *b, const struct ld_entry *v, size_t n, const struct ldcache *c, struct err *e)
{
	auto_free struct entry *entries = mem_array(n + 1, sizeof(*entries));
	auto_free uint32_t *hwcaps = mem_array(c->nhwcaps + 1, sizeof(*hwcaps));
	struct header h = {.count = (uint32_t)n, .flags = ENDIAN};
	size_t start = sizeof(h) + n * sizeof(*entries);
	uint32_t generator;

	memcpy(h.magic, NEW_MAGIC, sizeof(h.magic));
	if (buf_add(b, &h, sizeof(h), e) < 0 || buf_add(b, entries, n * sizeof(*entries), e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		entries[i].flags = v[i].flags;
		entries[i].hwcap = v[i].hwcap;
		if (put_texts(b, &v[i], &entries[i], e) < 0)
			return -1;
	}
	for (size_t i = 0; i < c->nhwcaps; i++) {
		hwcaps[i] = (uint32_t)b->len;
		if (buf_add(b, c->hwcaps[i], strlen(c->hwcaps[i]) + 1, e) < 0)
			return -1;
	}
	generator = (uint32_t)b->len;
	if (c->generator ? buf_add(b, c->generator, c->ngenerator, e) < 0
			 : buf_add(b, GENERATOR, strlen(GENERATOR), e) < 0)
		return -1;
	if (buf_add(b, "", 1, e) < 0)
		return -1;
	h.strings = (uint32_t)(b->len - start);
	while (b->len % 4)
		if (buf_add(b, "", 1, e) < 0)
			return -1;
	h.extension = (uint32_t)b->len;
	if (put_extension(b, c, hwcaps, generator, e) < 0)
		return -1;
	memcpy(b->data, &h, sizeof(h));
	memcpy(b->data + sizeof(h), entries, n * sizeof(*entries));
	return 0;
}

int ldcache_write(
	struct ldcache *c, const struct ld_entry *v, size_t nv, struct buf *out, struct err *e)
{
	auto_free struct ld_entry *ours = mem_array(nv + 1, sizeof(*ours));
	auto_free struct ld_entry *all = mem_array(nv + c->n + 1, sizeof(*all));
	size_t n;

	sort(c->v, c->n);
	if (nv)
		memcpy(ours, v, nv * sizeof(*ours));
	sort(ours, nv);
	n = merge(ours, nv, c, all);
	return n ? write_all(out, all, n, c, e) : 0;
}
