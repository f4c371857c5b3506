/* The last steps of a container's process: from full rights inside its namespaces to the program of
 * the image. The order is the point: see process_confine(). Both the first process (child.c) and
 * those that `exec` adds (exec.c) end here. */
#ifndef RUNTIME_PROCESS_H
#define RUNTIME_PROCESS_H

#include "runtime/spec.h"

/* Exit statuses of a program that could not be run, as shells and engines have them. */
enum { EXEC_DENIED = 126, EXEC_NOT_FOUND = 127 };

/* From here on the calling process is killed when its supervisor dies, however that dies. `alive`
 * is the supervisor's socket: when it hangs up, it is gone already. */
int process_follow(int alive, struct err *e) must_check;
/* No longer. */
int process_unfollow(struct err *e) must_check;

/* How a process is to be confined. */
struct process_confinement {
	const struct spec *spec;            /* sysctls and namespaces are not looked at */
	const struct spec_process *process; /* spec->process, or what exec runs */
	const struct seccomp_prog *filter;  /* NULL: none */
	int proc;   /* root of a verified procfs, of the container's pid namespace; -1: none */
	int follow; /* the supervisor's socket, to die with it; -1: live on */
	/* The filter is about to notify: send its listener to where it belongs. NULL: refuse. */
	int (*listener)(void *ctx, int fd, struct err *e);
	void *ctx;
};

/* Scheduler, io priority, memory policy, personality, limits, working directory, LSM labels,
 * groups, capabilities, user, no_new_privs, filter. */
int process_confine(const struct process_confinement *c, struct err *e) must_check;

/* Signals as after boot: what the runtime ignores or blocks is its own business. */
void process_reset_signals(void);

/* Nothing but 0-2 and the next `preserve` descriptors stays open through exec: closes all others
 * but keep[], which are moved as high as can be and get O_CLOEXEC. (CVE-2024-21626) */
int process_close_others(unsigned preserve, int **keep, size_t nkeep, struct err *e) must_check;

/* Put copies of fds[] on 0-2. A pipe is given to the process's user, so that it can be opened again
 * through /dev/stdout. */
int process_streams(const int fds[3], const struct spec_user *u, struct err *e) must_check;

/* Run the program: argv[0] with a slash as it is, without one looked up in the PATH of env, inside
 * the root. Returns only on failure: -1 and the exit status to end with. */
int process_exec(const struct strings *args, const struct strings *env, int *status, struct err *e);

/* Set one limit of the calling process. Raising a hard limit that the host keeps lower is an error
 * that says so. */
int process_rlimit(const struct spec_rlimit *r, struct err *e) must_check;

#endif
