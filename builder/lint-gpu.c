/* What it asks of GPUs. Source: CUDA's release notes and compatibility guide. */
#include "builder/lint-parts.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

static bool may_be_nvidia(const struct manifest_gpu *g)
{
	return g->vendor == GPU_NVIDIA || g->vendor == GPU_ANY;
}

void lint_030(struct lint_pass *p)
{
	const struct manifest_gpu *g = &p->m->gpu;

	if (!g->present || g->mode != GPU_REQUIRED)
		return;
	if (!g->vram_min)
		lint_found(p, "/gpu", "vramGiB.min", "a GPU is required, of any memory");
	if (may_be_nvidia(g) && !g->cc_min)
		lint_found(p, "/gpu", "computeCapability.min", "a GPU is required, of any age");
}

void lint_031(struct lint_pass *p)
{
	const struct manifest_gpu *g = &p->m->gpu;

	if (g->present && g->mode != GPU_NONE && g->vram_min && g->vram_per == PER_UNSET &&
		(g->count_max > 1 || g->count_min > 1))
		lint_found(p, "/gpu/vramGiB", "\"per\": \"gpu\" or \"total\"",
			"%u GiB of each GPU, or of all together?", g->vram_min);
}

/* ---- archs ---- */

struct arch {
	char number[16];
	bool ptx;
};

static struct arch arch_of(const char *text)
{
	struct arch a = {.ptx = str_ends(text, "+PTX")};

	snprintf(a.number, sizeof(a.number), "%.*s", (int)strcspn(text, "+"), text);
	return a;
}

static unsigned long major_of(const char *version)
{
	return strtoul(version, NULL, 10);
}

/* Machine code runs on the same major number from its minor on; PTX on everything later. */
static bool runs_on(const struct arch *a, const char *card)
{
	if (str_version_compare(a->number, card) > 0)
		return false;
	return a->ptx || major_of(a->number) == major_of(card);
}

/* The first CUDA that can no longer compile for an arch. (One that is older than an arch is no
 * fault: the driver that brings a new GPU brings a newer one.) */
static const struct {
	const char *arch, *gone;
} toolkits[] = {{"3.5", "12.0"}, {"3.7", "12.0"}, {"5.0", "13.0"}, {"5.2", "13.0"}, {"5.3", "13.0"},
	{"6.0", "13.0"}, {"6.1", "13.0"}, {"6.2", "13.0"}, {"7.0", "13.0"}, {"7.2", "13.0"}};

static void check_toolkit(struct lint_pass *p, const char *pointer, const struct arch *a)
{
	const char *min = p->m->gpu.cuda_min;

	for (size_t i = 0; i < sizeof(toolkits) / sizeof(toolkits[0]); i++)
		if (min && str_eq(toolkits[i].arch, a->number) &&
			str_version_compare(min, toolkits[i].gone) >= 0)
			lint_found(p, pointer, lint_text(p, "a CUDA before %s", toolkits[i].gone),
				"CUDA %s cannot compile for the arch %s", min, a->number);
}

void lint_032(struct lint_pass *p)
{
	const struct manifest_gpu *g = &p->m->gpu;
	bool runs = false;

	if (!g->present || g->mode == GPU_NONE)
		return;
	for (size_t i = 0; i < g->archs.n; i++) {
		struct arch a = arch_of(g->archs.v[i]);

		check_toolkit(p, lint_text(p, "/gpu/archs/%zu", i), &a);
		runs = runs || (g->cc_min && runs_on(&a, g->cc_min));
	}
	if (g->archs.n && g->cc_min && !runs)
		lint_found(p, "/gpu/computeCapability/min",
			"one of archs, or a later one of the same major number",
			"no code among archs runs on a GPU of %s", g->cc_min);
}

/* ---- modes, drivers, memory ---- */

void lint_033(struct lint_pass *p)
{
	const struct manifest *m = p->m;

	if (!m->gpu.present || m->gpu.mode != GPU_REQUIRED || m->mode)
		return;
	for (size_t i = 0; i < m->nmodes; i++)
		if (str_eq(m->modes[i].name, "cpu"))
			return;
	lint_found(p, "/gpu/mode", "modes.cpu", "nothing of it can be tried without a GPU");
}

