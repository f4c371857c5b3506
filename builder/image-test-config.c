/* Tests of the image's config. Source: image-spec config.md. */
#include "builder/image-test.h"

#include <stdio.h>

#include "base/str.h"

enum { SHOWN_MAX = 600 };

static const char *text_of(const json_t *config, const char *key)
{
	const char *s = json_string_value(json_object_get(config, key));

	return s ? s : "";
}

/* "A=B" of Env, or of the variables that are expanded at start; NULL: it is not set. */
static char *env_value(const json_t *config, const char *name)
{
	const char *label = json_string_value(
		json_object_get(json_object_get(config, "Labels"), RUNTIME_ENV_LABEL));
	auto_json json_t *late = label ? json_parse(label, strlen(label), NULL) : NULL;
	const char *value = json_string_value(json_object_get(late, name));
	size_t i, n = strlen(name);
	const json_t *v;

	if (value)
		return mem_strdup(value);
	json_array_foreach (json_object_get(config, "Env"), i, v) {
		const char *pair = json_string_value(v);

		if (pair && strncmp(pair, name, n) == 0 && pair[n] == '=')
			return mem_strdup(pair + n + 1);
	}
	return NULL;
}

static void check_value(struct test_result *r, const char *what, const char *name,
	const char *found, const char *expected)
{
	if (!found)
		test_fail(r, "%s %.200s is not set, expected '%.600s'", what, name, expected);
	else if (!str_eq(found, expected))
		test_fail(
			r, "%s %.200s is '%.600s', expected '%.600s'", what, name, found, expected);
}

static void check_pairs(struct test_result *r, const json_t *config)
{
	const struct test_expect *want = &r->test->expect;
	const json_t *labels = json_object_get(config, "Labels");

	for (size_t i = 0; i < want->env.n; i++) {
		auto_free char *found = env_value(config, want->env.v[i].name);

		check_value(r, "variable", want->env.v[i].name, found, want->env.v[i].value);
	}
	for (size_t i = 0; i < want->labels.n; i++)
		check_value(r, "label", want->labels.v[i].name,
			json_string_value(json_object_get(labels, want->labels.v[i].name)),
			want->labels.v[i].value);
}

static void check_list(struct test_result *r, const char *what, const json_t *found,
	const struct strings *expected)
{
	auto_json json_t *want = json_array(), *nothing = json_array();
	const json_t *have = json_is_array(found) ? found : nothing;
	auto_buf struct buf a = BUF_INIT(16 << 20), b = BUF_INIT(16 << 20);

	if (expected->n == 0)
		return;
	for (size_t i = 0; i < expected->n; i++)
		json_array_append_new(want, json_string_nocheck(expected->v[i]));
	if (json_equal(want, have))
		return;
	json_text(have, true, &a);
	json_text(want, true, &b);
	test_fail(r, "%s is %.*s, expected %.*s", what, SHOWN_MAX, a.data, SHOWN_MAX, b.data);
}

static void check_text(
	struct test_result *r, const char *what, const char *found, const char *expected)
{
	if (expected && !str_eq(found, expected))
		test_fail(r, "%s is '%.600s', expected '%.600s'", what, found, expected);
}

void test_metadata(struct test_result *r, const json_t *document)
{
	const json_t *config = json_object_get(document, "config");
	const struct test_expect *want = &r->test->expect;

	check_pairs(r, config);
	check_list(r, "entrypoint", json_object_get(config, "Entrypoint"), &want->entrypoint);
	check_list(r, "cmd", json_object_get(config, "Cmd"), &want->cmd);
	check_text(r, "user", text_of(config, "User"), want->user);
	check_text(r, "workdir", text_of(config, "WorkingDir"), want->workdir);
	for (size_t i = 0; i < want->ports.n; i++)
		if (!json_object_get(json_object_get(config, "ExposedPorts"), want->ports.v[i]))
			test_fail(r, "port %s is not exposed", want->ports.v[i]);
}
