#include "runtime/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/str.h"
#include "base/sys.h"

bool procfs_is(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

int procfs_host(struct err *e)
{
	auto_fd int fd = sys_open("/proc", O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	struct stat st;

	if (fd < 0)
		return err_sys(e, "/proc");
	/* The number says that it is the root of a procfs, not a folder of one. */
	if (!procfs_is(fd) || sys_fstat(fd, &st) < 0 || st.st_ino != 1)
		return err_set(e, ERR_DENIED, "/proc is not a procfs");
	return steal_fd(&fd);
}

int procfs_open(struct err *e)
{
	auto_fd int fs = sys_fsopen("proc");
	int made = fs < 0 ? -1 : sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
	int fd = made < 0 ? -1 : sys_fsmount(fs, 0);

	if (fd >= 0)
		return fd;
	return errno == EPERM ? procfs_host(e) : err_sys(e, "mount a procfs");
}

/* No mount on the way either: a procfs that is visible somewhere may have other files of itself
 * bound over those that we mean. */
static int open_file(int proc, const char *path, int flags, struct err *e)
{
	if (proc < 0)
		return err_set(e, ERR_UNSUPPORTED, "%s: the config mounts no procfs", path);
	auto_fd int fd = sys_openat2(
		proc, path, flags, 0, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV);
	if (fd < 0)
		return err_sys(e, "open %s", path);
	if (!procfs_is(fd))
		return err_set(e, ERR_DENIED, "%s is not on a procfs", path);
	return steal_fd(&fd);
}

int procfs_write(int proc, const char *path, const char *text, struct err *e)
{
	auto_fd int fd = open_file(proc, path, O_WRONLY, e);

	if (fd < 0)
		return -1;
	if (sys_write_all(fd, text, strlen(text)) < 0)
		return err_sys(e, "write '%.64s' to %s", text, path);
	return 0;
}

int procfs_read(int proc, const char *path, char *text, size_t size, struct err *e)
{
	auto_fd int fd = open_file(proc, path, O_RDONLY, e);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = sys_read(fd, text, size);
	if (n < 0)
		return err_sys(e, "read %s", path);
	if ((size_t)n >= size)
		return err_set(e, ERR_CORRUPT, "%s is longer than expected", path);
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return 0;
}

/* ---- sysctls ---- */

enum { PATH_SIZE = 256, SYS = sizeof("sys/") - 1 };

static const struct {
	const char *pattern; /* at its end "*": any name, "**": any path */
	enum ns_kind ns;
	const char *file; /* of the namespace in /proc/PID/ns */
} namespaced[] = {
	{"net/**", NS_NETWORK, "net"},
	{"kernel/msg*", NS_IPC, "ipc"},
	{"kernel/sem", NS_IPC, "ipc"},
	{"kernel/shm*", NS_IPC, "ipc"},
	{"fs/mqueue/**", NS_IPC, "ipc"},
	{"kernel/domainname", NS_UTS, "uts"},
	{"user/**", NS_USER, "user"},
};

static bool fits(const char *path, const char *pattern)
{
	size_t n = strcspn(pattern, "*");

	if (strncmp(path, pattern, n) != 0)
		return false;
	return str_eq(pattern + n, "**") || (pattern[n] ? !strchr(path + n, '/') : !path[n]);
}

/* A namespace that the config names by path may be the one that we are in ourselves. */
static bool is_ours(const char *path, const char *file)
{
	char own[64];
	struct stat a, b;

	snprintf(own, sizeof(own), "/proc/self/ns/%s", file);
	return sys_fstatat(AT_FDCWD, path, &a, 0) == 0 && sys_fstatat(AT_FDCWD, own, &b, 0) == 0 &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static bool is_namespaced(const struct spec *s, const char *path, bool look)
{
	for (size_t i = 0; i < sizeof(namespaced) / sizeof(namespaced[0]); i++) {
		const struct spec_namespace *n = &s->namespaces[namespaced[i].ns];

		if (n->given && fits(path, namespaced[i].pattern))
			return !look || !n->path || !is_ours(n->path, namespaced[i].file);
	}
	return false;
}

/* "sys/net/ipv4/ip_forward". The first separator says which of the two is one; the other is then
 * part of a name. -1: too long, or it leads elsewhere than the patterns see. */
static int path_of(const char *name, char path[PATH_SIZE])
{
	int n = snprintf(path, PATH_SIZE, "sys/%s/", name);

	if (n >= PATH_SIZE)
		return -1;
	for (char *p = path + SYS; name[strcspn(name, "./")] == '.' && p[1]; p++)
		if (*p == '.' || *p == '/')
			*p = *p == '.' ? '/' : '.';
	if (strstr(path, "//") || strstr(path, "/./") || strstr(path, "/../"))
		return -1;
	path[n - 1] = '\0';
	return 0;
}

/* The file of a name that may be set. look: we are still where the config's paths lead somewhere.
 */
static int file_of(
	const struct spec *s, const char *name, bool look, char path[PATH_SIZE], struct err *e)
{
	if (path_of(name, path) < 0)
		return err_set(e, ERR_USAGE, "sysctl '%.100s'", name);
	if (str_eq(path + SYS, "kernel/hostname"))
		return err_set(e, ERR_USAGE, "sysctl %s: that is what hostname is for", name);
	/* Engines write this one instead of domainname, which is the younger. */
	if (str_eq(path + SYS, "kernel/domainname") && s->domainname)
		return err_set(e, ERR_USAGE, "sysctl %s: the config has a domainname, too", name);
	if (is_namespaced(s, path + SYS, look))
		return 0;
	err_set(e, ERR_DENIED, "sysctl %.100s would change the host", name);
	return err_hint(e,
		"net.*, kernel.msg*, kernel.sem, kernel.shm*, fs.mqueue.* and the host's names can "
		"be set, in a container that has its own namespace of that kind");
}

int procfs_check_sysctls(const struct spec *s, struct err *e)
{
	char path[PATH_SIZE];

	for (size_t i = 0; i < s->sysctls.n; i++)
		if (file_of(s, s->sysctls.v[i].name, true, path, e) < 0)
			return -1;
	return 0;
}

int procfs_sysctls(int proc, const struct spec *s, struct err *e)
{
	for (size_t i = 0; i < s->sysctls.n; i++) {
		const struct spec_pair *c = &s->sysctls.v[i];
		char path[PATH_SIZE];

		if (file_of(s, c->name, false, path, e) < 0)
			return -1;
		if (procfs_write(proc, path, c->value, e) < 0)
			return err_ctx(e, "sysctl %s", c->name);
	}
	return 0;
}
