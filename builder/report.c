#include "builder/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "builder/resolve.h"

enum {
	POINTER_SHOWN = 200,
	GOT_SHOWN = 60,
	MESSAGE_MAX = 300,
	LINE_ROOM = 4096, /* four times what the parts above and a path can need, for escapes */
};

void report_init(struct report *r, const char *name, const void *text, size_t n, size_t max)
{
	*r = (struct report){.name = name, .text = text, .len = n, .max = max};
}

void report_fini(struct report *r)
{
	for (size_t i = 0; i < r->n; i++)
		free(r->v[i].text);
	free(r->v);
	*r = (struct report){0};
}

/* ---- places ---- */

static size_t offset_of_line(const struct report *r, int line, int col)
{
	const char *p = r->text;

	for (; line > 1 && (p = memchr(p, '\n', r->len - (size_t)(p - r->text))); line--)
		p++;
	return p ? (size_t)(p - r->text) + (size_t)col - 1 : 0;
}

static void line_of_offset(const struct report *r, size_t at, size_t *line, size_t *col)
{
	const char *start = r->text, *end = r->text + at, *p;

	*line = 1;
	for (; (p = memchr(start, '\n', (size_t)(end - start))); start = p + 1)
		(*line)++;
	*col = (size_t)(end - start) + 1;
}

/* How many bytes of text the next character of a JSON string takes, and how many it stands for. */
static size_t string_step(const char *p, size_t *decoded)
{
	unsigned long c;
	char hex[5] = {0};

	*decoded = 1;
	if (*p != '\\')
		return 1;
	if (p[1] != 'u')
		return 2;
	memcpy(hex, p + 2, 4);
	c = strtoul(hex, NULL, 16);
	if (c >= 0xd800 && c < 0xe000) { /* one character written as two escapes */
		*decoded = 4;
		return 12;
	}
	*decoded = c < 0x80 ? 1 : c < 0x800 ? 2 : 3;
	return 6;
}

/* Byte `want` of the decoded string whose opening quote is at offset `at`. */
static size_t inside_string(const struct report *r, size_t at, size_t want)
{
	size_t seen = 0, decoded;

	for (at++; seen < want && at < r->len && r->text[at] != '"'; seen += decoded)
		at += string_step(r->text + at, &decoded);
	return at < r->len ? at : r->len;
}

static size_t place_of(const struct report *r, const struct fault *f)
{
	int line, col;
	size_t at;

	if (!f->at && !r->doc)
		return 0;
	if (f->at) {
		at = (size_t)(f->at - r->text);
	} else {
		json_doc_locate(r->doc, f->pointer ? f->pointer : "", f->at_key, &line, &col);
		at = offset_of_line(r, line, col);
	}
	return f->byte && r->text[at] == '"' ? inside_string(r, at, f->byte) : at;
}

/* ---- text ---- */

/* At most max bytes of s, cut at a character, with control characters (C1 too) as \xNN. */
static void put_clean(struct buf *b, const char *s, size_t max)
{
	size_t n = strlen(s), shown = n;

	if (n > max)
		for (shown = max; shown > 0 && ((unsigned char)s[shown] & 0xc0) == 0x80;)
			shown--;
	for (size_t i = 0; i < shown; i++) {
		unsigned char c = (unsigned char)s[i];
		bool c1 = c == 0xc2 && (unsigned char)s[i + 1] < 0xa0;

		if (c1)
			c = (unsigned char)s[++i];
		if (c < 0x20 || c == 0x7f || c1)
			buf_printf(b, "\\x%02x", c);
		else
			buf_put(b, &s[i], 1);
	}
	if (shown < n)
		buf_put(b, "...", 3);
}

static void put_got(struct buf *b, const json_t *got)
{
	auto_free char *text = NULL;

	if (json_is_object(got) || json_is_array(got)) {
		buf_printf(b, "%s", json_is_object(got) ? "an object" : "an array");
		return;
	}
	text = json_dumps(got, JSON_ENCODE_ANY);
	put_clean(b, text ? text : "?", GOT_SHOWN);
}

static char *compose_line(
	const struct report *r, const struct fault *f, size_t at, const char *message)
{
	auto_buf struct buf b = BUF_INIT(strlen(r->name) + 4 * LINE_ROOM);
	const char *pointer = f->pointer ? f->pointer : "";
	size_t line, col;

	line_of_offset(r, at, &line, &col);
	buf_printf(&b, "%s:%zu:%zu: SV%03d ", r->name, line, col, f->code);
	if (*pointer) {
		put_clean(&b, pointer, POINTER_SHOWN);
		buf_put(&b, ": ", 2);
	}
	put_clean(&b, message, MESSAGE_MAX);
	if (f->expected)
		buf_printf(&b, "; expected %s", f->expected);
	if (f->got) {
		buf_printf(&b, "%s", f->expected ? ", got " : "; got ");
		put_got(&b, f->got);
	}
	if (f->hint)
		buf_printf(&b, "; %s", f->hint);
	return steal_ptr(&b.data);
}

void report_add(struct report *r, const struct fault *f, const char *fmt, ...)
{
	char message[MESSAGE_MAX * 2];
	va_list ap;
	size_t at;

	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	if (r->source) {
		resolved_fault(r->source, *f, message);
		return;
	}
	r->total++;
	if (r->n == r->max)
		return;
	at = place_of(r, f);
	mem_grow(&r->v, &r->cap, r->n);
	r->v[r->n++] = (struct report_line){at, compose_line(r, f, at, message)};
}

static int by_place(const void *a, const void *b)
{
	const struct report_line *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return strcmp(x->text, y->text);
}

void report_finish(struct report *r, struct complaints *c)
{
	if (r->n)
		qsort(r->v, r->n, sizeof(*r->v), by_place);
	if (!c->text.max)
		c->text = BUF_INIT(8 << 20);
	for (size_t i = 0; i < r->n; i++)
		buf_printf(&c->text, "%s\n", r->v[i].text);
	if (r->total > r->n)
		buf_printf(
			&c->text, "%s: %zu more errors are not shown\n", r->name, r->total - r->n);
	c->count += r->total;
}
