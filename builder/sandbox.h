/* Running a program during a build: inside our own runtime, over a tree that is not yet an image,
 * without a network, with fixed names and times. What it wrote comes back as a list.
 *
 * Fixed: host name "svrun", TZ=UTC, LANG=C.UTF-8, HOME=/root, SOURCE_DATE_EPOCH, PATH, umask 022,
 * an empty /tmp and /run, /dev as in any container, no host file but the binds. It is confined as
 * the containers of `svrun run` are (runtime/confine.h, seccomp-profile.h), and cannot make device
 * nodes.
 *
 * Everything that a run needs lies in ROOT/steps/ID, locked as long as we live. The processes die
 * with us; the folder and the cgroup that kill -9 leaves are removed by the next sandbox_sweep().
 *
 * One thread: container.h. Several may run at once:
 *
 *	sandbox_start -> sandbox_wait until it has ended -> sandbox_end */
#ifndef BUILDER_SANDBOX_H
#define BUILDER_SANDBOX_H

#include "builder/manifest.h"
#include "builder/secret-scan.h"
#include "images/entries.h"
#include "images/pool.h"
#include "images/store.h"
#include "images/tree.h"

/* Part of the key of every step: raise it when the same step gives another result. */
#define SANDBOX_VERSION "svrun-sandbox/1"

enum {
	SANDBOX_PIDS = 4096,
	SANDBOX_LOG_MAX = 64 << 20 /* a step that prints more is stopped */
};

struct sandbox_bind {
	const char *host; /* absolute: a file or folder */
	const char *target;
	bool writable;
};

/* A small read-only file that is no part of the tree, in memory only: a script, a secret. */
struct sandbox_file {
	const char *target;
	const void *data;
	size_t n;
	uint32_t mode;
};

struct sandbox_step {
	const char *id; /* "run:compile", "dpkg", "bytecode" */
	struct strings argv;
	struct pairs env;           /* over the fixed ones */
	const char *user, *workdir; /* NULL: root, / */
	bool network;               /* the host's; false: none */
	bool keep_run;              /* /run is the tree's, and part of what comes back */
	uint32_t timeout_ms, memory_mib, cpus, pids; /* 0: no limit of its own; pids 4096 */
	uint64_t max_bytes; /* that it may write; 0: half of what the disk can spare */
	const struct sandbox_bind *binds; /* not part of what comes back */
	size_t nbinds;
	const struct sandbox_file *files; /* neither are these */
	size_t nfiles;
	int log; /* standard output and error */
	int64_t epoch;
	struct secret_scan *scan; /* looks at all that comes back; NULL: nobody */
};

/* An ended step: how. */
struct sandbox_end {
	int status; /* exit status; 128 + signal */
	bool timed_out, out_of_memory, out_of_disk, out_of_pids, too_much_output;
	bool wrote_too_much; /* more than step->max_bytes */
	double seconds;
	const char *secret;                  /* the id of one that is in what it wrote, or NULL, */
	char secret_path[TREE_PATH_MAX + 1]; /* and where: "etc/x" */
};

/* It ended by itself, and well. */
bool sandbox_went_well(const struct sandbox_end *end);

struct sandbox;

/* Start it over the tree, which is borrowed, as is the step, until sandbox_end(). On failure
 * nothing is left. */
int sandbox_start(struct sandbox **out, const struct sandbox_step *step, struct tree *t,
	struct store *s, struct err *e) must_check;
/* Until one of n has ended: its number; -1: none within ms (-1: no limit). Their limits are watched
 * meanwhile, and only then. */
int sandbox_wait(struct sandbox *const *v, size_t n, int ms);
/* Have it end now; sandbox_wait() says when that is so. */
void sandbox_stop(struct sandbox *b);
/* Those that run beside it, which are watched while sandbox_end() reads what it wrote; borrowed
 * until then. */
void sandbox_beside(struct sandbox *b, struct sandbox *const *v, size_t n);
/* What came of it, as sandbox_run() says, and free it. One that has not ended is killed, and
 * nothing of it comes back. */
int sandbox_end(struct sandbox *b, struct pool *pool, struct entries *changed,
	struct sandbox_end *end, struct err *e) must_check;

/* Run it over the tree (sorted, every chunk has its block) and append what it changed to changed:
 * files (data in the pool), folders, links, and removals as whiteouts (entries.h), mtimes as the
 * program left them. What was written anew without a change is left out, times do not count. -1
 * only when it could not be run; a program that fails is in *end, and changed is as it was. Nothing
 * is left of it: processes, mounts, cgroup, folders. */
int sandbox_run(const struct sandbox_step *step, struct tree *t, struct store *s, struct pool *pool,
	struct entries *changed, struct sandbox_end *end, struct err *e) must_check;

/* Remove what a killed build left. Cheap when there is nothing. */
int sandbox_sweep(struct store *s, struct err *e) must_check;

#endif
