#include "builder/build-secret.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"

enum { ID_MAX = 64 };

/* ---- memory that is neither swapped out, nor dumped, nor left behind ---- */

static size_t whole_pages(size_t n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (n + page - 1) / page * page;
}

static void *locked_new(size_t n, struct err *e)
{
	size_t size = whole_pages(n);
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mlock(p, size) < 0) {
		err_sys(e, "lock memory for a secret");
		if (p != MAP_FAILED)
			munmap(p, size);
		return NULL;
	}
	/* Kernels and limits that refuse these do not make the secret less usable. */
	(void)madvise(p, size, MADV_DONTDUMP);
	(void)madvise(p, size, MADV_DONTFORK);
	return p;
}

static void locked_free(void *p, size_t n)
{
	if (!p)
		return;
	explicit_bzero(p, n);
	munmap(p, whole_pages(n));
}

/* ---- loading ---- */

static bool is_id(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)s[i]) && !strchr("_.-", s[i]))
			return false;
	return n > 0 && n <= ID_MAX && isalnum((unsigned char)s[0]);
}

static int read_value(struct build_secret *s, const char *path, struct err *e)
{
	struct stat st;
	auto_fd int fd = sys_open(path, O_RDONLY, 0);

	if (fd < 0 || sys_fstat(fd, &st) < 0)
		return err_sys(e, "open %s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_USAGE, "%s is no file", path);
	if (st.st_size > BUILD_SECRET_MAX)
		return err_set(e, ERR_USAGE, "%s is longer than %d bytes", path, BUILD_SECRET_MAX);
	s->value = locked_new(BUILD_SECRET_MAX, e);
	if (!s->value)
		return -1;
	s->n = (size_t)st.st_size;
	if (sys_read_all(fd, s->value, s->n) < 0)
		return err_sys(e, "read %s", path);
	if (s->n && s->value[s->n - 1] == '\n')
		s->n--;
	if (s->n && s->value[s->n - 1] == '\r')
		s->n--;
	if (s->n >= BUILD_SECRET_MIN)
		return 0;
	err_set(e, ERR_USAGE, "%s: the secret is shorter than %d bytes", path, BUILD_SECRET_MIN);
	return err_hint(e,
		"svrun looks for it in all that the build writes; this would be found by "
		"chance");
}

int build_secret_load(struct build_secret *s, const char *option, struct err *e)
{
	const char *eq = strchr(option, '=');

	*s = (struct build_secret){0};
	if (!eq || !is_id(option, (size_t)(eq - option)) || !eq[1]) {
		err_set(e, ERR_USAGE, "--secret: expected ID=FILE");
		return err_hint(e, "ID is the one that the manifest's \"secrets\" name");
	}
	s->id = mem_printf("%.*s", (int)(eq - option), option);
	return read_value(s, eq + 1, e) < 0 ? err_ctx(e, "--secret %s", s->id) : 0;
}

void build_secret_fini(struct build_secret *s)
{
	char *id;

	memcpy(&id, &s->id, sizeof(id)); /* ours, though nobody may change it */
	free(id);
	locked_free(s->value, BUILD_SECRET_MAX);
	*s = (struct build_secret){0};
}

/* ---- what it may look like ---- */

enum { BASE64_FORMS = 6, FORMS = 1 + BASE64_FORMS + 4, FORM_MAX = 3 * BUILD_SECRET_MAX };

/* One spelling of one secret, in the scan's memory. */
struct form {
	const char *id;
	unsigned char *p;
	size_t n;
};

struct secret_scan {
	struct form *v;
	size_t n, longest;
	unsigned char *memory, *window; /* window: the last bytes of before, then the new ones */
	size_t memory_size, used, kept;
};

enum { WINDOW_NEW = 64 << 10 };

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/* The base64 of the value when `before` bytes (0 to 2) of something else stand before it in its
 * group of three, without the digits that those, or what follows, have a part in. */
static size_t base64_inside(
	const struct build_secret *s, unsigned before, const char last[2], unsigned char *out)
{
	size_t bits = 8 * (before + s->n), from = (8 * before + 5) / 6, n = 0;

	for (size_t k = from; 6 * (k + 1) <= bits; k++) {
		unsigned v = 0;

		for (size_t b = 6 * k; b < 6 * k + 6; b++) {
			size_t byte = b / 8 - before;

			v = v << 1 | ((unsigned char)s->value[byte] >> (7 - b % 8) & 1);
		}
		out[n++] = (unsigned char)(v < 62 ? digits[v] : last[v - 62]);
	}
	return n;
}

static size_t in_hex(const struct build_secret *s, const char *hex, unsigned char *out)
{
	for (size_t i = 0; i < s->n; i++) {
		unsigned char c = (unsigned char)s->value[i];

		out[2 * i] = (unsigned char)hex[c >> 4];
		out[2 * i + 1] = (unsigned char)hex[c & 15];
	}
	return 2 * s->n;
}

static size_t in_percent(const struct build_secret *s, const char *hex, unsigned char *out)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		unsigned char c = (unsigned char)s->value[i];

		if (c && (isalnum(c) || strchr("-._~", c))) {
			out[n++] = c;
			continue;
		}
		out[n++] = '%';
		out[n++] = (unsigned char)hex[c >> 4];
		out[n++] = (unsigned char)hex[c & 15];
	}
	return n;
}

