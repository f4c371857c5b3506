/* Inside of composing: its inputs, and the jobs that unpack them. Only builder/compose*.c and
 * plan.c include this. */
#ifndef BUILDER_COMPOSE_PRIVATE_H
#define BUILDER_COMPOSE_PRIVATE_H

#include "builder/cache.h"
#include "builder/compose.h"
#include "builder/deb.h"
#include "builder/prune.h"
#include "builder/unpacked.h"

/* ---- what is fetched (compose-inputs.c) ---- */

enum { NPM_TARBALL_MAX = 1 << 30 };

struct input compose_deb_input(struct arena *a, const struct lock_deb *d);
int compose_npm_input(
	struct arena *a, const struct lock_npm *n, struct input *in, struct err *e) must_check;
struct input compose_wheel_input(struct arena *a, const struct lock_wheel *w);
struct input compose_model_input(
	struct arena *a, const struct manifest_model *m, const struct model_file *f);
/* "file:PATH": beside the manifest; NULL when it is to be fetched. */
const char *compose_wheel_path(const struct lock_wheel *w);

/* The files of a model that travel in a layer: the lock's, else the manifest's. None for another
 * delivery. */
const struct model_file *compose_model_files(
	const struct lock *l, const struct manifest_model *m, size_t *n);

/* All that is fetched into the cache from mirrors, in the arena. */
int compose_inputs(const struct manifest *m, const struct lock *l, struct arena *a,
	struct input **v, size_t *n, struct err *e) must_check;

/* ---- jobs (compose-unpack.c) ---- */

enum job_kind { JOB_DEB, JOB_NPM, JOB_WHEEL, JOB_SOURCE, JOB_MODEL, JOB_FILE };

/* One input, unpacked by one thread into its own list. */
struct job {
	enum job_kind kind;
	size_t i, k;     /* of the lock's list or the manifest's; of a model its file */
	uint64_t weight; /* bytes: big ones first, so that no core ends up alone with the biggest */
	const char *name;  /* for people and plans: "libc6 2.36-9" */
	struct digest key; /* of its list (unpacked.h); has_key */
	bool has_key, loaded;
	struct entries *out;
};

struct work {
	const struct manifest *m;
	const struct lock *l;
	struct store *s;
	struct pool *pool;
	struct progress *p;
	struct build_count *count;
	struct prune *prune; /* what the manifest leaves out of packages */
	struct arena arena;
	struct job *jobs; /* in the order of merging: debs, npms, wheels, sources, models, files */
	size_t njobs;
	struct deb *debs; /* by lock->debs; their jobs' out is their data */
	struct unpacked_queue queue;
	pthread_mutex_t lock; /* of count */
	size_t *todo;         /* jobs that workers do */
};

/* List the jobs, with their keys. Needs m, l, s only. */
int work_init(struct work *w, struct err *e) must_check;
void work_fini(struct work *w);
/* Jobs of a kind: the first, and how many. */
struct job *work_jobs(struct work *w, enum job_kind kind, size_t *n);
/* Unpack all: from kept lists where there are (unless no_cache), else from the inputs. */
int work_run(struct work *w, bool no_cache, struct err *e) must_check;

/* ---- users and groups (compose-accounts.c) ---- */

/* The manifest's users and groups, as lines of /etc/passwd, group, shadow and gshadow, and their
 * home folders. What is there already must agree: USAGE names the line that does not. */
struct rootfs;
int compose_accounts(const struct rootfs *r, const struct manifest *m, struct err *e) must_check;

#endif
