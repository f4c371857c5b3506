/* Any text as requirements.txt: what is taken of it is pinned and has a digest; a complaint has its
 * line and a code. */
#include <assert.h>
#include <string.h>

#include "base/str.h"
#include "builder/pep440.h"
#include "builder/python-name.h"
#include "builder/requirements.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a = {0};
	const struct marker_env env = {.python_version = "3.11",
		.python_full_version = "3.11.2",
		.machine = "x86_64",
		.extra = ""};
	/* it may include itself, and be its own limits */
	struct requirements_text text = {"r.txt", (const char *)data, size};
	const struct requirements_files f = {&text, 1};
	struct requirements r;
	struct err e = {0};

	text.text = arena_strndup(&a, text.text, size);
	if (requirements_read(&r, &a, &env, &f, &e) < 0) {
		assert(e.kind == ERR_CORRUPT || e.kind == ERR_USAGE || e.kind == ERR_UNSUPPORTED);
		assert(strstr(e.text, "r.txt:") && strstr(e.text, "SV05"));
	} else {
		for (size_t i = 0; i < r.n; i++) {
			assert(r.v[i].nhashes > 0);
			assert(r.v[i].path || (python_name_is_normal(r.v[i].name) &&
						      pep440_same(r.v[i].version, r.v[i].version)));
		}
		for (size_t i = 0; i < r.nlimits; i++)
			assert(!requirements_forbid(&r, "", "1"));
		requirements_fini(&r);
	}
	arena_fini(&a);
	return 0;
}
