/* Checksums of an image's files, which SPDX wants in SHA-1, too. */
#ifndef BUILDER_SBOM_FILES_H
#define BUILDER_SBOM_FILES_H

#include "builder/sbom.h"

/* Read all files of the image from the pool, on all cores: *sums, in the order of b->files, to
 * free(). Errors: CORRUPT (the pool, or a bill that is not of this image), SYSTEM. */
int sbom_sum_files(const struct bill *b, struct store *s, const struct digest *manifest,
	struct sbom_sums **sums, struct err *e) must_check;

#endif
