/* Rules between the keys of tests. */
#include "builder/manifest-check.h"

#include <string.h>

#include "base/str.h"

static const struct belongs types[] = {
	{"file", {NULL}, {"argv", "request", "port", "rules", "after"}},
	{"metadata", {"expect"}, {"argv", "request", "port", "rules", "after", "path", "paths"}},
	{"lint", {NULL}, {"argv", "request", "port", "after", "path", "paths", "expect"}},
	{"elf", {NULL}, {"argv", "request", "port", "rules", "after"}},
	{"python-guard", {NULL},
		{"argv", "request", "port", "rules", "after", "path", "paths", "expect"}},
	{"exec", {"argv"}, {"request", "port", "rules", "path", "paths"}},
	{"http", {"request"}, {"argv", "port", "rules", "path", "paths"}},
	{"port", {"port"}, {"argv", "request", "rules", "path", "paths", "expect"}},
	{"size", {"expect"}, {"argv", "request", "port", "rules", "after"}},
};

/* What each type looks at: those that run a container are of the stage "run". */
static bool stage_fits(const struct manifest_test *t)
{
	switch (t->type) {
	case TEST_EXEC:
	case TEST_HTTP:
	case TEST_PORT:
		return t->stage == STAGE_RUN;
	case TEST_LINT:
	case TEST_SIZE:
	case TEST_METADATA:
	case TEST_PYTHON_GUARD:
		return t->stage != STAGE_RUN;
	default:
		return t->stage == STAGE_IMAGE;
	}
}

/* Is it what the document says, and not a default? */
static bool has_stage(const struct manifest_test *t, const char *word)
{
	static const char *const words[] = {"plan", "image", "run"};

	return word && str_eq(word, words[t->stage]);
}

static bool has_mode(const struct manifest *m, const char *name)
{
	for (size_t i = 0; i < m->nmodes; i++)
		if (str_eq(m->modes[i].name, name))
			return true;
	return false;
}

static void check_test(struct reader *r, const struct manifest *m, size_t i, const json_t *test)
{
	const struct manifest_test *t = &m->tests[i];
	const json_t *request = json_object_get(test, "request");

	check_point(r, "/tests/%zu", i);
	check_belongs(r, test, "type", types, sizeof(types) / sizeof(types[0]));
	if (json_object_get(test, "path") && json_object_get(test, "paths"))
		reader_fault(r, "path", (struct fault){.code = SV_CONFLICT, .at_key = true},
			"'path' and 'paths' say the same");
	if (t->type == TEST_FILE && json_is_object(test) && !json_object_get(test, "path") &&
		!json_object_get(test, "paths"))
		reader_fault(r, "path", (struct fault){.code = SV_MISSING}, "missing key 'path'");
	if (has_stage(t, json_string_value(json_object_get(test, "stage"))) &&
		json_object_get(test, "type") && !stage_fits(t))
		reader_fault(r, "stage", (struct fault){.code = SV_CONFLICT},
			"not a stage in which a test of this type can run");
	if (t->mode && !has_mode(m, t->mode))
		reader_fault(r, "mode", (struct fault){.code = SV_CONFLICT},
			"the manifest has no mode '%s'", t->mode);
	if (json_object_get(request, "body") && json_object_get(request, "json"))
		reader_fault(r, "request", (struct fault){.code = SV_CONFLICT},
			"'body' and 'json' of one request");
	if (t->expect.absent && (t->expect.type || t->expect.mode || t->expect.owner ||
					t->expect.target || t->expect.has_sha256))
		reader_fault(r, "expect", (struct fault){.code = SV_CONFLICT},
			"a file that is absent has nothing else");
}

void check_tests(struct reader *r, const struct manifest *m, const json_t *root)
{
	const json_t *tests = json_object_get(root, "tests");
	auto_json json_t *ids = json_object();

	for (size_t i = 0; i < m->ntests; i++) {
		check_point(r, "/tests/%zu/id", i);
		check_unique(r, ids, "id", m->tests[i].id);
		check_test(r, m, i, json_array_get(tests, i));
	}
}
