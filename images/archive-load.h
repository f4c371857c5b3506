/* svrun image load: images out of a file, a folder or a pipe. What it is is told by what it holds:
 *
 *   index.json      an OCI layout (image-spec image-layout.md), as a tar or a folder; newer
 *                   `docker save` writes one, too
 *   manifest.json   what `docker save` wrote before: configs and plain layers beside it
 *
 * Every image is adopted (adopt.h) before any gets a name, and all names are set at the end. */
#ifndef IMAGES_ARCHIVE_LOAD_H
#define IMAGES_ARCHIVE_LOAD_H

#include "images/intake.h"
#include "images/pool.h"

struct archive_image {
	struct digest manifest;
	uint64_t size;
	json_t *names; /* array of strings that store_name_parse() takes */
};

struct archive_images {
	struct archive_image *v;
	size_t n, cap, names;
};

void archive_images_fini(struct archive_images *l);
/* Add an image with a name, or without one (NULL). Names that the store cannot hold are said and
 * left out: the image itself may be fine. CORRUPT: too many names. */
int archive_images_add(struct archive_images *l, const struct digest *manifest, uint64_t size,
	const char *name, struct err *e) must_check;

struct archive_load {
	const char *platform; /* of images for several: "os/arch[/variant]"; NULL: this machine's */
	const char
		*rename; /* the name to give instead of the archive's, which must hold one image */
	struct progress *progress;
};

/* Load all images of path, or of fd when path is NULL (then name is what errors call it). What was
 * loaded is in out. Errors: CORRUPT, NOT_FOUND (a platform), UNSUPPORTED, USAGE (no names; more
 * than one image to be renamed), SYSTEM. After an error no name was set, and what was brought is
 * removed.
 */
int archive_load(struct store *s, const char *path, int fd, const char *name,
	const struct archive_load *how, struct archive_images *out, struct err *e) must_check;

/* The images of an intake that has index.json (images/oci-archive.c). All blobs they need are taken
 * in and are as long as they should be. */
int oci_archive_images(struct intake *in, const char *platform, struct archive_images *out,
	struct err *e) must_check;
/* The images of an intake that has manifest.json (images/docker-archive.c). Each gets a manifest
 * made for it; its config stays as it is, to the byte. */
int docker_archive_images(struct intake *in, struct archive_images *out, struct err *e) must_check;

enum {
	ARCHIVE_IMAGES_MAX = 4096,
	ARCHIVE_NAMES_MAX = 10000,    /* of all images */
	ARCHIVE_INDEX_MAX = 16 << 20, /* bytes of index.json, manifest.json */
	ARCHIVE_DOCUMENT_MAX = 8 << 20,
};

#endif
