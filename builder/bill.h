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
	const char *hash_kind, *hash;      /* "sha256"/"sha512" and hex; NULL */
	const char *purl;                  /* NULL: none */
	const char *path;                  /* wheels: folder of its metadata; npm: its folder */
	struct strings why;                /* "manifest:/apt/packages/2", or names of items */
	/* What the package managers in the image report: dpkg, pip, npm. A lock's package that a
	 * step removed is not; what a base, a step or another package brought is. */
	bool installed;
	uint32_t via;     /* of items: which one brought it, when it is in no lock; else itself */
	uint32_t *layers; /* numbers of the layers that carry its files, sorted */
	size_t nlayers;
	uint64_t files, bytes;
};

struct bill_layer {
	struct digest diff_id;
	const char *id; /* of the group; "base" */
};

struct bill_place {
	const char *pointer, *at; /* "/apt/packages/2", "manifest.json:12:7" */
};

struct bill {
	struct arena arena;
	const char *name, *version, *platform, *created;
	struct digest manifest_doc, lock; /* canonical digests of the documents it was built from */
	const char *document, *lock_text; /* the resolved manifest and the lock, as JSON text */
	struct bill_layer *layers;
	size_t nlayers;
	struct bill_place *places; /* of the manifest's entries that inputs come from, sorted */
	size_t nplaces;
	struct bill_item *items; /* [0] is "made by svrun"; the first are the table of origins */
	size_t nitems, cap;
	struct bill_file { /* sorted as a walk of the tree: a folder, then what is in it */
		const char *path;
		uint32_t item;  /* of items */
		uint32_t layer; /* of layers */
	} * files;
	size_t nfiles;
};

/* Of a composed and grouped build whose layers were written: every node's layer and every layer's
 * DiffID is set. Licences and what the base image has installed are read from the tree. */
int bill_make(struct bill *b, const struct manifest *m, const struct lock *l,
	const struct composed *c, const struct groups *g, struct pool *pool,
	struct err *e) must_check;
/* Keep it for the image with this manifest digest; it goes with the image. Two apps may be built to
 * the same image: each has its own. */
int bill_save(const struct bill *b, struct store *s, const struct digest *manifest,
	struct err *e) must_check;
/* The bill of the app that ref ("big:1") is called after, or else (ref NULL, other names, a digest)
 * of the app that was built to this image first. NOT_FOUND: the image was not built here. CORRUPT:
 * damaged, or not of this image (bill_check()). */
int bill_load(struct bill *b, struct store *s, const struct digest *manifest, const char *ref,
	struct err *e) must_check;
/* The same without a look at the image. */
int bill_read(struct bill *b, struct store *s, const struct digest *manifest, const char *ref,
	struct err *e) must_check;
/* Does it fit the image: its layers, each of its files, the digest of its manifest? What brought a
 * file cannot be compared with anything. CORRUPT says what does not. */
int bill_check(const struct bill *b, struct store *s, const struct digest *manifest,
	struct err *e) must_check;
/* Is the first of the bills that of another app than own's? 1, and it is in *b; 0; -1. */
int bill_load_first(struct bill *b, const struct bill *own, struct store *s,
	const struct digest *manifest, struct err *e) must_check;
/* Add the bills that another store keeps for it. */
int bills_merge(struct store *s, const struct digest *manifest, const void *p, size_t n,
	struct err *e) must_check;
void bill_fini(struct bill *b);

/* The bytes of a kept bill, and back (CORRUPT). */
int bill_encode(const struct bill *b, struct buf *out, struct err *e) must_check;
int bill_decode(struct bill *b, const void *p, size_t n, struct err *e) must_check;

/* The file at a path without leading slash, or NULL. */
const struct bill_file *bill_find(const struct bill *b, const char *path);
/* Where a pointer of the manifest stands, or NULL. */
const char *bill_place_of(const struct bill *b, const char *pointer);
/* "deb", "npm", ... */
const char *bill_kind(enum origin_kind k);

/* ---- bill-packages.c: bill_make()'s other half ---- */

/* Which of the items are installed, what else is, licences, and who needs whom (npm). */
int bill_packages(struct bill *b, const struct manifest_apt *apt, const struct composed *c,
	struct pool *pool, struct err *e) must_check;

#endif
