/* An image in the store: manifest, config, layers, index. Source: image-spec manifest.md,
 * config.md. */
#ifndef IMAGES_IMAGE_H
#define IMAGES_IMAGE_H

#include "images/descriptor.h"
#include "images/index.h"
#include "images/layer.h"
#include "images/store.h"

/* Variables whose value is only known at start ("${runtime:cpus}") are kept out of config.Env,
 * where other engines would take them literally, and go into this label as a JSON object. */
#define RUNTIME_ENV_LABEL "run.svrun.env"
/* What the image's modes change in its config (builder/image-modes.h), the mode that it was built
 * in, and what it needs of GPUs (gpu/require.h). */
#define IMAGE_MODES_LABEL "run.svrun.modes"
#define IMAGE_MODE_LABEL "run.svrun.mode"
#define IMAGE_GPU_LABEL "run.svrun.gpu"

struct image_layer {
	struct digest digest, diff_id;
	uint64_t size;
	const char *media_type; /* borrowed from the manifest document */
	enum codec codec;       /* that it means */
};

struct image {
	struct digest manifest_digest, config_digest;
	uint64_t manifest_size;
	json_t *manifest, *config; /* the documents */
	struct image_layer *layers;
	size_t nlayers;
	bool has_index;
	struct index_place index;
};

/* The image's index document into b (INDEX_BYTES_MAX): the one it travels with, or the one that was
 * made here when it was pulled or loaded (ROOT/indexes/HEX, by manifest digest). NOT_FOUND when
 * there is neither. */
int image_index(struct image *im, struct store *s, struct buf *b, struct err *e) must_check;
/* What that document says: the merged tree (sorted, no chunk has a block), and the layers (unless
 * NULL), to free(). They are the manifest's layers, or it is CORRUPT. */
struct tree *image_tree(struct image *im, struct store *s, struct layer **layers, size_t *n,
	struct err *e) must_check;
/* Keep an index that was made here. */
int image_index_put(struct store *s, const struct digest *manifest, const void *p, size_t n,
	struct err *e) must_check;
int image_index_remove(struct store *s, const struct digest *manifest, struct err *e) must_check;
/* Has it one of either kind? No reading, no checking. */
bool image_is_indexed(const struct image *im, struct store *s);

/* Which image of an index or manifest list (its document) is for a platform, "os/arch[/variant]" or
 * NULL: this machine's. First match wins; entries of platform unknown/unknown are skipped.
 * NOT_FOUND lists what there is. Source: image-spec image-index.md. */
int image_choose(
	const json_t *index, const char *platform, struct descriptor *d, struct err *e) must_check;
/* Is an image's config for the platform? NOT_FOUND says what it is for. One that does not say is
 * for any. */
int image_check_platform(const json_t *config, const char *platform, struct err *e) must_check;
/* Is a media type that of an index or manifest list? */
bool image_type_is_index(const char *media_type);
bool image_type_is_manifest(const char *media_type);

/* Load and check: every digest, media types, counts (at most 512 layers, documents of 8 MiB), that
 * the manifest is no index (CVE-2021-41190), that diff_ids match layers in number. Layers are not
 * looked at. Errors: NOT_FOUND, CORRUPT, UNSUPPORTED (a media type we do not know), SYSTEM. */
int image_load(
	struct image *im, struct store *s, const struct digest *manifest, struct err *e) must_check;
void image_fini(struct image *im);
/* What image_load() does with the documents im->manifest and im->config, which come from outside:
 * fill the layers, *config, and where the index is; then the layers' DiffIDs. */
int image_read_manifest(struct image *im, struct descriptor *config, struct err *e) must_check;
int image_read_config(struct image *im, struct err *e) must_check;

/* What image_publish() needs. config is the OCI image config without rootfs and history: they are
 * added here, one history entry a layer ("svrun layer ID"), all created at `created` (RFC 3339). */
struct image_plan {
	struct tree *tree; /* sorted, all chunks in layers */
	const struct layer *layers;
	size_t nlayers;
	json_t *config;      /* {architecture, os, config: {...}} */
	json_t *annotations; /* of the manifest; may be NULL */
	const char *created;
	/* The first nbase of the layers are those of a base image, whose history they keep. */
	size_t nbase;
	const json_t *base_history; /* an array; NULL: nbase is 0 */
};

/* Write index layer, config and manifest; *manifest, *size name the result. Deterministic. */
int image_publish(struct store *s, const struct image_plan *plan, struct digest *manifest,
	uint64_t *size, struct err *e) must_check;

/* Re-hash everything an image needs: blobs against descriptors, layers' uncompressed tars against
 * DiffIDs, index, every chunk in the pool, the metadata image. Layers that are not in the store are
 * fine when it is known where they can be had (store_source()). With repair, a chunk that is wrong
 * or missing in the pool is decoded from its layer again, a damaged metadata image is made again,
 * and a layer that is not what its digest says is removed, so that a build writes it again (that
 * one is still an error). Reports the first fault as CORRUPT (file, expected, found); chunks (each
 * digest counted once) and repaired are filled. The pool must not be open in this process. */
struct image_verify {
	bool repair;
	size_t chunks, repaired;
};
int image_verify(struct image *im, struct store *s, struct image_verify *v, struct progress *pr,
	struct err *e) must_check;

/* Keep an image from being run: as long as the returned fd is open, mount_open() waits. Taken
 * before the last name of an image goes, so that either the image goes whole or it stays. Errors:
 * EXISTS (a running instance uses it, or it is mounted: mount-keep.h), SYSTEM. */
int image_claim(struct store *s, const struct digest *manifest, struct err *e) must_check;

/* Does an instance or a mount use it? 1, 0 (also when it is just being deleted or unmounted), -1.
 */
int image_in_use(struct store *s, const struct digest *manifest, struct err *e) must_check;

/* Delete the blobs of an image (or of the images of an index) that no manifest in index.json uses,
 * its metadata image and its index; nothing when the image has got a name again. The pool's chunks
 * stay until garbage collection, and so does everything while others write to the pool. Called with
 * a claim, after the last name went; the pool must not be open in this process. Errors: CORRUPT
 * (another image's manifest is damaged, so that it cannot be told which blobs it needs: its name is
 * in the text), SYSTEM. */
int image_delete(struct store *s, const struct digest *manifest, struct err *e) must_check;

/* Delete those of n blobs that no manifest in index.json uses: what was brought here and then not
 * wanted. While others write to the pool, they stay for garbage collection. The pool must not be
 * open in this process. Errors: as of image_delete(). */
int image_drop_blobs(struct store *s, const struct digest *v, size_t n, struct err *e) must_check;

#endif
