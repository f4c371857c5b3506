/* Buffers of bodies: taken from the system when first needed, kept for the next piece of about that
 * size, and together never more than a limit. Not thread-safe. */
#ifndef IMAGES_DOWNLOAD_BUFFERS_H
#define IMAGES_DOWNLOAD_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>

struct buffer {
	unsigned char *data; /* NULL: none */
	size_t size;         /* what it counts, at least what was asked for */
};

struct buffers {
	size_t limit, used, kept; /* bytes; used + kept <= limit */
	struct buffer *idle;
	size_t nidle, cap;
};

void buffers_init(struct buffers *b, size_t limit);
void buffers_fini(struct buffers *b);

/* What a buffer of n bytes counts. */
size_t buffers_round(size_t n);
/* n bytes that fit under the limit; data NULL when the system has none. */
struct buffer buffers_take(struct buffers *b, size_t n);
/* Give back; *own is empty then. */
void buffers_give(struct buffers *b, struct buffer *own);

#endif
