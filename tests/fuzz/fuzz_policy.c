/* Any text as a policy: refused with a place, or every name gets a rule, and every rule can be
 * followed. */
#include <assert.h>

#include "base/str.h"
#include "images/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct policy *p, const struct policy_rule *r)
{
	assert(r->where && r->action <= POLICY_SIGNED);
	assert((r->action == POLICY_SIGNED) == (r->nkeys + r->nidentities > 0));
	if (r->action == POLICY_SIGNED)
		assert(r->threshold >= 1 && r->threshold <= r->nkeys + r->nidentities);
	for (size_t i = 0; i < r->nidentities; i++)
		assert(r->identities[i] < p->nidentities && p->identities[r->identities[i]].issuer);
	for (size_t i = 0; i < r->nkeys; i++)
		assert(r->keys[i] < p->nkeys && p->keys[r->keys[i]].file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct policy p;
	struct err e = {0};

	if (policy_parse(&p, "p.json", data, size, &e) < 0) {
		assert(e.kind == ERR_USAGE && str_starts(e.text, "p.json:"));
		return 0;
	}
	for (size_t i = 0; i < p.nrules; i++)
		check(&p, &p.rules[i]);
	check(&p, &p.otherwise);
	check(&p, policy_find(&p, "r.example/team/app"));
	policy_close(&p);
	return 0;
}
