#include "images/pull-policy.h"

#include "images/referrers.h"

int pull_policy_open(struct pull_policy *p, const struct config *c, const char *name, struct err *e)
{
	*p = (struct pull_policy){.name = name};
	if (!c->policy)
		return 0;
	if (policy_open(&p->policy, c, e) < 0)
		return -1;
	p->rule = policy_find(&p->policy, name);
	if (policy_admits(&p->policy, p->rule, name, e) == 0)
		return 0;
	pull_policy_close(p);
	return -1;
}

void pull_policy_close(struct pull_policy *p)
{
	policy_close(&p->policy);
	*p = (struct pull_policy){0};
}

int pull_policy_check(const struct pull_policy *p, struct registry *r, struct store *s,
	const struct digest *manifest, const struct buf *index, struct err *e)
{
	if (!p->rule || p->rule->action != POLICY_SIGNED)
		return 0;
	if (referrers_fetch(r, s, manifest, e) < 0)
		return -1;
	if (index && referrers_fetch_index(r, s, manifest, index->data, index->len, e) < 0)
		return -1;
	return policy_verify(&p->policy, p->rule, s, p->name, manifest, e);
}
