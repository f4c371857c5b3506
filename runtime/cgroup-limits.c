#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/str.h"
#include "base/sys.h"
#include "runtime/cgroup.h"

static const struct cgroup_dir *dir_of(const struct cgroup *c, const char *controller)
{
	for (size_t i = 0; i < c->ndirs; i++)
		if (c->v2 || str_eq(c->dirs[i].controller, controller))
			return &c->dirs[i];
	return NULL;
}

static int set(const struct cgroup *c, const char *controller, const char *file, const char *value,
	struct err *e)
{
	const struct cgroup_dir *d = dir_of(c, controller);

	auto_fd int fd = d ? sys_openat(d->dir, file, O_WRONLY, 0) : -1;
	if (!d || (fd < 0 && errno == ENOENT)) {
		err_set(e, ERR_UNSUPPORTED, "this host's cgroups cannot limit that: no %s", file);
		return err_hint(
			e, "the '%s' controller is not available to %s", controller, c->path);
	}
	if (fd < 0 || sys_write_all(fd, value, strlen(value)) < 0)
		return err_sys(e, "write '%s' to %s", value, file);
	return 0;
}

static int set_number(
	const struct cgroup *c, const char *controller, const char *file, int64_t v, struct err *e)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRId64, v);
	return set(c, controller, file, v < 0 && c->v2 ? "max" : text, e);
}

/* ---- memory ---- */

static int limit_memory_v1(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	if (r->memory_limit.set &&
		set_number(c, "memory", "memory.limit_in_bytes", r->memory_limit.v, e) < 0)
		return -1;
	if (r->memory_swap.set &&
		set_number(c, "memory", "memory.memsw.limit_in_bytes", r->memory_swap.v, e) < 0)
		return -1;
	return r->memory_reservation.set ? set_number(c, "memory", "memory.soft_limit_in_bytes",
						   r->memory_reservation.v, e)
					 : 0;
}

static int limit_memory_v2(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	int64_t swap = r->memory_swap.v;

	if (r->memory_limit.set && set_number(c, "memory", "memory.max", r->memory_limit.v, e) < 0)
		return -1;
	if (swap >= 0) /* the spec's number counts memory too */
		swap -= r->memory_limit.v;
	if (r->memory_swap.set && set_number(c, "memory", "memory.swap.max", swap, e) < 0)
		return -1;
	return r->memory_reservation.set
		       ? set_number(c, "memory", "memory.low", r->memory_reservation.v, e)
		       : 0;
}

/* ---- cpu ---- */

static int limit_cpu_v1(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	if (r->cpu_shares.set && set_number(c, "cpu", "cpu.shares", r->cpu_shares.v, e) < 0)
		return -1;
	if (r->cpu_period.set && set_number(c, "cpu", "cpu.cfs_period_us", r->cpu_period.v, e) < 0)
		return -1;
	return r->cpu_quota.set ? set_number(c, "cpu", "cpu.cfs_quota_us", r->cpu_quota.v, e) : 0;
}

/* Shares run from 2 to 262144, weights from 1 to 10000. */
static int64_t weight_of_shares(int64_t shares)
{
	if (shares < 2)
		shares = 2;
	if (shares > 262144)
		shares = 262144;
	return 1 + (shares - 2) * 9999 / 262142;
}

static int limit_cpu_v2(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	int64_t period = r->cpu_period.set ? r->cpu_period.v : 100000;
	char text[64];

	if (r->cpu_shares.set &&
		set_number(c, "cpu", "cpu.weight", weight_of_shares(r->cpu_shares.v), e) < 0)
		return -1;
	if (!r->cpu_quota.set && !r->cpu_period.set)
		return 0;
	if (r->cpu_quota.set && r->cpu_quota.v > 0)
		snprintf(text, sizeof(text), "%" PRId64 " %" PRId64, r->cpu_quota.v, period);
	else
		snprintf(text, sizeof(text), "max %" PRId64, period);
	return set(c, "cpu", "cpu.max", text, e);
}

static int limit_cpuset(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	if (r->cpus && set(c, "cpuset", "cpuset.cpus", r->cpus, e) < 0)
		return -1;
	return r->mems ? set(c, "cpuset", "cpuset.mems", r->mems, e) : 0;
}

int cgroup_limit(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	if ((c->v2 ? limit_memory_v2 : limit_memory_v1)(c, r, e) < 0)
		return -1;
	if ((c->v2 ? limit_cpu_v2 : limit_cpu_v1)(c, r, e) < 0)
		return -1;
	if (limit_cpuset(c, r, e) < 0)
		return -1;
	return r->pids.set && r->pids.v > 0 ? set_number(c, "pids", "pids.max", r->pids.v, e) : 0;
}
