/* pylock.toml: packages that somebody else has resolved. Source: PEP 751; PyPA "pylock.toml". */
#ifndef BUILDER_PYLOCK_H
#define BUILDER_PYLOCK_H

#include "builder/python-target.h"

/* Wheels that are chosen, one by one. */
struct wheel_list {
	struct lock_wheel *v; /* strings and why in target's arena */
	size_t n, cap;
};

/* Read a lock and add the wheel of every package that its markers ask for (no extras, the default
 * groups). name is what errors call it, and `why` of what is added; folder is the folder of the
 * file relative to the manifest's, "" when it is the same one: paths in the lock become
 * "file:PATH". json: the same document written as JSON. Errors: SV051 (an sdist, a folder, a
 * repository: something to build), SV052, SV053 (no sha256, no address), SV054 (not what the format
 * says), SV055 (a package twice). */
int pylock_read(const struct python_target *t, const char *name, const char *folder,
	const char *text, size_t n, bool json, struct wheel_list *out, struct err *e) must_check;

/* "../wheels/x.whl" beside a file in folder -> "file:wheels/x.whl" beside the manifest, in the
 * arena. NULL: absolute, or out of the manifest's folder. */
char *wheel_local_url(struct arena *a, const char *folder, const char *path);

/* A wheel at the end of the list. */
struct lock_wheel *wheel_list_add(struct wheel_list *l);

#endif
