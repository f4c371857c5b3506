/* YAML text as the JSON document that it stands for, as far as configuration files need it: one
 * document, no anchors, aliases, tags or merge keys, no key twice in a mapping, UTF-8 only. A
 * scalar is a text, quoted or not, whatever YAML 1.1 makes of "no", "0" or "1e3"; only where the
 * reader says so it is a number or a truth value. Hostile: depth and the number of values have
 * limits, and time is linear in the text. Source: YAML 1.2, chapters 3.2 and 10.2; libyaml. */
#ifndef GPU_YAML_H
#define GPU_YAML_H

#include <jansson.h>

#include "base/err.h"
#include "base/mem.h"

struct yaml_limits {
	size_t depth, values;
	/* Keys whose plain scalars (those of a list below them, too) may be numbers and true or
	 * false; ends with NULL. Numbers are decimal, 0x hexadecimal, 0o or 0 octal. */
	const char *const *typed;
};

/* The caller owns the document. Errors: CORRUPT, "name:line:col: message". A plain null, ~ or
 * nothing at all is null. */
json_t *yaml_parse(const char *name, const char *text, size_t n, const struct yaml_limits *l,
	struct err *e) must_check;

/* Line and column (from 1) of the value at a JSON pointer in a text that yaml_parse() took; the
 * nearest existing ancestor answers for a missing one. */
void yaml_locate(const char *text, size_t n, const char *pointer, int *line, int *col);

/* A document as YAML text that every reader understands: texts quoted, two spaces a level.
 * (yaml-write.c, so that who only reads does not link it.) */
void yaml_text(const json_t *doc, struct buf *b);

#endif
