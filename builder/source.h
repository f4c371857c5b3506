/* Sources that are no packages: git commits, archives, single files, text, and parts of other
 * images. */
#ifndef BUILDER_SOURCE_H
#define BUILDER_SOURCE_H

#include "builder/cache.h"
#include "builder/lock.h"
#include "builder/mirror.h"
#include "images/entries.h"

/* Fill l->sources: digests of what has one; of a git commit the digest of its canonical listing:
 * sha256 of sorted lines "MODE SHA256 PATH\n" (100644, 100755; "120000 SHA256-OF-TARGET PATH") of
 * all files, submodules refused by name. */
int source_lock(struct lock *l, const struct manifest *m, struct mirrors *mirrors, struct store *s,
	struct progress *p, struct err *e) must_check;

/* Have everything in the cache (git: a bare repository of the commit alone). */
int source_fetch(const struct manifest *m, const struct lock *l, struct mirrors *mirrors,
	struct store *s, struct progress *p, struct err *e) must_check;

/* Unpack one into out: strip, include, exclude, dest, owner, mode applied. Thread-safe. */
int source_unpack(const struct manifest_source *ms, const struct lock_source *ls, const char *dir,
	struct store *s, struct pool *pool, int64_t epoch, struct entries *out,
	struct err *e) must_check;

#endif
