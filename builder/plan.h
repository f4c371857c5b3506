/* What a build would do, without doing it: each step, whether its result is there (hit) or not
 * (miss), the bytes it would fetch and write. Looks at the store only. Source: manifest.md 3.13.
 *
 *   fetch -> unpack -> configure -> run -> layer -> config -> attest -> test
 *
 * A step's key is sha256(its canonical JSON, the digests of its inputs, the engine's version); of a
 * step that runs code, inputs are all that is composed and the steps that it sees. Of what is
 * composed it may see less: where only a source changed that it does not name, the plan says miss,
 * and the build, which has the tree, finds its result. */
#ifndef BUILDER_PLAN_H
#define BUILDER_PLAN_H

#include "builder/group.h"

enum plan_kind {
	PLAN_FETCH,
	PLAN_UNPACK,
	PLAN_CONFIGURE,
	PLAN_RUN,
	PLAN_LAYER,
	PLAN_CONFIG,
	PLAN_ATTEST,
	PLAN_TEST,
};
const char *plan_kind_name(enum plan_kind k); /* "fetch" */

struct plan_step {
	enum plan_kind kind;
	const char *id, *detail; /* "libc6 2.36-9"; detail: more about it, or NULL */
	struct digest key;
	bool hit;
	uint64_t fetch, write; /* bytes, when it is a miss; 0: none or unknown */
	bool known;            /* fetch and write are known */
};

struct plan {
	struct arena arena;
	struct plan_step *steps;
	size_t n, cap;
	uint64_t fetch, write; /* of all */
	bool write_open;       /* there is more to write than is known before it was built once */
	bool layers_open;      /* nor is known how many layers: one step stands for them */
	bool cached;           /* the image itself is there */
	struct digest image;   /* then */
};

/* s->fd may be -1 and pool NULL: there is no store yet, all is a miss. codec as in build_options.
 */
int plan_make(struct plan *p, const struct manifest *m, const struct lock *l, struct store *s,
	struct pool *pool, const enum codec *codec, struct err *e) must_check;
void plan_fini(struct plan *p);

/* For people, and as JSON (a new reference). */
void plan_print(const struct plan *p, const struct manifest *m, const struct lock *l, bool all,
	struct buf *out);
json_t *plan_json(const struct plan *p, const struct manifest *m, const struct lock *l);

/* Keep what the next plan wants to know of a build that succeeded: its steps and layers. */
int plan_remember(const struct manifest *m, const struct lock *l, const enum codec *codec,
	const struct groups *g, struct store *s, struct pool *pool, struct err *e) must_check;

/* Steps that run code, in their order (steps-plan.c). */
struct plan_code {
	const char *id; /* "dpkg", "npm:NAME", "bytecode", "run:ID" */
	struct digest key;
	const bool *sees; /* of each before it: does it see what that did? */
};
struct plan_code *plan_code(
	const struct manifest *m, const struct lock *l, struct arena *a, size_t *n);
/* Did a build get past it? 1, 0, -1. */
int plan_was_run(struct pool *pool, const struct plan_code *code, struct err *e) must_check;

#endif
