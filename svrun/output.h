/* What commands print: sizes, JSON, text that came from outside. */
#ifndef SVRUN_OUTPUT_H
#define SVRUN_OUTPUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* "12.3 MiB" into out, which is returned. */
const char *output_size(uint64_t n, char out[32]);
/* --format table|json; NULL is a table. USAGE. */
int output_format(const char *format, bool *json, struct err *e) must_check;
/* options_parse() of a command that has no other option than that. */
struct command;
int output_options(
	const struct command *self, int argc, char **argv, bool *json, struct err *e) must_check;
void output_json(const json_t *j);
/* Text from an image, for a terminal, where control characters could drive it; to free(). */
char *output_plain(const char *text);

#endif
