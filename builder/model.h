/* Models: weights, wherever they come from and however they are delivered (docs/models.md). */
#ifndef BUILDER_MODEL_H
#define BUILDER_MODEL_H

#include "builder/build-secret.h"
#include "builder/cache.h"
#include "builder/lock.h"
#include "builder/mirror.h"
#include "images/models.h"

/* What fetching has at hand. */
struct model_job {
	const struct manifest *m;
	const struct lock *l; /* NULL: there is none yet */
	struct mirrors *mirrors;
	struct store *s;
	const struct build_secret *secrets;
	size_t nsecrets;
	struct progress *p;
};

/* The files of a model: the lock's, else the manifest's. */
const struct model_file *model_files(
	const struct lock *l, const struct manifest_model *m, size_t *n);

/* "mirror:huggingface/REPO/resolve/REVISION/PATH" and the like, in the arena. */
const char *model_url(struct arena *a, const struct manifest_model *m, const char *path);

/* Fill in->authorization or in->s3_key from a secret. USAGE: no --secret of that id. DENIED: it
 * would travel in the clear. id NULL: nothing to do. */
int model_authorize(struct input *in, const char *id, bool s3, const struct build_secret *v,
	size_t n, struct arena *a, struct err *e) must_check;

/* Fill l->models for every model whose manifest does not say its files: a listing of the source
 * through include and exclude, where it can be listed (a folder beside the manifest, a model hub,
 * an artifact), or the one file that an address names. What cannot be listed is USAGE with the
 * field to write. */
int model_lock(struct lock *l, const struct model_job *j, struct err *e) must_check;

/* Have in the cache what goes into layers and artifacts; then look at what it is: a pickle by its
 * bytes without allowPickle (SV141), or a file that is not of the model's format, is refused. */
int model_fetch(const struct model_job *j, struct err *e) must_check;
/* Does the site's policy let in the artifacts in registries that the models come from, by the
 * signatures that the store holds? false: no, or that cannot be told from here. */
bool model_admitted(const struct model_job *j);
/* The look alone, at one open file. path: below the target. */
int model_check(
	int fd, const char *id, const char *path, bool allow_pickle, struct err *e) must_check;

/* Is every licence accepted that somebody must accept before these models are fetched and passed
 * on? DENIED names the model and the licence. */
int model_gate(const struct manifest *m, const struct strings *accepted, struct err *e) must_check;

/* Write the artifacts into the store, and the annotation run.svrun.models, when there is something
 * to say. The caller holds the pool. */
int model_publish(const struct model_job *j, json_t *annotations, struct err *e) must_check;

/* ---- model-list.c ---- */

struct model_listing {
	struct arena *a;
	struct model_file *v;
	size_t n, cap;
};
/* What a source has, through include and exclude, with digests: files that the source does not
 * tell the digest of are fetched. */
int model_list(struct model_listing *l, const struct model_job *j, const struct manifest_model *m,
	struct err *e) must_check;
bool model_wants(const struct manifest_model *m, const char *path);

/* ---- model-get.c: what has no digest yet ---- */

/* GET a small document into b. *next: the address of the page after it (header Link), in a, or
 * NULL. */
int model_get(const char *url, const struct input *auth, struct buf *b, struct arena *a,
	const char **next, struct err *e) must_check;
/* Fetch a file into the cache, whatever its digest is; *f gets digest and size. */
int model_get_file(struct store *s, const char *name, const char *url, const struct input *auth,
	struct model_file *f, struct progress *p, struct err *e) must_check;

/* ---- model-registry.c: artifacts of others' images, by digest ---- */

/* Have the artifact that a model's source names, and list its files. */
int model_registry_list(struct model_listing *l, const struct model_job *j,
	const struct manifest_model *m, struct err *e) must_check;
/* Have the n files in the cache. */
int model_registry_fetch(const struct model_job *j, const struct manifest_model *m,
	const struct model_file *v, size_t n, struct err *e) must_check;
int model_listing_add(
	struct model_listing *l, const struct model_file *f, struct err *e) must_check;

/* ---- model-artifact.c ---- */

/* One artifact; its files are in the cache, or beside the manifest. */
int model_artifact(const struct model_job *j, const struct manifest_model *m,
	struct digest *manifest, struct err *e) must_check;
/* Open the data of a file. */
int model_open(const struct model_job *j, const struct manifest_model *m,
	const struct model_file *f, struct err *e) must_check;

#endif
