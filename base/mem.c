#include "base/mem.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void *or_die(void *p)
{
	if (!p) {
		fputs("svrun: out of memory\n", stderr);
		abort();
	}
	return p;
}

void *mem_array(size_t n, size_t size)
{
	return or_die(calloc(n ? n : 1, size ? size : 1));
}

void *mem_alloc(size_t n)
{
	return mem_array(1, n);
}

void *mem_dup(const void *p, size_t n)
{
	void *q = or_die(malloc(n ? n : 1));

	return n ? memcpy(q, p, n) : q;
}

char *mem_strdup(const char *s)
{
	return mem_dup(s, strlen(s) + 1);
}

char *mem_printf(const char *fmt, ...)
{
	char *s;
	int n;
	va_list ap;

	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	return or_die(n < 0 ? NULL : s);
}

void mem_free_ref(void *p)
{
	void *q;

	memcpy(&q, p, sizeof(q));
	free(q);
}

void mem_grow_raw(void *pv, size_t *cap, size_t need, size_t size)
{
	void *v;

	if (need <= *cap)
		return;
	assert(need < SIZE_MAX / 2 / size);
	*cap = need < 8 ? 8 : need * 2;
	memcpy(&v, pv, sizeof(v));
	v = or_die(realloc(v, *cap * size));
	memcpy(pv, &v, sizeof(v));
}

struct arena_block {
	struct arena_block *prev;
	size_t used, size;
	_Alignas(16) unsigned char data[];
};

enum { ARENA_BLOCK = 64 * 1024 };

void arena_fini(struct arena *a)
{
	while (a->last) {
		struct arena_block *prev = a->last->prev;

		free(a->last);
		a->last = prev;
	}
}

/* What is given out is cleared, not the block: most of a last block is never touched. */
void *arena_alloc(struct arena *a, size_t n)
{
	struct arena_block *b = a->last;
	void *p;

	assert(n < SIZE_MAX / 2);
	n = (n + 15) & ~(size_t)15;
	if (!b || b->size - b->used < n) {
		size_t size = n > ARENA_BLOCK / 4 ? n : ARENA_BLOCK;

		b = or_die(malloc(sizeof(*b) + size));
		/* Behind one of its own, keep filling the current block. */
		struct arena_block **at = a->last && size == n ? &a->last->prev : &a->last;

		*b = (struct arena_block){.prev = *at, .size = size};
		*at = b;
	}
	p = b->data + b->used;
	b->used += n;
	return memset(p, 0, n);
}

void *arena_dup(struct arena *a, const void *p, size_t n)
{
	void *q = arena_alloc(a, n);

	return n ? memcpy(q, p, n) : q;
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
	return memcpy(arena_alloc(a, n + 1), s, n);
}

char *arena_strdup(struct arena *a, const char *s)
{
	return arena_strndup(a, s, strlen(s));
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
	auto_free char *s = NULL;
	int n;
	va_list ap;

	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	or_die(n < 0 ? NULL : s);
	return arena_strndup(a, s, (size_t)n);
}

void buf_fini(struct buf *b)
{
	free(b->data);
	b->data = NULL;
	b->len = b->cap = 0;
}

int buf_reserve(struct buf *b, size_t n, struct err *e)
{
	if (n > b->max || b->len > b->max - n)
		return err_set(e, ERR_CORRUPT, "longer than the limit of %zu bytes", b->max);
	if (b->len + n + 1 > b->cap) {
		size_t cap = b->cap * 2 > b->len + n + 1 ? b->cap * 2 : b->len + n + 64;

		b->data = or_die(realloc(b->data, cap));
		b->cap = cap;
	}
	b->data[b->len] = '\0';
	return 0;
}

int buf_add(struct buf *b, const void *p, size_t n, struct err *e)
{
	if (buf_reserve(b, n, e) < 0)
		return -1;
	if (n)
		memcpy(b->data + b->len, p, n);
	b->len += n;
	b->data[b->len] = '\0';
	return 0;
}

void buf_put(struct buf *b, const void *p, size_t n)
{
	int rc = buf_add(b, p, n, NULL);

	assert(rc == 0);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	int n;
	va_list ap, again;

	va_start(ap, fmt);
	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, ap);
	assert(n >= 0 && buf_reserve(b, (size_t)n, NULL) == 0);
	vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
	b->len += (size_t)n;
	va_end(again);
	va_end(ap);
}
