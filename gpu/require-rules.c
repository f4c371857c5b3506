/* The rules that single GPUs meet or not. */
#include "gpu/require-parts.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"

static bool is_nvidia(const struct candidate *c)
{
	return c->grant.device->maker == GPU_MAKER_NVIDIA;
}

/* What NVIDIA's numbers are not asked of. */
static const char other[] = "not a GPU of NVIDIA";

/* ---- the label's ---- */

static int check_vendor(struct judge *j, const struct rule *r, const struct candidate *c,
	const char **found, const char **hint, struct err *e)
{
	(void)j;
	(void)hint;
	(void)e;
	*found = is_nvidia(c) ? "nvidia" : "amd";
	return str_eq(r->value, *found) ? GPU_YES : GPU_NO;
}

/* A GPU that is sold with 24 GiB has a little less: ECC takes a sixteenth of some, firmware a part
 * of all. 7 % cover both, and are less than the step to the next size. */
static bool is_enough(uint64_t mib, uint64_t gib)
{
	return mib * 100 >= gib * 1024 * 93;
}

static const char *gib_text(struct judge *j, uint64_t mib)
{
	return arena_printf(
		&j->v->mem, "%" PRIu64 ".%" PRIu64 " GiB", mib / 1024, mib % 1024 * 10 / 1024);
}

static int check_vram(struct judge *j, const struct rule *r, const struct candidate *c,
	const char **found, const char **hint, struct err *e)
{
	(void)r;
	(void)e;
	if (!c->facts.vram_mib) {
		*found = c->grant.mig ? "a MIG device of unknown memory" : "unknown memory";
		*hint = GPU_ASK_HINT;
		return GPU_UNKNOWN;
	}
	*found = gib_text(j, c->facts.vram_mib);
	return is_enough(c->facts.vram_mib, j->label.vram_min) ? GPU_YES : GPU_NO;
}

static const char *cc_text(struct judge *j, uint32_t cc)
{
	return cc ? arena_printf(&j->v->mem, "%u.%u", cc / 10, cc % 10) : NULL;
}

/* Compute capabilities are NVIDIA's: others have none to be too old. */
static int known_cc(
	struct judge *j, const struct candidate *c, const char **found, const char **hint)
{
	*found = is_nvidia(c) ? cc_text(j, c->facts.cc) : other;
	if (*found)
		return is_nvidia(c) ? GPU_YES : GPU_NO;
	*found = "unknown";
	*hint = GPU_ASK_HINT;
	return GPU_UNKNOWN;
}

static int check_cc_min(struct judge *j, const struct rule *r, const struct candidate *c,
	const char **found, const char **hint, struct err *e)
{
	int known = known_cc(j, c, found, hint);

	(void)e;
	if (known != GPU_YES)
		return known == GPU_NO ? GPU_YES : known;
	return str_version_compare(*found, r->value) >= 0 ? GPU_YES : GPU_NO;
}

static int check_cc_max(struct judge *j, const struct rule *r, const struct candidate *c,
	const char **found, const char **hint, struct err *e)
{
	int known = known_cc(j, c, found, hint);

	(void)e;
	if (known != GPU_YES)
		return known == GPU_NO ? GPU_YES : known;
	return str_version_compare(*found, r->value) <= 0 ? GPU_YES : GPU_NO;
}

/* Machine code runs from its minor number on within its major; PTX on everything later. */
static bool runs_on(const char *arch, const char *cc)
{
	bool ptx = str_ends(arch, "+PTX");
	char number[40];

	snprintf(number, sizeof(number), "%.*s", (int)strcspn(arch, "+"), arch);
	return str_version_compare(number, cc) <= 0 &&
	       (ptx || strtoul(number, NULL, 10) == strtoul(cc, NULL, 10));
}

static int check_archs(struct judge *j, const struct rule *r, const struct candidate *c,
	const char **found, const char **hint, struct err *e)
{
	int known = known_cc(j, c, found, hint);

	(void)r;
	(void)e;
	if (known != GPU_YES)
		return known == GPU_NO ? GPU_YES : known;
	for (size_t k = 0; k < j->label.archs.n; k++)
		if (runs_on(j->label.archs.v[k], *found))
			return GPU_YES;
	return GPU_NO;
}

static int check_driver(struct judge *j, const struct rule *r, const struct candidate *c,
	const char **found, const char **hint, struct err *e)
{
	(void)e;
	*found = !is_nvidia(c) ? other : j->i->driver ? j->i->driver : "an unknown driver";
	if (!is_nvidia(c))
		return GPU_YES;
	*hint = "a newer driver of NVIDIA has to be installed on the host";
	if (!j->i->driver)
		return GPU_UNKNOWN;
	return str_version_compare(j->i->driver, r->value) >= 0 ? GPU_YES : GPU_NO;
}

static void found_cuda(struct judge *j, const struct candidate *c, const char **found)
{
	*found = !is_nvidia(c) ? other
		 : j->cuda     ? arena_printf(&j->v->mem, "CUDA %s%s of driver %s", j->cuda,
                                     j->cuda_or_newer ? " or newer" : "", j->i->driver)
			       : "a driver of unknown CUDA";
}

