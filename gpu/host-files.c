#include "gpu/host-files.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"

/* The folder that path begins with, and what follows. */
static int folder_of(const struct gpu_host *h, const char **path)
{
	const struct {
		const char *name;
		int fd;
	} folders[] = {{"proc", h->proc}, {"sys", h->sys}, {"dev", h->dev}};

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		size_t n = strlen(folders[i].name);

		if (strncmp(*path, folders[i].name, n) != 0 || ((*path)[n] && (*path)[n] != '/'))
			continue;
		*path = (*path)[n] ? *path + n + 1 : ".";
		return folders[i].fd;
	}
	return -1;
}

/* 1, 0, -1. Nothing that opens here can make us wait, whatever it is. */
static int open_at(const struct gpu_host *h, const char *path, int flags, int *fd, struct err *e)
{
	const char *below = path;
	int folder = folder_of(h, &below);

	flags |= flags & O_PATH ? 0 : O_NONBLOCK | O_NOCTTY;
	*fd = folder < 0 ? -1 : sys_open_beneath(folder, below, flags, 0);
	if (*fd >= 0)
		return 1;
	if (folder < 0 || errno == ENOENT || errno == ENOTDIR)
		return 0;
	return err_sys(e, "open %s/%s", h->prefix, path);
}

int host_text(const struct gpu_host *h, const char *path, struct buf *b, struct err *e)
{
	auto_free char *name = mem_printf("%s/%s", h->prefix, path);
	auto_fd int fd = -1;
	struct stat st;
	int rc = open_at(h, path, O_RDONLY, &fd, e);

	if (rc <= 0)
		return rc;
	if (sys_fstat(fd, &st) < 0)
		return err_sys(e, "stat %s", name);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_CORRUPT, "%s is not a regular file", name);
	return file_read_fd(fd, name, b, e) < 0 ? -1 : 1;
}

int host_line(const struct gpu_host *h, const char *path, char *out, size_t size, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(4096);
	int rc = host_text(h, path, &b, e);

	if (rc <= 0)
		return rc;
	if (b.data && strchr(b.data, '\n'))
		*strchr(b.data, '\n') = '\0';
	if (str_copy(out, size, b.data ? b.data : "") < 0)
		return err_set(e, ERR_CORRUPT, "%s/%s: its line is longer than %zu", h->prefix,
			path, size - 1);
	return 1;
}

static int by_version(const void *a, const void *b)
{
	return strverscmp(*(const char *const *)a, *(const char *const *)b);
}

int host_names(const struct gpu_host *h, const char *path, size_t max, struct strings *names,
	struct arena *mem, struct err *e)
{
	auto_fd int fd = -1;
	int rc = open_at(h, path, O_RDONLY | O_DIRECTORY, &fd, e);
	const struct dirent *entry;
	size_t cap = 0;
	DIR *d;

	*names = (struct strings){0};
	if (rc <= 0)
		return rc;
	d = fdopendir(fd);
	if (!d)
		return err_sys(e, "read %s/%s", h->prefix, path);
	steal_fd(&fd);

	auto_free const char **v = NULL;

	errno = 0;
	while (rc > 0 && (entry = readdir(d))) {
		if (entry->d_name[0] == '.')
			continue;
		if (names->n == max) {
			rc = err_set(e, ERR_CORRUPT, "%s/%s has more than %zu entries", h->prefix,
				path, max);
			break;
		}
		mem_grow(&v, &cap, names->n);
		v[names->n++] = arena_strdup(mem, entry->d_name);
		errno = 0;
	}
	if (rc > 0 && errno)
		rc = err_sys(e, "read %s/%s", h->prefix, path);
	closedir(d);
	if (names->n)
		qsort(v, names->n, sizeof(*v), by_version);
	names->v = arena_dup(mem, v, names->n * sizeof(*v));
	return rc;
}

int host_stat(const struct gpu_host *h, const char *path, struct stat *st, struct err *e)
{
	const char *below = path;
	int folder = folder_of(h, &below);

	if (folder < 0)
		return 0;
	if (sys_fstatat(folder, below, st, AT_SYMLINK_NOFOLLOW) == 0)
		return 1;
	if (errno == ENOENT || errno == ENOTDIR)
		return 0;
	return err_sys(e, "stat %s/%s", h->prefix, path);
}

/* Where an open descriptor's file is, according to the kernel. */
static int path_of(int fd, char out[PATH_MAX], struct err *e)
{
	char link[32];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, out, PATH_MAX - 1);
	if (n < 0)
		return err_sys(e, "readlink %s", link);
	out[n] = '\0';
	return 0;
}

int host_real(const struct gpu_host *h, const char *path, char *out, size_t size, struct err *e)
{
	char whole[PATH_MAX], top[PATH_MAX];
	auto_fd int fd = -1;
	int rc = open_at(h, path, O_PATH, &fd, e);
	size_t n;

	if (rc <= 0)
		return rc;
	if (path_of(fd, whole, e) < 0 || path_of(h->sys, top, e) < 0)
		return -1;
	n = strlen(top);
	if (!str_starts(whole, top) || whole[n] != '/' || str_copy(out, size, whole + n + 1) < 0)
		return err_set(
			e, ERR_CORRUPT, "%s/%s does not lead to a place in sys", h->prefix, path);
	return 1;
}
