#include "builder/wheel-record.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "images/base64.h"

enum { ROWS_MAX = 1000000, HASH_TEXT = 128 };

void record_fini(struct record *r)
{
	arena_fini(&r->arena);
	free(r->v);
	*r = (struct record){0};
}

/* ---- rows ---- */

static int by_path(const void *a, const void *b)
{
	const struct record_row *x = a, *y = b;

	return strcmp(x->path, y->path);
}

struct record_row *record_add(
	struct record *r, const char *path, const char *hash, const char *size)
{
	mem_grow(&r->v, &r->cap, r->n);
	r->v[r->n] = (struct record_row){.path = arena_strdup(&r->arena, path),
		.hash = arena_strdup(&r->arena, hash),
		.size = arena_strdup(&r->arena, size)};
	return &r->v[r->n++];
}

void record_sort(struct record *r)
{
	if (r->n > 1)
		qsort(r->v, r->n, sizeof(*r->v), by_path);
}

struct record_row *record_find(const struct record *r, const char *path)
{
	const struct record_row key = {.path = path};

	return r->n ? bsearch(&key, r->v, r->n, sizeof(*r->v), by_path) : NULL;
}

/* ---- reading ---- */

struct scan {
	const char *name, *at, *end;
	size_t line;
};

static int bad(const struct scan *s, struct err *e, const char *why)
{
	return err_set(e, ERR_CORRUPT, "SV173: %s:%zu: %s", s->name, s->line, why);
}

static bool at_line_end(const struct scan *s)
{
	return s->at == s->end || *s->at == '\n' || *s->at == '\r';
}

/* One field, up to the comma or the end of the line, into b. */
static int take_field(struct scan *s, struct buf *b, struct err *e)
{
	b->len = 0;
	buf_put(b, "", 0);
	if (s->at == s->end || *s->at != '"') {
		while (!at_line_end(s) && *s->at != ',')
			buf_put(b, s->at++, 1);
		return 0;
	}
	for (s->at++;; buf_put(b, s->at++, 1)) {
		if (s->at == s->end || *s->at == '\n')
			return bad(s, e, "a quoted field without its end");
		if (*s->at != '"')
			continue;
		if (s->at + 1 == s->end || s->at[1] != '"')
			break;
		s->at++;
	}
	s->at++;
	return at_line_end(s) || *s->at == ',' ? 0 : bad(s, e, "something behind a quoted field");
}

static int take_row(struct scan *s, struct record *r, struct buf b[3], struct err *e)
{
	size_t n = 0;

	for (;;) {
		if (n == 3)
			return bad(s, e, "more than three fields");
		if (take_field(s, &b[n++], e) < 0)
			return -1;
		if (at_line_end(s))
			break;
		s->at++; /* the comma */
	}
	if (n != 3 || !b[0].len)
		return bad(s, e, "expected PATH,HASH,SIZE");
	if (r->n == ROWS_MAX)
		return bad(s, e, "too many lines");
	record_add(r, b[0].data, b[1].data, b[2].data);
	return 0;
}

static int take_rows(struct scan *s, struct record *r, struct buf b[3], struct err *e)
{
	for (s->line = 1; s->at < s->end; s->line++) {
		if (!at_line_end(s) && take_row(s, r, b, e) < 0)
			return -1;
		if (s->at < s->end && *s->at == '\r')
			s->at++;
		if (s->at < s->end && *s->at++ != '\n')
			return bad(s, e, "a carriage return within a line");
	}
	return 0;
}

int record_parse(struct record *r, const char *name, const char *text, size_t n, struct err *e)
{
	struct scan s = {.name = name, .at = text, .end = text + n};
	struct buf b[3] = {BUF_INIT(n), BUF_INIT(n), BUF_INIT(n)};
	char shown[STR_SHOWN];
	int rc;

	if (!str_utf8(text, n))
		return err_set(e, ERR_CORRUPT, "SV173: %s is not UTF-8", name);
	rc = take_rows(&s, r, b, e);
	for (size_t i = 0; i < 3; i++)
		buf_fini(&b[i]);
	if (rc < 0)
		return -1;
	record_sort(r);
	for (size_t i = 1; i < r->n; i++)
		if (str_eq(r->v[i - 1].path, r->v[i].path))
			return err_set(e, ERR_CORRUPT, "SV173: %s has '%s' twice", name,
				str_shown(r->v[i].path, shown));
	return 0;
}

