/* A content descriptor (image-spec descriptor.md): what a blob is, without the blob. */
#ifndef IMAGES_DESCRIPTOR_H
#define IMAGES_DESCRIPTOR_H

#include <jansson.h>
#include <stdint.h>

#include "base/err.h"
#include "images/digest.h"

struct descriptor {
	struct digest digest;
	uint64_t size;
	const char *media_type;    /* borrowed from the document */
	const json_t *annotations; /* borrowed; NULL when there are none */
};

/* Read {mediaType, digest, size, annotations}. CORRUPT. */
int descriptor_read(struct descriptor *d, const json_t *o, struct err *e) must_check;

#endif
