/* Which layer carries which object. Source: manifest.md 3.5. */
#ifndef BUILDER_GROUP_H
#define BUILDER_GROUP_H

#include "builder/compose.h"
#include "images/layer.h"

/* One layer to write: the objects assigned to it with all their parent folders, in tree order. */
struct group {
	struct layer layer; /* id, codec and level are set */
	struct node **nodes;
	size_t n;
	uint64_t bytes; /* of file data */
};

struct groups {
	struct arena arena; /* of whiteouts */
	struct group *v;
	size_t n;
	size_t first; /* number of v[0] in the image: the base's layers come before */
};

/* Cut a composed tree into layers by the manifest's build.layers:
 *   groups  the first "path:" pattern that matches decides, else the first pattern for the object's
 *           origin; what no group wants goes to debs, python, node, sources, state, files, one
 *           layer for each model and one for each run step
 *   origin  one layer for each of the biggest source packages, one for the other debs, then as
 *           above
 *   single  everything but the models in one layer; with build.squash the models, too
 * Layers of steps come after all others, in the order of the steps. What the base brought stays
 * where it is; a path of the base that is gone is a whiteout in the last of the layers. Groups that
 * end up empty are dropped. USAGE when there would be more than max layers. */
int group_tree(struct groups *g, struct composed *c, const struct manifest_build *b,
	struct err *e) must_check;
void groups_fini(struct groups *g);

/* Which layer each origin's objects go to, as far as that is known without the objects: for plans.
 * All in the arena. by_path: paths decide, too, what is in it. */
struct group_slots {
	const char **ids;
	uint32_t *of_origin;
	bool *by_path;
	size_t n;
};
void group_slots(struct group_slots *out, struct composed *c, const struct manifest_build *b,
	struct arena *a);

#endif