static int check_cuda_min(struct judge *j, const struct rule *r, const struct candidate *c,
	const char **found, const char **hint, struct err *e)
{
	const struct gpu_label *l = &j->label;

	(void)e;
	found_cuda(j, c, found);
	if (!is_nvidia(c) || (j->cuda && str_version_compare(j->cuda, r->value) >= 0))
		return GPU_YES;
	/* With the image's own user-space driver, where the hardware takes one. */
	if (l->forward_compat && l->driver_min && c->facts.datacenter && j->i->driver &&
		str_version_compare(j->i->driver, l->driver_min) >= 0)
		return GPU_YES;
	*hint = j->cuda && !j->cuda_or_newer
			? "a newer driver of NVIDIA has to be installed on the host"
			: GPU_ASK_HINT;
	return j->cuda && !j->cuda_or_newer ? GPU_NO : GPU_UNKNOWN;
}

static int check_cuda_max(struct judge *j, const struct rule *r, const struct candidate *c,
	const char **found, const char **hint, struct err *e)
{
	(void)e;
	found_cuda(j, c, found);
	if (!is_nvidia(c))
		return GPU_YES;
	if (j->cuda && str_version_compare(j->cuda, r->value) > 0)
		return GPU_NO;
	if (j->cuda && !j->cuda_or_newer)
		return GPU_YES;
	*hint = GPU_ASK_HINT;
	return GPU_UNKNOWN;
}

static int check_brands(struct judge *j, const struct rule *r, const struct candidate *c,
	const char **found, const char **hint, struct err *e)
{
	(void)r;
	(void)e;
	*found = !is_nvidia(c) ? other : c->facts.brand ? c->facts.brand : "unknown";
	if (!is_nvidia(c))
		return GPU_YES;
	for (size_t k = 0; c->facts.brand && k < j->label.brands.n; k++)
		if (strcasecmp(j->label.brands.v[k], c->facts.brand) == 0)
			return GPU_YES;
	if (!c->facts.brand)
		*hint = "svrun does not know this model, and thus no brand of it";
	return c->facts.brand ? GPU_NO : GPU_UNKNOWN;
}

static int check_mig(struct judge *j, const struct rule *r, const struct candidate *c,
	const char **found, const char **hint, struct err *e)
{
	(void)j;
	(void)r;
	(void)hint;
	(void)e;
	*found = c->grant.mig ? "a MIG device" : "a whole GPU";
	return c->grant.mig ? GPU_NO : GPU_YES;
}

static const char *joined(struct judge *j, const struct strings *words)
{
	const char *text = "";

	for (size_t k = 0; k < words->n; k++)
		text = arena_printf(&j->v->mem, "%s%s%s", text, k ? ", " : "", words->v[k]);
	return text;
}

int judge_label(struct judge *j, struct err *e)
{
	const struct gpu_label *l = &j->label;
	struct arena *mem = &j->v->mem;
#define TEXT(...) arena_printf(mem, __VA_ARGS__)
	const struct {
		bool given;
		struct rule rule;
	} rules[] = {
		{!str_eq(l->vendor, "any"), {"vendor", l->vendor, l->vendor, check_vendor}},
		{l->vram_min && !l->vram_total,
			{"vramGiB.min", TEXT("%u GiB on each GPU", l->vram_min), NULL, check_vram}},
		{l->cc_min, {"computeCapability.min", TEXT("%s or later", l->cc_min), l->cc_min,
				    check_cc_min}},
		{l->cc_max, {"computeCapability.max", TEXT("%s or earlier", l->cc_max), l->cc_max,
				    check_cc_max}},
		{l->archs.n, {"archs", TEXT("a GPU that runs code for %s", joined(j, &l->archs)),
				     NULL, check_archs}},
		{l->driver_min && !(l->forward_compat && l->cuda_min),
			{"driver.min", TEXT("%s or later", l->driver_min), l->driver_min,
				check_driver}},
		{l->cuda_min, {"cuda.min", TEXT("CUDA %s or later", l->cuda_min), l->cuda_min,
				      check_cuda_min}},
		{l->cuda_max, {"cuda.max", TEXT("CUDA %s or earlier", l->cuda_max), l->cuda_max,
				      check_cuda_max}},
		{l->brands.n, {"brands", joined(j, &l->brands), NULL, check_brands}},
		{l->no_mig, {"mig", "a whole GPU", NULL, check_mig}},
	};
#undef TEXT

	for (size_t k = 0; k < sizeof(rules) / sizeof(rules[0]); k++)
		if (rules[k].given && judge_rule(j, &rules[k].rule, e) < 0)
			return -1;
	return 0;
}

/* ---- NVIDIA_REQUIRE_* ---- */

