/* The merge rules of the language (docs/manifest.md "Inheritance").
 *
 *   objects merge deep, scalars replace; an array's objects with an "id" that both have merge, its
 *   other elements are appended (a text once, in lists that are sets); {"$replace": ...} takes the
 *   place of what was inherited; {"$remove": [...]} takes elements with these ids or texts, or
 *   members with these names, out of it
 *
 * A mode is merged in the same way, but for arrays, which replace. */
#ifndef BUILDER_MERGE_H
#define BUILDER_MERGE_H

#include "builder/schema.h"
#include "builder/value.h"

struct merge {
	struct arena *arena;
	bool mode;    /* arrays replace */
	bool literal; /* inside `modes`: "$replace" and "$remove" are kept until it is applied */
};

/* `over` on top of `under` (NULL: nothing was inherited), both read by k. Complaints go to the
 * documents' reports. The result's place is that of `over`, where both are there. */
struct value *merge_values(
	struct merge *m, struct value *under, struct value *over, const struct key *k);

/* The modes that nobody asked for, as they could be read: "$replace" is what it holds, what is
 * removed is empty. */
void merge_settle_modes(struct merge *m, struct value *modes, const struct key *k);

#endif
