/* The bytes go through four streams: as they are, without white space (base64), hexadecimal digits
 * alone, and the digits of dumps. Each looks for its own spellings, all of them in one pass: the
 * hash of the last few bytes rolls on, and leads to those that begin like that. */
#include "builder/secret-scan.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

enum { HEAD_MAX = 16, SLOT_BITS = 12, LINE_MIN = 16, PIECE = 64 << 10, TOKEN_MAX = 17 };

/* One spelling of one secret. */
struct form {
	const char *id;
	unsigned char *p;
	size_t n;
	uint32_t hash; /* of its head */
	size_t next;   /* of the same slot: its index and 1 */
};

struct stream {
	struct form *v;
	size_t n, cap, longest;
	size_t head;           /* bytes that are hashed: all forms have them */
	uint32_t out;          /* what the first of them counts in the hash */
	size_t *slots;         /* by hash: a form's index and 1 */
	unsigned char *window; /* what may be a form's beginning, then the new bytes */
	size_t kept;
};

/* Where in a line of a dump we are. */
struct dump {
	char token[TOKEN_MAX + 1];
	size_t n, tokens, digits;
	bool skip; /* the rest of the line */
};

struct secret_scan {
	struct stream plain, base64, hex, dump;
	struct dump line;
	unsigned char *piece;
	bool zero; /* the hex filter has one that waits */
};

/* ---- spellings ---- */

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/* Takes p, which has n bytes that count of `size`. */
static void add_form(struct stream *t, const char *id, unsigned char *p, size_t n, size_t size)
{
	if (n < BUILD_SECRET_MIN) {
		explicit_bzero(p, size);
		free(p);
		return;
	}
	mem_grow(&t->v, &t->cap, t->n);
	t->v[t->n++] = (struct form){.id = id, .p = p, .n = n};
	t->longest = n > t->longest ? n : t->longest;
}

static void add_bytes(struct stream *t, const char *id, const char *p, size_t n)
{
	add_form(t, id, mem_dup(p, n), n, n);
}

/* The base64 of the value when `before` bytes (0 to 2) of something else stand before it in its
 * group of three, without the digits that those, or what follows, have a part in. */
static void add_base64(
	struct stream *t, const struct build_secret *s, unsigned before, const char last[2])
{
	size_t bits = 8 * (before + s->n), from = (8 * before + 5) / 6, n = 0, size = 2 * s->n + 4;
	unsigned char *out = mem_alloc(size);

	for (size_t k = from; 6 * (k + 1) <= bits; k++) {
		unsigned v = 0;

		for (size_t b = 6 * k; b < 6 * k + 6; b++) {
			size_t byte = b / 8 - before;

			v = v << 1 | ((unsigned char)s->value[byte] >> (7 - b % 8) & 1);
		}
		out[n++] = (unsigned char)(v < 62 ? digits[v] : last[v - 62]);
	}
	add_form(t, s->id, out, n, size);
}

static void add_hex(struct stream *t, const struct build_secret *s)
{
	static const char hex[] = "0123456789abcdef";
	unsigned char *out = mem_alloc(2 * s->n);

	for (size_t i = 0; i < s->n; i++) {
		unsigned char c = (unsigned char)s->value[i];

		out[2 * i] = (unsigned char)hex[c >> 4];
		out[2 * i + 1] = (unsigned char)hex[c & 15];
	}
	add_form(t, s->id, out, 2 * s->n, 2 * s->n);
}

static void add_percent(struct stream *t, const struct build_secret *s, const char *hex)
{
	unsigned char *out = mem_alloc(3 * s->n);
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
	add_form(t, s->id, out, n, 3 * s->n);
}

/* As a string of JSON has it, and most languages: "\n". */
static void add_escaped(struct stream *t, const struct build_secret *s)
{
	static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
	size_t size = 6 * s->n + 1, n = 0;
	unsigned char *out = mem_alloc(size);

	for (size_t i = 0; i < s->n; i++) {
		unsigned char c = (unsigned char)s->value[i];
		const char *short_ = c ? strchr(from, c) : NULL;

		if (short_) {
			out[n++] = '\\';
			out[n++] = (unsigned char)to[short_ - from];
		} else if (c < ' ') {
			n += (size_t)snprintf((char *)out + n, size - n, "\\u%04x", c);
		} else {
			out[n++] = c;
		}
	}
	add_form(t, s->id, out, n, size);
}

