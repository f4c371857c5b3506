#include "images/mount-keep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"

enum { NAME = DIGEST_HEX + sizeof(".keep"), BOOT_MAX = 64 };

static void keep_name(char out[NAME], const char *hex)
{
	snprintf(out, NAME, "%.*s.keep", DIGEST_HEX, hex);
}

static int this_boot(struct buf *b, struct err *e)
{
	return file_read(AT_FDCWD, "/proc/sys/kernel/random/boot_id", b, e);
}

int mount_keep(struct store *s, const struct digest *manifest, struct err *e)
{
	auto_buf struct buf boot = BUF_INIT(BOOT_MAX);
	char hex[DIGEST_HEX + 1], path[sizeof("mnt/") + NAME], name[NAME];

	keep_name(name, digest_hex(manifest, hex));
	snprintf(path, sizeof(path), "mnt/%s", name);
	if (this_boot(&boot, e) < 0)
		return -1;
	return file_write(s->fd, path, boot.data, boot.len, 0600, e) < 0 ? err_ctx(e, "%s", s->path)
									 : 0;
}

int mount_unkeep(struct store *s, const struct digest *manifest, struct err *e)
{
	char hex[DIGEST_HEX + 1], path[sizeof("mnt/") + NAME], name[NAME];
	auto_fd int folder = sys_openat(s->fd, "mnt", O_RDONLY | O_DIRECTORY, 0);
	int kept = folder < 0 ? 0 : mount_is_kept(folder, digest_hex(manifest, hex), e);

	if (kept < 0)
		return -1;
	digest_hex(manifest, hex);
	keep_name(name, hex);
	snprintf(path, sizeof(path), "mnt/%s", name);
	if (sys_unlinkat(s->fd, path, 0) < 0 && errno != ENOENT)
		return err_sys(e, "remove %s/%s", s->path, path);
	return kept ? 0 : err_set(e, ERR_NOT_FOUND, "image %.12s is not mounted", hex);
}

int mount_is_kept(int folder, const char *hex, struct err *e)
{
	auto_buf struct buf boot = BUF_INIT(BOOT_MAX), made = BUF_INIT(BOOT_MAX);
	char name[NAME];
	auto_fd int fd = -1;

	keep_name(name, hex);
	fd = sys_openat(folder, name, O_RDONLY | O_NOFOLLOW, 0);
	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, "open mnt/%s", name);
	if (file_read_fd(fd, name, &made, e) < 0 || this_boot(&boot, e) < 0)
		return -1;
	return made.len == boot.len && memcmp(made.data, boot.data, boot.len) == 0;
}

static int by_bytes(const void *a, const void *b)
{
	return memcmp(a, b, DIGEST_SIZE);
}

/* What file name says: 1 a kept mount, 0 no, -1. A mark of an earlier boot goes. */
static int read_mark(int folder, const char *name, struct digest *d, struct err *e)
{
	char hex[DIGEST_HEX + 1];
	int kept;

	if (strlen(name) != NAME - 1 || !str_ends(name, ".keep"))
		return 0;
	snprintf(hex, sizeof(hex), "%.*s", DIGEST_HEX, name);
	if (digest_from_hex(d, hex) < 0)
		return 0;
	kept = mount_is_kept(folder, hex, e);
	if (kept == 0 && sys_unlinkat(folder, name, 0) < 0 && errno != ENOENT)
		return err_sys(e, "remove mnt/%s", name);
	return kept;
}

int mount_kept(struct store *s, struct digest **v, size_t *n, struct err *e)
{
	int fd = sys_openat(s->fd, "mnt", O_RDONLY | O_DIRECTORY, 0), rc = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct digest *list = NULL;
	size_t cap = 0;

	*v = NULL;
	*n = 0;
	if (!dir) {
		rc = errno == ENOENT && fd < 0 ? 0 : err_sys(e, "read %s/mnt", s->path);
		sys_close_ref(&fd);
		return rc;
	}
	for (struct dirent *d; rc >= 0 && (d = readdir(dir));) {
		mem_grow(&list, &cap, *n);
		rc = read_mark(fd, d->d_name, &list[*n], e);
		*n += rc > 0;
	}
	closedir(dir);
	if (rc < 0) {
		free(list);
		return -1;
	}
	if (list && *n)
		qsort(list, *n, sizeof(*list), by_bytes);
	*v = list;
	return 0;
}
