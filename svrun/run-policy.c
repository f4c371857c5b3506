#include "svrun/run-policy.h"

#include <stdlib.h>

#include "base/str.h"
#include "images/policy.h"
#include "svrun/run-pull.h"

/* The rule for an image: 1 when its signatures count, 0 when it may run, -1. tested: it was let
 * through before. That may be for a test: whether a rule is for the name it will have elsewhere, or
 * only the default is left, nobody knows yet. */
static int ask(const struct config *c, struct store *s, const struct digest *d, const char *ref,
	bool tested, char **name, struct err *e)
{
	const struct policy_rule *rule;
	struct policy p;
	int rc;

	if (policy_open(&p, c, e) < 0)
		return -1;
	rc = policy_name(s, ref, d, name, e);
	if (rc == 0) {
		rule = policy_find(&p, *name);
		rc = tested && rule == &p.otherwise ? 0 : policy_admits(&p, rule, *name, e);
		if (rc == 0)
			rc = rule->action == POLICY_SIGNED;
	}
	policy_close(&p);
	return rc;
}

/* svrun-image has libcrypto's signatures, and says itself what it found. */
static int check_signatures(const char *name, const char *digest, struct err *e)
{
	const char *const words[] = {
		"svrun", "image", "verify-signature", "--policy", "--as", name, digest, NULL};
	int status = run_helper(words, e);

	if (status <= 0)
		return status;
	return err_set(e, ERR_DENIED, "the site's policy does not let it run");
}

static int check(
	const struct run_options *o, const struct config *c, struct store *s, struct err *e)
{
	auto_free char *name = NULL;
	char text[DIGEST_TEXT + 1];
	struct digest d;
	int rc;

	if (run_find(o, c, s, &d, e) < 0)
		return -1;
	digest_text(&d, text);
	rc = ask(c, s, &d, o->image, false, &name, e);
	if (rc > 0)
		rc = check_signatures(name, text, e);
	if (rc == 0)
		setenv(RUN_ADMITTED, text, 1);
	return rc;
}

int run_policy(const struct run_options *o, struct err *e)
{
	struct config c;
	struct store s;
	int rc;

	if (getenv(RUN_ADMITTED))
		return 0;
	if (config_load(&c, e) < 0)
		return -1;
	rc = !c.policy ? 0 : store_open(&s, c.root, false, e);
	if (rc == 0 && c.policy) {
		rc = check(o, &c, &s, e);
		store_close(&s);
	}
	config_fini(&c);
	return rc;
}

int run_policy_confirm(const struct run_options *o, const struct config *c, struct store *s,
	const struct digest *d, struct err *e)
{
	const char *let_through = getenv(RUN_ADMITTED);
	auto_free char *name = NULL;
	char text[DIGEST_TEXT + 1];
	bool same = let_through && str_eq(let_through, digest_text(d, text));
	int rc;

	if (!c->policy)
		return 0;
	rc = ask(c, s, d, o->image, same, &name, e);
	if (rc > 0)
		rc = same ? 0
			  : err_set(e, ERR_DENIED,
				    "the name %s was given to another image in the meantime",
				    o->image);
	unsetenv(RUN_ADMITTED);
	return rc;
}
