#include "gpu/nvidia.h"

#include <fcntl.h>

#include "base/sys.h"
#include "gpu/facts.h"
#include "gpu/grant-nodes.h"
#include "gpu/view.h"

enum {
	COMPUTES = GPU_CAP_COMPUTE | GPU_CAP_VIDEO,
	DRAWS = GPU_CAP_GRAPHICS | GPU_CAP_DISPLAY,
	IMEX_MAX = 1 << 20, /* channels that the kernel's numbers have room for */
	PATH_BYTES = 128,
};

static const char *const bind_options[] = {"rbind", "ro", "nosuid", "nodev", "noexec", "rprivate"};
/* Not read-only: whoever connects to a socket writes to it. */
static const char *const pipe_options[] = {"rbind", "nosuid", "nodev", "noexec", "rprivate"};
#define OPTIONS(v) .options = (v), .noptions = sizeof(v) / sizeof((v)[0])

/* ---- words of --device ---- */

static const struct {
	const char *word;
	size_t offset;
} extra_words[] = {
#define WORD(text, field)                                                                          \
	{                                                                                          \
		text, offsetof(struct gpu_extras, field)                                           \
	}
	WORD("gds", gds),
	WORD("gdrcopy", gdrcopy),
	WORD("nvswitch", nvswitch),
	WORD("mps", mps),
	WORD("dri", dri),
	WORD("infiniband", infiniband),
	WORD("modeset", modeset),
	WORD("mig-config", mig_config),
	WORD("mig-monitor", mig_monitor),
	WORD("fabric-mgmt", fabric_mgmt),
#undef WORD
};

static int parse_imex(struct gpu_extras *x, const char *text, struct err *e)
{
	uint64_t n;

	if (str_eq(text, "all")) {
		x->imex_all = true;
		return 0;
	}
	if (str_u64(text, IMEX_MAX - 1, &n) < 0)
		return err_set(
			e, ERR_USAGE, "imex=%.32s: expected a channel's number, or all", text);
	if (x->nimex == sizeof(x->imex) / sizeof(x->imex[0]))
		return err_set(e, ERR_USAGE, "more than %zu IMEX channels", x->nimex);
	x->imex[x->nimex++] = (uint32_t)n;
	return 0;
}

int gpu_extras_parse(struct gpu_extras *x, const char *word, struct err *e)
{
	auto_buf struct buf list = BUF_INIT(1024);

	if (str_starts(word, "imex="))
		return parse_imex(x, word + strlen("imex="), e);
	for (size_t i = 0; i < sizeof(extra_words) / sizeof(extra_words[0]); i++) {
		if (str_eq(word, extra_words[i].word)) {
			*(bool *)((char *)x + extra_words[i].offset) = true;
			return 0;
		}
		buf_printf(&list, "%s, ", extra_words[i].word);
	}
	err_set(e, ERR_USAGE, "no device is called '%.64s'", word);
	return err_hint(e,
		"expected VENDOR/CLASS=NAME, a path below /dev, or one of: %simex=CHANNEL",
		list.data);
}

/* ---- nodes ---- */

/* Nodes that were asked for by name, or that nothing works without. */
static int must_have(struct gpu_edits *x, const struct gpu_host *h, const struct gpu_nodes *nodes,
	const char *what, const char *hint, struct err *e)
{
	if (nodes->n)
		return grant_nodes(x, h, nodes, e);
	err_set(e, ERR_NOT_FOUND, "the host has no %s", what);
	return hint ? err_hint(e, "%s", hint) : -1;
}

static int add_gpu(struct gpu_edits *x, const struct gpu_host *h, const struct gpu_grant *g,
	bool dri, struct err *e)
{
	struct gpu_nodes caps = {NULL, 0};
	struct gpu_node pair[2];

	if (g->mig) {
		pair[0] = g->mig->caps[0];
		pair[1] = g->mig->caps[1];
		caps = (struct gpu_nodes){pair, 2};
	}
	if (grant_nodes(x, h, &g->device->nodes, e) < 0 || grant_nodes(x, h, &caps, e) < 0)
		return -1;
	/* A render node is the whole GPU's: parts of one have none. */
	return dri && !g->mig ? grant_dri(x, h, g->device, e) : 0;
}

