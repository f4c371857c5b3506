/* What a program wrote, from the upper folder of an overlay mount: files into the pool, and a list
 * of what changed against the tree below. Names, depth, sizes and attributes are the program's, so
 * hostile: everything is opened from its folder's descriptor, following nothing. Source: Linux
 * Documentation/filesystems/overlayfs.rst "whiteouts and opaque directories". */
#ifndef BUILDER_UPPER_H
#define BUILDER_UPPER_H

#include <time.h>

#include "builder/secret-scan.h"
#include "images/entries.h"
#include "images/pool.h"

struct upper {
	int dir; /* nothing writes to it any more */
	/* Files (by their paths in dir) that are read from the folder `instead`; those that it does
	 * not have are as the tree has them. */
	struct strings others;
	int instead;
	struct tree *tree;
	struct pool *pool;        /* NULL: nothing is kept, only looked at */
	time_t since;             /* then: files that changed before are passed over */
	uint64_t max_bytes;       /* of all files */
	struct secret_scan *scan; /* may be NULL */
	/* Told of what no image holds (what: "a socket"), by its path. NULL: nobody wants to know
	 * of sockets, and a device node is an error. */
	void (*left_out)(void *ctx, const char *path, const char *what);
	void *ctx;
	/* Called now and then, while a lot is read; NULL: nobody. */
	void (*tick)(void *ctx);
	void *tick_ctx;
	bool too_much; /* out: there were more than max_bytes, which is the error */
	/* Out: the id of a secret that was found, or NULL, and where. */
	const char *secret;
	char secret_path[TREE_PATH_MAX + 1];
};

/* Append what differs from the tree to out; folders before what is in them, names sorted. What is
 * the same but for its times is left out, as are sockets. Stops at a secret (0, with u->secret).
 * Errors: CORRUPT (a name, depth, number or device that no image holds), SYSTEM. */
int upper_read(struct upper *u, struct entries *out, struct err *e) must_check;

#endif
