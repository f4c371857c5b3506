/* svrun image save: images as an OCI layout (a tar or a folder), or as what `docker load` has
 * always read. What several images share is in it once. The same images give the same bytes. */
#ifndef IMAGES_ARCHIVE_SAVE_H
#define IMAGES_ARCHIVE_SAVE_H

#include "images/image.h"
#include "images/outlet.h"

struct progress;

struct archive_saved {
	struct image *im; /* all its blobs are in the store: complete.h */
	char *name;       /* canonical, or NULL: none */
	bool referrers;   /* what is attached gets tags of its own in index.json */
};

/* oci-layout, index.json, manifests, configs, layers, and what is attached (archive-attached.h):
 * readers of a pipe know first what comes.
 * Blobs are hashed as they pass: CORRUPT, SYSTEM. */
int oci_archive_save(struct store *s, const struct archive_saved *v, size_t n, struct outlet *o,
	struct progress *p, struct err *e) must_check;
/* manifest.json, configs, layers as plain tars named by their DiffIDs, which are checked. There are
 * no manifests in such an archive: an index of ours is lost, but made anew when it is loaded, and
 * what is attached is left out. */
int docker_archive_save(struct store *s, const struct archive_saved *v, size_t n, struct outlet *o,
	struct progress *p, struct err *e) must_check;

#endif
