/* Where an interpreter looks for what wheels bring, by the manifest's prefix:
 *
 *   .../site-packages, .../dist-packages   that folder itself
 *   the interpreter's own ("/usr/local", "/usr") what Debian's or an upstream interpreter searches
 *   any other                              a virtual environment
 *
 * Source: sysconfig's schemes posix_prefix, posix_local, deb_system and venv; pip's locations. */
#ifndef BUILDER_PYTHON_SCHEME_H
#define BUILDER_PYTHON_SCHEME_H

#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"
#include "builder/manifest.h"

struct python_scheme {
	bool venv;
	/* Folders, absolute: libraries (pure ones and others share theirs), programs, everything
	 * else. Headers go to a folder of the package's name below headers. */
	const char *lib, *scripts, *headers, *data;
	const char *executable; /* what scripts are run by */
	const char *python;     /* "3.11" */
};

/* python: "3.11", or NULL: what the interpreter's name says. Strings are made in the arena. USAGE
 * when neither tells. */
int python_scheme(struct python_scheme *s, struct arena *a, const struct manifest_python *p,
	const char *python, struct err *e) must_check;

/* Is it a path of the virtual environment itself (its interpreter, pyvenv.cfg), which no wheel may
 * bring? */
bool python_scheme_owns(const struct python_scheme *s, const char *path);

/* "3.11" of "/usr/bin/python3.11", in the arena, or NULL. */
char *python_version_of_path(struct arena *a, const char *path);
/* "3.11" -> 3, 11. */
int python_version_parts(const char *python, unsigned *major, unsigned *minor) must_check;

#endif