/* What every process needs beside the GPUs themselves. */
static int add_common(struct gpu_edits *x, const struct gpu_host *h, const struct gpu_inventory *i,
	unsigned caps, const struct gpu_extras *extras, struct err *e)
{
	if (must_have(x, h, &i->ctl, "/dev/nvidiactl", "is NVIDIA's kernel module loaded?", e) < 0)
		return -1;
	if ((caps & COMPUTES) &&
		(must_have(x, h, &i->uvm, "nvidia-uvm in /proc/devices",
			 "load it: modprobe nvidia-uvm, or nvidia-modprobe -u -c 0", e) < 0 ||
			grant_nodes(x, h, &i->uvm_tools, e) < 0))
		return -1;
	return (caps & DRAWS) || extras->modeset ? grant_nodes(x, h, &i->modeset, e) : 0;
}

static int add_imex(struct gpu_edits *x, const struct gpu_host *h, const struct gpu_inventory *i,
	const struct gpu_extras *extras, struct err *e)
{
	if (!extras->imex_all && !extras->nimex)
		return 0;
	if (!i->imex.n)
		return err_set(e, ERR_NOT_FOUND, "the host has no IMEX channels");
	if (extras->imex_all && grant_nodes(x, h, &i->imex, e) < 0)
		return -1;
	for (size_t k = 0; k < extras->nimex; k++) {
		char path[PATH_BYTES];
		struct gpu_node n = i->imex.v[0];

		/* The kernel module knows channels by number alone; who uses one makes its node. */
		snprintf(path, sizeof(path), "/dev/nvidia-caps-imex-channels/channel%u",
			extras->imex[k]);
		n.path = path;
		n.minor = extras->imex[k];
		if (grant_nodes(x, h, &(struct gpu_nodes){&n, 1}, e) < 0)
			return -1;
	}
	return 0;
}

static int add_extra_nodes(struct gpu_edits *x, const struct gpu_host *h,
	const struct gpu_inventory *i, const struct gpu_extras *extras, struct err *e)
{
	const struct {
		bool wanted;
		const struct gpu_nodes *nodes;
		const char *what;
	} all[] = {
		{extras->gds, &i->gds, "/dev/nvidia-fs* (GPUDirect Storage)"},
		{extras->gdrcopy, &i->gdrcopy, "/dev/gdrdrv (GDRCopy)"},
		{extras->nvswitch, &i->nvswitch, "/dev/nvidia-nvswitch*"},
		{extras->infiniband, &i->infiniband, "/dev/infiniband/uverbs*"},
		{extras->modeset, &i->modeset, "/dev/nvidia-modeset"},
		{extras->mig_config, &i->mig_config, "capability for MIG's configuration"},
		{extras->mig_monitor, &i->mig_monitor, "capability for MIG's monitoring"},
		{extras->fabric_mgmt, &i->fabric_mgmt, "capability for managing the fabric"},
	};

	for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++)
		if (all[k].wanted && must_have(x, h, all[k].nodes, all[k].what, NULL, e) < 0)
			return -1;
	return add_imex(x, h, i, extras, e);
}

/* ---- files ---- */

/* A host path that is there is bound at the same place. */
static void bind_if_there(struct gpu_edits *x, const struct gpu_host *h, const char *path)
{
	auto_fd int fd = sys_open_in_root(h->root, path, O_PATH | O_NOFOLLOW, 0);

	if (fd >= 0)
		gpu_edits_mount(x, &(struct edit_mount){
					   .source = arena_printf(&x->mem, "%s%s", h->prefix, path),
					   .destination = path,
					   OPTIONS(bind_options)});
}

