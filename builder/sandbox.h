/* Running a program during a build: inside our own runtime, over a tree that is not yet an image,
 * without a network, with fixed names and times. What it wrote comes back as a list.
 *
 * Fixed: host name "svrun", TZ=UTC, LANG=C.UTF-8, HOME=/root, SOURCE_DATE_EPOCH, PATH, umask 022,
 * an empty /tmp and /run, /dev as in any container, no host file but the binds. Root of a user
 * namespace with the image's ids mapped where the host allows it, else real root with the default
 * capabilities of a container and the default seccomp profile. */
#ifndef BUILDER_SANDBOX_H
#define BUILDER_SANDBOX_H

#include "builder/manifest.h"
#include "images/entries.h"
#include "images/pool.h"
#include "images/store.h"
#include "images/tree.h"

struct sandbox_bind {
	const char *host; /* a file or folder */
	const char *target;
	bool writable;
};

struct sandbox_step {
	const char *id; /* "run:compile", "dpkg", "bytecode" */
	struct strings argv;
	struct pairs env;           /* over the fixed ones */
	const char *user, *workdir; /* NULL: root, / */
	bool network;
	uint32_t timeout_ms, memory_mib, cpus, pids; /* 0: no limit of its own; pids default 4096 */
	uint64_t max_bytes;                          /* that it may write; 0: no limit of its own */
	const struct sandbox_bind *binds;            /* not part of what comes back */
	size_t nbinds;
	int log; /* standard output and error, whole */
	int64_t epoch;
};

/* An ended step: how. */
struct sandbox_end {
	int status; /* exit status; 128 + signal */
	bool timed_out, out_of_memory, out_of_disk;
	double seconds;
};

/* Run it over the tree (sorted, every chunk has its block) and append what it changed to changed:
 * files (data in the pool), folders, links, and removals as whiteouts (entries.h), mtimes as the
 * program left them. -1 only when it could not be run; a program that fails is in *end. Nothing is
 * left of it: processes, mounts, cgroup, folders, also when we are killed. */
int sandbox_run(const struct sandbox_step *step, struct tree *t, struct store *s, struct pool *pool,
	struct entries *changed, struct sandbox_end *end, struct err *e) must_check;

#endif
