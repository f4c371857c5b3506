/* Owned pointers and growing storage. Small allocations cannot fail: they abort, because no caller
 * could do better. Sizes that come from outside must be bounded before they get here. */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/err.h"

#define auto_free __attribute__((cleanup(mem_free_ref)))

/* Zeroed memory; never NULL. mem_array() checks n * size for overflow. */
void *mem_alloc(size_t n) __attribute__((malloc, returns_nonnull));
void *mem_array(size_t n, size_t size) __attribute__((malloc, returns_nonnull));
void *mem_dup(const void *p, size_t n) __attribute__((malloc, returns_nonnull));
char *mem_strdup(const char *s) __attribute__((malloc, returns_nonnull));
char *mem_printf(const char *fmt, ...) printf_like(1, 2);
void mem_free_ref(void *p); /* p is a pointer to a pointer: for auto_free */

/* Make room for one more element, before v[n] = ...; doubles. */
void mem_grow_raw(void *pv, size_t *cap, size_t need, size_t size);
#define mem_grow(pv, cap, n) mem_grow_raw(pv, cap, (n) + 1, sizeof(**(pv)))

#define steal_ptr(pp)                                                                              \
	({                                                                                         \
		__typeof__(*(pp)) steal_p_ = *(pp);                                                \
		*(pp) = NULL;                                                                      \
		steal_p_;                                                                          \
	})

/* An arena: many small pieces that live and die together (a manifest, a tree, a plan). */
struct arena {
	struct arena_block *last;
};

void arena_fini(struct arena *a);
void *arena_alloc(struct arena *a, size_t n)
	__attribute__((returns_nonnull)); /* zeroed, 16-aligned */
void *arena_dup(struct arena *a, const void *p, size_t n) __attribute__((returns_nonnull));
char *arena_strdup(struct arena *a, const char *s) __attribute__((returns_nonnull));
char *arena_strndup(struct arena *a, const char *s, size_t n) __attribute__((returns_nonnull));
char *arena_printf(struct arena *a, const char *fmt, ...) printf_like(2, 3);

/* A list of texts, which somebody else owns. */
struct strings {
	const char **v;
	size_t n;
};

/* A byte buffer with a ceiling. buf_add() and buf_printf() fail with CORRUPT beyond max, because
 * only data from outside can grow without bound. The data is always NUL-terminated. */
struct buf {
	char *data;
	size_t len, cap, max;
};

#define BUF_INIT(max_) ((struct buf){.max = (max_)})
#define auto_buf __attribute__((cleanup(buf_fini)))
void buf_fini(struct buf *b);
int buf_add(struct buf *b, const void *p, size_t n, struct err *e) must_check;
int buf_reserve(struct buf *b, size_t n, struct err *e) must_check; /* room for n more bytes */
/* For text we make ourselves: aborts beyond max. */
void buf_put(struct buf *b, const void *p, size_t n);
void buf_printf(struct buf *b, const char *fmt, ...) printf_like(2, 3);

#endif
