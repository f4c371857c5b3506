/* svrun doctor: NVIDIA's driver: the loaded module against the files of user space, what other
 * versions left, persistence. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/sys.h"
#include "gpu/facts.h"
#include "gpu/view.h"
#include "svrun/doctor.h"
#include "svrun/gpu-hold.h"

static void check_module(struct doctor *d, const struct gpu_inventory *i)
{
	const char *modules = look_text(d, d->host->proc, "modules");

	if (!i->driver) {
		found(d, "gpu.module", FINDING_ERROR,
			"modprobe nvidia (dmesg tells why that fails), or install its driver",
			"NVIDIA's kernel module is not loaded");
		return;
	}
	found(d, "gpu.module", FINDING_OK, NULL, "NVIDIA's kernel module %s%s", i->driver,
		i->open_modules ? ", the open one" : "");
	if (i->uvm.n == 0)
		found(d, "gpu.uvm", FINDING_ERROR, "modprobe nvidia-uvm",
			"the module nvidia-uvm is not loaded, and CUDA does not start without it");
	if (modules && (str_starts(modules, "nouveau ") || strstr(modules, "\nnouveau ")))
		found(d, "gpu.nouveau", FINDING_WARNING,
			"blacklist nouveau (modprobe.d: blacklist nouveau), and boot again",
			"nouveau is loaded beside NVIDIA's module, and may take a GPU from it");
}

/* ---- files ---- */

/* "libcuda.so.580.126.09" -> "580.126.09"; NULL: not a driver's file. */
static const char *version_of(const char *name)
{
	const char *so = strstr(name, ".so.");
	const char *v = so ? so + 4 : NULL;

	if (!v || (!str_starts(name, "libcuda.so.") && !str_starts(name, "libnvidia-")))
		return NULL;
	/* At least "1.2", beginning with a number of a driver: "so.1.1.2" is a library's own. */
	return strspn(v, "0123456789") >= 3 && strspn(v, "0123456789.") == strlen(v) ? v : NULL;
}

/* Files of other versions in a folder where the driver's are; counted by the first version. */
static size_t count_leftovers(
	struct doctor *d, const char *folder, const char *version, char other[64])
{
	auto_fd int fd = sys_open_in_root(d->host->root, folder, O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *f;
	size_t n = 0;

	if (!dir)
		return 0;
	fd = -1; /* the DIR's */
	while ((f = readdir(dir))) {
		const char *v = version_of(f->d_name);

		if (!v || str_eq(v, version))
			continue;
		if (n++ == 0)
			snprintf(other, 64, "%.63s", v);
	}
	closedir(dir);
	return n;
}

static void check_leftovers(struct doctor *d, const struct driver_files *f, const char *version)
{
	auto_free char *last = mem_strdup("");

	for (size_t k = 0; k < f->n; k++) {
		const char *slash = strrchr(f->v[k].source, '/');
		auto_free char *folder =
			mem_printf("%.*s", (int)(slash - f->v[k].source), f->v[k].source);
		char other[64];
		size_t n;

		/* Files of a folder stand together; one that comes again is told again. */
		if (!f->v[k].soname || str_eq(folder, last))
			continue;
		free(last);
		last = mem_strdup(folder);
		n = count_leftovers(d, folder, version, other);
		if (n > 0)
			found(d, "gpu.leftovers", FINDING_WARNING,
				"remove them with the package or installer that brought them; "
				"svrun takes "
				"none of them",
				"%zu driver files of other versions (%s) in %s", n, other, folder);
	}
}

static void check_files(struct doctor *d, const char *version)
{
	struct driver_files f;
	struct err e = {0};

	if (driver_files_find(&f, d->host, version, GPU_CAP_ALL, &e) < 0) {
		found_err(d, "gpu.files", FINDING_ERROR, &e,
			"install the user-space driver of the kernel module's version, or, after "
			"an "
			"upgrade, boot again");
		return;
	}
	found(d, "gpu.files", FINDING_OK, NULL,
		"%zu driver files of the module's version, below %s%s%s", f.n, f.root,
		f.glibc ? "; images need glibc " : "", f.glibc ? f.glibc : "");
	check_leftovers(d, &f, version);
	driver_files_fini(&f);
}

/* ---- persistence ---- */

/* GPUs that are not awake: nobody has them open, and the first who does waits for them. */
static size_t count_asleep(struct doctor *d, const struct gpu_inventory *i)
{
	size_t n = 0;

	for (size_t k = 0; k < i->n; k++) {
		const struct gpu_device *g = &i->v[k];
		auto_free char *path = mem_printf("driver/nvidia/gpus/%s/power", g->bus);
		const char *text = look_text(d, d->host->proc, path);
		const char *memory = text ? strstr(text, "Video Memory:") : NULL;

		n += g->maker == GPU_MAKER_NVIDIA && memory &&
		     str_starts(memory + 13 + strspn(memory + 13, " \t"), "Off");
	}
	return n;
}

static void check_persistence(struct doctor *d, const struct gpu_inventory *i)
{
	size_t held = 0, n = 0, asleep = count_asleep(d, i);

	for (size_t k = 0; k < i->n; k++)
		if (i->v[k].maker == GPU_MAKER_NVIDIA && !i->v[k].excluded) {
			n++;
			held += gpu_hold_is(d->host, &i->v[k]);
		}
	auto_fd int socket = sys_open_in_root(
		d->host->root, "run/nvidia-persistenced/socket", O_PATH | O_NOFOLLOW, 0);

	if (socket >= 0)
		found(d, "gpu.persistence", FINDING_OK, NULL,
			"nvidia-persistenced's socket is there");
	else if (n > 0 && held == n)
		found(d, "gpu.persistence", FINDING_OK, NULL,
			"svrun gpu hold keeps all GPUs awake");
	else
		found(d, "gpu.persistence", FINDING_WARNING,
			"run nvidia-persistenced or `svrun gpu hold` as a service (docs/doctor.md)",
			"nothing keeps %zu of %zu GPUs awake%s: the first to open one waits for "
			"1 to 3 s",
			n - held, n, asleep > 0 ? ", and some are asleep now" : "");
}

/* ---- what starts know of the GPUs ---- */

static void check_facts(struct doctor *d, const struct gpu_inventory *i)
{
	struct gpu_probe p;
	struct err e = {0};

	if (d->cuda) /* the driver is about to be asked */
		return;
	if (gpu_probe_load(&p, d->host, i, &e) < 0) {
		found_err(d, "gpu.facts", FINDING_WARNING, &e,
			"remove it: svrun doctor --cuda "
			"writes it anew");
		return;
	}
	found(d, "gpu.facts", p.doc ? FINDING_OK : FINDING_NOTE,
		p.doc ? NULL : "svrun doctor --cuda asks the driver, and keeps what it says",
		p.doc ? "what the driver said of the GPUs is kept"
		      : "the driver was not asked since the boot: memory and compute capability of "
			"GPUs are those of their model");
	gpu_probe_free(&p);
}

void doctor_driver(struct doctor *d, const struct gpu_inventory *i)
{
	check_module(d, i);
	if (!i->driver)
		return;
	check_files(d, i->driver);
	check_persistence(d, i);
	check_facts(d, i);
}
