#include "runtime/self.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"
#include "runtime/fs-mount.h"

enum { SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };

/* Where no mount may be made: a copy in memory that nobody can write to. */
static int sealed_copy(int exe, struct err *e)
{
	auto_fd int fd = memfd_create("svrun", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	ssize_t n = 1;

	while (fd >= 0 && n > 0)
		n = sendfile(fd, exe, NULL, 1 << 30);
	if (fd < 0 || n < 0 || fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		return err_sys(e, "a sealed copy of /proc/self/exe");
	return steal_fd(&fd);
}

static int read_only_copy(int exe, struct err *e)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY, .propagation = MS_PRIVATE};
	auto_fd int fd = sys_open_tree(exe, "", OPEN_TREE_CLONE | AT_EMPTY_PATH);

	if (fd < 0 && errno == EPERM)
		return sealed_copy(exe, e);
	if (fd < 0 || sys_mount_setattr(fd, "", AT_EMPTY_PATH, &attr) < 0)
		return err_sys(e, "a read-only copy of /proc/self/exe");
	return steal_fd(&fd);
}

int self_protect(char *const *argv, struct err *e)
{
	auto_fd int exe = sys_open("/proc/self/exe", O_RDONLY, 0);
	struct statvfs fs;

	if (exe < 0 || fstatvfs(exe, &fs) < 0)
		return err_sys(e, "/proc/self/exe");
	if (fs.f_flag & ST_RDONLY || fcntl(exe, F_GET_SEALS) == SEALS) {
		prctl(PR_SET_NAME, "svrun"); /* else the name is a descriptor's number */
		return 0;
	}
	auto_fd int fd = read_only_copy(exe, e);
	if (fd < 0)
		return -1;
	syscall(SYS_execveat, fd, "", argv, environ, AT_EMPTY_PATH);
	return err_sys(e, "start again from a copy of /proc/self/exe");
}
