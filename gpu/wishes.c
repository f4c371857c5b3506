/* What an image's environment says about the GPUs that its container was given. */
#include "gpu/request.h"

#include <string.h>

#include "base/str.h"
#include "gpu/view.h"

enum { NAMES_MAX = 4096 };

const char *gpu_env_value(const struct strings *env, const char *name)
{
	size_t n = strlen(name);

	for (size_t k = env->n; k > 0; k--)
		if (strncmp(env->v[k - 1], name, n) == 0 && env->v[k - 1][n] == '=')
			return env->v[k - 1] + n + 1;
	return NULL;
}

/* The words between commas, blanks around them left out, empty ones too. */
static int split(
	struct gpu_wishes *w, const char *name, const char *text, struct strings *to, struct err *e)
{
	for (const char *s = text; s;) {
		size_t n = strcspn(s, ","), k = n;
		const char *from = s;

		s = s[n] ? s + n + 1 : NULL;
		while (k && (*from == ' ' || *from == '\t')) {
			from++;
			k--;
		}
		while (k && (from[k - 1] == ' ' || from[k - 1] == '\t'))
			k--;
		if (!k)
			continue;
		if (to->n == NAMES_MAX)
			return err_set(
				e, ERR_CORRUPT, "%s has more than %d words", name, NAMES_MAX);
		if (!to->v)
			to->v = arena_alloc(&w->mem, NAMES_MAX * sizeof(*to->v));
		to->v[to->n++] = arena_strndup(&w->mem, from, k);
	}
	return 0;
}

static bool has(const struct strings *l, const char *word)
{
	for (size_t k = 0; k < l->n; k++)
		if (str_eq(l->v[k], word))
			return true;
	return false;
}

bool gpu_image_is_old(const struct strings *env)
{
	const char *cuda = gpu_env_value(env, "CUDA_VERSION"),
		   *require = gpu_env_value(env, "NVIDIA_REQUIRE_CUDA");

	return cuda && *cuda && (!require || !*require);
}

static int read_visible(struct gpu_wishes *w, const struct strings *env, struct err *e)
{
	static const char name[] = "NVIDIA_VISIBLE_DEVICES";
	const char *value = gpu_env_value(env, name);

	if (!value && gpu_image_is_old(env))
		value = "all";
	if (value && split(w, name, value, &w->visible, e) < 0)
		return -1;
	if (!w->visible.n || has(&w->visible, "void")) {
		w->nothing = true;
		w->visible.n = 0;
	} else if (has(&w->visible, "all")) {
		w->visible.n = 0;
	} else if (has(&w->visible, "none")) {
		w->none = true;
		w->visible.n = 0;
	}
	return 0;
}

static int read_capabilities(struct gpu_wishes *w, const struct strings *env, struct err *e)
{
	static const char name[] = "NVIDIA_DRIVER_CAPABILITIES";
	const char *value = gpu_env_value(env, name);
	struct err why = {0};

	w->caps = GPU_CAP_UTILITY | GPU_CAP_COMPUTE;
	if (!value && gpu_image_is_old(env)) {
		w->caps = GPU_CAP_ALL;
		return 0;
	}
	if (!value || !*value)
		return 0;
	/* The fault is the image's, not the caller's. */
	if (gpu_capabilities_parse(value, &w->caps, &why) < 0)
		return err_set(e, ERR_CORRUPT, "%s: %s", name, why.text);
	return 0;
}

static bool enabled(const struct strings *env, const char *name)
{
	const char *value = gpu_env_value(env, name);

	return value && str_eq(value, "enabled");
}

static bool wanted(const struct strings *env, const char *name)
{
	const char *value = gpu_env_value(env, name);

	return value && *value && !str_eq(value, "void") && !str_eq(value, "none");
}

