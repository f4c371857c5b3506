/* Stanzas of "Field: value" lines, as in a package's control file and apt's lists. Nothing is
 * copied: values point into the text. Source: deb-control(5), deb822(5). */
#ifndef BUILDER_CONTROL_H
#define BUILDER_CONTROL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/mem.h"

struct slice {
	const char *p;
	size_t n;
};

/* Take the next stanza off *text (advanced behind it); false at the end. */
bool control_next(struct slice *text, struct slice *stanza);

/* The field's value, its continuation lines included, without the space around it; p is NULL when
 * there is none. Names compare without case. */
struct slice control_field(struct slice stanza, const char *name);

/* The same as a copy; NULL when there is none. */
char *control_str(struct arena *a, struct slice stanza, const char *name);

/* Take the next line, or the next piece up to sep, off *text; false at the end. White space around
 * a piece is dropped. */
bool slice_line(struct slice *text, struct slice *line);
bool slice_piece(struct slice *text, char sep, struct slice *piece);
struct slice slice_trim(struct slice s);
bool slice_eq(struct slice s, const char *text);
bool slice_starts(struct slice s, const char *prefix);
struct slice slice_of(const char *text);

/* Is text one well-formed stanza: names before colons, no empty line, no NUL? CORRUPT names the
 * line. */
int control_check(struct slice text, struct err *e) must_check;

#endif
