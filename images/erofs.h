/* A metadata-only EROFS image of a tree: file data are 4 KiB blocks of one extra device, the pool's
 * data file. Source: formats.md 6; Linux fs/erofs/erofs_fs.h. */
#ifndef IMAGES_EROFS_H
#define IMAGES_EROFS_H

#include "images/tree.h"

/* Write the image to fd (empty, seekable). The tree is sorted and every chunk has its block.
 * Memory: the whole image once (about 100 bytes an object). uuid and times derive from the tree
 * alone, so the output is deterministic. Errors: UNSUPPORTED (a block beyond 2^32), SYSTEM. */
int erofs_write(struct tree *t, uint64_t pool_blocks, int fd, struct err *e) must_check;

#endif
