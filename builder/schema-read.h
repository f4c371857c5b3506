/* Parts of builder/schema.c. */
#ifndef BUILDER_SCHEMA_READ_H
#define BUILDER_SCHEMA_READ_H

#include "builder/schema.h"

/* Read the value v of a kind that holds no other values; out is the field, or NULL when it isn't
 * kept. */
void schema_read_scalar(struct reader *r, const struct key *k, const json_t *v, void *out);

void reader_wrong_type(struct reader *r, const char *expected, const json_t *got);

#endif
