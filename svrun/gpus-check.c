/* Which GPUs one start gets: those that fit, that nobody else has, and that the image agrees to. */
#include "svrun/gpus-private.h"

#include <inttypes.h>

#include "base/str.h"

uint32_t gpus_required(const json_t *label)
{
	const char *mode = json_string_value(json_object_get(label, "mode"));
	const json_t *count = json_object_get(label, "count");
	json_int_t n = json_integer_value(json_object_get(count, "default"));

	if (!mode || !str_eq(mode, "required"))
		return 0;
	if (n < 1)
		n = json_integer_value(json_object_get(count, "min"));
	return n >= 1 && n <= GPUS_MAX ? (uint32_t)n : 1;
}

/* Is this requirement one of all GPUs together? */
static bool is_of_all(const struct gpus *g, const char *what)
{
	const char *per =
		json_string_value(json_object_get(json_object_get(g->label, "vramGiB"), "per"));

	return str_starts(what, "count") || str_starts(what, "interconnect") ||
	       (str_starts(what, "vramGiB") && per && str_eq(per, "total"));
}

/* Could a number be made of this one, among others? */
static bool fits(void *ctx, const struct gpu_grant *x)
{
	const struct gpus *g = ctx;
	struct gpu_grant copy = *x;
	struct gpu_grants one = {&copy, 1};
	struct gpu_verdict v;
	bool ok = true;

	if (gpu_require(&v, g->label, &g->env, &g->inventory, &g->probe, &one, NULL) < 0)
		return true; /* what is wrong with it is said when it is checked */
	for (size_t i = 0; i < v.n; i++)
		ok = ok && (v.v[i].met || is_of_all(g, v.v[i].what));
	gpu_verdict_fini(&v);
	return ok;
}

static int check(struct gpus *g, const struct gpu_grants *grants, struct err *e)
{
	struct gpu_verdict v;
	int rc;

	if (gpu_require(&v, g->label, &g->env, &g->inventory, &g->probe, grants, e) < 0)
		return -1;
	rc = gpu_verdict_check(&v, e);
	gpu_verdict_fini(&v);
	return rc;
}

/* Each of all the host's GPUs; how many of them there are is nobody's wish. */
static int check_each(struct gpus *g, const struct gpu_grants *all, struct err *e)
{
	struct gpu_verdict v;
	int rc;

	if (gpu_require(&v, g->label, &g->env, &g->inventory, &g->probe, all, e) < 0)
		return -1;
	for (size_t i = 0; i < v.n; i++)
		if (!v.v[i].met && str_starts(v.v[i].what, "count")) {
			v.v[i].met = true;
			v.unmet--;
		}
	rc = gpu_verdict_check(&v, e);
	gpu_verdict_fini(&v);
	return rc;
}

/* What the host's GPUs lack, as far as it is known what is required. */
static int check_host(struct gpus *g, struct err *e)
{
	struct gpu_grants all = {0};
	size_t cap = 0;
	int rc = check(g, NULL, e);

	for (size_t i = 0; i < g->inventory.n; i++) {
		if (g->inventory.v[i].excluded)
			continue;
		mem_grow(&all.v, &cap, all.n);
		all.v[all.n++] = (struct gpu_grant){.device = &g->inventory.v[i]};
	}
	if (rc == 0 && all.n)
		rc = check_each(g, &all, e);
	free(all.v);
	return rc;
}

bool gpus_of_windows(const struct gpus *g)
{
	return g->request.all && g->inventory.dxg && !g->grants.n;
}

int gpus_take(struct gpus *g, struct err *e)
{
	const char *within = getenv(GPU_ALLOCATION_ENV);
	struct gpu_reserve_terms terms = {
		.who = g->who, .within = within && *within ? within : NULL, .fits = fits, .ctx = g};
	struct err why = {0};

	if (gpu_reserve(&g->held, &g->host, &g->inventory, &g->request, &terms, &g->grants, &why) <
		0) {
		/* not enough that fit: the reader wants to know what they lack */
		bool few = g->request.count && why.kind == ERR_NOT_FOUND && g->inventory.n;

		if (few && check_host(g, e) < 0)
			return -1;
		if (e)
			*e = why;
		return -1;
	}
	if (gpus_of_windows(g)) {
		if (gpus_required(g->label))
			warn("WSL2: whether the GPUs are what the image needs cannot be told here");
		return 0;
	}
	if (check(g, &g->grants, e) < 0)
		return -1;
	return gpu_wishes_narrow(&g->wishes, &g->inventory, &g->grants, e);
}
