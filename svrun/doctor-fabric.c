/* svrun doctor: what GPUs need to work together: NVSwitch with its fabric manager, IMEX. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/sys.h"
#include "svrun/doctor.h"

static bool exists(const struct doctor *d, const char *path)
{
	auto_fd int fd = sys_open_in_root(d->host->root, path, O_PATH | O_NOFOLLOW, 0);

	return fd >= 0;
}

/* Some process of that name (of which the kernel keeps 15 bytes). */
static bool runs(struct doctor *d, const char *name)
{
	auto_fd int fd = sys_openat(d->host->proc, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	bool there = false;
	struct dirent *f;

	if (!dir)
		return false;
	while (!there && (f = readdir(dir))) {
		char path[sizeof(f->d_name) + 8], comm[32] = "";

		if (f->d_name[0] < '0' || f->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "%s/comm", f->d_name);
		auto_fd int file = sys_openat(fd, path, O_RDONLY, 0);

		if (file >= 0 && sys_read(file, comm, sizeof(comm) - 1) > 0) {
			comm[strcspn(comm, "\n")] = '\0';
			there = strncmp(comm, name, 15) == 0;
		}
	}
	closedir(dir);
	fd = -1; /* was the DIR's */
	return there;
}

static void check_fabric_manager(struct doctor *d, const struct gpu_inventory *i)
{
	size_t switches = 0;

	for (size_t k = 0; k < i->nvswitch.n; k++)
		switches += !str_eq(i->nvswitch.v[k].path, "/dev/nvidia-nvswitchctl");
	if (switches == 0)
		return;
	if (exists(d, "run/nvidia-fabricmanager/socket") || runs(d, "nv-fabricmanager"))
		found(d, "gpu.fabric", FINDING_OK, NULL, "%zu NVSwitches; the fabric manager runs",
			switches);
	else
		found(d, "gpu.fabric", FINDING_ERROR,
			"start nvidia-fabricmanager of the driver's own version",
			"%zu NVSwitches, and no fabric manager runs: CUDA fails with error 802",
			switches);
}

static void check_imex(struct doctor *d, const struct gpu_inventory *i)
{
	size_t there = 0;

	for (size_t k = 0; k < i->imex.n; k++)
		there += i->imex.v[k].exists;
	if (there == 0)
		return;
	if (exists(d, "etc/nvidia-imex/nodes_config.cfg") && !runs(d, "nvidia-imex"))
		found(d, "gpu.imex", FINDING_WARNING, "start nvidia-imex",
			"%zu IMEX channels and a list of nodes, and nvidia-imex does not run",
			there);
	else
		found(d, "gpu.imex", FINDING_OK, NULL, "%zu IMEX channels", there);
}

void doctor_fabric(struct doctor *d, const struct gpu_inventory *i)
{
	check_fabric_manager(d, i);
	check_imex(d, i);
}
