/* svrun image export: all files of an image, as its layers add up to, in one tar. Data come from
 * the pool and are hashed as they pass. The same image gives the same bytes. */
#ifndef IMAGES_EXPORT_H
#define IMAGES_EXPORT_H

#include "images/image.h"
#include "images/outlet.h"
#include "images/pool.h"

struct progress;

/* All data of a file's node (a.size bytes) into out, checked. */
int export_read(struct pool *p, const struct node *n, void *out, struct err *e) must_check;

/* All of a small one in b, with a zero byte behind it. 1; 0: n is NULL, no file, or longer than
 * max; -1. Hard links are followed. */
int export_read_small(
	struct pool *p, const struct node *n, size_t max, struct buf *b, struct err *e) must_check;

/* Errors: CORRUPT (a chunk that is not in the pool, or wrong there: the file's name is said, and
 * what repairs it), SYSTEM. */
int image_export(struct image *im, struct store *s, struct outlet *o, struct progress *p,
	struct err *e) must_check;

#endif
