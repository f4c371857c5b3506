/* Layer blobs that the store does not have: a pulled image's data live in the pool. */
#ifndef IMAGES_COMPLETE_H
#define IMAGES_COMPLETE_H

#include "images/config.h"
#include "images/image.h"

struct progress;

/* Have all layer blobs of an image in the store, whole and verified: those that are missing are
 * fetched from the repository that the image came from (store_name.source), or written again from
 * the pool (images with an index of their own: the same bytes, or an error that says so). source
 * may be NULL. The pool must not be open in this process. Errors: NOT_FOUND (neither way is there:
 * which layer, what was tried), NETWORK, CORRUPT. */
int image_complete(struct image *im, struct store *s, const struct config *c, const char *source,
	struct progress *p, struct err *e) must_check;

/* The same, one layer at a time, without putting anything into the store: push only passes it on.
 * Nothing is opened before it is needed. */
struct completer;
struct completer *completer_new(struct image *im, struct store *s, const struct config *c,
	const char *source, struct progress *p) __attribute__((returns_nonnull));
/* The source's host is reached as the command line says. */
void completer_reach(struct completer *x, bool plain_http, bool insecure);
void completer_free(struct completer *x);
/* w is begun here, holds exactly layer i's blob (w->fd, w->size), and is the caller's to commit or
 * abort. After an error there is nothing to do. */
int completer_layer(struct completer *x, size_t i, struct blob_writer *w, struct err *e) must_check;

#endif
