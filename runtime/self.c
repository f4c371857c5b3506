#include "runtime/self.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"
#include "runtime/fs-mount.h"

static int is_read_only(struct err *e)
{
	struct statvfs fs;

	auto_fd int fd = sys_open("/proc/self/exe", O_PATH, 0);
	if (fd < 0 || fstatvfs(fd, &fs) < 0)
		return err_sys(e, "/proc/self/exe");
	return (fs.f_flag & ST_RDONLY) != 0;
}

int self_protect(char *const *argv, struct err *e)
{
	int done = is_read_only(e);

	if (done < 0)
		return -1;
	if (done) {
		prctl(PR_SET_NAME, "svrun"); /* else the name is a descriptor's number */
		return 0;
	}
	auto_fd int fd = fs_bind(AT_FDCWD, "/proc/self/exe", false, e);
	if (fd < 0)
		return -1;
	if (fs_attr(fd, false, MOUNT_ATTR_RDONLY, 0, MS_PRIVATE, e) < 0)
		return -1;
	syscall(SYS_execveat, fd, "", argv, environ, AT_EMPTY_PATH);
	return err_sys(e, "start again from a read-only copy of /proc/self/exe");
}
