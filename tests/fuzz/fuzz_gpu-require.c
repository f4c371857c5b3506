/* Any bytes as an image's word about GPUs: lines of its environment, and behind an empty line its
 * label run.svrun.gpu. What is taken is a verdict that is JSON; what is not is told. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "gpu/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LINES_MAX = 32 };

static const struct gpu_probe no_probe;

/* "12.8" of the text's grammar is met or not by a version, whatever else is in it. */
static void check_value(const char *value)
{
	static const struct gpu_properties old = {"9.0", "384.81", "3.7", "tesla"},
					   fresh = {"13.0", "580.95.05", "12.0", "geforce"};
	const char *why = NULL;
	struct err e = {0};
	int a = gpu_require_value(value, &old, &why, &e);
	int b = gpu_require_value(value, &fresh, &why, NULL);

	assert((a < 0) == (b < 0)); /* malformed for all, or for none */
	assert((a < 0) == (e.kind == ERR_CORRUPT));
}

static void check_label(const json_t *label, const struct strings *env, const struct gpu_grants *g)
{
	static struct gpu_mig mig = {.gi = 1};
	static struct gpu_device v[] = {{.index = 0, .bus = "0000:01:00.0", .model = "NVIDIA A10G"},
		{.index = 1,
			.bus = "0000:02:00.0",
			.model = "NVIDIA H200",
			.migs = &mig,
			.nmigs = 1},
		{.maker = GPU_MAKER_AMD, .bus = "0000:03:00.0", .arch = "gfx942", .vram = 1 << 30}};
	const struct gpu_inventory i = {.v = v, .n = 3, .driver = "580.95.05"};
	struct gpu_verdict verdict;
	struct err e = {0};

	if (gpu_require(&verdict, label, env, &i, &no_probe, g, &e) < 0) {
		assert(e.kind == ERR_CORRUPT);
		return;
	}

	auto_json json_t *o = gpu_verdict_json(&verdict);

	assert(o && json_array_size(json_object_get(o, "needs")) == verdict.n);
	assert((gpu_verdict_check(&verdict, &e) < 0) == (verdict.unmet > 0));
	gpu_verdict_fini(&verdict);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *text = mem_alloc(size + 1);
	const char *lines[LINES_MAX];
	struct strings env = {lines, 0};
	struct gpu_grants none = {0};
	char *s = text, *end;
	auto_json json_t *label = NULL;

	memcpy(text, data, size);
	while (env.n < LINES_MAX && *s && *s != '\n') {
		end = s + strcspn(s, "\n");
		lines[env.n++] = s;
		s = *end ? end + 1 : end;
		*end = '\0';
		check_value(lines[env.n - 1]);
	}
	if (*s == '\n')
		label = json_parse(s + 1, strlen(s + 1), NULL);
	check_label(label, &env, NULL);
	check_label(label, &env, &none);
	return 0;
}
