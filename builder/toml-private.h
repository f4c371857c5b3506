/* Inside of the TOML reader: the text being read, and what its values are made of. Only toml*.c
 * include this. */
#ifndef BUILDER_TOML_PRIVATE_H
#define BUILDER_TOML_PRIVATE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"

struct toml {
	const char *name, *start, *at, *end;
	unsigned depth;
	json_t *root, *table; /* table: where "key = value" goes */
	struct err *e;
};

/* CORRUPT with the place where the text is being read. */
int toml_bad(const struct toml *s, const char *what);
/* The next character; NUL at the end, which is nowhere else. */
char toml_peek(const struct toml *s);
bool toml_starts(const struct toml *s, const char *text);
bool toml_take(struct toml *s, const char *text);
bool toml_take_newline(struct toml *s);
void toml_skip_blanks(struct toml *s);
bool toml_is_control(char c);
/* May it stand in a key without quotes? */
bool toml_is_bare(char c);

/* A string in quotes of any kind, appended to out; three quotes only where they may be. */
int toml_take_string(struct toml *s, bool may_be_multi, struct buf *out) must_check;
/* A number, a boolean, a date or a time; NULL with an error. */
json_t *toml_take_plain(struct toml *s) must_check;

#endif
