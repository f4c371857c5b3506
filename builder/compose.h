/* From locked inputs to the tree of the image: fetch, unpack in parallel, merge in the lock's
 * order. What an input unpacks to is kept (unpacked.h), so that nothing is decompressed twice. */
#ifndef BUILDER_COMPOSE_H
#define BUILDER_COMPOSE_H

#include "builder/base-image.h"
#include "builder/lock.h"
#include "builder/mirror.h"
#include "images/entries.h"
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
	const char *name;   /* of the package, or the model's, source's or step's id */
	const char *source; /* DEB: the source package */
	bool essential;     /* DEB */
	/* Its number in the lock's list of its kind (debs, npms, wheels, sources), for MODEL and
	 * RUN in the manifest's: what the bill says of it. SIZE_MAX: it is not in a list (npm's
	 * ".bin"). */
	size_t entry;
};

struct composed {
	struct arena arena; /* names of origins, too */
	struct tree *tree;  /* sorted */
	struct origin *origins;
	size_t norigins, cap;
	size_t nbase;            /* layers of the base: nodes with a smaller layer are its own */
	const char **base_paths; /* all that the base has, sorted: what is gone gets a whiteout */
	size_t nbase_paths;
};

/* What compose_tree() works with. */
struct compose {
	const struct manifest *m;
	const struct lock *l;
	struct store *s;
	struct pool *pool;
	struct progress *p;
	struct base_image *base;   /* opened; its tree is taken over. NULL: scratch */
	bool no_cache;             /* unpack everything again */
	struct build_count *count; /* may be NULL */
};

/* What a build did and what it found done: proofs that nothing is done twice. Bytes are those of
 * file data, but for `written`, which counts what went into blobs. */
struct build_count {
	size_t inputs_unpacked, inputs_reused, steps_run, steps_reused, layers_written,
		layers_reused;
	uint64_t bytes_unpacked, bytes_compressed, bytes_written;
};

/* Fetch what the cache lacks. Mirrors are asked only when something is missing. */
int compose_fetch(const struct manifest *m, const struct lock *l, struct mirrors *mirrors,
	struct store *s, struct progress *p, struct err *e) must_check;

/* Unpack everything into the pool and merge it into one tree, up to where code would run. All
 * inputs are in the cache. Errors name the input. */
int compose_tree(struct composed *c, const struct compose *x, struct err *e) must_check;
void compose_fini(struct composed *c);

/* Begin with the tree of a base, which is taken over: its nodes keep the numbers of their layers,
 * and all its paths are remembered. */
void compose_base(struct composed *c, struct base_image *b);
/* Find the chunks of the tree in the pool, of which an image's index says not where they lie.
 * CORRUPT when one is missing. */
int compose_find_chunks(struct composed *c, struct pool *p, struct err *e) must_check;

/* A new row of the table of origins; its name is copied. */
uint32_t compose_origin(struct composed *c, const struct origin *o);

/* Lay what a step changed over the tree, as its origin `origin`: removals, then objects. Times are
 * clamped to epoch (unless that is 0). A folder of which only the time changed stays as it was:
 * else a step that makes one file would change all layers that name its folder. Sorts the tree. */
int compose_apply(struct composed *c, const struct entries *l, uint32_t origin, int64_t epoch,
	struct err *e) must_check;

/* The mark of all that goes into the tree before the first step: what keys of steps start from
 * (plan.h). */
struct digest compose_key(const struct manifest *m, const struct lock *l);

#endif