/* Would the driver's word on CUDA change the answer? It may have a newer one than is known here. */
static bool would_do(const char *value, struct gpu_properties p, bool or_newer)
{
	const char *why;

	p.cuda = "999.0";
	return or_newer && gpu_require_value(value, &p, &why, NULL) > 0;
}

static int check_require(struct judge *j, const struct rule *r, const struct candidate *c,
	const char **found, const char **hint, struct err *e)
{
	const struct gpu_properties p = {
		j->cuda, j->i->driver, cc_text(j, c->facts.cc), c->facts.brand};
	const char *why;
	struct err err = {0};
	int rc;

	if (!is_nvidia(c)) {
		*found = other;
		return str_eq(j->label.mode, "none") || !str_eq(j->label.vendor, "any") ? GPU_NO
											: GPU_YES;
	}
	rc = gpu_require_value(r->value, &p, &why, &err);
	if (rc < 0)
		return err_set(e, ERR_CORRUPT, "%s: %s", r->what, err.text);
	*found = arena_printf(&j->v->mem, "cuda %s%s, driver %s, arch %s, brand %s",
		p.cuda ? p.cuda : "unknown", j->cuda_or_newer ? " or newer" : "",
		p.driver ? p.driver : "unknown", p.arch ? p.arch : "unknown",
		p.brand ? p.brand : "unknown");
	if (rc > 0)
		return GPU_YES;
	*hint = p.cuda && p.arch && p.brand && !would_do(r->value, p, j->cuda_or_newer)
			? "NVIDIA_DISABLE_REQUIRE=true turns the check off"
			: GPU_ASK_HINT;
	return GPU_NO;
}

/* strconv.ParseBool, as the toolkit reads it. */
static bool is_true(const char *s)
{
	static const char *const words[] = {"1", "t", "T", "true", "TRUE", "True"};

	for (size_t k = 0; k < sizeof(words) / sizeof(words[0]); k++)
		if (str_eq(s, words[k]))
			return true;
	return false;
}

/* The last value of each variable counts. */
static bool is_last(const struct strings *env, size_t k, size_t name)
{
	for (size_t n = k + 1; n < env->n; n++)
		if (strncmp(env->v[n], env->v[k], name + 1) == 0)
			return false;
	return true;
}

/* A stranger's text for lines and JSON: short, and ASCII whatever it was. */
static const char *quoted(struct judge *j, const char *text)
{
	char shown[STR_SHOWN], *copy = arena_strdup(&j->v->mem, str_shown(text, shown));

	for (char *p = copy; *p; p++)
		if ((unsigned char)*p >= 0x80)
			*p = '?';
	return copy;
}

static int judge_value(struct judge *j, const char *name, const char *value, struct err *e)
{
	const struct rule r = {quoted(j, name), quoted(j, value), value, check_require};
	const char *why;
	struct err err = {0};

	/* Malformed is malformed, also on a host without a GPU to ask for. */
	if (gpu_require_value(value, &(struct gpu_properties){0}, &why, &err) < 0)
		return err_set(e, ERR_CORRUPT, "%s: %s", r.what, err.text);
	return judge_rule(j, &r, e);
}

/* CUDA_VERSION "10.2.89" of an image from before NVIDIA_REQUIRE_CUDA is cuda>=10.2. */
static int judge_old(struct judge *j, const char *version, struct err *e)
{
	size_t major, minor = 0;
	char value[64], shown[STR_SHOWN];

	version += *version == 'v';
	major = strspn(version, "0123456789");
	if (version[major] == '.')
		minor = strspn(version + major + 1, "0123456789");
	if (!major || major > 8 || minor > 8 || (version[major] == '.' && !minor))
		return err_set(e, ERR_CORRUPT, "CUDA_VERSION: '%s' is no version",
			str_shown(version, shown));
	snprintf(value, sizeof(value), "cuda>=%.*s.%.*s", (int)major, version,
		minor ? (int)minor : 1, minor ? version + major + 1 : "0");
	return judge_value(j, "CUDA_VERSION", arena_strdup(&j->v->mem, value), e);
}

int judge_env(struct judge *j, struct err *e)
{
	static const char prefix[] = "NVIDIA_REQUIRE_";
	const char *off, *cuda;

	if (!j->env)
		return 0;
	off = gpu_env_value(j->env, "NVIDIA_DISABLE_REQUIRE");
	cuda = gpu_env_value(j->env, "CUDA_VERSION");
	if (off && is_true(off))
		return 0;
	for (size_t k = 0; k < j->env->n; k++) {
		const char *line = j->env->v[k];
		size_t n = strcspn(line, "=");
		auto_free char *name = NULL;

		if (!str_starts(line, prefix) || str_starts(line, "NVIDIA_REQUIRE_JETPACK") ||
			!line[n] || !line[n + 1] || !is_last(j->env, k, n))
			continue;
		name = mem_printf("%.*s", (int)n, line);
		if (judge_value(j, name, line + n + 1, e) < 0)
			return -1;
	}
	return cuda && gpu_image_is_old(j->env) ? judge_old(j, cuda, e) : 0;
}
