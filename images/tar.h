/* Tar members of a tree's nodes: PAX, deterministic. A plain ustar header, and before it an
 * extended header
 * ('x') only for what ustar cannot say: a name or link over 100 bytes or not ASCII, big numbers,
 * times before 1970, extended attributes, padding. Source: POSIX pax(1); formats.md 3.3. */
#ifndef IMAGES_TAR_H
#define IMAGES_TAR_H

#include "images/tree.h"

enum {
	TAR_BLOCK = 512,
	TAR_END = 2 * TAR_BLOCK, /* zero bytes that end a tar */
	TAR_ALIGN = 4096,        /* where data begin in aligned layers */
	TAR_HEADER_MAX =
		(1 << 20) + TAR_ALIGN, /* of one member; TREE_XATTRS_BYTES is what counts */
};

/* Does n have a member? All nodes but a root whose attributes are the ones a root has without one.
 */
bool tar_has_member(const struct node *n);

/* Append the header of n, which begins at byte `at` of the tar (a multiple of TAR_BLOCK). With
 * align, the data after it begin at a multiple of TAR_ALIGN. Errors: UNSUPPORTED (an extended
 * attribute's name that PAX cannot hold), CORRUPT (b->max). */
int tar_header(
	struct buf *b, const struct node *n, uint64_t at, bool align, struct err *e) must_check;

/* Zero bytes that follow the data of n: 0 to 511. */
size_t tar_padding(const struct node *n);

#endif