static void add_lines(struct stream *t, const struct build_secret *s)
{
	const char *end = s->value + s->n, *line = s->value, *next;

	for (; line < end; line = next + 1) {
		size_t n;

		next = memchr(line, '\n', (size_t)(end - line));
		next = next ? next : end;
		n = (size_t)(next - line);
		if (n && line[n - 1] == '\r')
			n--;
		if (n >= LINE_MIN && memcmp(line, "-----", 5) != 0)
			add_bytes(t, s->id, line, n);
	}
}

static void add_secret(struct secret_scan *x, const struct build_secret *s)
{
	static const char *const last[] = {"+/", "-_"};

	add_bytes(&x->plain, s->id, s->value, s->n);
	add_lines(&x->plain, s);
	add_escaped(&x->plain, s);
	add_percent(&x->plain, s, "0123456789abcdef");
	add_percent(&x->plain, s, "0123456789ABCDEF");
	for (unsigned i = 0; i < 6; i++)
		add_base64(&x->base64, s, i / 2, last[i % 2]);
	add_hex(&x->hex, s);
	add_hex(&x->dump, s);
}

/* ---- one stream ---- */

enum { FACTOR = 0x01000193 };

static uint32_t roll(uint32_t hash, unsigned char c)
{
	return hash * FACTOR + c + 1;
}

static size_t slot_of(uint32_t hash)
{
	return hash * UINT32_C(0x9e3779b1) >> (32 - SLOT_BITS);
}

static bool is_known(const struct stream *t, size_t first, const struct form *f)
{
	for (size_t i = first; i; i = t->v[i - 1].next)
		if (t->v[i - 1].n == f->n && memcmp(t->v[i - 1].p, f->p, f->n) == 0)
			return true;
	return false;
}

/* All forms are there. */
static void stream_ready(struct stream *t)
{
	t->head = HEAD_MAX;
	for (size_t i = 0; i < t->n; i++)
		t->head = t->v[i].n < t->head ? t->v[i].n : t->head;
	t->out = 1;
	for (size_t i = 1; i < t->head; i++)
		t->out *= FACTOR;
	t->slots = mem_array((size_t)1 << SLOT_BITS, sizeof(*t->slots));
	for (size_t i = 0; i < t->n; i++) {
		struct form *f = &t->v[i];
		size_t *slot;

		for (size_t k = 0; k < t->head; k++)
			f->hash = roll(f->hash, f->p[k]);
		slot = &t->slots[slot_of(f->hash)];
		if (is_known(t, *slot, f))
			continue;
		f->next = *slot;
		*slot = i + 1;
	}
	t->window = mem_alloc(t->longest + PIECE);
}

static void stream_fini(struct stream *t)
{
	for (size_t i = 0; i < t->n; i++) {
		explicit_bzero(t->v[i].p, t->v[i].n);
		free(t->v[i].p);
	}
	if (t->window)
		explicit_bzero(t->window, t->longest + PIECE);
	free(t->window);
	free(t->slots);
	free(t->v);
}

/* A form that stands at window[at]. *begun: one that does may go on behind what is there. */
static const char *form_at(
	const struct stream *t, size_t at, size_t all, uint32_t hash, bool *begun)
{
	for (size_t i = t->slots[slot_of(hash)]; i; i = t->v[i - 1].next) {
		const struct form *f = &t->v[i - 1];
		size_t n = f->n < all - at ? f->n : all - at;

		if (f->hash != hash || memcmp(f->p, t->window + at, n) != 0)
			continue;
		if (n == f->n)
			return f->id;
		*begun = true;
	}
	return NULL;
}

/* *from: the place from which to look again when there is more. */
static const char *stream_find(const struct stream *t, size_t all, size_t *from)
{
	bool begun = false;
	uint32_t hash = 0;

	*from = 0;
	if (all < t->head)
		return NULL;
	for (size_t i = 0; i < t->head; i++)
		hash = roll(hash, t->window[i]);
	for (size_t at = 0;; at++) {
		if (t->slots[slot_of(hash)]) {
			const char *id = form_at(t, at, all, hash, &begun);

			if (id)
				return id;
		}
		*from += !begun;
		if (at + t->head == all)
			return NULL;
		hash = roll(hash - t->out * (t->window[at] + 1U), t->window[at + t->head]);
	}
}

/* n is at most PIECE. */
static const char *stream_add(struct stream *t, const unsigned char *p, size_t n)
{
	size_t all = t->kept + n, from;
	const char *id;

	if (n == 0)
		return NULL;
	memcpy(t->window + t->kept, p, n);
	id = stream_find(t, all, &from);
	t->kept = id ? 0 : all - from;
	memmove(t->window, t->window + from, t->kept);
	return id;
}

