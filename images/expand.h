/* The bytes of a file or pipe, unpacked if they are compressed: gzip and zstd as in layers
 * (decompress.h), xz and bzip2 through libarchive. */
#ifndef IMAGES_EXPAND_H
#define IMAGES_EXPAND_H

#include "images/source.h"

struct progress;
struct expand;

/* Looks at the first bytes. Fails later, with CORRUPT, when more than unpack_limit() of what was
 * read comes out. name is for errors and must stay. Progress counts bytes read. */
struct expand *expand_new(int fd, const char *name, struct progress *p, struct err *e) must_check;
void expand_free(struct expand *x);
struct source *expand_source(struct expand *x);

#endif
