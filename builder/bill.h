/* The bill of an image: which input brought which file, in which layer. Made by the build, kept in
 * the store by the image's manifest digest (ROOT/bills/HEX), and the one source of SBOM, provenance
 * and `svrun image why`. Deterministic. */
#ifndef BUILDER_BILL_H
#define BUILDER_BILL_H

#include "builder/compose.h"
#include "builder/group.h"

struct bill_item {
	enum origin_kind kind;
	const char *name, *version, *arch; /* arch: debs */
	const char *source;                /* debs: the source package; sources: address */
	const char *url;                   /* as in the lock */
	const char *license;               /* SPDX expression, when known; NULL */
	const char *hash_kind, *hash;      /* "sha256"/"sha512" and hex */
	const char *purl;                  /* NULL: none */
	struct strings why;
	struct digest *layers; /* DiffIDs of the layers that carry its files */
	size_t nlayers;
	uint64_t files, bytes;
};

struct bill {
	struct arena arena;
	const char *name, *version, *platform, *created;
	struct digest manifest_doc, lock; /* canonical digests of the documents it was built from */
	const char *document, *lock_text; /* the resolved manifest and the lock, as JSON text */
	struct bill_item *items;
	size_t nitems;
	struct bill_file { /* sorted by path */
		const char *path;
		uint32_t item;  /* of items; 0 is "made by svrun" */
		uint32_t layer; /* of the image's layers */
	} * files;
	size_t nfiles;
};

/* Of a composed and grouped build whose layers were written: every node's layer and every layer's
 * DiffID is set. Licences and what the base image has installed are read from the tree. */
int bill_make(struct bill *b, const struct manifest *m, const struct lock *l,
	const struct composed *c, const struct groups *g, struct pool *pool,
	struct err *e) must_check;
/* Keep it for the image with this manifest digest: ROOT/bills/HEX, which goes with the image. */
int bill_save(const struct bill *b, struct store *s, const struct digest *manifest,
	struct err *e) must_check;
/* NOT_FOUND: the image was not built here (and none is attached to it). */
int bill_load(
	struct bill *b, struct store *s, const struct digest *manifest, struct err *e) must_check;
void bill_fini(struct bill *b);

#endif