void lint_034(struct lint_pass *p)
{
	const struct manifest_gpu *g = &p->m->gpu;

	if (g->present && g->mode == GPU_REQUIRED && g->vendor == GPU_NVIDIA && !g->archs.n)
		lint_found(p, "/gpu", "archs", "nothing says for which GPUs the code was compiled");
}

/* What only NVIDIA's GPUs are asked for. */
static void check_amd(struct lint_pass *p)
{
	const struct manifest_gpu *g = &p->m->gpu;
	const struct {
		const char *pointer;
		bool given;
	} members[] = {{"/gpu/cuda", g->cuda_min || g->cuda_max},
		{"/gpu/driver", g->driver_min != NULL},
		{"/gpu/computeCapability", g->cc_min || g->cc_max}, {"/gpu/archs", g->archs.n > 0},
		{"/gpu/brands", g->brands.n > 0}, {"/gpu/forwardCompat", g->forward_compat}};

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		if (members[i].given)
			lint_found(p, members[i].pointer, NULL, "GPUs of AMD have no %s",
				members[i].pointer + strlen("/gpu/"));
}

void lint_035(struct lint_pass *p)
{
	const struct manifest_gpu *g = &p->m->gpu;

	if (!g->present)
		return;
	if (g->mode == GPU_NONE) {
		/* a mode without GPUs keeps what the others say of them */
		if (!p->m->mode && (g->count_min || g->count_max || g->count_default))
			lint_found(p, "/gpu/count", NULL, "no GPU is asked for (mode none)");
		return;
	}
	if (g->vendor == GPU_AMD)
		check_amd(p);
	else if (g->forward_compat && !g->driver_min)
		lint_found(p, "/gpu/forwardCompat", "driver.min",
			"nothing says from which driver on it may be relied on");
}

/* NVML's, in the words of NVIDIA_REQUIRE_*: nvml.h, nvmlBrandType_t. */
static const char *const brands[] = {"unknown", "quadro", "tesla", "nvs", "grid", "geforce",
	"titan", "vapps", "vpc", "vcs", "vws", "cloudgaming", "quadrortx", "nvidiartx", "nvidia",
	"geforcertx", "titanrtx", NULL};

void lint_038(struct lint_pass *p)
{
	const struct manifest_gpu *g = &p->m->gpu;

	for (size_t i = 0; g->present && g->mode != GPU_NONE && i < g->brands.n; i++) {
		const char *name = g->brands.v[i];

		if (lint_listed(name, brands))
			continue;
		lint_found(p, lint_text(p, "/gpu/brands/%zu", i), str_nearest(name, brands),
			"no GPU of NVIDIA is of the brand '%.40s'", name);
	}
}

void lint_039(struct lint_pass *p)
{
	const struct manifest_gpu *g = &p->m->gpu;

	if (g->present && g->mode != GPU_NONE && g->vendor == GPU_INTEL)
		lint_found(p, "/gpu/vendor", "nvidia, amd or any", "--gpus gives no GPU of Intel");
}

/* The driver that each family of CUDA needs at least, with minor version compatibility. */
void lint_036(struct lint_pass *p)
{
	static const struct {
		unsigned long cuda;
		const char *driver;
	} table[] = {{11, "450"}, {12, "525"}, {13, "580"}};
	const struct manifest_gpu *g = &p->m->gpu;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (g->present && g->cuda_min && g->driver_min &&
			major_of(g->cuda_min) == table[i].cuda &&
			str_version_compare(g->driver_min, table[i].driver) < 0)
			lint_found(p, "/gpu/driver/min", table[i].driver,
				"driver %s cannot run CUDA %s", g->driver_min, g->cuda_min);
}

void lint_037(struct lint_pass *p)
{
	static const char *const wheels[] = {"torch", "vllm", NULL};
	static const char *const debs[] = {"python3-torch*", NULL};

	if (p->m->gpu.present && p->m->gpu.mode != GPU_NONE && !p->m->resources.shm_mib &&
		(lint_has_wheel(p, wheels) || lint_has_deb(p, debs)))
		lint_found(p, "/resources", "shmMiB",
			"PyTorch passes data between processes in /dev/shm, which has 64 MiB");
}
