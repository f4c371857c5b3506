#include "images/tar-fields.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "images/tar.h"

static_assert(sizeof(struct tar_block) == TAR_BLOCK, "a header is one block");

/* ---- the block ---- */

enum flavour { V7, USTAR, STAR, GNU };

static enum flavour flavour_of(const struct tar_block *b)
{
	if (memcmp(b->magic, "ustar ", 6) == 0 && memcmp(b->version, " ", 2) == 0)
		return GNU;
	if (memcmp(b->magic, "ustar", 6) != 0)
		return V7;
	return memcmp(b->pad + 8, "tar", 4) == 0 ? STAR : USTAR;
}

/* Octal digits between spaces and NULs; nothing is 0. */
static int octal(const char *p, size_t n, uint64_t *v)
{
	*v = 0;
	while (n > 0 && (*p == ' ' || *p == '\0')) {
		p++;
		n--;
	}
	for (; n > 0 && *p >= '0' && *p <= '7'; p++, n--) {
		if (*v >> 61)
			return -1;
		*v = *v << 3 | (uint64_t)(*p - '0');
	}
	/* whatever follows a NUL was left there by the writer */
	return n == 0 || *p == '\0' || *p == ' ' ? 0 : -1;
}

/* GNU's base 256: a two's complement number, its first bit replaced by 1. */
static int binary(const char *p, size_t n, int64_t *v)
{
	unsigned char fill = p[0] & 0x40 ? 0xff : 0;
	uint64_t x = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)p[i];

		if (i == 0)
			c = (unsigned char)(fill ? c : c & 0x7f);
		if (i + 8 < n && c != fill)
			return -1;
		x = x << 8 | c;
	}
	if (n < 8 && fill) /* the sign goes on to the left */
		x |= ~(uint64_t)0 << (8 * n);
	if (n >= 8 && (x >> 63) != (fill & 1u))
		return -1;
	*v = (int64_t)x;
	return 0;
}

static int number(const char *p, size_t n, const char *what, int64_t *v, struct err *e)
{
	uint64_t u;
	int rc;

	if ((unsigned char)p[0] & 0x80) {
		rc = binary(p, n, v);
	} else {
		rc = octal(p, n, &u) < 0 || u > INT64_MAX ? -1 : 0;
		*v = (int64_t)u;
	}
	return rc < 0 ? err_set(e, ERR_CORRUPT, "the header's %s is no number", what) : 0;
}

#define NUMBER(b, field, v, e) number((b)->field, sizeof((b)->field), #field, v, e)

int tar_block_check(const struct tar_block *b, struct err *e)
{
	const unsigned char *p = (const unsigned char *)b;
	int64_t plain = 0, with_sign = 0; /* old writers added up chars that have a sign */
	uint64_t sum;

	for (size_t i = 0; i < sizeof(*b); i++) {
		bool own = i >= offsetof(struct tar_block, sum) &&
			   i < offsetof(struct tar_block, type);

		plain += own ? ' ' : p[i];
		with_sign += own ? ' ' : (signed char)p[i];
	}
	if (octal(b->sum, sizeof(b->sum), &sum) < 0 ||
		((int64_t)sum != plain && (int64_t)sum != with_sign))
		return err_set(e, ERR_CORRUPT, "not a tar header: its checksum is wrong");
	return 0;
}

int tar_block_size(const struct tar_block *b, uint64_t *size, struct err *e)
{
	int64_t v;

	if (NUMBER(b, size, &v, e) < 0)
		return -1;
	if (v < 0)
		return err_set(e, ERR_CORRUPT, "a negative size");
	*size = (uint64_t)v;
	return 0;
}

static size_t copy_text(char *out, const char *field, size_t size)
{
	size_t n = strnlen(field, size);

	memcpy(out, field, n);
	out[n] = '\0';
	return n;
}

