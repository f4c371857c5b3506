/* The last steps of a container's first process: from full rights inside its namespaces to the
 * program of the image. The order is the point: see process_confine(). */
#ifndef RUNTIME_PROCESS_H
#define RUNTIME_PROCESS_H

#include "runtime/spec.h"

/* Exit statuses of a program that could not be run, as shells and engines have them. */
enum { EXEC_DENIED = 126, EXEC_NOT_FOUND = 127 };

/* From here on the calling process is killed when its supervisor dies, however that dies. `alive`
 * is the supervisor's socket: when it hangs up, it is gone already. */
int process_follow(int alive, struct err *e) must_check;

/* Limits, working directory, groups, capabilities, user, no_new_privs, filter. `alive` is the
 * supervisor's socket: when it hangs up, this process must not go on. */
int process_confine(const struct spec *s, const struct seccomp_prog *filter, int proc, int alive,
	struct err *e) must_check;

/* Run the program: argv[0] with a slash as it is, without one looked up in the PATH of env, inside
 * the root. Returns only on failure: -1 and the exit status to end with. */
int process_exec(const struct strings *args, const struct strings *env, int *status, struct err *e);

/* Set one limit of the calling process. Raising a hard limit that the host keeps lower is an error
 * that says so. */
int process_rlimit(const struct spec_rlimit *r, struct err *e) must_check;

#endif
