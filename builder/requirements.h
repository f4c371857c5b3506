/* requirements.txt, pinned: 'NAME==VERSION --hash=sha256:HEX ...', as pip-compile and `uv pip
 * compile --generate-hashes` write it. Source: pip's "Requirements File Format". */
#ifndef BUILDER_REQUIREMENTS_H
#define BUILDER_REQUIREMENTS_H

#include <stdbool.h>

#include "images/digest.h"
#include "builder/marker.h"

struct pinned {
	const char *name, *version; /* normal forms; NULL: what `path` is */
	const char *path;           /* "./wheels/x.whl": beside the file; or NULL */
	struct digest *hashes;      /* sha256: one of these */
	size_t nhashes;
	struct strings why; /* what a "# via" behind it says; packages only */
	size_t line;
};

struct requirements {
	struct pinned *v; /* those whose markers hold, in the order of the file */
	size_t n, cap;
	struct strings folders; /* --find-links: folders beside the file */
	bool no_index;          /* only these */
};

/* Strings are made in the arena. CORRUPT, USAGE: SV051 (something to build), SV053 (not pinned, or
 * without sha256), SV054 (an option or a line that is not taken), as "name:line". */
int requirements_read(struct requirements *r, struct arena *a, const struct marker_env *env,
	const char *name, const char *text, size_t n, struct err *e) must_check;
void requirements_fini(struct requirements *r);

#endif
