/* Names of Python packages, and of their wheels.
 * Source: PEP 503 (normal form), PEP 508 (names), PyPA "Binary distribution format" (file names).
 */
#ifndef BUILDER_PYTHON_NAME_H
#define BUILDER_PYTHON_NAME_H

#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"

enum { PYTHON_NAME_MAX = 200 };

/* The normal form of a name of n bytes ("Foo.Bar_" is none, "Foo.Bar" is "foo-bar"); NULL: it is no
 * name. */
char *python_name_normal(struct arena *a, const char *name, size_t n);
/* Do two names mean the same package? What is no name is like nothing. */
bool python_same_name(const char *a, const char *b);
/* Is it a name in its normal form? */
bool python_name_is_normal(const char *name);

/* "NAME-VERSION(-BUILD)?-PYTHON-ABI-PLATFORM.whl" */
struct wheel_name {
	const char *name, *version;          /* normal forms */
	const char *build;                   /* "1abc", or NULL */
	const char *python, *abi, *platform; /* compressed sets: "py2.py3" */
};

/* Strings are made in the arena. CORRUPT: SV174. */
int wheel_name_parse(
	struct wheel_name *w, struct arena *a, const char *file, struct err *e) must_check;

#endif
