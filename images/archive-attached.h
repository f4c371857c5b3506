/* What is attached to an image (attached.h) in an OCI layout: signatures, SBOMs, provenance, model
 * artifacts.
 *
 * Their manifests and blobs lie beside the image's. An OCI index lists them, as a registry's
 * referrers API would; it is a blob, too, named by the annotation run.svrun.attached of the
 * descriptor of what they belong to. It has no entry of its own in index.json: skopeo and podman
 * take an archive without a name only when it has one entry. With `referrers` it gets that after
 * all, under the tag sha256-HEX, and cosign's manifest under sha256-HEX.sig, for tools that look
 * there; both are read. */
#ifndef IMAGES_ARCHIVE_ATTACHED_H
#define IMAGES_ARCHIVE_ATTACHED_H

#include "images/attached.h"
#include "images/intake.h"

#define ATTACHED_ANNOTATION "run.svrun.attached"

/* ---- saving ---- */

struct archive_attached {
	struct arena arena;
	struct archive_attached_blob {
		struct digest digest;
		uint64_t size;
		const char *text; /* NULL: in the store */
	} * v;
	size_t n, cap;
	size_t left_out; /* things that are listed, and not here whole */
};

/* What is attached to a manifest of the store, and to the indexes that are proofs for it. 1: *index
 * is the digest of the list; 0: nothing is; -1. */
int archive_attached_add(struct archive_attached *a, struct store *s, const struct digest *subject,
	struct digest *index, struct err *e) must_check;
void archive_attached_fini(struct archive_attached *a);
/* How many things are attached to it. -1: an error. */
int archive_attached_count(struct store *s, const struct digest *subject, struct err *e) must_check;
/* The entries of index.json with tags, appended to list: the list's, and those it has with a tag.
 */
int archive_attached_tags(const struct archive_attached *a, const struct digest *subject,
	const struct digest *index, json_t *list, struct err *e) must_check;

/* ---- loading ---- */

/* Is an entry of index.json something attached, not an image? */
bool archive_is_attached(const json_t *descriptor);
/* Have the blobs of what is attached to the manifest, which an entry of index.json (list)
 * described, and list them in the store. What the store lists already under the same tag stays.
 * CORRUPT: a list that names what is not there, or what belongs to something else. */
int archive_attached_load(struct intake *in, const json_t *list, const json_t *descriptor,
	const struct digest *manifest, struct err *e) must_check;
/* A blob as a descriptor says, out of what came in (oci-archive.c). */
int oci_archive_blob(struct intake *in, const struct descriptor *d, struct intake_file *f,
	struct err *e) must_check;

#endif