int gpu_wishes_read(struct gpu_wishes *w, const struct strings *env, struct err *e)
{
	const char *imex = gpu_env_value(env, "NVIDIA_IMEX_CHANNELS");

	*w = (struct gpu_wishes){0};
	if (read_visible(w, env, e) < 0 || read_capabilities(w, env, e) < 0 ||
		(imex && split(w, "NVIDIA_IMEX_CHANNELS", imex, &w->imex, e) < 0)) {
		gpu_wishes_fini(w);
		return -1;
	}
	w->gds = enabled(env, "NVIDIA_GDS");
	w->gdrcopy = enabled(env, "NVIDIA_GDRCOPY");
	w->mofed = enabled(env, "NVIDIA_MOFED");
	w->nvswitch = enabled(env, "NVIDIA_NVSWITCH");
	w->mig_config = wanted(env, "NVIDIA_MIG_CONFIG_DEVICES");
	w->mig_monitor = wanted(env, "NVIDIA_MIG_MONITOR_DEVICES");
	return 0;
}

void gpu_wishes_fini(struct gpu_wishes *w)
{
	arena_fini(&w->mem);
	*w = (struct gpu_wishes){0};
}

/* ---- narrowing ---- */

/* What x stands for of g: itself, or a MIG device of a whole GPU. */
static bool covered(const struct gpu_grants *g, const struct gpu_grant *x)
{
	for (size_t k = 0; k < g->n; k++)
		if (g->v[k].device == x->device && (!g->v[k].mig || g->v[k].mig == x->mig))
			return true;
	return false;
}

static bool is_in(const struct gpu_grants *g, const struct gpu_grant *x)
{
	for (size_t k = 0; k < g->n; k++)
		if (g->v[k].device == x->device && g->v[k].mig == x->mig)
			return true;
	return false;
}

static int denied(const char *names, struct err *e)
{
	err_set(e, ERR_DENIED,
		"the image asks by NVIDIA_VISIBLE_DEVICES for GPUs that were not given to it: %s",
		names);
	return err_hint(e, "give them with --gpus, or change what it asks for: --env "
			   "NVIDIA_VISIBLE_DEVICES=all is all that were given");
}

/* The makers stand one behind the other: NVIDIA's GPUs alone, as its variable counts them. */
static struct gpu_inventory of_nvidia(const struct gpu_inventory *i)
{
	struct gpu_inventory part = {.v = i->v, .driver = i->driver};

	while (part.n < i->n && i->v[part.n].maker == GPU_MAKER_NVIDIA)
		part.n++;
	return part;
}

/* Others' GPUs are not what the variable is about: they stay. */
static void keep(struct gpu_grants *g, const struct gpu_grant *named, size_t n)
{
	struct gpu_grant *v = mem_array(g->n + n + 1, sizeof(*v));
	size_t kept = n;

	memcpy(v, named, n * sizeof(*v));
	for (size_t k = 0; k < g->n; k++)
		if (g->v[k].device->maker != GPU_MAKER_NVIDIA)
			v[kept++] = g->v[k];
	free(g->v);
	*g = (struct gpu_grants){v, kept};
}

int gpu_wishes_narrow(const struct gpu_wishes *w, const struct gpu_inventory *i,
	struct gpu_grants *g, struct err *e)
{
	static const char kind[] = "nvidia.com/gpu=";
	auto_buf struct buf foreign = BUF_INIT(1 << 20);
	auto_free struct gpu_grant *v = mem_array(w->visible.n + 1, sizeof(*v));
	const struct gpu_inventory part = of_nvidia(i);
	struct gpu_grants named = {v, 0};

	if (w->nothing || (!w->none && !w->visible.n))
		return 0;
	for (size_t k = 0; k < w->visible.n; k++) {
		const char *name = w->visible.v[k];
		struct gpu_grant one = {0};
		char shown[STR_SHOWN];

		name += str_starts(name, kind) ? strlen(kind) : 0;
		if (str_eq(name, "all"))
			return 0;
		if (gpu_name_match(&part, name, &one, NULL) <= 0 || !covered(g, &one)) {
			if (foreign.len < 512)
				buf_printf(&foreign, "%s%s", foreign.len ? ", " : "",
					str_shown(name, shown));
		} else if (!is_in(&named, &one)) {
			v[named.n++] = one;
		}
	}
	if (foreign.len)
		return denied(foreign.data, e);
	keep(g, v, named.n);
	return 0;
}