/* ---- writing ---- */

static void put_field(struct buf *out, const char *s)
{
	if (!strpbrk(s, ",\"\r\n")) {
		buf_put(out, s, strlen(s));
		return;
	}
	buf_put(out, "\"", 1);
	for (; *s; s++)
		buf_put(out, *s == '"' ? "\"\"" : s, *s == '"' ? 2 : 1);
	buf_put(out, "\"", 1);
}

void record_text(const struct record *r, struct buf *out)
{
	for (size_t i = 0; i < r->n; i++) {
		put_field(out, r->v[i].path);
		buf_put(out, ",", 1);
		put_field(out, r->v[i].hash);
		buf_put(out, ",", 1);
		put_field(out, r->v[i].size);
		buf_put(out, "\r\n", 2);
	}
}

/* ---- hashes ---- */

char *record_hash(struct arena *a, const char *algorithm, const uint8_t *p, size_t n)
{
	auto_free char *text = base64_encode(p, n);
	char *out;

	text[strcspn(text, "=")] = '\0';
	out = arena_printf(a, "%s=%s", algorithm, text);
	for (char *c = out + strlen(algorithm) + 1; *c; c++)
		*c = *c == '+' ? '-' : *c == '/' ? '_' : *c;
	return out;
}

/* Those of PyPA's "binary distribution format": SHA-256 or better. */
static const struct {
	const char *name;
	enum hash_kind kind;
} algorithms[] = {{"sha256", HASH_SHA256}, {"sha384", HASH_SHA384}, {"sha512", HASH_SHA512}};
enum { ALGORITHMS = sizeof(algorithms) / sizeof(algorithms[0]) };

int record_hash_kind(const struct record_row *row, enum hash_kind *kind, struct err *e)
{
	char path[STR_SHOWN], hash[STR_SHOWN];

	for (size_t i = 0; i < ALGORITHMS; i++)
		if (str_starts(row->hash, algorithms[i].name) &&
			row->hash[strlen(algorithms[i].name)] == '=') {
			*kind = algorithms[i].kind;
			return 0;
		}
	if (!row->hash[0])
		return err_set(e, ERR_CORRUPT, "SV173: RECORD has no hash of '%s'",
			str_shown(row->path, path));
	err_set(e, ERR_UNSUPPORTED, "SV173: RECORD has the hash '%s' of '%s'",
		str_shown(row->hash, hash), str_shown(row->path, path));
	return err_hint(e, "sha256, sha384 and sha512 are known");
}

int record_check(const struct record_row *row, struct hash *h, uint64_t size, struct err *e)
{
	struct arena a = {0};
	uint8_t bytes[HASH_MAX];
	char path[STR_SHOWN], text[HASH_TEXT];
	const char *algorithm = NULL;
	size_t n = hash_final(h, bytes), len = strlen(row->hash);
	uint64_t want = size;
	bool same;

	for (size_t i = 0; i < ALGORITHMS; i++)
		if (algorithms[i].kind == h->kind)
			algorithm = algorithms[i].name;
	assert(algorithm);
	while (len > 0 && row->hash[len - 1] == '=') /* some pad it */
		len--;
	snprintf(text, sizeof(text), "%s", record_hash(&a, algorithm, bytes, n));
	arena_fini(&a);
	same = strlen(text) == len && memcmp(text, row->hash, len) == 0;
	if (!same)
		return err_set(e, ERR_CORRUPT,
			"SV173: '%s' is not what RECORD says: expected %.*s, found %s",
			str_shown(row->path, path), HASH_TEXT, row->hash, text);
	if (row->size[0] && (str_u64(row->size, UINT64_MAX, &want) < 0 || want != size))
		return err_set(e, ERR_CORRUPT,
			"SV173: '%s' is not what RECORD says: expected %.32s bytes, found %" PRIu64,
			str_shown(row->path, path), row->size, size);
	return 0;
}
