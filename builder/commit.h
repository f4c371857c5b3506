/* What a container changed becomes an image: the layers of its image as they are, and one more on
 * top, made of its upper folder as a build makes those of its steps. The same folder gives the same
 * bytes: no time but those of the files is in it. docs/commit.md. */
#ifndef BUILDER_COMMIT_H
#define BUILDER_COMMIT_H

#include "builder/manifest.h"
#include "images/pool.h"
#include "images/progress.h"
#include "images/store.h"

struct commit {
	struct digest image;   /* the manifest of the image that the container was started from */
	const char *name;      /* what that was called then */
	int upper;             /* its upper folder; nothing writes to it */
	struct strings others; /* files of it that are read from the folder `instead`: upper.h */
	int instead;
	const char *message;    /* for the history, or NULL */
	struct strings changes; /* "ENV A=B" and the like: commit_change() */
	struct progress *progress;
	/* Told of what no image holds: sockets, devices. */
	void (*left_out)(void *ctx, const char *path, const char *what);
	void *ctx;
};

/* The image is whole, can be run at once, and has no name: that is the caller's to give before the
 * pool is closed, with *source (malloc'ed, NULL: none) as where its lower layers can be had.
 * Without a change in the files there is no new layer. Errors: NOT_FOUND (the image is gone), USAGE
 * (a change), CORRUPT (what no image can hold), UNSUPPORTED, SYSTEM. */
int commit_image(struct store *s, struct pool *p, const struct commit *c, struct digest *manifest,
	uint64_t *size, char **source, struct err *e) must_check;

/* Apply one change to an image's config document, as Dockerfiles write them:
 *
 *   ENV NAME=VALUE   LABEL NAME=VALUE   USER NAME   WORKDIR /PATH   EXPOSE PORT[/udp] ...
 *   CMD and ENTRYPOINT: ["a", "JSON", "array"], or a line for /bin/sh -c
 *
 * USAGE names the change. */
int commit_change(json_t *config, const char *change, struct err *e) must_check;

#endif
