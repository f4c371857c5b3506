/* What comes in as an archive or a folder of image files (an OCI layout, what `docker save`
 * writes): every file becomes a blob of the store as it passes by, in whatever order, so that a
 * pipe will do. Which of them are an image's is decided afterwards (archive-load.h); what no image
 * took is removed again by intake_fini().
 *
 * The tar around them may be compressed (gzip, zstd, xz, bzip2). It is read with libarchive: this
 * is no image layer, and the formats of archives are what that library is for. Names in it never
 * reach a file system. One thread at a time. */
#ifndef IMAGES_INTAKE_H
#define IMAGES_INTAKE_H

#include "images/layer.h"
#include "images/store.h"

struct progress;

struct intake_file {
	const char *name;   /* clean: tree_clean_path() */
	const char *target; /* of a link: the name of what it leads to; else NULL */
	struct digest digest;
	uint64_t size;
	enum codec codec; /* by its first bytes */
	bool added;       /* the store did not have it before */
};

struct intake {
	struct store *s;
	const char *name; /* of the archive or folder, for errors */
	int dirfd;        /* of a folder, or -1 */
	struct arena arena;
	struct intake_file *v;
	size_t n, cap, names; /* names: their bytes */
	json_t *by_name;      /* to the number in v */
	uint64_t bytes;       /* of all files */
	size_t attached;      /* things and their layers so far (archive-attached.c) */
	struct progress *progress;
};

enum {
	INTAKE_FILES_MAX = 100000,
	INTAKE_NAMES_BYTES = 16 << 20,
	INTAKE_LINKS_MAX = 40, /* that may be followed to find one file */
};

/* Read a tar from fd to its end: pipes do. name is borrowed. Errors: CORRUPT (no tar, cut off, a
 * member that leads outside, is there twice, has holes, or is a blob that is not what its name
 * says; a compressed tar that unpacks to more than unpack_limit() of its size), SYSTEM. After an
 * error only intake_fini() is allowed. */
int intake_stream(struct intake *in, struct store *s, int fd, const char *name, struct progress *p,
	struct err *e) must_check;
/* The same for a folder: files are taken when they are asked for, and never from outside of it. */
int intake_folder(struct intake *in, struct store *s, const char *path, struct progress *p,
	struct err *e) must_check;

/* The file of that name, links followed: 1, 0 when there is none, -1. *f is valid until the next
 * call. */
int intake_find(
	struct intake *in, const char *name, struct intake_file *f, struct err *e) must_check;
/* It must be there: CORRUPT. */
int intake_get(
	struct intake *in, const char *name, struct intake_file *f, struct err *e) must_check;
/* A JSON document among the files, at most max bytes. */
json_t *intake_document(
	struct intake *in, const struct intake_file *f, size_t max, struct err *e) must_check;
/* A blob that is made of what came in. */
int intake_add_blob(
	struct intake *in, const void *p, size_t n, struct digest *d, struct err *e) must_check;

/* Remove every blob that was added and that no image of the store uses: image_drop_blobs(). */
void intake_fini(struct intake *in);

#endif
