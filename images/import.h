/* svrun image import: a root file system in a tar becomes an image of one layer, with an index of
 * our own. The tar is plain, or compressed with gzip, zstd, xz or bzip2, and is read once, so that
 * a pipe will do. */
#ifndef IMAGES_IMPORT_H
#define IMAGES_IMPORT_H

#include "images/image.h"
#include "images/pool.h"

struct progress;

struct image_import {
	const char *name; /* of the tar, for errors */
	enum codec codec; /* of the layer */
	int level;        /* 0: the codec's usual one */
	json_t *config;   /* {architecture, os, config: {...}} */
	struct progress *progress;
};

/* The image's time is that of the newest file: the same tar gives the same image. The pool is open
 * for writing and is committed; the metadata image is made; the name is the caller's to give,
 * before the pool is closed. Errors: CORRUPT (no tar, or one that unpack_layer() refuses; one that
 * unpacks to more than unpack_limit() of its size), SYSTEM. */
int image_import(struct store *s, struct pool *p, int fd, const struct image_import *how,
	struct digest *manifest, uint64_t *size, struct err *e) must_check;

#endif
