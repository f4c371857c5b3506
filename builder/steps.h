/* Steps that run code over the composed tree, each through the sandbox, each cached by key:
 * `dpkg --configure -a` (apt.configure dpkg), install scripts of npm packages that ask for it, byte
 * code (python.bytecode), then the manifest's run steps: one after the other, but for those whose
 * `inputs` leave others out, which may run beside them. */
#ifndef BUILDER_STEPS_H
#define BUILDER_STEPS_H

#include "builder/compose.h"
#include "builder/build-secret.h"

/* Keys under which results of steps are kept (unpacked.h). */
struct step_keys {
	struct digest *v; /* malloc'ed */
	size_t n, cap;
};

struct step_context {
	const struct manifest *m;
	const struct lock *l;
	struct store *s;
	struct pool *pool;
	struct progress *p;
	const struct build_secret *secrets; /* --secret ID=FILE */
	size_t nsecrets;
	bool no_cache;
	size_t jobs;      /* that run at a time; 0: as many as there are processors */
	const char *logs; /* folder, there: LOGS/ID.log of each step ("run:ID", "dpkg", ...) */
	struct build_count *count; /* may be NULL */
	struct cache_share *share; /* that may have results of steps; NULL: none */
	struct step_keys *keys;    /* gets the key of each step whose result is here; may be NULL */
	const char *command;       /* that runs this build again, for errors; NULL: made up */
};

/* Append what of the engine decides what these steps make: part of keys of images. */
void steps_key(const struct manifest *m, struct buf *out);

/* Run all, and merge what they changed into c->tree with an origin of their own. ERR_USAGE:
 *   SV061  /run/N/writes     it wrote outside
 *   SV067  /run/N/...        it reached a limit
 *   SV068  /run/N/inputs     it and one that it does not see wrote the same
 *   SV069  /run/N            it wrote what no image can hold
 *   SV131  /run/N/secrets    a secret's bytes are in what it wrote, its names or its log
 * ERR_SYSTEM: one failed: its last 40 lines, its log's path and the command that runs it again. */
int steps_run(const struct step_context *x, struct composed *c, struct err *e) must_check;

#endif
