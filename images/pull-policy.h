/* The site's policy in a pull: asked by the name of the repository before anything is fetched, and
 * of the manifest before its layers are. Of a model's artifact, when all of it is here. */
#ifndef IMAGES_PULL_POLICY_H
#define IMAGES_PULL_POLICY_H

#include "images/policy.h"
#include "images/registry.h"

struct pull_policy {
	struct policy policy;
	const struct policy_rule *rule; /* NULL: there is no policy */
	const char *name;               /* borrowed */
};

/* name: "host/path" as it was asked for, whichever mirror answers. DENIED: not from there. */
int pull_policy_open(
	struct pull_policy *p, const struct config *c, const char *name, struct err *e) must_check;
void pull_policy_close(struct pull_policy *p);

/* Fetch and check the signatures of a manifest that the policy wants. index: the image index that
 * it was chosen from, a blob of the store, whose signatures count for it; or NULL. The pool is
 * held. DENIED names what was found. */
int pull_policy_check(const struct pull_policy *p, struct registry *r, struct store *s,
	const struct digest *manifest, const struct buf *index, struct err *e) must_check;

#endif
