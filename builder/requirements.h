/* requirements.txt, pinned: 'NAME==VERSION --hash=sha256:HEX ...', as pip-compile and `uv pip
 * compile --generate-hashes` write it. Source: pip's "Requirements File Format". */
#ifndef BUILDER_REQUIREMENTS_H
#define BUILDER_REQUIREMENTS_H

#include <stdbool.h>

#include "images/digest.h"
#include "builder/marker.h"
#include "builder/requirements-files.h"

struct pinned {
	const char *name, *version; /* normal forms; NULL: what `path` is */
	const char *path;           /* "./wheels/x.whl": beside the manifest; or NULL */
	struct strings extras;      /* of "NAME[EXTRA]", in their normal form */
	struct digest *hashes;      /* sha256: one of these */
	size_t nhashes;
	struct strings why; /* what a "# via" behind it says; packages only */
	const char *file;   /* where it stands */
	size_t line;
};

/* What a line of a file of -c allows. */
struct requirement_limit {
	const char *name, *specifiers, *file;
	size_t line;
};

struct requirements {
	struct pinned *v; /* those whose markers hold, in the order of the file */
	size_t n, cap;
	struct requirement_limit *limits;
	size_t nlimits, limits_cap;
	struct strings folders; /* --find-links: folders, relative to the manifest */
	bool no_index;          /* only these */
};

/* Strings are made in the arena. Each file of f is read once, where it is included first. CORRUPT,
 * USAGE: SV051 (something to build), SV053 (not pinned, or without sha256), SV054 (an option or a
 * line that is not taken), as "name:line". */
int requirements_read(struct requirements *r, struct arena *a, const struct marker_env *env,
	const struct requirements_files *f, struct err *e) must_check;
/* The limit that forbids a version, or NULL. */
const struct requirement_limit *requirements_forbid(
	const struct requirements *r, const char *name, const char *version);
void requirements_fini(struct requirements *r);

#endif
