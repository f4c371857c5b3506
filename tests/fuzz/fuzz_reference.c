/* Any text as a reference: refused with a reason, or printed in a form that means the same. What
 * has no host may mean something through a site's short names, within the same limits. */
#include <assert.h>
#include <string.h>

#include "base/str.h"
#include "images/reference.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool same(const struct reference *a, const struct reference *b)
{
	return str_eq(a->host, b->host) && str_eq(a->path, b->path) && str_eq(a->tag, b->tag) &&
	       a->has_digest == b->has_digest && digest_eq(&a->digest, &b->digest);
}

static void check_print(const struct reference *r)
{
	char text[REFERENCE_TEXT], again[REFERENCE_TEXT];
	struct reference back;
	int rc = reference_parse_name(&back, reference_text(r, text), NULL);

	assert(rc == 0 && same(r, &back));
	assert(str_eq(reference_text(&back, again), text));
	assert((r->host[0] != '\0') == reference_has_host(text));
	for (const char *p = text; *p; p++)
		assert(*p > ' ' && *p <= '~');
}

static void check_expand(const char *text)
{
	auto_free char *path = mem_strdup("site");
	struct config c = {.path = path,
		.short_names = json_pack("{s:{s:s}, s:[s,s]}", "aliases", "a", "r.example/b",
			"search", "one.example", "[::1]:5000/lib")};
	struct reference v[2];
	struct err e = {0};
	size_t n;

	if (reference_expand(&c, text, v, 2, &n, &e) < 0) {
		assert(e.kind == ERR_USAGE);
	} else {
		assert(n >= 1 && n <= 2);
		for (size_t i = 0; i < n; i++) {
			assert(v[i].host[0]);
			check_print(&v[i]);
		}
	}
	json_decref(c.short_names);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *text = mem_alloc(size + 1);
	char host[REFERENCE_HOST], again[REFERENCE_HOST];
	struct reference r;
	struct err e = {0};
	int rc;

	memcpy(text, data, size);
	if (reference_parse_name(&r, text, &e) < 0)
		assert(e.kind == ERR_USAGE && e.text[0] && e.hint[0]);
	else
		check_print(&r);
	rc = reference_parse(&r, text, NULL);
	assert(rc < 0 || r.host[0]);
	if (reference_host(text, host, NULL) == 0) {
		rc = reference_host(host, again, NULL);
		assert(rc == 0 && str_eq(host, again));
	}
	check_expand(text);
	return 0;
}
