/* Environment markers, and the requirements that carry them: 'name[extra] >=1; os_name == "posix"'.
 * Pure functions of text; thread-safe.
 * Source: PEP 508 and its current form, PyPA "Dependency specifiers"; PEP 685 (names of extras);
 * PEP 751 ("extras" and "dependency_groups"). */
#ifndef BUILDER_MARKER_H
#define BUILDER_MARKER_H

#include "base/err.h"
#include "base/mem.h"

/* What an image's interpreter would say of itself. platform_release and platform_version are the
 * running kernel's, which an image has none of: markers that ask for them are refused. */
struct marker_env {
	const char *python_version;      /* "3.11" */
	const char *python_full_version; /* "3.11.2" */
	const char *machine;             /* "x86_64" */
	const char *extra;               /* the extra that is being looked at; "": none */
	struct strings extras, groups;   /* that are installed */
};

/* 1, 0, or -1 with SV054: CORRUPT, what is wrong and where; UNSUPPORTED, a variable of the running
 * kernel. */
int marker_holds(const char *text, const struct marker_env *env, struct err *e) must_check;

struct requirement {
	const char *name; /* normal form (PEP 503) */
	struct strings extras;
	const char *specifiers; /* "" takes every version */
	const char *url;        /* "name @ URL", or NULL */
	const char *marker;     /* or NULL */
};

/* Strings are made in the arena. CORRUPT: SV054. */
int requirement_parse(
	struct requirement *r, struct arena *a, const char *text, struct err *e) must_check;

#endif
