/* The blobs of one manifest, on their way into a repository. push.c's own. */
#ifndef IMAGES_PUSH_BLOBS_H
#define IMAGES_PUSH_BLOBS_H

#include "images/complete.h"
#include "images/push.h"
#include "images/registry.h"

struct push_target {
	struct store *s;
	const struct config *config;
	struct registry *r;
	const struct push_options *o;
	const char *host;   /* of the registry, as it was named */
	bool can_mount;     /* the registry was opened with mount_from */
	const char *source; /* where blobs that are not in the store can be had; NULL: nowhere */
	bool plain_http, insecure; /* as the command line says of its host */
	struct progress *progress;
	struct push_result *result; /* counts are added up */
};

/* Have config and layers of a manifest (its document) in the repository. */
int push_blobs(struct push_target *t, const struct digest *manifest, const json_t *document,
	struct err *e) must_check;

#endif
