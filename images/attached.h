/* What is attached to a manifest: signatures, SBOMs, provenance. They are manifests themselves,
 * which name what they belong to (`subject`, OCI 1.1), or are found by a tag made of its digest
 * (cosign's sha256-HEX.sig). They are never entries of an image index.
 *
 * ROOT/attached/HEX, by the digest of what they belong to, is an OCI image index of them: what a
 * registry's referrers API answers, and beside these, with the annotation
 * org.opencontainers.image.ref.name, those with a tag. They live as long as their subject
 * (reach.h). Whoever attaches holds the pool (pool_hold()) while blobs have no entry yet. Source:
 * image-spec manifest.md "subject", distribution-spec "Listing Referrers". */
#ifndef IMAGES_ATTACHED_H
#define IMAGES_ATTACHED_H

#include "images/descriptor.h"
#include "images/store.h"

#define EMPTY_TYPE "application/vnd.oci.empty.v1+json"
#define REF_NAME "org.opencontainers.image.ref.name"

enum {
	ATTACHED_MAX = 128, /* to one manifest */
	ATTACHED_DOCUMENT_MAX = 4 << 20,
	ATTACHED_BLOB_MAX = 256 << 20, /* an SBOM may be large */
};

/* The descriptors ({mediaType, digest, size, artifactType, annotations}), sorted: an array of the
 * caller's; empty when there are none. CORRUPT. */
json_t *attached_list(struct store *s, const struct digest *subject, struct err *e) must_check;

/* An artifact to attach: one blob, or several, in a manifest with the subject. */
struct attachment {
	const char *type;    /* artifactType, and of the blob */
	json_t *annotations; /* of the manifest and its descriptor; may be NULL; borrowed */
	const void *data;
	size_t n;
	const char *title; /* of the blob; may be NULL */
};
/* Write blob and manifest, and list it. What is listed already with the same artifactType and the
 * same value of the annotation `once` (NULL: any) is replaced. */
int attached_put(struct store *s, const struct digest *subject, const struct attachment *a,
	const char *once, struct err *e) must_check;
/* List a manifest that is in blobs/; descriptor as above. One with the same digest, or the same
 * REF_NAME, is replaced. The only REF_NAME that is kept is cosign's tag of the subject: a push goes
 * to the tags that are listed, and what else a stranger's descriptor names is not the subject's.
 * CORRUPT: the list would be longer than ATTACHED_DOCUMENT_MAX. */
int attached_add(struct store *s, const struct digest *subject, const json_t *descriptor,
	struct err *e) must_check;
/* The same for an array of them, which are written as one: all or none. */
int attached_add_all(struct store *s, const struct digest *subject, const json_t *descriptors,
	struct err *e) must_check;
/* fn for each blob of what is listed, as far as it is here: manifest, config, layers. What cannot
 * be read is left out. */
int attached_blobs(struct store *s, const struct digest *subject,
	int (*fn)(void *ctx, const struct digest *d, struct err *e), void *ctx,
	struct err *e) must_check;
/* The list alone. Fine when there is none. */
int attached_remove(struct store *s, const struct digest *subject, struct err *e) must_check;

/* The first with that artifactType (and, unless NULL, annotation = value): 1 with its only blob
 * appended to b, 0 when there is none, -1. */
int attached_blob(struct store *s, const struct digest *subject, const char *type,
	const char *annotation, const char *value, struct buf *b, struct err *e) must_check;

/* The tag that something about a manifest has: "sha256-HEX" and a suffix. */
enum { ATTACHED_TAG = 7 + DIGEST_HEX + 8 };
char *attached_tag(const struct digest *d, const char *suffix, char out[ATTACHED_TAG]);

#endif
