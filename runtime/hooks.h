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

/* "createRuntime" */
const char *hook_name(enum hook_kind kind);

#endif
