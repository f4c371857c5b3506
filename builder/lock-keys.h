/* The lock svrun.lock/1 as tables, and the order of its lists. */
#ifndef BUILDER_LOCK_KEYS_H
#define BUILDER_LOCK_KEYS_H

#include "builder/lock.h"
#include "builder/schema.h"

/* Reads into struct lock. */
extern const struct schema lock_schema;

/* Every list is sorted and holds nothing twice. */
void lock_check_order(struct reader *r, const struct lock *l);

/* For qsort(): of struct lock_index, lock_deb, lock_npm, lock_wheel, lock_source, lock_model,
 * model_file, lock_file. */
int lock_index_compare(const void *a, const void *b);
int lock_deb_compare(const void *a, const void *b);
int lock_npm_compare(const void *a, const void *b);
int lock_wheel_compare(const void *a, const void *b);
int lock_source_compare(const void *a, const void *b);
int lock_model_compare(const void *a, const void *b);
int lock_model_file_compare(const void *a, const void *b);
int lock_file_compare(const void *a, const void *b);

#endif
