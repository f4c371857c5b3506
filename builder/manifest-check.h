/* Parts of manifest_check(). */
#ifndef BUILDER_MANIFEST_CHECK_H
#define BUILDER_MANIFEST_CHECK_H

#include "builder/manifest-keys.h"

/* The pointer of the next fault. */
void check_point(struct reader *r, const char *fmt, ...) printf_like(2, 3);
/* Complain at the current pointer when `key` is in `seen` (an object), where it is put with it. */
void check_unique(struct reader *r, json_t *seen, const char *what, const char *key);
/* Who has it already, or NULL; nothing is said. */
const char *check_taken(struct reader *r, json_t *seen, const char *key);

/* Which keys an object must have, and which it must not, when the one called `key` has a value. */
struct belongs {
	const char *type;
	const char *needs[6], *never[10];
};
void check_belongs(struct reader *r, const json_t *object, const char *key,
	const struct belongs *table, size_t n);
/* Exactly one of two keys. */
void check_either(struct reader *r, const json_t *object, const char *a, const char *b);

/* manifest-check-inputs.c */
void check_inputs(struct reader *r, const struct manifest *m, const json_t *root);
/* manifest-check-serve.c */
void check_serve(struct reader *r, const struct manifest *m, const json_t *root);
/* manifest-check-tests.c */
void check_tests(struct reader *r, const struct manifest *m, const json_t *root);

#endif
