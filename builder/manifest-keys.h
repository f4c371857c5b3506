/* The language svrun.image/1 as tables. docs/manifest.md and manifests/schema.json say the same; a
 * test compares. */
#ifndef BUILDER_MANIFEST_KEYS_H
#define BUILDER_MANIFEST_KEYS_H

#include "builder/document.h"
#include "builder/schema.h"

/* Reads into struct manifest. */
extern const struct schema manifest_schema;

/* What is left when the tables have been read: rules between keys, secrets. Tolerates what the
 * tables refused. */
void manifest_check(struct reader *r, const struct manifest *m);

#endif