/* The folder of pipes to the control daemon, made by whoever started that. /tmp is everybody's. */
static int add_mps(struct gpu_edits *x, const struct gpu_host *h, struct err *e)
{
	const char *given = getenv("CUDA_MPS_PIPE_DIRECTORY");
	const char *path = given && *given == '/' ? given : "/tmp/nvidia-mps";
	auto_fd int fd = sys_open_in_root(h->root, path, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	struct stat st;

	if (fd < 0 || sys_fstat(fd, &st) < 0) {
		err_sys(e, "folder of the MPS daemon %s%s", h->prefix, path);
		return err_hint(e, "start it with nvidia-cuda-mps-control -d, or say where it is: "
				   "CUDA_MPS_PIPE_DIRECTORY");
	}
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return err_set(e, ERR_DENIED, "folder of the MPS daemon %s%s belongs to user %u",
			h->prefix, path, st.st_uid);
	path = arena_strdup(&x->mem, path);
	gpu_edits_mount(
		x, &(struct edit_mount){.source = arena_printf(&x->mem, "%s%s", h->prefix, path),
			   .destination = path,
			   OPTIONS(pipe_options)});
	gpu_edits_env(x, "CUDA_MPS_PIPE_DIRECTORY", path);
	return 0;
}

/* ---- what the container sees ---- */

/* Newer user-space libraries of the image are for datacenter GPUs only: others answer with error
 * 804. */
static void allow_compat(struct gpu_edits *x, const struct gpu_inventory *i,
	const struct gpu_grants *g, unsigned caps, int choice)
{
	bool all = true;

	for (size_t k = 0; k < g->n; k++) {
		struct gpu_facts f;

		gpu_facts_of(g->v[k].device, g->v[k].mig, NULL, &f);
		all = all && f.datacenter;
	}
	if (!(caps & GPU_CAP_COMPUTE) || choice < 0 || (choice == 0 && !all) || !i->driver)
		return;
	x->compat_driver = arena_strdup(&x->mem, i->driver);
	x->compat = choice;
}

static void hide_others(
	struct gpu_edits *x, const struct gpu_inventory *i, const struct gpu_grants *g)
{
	size_t host = 0;

	free(x->gpu_buses);
	x->gpu_buses = mem_array(g->n + 1, sizeof(*x->gpu_buses));
	x->ngpu_buses = 0;
	for (size_t k = 0; k < g->n; k++) {
		const char *bus = g->v[k].device->bus;
		size_t at = 0;

		while (at < x->ngpu_buses && !str_eq(x->gpu_buses[at], bus))
			at++;
		if (g->v[k].device->maker == GPU_MAKER_NVIDIA && at == x->ngpu_buses)
			x->gpu_buses[x->ngpu_buses++] = arena_strdup(&x->mem, bus);
	}
	for (size_t k = 0; k < i->n; k++)
		host += i->v[k].maker == GPU_MAKER_NVIDIA;
	x->gpus_hidden = x->ngpu_buses < host;
}

/* EGL and Vulkan look at every GPU that the kernel module has, and stumble over those that they may
 * not open. The mask counts minors. */
static void write_profile(struct gpu_edits *x, const struct gpu_grants *g)
{
	unsigned long long mask = 0;

	for (size_t k = 0; k < g->n; k++)
		if (g->v[k].device->maker == GPU_MAKER_NVIDIA && g->v[k].device->minor < 64)
			mask |= 1ull << g->v[k].device->minor;
	if (mask)
		x->visible_profile = arena_printf(&x->mem,
			"{\"profiles\":[{\"name\":\"_container_\",\"settings\":["
			"\"EGLVisibleDGPUDevices\",0x%llx]}],\"rules\":[{\"pattern\":[],"
			"\"profile\":\"_container_\"}]}",
			mask);
}

/* ---- all ---- */

static int add_gpus(struct gpu_edits *x, const struct gpu_host *h, const struct gpu_inventory *i,
	const struct gpu_grants *g, unsigned caps, const struct gpu_extras *extras, struct err *e)
{
	bool dri = (caps & DRAWS) || extras->dri, any = false;

	if (i->dxg) { /* one node for all there is */
		gpu_edits_node(x, &(struct edit_node){.path = "/dev/dxg", .access = "rw"});
		return 0;
	}
	for (size_t k = 0; k < g->n; k++) {
		if (g->v[k].device->maker != GPU_MAKER_NVIDIA)
			continue;
		if (add_gpu(x, h, &g->v[k], dri, e) < 0)
			return -1;
		any = true;
	}
	return any ? add_common(x, h, i, caps, extras, e) : 0;
}

int gpu_nvidia_edits(struct gpu_edits *x, const struct gpu_host *h, const struct gpu_inventory *i,
	const struct gpu_grants *g, unsigned caps, const struct gpu_extras *extras, struct err *e)
{
	if (add_gpus(x, h, i, g, caps, extras, e) < 0 || add_extra_nodes(x, h, i, extras, e) < 0 ||
		gpu_view_add(x, h, i, caps, e) < 0)
		return -1;
	if (extras->gds) {
		bind_if_there(x, h, "/run/udev");
		bind_if_there(x, h, "/etc/cufile.json");
	}
	if (extras->mps && add_mps(x, h, e) < 0)
		return -1;
	/* An engine's own hook then adds nothing to what is here. */
	gpu_edits_env(x, "NVIDIA_VISIBLE_DEVICES", "void");
	x->no_mknod = true;
	if (i->dxg)
		return 0;
	x->keep_device_files = true;
	hide_others(x, i, g);
	allow_compat(x, i, g, caps, extras->compat);
	if (caps & DRAWS)
		write_profile(x, g);
	return 0;
}
