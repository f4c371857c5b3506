/* The variables of a manifest: declared in `vars`, set by an entry of `matrix` or by --var, and
 * expanded in the strings of the merged document. */
#ifndef BUILDER_VARS_H
#define BUILDER_VARS_H

#include "builder/manifest.h"
#include "builder/schema.h"
#include "builder/value.h"

struct var {
	const char *name;
	const struct value *declared;
	const struct value *given; /* the value; NULL: it has none, which has been said */
};

struct vars {
	struct arena *arena;
	struct var *v;
	size_t n;
	size_t room; /* bytes that expanding may still make */
};

/* Every variable of root and its value: that of --var, of the matrix's entry (NULL: none), or its
 * default. Wrong ones are complained about in their document; those of --var are USAGE. */
int vars_init(struct vars *vars, struct arena *a, const struct value *root,
	const struct value *entry, const struct pairs *given, struct err *e) must_check;

/* Expand ${name} in all strings of the document that k reads. A value that is nothing but ${name}
 * gets the variable's type, where its key is not text. Nothing is expanded twice: what a variable
 * brings is never read as another. */
void vars_expand(struct vars *vars, struct value *root, const struct key *k);

#endif