/* The same when c, which may not come, were the next. */
static const char *stream_try(struct stream *t, unsigned char c)
{
	size_t from;

	t->window[t->kept] = c;
	return stream_find(t, t->kept + 1, &from);
}

/* ---- filters: each makes what its stream sees of n bytes, and says how much ---- */

static size_t no_space(const unsigned char *p, size_t n, unsigned char *out)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		out[k] = p[i];
		k += !(p[i] == ' ' || (p[i] >= '\t' && p[i] <= '\r'));
	}
	return k;
}

static int hex_digit(unsigned char c)
{
	if (c >= '0' && c <= '9')
		return c;
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c : -1;
}

/* A 0 waits for what comes: "0x" is no digit. */
static size_t only_hex(struct secret_scan *x, const unsigned char *p, size_t n, unsigned char *out)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		int c = hex_digit(p[i]);

		if (x->zero && (p[i] | 0x20) != 'x')
			out[k++] = '0';
		x->zero = c == '0';
		if (c > '0')
			out[k++] = (unsigned char)c;
	}
	return k;
}

/* The end of a word of a dump's line: "00000010:", then digits of bytes, then what they are as
 * text. */
static size_t end_token(struct dump *d, unsigned char *out)
{
	size_t n = d->n, k = 0;
	bool first = d->tokens++ == 0;

	d->n = 0;
	if (first && n && d->token[n - 1] == ':')
		n--;
	for (; k < n && hex_digit((unsigned char)d->token[k]) >= 0; k++)
		out[k] = (unsigned char)hex_digit((unsigned char)d->token[k]);
	if (k < n || (first ? n < 6 : n % 2 != 0 || n > 8 || d->digits + n > 32)) {
		d->skip = true;
		return 0;
	}
	if (first)
		return 0;
	d->digits += n;
	return n;
}

static size_t only_dump(struct dump *d, const unsigned char *p, size_t n, unsigned char *out)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		if (d->skip && p[i] != '\n') {
			const unsigned char *next = memchr(p + i, '\n', n - i);

			if (!next)
				return k;
			i = (size_t)(next - p);
		}
		if (p[i] != ' ' && p[i] != '\t' && p[i] != '\n') {
			d->token[d->n++] = (char)p[i];
			d->skip = d->n == TOKEN_MAX;
		} else if (d->n && !d->skip) {
			k += end_token(d, out + k);
		}
		if (p[i] == '\n')
			*d = (struct dump){0};
	}
	return k;
}

/* ---- all of it ---- */

struct secret_scan *secret_scan_new(const struct build_secret *v, size_t n)
{
	struct secret_scan *x = mem_alloc(sizeof(*x));

	for (size_t i = 0; i < n; i++)
		add_secret(x, &v[i]);
	stream_ready(&x->plain);
	stream_ready(&x->base64);
	stream_ready(&x->hex);
	stream_ready(&x->dump);
	x->piece = mem_alloc(PIECE + TOKEN_MAX); /* a word may have begun in the piece before */
	return x;
}

void secret_scan_free(struct secret_scan *x)
{
	if (!x)
		return;
	stream_fini(&x->plain);
	stream_fini(&x->base64);
	stream_fini(&x->hex);
	stream_fini(&x->dump);
	explicit_bzero(x->piece, PIECE + TOKEN_MAX);
	free(x->piece);
	explicit_bzero(x, sizeof(*x));
	free(x);
}

void secret_scan_begin(struct secret_scan *x)
{
	x->plain.kept = x->base64.kept = x->hex.kept = x->dump.kept = 0;
	x->line = (struct dump){0};
	x->zero = false;
}

static const char *add_piece(struct secret_scan *x, const unsigned char *p, size_t n)
{
	const char *id = stream_add(&x->plain, p, n);

	if (!id)
		id = stream_add(&x->base64, x->piece, no_space(p, n, x->piece));
	if (!id)
		id = stream_add(&x->hex, x->piece, only_hex(x, p, n, x->piece));
	if (!id && x->zero)
		id = stream_try(&x->hex, '0');
	if (!id)
		id = stream_add(&x->dump, x->piece, only_dump(&x->line, p, n, x->piece));
	return id;
}

const char *secret_scan_add(struct secret_scan *x, const void *data, size_t n)
{
	enum { STEP = PIECE - TOKEN_MAX }; /* what a filter makes of it fits, too */
	const unsigned char *p = data;
	const char *id = NULL;

	for (; !id && n > 0; p += n < STEP ? n : STEP, n -= n < STEP ? n : STEP)
		id = add_piece(x, p, n < STEP ? n : STEP);
	return id;
}
