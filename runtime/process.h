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
/* A session of its own, so that there is no way to the host's terminal (TIOCSTI), and, unless
 * keep_keyring, a session keyring of its own: what the host's session holds is not for it. */
int process_session(bool keep_keyring, struct err *e) must_check;

/* The oom_score_adj of p is inherited by the process: the supervisor takes it on around the clone,
 * because the process itself could not in a new user namespace. `before` receives what is to be put
 * back then, "" when that is nothing. */
enum { PROCESS_SCORE_SIZE = 16 };
int process_score(
	const struct spec_process *p, char before[PROCESS_SCORE_SIZE], struct err *e) must_check;
int process_score_back(const char *before, struct err *e) must_check;

/* How a process is to be confined. */
struct process_confinement {
	const struct spec *spec;            /* the container's */
	const struct spec_process *process; /* spec->process, or what exec runs */
	const struct seccomp_prog *filter;  /* NULL: none */
	int proc;   /* root of a verified procfs, of the container's pid namespace; -1: none */
	int follow; /* the supervisor's socket, to die with it; -1: live on */
	/* The filter is about to notify: send its listener to where it belongs. NULL: refuse. */
	int (*listener)(void *ctx, int fd, struct err *e);
	void *ctx;
};

/* Scheduler, io priority, memory policy, personality, limits, LSM labels, working directory,
 * groups, capabilities, user, no_new_privs, filter. The capability sets are those of the process,
 * without CAP_MKNOD when process_withholds_mknod(). */
int process_confine(const struct process_confinement *c, struct err *e) must_check;

/* Is the container granted devices beyond those that every container has, by linux.devices or by a
 * rule of linux.resources.devices? Who may make nodes could then open others that such a rule is
 * broad enough for (CVE-2021-1056), so CAP_MKNOD goes. Not when a rule grants all devices: there is
 * nothing left to keep it from. */
bool process_withholds_mknod(const struct spec *s);

/* Signals as after boot: what the runtime ignores or blocks is its own business. */
void process_reset_signals(void);

/* Nothing but 0-2 and the next `preserve` descriptors stays open through exec: closes all others
 * but keep[], which are moved to the numbers after those and get O_CLOEXEC; -1 in keep is fine.
 * None of them may lead out of the container, as exec looks the program's name up while they are
 * still open: /proc/self/fd/N (CVE-2024-21626). */
int process_close_others(unsigned preserve, int **keep, size_t nkeep, struct err *e) must_check;

/* Put copies of fds[] on 0-2. A pipe is given to the process's user, so that it can be opened again
 * through /dev/stdout. */
int process_streams(const int fds[3], const struct spec_user *u, struct err *e) must_check;

/* The other side of a terminal becomes the controlling one of the calling process, which has a
 * session of its own; it gets the size that p says, and p's user as its owner. */
int process_terminal(int slave, const struct spec_process *p, struct err *e) must_check;

/* In the user namespace of s: until now we have all its capabilities, but no id in it, and files
 * that we make need one. Nothing without one, or when it has no root. */
int process_become_root(const struct spec *s, struct err *e) must_check;

/* Run the program: argv[0] with a slash as it is, without one looked up in the PATH of env, inside
 * the root. Without HOME in env it gets the one that the image's /etc/passwd has for its user, as
 * engines expect of a runtime. Returns only on failure: -1 and the exit status to end with. */
int process_exec(const struct strings *args, const struct strings *env, int *status, struct err *e);
/* Would it fail because there is no such program? As far as that can be seen before the process is
 * confined: engines want to hear of it from `create`. The same errors; 0 also when in doubt. */
int process_find(const struct strings *args, const struct strings *env, int *status,
	struct err *e) must_check;

/* Set one limit of the calling process. Raising a hard limit that the host keeps lower is an error
 * that says so. */
int process_rlimit(const struct spec_rlimit *r, struct err *e) must_check;

#endif
