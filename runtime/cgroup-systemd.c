#include "runtime/cgroup-systemd.h"
int cgroup_systemd_start(
	struct cgroup_place *p, pid_t pid, const struct spec_resources *r, bool v2, struct err *e)
{
	(void)p;
	(void)pid;
	(void)r;
	(void)v2;
	return err_set(e, ERR_UNSUPPORTED, "systemd");
}
int cgroup_systemd_update(
	const struct cgroup_place *p, const struct spec_resources *r, bool v2, struct err *e)
{
	(void)p;
	(void)r;
	(void)v2;
	return err_set(e, ERR_UNSUPPORTED, "systemd");
}
int cgroup_systemd_stop(const struct cgroup_place *p, struct err *e)
{
	(void)p;
	return err_set(e, ERR_UNSUPPORTED, "systemd");
}
