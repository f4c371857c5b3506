#include "runtime/procfs.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/vfs.h>

#include "base/str.h"
#include "base/sys.h"

int procfs_write(int proc, const char *path, const char *text, struct err *e)
{
	struct statfs fs;

	if (proc < 0)
		return err_set(e, ERR_UNSUPPORTED, "%s: the config mounts no procfs", path);
	auto_fd int fd = sys_open_beneath(proc, path, O_WRONLY, 0);
	if (fd < 0)
		return err_sys(e, "open %s", path);
	if (fstatfs(fd, &fs) < 0 || fs.f_type != PROC_SUPER_MAGIC)
		return err_set(e, ERR_DENIED, "%s is not on a procfs", path);
	if (sys_write_all(fd, text, strlen(text)) < 0)
		return err_sys(e, "write '%.64s' to %s", text, path);
	return 0;
}

static const struct {
	const char *pattern;
	enum ns_kind ns;
} namespaced[] = {
	{"net.**", NS_NETWORK},
	{"kernel.msg*", NS_IPC},
	{"kernel.sem", NS_IPC},
	{"kernel.shm*", NS_IPC},
	{"fs.mqueue.**", NS_IPC},
	{"kernel.domainname", NS_UTS},
};

static int allowed(const struct spec *s, const char *name, struct err *e)
{
	for (size_t i = 0; i < sizeof(namespaced) / sizeof(namespaced[0]); i++)
		if (str_glob(namespaced[i].pattern, name) && s->namespaces[namespaced[i].ns])
			return 0;
	err_set(e, ERR_DENIED, "sysctl %.100s would change the host", name);
	return err_hint(e,
		"net.*, kernel.msg*, kernel.sem, kernel.shm* and fs.mqueue.* can be set, "
		"with a new namespace of that kind");
}

int procfs_sysctls(int proc, const struct spec *s, struct err *e)
{
	for (size_t i = 0; i < s->nsysctls; i++) {
		const struct spec_sysctl *c = &s->sysctls[i];
		char path[256] = "sys/";
		size_t n = strlen(path);

		/* Dots separate; a slash would name something the patterns did not see. */
		if (strchr(c->name, '/') || str_copy(path + n, sizeof(path) - n, c->name) < 0)
			return err_set(e, ERR_USAGE, "sysctl '%.100s'", c->name);
		if (allowed(s, c->name, e) < 0)
			return -1;
		for (char *p = path + n; *p; p++)
			if (*p == '.')
				*p = '/';
		if (procfs_write(proc, path, c->value, e) < 0)
			return err_ctx(e, "sysctl %s", c->name);
	}
	return 0;
}
