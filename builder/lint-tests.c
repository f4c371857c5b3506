/* Tests that prove nothing. */
#include "builder/lint-parts.h"

#include <string.h>

#include "base/str.h"

static bool takes_all(const struct test_expect *x)
{
	static const char *const all[] = {"", ".*", "^", "$", "^.*$", NULL};

	if (x->equals || x->has_number_at_least || x->njson || x->exit)
		return false;
	if (x->matches && !lint_listed(x->matches, all))
		return false;
	for (size_t i = 0; i < x->contains.n; i++)
		if (*x->contains.v[i])
			return false;
	return true;
}

static const char *exec_never_fails(struct lint_pass *p, const struct manifest_test *t)
{
	static const char *const shrugs[] = {
		"|| true", "|| :", "||true", "||:", "; true", "; exit 0", "; :", NULL};
	const char *text = lint_join(p, &t->argv);

	if (!takes_all(&t->expect))
		return NULL;
	if (str_ends(text, "/true") || str_eq(text, "true"))
		return "its program always succeeds";
	for (size_t i = 0; shrugs[i]; i++)
		if (strstr(text, shrugs[i]))
			return "its script hides that it failed";
	return NULL;
}

static const char *http_never_fails(const struct manifest_test *t)
{
	bool good = false, bad = false;

	for (size_t i = 0; i < t->expect.nstatus; i++) {
		good = good || t->expect.status[i] < 400;
		bad = bad || t->expect.status[i] >= 500;
	}
	return good && bad ? "it takes the status of a broken server, too" : NULL;
}

static bool metadata_is_empty(const struct test_expect *x)
{
	return !(x->env.n || x->labels.n || x->entrypoint.n || x->cmd.n || x->ports.n || x->user ||
		 x->workdir);
}

static bool knows_no_rule(const struct strings *rules)
{
	for (size_t i = 0; i < rules->n; i++)
		if (lint_rule((int)strtoul(rules->v[i] + 2, NULL, 10)))
			return false;
	return rules->n > 0;
}

static const char *never_fails(struct lint_pass *p, const struct manifest_test *t)
{
	static const char *const every[] = {"*", "**", NULL};

	switch (t->type) {
	case TEST_EXEC:
		return exec_never_fails(p, t);
	case TEST_HTTP:
		return http_never_fails(t);
	case TEST_METADATA:
		return metadata_is_empty(&t->expect) ? "it expects nothing" : NULL;
	case TEST_SIZE:
		return t->expect.max_bytes || t->expect.max_layers ? NULL : "it has no limit";
	case TEST_PYTHON_GUARD:
		return p->m->python.guard.n ? NULL : "python.guard is empty";
	case TEST_LINT:
		return knows_no_rule(&t->rules) ? "none of its rules exists" : NULL;
	case TEST_ELF:
		for (size_t i = 0; i < t->expect.allow_unresolved.n; i++)
			if (lint_listed(t->expect.allow_unresolved.v[i], every))
				return "it allows every library to be missing";
		return NULL;
	default:
		return NULL;
	}
}

void lint_150(struct lint_pass *p)
{
	for (size_t i = 0; i < p->m->ntests; i++) {
		const struct manifest_test *t = &p->m->tests[i];
		const char *why = never_fails(p, t), *at = lint_text(p, "/tests/%zu", i);

		if (why && !t->disabled)
			lint_found(p, at, NULL, "the test '%s' cannot fail: %s", t->id, why);
		if (!t->required && !t->disabled)
			lint_found(p, lint_text(p, "%s/required", at), "true",
				"when the test '%s' fails or is skipped, the image is fine", t->id);
	}
}

void lint_151(struct lint_pass *p)
{
	for (size_t i = 0; i < p->m->ntests; i++)
		if (p->m->tests[i].disabled)
			lint_found(p, lint_text(p, "/tests/%zu/disabled", i), "false",
				"the test '%s' is not run", p->m->tests[i].id);
}

void lint_152(struct lint_pass *p)
{
	if (!p->m->ntests)
		lint_found(p, "", "tests", "nothing shows that the image works");
}

void lint_153(struct lint_pass *p)
{
	size_t run = 0, gpu = 0;

	for (size_t i = 0; i < p->m->ntests; i++) {
		run += p->m->tests[i].stage == STAGE_RUN;
		gpu += p->m->tests[i].stage == STAGE_RUN && p->m->tests[i].needs_gpu;
	}
	if (run && run == gpu)
		lint_found(p, "/tests", "one with \"mode\": \"cpu\"",
			"where there is no GPU, nothing of the image is run");
}
