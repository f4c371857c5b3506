/* Sending images to registries. What the registry has is not sent, what another repository of it
 * has is mounted, the manifest comes last. Source: distribution-spec "Push"; formats.md 4.2. */
#ifndef IMAGES_PUSH_H
#define IMAGES_PUSH_H

#include "images/config.h"
#include "images/convert.h"
#include "images/reference.h"

struct progress;

struct push_options {
	const char *ref;    /* where to; NULL: the image's own name, when it has a host */
	bool all_platforms; /* an image index with all its images, not this machine's image alone */
	const struct convert_options *convert; /* NULL: every byte as it is */
	bool plain_http, insecure;
	const char *const *accepted; /* licences of models that travel with it (models.h) */
	size_t naccepted;
};

struct push_result {
	char ref[REFERENCE_TEXT]; /* where it is now */
	struct digest manifest;   /* of what is there: the image's own, unless converted */
	size_t there, mounted, sent,
		skipped; /* blobs; skipped: those that may not be distributed */
	uint64_t bytes;  /* sent */
	bool present;    /* nothing at all had to be done */
};

/* Push the image that ref names in the store (store_resolve()). Blobs that are not in the store are
 * fetched from where the image came from, or made again from the pool, if the registry lacks them;
 * they are not kept (complete.h). What --compression makes is deleted again. The pool must not be
 * open in this process. Errors: those of registry.h, store_resolve(), image_complete(),
 * image_convert(); USAGE (no host anywhere, a digest that is not the image's). After an error blobs
 * that arrived stay in the registry, which the next try uses, and no manifest leads to them. */
int image_push(struct store *s, const struct config *c, const char *ref,
	const struct push_options *o, struct progress *p, struct push_result *r,
	struct err *e) must_check;

#endif
