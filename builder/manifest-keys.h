/* The language svrun.image/1 as tables. docs/manifest.md and manifests/schema.json say the same; a
 * test compares. */
#ifndef BUILDER_MANIFEST_KEYS_H
#define BUILDER_MANIFEST_KEYS_H

#include "builder/document.h"
#include "builder/schema.h"

/* Reads into struct manifest. `from` is resolve.c's, which also has the values of `vars`. */
extern const struct schema manifest_schema;

/* Its parts: manifest-keys-inputs.c, -steps.c, -serve.c, -tests.c, -build.c. */
extern const struct schema base_schema, apt_schema, python_schema, node_schema, source_schema,
	file_schema, dir_schema, link_schema, user_schema, user_group_schema;
extern const struct schema model_schema, run_schema;
extern const struct schema service_schema, port_schema, volume_schema, gpu_schema, resources_schema,
	health_schema;
extern const struct schema test_schema;
extern const struct schema var_schema, matrix_schema, input_schema, preset_schema, build_schema;

/* What is left when the tables have been read: rules between keys, secrets. Tolerates what the
 * tables refused. */
void manifest_check(struct reader *r, const struct manifest *m);

#endif
