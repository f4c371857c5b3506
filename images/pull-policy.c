#include "images/pull-policy.h"

#include "base/sys.h"
#include "images/attached.h"
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

/* The index stays with the image: without it, its signatures say nothing of the image. */
static int keep_index(
	struct store *s, const struct digest *manifest, const struct digest *index, struct err *e)
{
	char text[DIGEST_TEXT + 1];
	uint64_t size;
	auto_json json_t *descriptor = NULL;
	auto_fd int fd = store_blob_open(s, index, &size, e);

	if (fd < 0)
		return -1;
	descriptor = json_pack("{s:s, s:s, s:I}", "mediaType", OCI_INDEX_TYPE, "digest",
		digest_text(index, text), "size", (json_int_t)size);
	return attached_add(s, manifest, descriptor, e);
}

int pull_policy_check(const struct pull_policy *p, struct registry *r, struct store *s,
	const struct digest *manifest, const struct digest *index, struct err *e)
{
	if (!p->rule || p->rule->action != POLICY_SIGNED)
		return 0;
	if (referrers_fetch(r, s, manifest, e) < 0)
		return -1;
	if (index && (referrers_fetch(r, s, index, e) < 0 || keep_index(s, manifest, index, e) < 0))
		return -1;
	return policy_verify(&p->policy, p->rule, s, p->name, manifest, e);
}
