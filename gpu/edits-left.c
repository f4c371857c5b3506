/* What gpu_edits_fill() has left in files of a container: edits.h, gpu_edits_left(). */
#include <fcntl.h>

#include "base/file.h"
#include "base/sys.h"
#include "gpu/edits.h"
#include "gpu/ldcache.h"
#include "gpu/view.h"

/* The files that it changes, and the loaders by which it knows that it has to. */
static const char *const files[] = {"etc/ld.so.cache", "etc/ld.so.conf",
	"etc/ld.so.conf.d/00-svrun-gpu.conf",
	"etc/nvidia/nvidia-application-profiles-rc.d/10-container.conf", "etc/ld-musl-x86_64.path",
	"etc/ld-musl-aarch64.path"};
static const char *const loaders[] = {
	NULL, NULL, NULL, NULL, "lib/ld-musl-x86_64.so.1", "lib/ld-musl-aarch64.so.1"};
enum { FILES = sizeof(files) / sizeof(files[0]), LAST_MAX = 1 << 20 };

/* 1, 0: there is none; st: what it is. */
static int copy(struct root_files *to, int upper, size_t i, struct stat *st, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(LDCACHE_MAX);
	auto_fd int fd = root_file_open(upper, files[i], 0);

	if (fd < 0)
		return 0;
	if (sys_fstat(fd, st) < 0)
		return err_sys(e, "/%s of the container", files[i]);
	if (file_read_fd(fd, files[i], &text, e) < 0 ||
		root_file_put(to, files[i], text.data, text.len, e) < 0 ||
		(loaders[i] && root_file_put(to, loaders[i], "", 0, e) < 0))
		return -1;
	return 1;
}

/* As if it had never been written: the same changes are the same bytes. */
static int keep_attributes(int clean, size_t i, const struct stat *st, struct err *e)
{
	const struct timespec times[2] = {st->st_atim, st->st_mtim};
	auto_fd int fd = root_file_open(clean, files[i], 0);

	if (fd < 0)
		return 0;
	if (fchown(fd, st->st_uid, st->st_gid) < 0 || fchmod(fd, st->st_mode & 07777) < 0 ||
		futimens(fd, times) < 0)
		return err_sys(e, "copy of /%s", files[i]);
	return 0;
}

/* Where the last start's own word of it is not in upper, but in a layer below: an ldconfig that the
 * container has run put the driver into a cache of its own. */
static int tell(struct root_files *to, struct err *e)
{
	static const char text[] = GPU_VIEW_PATH "/lib64\n" GPU_VIEW_PATH "/lib32\n";
	const char *last = "etc/ld.so.conf.d/00-svrun-gpu.conf";

	return root_file_put(to, last, text, strlen(text), e) < 0 ? -1 : 0;
}

static int take_back(int upper, int clean, bool told, struct err *e)
{
	auto_root_files struct root_files to = {.tmpfs = -1};
	struct stat st[FILES];
	struct gpu_edits none;
	bool there[FILES];
	int rc = root_files_open(&to, clean, NULL, 0, e);

	for (size_t i = 0; rc >= 0 && i < FILES; i++) {
		rc = copy(&to, upper, i, &st[i], e);
		there[i] = rc > 0;
	}
	if (rc < 0)
		return -1;
	if (!told && tell(&to, e) < 0)
		return -1;
	gpu_edits_init(&none);
	rc = gpu_edits_fill(&none, clean, NULL, 0, e);
	gpu_edits_fini(&none);
	for (size_t i = 0; rc == 0 && i < FILES; i++)
		if (there[i])
			rc = keep_attributes(clean, i, &st[i], e);
	return rc;
}

int gpu_edits_left(int upper, int clean, bool had_gpus, struct strings *names, struct err *e)
{
	static const char *all[FILES];
	auto_buf struct buf last = BUF_INIT(LAST_MAX);
	int rc = ldcache_last(upper, &last, e);

	*names = (struct strings){NULL, 0};
	if (rc < 0 || (rc == 0 && !had_gpus))
		return rc;
	if (take_back(upper, clean, rc > 0, e) < 0)
		return err_ctx(e, "what GPUs left in the container");
	memcpy(all, files, sizeof(all));
	*names = (struct strings){all, FILES};
	return 0;
}
