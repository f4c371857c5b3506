/* Models that are not in an image's layers: the annotation run.svrun.models of its manifest says
 * which there are, and how each comes to its folder.
 *
 *   layer     in the image; listed when its licence asks for something
 *   artifact  an OCI artifact of its own in the same repository, by digest; placed in
 *             ROOT/models/HEX (of its digest), mounted read-only
 *   runtime   fetched file by file at the first start, into the volume that covers its folder, else
 *             placed in ROOT/models/HEX (of its set digest)
 *   volume    what the user mounts
 *
 * The annotation is a JSON array of
 *   {id, delivery, target, optional, artifact, set, files: [{path, sha256, size, url}], secret, s3,
 *    allowPickle, links: {path: target}, license: {id, acceptance, gated, redistribute}}
 *
 * An artifact is a manifest of the type below; its config lists the files, its layers are one tar
 * of the small ones, and each of the others as it is. It does not depend on how it was packed what
 * a model is: that is its set digest, sha256 of the sorted lines "HEX  PATH\n" of all its files.
 * The reader trusts nothing. */
#ifndef IMAGES_MODELS_H
#define IMAGES_MODELS_H

#include "images/image.h"

#define MODELS_ANNOTATION "run.svrun.models"
#define MODEL_TYPE "application/vnd.svrun.model.v1+json"
#define MODEL_CONFIG_TYPE "application/vnd.svrun.model.config.v1+json"
#define MODEL_BUNDLE_TYPE "application/vnd.svrun.model.bundle.v1.tar"
#define MODEL_FILE_TYPE "application/vnd.svrun.model.file.v1"
#define MODEL_TITLE "org.opencontainers.image.title"

enum {
	MODELS_MAX = 64, /* of one image */
	MODEL_FILES_MAX = 10000,
	MODEL_LAYERS_MAX = 512,
};

enum models_delivery { MODELS_LAYER, MODELS_ARTIFACT, MODELS_RUNTIME, MODELS_VOLUME };
extern const char *const models_deliveries[4];

struct models_file {
	const char *path; /* below the target */
	struct digest sha256;
	uint64_t size;
	const char *url; /* RUNTIME: "mirror:NAME/..." or https */
};

struct models_link {
	const char *path, *target;
};

struct models_entry {
	const char *id, *target; /* target: absolute */
	enum models_delivery delivery;
	bool optional, s3, allow_pickle;
	struct digest artifact; /* ARTIFACT: of its manifest */
	struct digest set;      /* of its files; not of LAYER */
	struct models_file *files;
	size_t nfiles;
	struct models_link *links; /* within the target */
	size_t nlinks;
	const char *secret;  /* RUNTIME: id of the one that authorises; NULL: none */
	const char *license; /* its id; NULL: not said */
	bool accept;         /* somebody must have accepted it */
	bool gated, keep;    /* keep: it may not be passed on */
};

struct models {
	struct arena arena;
	struct models_entry *v;
	size_t n;
};

/* Of an image; n is 0 when it says nothing. CORRUPT names the annotation and the place. */
int models_read(struct models *out, const json_t *manifest, struct err *e) must_check;
void models_fini(struct models *m);

/* A list of files as a config of an artifact has it, into a->arena: of an array. */
int models_read_files(struct arena *a, const json_t *list, struct models_file **v, size_t *n,
	struct err *e) must_check;
/* sha256 of the sorted lines. */
struct digest models_set(const struct models_file *v, size_t n);

/* Is the licence of every model that somebody must accept in the list? DENIED names the model and
 * the licence. deliveries: bits of 1 << MODELS_...: which of them count. */
int models_check_accepted(const struct models *m, const char *const *accepted, size_t n,
	unsigned deliveries, struct err *e) must_check;

/* Where a model's files lie when no volume has them: "models/HEX" below the store; NULL: of LAYER
 * and VOLUME. Returns out. */
enum { MODELS_PATH = sizeof("models/") + DIGEST_HEX };
char *models_path(const struct models_entry *x, char out[MODELS_PATH]);
/* The file in a volume that says that a model's files are there: ".svrun-HEX", of the set digest.
 * Returns out. */
#define MODELS_MARK ".svrun-"
char *models_mark(const struct models_entry *x, char out[sizeof(MODELS_MARK) + DIGEST_HEX]);
bool models_are_placed(struct store *s, const struct models_entry *x);

/* List the artifacts of an image with what is attached to it, so that they live as long as it. */
int models_attach(struct store *s, const struct digest *manifest, struct err *e) must_check;

#endif
