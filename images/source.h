/* Bytes of a blob in order, from wherever they come: a file, a pipe, a download. */
#ifndef IMAGES_SOURCE_H
#define IMAGES_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct source {
	/* 1 and some bytes (n > 0), valid until the next call; 0 at the end; -1. */
	int (*next)(struct source *s, const void **data, size_t *n, struct err *e);
};

static inline int source_next(struct source *s, const void **data, size_t *n, struct err *e)
{
	return s->next(s, data, n, e);
}

/* From fd, at most max bytes, by read(): pipes do. name: for errors. The buffer is inside. */
struct source_fd {
	struct source source;
	int fd;
	uint64_t left;
	const char *name;
	unsigned char *buf;
};
void source_fd_init(struct source_fd *s, int fd, uint64_t max, const char *name);
void source_fd_fini(struct source_fd *s);

#endif
