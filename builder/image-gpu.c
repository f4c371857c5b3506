#include "builder/image-gpu.h"

#include <string.h>

#include "base/str.h"

enum { TEXT_MAX = 1 << 20 };

static void put(const struct manifest *m, json_t *env, const char *name, const char *value)
{
	for (size_t i = 0; i < m->env.n; i++)
		if (str_eq(m->env.v[i].name, name))
			return;
	json_array_append_new(env, json_sprintf("%s=%s", name, value));
}

static void also(struct buf *b, const char *property, const char *relation, const char *value)
{
	if (value)
		buf_printf(b, "%s%s%s%s", b->len ? "," : "", property, relation, value);
}

/* All of these at once, with CUDA's version or, where the driver brings CUDA's libraries along, the
 * driver's. */
static void put_floor(const struct manifest_gpu *g, bool cuda, bool driver, struct buf *b)
{
	if (cuda) {
		also(b, "cuda", ">=", g->cuda_min);
		also(b, "cuda", "<=", g->cuda_max);
	}
	if (driver)
		also(b, "driver", ">=", g->driver_min);
	also(b, "arch", ">=", g->cc_min);
	also(b, "arch", "<=", g->cc_max);
}

/* One alternative for each brand. */
static void put_alternatives(const struct manifest_gpu *g, bool cuda, bool driver, struct buf *out)
{
	auto_buf struct buf floor = BUF_INIT(TEXT_MAX);

	put_floor(g, cuda, driver, &floor);
	for (size_t i = 0; i < g->brands.n; i++)
		buf_printf(out, "%s%s%sbrand=%s", out->len ? " " : "", floor.len ? floor.data : "",
			floor.len ? "," : "", g->brands.v[i]);
	if (!g->brands.n && floor.len)
		buf_printf(out, "%s%s", out->len ? " " : "", floor.data);
}

void image_gpu_env(const struct manifest *m, json_t *env)
{
	const struct manifest_gpu *g = &m->gpu;
	auto_buf struct buf words = BUF_INIT(TEXT_MAX), require = BUF_INIT(64 * (size_t)TEXT_MAX);

	if (!g->present || g->mode == GPU_NONE || (g->vendor != GPU_ANY && g->vendor != GPU_NVIDIA))
		return;
	for (size_t i = 0; i < g->capabilities.n; i++)
		buf_printf(&words, "%s%s", i ? "," : "", g->capabilities.v[i]);
	if (g->forward_compat && g->cuda_min && g->driver_min) {
		put_alternatives(g, true, false, &require);
		put_alternatives(g, false, true, &require);
	} else {
		put_alternatives(g, true, true, &require);
	}
	put(m, env, "NVIDIA_VISIBLE_DEVICES", "all");
	put(m, env, "NVIDIA_DRIVER_CAPABILITIES", words.len ? words.data : "compute,utility");
	if (require.len)
		put(m, env, "NVIDIA_REQUIRE_CUDA", require.data);
}
