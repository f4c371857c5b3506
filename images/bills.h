/* What the builder knows of an image beside the image: ROOT/bills/HEX, by manifest digest. It goes
 * with the image. The format is the builder's (builder/bill.h). */
#ifndef IMAGES_BILLS_H
#define IMAGES_BILLS_H

#include "images/store.h"

int bills_put(struct store *s, const struct digest *manifest, const void *p, size_t n,
	struct err *e) must_check;
/* Appended to b. 1, 0 when there is none, -1. */
int bills_get(
	struct store *s, const struct digest *manifest, struct buf *b, struct err *e) must_check;
/* Fine when there is none. */
int bills_remove(struct store *s, const struct digest *manifest, struct err *e) must_check;

#endif
