/* The store: a folder that is a plain OCI image layout (image-spec image-layout.md), with the pool
 * and the mounts beside it.
 *
 *   ROOT/oci-layout  index.json  blobs/sha256/HEX    manifests, configs, layers, names
 *   ROOT/pool/       data, db/                        chunks (pool.h)
 *   ROOT/cache/      sha256/HEX                       the builder's inputs, by digest
 *   ROOT/indexes/    HEX                              indexes made here (image.h)
 *   ROOT/layers/     HEX                              lists of adopted layers (adopt.h)
 *   ROOT/erofs/      HEX.img                          metadata images, by manifest digest (mount.h)
 *   ROOT/mnt/        HEX/  HEX.lock                   one mount per image
 *   ROOT/instances/  ID/                              svrun run
 *   ROOT/work                                         locks on its bytes: store_work_lock()
 *   ROOT/lock                                         flock while index.json changes or blobs go
 *
 * ROOT is mode 0700: setuid files of images must not be reachable by other users of the host.
 *
 * A name in index.json is the annotation org.opencontainers.image.ref.name: "ocr:1.2.0", and "ocr"
 * for tag latest, so that `skopeo inspect oci:ROOT:ocr` finds what `svrun run ocr` runs.
 */
#ifndef IMAGES_STORE_H
#define IMAGES_STORE_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "images/digest.h"

#define OCI_MANIFEST_TYPE "application/vnd.oci.image.manifest.v1+json"
#define OCI_CONFIG_TYPE "application/vnd.oci.image.config.v1+json"
#define OCI_INDEX_TYPE "application/vnd.oci.image.index.v1+json"
#define DOCKER_MANIFEST_TYPE "application/vnd.docker.distribution.manifest.v2+json"
#define DOCKER_LIST_TYPE "application/vnd.docker.distribution.manifest.list.v2+json"
#define DOCKER_CONFIG_TYPE "application/vnd.docker.container.image.v1+json"

struct store {
	int fd; /* the root folder */
	char *path;
};

/* Open the store at path, making it when create: only in a folder that is missing or empty
 * (EXISTS). Errors: NOT_FOUND, CORRUPT (oci-layout of another version), DENIED, SYSTEM. */
int store_open(struct store *s, const char *path, bool create, struct err *e) must_check;
void store_close(struct store *s);
/* Hold ROOT/lock: nobody else changes names or deletes blobs until the fd is closed. Not recursive:
 * store_name_set() and store_name_remove() take it themselves. */
int store_lock(struct store *s, struct err *e) must_check;

/* List a folder of the store, which is never reached through a link. 1: *dir, to closedir(); 0:
 * there is none. */
int store_folder(struct store *s, const char *name, DIR **dir, struct err *e) must_check;
/* Call fn for each name of such a folder that does not begin with a dot, until it returns other
 * than 0, which is then returned; dirfd is the folder. */
int store_folder_each(struct store *s, const char *name,
	int (*fn)(void *ctx, int dirfd, const char *name, struct err *e), void *ctx,
	struct err *e) must_check;

/* Wait until no other process or thread works on what has this digest (a pull of an image, of a
 * layer), and keep the others waiting until the returned fd is closed. Who waited looks again at
 * what there is. */
int store_work_lock(struct store *s, const struct digest *d, struct err *e) must_check;

/* ---- blobs ---- */
bool store_has(struct store *s, const struct digest *d);
/* Read-only fd of a blob, its size in *size when not NULL. NOT_FOUND names the digest. */
int store_blob_open(
	struct store *s, const struct digest *d, uint64_t *size, struct err *e) must_check;
/* The whole of a small blob, checked against its digest (CORRUPT: expected and found). */
int store_blob_read(struct store *s, const struct digest *d, size_t max, struct buf *b,
	struct err *e) must_check;
/* Store bytes; *d is their digest. */
int store_blob_put(
	struct store *s, const void *p, size_t n, struct digest *d, struct err *e) must_check;