char *tar_block_name(const struct tar_block *b, char out[TAR_NAME_TEXT])
{
	enum flavour f = flavour_of(b);
	size_t n = 0;

	if (f == USTAR || f == STAR)
		n = copy_text(out, b->prefix, f == STAR ? 131 : sizeof(b->prefix));
	if (n > 0)
		out[n++] = '/';
	copy_text(out + n, b->name, sizeof(b->name));
	return out;
}

char *tar_block_link(const struct tar_block *b, char out[TAR_NAME_TEXT])
{
	copy_text(out, b->link, sizeof(b->link));
	return out;
}

/* ---- records ---- */

void tar_records_reset(struct tar_records *x)
{
	*x = (struct tar_records){.xattrs = x->xattrs, .cap = x->cap};
}

void tar_records_fini(struct tar_records *x)
{
	free(x->xattrs);
	*x = (struct tar_records){0};
}

#define XATTR "SCHILY.xattr."

static int add_xattr(
	struct tar_records *x, const char *key, const char *value, size_t n, struct err *e)
{
	if (x->nxattrs >= TAR_RECORDS_XATTRS_MAX)
		return err_set(
			e, ERR_CORRUPT, "more than %d extended attributes", TAR_RECORDS_XATTRS_MAX);
	mem_grow(&x->xattrs, &x->cap, x->nxattrs);
	x->xattrs[x->nxattrs++] =
		(struct xattr){.name = key + strlen(XATTR), .value = value, .len = n};
	return 0;
}

static int add_record(
	struct tar_records *x, const char *key, const char *value, size_t n, struct err *e)
{
	const struct {
		const char *key, **to;
	} texts[] = {{"path", &x->path}, {"linkpath", &x->linkpath}, {"size", &x->size},
		{"uid", &x->uid}, {"gid", &x->gid}, {"mtime", &x->mtime}};

	if (str_starts(key, "GNU.sparse."))
		return err_set(e, ERR_UNSUPPORTED, "a sparse file (record %.100s)", key);
	if (str_starts(key, XATTR) && key[strlen(XATTR)])
		return add_xattr(x, key, value, n, e);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (!str_eq(key, texts[i].key))
			continue;
		if (memchr(value, '\0', n))
			return err_set(e, ERR_CORRUPT, "record %s: a NUL in its value", key);
		/* an empty value takes back what was said before: the block's field counts */
		*texts[i].to = n > 0 ? value : NULL;
	}
	return 0;
}

/* Sorted by name; of one name the record that came last. Few, and sorted already more often than
 * not. */
static void sort_xattrs(struct tar_records *x)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < x->nxattrs; i++) {
		struct xattr v = x->xattrs[i];
		uint32_t k = n;

		while (k > 0 && strcmp(x->xattrs[k - 1].name, v.name) > 0)
			k--;
		if (k > 0 && str_eq(x->xattrs[k - 1].name, v.name)) {
			x->xattrs[k - 1] = v;
			continue;
		}
		memmove(x->xattrs + k + 1, x->xattrs + k, (n - k) * sizeof(v));
		x->xattrs[k] = v;
		n++;
	}
	x->nxattrs = n;
}

/* One record "LENGTH key=value\n" at p, of at most n bytes; *len is what it took. */
static int parse_record(struct tar_records *x, char *p, size_t n, size_t *len, struct err *e)
{
	size_t digits = 0, total = 0;
	char *key, *equals;

	for (; digits < n && p[digits] >= '0' && p[digits] <= '9' && total <= n; digits++)
		total = total * 10 + (size_t)(p[digits] - '0');
	if (digits == 0 || digits >= n || p[digits] != ' ' || total > n || total < digits + 2 ||
		p[total - 1] != '\n')
		return err_set(e, ERR_CORRUPT, "its length is wrong");
	key = p + digits + 1;
	equals = memchr(key, '=', (size_t)(p + total - 1 - key));
	if (!equals || equals == key || memchr(key, '\0', (size_t)(equals - key)))
		return err_set(e, ERR_CORRUPT, "its key is wrong");
	*equals = p[total - 1] = '\0';
	*len = total;
	return add_record(x, key, equals + 1, (size_t)(p + total - 1 - (equals + 1)), e);
}

