/* A process in between: it joins namespaces that count for its children only (pid, time), or that
 * the child must never be seen outside of, clones the child as its parent's (CLONE_PARENT), and
 * ends. */
#ifndef RUNTIME_HELPER_H
#define RUNTIME_HELPER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

struct helper {
	/* In that process: join, and clone with CLONE_PARENT. Returns the child's pid, 0 in the
	 * child, or -1. It may close all descriptors but *out and *theirs, and move those two. */
	pid_t (*clone)(void *ctx, int *out, struct err *e);
	void *ctx;
	int cgroup; /* version 2: where it, and so the child, is cloned into; -1: ours */
	int ours;   /* the socket pair: a failure is told there (sync.h) */
	int *theirs;
	int cancel; /* of helper_signals(), or -1 */
};

/* Signals that ask us to end. Whoever supervises blocks them, to pass them on to what runs; but
 * before that there may be no end of waiting (a frozen cgroup, a process inside that stops the
 * child). Returns a signalfd. */
int helper_signals(struct err *e) must_check;
/* Wait until fd is readable. A signal that asks us to end does end us meanwhile, as if it had not
 * been blocked. */
void helper_await(int fd, int cancel);

/* Returns the child's pid and *pidfd, which is the caller's; 0 in the child; -1 with the helper's
 * error (errno stays when it could not be cloned). The child may speak on its socket before this
 * returns. */
pid_t helper_clone(const struct helper *h, int *pidfd, struct err *e);

#endif
