#include "runtime/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"

static bool is_procfs(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

int procfs_host(struct err *e)
{
	struct stat st;

	/* The number says that it is the root of a procfs, not a folder of one. */
	auto_fd int fd = sys_open("/proc", O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0)
		return err_sys(e, "/proc");
	if (!is_procfs(fd) || sys_fstat(fd, &st) < 0 || st.st_ino != 1)
		return err_set(e, ERR_DENIED, "/proc is not a procfs");
	return steal_fd(&fd);
}

int procfs_open(struct err *e)
{
	auto_fd int fs = sys_fsopen("proc");

	if (fs >= 0 && sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0) {
		int fd = sys_fsmount(fs, 0);

		if (fd >= 0)
			return fd;
	}
	return errno == EPERM ? procfs_host(e) : err_sys(e, "mount a procfs");
}

/* No mount on the way either: a procfs that is visible somewhere may have other files of itself
 * bound over those that we mean. */
static int open_file(int proc, const char *path, int flags, struct err *e)
{
	struct open_how how = {.flags = (unsigned)(flags | O_CLOEXEC),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV};

	if (proc < 0)
		return err_set(e, ERR_UNSUPPORTED, "%s: the config mounts no procfs", path);
	auto_fd int fd = (int)syscall(SYS_openat2, proc, path, &how, sizeof(how));
	if (fd < 0)
		return err_sys(e, "open %s", path);
	if (!is_procfs(fd))
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

enum { PATH_SIZE = 256 };

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

/* The first separator says which of the two is one; the other is then part of a name. */
static int path_of(const char *name, char *path, size_t size)
{
	size_t first = strcspn(name, "./");

	if (str_copy(path, size, name) < 0)
		return -1;
	for (char *p = path; name[first] == '.' && *p; p++)
		if (*p == '.' || *p == '/')
			*p = *p == '.' ? '/' : '.';
	return 0;
}

/* Nothing that leads elsewhere than the patterns see: empty parts, "." and "..". */
static bool is_plain(const char *path)
{
	for (const char *p = path;; p++) {
		size_t n = strcspn(p, "/");

		if (n == 0 || (p[0] == '.' && (n == 1 || (n == 2 && p[1] == '.'))))
			return false;
		p += n;
		if (!*p)
			return true;
	}
}

/* "sys/net/ipv4/ip_forward" of a name that may be set. look: we are still where the config's paths
 * lead somewhere. */
static int file_of(
	const struct spec *s, const char *name, bool look, char *path, size_t size, struct err *e)
{
	size_t top = strlen("sys/");

	snprintf(path, size, "sys/");
	if (path_of(name, path + top, size - top) < 0 || !is_plain(path + top))
		return err_set(e, ERR_USAGE, "sysctl '%.100s'", name);
	if (str_eq(path + top, "kernel/hostname"))
		return err_set(e, ERR_USAGE, "sysctl %s: that is what hostname is for", name);
	/* Engines write this one instead of domainname, which is the younger. */
	if (str_eq(path + top, "kernel/domainname") && s->domainname)
		return err_set(e, ERR_USAGE, "sysctl %s: the config has a domainname, too", name);
	if (is_namespaced(s, path + top, look))
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
		if (file_of(s, s->sysctls.v[i].name, true, path, sizeof(path), e) < 0)
			return -1;
	return 0;
}

int procfs_sysctls(int proc, const struct spec *s, struct err *e)
{
	for (size_t i = 0; i < s->sysctls.n; i++) {
		const struct spec_pair *c = &s->sysctls.v[i];
		char path[PATH_SIZE];

		if (file_of(s, c->name, false, path, sizeof(path), e) < 0)
			return -1;
		if (procfs_write(proc, path, c->value, e) < 0)
			return err_ctx(e, "sysctl %s", c->name);
	}
	return 0;
}
