/* Where an image comes from, as SLSA wants it told: the resolved manifest, every entry of the lock
 * with its digest, and who built it. From the bill alone; the same bill gives the same bytes.
 * Source: in-toto Statement v1, SLSA provenance v1. */
#ifndef BUILDER_PROVENANCE_H
#define BUILDER_PROVENANCE_H

#include "builder/bill.h"

#define PROVENANCE_PREDICATE "https://slsa.dev/provenance/v1"

enum { PROVENANCE_MAX = 64 << 20 };

/* The statement's JSON text into b. CORRUPT: the bill's documents. */
int provenance_text(const struct bill *b, const struct digest *manifest, struct buf *out,
	struct err *e) must_check;

/* What a manifest wants attached to its image (build.sbom, build.provenance): in the store, where
 * push takes it along. Of the app that was built to this image first. The pool is open. */
int provenance_attach(const struct bill *b, const struct manifest_build *how, struct store *s,
	const struct digest *manifest, struct err *e) must_check;

#endif