/* A blob written piece by piece, hashed as it passes; not visible before store_blob_commit(), which
 * keeps a blob that is there already if it has the same bytes, and replaces it if it is damaged.
 * Abort (or exit, or kill -9) leaves nothing with a name. */
struct blob_writer {
	struct store *s;
	int fd, dirfd;
	char tmp[64];
	struct hash hash;
	uint64_t size;
};
int store_blob_begin(struct store *s, struct blob_writer *w, struct err *e) must_check;
int store_blob_add(struct blob_writer *w, const void *p, size_t n, struct err *e) must_check;
/* Of what was added so far. */
struct digest store_blob_digest(const struct blob_writer *w);
int store_blob_commit(struct blob_writer *w, struct digest *d, struct err *e) must_check;
void store_blob_abort(struct blob_writer *w); /* fine after commit */
/* Fine when it is missing. */
int store_blob_remove(struct store *s, const struct digest *d, struct err *e) must_check;

/* Is a blob of at most max bytes an image index that names the manifest? */
bool store_index_names(
	struct store *s, const struct digest *index, const struct digest *manifest, size_t max);

/* ---- names ---- */
struct store_name {
	char *name; /* "ocr", "ocr:1.2.0" */
	struct digest manifest;
	uint64_t size; /* of the manifest */
	char *source;  /* "host[:port]/path" that the image's blobs can be had from; NULL: they are
			  here */
};
/* Sorted by name. Free with store_names_free(). */
int store_names(struct store *s, struct store_name **v, size_t *n, struct err *e) must_check;
void store_names_free(struct store_name *v, size_t n);
/* Digests of all manifests in index.json, named or not (other tools write such); to free(). */
int store_manifests(struct store *s, struct digest **v, size_t *n, struct err *e) must_check;
/* Point name at a manifest (or image index) that is in blobs/, replacing what it pointed at.
 * source: where layers that are not in blobs/ can be had (kept as annotation run.svrun.source);
 * NULL: nowhere, and NOT_FOUND when a blob that the manifest names is missing: nothing incomplete
 * gets a name. */
int store_name_set(struct store *s, const char *name, const struct digest *manifest, uint64_t size,
	const char *source, struct err *e) must_check;
/* A repository that a manifest's blobs can be had from, of any of its names, or of those of an
 * index that it is in; to free(). NULL: none. */
char *store_source(struct store *s, const struct digest *manifest);
int store_name_remove(struct store *s, const char *name, struct err *e) must_check; /* NOT_FOUND */
/* Take a manifest that has no name out of index.json; fine when it is not there. */
int store_unnamed_remove(struct store *s, const struct digest *manifest, struct err *e) must_check;

/* Find an image as people name it: "ocr", "ocr:latest", "ocr:1.2.0", "registry.example/team/ocr:1",
 * "sha256:...", "ocr@sha256:...", 6 or more hex digits that begin exactly one named manifest's
 * digest, or the last parts of exactly one image's name ("ocr:1" for registry.example/team/ocr:1).
 * Of an image index, the image for this machine. NOT_FOUND has a "did you mean" or lists what there
 * is in the hint; USAGE for a malformed or ambiguous one; CORRUPT for a damaged index. */
int store_resolve(
	struct store *s, const char *ref, struct digest *manifest, struct err *e) must_check;

/* When *d is an image index, make it the image for this machine. ref: what errors call it. */
int store_choose(struct store *s, const char *ref, struct digest *d, struct err *e) must_check;

/* Which of the n names v (store_names()) ref means: that one, or the only one that ends in it. 1:
 * *at is its place, 0: none, -1: USAGE. */
int store_name_find(const struct store_name *v, size_t n, const char *ref, size_t *at,
	struct err *e) must_check;

enum { STORE_NAME = 1024 };
/* Canonical form of a name ("ocr:latest" -> "ocr") into out: a reference (reference.h), whose host
 * may be missing. USAGE when malformed. */
int store_name_parse(const char *ref, char out[STORE_NAME], struct err *e) must_check;

#endif