static void add_form(struct secret_scan *x, const char *id, size_t n)
{
	if (n < BUILD_SECRET_MIN)
		return;
	x->v[x->n++] = (struct form){id, x->memory + x->used, n};
	x->used += n;
	x->longest = n > x->longest ? n : x->longest;
}

static void add_secret(struct secret_scan *x, const struct build_secret *s)
{
	static const char *const hex[] = {"0123456789abcdef", "0123456789ABCDEF"};
	static const char *const last[] = {"+/", "-_"};

	memcpy(x->memory + x->used, s->value, s->n);
	add_form(x, s->id, s->n);
	for (unsigned i = 0; i < BASE64_FORMS; i++)
		add_form(x, s->id, base64_inside(s, i / 2, last[i % 2], x->memory + x->used));
	for (unsigned i = 0; i < 2; i++) {
		add_form(x, s->id, in_hex(s, hex[i], x->memory + x->used));
		add_form(x, s->id, in_percent(s, hex[i], x->memory + x->used));
	}
}

struct secret_scan *secret_scan_new(const struct build_secret *v, size_t n)
{
	struct secret_scan *x = mem_alloc(sizeof(*x));

	for (size_t i = 0; i < n; i++)
		x->memory_size += 1 + BASE64_FORMS * (2 * v[i].n) + 2 * (2 + 3) * v[i].n + v[i].n;
	x->v = mem_array(n * FORMS + 1, sizeof(*x->v));
	x->memory = mem_alloc(x->memory_size + 1);
	for (size_t i = 0; i < n; i++)
		add_secret(x, &v[i]);
	x->window = mem_alloc(x->longest + WINDOW_NEW);
	return x;
}

void secret_scan_free(struct secret_scan *x)
{
	if (!x)
		return;
	explicit_bzero(x->memory, x->memory_size);
	explicit_bzero(x->window, x->longest + WINDOW_NEW);
	free(x->memory);
	free(x->window);
	free(x->v);
	free(x);
}

void secret_scan_begin(struct secret_scan *x)
{
	x->kept = 0;
}

static const char *find(const struct secret_scan *x, size_t n)
{
	for (size_t i = 0; i < x->n; i++)
		if (memmem(x->window, n, x->v[i].p, x->v[i].n))
			return x->v[i].id;
	return NULL;
}

const char *secret_scan_add(struct secret_scan *x, const void *data, size_t n)
{
	const unsigned char *p = data;

	while (n > 0) {
		size_t k = n < WINDOW_NEW ? n : WINDOW_NEW, all = x->kept + k;
		const char *id;

		memcpy(x->window + x->kept, p, k);
		id = find(x, all);
		if (id)
			return id;
		x->kept = all < x->longest ? all : x->longest;
		memmove(x->window, x->window + all - x->kept, x->kept);
		p += k;
		n -= k;
	}
	return NULL;
}
