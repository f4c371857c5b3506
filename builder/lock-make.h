/* `svrun image lock`: resolving every input, moving one package of a lock, and what two locks
 * differ in. */
#ifndef BUILDER_LOCK_MAKE_H
#define BUILDER_LOCK_MAKE_H

#include "builder/build-secret.h"
#include "builder/lock.h"
#include "builder/mirror.h"
#include "images/progress.h"
#include "images/store.h"

/* What sources of models may want. */
struct lock_secrets {
	const struct build_secret *v;
	size_t n;
};

/* Resolve every input of m. lock_fini() is due in any case. The pool must not be open in this
 * process: a base image may be pulled. */
int lock_make(struct lock *l, const struct manifest *m, struct mirrors *mirrors, struct store *s,
	const struct lock_secrets *secrets, struct progress *p, struct err *e) must_check;

/* Renew only the digests of local inputs in an existing lock: no package changes. */
int lock_make_files(const struct manifest *m, struct err *e) must_check;

/* Resolve anew with everything as in old but what is called `package`: a deb, wheel, npm package,
 * source, model, or "base". What the new version of a deb needs besides may come in, nothing else
 * moves: USAGE when the resolver finds no such solution, or when nothing is called so. */
int lock_update(struct lock *l, const struct lock *old, const char *package,
	const struct manifest *m, struct mirrors *mirrors, struct store *s,
	const struct lock_secrets *secrets, struct progress *p, struct err *e) must_check;

/* One line for each input that the two differ in ("deb libc6 2.36-9 -> 2.36-9+deb12u1"), sorted by
 * kind. Returns how many. */
size_t lock_diff(const struct lock *old, const struct lock *now, struct buf *out);

#endif
