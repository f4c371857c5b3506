/* The config.json of a step. */
#ifndef BUILDER_SANDBOX_SPEC_H
#define BUILDER_SANDBOX_SPEC_H

#include "builder/sandbox-folder.h"
#include "runtime/passwd.h"

/* Where the step's mounts go, links of the tree followed, so that none is made in a place that
 * would count as written. */
struct sandbox_targets {
	struct arena arena;
	struct strings points;       /* for sandbox_folder_overlay() */
	const char **binds, **files; /* one for each of the step's */
};

/* Errors: USAGE (not an absolute clean path). */
int sandbox_targets_make(struct sandbox_targets *t, const struct sandbox_step *step,
	struct tree *tree, struct err *e) must_check;
void sandbox_targets_fini(struct sandbox_targets *t);

struct sandbox_request {
	const struct sandbox_step *step;
	const struct sandbox_folder *folder;
	const struct sandbox_targets *targets;
	const struct passwd_ids *ids;
	uint64_t max_bytes; /* of one file */
};
/* The caller owns it. */
json_t *sandbox_spec(const struct sandbox_request *r);

#endif
