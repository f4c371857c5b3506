#include "images/toc-json.h"

#include <inttypes.h>

#include "base/str.h"

void toc_json_init(struct toc_json *j, struct source *src, const char *name)
{
	*j = (struct toc_json){.src = src, .key = BUF_INIT(TOC_KEY_MAX + 1), .name = name};
}

void toc_json_fini(struct toc_json *j)
{
	buf_fini(&j->key);
}

uint64_t toc_json_at(const struct toc_json *j)
{
	return j->read - (uint64_t)(j->end - j->p);
}

static int refuse(const struct toc_json *j, const char *what, struct err *e)
{
	return err_set(e, ERR_CORRUPT, "%s: byte %" PRIu64 ": %s", j->name, toc_json_at(j), what);
}

/* ---- bytes ---- */

/* 1: *j->p is a byte; 0 at the end. */
static int fill(struct toc_json *j, struct err *e)
{
	const void *data;
	size_t n;
	int rc;

	if (j->p < j->end)
		return 1;
	rc = source_next(j->src, &data, &n, e);
	if (rc <= 0)
		return rc;
	j->p = data;
	j->end = j->p + n;
	j->read += n;
	return 1;
}

/* The next byte, which stays; -1. */
static int peek(struct toc_json *j, struct err *e)
{
	int rc = fill(j, e);

	if (rc == 0)
		return refuse(j, "the text ends here", e);
	return rc < 0 ? -1 : *j->p;
}

static int take(struct toc_json *j, struct err *e)
{
	int c = peek(j, e);

	if (c >= 0)
		j->p++;
	return c;
}

/* The next byte that is no space, which stays. */
static int peek_token(struct toc_json *j, struct err *e)
{
	int c;

	while ((c = peek(j, e)) == ' ' || c == '\t' || c == '\n' || c == '\r')
		j->p++;
	return c;
}

static int take_word(struct toc_json *j, const char *word, struct err *e)
{
	for (; *word; word++) {
		int c = take(j, e);

		if (c < 0)
			return -1;
		if (c != *word)
			return refuse(j, "not a value", e);
	}
	return 0;
}

/* ---- strings ---- */

static int take_hex4(struct toc_json *j, uint32_t *v, struct err *e)
{
	*v = 0;
	for (unsigned i = 0; i < 4; i++) {
		static const char digits[] = "0123456789abcdefABCDEF";
		int c = take(j, e);
		const char *d = c > 0 ? strchr(digits, c) : NULL;

		if (c < 0)
			return -1;
		if (!d)
			return refuse(j, "no hexadecimal digit", e);
		*v = *v << 4 | (uint32_t)(d - digits < 16 ? d - digits : d - digits - 6);
	}
	return 0;
}

/* What follows \u, a second half included. */
static int take_code(struct toc_json *j, uint32_t *v, struct err *e)
{
	uint32_t low;

	if (take_hex4(j, v, e) < 0)
		return -1;
	if (*v < 0xd800 || *v > 0xdfff)
		return 0;
	if (*v > 0xdbff || peek(j, NULL) != '\\')
		return refuse(j, "half of a character", e);
	if (take_word(j, "\\u", e) < 0 || take_hex4(j, &low, e) < 0)
		return -1;
	if (low < 0xdc00 || low > 0xdfff)
		return refuse(j, "half of a character", e);
	*v = 0x10000 + ((*v - 0xd800) << 10) + (low - 0xdc00);
	return 0;
}

