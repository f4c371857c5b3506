/* Any bytes as a loader's cache: refused, or what is written from it reads as the same, in order,
 * with what was added first of its name, and without what was dropped. */
#include <assert.h>

#include "base/str.h"
#include "gpu/ldcache.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct ld_entry ours = {
	"libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1", 0x303, 0};

static void check(struct ldcache *c)
{
	const char *dropped = "/lib";
	struct buf out = BUF_INIT(LDCACHE_MAX), again = BUF_INIT(LDCACHE_MAX);
	struct ldcache got, second;
	size_t first = 0;

	ldcache_drop(c, &(struct strings){&dropped, 1});
	if (ldcache_write(c, &ours, 1, &out, NULL) < 0)
		return; /* larger than a cache may be: one text may be many entries' */
	assert(ldcache_read(&got, out.data, out.len, NULL) == 0);
	assert(got.n == c->n + 1 && got.nhwcaps == c->nhwcaps);
	while (first < got.n && !str_eq(got.v[first].path, ours.path))
		first++;
	assert(first < got.n);
	if (first)
		assert(!str_eq(got.v[first - 1].soname, ours.soname) ||
			got.v[first - 1].flags > ours.flags);
	for (size_t i = 0; i < got.n; i++)
		assert(!ldcache_lies_in(got.v[i].path, dropped));
	assert(ldcache_read(&second, out.data, out.len, NULL) == 0);
	assert(ldcache_write(&second, NULL, 0, &again, NULL) == 0);
	assert(again.len == out.len && memcmp(again.data, out.data, out.len) == 0);
	ldcache_fini(&got);
	ldcache_fini(&second);
	buf_fini(&out);
	buf_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *text = mem_alloc(size + 1);
	struct ldcache c;
	struct err e = {0};

	memcpy(text, data, size);
	if (ldcache_read(&c, text, size, &e) == 0)
		check(&c);
	else
		assert(e.kind == ERR_CORRUPT);
	ldcache_fini(&c);
	return 0;
}
