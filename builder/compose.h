/* From locked inputs to the tree of the image: fetch, unpack in parallel, merge in the lock's
 * order. */
#ifndef BUILDER_COMPOSE_H
#define BUILDER_COMPOSE_H

#include "builder/lock.h"
#include "builder/mirror.h"
#include "images/pool.h"
#include "images/progress.h"
#include "images/store.h"
#include "images/tree.h"

enum origin_kind {
	ORIGIN_STATE,
	ORIGIN_DEB,
	ORIGIN_NPM,
	ORIGIN_MODEL,
	ORIGIN_FILE,
	ORIGIN_WHEEL,
	ORIGIN_SOURCE,
	ORIGIN_RUN,  /* a step */
	ORIGIN_BASE, /* the image that ours starts from */
};

/* The input that brought an object: node->origin counts in this table; 0 is state that we made. */
struct origin {
	enum origin_kind kind;
	const char *name;   /* of the package, or the model's id */
	const char *source; /* DEB: the source package */
	bool essential;     /* DEB */
	/* Its number in the lock's list of its kind (debs, npms, wheels, sources), for MODEL and RUN in
	 * the manifest's: what the bill says of it. SIZE_MAX: it is not in a list (npm's ".bin"). */
	size_t entry;
};

struct composed {
	struct arena arena;
	struct tree *tree; /* sorted */
	struct origin *origins;
	size_t norigins;
};

/* Fetch what the cache lacks. Mirrors are asked only when something is missing. */
int compose_fetch(const struct manifest *m, const struct lock *l, struct mirrors *mirrors,
	struct store *s, struct progress *p, struct err *e) must_check;

/* Unpack everything into the pool and merge it into one tree. Everything is in the cache. Errors
 * name the input. */
int compose_tree(struct composed *c, const struct manifest *m, const struct lock *l,
	struct store *s, struct pool *pool, struct progress *p, struct err *e) must_check;
void compose_fini(struct composed *c);

#endif
