#include "runtime/lsm.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"
#include "runtime/procfs.h"

bool lsm_has_apparmor(void)
{
	auto_fd int fd = sys_open("/sys/module/apparmor/parameters/enabled", O_RDONLY, 0);
	char c;

	return fd >= 0 && sys_read(fd, &c, 1) == 1 && c == 'Y';
}

bool lsm_has_selinux(void)
{
	struct statfs fs;

	return statfs("/sys/fs/selinux", &fs) == 0 && fs.f_type == SELINUX_MAGIC;
}

/* Is one asked for? */
static bool wants(const char *profile)
{
	return profile && *profile;
}

/* Without AppArmor a process is what the profile "unconfined" would make it. */
static int lacks_apparmor(const struct spec_process *p, struct err *e)
{
	if (str_eq(p->apparmor, "unconfined"))
		return 0;
	return err_set(
		e, ERR_UNSUPPORTED, "process.apparmorProfile: this host does not run AppArmor");
}

int lsm_check(const struct spec_process *p, struct err *e)
{
	if (wants(p->apparmor) && !lsm_has_apparmor() && lacks_apparmor(p, e) < 0)
		return -1;
	if (wants(p->selinux) && !lsm_has_selinux())
		return err_set(
			e, ERR_UNSUPPORTED, "process.selinuxLabel: this host does not run SELinux");
	return 0;
}

/* attr/exec belongs to the first security module that takes it, which need not be AppArmor; the
 * folder of its own is there since Linux 5.8, and can be read when AppArmor runs. */
static int apply_apparmor(const struct spec_process *p, int proc, struct err *e)
{
	auto_free char *text = mem_printf("exec %s", p->apparmor);
	char now[4096];

	if (procfs_read(proc, "self/attr/apparmor/current", now, sizeof(now), NULL) < 0)
		return lacks_apparmor(p, e);
	if (procfs_write(proc, "self/attr/apparmor/exec", text, e) == 0)
		return 0;
	if (e && e->sys == ENOENT)
		err_hint(e, "apparmor_parser loads profiles");
	return err_ctx(e, "process.apparmorProfile");
}

int lsm_apply(const struct spec_process *p, int proc, struct err *e)
{
	if (wants(p->apparmor) && apply_apparmor(p, proc, e) < 0)
		return -1;
	if (wants(p->selinux) && procfs_write(proc, "self/attr/exec", p->selinux, e) < 0)
		return err_ctx(e, "process.selinuxLabel");
	return 0;
}
