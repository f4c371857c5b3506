/* Programs of the config that run at points of a container's life. They get the state of the
 * container (JSON) on stdin, the environment that the config gives them and nothing else, and / as
 * working directory. Source: runtime-spec config.md "POSIX-platform Hooks", runtime.md "State". */
#ifndef RUNTIME_HOOKS_H
#define RUNTIME_HOOKS_H

#include "runtime/spec.h"

/* Run them in their order; the first that fails, or does not end within its timeout, ends it with
 * an error that has the last lines of its output. */
int hooks_run(
	const struct spec *s, enum hook_kind kind, const char *state, struct err *e) must_check;

/* The state of a container (pid 0: left out) as hooks get it; to free(). */
char *hook_state_text(
	const struct spec *s, const char *id, const char *status, pid_t pid, const char *bundle);
/* What a seccomp agent gets with a listener: config-linux.md "Container Process State". process:
 * the one with the filter; first: the container's first one. To free(). */
char *hook_agent_text(const struct spec *s, const char *id, const char *status, pid_t first,
	pid_t process, const char *bundle);

#endif