int tar_records_parse(struct tar_records *x, struct buf *text, struct err *e)
{
	size_t at = 0, n = 0;

	tar_records_reset(x);
	while (at < text->len) {
		if (parse_record(x, text->data + at, text->len - at, &n, e) < 0)
			return err_ctx(e, "extended header: record at %zu", at);
		at += n;
	}
	sort_xattrs(x);
	return 0;
}

int tar_records_check(struct buf *text, struct err *e)
{
	struct tar_records x = {0};
	int rc = tar_records_parse(&x, text, e);

	tar_records_fini(&x);
	return rc;
}

/* ---- both ---- */

/* "-12.5" is -13. */
static int parse_time(const char *text, int64_t *v)
{
	bool minus = text[0] == '-', fraction = false;
	char digits[24];
	uint64_t n;
	const char *p = text + minus, *dot = strchrnul(p, '.');

	if ((size_t)(dot - p) >= sizeof(digits))
		return -1;
	memcpy(digits, p, (size_t)(dot - p));
	digits[dot - p] = '\0';
	if (str_u64(digits, INT64_MAX - 1, &n) < 0)
		return -1;
	for (p = *dot ? dot + 1 : dot; *p; p++) {
		if (*p < '0' || *p > '9')
			return -1;
		fraction = fraction || *p != '0';
	}
	*v = minus ? -(int64_t)n - (fraction ? 1 : 0) : (int64_t)n;
	return 0;
}

/* Of the record, or of the field where there is none. */
static int owner(
	const char *record, const char *field, const char *what, uint32_t *out, struct err *e)
{
	uint64_t v;
	int64_t x = 0;

	if (!record && number(field, sizeof(((struct tar_block *)0)->uid), what, &x, e) < 0)
		return -1;
	if (record && str_u64(record, UINT64_MAX, &v) < 0)
		return err_set(e, ERR_CORRUPT, "record %s: '%.40s' is no number", what, record);
	if (!record)
		v = (uint64_t)x;
	if (v >= UINT32_MAX) /* the last one means "no owner" to the kernel */
		return err_set(e, ERR_CORRUPT, "a %s that is not within 32 bits", what);
	*out = (uint32_t)v;
	return 0;
}

static int device(const struct tar_block *b, struct tar_member *m, struct err *e)
{
	int64_t major, minor;

	if (NUMBER(b, major, &major, e) < 0 || NUMBER(b, minor, &minor, e) < 0)
		return -1;
	if (major < 0 || major > UINT32_MAX || minor < 0 || minor > UINT32_MAX)
		return err_set(e, ERR_CORRUPT, "a device number that is not within 32 bits");
	m->major = (uint32_t)major;
	m->minor = (uint32_t)minor;
	return 0;
}

int tar_block_numbers(
	const struct tar_block *b, const struct tar_records *x, struct tar_member *m, struct err *e)
{
	int64_t mode;

	if (NUMBER(b, mode, &mode, e) < 0 || owner(x->uid, b->uid, "uid", &m->uid, e) < 0 ||
		owner(x->gid, b->gid, "gid", &m->gid, e) < 0)
		return -1;
	m->mode = (uint32_t)mode & 07777;
	if (x->mtime ? parse_time(x->mtime, &m->mtime) < 0 : NUMBER(b, mtime, &m->mtime, e) < 0)
		return x->mtime ? err_set(e, ERR_CORRUPT, "record mtime: '%.40s' is no time",
					  x->mtime)
				: -1;
	if (x->size && str_u64(x->size, INT64_MAX, &m->size) < 0)
		return err_set(e, ERR_CORRUPT, "record size: '%.40s' is no number", x->size);
	if (!x->size && tar_block_size(b, &m->size, e) < 0)
		return -1;
	return (m->type == '3' || m->type == '4') && flavour_of(b) != V7 ? device(b, m, e) : 0;
}
