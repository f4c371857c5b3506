/* What is in an image, for scanners and lawyers: SPDX 2.3 and CycloneDX 1.5 or 1.6 as JSON, from
 * the bill alone. The same bill gives the same bytes. Packages are those that dpkg, pip and npm
 * inside the image report, and nothing else; git commits, archives, models and the base image
 * beside them. Source: SPDX 2.3 clauses 6 to 11, CycloneDX 1.5 and 1.6 JSON references (of what is
 * used here they differ in the version alone). */
#ifndef BUILDER_SBOM_H
#define BUILDER_SBOM_H

#include "builder/bill.h"

enum sbom_format { SBOM_SPDX, SBOM_CYCLONEDX, SBOM_CYCLONEDX_1_6 };

/* "spdx", "spdx-2.3", "cyclonedx", "cyclonedx-1.5" (the same), "cyclonedx-1.6". USAGE. */
int sbom_format_parse(const char *text, enum sbom_format *f, struct err *e) must_check;
/* Of one that is attached: which version of CycloneDX, as the manifest calls it. */
#define SBOM_ANNOTATION "run.svrun.sbom"
/* "application/spdx+json", "application/vnd.cyclonedx+json" */
const char *sbom_media_type(enum sbom_format f);

/* Checksums of the files, for `files` below: in the order of bill->files; the ones that are no
 * files (folders, links) are empty. */
struct sbom_sums {
	char sha1[41], sha256[65];
};

/* manifest: of the image. sums NULL: packages only; else all files with the layer that has each
 * (SPDX wants SHA-1 of every file). The document, to json_decref(). */
json_t *sbom_spdx(
	const struct bill *b, const struct digest *manifest, const struct sbom_sums *sums);
json_t *sbom_cyclonedx(const char *version, const struct bill *b, const struct digest *manifest,
	const struct sbom_sums *sums);
/* One of them, as text. */
void sbom_text(enum sbom_format f, const struct bill *b, const struct digest *manifest,
	const struct sbom_sums *sums, struct buf *out);

/* ---- what the two formats share ---- */

enum { SBOM_TEXT_MAX = 1 << 30, SBOM_REF = 320 };

/* Is an item named in an SBOM? */
bool sbom_has(const struct bill_item *it);
/* A name for an item that no other one has: letters, digits, dots and dashes. Returns out. */
char *sbom_ref(const struct bill *b, const struct bill_item *it, char out[SBOM_REF]);
/* "NAME:VERSION" */
char *sbom_image_name(const struct bill *b);

#endif
