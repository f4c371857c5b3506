#include "gpu/host.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/auxv.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"

/* One of the host's folders; -1 stands for an empty one. */
static int open_folder(const char *prefix, const char *name, int *fd, struct err *e)
{
	auto_free char *path = mem_printf("%s/%s", prefix, name);

	*fd = sys_open(path, O_PATH | O_DIRECTORY, 0);
	if (*fd < 0 && errno != ENOENT)
		return err_sys(e, "open %s", path);
	return 0;
}

static int find_prefix(char **prefix, struct err *e)
{
	const char *given = getenv("SVRUN_GPU_ROOT");

	if (!given || !*given) {
		*prefix = mem_strdup("");
		return 0;
	}
	if (getauxval(AT_SECURE))
		return err_set(e, ERR_DENIED,
			"SVRUN_GPU_ROOT is not for a program that gained rights by its file");
	*prefix = realpath(given, NULL);
	return *prefix ? 0 : err_sys(e, "SVRUN_GPU_ROOT: %s", given);
}

int gpu_host_open(struct gpu_host *h, struct err *e)
{
	struct gpu_host got = {.proc = -1, .sys = -1, .dev = -1, .root = -1};
	char *prefix;

	if (find_prefix(&prefix, e) < 0)
		return -1;
	got.prefix = prefix;
	got.run = mem_printf("%s/run/svrun/gpu", prefix);
	if (open_folder(prefix, "", &got.root, e) < 0 ||
		open_folder(prefix, "proc", &got.proc, e) < 0 ||
		open_folder(prefix, "sys", &got.sys, e) < 0 ||
		open_folder(prefix, "dev", &got.dev, e) < 0) {
		gpu_host_close(&got);
		return -1;
	}
	*h = got;
	return 0;
}

void gpu_host_close(struct gpu_host *h)
{
	sys_close_ref(&h->proc);
	sys_close_ref(&h->sys);
	sys_close_ref(&h->dev);
	sys_close_ref(&h->root);
	mem_free_ref(&h->prefix);
	mem_free_ref(&h->run);
	*h = (struct gpu_host){.proc = -1, .sys = -1, .dev = -1, .root = -1};
}
