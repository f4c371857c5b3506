/* The cache of builds, shared through a registry: what a build made is an action, an OCI artifact
 * (artifactType application/vnd.svrun.action.v1+json) in a repository of its own, tagged
 * "action-HEX" by its key. A machine that has nothing asks for the key of the image it is to build
 * and pulls the image; where that is not there it asks for each step before it runs it.
 *
 *   artifact  config: the empty one; layers[0]: the action's document, canonical JSON
 *   of an image  {"key": HEX, "kind": "image", "manifest": DIGEST}; layers[1]: its bill, if there
 *                is one. The image lies in the same repository, by digest.
 *   of a step    {"key": HEX, "kind": "step"}; layers[1]: the list of what it changed
 *                (unpacked.h); layers[2]: the data of its chunks, each once, in the order of the
 *                list, as one zstd stream
 *
 * Exporting asks once (HEAD) for each blob, several at a time, and sends what is not there. What
 * comes in is checked chunk by chunk. The keys say what the inputs were; who may write to the
 * repository is trusted with them, as with images. */
#ifndef BUILDER_CACHE_SHARE_H
#define BUILDER_CACHE_SHARE_H

#include "base/mem.h"
#include "images/config.h"
#include "images/pool.h"
#include "images/progress.h"
#include "images/store.h"

/* Where it is, and for whom. */
struct cache_share_site {
	const struct config *config;
	bool plain_http;
	struct strings accepted; /* licences of models that travel with the image */
};

#define ACTION_TYPE "application/vnd.svrun.action.v1+json"

/* Look for the image of key in the repository `from` and pull it: 1, with its digest, and the name
 * that the pull gave it (to be freed; NULL: none); 0 when it is not there. A registry that cannot
 * be reached, or holds something else, is no error: it is said, and the build goes on. The pool
 * must not be open in this process. */
int cache_share_import(struct store *s, const struct cache_share_site *c, const char *from,
	const struct digest *key, struct progress *p, struct digest *manifest, char **name,
	struct err *e) must_check;

/* The repository of steps while one build runs; NULL when there is none to ask. */
struct cache_share;
struct cache_share *cache_share_open(const struct cache_share_site *c, const char *from,
	struct progress *p, struct err *e) must_check;
void cache_share_close(struct cache_share *x);
/* Have the step of key: 1, its list and chunks are here now; 0 (x may be NULL); -1. */
int cache_share_step(struct cache_share *x, struct store *s, struct pool *pool,
	const struct digest *key, struct err *e) must_check;

/* Put the image of key into the repository `to`, unless it is there. */
struct cache_share_result {
	size_t there, sent; /* blobs */
	uint64_t bytes;     /* sent */
	bool present;       /* the action of the image was there */
};
/* steps: keys of steps that go there, too. The pool must not be open in this process. */
int cache_share_export(struct store *s, const struct cache_share_site *c, const char *to,
	const struct digest *key, const struct digest *manifest, const struct digest *steps,
	size_t nsteps, struct progress *p, struct cache_share_result *r, struct err *e) must_check;

#endif
