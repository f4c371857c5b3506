/* Any text as pylock.toml: what is locked of it has a name, a digest and an address that stays
 * where it should; a complaint has a code. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "builder/pylock.h"
#include "builder/toml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_wheel(const struct lock_wheel *w)
{
	assert(python_name_is_normal(w->name) && w->why.n > 0);
	assert(str_starts(w->url, "https://") || str_starts(w->url, "mirror:") ||
		str_starts(w->url, "file:"));
	if (str_starts(w->url, "file:"))
		assert(w->url[5] != '/' && !str_starts(w->url + 5, "../") &&
			!strstr(w->url + 5, "/../"));
}

/* What was read is JSON, and reads again as what it is. */
static void check_toml(const char *text, size_t size)
{
	auto_json json_t *j = toml_parse("x", text, size, NULL), *again = NULL;
	auto_buf struct buf b = BUF_INIT(64 << 20);

	if (!j)
		return;
	json_text(j, true, &b);
	again = json_loadb(b.data, b.len, 0, NULL);
	assert(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a = {0};
	const struct python_platform p = {
		.major = 3, .minor = 11, .glibc_major = 2, .glibc_minor = 36, .machine = "x86_64"};
	struct python_target t = {.a = &a,
		.python = "3.11",
		.libc = "glibc 2.36",
		.env = {.python_version = "3.11", .machine = "x86_64", .extra = ""}};
	struct wheel_list out = {0};
	struct err e = {0};

	t.tags = python_tags(&p, &a);
	check_toml((const char *)data, size);
	if (pylock_read(&t, "pylock.toml", "deps", (const char *)data, size, size % 8 == 1, &out,
		    &e) < 0)
		assert(e.kind != ERR_SYSTEM && e.kind != ERR_NONE && strstr(e.text, "SV"));
	else
		for (size_t i = 0; i < out.n; i++)
			check_wheel(&out.v[i]);
	free(out.v);
	arena_fini(&a);
	return 0;
}
