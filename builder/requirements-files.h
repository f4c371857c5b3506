/* A requirements file and those that it includes: "-r base.txt", "-c constraints.txt". Paths are
 * relative to the file that names them and stay in the manifest's folder.
 * Source: pip's "Requirements File Format". */
#ifndef BUILDER_REQUIREMENTS_FILES_H
#define BUILDER_REQUIREMENTS_FILES_H

#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"

struct requirements_text {
	const char *name; /* relative to the manifest, clean */
	const char *text;
	size_t n;
};

struct requirements_files {
	struct requirements_text *v; /* [0] is the file itself; each once */
	size_t n;
};

/* Is python.lock such a file? Else it is a pylock.toml. */
bool requirements_are(const char *path);

/* Read path, which is beside the manifest in dir, and what it includes, into the arena. Errors:
 * those of local_open(), DENIED (leads out), CORRUPT (SV054: more than 64 files, or 32 MiB in all);
 * all name the file and the line. */
int requirements_files(struct requirements_files *f, struct arena *a, const char *dir,
	const char *path, struct err *e) must_check;

/* The path that a line includes ("-r X", "--constraint=X"), or NULL; *limits: by -c. */
const char *requirements_include(const char *line, bool *limits);
/* A path that stands in the file `name`, relative to the manifest; not made clean. */
char *requirements_path(struct arena *a, const char *name, const char *path);

#endif