static size_t encode_utf8(uint32_t v, char out[4])
{
	if (v < 0x80) {
		out[0] = (char)v;
		return 1;
	}
	if (v < 0x800) {
		out[0] = (char)(0xc0 | v >> 6);
		out[1] = (char)(0x80 | (v & 0x3f));
		return 2;
	}
	if (v < 0x10000) {
		out[0] = (char)(0xe0 | v >> 12);
		out[1] = (char)(0x80 | (v >> 6 & 0x3f));
		out[2] = (char)(0x80 | (v & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | v >> 18);
	out[1] = (char)(0x80 | (v >> 12 & 0x3f));
	out[2] = (char)(0x80 | (v >> 6 & 0x3f));
	out[3] = (char)(0x80 | (v & 0x3f));
	return 4;
}

/* b NULL: the string is only passed over. */
static int take_escape(struct toc_json *j, struct buf *b, struct err *e)
{
	static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
	int c = take(j, e);
	const char *s = c > 0 ? strchr(names, c) : NULL;
	char utf8[4];
	uint32_t v;

	if (c < 0)
		return -1;
	if (s)
		return b ? buf_add(b, &values[s - names], 1, e) : 0;
	if (c != 'u')
		return refuse(j, "no such escape", e);
	if (take_code(j, &v, e) < 0)
		return -1;
	return b ? buf_add(b, utf8, encode_utf8(v, utf8), e) : 0;
}

/* Plain bytes up to the quote, an escape, or the end of what src gave. */
static int take_run(struct toc_json *j, struct buf *b, struct err *e)
{
	const unsigned char *s = j->p;

	while (j->p < j->end && *j->p >= 0x20 && *j->p != '"' && *j->p != '\\')
		j->p++;
	return b ? buf_add(b, s, (size_t)(j->p - s), e) : 0;
}

static int take_string(struct toc_json *j, struct buf *b, struct err *e)
{
	int c = peek_token(j, e);

	if (c < 0)
		return -1;
	if (c != '"')
		return refuse(j, "expected a string", e);
	j->p++;
	if (b)
		b->len = 0;
	while ((c = peek(j, e)) >= 0 && c != '"') {
		int rc;

		if (c < 0x20)
			return refuse(j, "a control character in a string", e);
		if (c == '\\') {
			j->p++;
			rc = take_escape(j, b, e);
		} else {
			rc = take_run(j, b, e);
		}
		if (rc < 0)
			return err_ctx(e, "%s: byte %" PRIu64 ": string", j->name, toc_json_at(j));
	}
	if (c < 0)
		return -1;
	j->p++;
	if (b && !str_utf8(b->len ? b->data : "", b->len))
		return refuse(j, "a string that is not UTF-8, or holds a NUL", e);
	return b ? buf_add(b, "", 0, e) : 0; /* a NUL behind it, also when it is empty */
}

/* ---- values ---- */

int toc_json_open(struct toc_json *j, char bracket, struct err *e)
{
	int c = peek_token(j, e);

	if (c < 0)
		return -1;
	if (c != bracket)
		return refuse(j, bracket == '{' ? "expected an object" : "expected an array", e);
	j->p++;
	return 0;
}

int toc_json_element(struct toc_json *j, bool *first, struct err *e)
{
	int c = peek_token(j, e);

	if (c < 0)
		return -1;
	if (c == ']') {
		j->p++;
		return 0;
	}
	if (!*first) {
		if (c != ',')
			return refuse(j, "expected , or ]", e);
		j->p++;
	}
	*first = false;
	return 1;
}

int toc_json_member(struct toc_json *j, bool *first, struct err *e)
{
	int c = peek_token(j, e);

	if (c < 0)
		return -1;
	if (c == '}') {
		j->p++;
		return 0;
	}
	if (!*first) {
		if (c != ',')
			return refuse(j, "expected , or }", e);
		j->p++;
	}
	*first = false;
	if (take_string(j, &j->key, e) < 0)
		return -1;
	c = peek_token(j, e);
	if (c < 0)
		return -1;
	if (c != ':')
		return refuse(j, "expected :", e);
	j->p++;
	return 1;
}

/* 1 when the next value is null, and taken. */
static int take_null(struct toc_json *j, struct err *e)
{
	int c = peek_token(j, e);

	if (c != 'n')
		return c < 0 ? -1 : 0;
	return take_word(j, "null", e) < 0 ? -1 : 1;
}

int toc_json_string(struct toc_json *j, struct buf *b, struct err *e)
{
	int null = take_null(j, e);

	if (null != 0)
		return null < 0 ? -1 : 0;
	return take_string(j, b, e) < 0 ? -1 : 1;
}

int toc_json_object(struct toc_json *j, struct err *e)
{
	int null = take_null(j, e);

	if (null != 0)
		return null < 0 ? -1 : 0;
	return toc_json_open(j, '{', e) < 0 ? -1 : 1;
}

int toc_json_number(struct toc_json *j, uint64_t max, uint64_t *v, struct err *e)
{
	int null = take_null(j, e), c, digits = 0;

	if (null != 0)
		return null < 0 ? -1 : 0;
	*v = 0;
	while ((c = peek(j, e)) >= '0' && c <= '9') {
		uint64_t d = (uint64_t)(c - '0');

		if (digits++ > 0 && *v == 0)
			return refuse(j, "a number that begins with 0", e);
		if (d > max || *v > (max - d) / 10)
			return err_set(e, ERR_CORRUPT,
				"%s: byte %" PRIu64 ": a number above the limit of %" PRIu64,
				j->name, toc_json_at(j), max);
		*v = *v * 10 + d;
		j->p++;
	}
	if (c < 0)
		return -1;
	if (digits == 0 || c == '.' || c == 'e' || c == 'E')
		return refuse(j, "expected a whole number, not below 0", e);
	return 1;
}

/* A number, true, false or null: what it says does not matter. */
static int skip_scalar(struct toc_json *j, int c, struct err *e)
{
	static const char number[] = "+-.0123456789eE";

	if (c == 't' || c == 'f' || c == 'n')
		return take_word(j, c == 't' ? "true" : c == 'f' ? "false" : "null", e);
	if (c != '-' && (c < '0' || c > '9'))
		return refuse(j, "not a value", e);
	while (c > 0 && strchr(number, c)) {
		j->p++;
		c = peek(j, e);
	}
	return c < 0 ? -1 : 0;
}

/* One token of a value that is skipped; opened brackets are noted in stack. */
static int skip_token(
	struct toc_json *j, char stack[TOC_JSON_DEPTH], unsigned *depth, struct err *e)
{
	int c = peek_token(j, e);

	if (c < 0)
		return -1;
	if (c == '"')
		return take_string(j, NULL, e);
	if (c != '{' && c != '[')
		return skip_scalar(j, c, e);
	if (*depth == TOC_JSON_DEPTH)
		return refuse(j, "nested deeper than 64", e);
	stack[(*depth)++] = (char)c;
	j->p++;
	return 0;
}

int toc_json_skip(struct toc_json *j, struct err *e)
{
	char stack[TOC_JSON_DEPTH];
	bool first[TOC_JSON_DEPTH + 1];
	unsigned depth = 0;

	for (;;) {
		unsigned before = depth;
		int rc = skip_token(j, stack, &depth, e);

		if (rc < 0)
			return -1;
		if (depth > before)
			first[depth] = true;
		/* to the next value, out of all that ends here */
		for (rc = 0; depth > 0 && rc == 0;) {
			rc = stack[depth - 1] == '{' ? toc_json_member(j, &first[depth], e)
						     : toc_json_element(j, &first[depth], e);
			if (rc < 0)
				return -1;
			if (rc == 0)
				depth--;
		}
		if (depth == 0)
			return 0;
	}
}

int toc_json_end(struct toc_json *j, struct err *e)
{
	int rc = fill(j, e);

	return rc <= 0 ? rc : refuse(j, "something follows the closing brace", e);
}
