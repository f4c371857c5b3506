/* The simple commands of a shell script, in the order of its text, without running any: how the
 * built-in configuration learns what a maintainer script would ask update-alternatives for.
 *
 * Quotes, continued lines, here-documents and comments are understood; variables that were set to
 * literal words, and `for` loops over literal words, are followed. Conditions are not: every branch
 * is read. What is not known (arguments, command substitution) marks its command as unknown.
 * Source: POSIX XCU 2. */
#ifndef BUILDER_SCRIPT_H
#define BUILDER_SCRIPT_H

#include "builder/manifest.h"

struct script;

/* text must stay. */
struct script *script_new(const char *text, size_t n);
void script_free(struct script *s);

struct command {
	struct strings words; /* at least one; live as long as the script */
	bool unknown;         /* some word holds something that is not known */
};

/* The next command; false at the end, or after 100,000 commands. */
bool script_next(struct script *s, struct command *c);

#endif
