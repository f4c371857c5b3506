/* The cache of builds, shared through a registry: what a build made is an action, an OCI artifact
 * (artifactType application/vnd.svrun.action.v1+json) in a repository of its own, tagged
 * "action-HEX" by its key. A machine that has nothing asks for the key of the image it is to build
 * and pulls the image; where that is not there it asks for each layer before it compresses it.
 *
 *   artifact  config: the empty one; layers[0]: the action's document, canonical JSON;
 *             then the blobs that it names
 *   document  {"key": HEX, "kind": "image", "manifest": DESCRIPTOR}
 *
 * The image itself lies in the same repository, by digest. Exporting asks once (HEAD) for each
 * blob, several at a time, and sends what is not there. The keys say what the inputs were; who may
 * write to the repository is trusted with them, as with images. */
#ifndef BUILDER_CACHE_SHARE_H
#define BUILDER_CACHE_SHARE_H

#include "images/config.h"
#include "images/progress.h"
#include "images/store.h"

#define ACTION_TYPE "application/vnd.svrun.action.v1+json"

/* Look for the image of key in the repository `from` and pull it: 1, with its digest, and the name
 * that the pull gave it (to be freed; NULL: none); 0 when it is not there. A registry that cannot
 * be reached, or holds something else, is no error: it is said, and the build goes on. The pool
 * must not be open in this process. */
int cache_share_import(struct store *s, const struct config *c, const char *from,
	const struct digest *key, struct progress *p, struct digest *manifest, char **name,
	struct err *e) must_check;

/* Put the image of key into the repository `to`, unless it is there. */
struct cache_share_result {
	size_t there, sent; /* blobs */
	uint64_t bytes;     /* sent */
	bool present;       /* the action was there: nothing was asked but that */
};
int cache_share_export(struct store *s, const struct config *c, const char *to,
	const struct digest *key, const struct digest *manifest, struct progress *p,
	struct cache_share_result *r, struct err *e) must_check;

#endif
