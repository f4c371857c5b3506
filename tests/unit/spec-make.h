/* A small config; tests replace parts of it and say what comes of that. */
#ifndef SPEC_MAKE_H
#define SPEC_MAKE_H

#include "tests/unit/test.h"

#include "base/str.h"
#include "runtime/spec.h"

static const char spec_base[] =
	"{\"ociVersion\": \"1.3.0\","
	" \"process\": {\"user\": {\"uid\": 7, \"gid\": 8, \"additionalGids\": [8, 9]},"
	"   \"args\": [\"sh\", \"-c\", \"true\"], \"env\": [\"A=1\"], \"cwd\": \"/work\"},"
	" \"root\": {\"path\": \"rootfs\", \"readonly\": true},"
	" \"hostname\": \"h\","
	" \"mounts\": [{\"destination\": \"/proc\", \"type\": \"proc\", \"source\": \"proc\"}],"
	" \"linux\": {\"namespaces\": [{\"type\": \"mount\"}, {\"type\": \"pid\"}, {\"type\": "
	"\"uts\"}]}}";

/* The base with the members of `patch`, which has ' for ", set in the member `where` ("" is the
 * top). */
static json_t *spec_patched(const char *where, const char *patch)
{
	struct err e = {0};
	json_t *json = json_parse(spec_base, strlen(spec_base), &e), *at = json, *p;
	char *text = mem_strdup(patch);

	for (char *c = text; *c; c++)
		if (*c == '\'')
			*c = '"';
	p = json_parse(text, strlen(text), &e);
	if (!p)
		fail_msg("%s: %s", patch, e.text);
	free(text);
	if (*where)
		at = json_object_get(json, where);
	assert_int_equal(json_object_update(at, p), 0);
	json_decref(p);
	return json;
}

/* Read the base with the patch. */
static __attribute__((unused)) void accept(struct spec *s, const char *where, const char *patch)
{
	struct err e = {0};
	json_t *json = spec_patched(where, patch);

	if (spec_read(s, json, "c.json", &e) < 0)
		fail_msg("%s: %s", patch, e.text);
	json_decref(json);
}

struct refusal {
	const char *where, *patch;
	enum err_kind kind;
	const char *text; /* after "c.json: " */
};

static __attribute__((unused)) void refuse_all(const struct refusal *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct err e = {0};
		struct spec s;
		json_t *json = spec_patched(v[i].where, v[i].patch);

		if (spec_read(&s, json, "c.json", &e) == 0)
			fail_msg("accepted: %s", v[i].patch);
		if (e.kind != v[i].kind || strncmp(e.text, "c.json: ", 8) != 0 ||
			!str_eq(e.text + 8, v[i].text))
			fail_msg("%s:\nexpected %s\ngot      %s", v[i].patch, v[i].text, e.text);
		json_decref(json);
	}
}
#define REFUSE_ALL(v) refuse_all(v, sizeof(v) / sizeof((v)[0]))

#endif
