/* Run another program and collect what it says. Never through a shell. */
#ifndef BASE_PROC_H
#define BASE_PROC_H

#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"

struct proc {
	const char *const *argv; /* ends with NULL; argv[0] is looked up in PATH */
	const char *const *env;  /* ends with NULL; NULL: this process's own */
	const char *dir;         /* working folder; NULL: this process's own */
	const char *in;          /* what it reads on stdin; NULL: nothing (/dev/null) */
	size_t in_size;
	unsigned seconds; /* it is killed when it has not ended by then; 0: never */
	/* It leads a process group of its own, of which nothing is left when proc_run() returns,
	 * but what the kernel does not let go of (a driver that hangs): that is not waited for. */
	bool group;
	struct buf *out; /* stdout; NULL: /dev/null */
	/* stdout piece by piece, instead of `out`; -1 of it ends the program. */
	int (*take)(void *ctx, const void *data, size_t n, struct err *e);
	void *ctx;
	struct buf *errout; /* stderr; NULL: joined into the error text on failure */
};

/* Run it and wait. Returns the exit status (0-255; 128 + signal). -1 only when it could not be
 * started, its output exceeded out->max, or it took too long (SYSTEM). Copies of output other than
 * the one in out are overwritten: it may be a secret. */
int proc_run(const struct proc *p, struct err *e) must_check;

/* The same, and a status other than 0 is an error that quotes the last lines of stderr. */
int proc_check(const struct proc *p, struct err *e) must_check;

#endif
