/* Any text: what is locked of a package-lock.json is sorted and safe to place, and a complaint has
 * a place and no control characters. */
#include <assert.h>
#include <string.h>

#include "base/str.h"
#include "builder/npm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_package(const struct lock_npm *n)
{
	uint8_t digest[64];
	int rc = npm_check_path(n->path, NULL) | npm_integrity(n->integrity, digest, NULL);

	assert(rc == 0 && npm_is_name(n->name) && npm_is_name(npm_path_name(n->path)));
	assert(str_starts(n->url, "mirror:npm/") && str_ends(n->url, ".tgz"));
	assert(!strstr(n->url, "/../") && !strpbrk(n->url + strlen("mirror:"), ":?#% "));
	for (size_t i = 0; i < n->bin.n; i++) {
		rc = npm_check_bin(&n->bin.v[i], NULL);
		assert(rc == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *globs[] = {"dev", "optional:*x*"};
	const struct strings omit = {globs, size % 3};
	struct lock l = {.platform = "linux/amd64"};
	struct err e = {0};

	if (npm_lock_parse(&l, &omit, "p.json", data, size, &e) < 0) {
		assert(e.kind == ERR_CORRUPT || e.kind == ERR_UNSUPPORTED);
		assert(str_starts(e.text, "p.json:"));
	} else {
		for (size_t i = 0; i < l.nnpms; i++) {
			check_package(&l.npms[i]);
			assert(i == 0 || strcmp(l.npms[i - 1].path, l.npms[i].path) < 0);
		}
	}
	arena_fini(&l.arena);
	return 0;
}
