/* Any ranges of ids: accepted exactly when the kernel could take them, and then every id inside has
 * one outside. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/idmap.h"
#include "runtime/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX = 64 };

static bool disjoint(uint64_t a, uint64_t b, uint64_t na, uint64_t nb)
{
	return a + na <= b || b + nb <= a;
}

static bool fits(const uint32_t v[][3], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (v[i][2] == 0 || (uint64_t)v[i][0] + v[i][2] > UINT32_MAX ||
			(uint64_t)v[i][1] + v[i][2] > UINT32_MAX)
			return false;
		for (size_t k = 0; k < i; k++)
			if (!disjoint(v[i][0], v[k][0], v[i][2], v[k][2]) ||
				!disjoint(v[i][1], v[k][1], v[i][2], v[k][2]))
				return false;
	}
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t n = size / sizeof(uint32_t[3]);
	struct arena mem = {0};
	const struct at at = {NULL, "c", 0, json_array(), &mem};
	uint32_t v[MAX][3];
	struct spec_idmaps m = {0};
	struct err e = {0};

	n = n < MAX ? n : MAX;
	if (n)
		memcpy(v, data, n * sizeof(v[0]));
	for (size_t i = 0; i < n; i++)
		json_array_append_new(
			at.v, json_pack("{s:I, s:I, s:I}", "containerID", (json_int_t)v[i][0],
				      "hostID", (json_int_t)v[i][1], "size", (json_int_t)v[i][2]));
	if (spec_idmaps(&at, &m, &e) < 0) {
		assert(e.kind == ERR_CORRUPT && !fits((const uint32_t(*)[3])v, n));
	} else {
		assert(fits((const uint32_t(*)[3])v, n) && m.n == n);
		for (size_t i = 0; i < n; i++) {
			assert(idmap_host(&m, v[i][0]) == v[i][1]);
			assert(idmap_host(&m, v[i][0] + v[i][2] - 1) ==
				(int64_t)v[i][1] + v[i][2] - 1);
		}
	}
	json_decref(at.v);
	arena_fini(&mem);
	return 0;
}
