/* Version 1: a folder in each hierarchy that the host mounts, and their limits. Source:
 * Documentation/admin-guide/cgroup-v1/. */
#include "runtime/cgroup-file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "runtime/cgroup-host.h"

/* ---- the folders ---- */

/* A new cpuset has no cores and no memory, and takes no process, until it is told. One that was
 * there may have been told. Returns whether it has any then: not, when the one above has none. */
static int inherit_file(int dir, const char *file, bool there, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(4096);
	char above[64];

	if (there && strlen(cgroup_text(dir, file, &text)) > 1) /* a newline alone is empty */
		return 1;
	text.len = 0;
	snprintf(above, sizeof(above), "../%s", file);
	if (file_read(dir, above, &text, e) < 0)
		return -1;
	if (text.len <= 1)
		return 0;
	auto_fd int fd = sys_openat(dir, file, O_WRONLY, 0);
	if (fd < 0 || sys_write_all(fd, text.data, text.len) < 0)
		return err_sys(e, "write %s", file);
	return 1;
}

static int inherit(int dir, bool there, struct err *e)
{
	int cpus = inherit_file(dir, "cpuset.cpus", there, e);
	int mems = cpus < 0 ? -1 : inherit_file(dir, "cpuset.mems", there, e);

	return mems < 0 ? -1 : cpus && mems;
}

/* An engine may have made those above, a pod's, without telling them: from the top down. */
static int inherit_all(const struct cgroup *c, const struct cgroup_dir *d, struct err *e)
{
	char above[CGROUP_PATH_MAX + 128];
	const char *path = c->place.path;
	int rc = inherit(d->dir, !d->made, e);

	if (rc)
		return rc < 0 ? -1 : 0;
	for (const char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
		snprintf(above, sizeof(above), CGROUP_ROOT "/%s%.*s", d->hierarchy, (int)(p - path),
			path);
		auto_fd int dir = sys_open(above, O_PATH | O_DIRECTORY, 0);
		if (dir < 0)
			return err_sys(e, "cgroup %s", above);
		if (inherit(dir, true, e) < 0)
			return -1;
	}
	return inherit(d->dir, true, e) < 0 ? -1 : 0;
}

/* Those above the last. 0 when the hierarchy is not mounted. */
static int make_above(const char *hierarchy, const char *path, struct err *e)
{
	char part[CGROUP_PATH_MAX];
	auto_fd int root = cgroup_root(hierarchy);

	if (root < 0)
		return errno == ENOENT ? 0 : err_sys(e, "cgroup hierarchy %s", hierarchy);
	for (const char *p = strchr(path, '/'); p; p = strchr(p + 1, '/')) {
		snprintf(part, sizeof(part), "%.*s", (int)(p - path), path);
		if (sys_mkdirat(root, part, 0755) < 0 && errno != EEXIST)
			return err_sys(e, "make cgroup /%s (%s)", part, hierarchy);
	}
	return 1;
}

/* 1 when it is made, or was there; 0 when the hierarchy is not mounted. */
static int make_folder(
	const struct cgroup *c, const char *hierarchy, const char *path, bool *there, struct err *e)
{
	int rc;

	if (sys_mkdirat(AT_FDCWD, path, 0755) == 0)
		return 1;
	if (errno == ENOENT) {
		rc = make_above(hierarchy, c->place.path + 1, e);
		if (rc <= 0)
			return rc;
		if (sys_mkdirat(AT_FDCWD, path, 0755) == 0)
			return 1;
	}
	*there = true;
	return errno == EEXIST ? 1 : err_sys(e, "make cgroup %s", path);
}

static int make_in(struct cgroup *c, const char *hierarchy, struct err *e)
{
	struct cgroup_dir *d = &c->dirs[c->ndirs];
	char path[CGROUP_PATH_MAX + 128];
	bool there = false;
	int rc;

	snprintf(path, sizeof(path), CGROUP_ROOT "/%s%s", hierarchy, c->place.path);
	rc = make_folder(c, hierarchy, path, &there, e);
	if (rc <= 0)
		return rc;
	auto_fd int dir = sys_open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	auto_fd int tasks = dir < 0 ? -1 : sys_openat(dir, "tasks", O_WRONLY, 0);
	if (tasks < 0) {
		rc = dir >= 0 && errno == ENOENT ? 0 : err_sys(e, "cgroup %s", path);
		/* Without that file it is a plain folder: nothing is mounted there. */
		if (!there)
			sys_unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
		return rc;
	}
	snprintf(d->hierarchy, sizeof(d->hierarchy), "%s", hierarchy);
	d->made = !there;
	d->dir = steal_fd(&dir);
	d->tasks = steal_fd(&tasks);
	c->ndirs++;
	if (there && cgroup_take_over(c, d->dir, e) < 0)
		return -1;
	return cgroup_names(hierarchy, "cpuset") ? inherit_all(c, d, e) : 0;
}

/* In all of them, though few limit something: engines read a container's usage from the cgroups
 * that it is in. Each costs 20 to 50 us. */
int cgroup_v1_make(struct cgroup *c, struct err *e)
{
	struct cgroup_lines lines;

	if (cgroup_lines_read(&lines, 0, false, e) < 0)
		return -1;
	for (size_t i = 0; i < lines.n; i++)
		if (make_in(c, lines.v[i].hierarchy, e) < 0)
			return -1;
	return 0;
}

/* ---- limits ---- */

static int limit_swappiness(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	static const struct cgroup_file swappiness = {
		"memory/swappiness", "memory", "memory.swappiness"};
	static const struct cgroup_file oom = {
		"memory/disableOOMKiller", "memory", "memory.oom_control"};

	/* -1: the host's default. */
	if (r->memory_swappiness.set && r->memory_swappiness.v >= 0 &&
		cgroup_set_number(c, &swappiness, r->memory_swappiness.v, e) < 0)
		return -1;
	return r->memory_no_oom_killer ? cgroup_set(c, &oom, "1", e) : 0;
}

static const struct cgroup_file memory_limit = {"memory/limit", "memory", "memory.limit_in_bytes"};
static const struct cgroup_file memory_swap = {
	"memory/swap", "memory", "memory.memsw.limit_in_bytes"};

/* Memory may at no time be allowed more than memory and swap together: which comes first depends on
 * whether the two grow. */
static int limit_memory_and_swap(
	const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	int dir = cgroup_dir_of(c, memory_swap.controller);
	struct opt_i64 limit = r->memory_limit, swap = r->memory_swap;
	int64_t old = dir < 0 ? -1 : cgroup_number(dir, memory_swap.name);
	bool grows;

	/* No limit of memory means none of both; where swap is not counted there is none anyway. */
	if (limit.set && limit.v == -1 && !swap.set && old >= 0)
		swap = limit;
	if (swap.set && swap.v == -1 && old < 0 && dir >= 0)
		swap.set = false;
	grows = swap.set && (swap.v == -1 || swap.v > old);
	if (grows && cgroup_set_opt(c, &memory_swap, &swap, e) < 0)
		return -1;
	if (cgroup_set_opt(c, &memory_limit, &limit, e) < 0)
		return err_hint(e, "it cannot be less than what is in use and cannot be freed");
	return grows ? 0 : cgroup_set_opt(c, &memory_swap, &swap, e);
}

/* Kernels refuse a period that the old quota does not fit, so that the order depends on both. */
static int limit_quota(const struct cgroup *c, const struct cgroup_file *period,
	const struct opt_i64 *p, const struct cgroup_file *quota, const struct opt_i64 *q,
	struct err *e)
{
	if (cgroup_set_opt(c, period, p, NULL) < 0) {
		if (!q->set)
			return cgroup_set_opt(c, period, p, e);
		if (cgroup_set_opt(c, quota, q, e) < 0)
			return -1;
		return cgroup_set_opt(c, period, p, e);
	}
	return cgroup_set_opt(c, quota, q, e);
}

static int limit_cpu(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	static const struct cgroup_file shares = {"cpu/shares", "cpu", "cpu.shares"},
					idle = {"cpu/idle", "cpu", "cpu.idle"},
					period = {"cpu/period", "cpu", "cpu.cfs_period_us"},
					quota = {"cpu/quota", "cpu", "cpu.cfs_quota_us"},
					burst = {"cpu/burst", "cpu", "cpu.cfs_burst_us"},
					rt_period = {"cpu/realtimePeriod", "cpu",
						"cpu.rt_period_us"},
					rt_runtime = {
						"cpu/realtimeRuntime", "cpu", "cpu.rt_runtime_us"};
	const struct opt_i64 *to_idle = &r->cpu_idle, *to_burst = &r->cpu_burst;

	/* An idle group has no shares to set. */
	if ((to_idle->set && !to_idle->v && cgroup_set_number(c, &idle, 0, e) < 0) ||
		cgroup_set_opt(c, &shares, &r->cpu_shares, e) < 0 ||
		cgroup_set_opt(c, &idle, to_idle, e) < 0)
		return -1;
	/* Burst is at most the quota. */
	if ((to_burst->set && !to_burst->v && cgroup_set_number(c, &burst, 0, e) < 0) ||
		limit_quota(c, &period, &r->cpu_period, &quota, &r->cpu_quota, e) < 0 ||
		cgroup_set_opt(c, &burst, to_burst, e) < 0)
		return -1;
	return limit_quota(c, &rt_period, &r->cpu_rt_period, &rt_runtime, &r->cpu_rt_runtime, e);
}

static int limit_cpuset(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	static const struct cgroup_file cpus = {"cpu/cpus", "cpuset", "cpuset.cpus"},
					mems = {"cpu/mems", "cpuset", "cpuset.mems"};

	if (r->cpus && *r->cpus && cgroup_set(c, &cpus, r->cpus, e) < 0)
		return -1;
	return r->mems && *r->mems ? cgroup_set(c, &mems, r->mems, e) : 0;
}

/* The name of a file that the BFQ scheduler, where the kernel has it, calls otherwise. */
static const char *bfq(const struct cgroup *c, const struct cgroup_file *f, const char *name,
	struct cgroup_file *out)
{
	*out = *f;
	if (!cgroup_has(c, f->controller, f->name) && cgroup_has(c, f->controller, name))
		out->name = name;
	return out->name;
}

/* One line for each device. */
static int limit_devices(const struct cgroup *c, const struct cgroup_file *f,
	const struct spec_block_values *v, bool leaf, struct err *e)
{
	char line[64];

	for (size_t i = 0; i < v->n; i++) {
		const struct opt_i64 *n = leaf ? &v->v[i].leaf : &v->v[i].value;

		if (!n->set)
			continue;
		snprintf(line, sizeof(line), "%u:%u %" PRId64, v->v[i].major, v->v[i].minor, n->v);
		if (cgroup_set(c, f, line, e) < 0)
			return -1;
	}
	return 0;
}

static int limit_block(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	static const struct cgroup_file weight = {"blockIO/weight", "blkio", "blkio.weight"},
					leaf = {"blockIO/leafWeight", "blkio", "blkio.leaf_weight"},
					weights = {"blockIO/weightDevice", "blkio",
						"blkio.weight_device"},
					leaves = {"blockIO/weightDevice", "blkio",
						"blkio.leaf_weight_device"};
	const struct {
		struct cgroup_file file;
		const struct spec_block_values *v;
	} rates[] = {
		{{"blockIO/throttleReadBpsDevice", "blkio", "blkio.throttle.read_bps_device"},
			&r->read_bps},
		{{"blockIO/throttleWriteBpsDevice", "blkio", "blkio.throttle.write_bps_device"},
			&r->write_bps},
		{{"blockIO/throttleReadIOPSDevice", "blkio", "blkio.throttle.read_iops_device"},
			&r->read_iops},
		{{"blockIO/throttleWriteIOPSDevice", "blkio", "blkio.throttle.write_iops_device"},
			&r->write_iops},
	};
	struct cgroup_file f;

	if (r->block_weight.set && bfq(c, &weight, "blkio.bfq.weight", &f) &&
		cgroup_set_opt(c, &f, &r->block_weight, e) < 0)
		return -1;
	if (r->block_weights.n && bfq(c, &weights, "blkio.bfq.weight_device", &f) &&
		(limit_devices(c, &f, &r->block_weights, false, e) < 0 ||
			limit_devices(c, &leaves, &r->block_weights, true, e) < 0))
		return -1;
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
		if (limit_devices(c, &rates[i].file, rates[i].v, false, e) < 0)
			return -1;
	return cgroup_set_opt(c, &leaf, &r->block_leaf_weight, e);
}

static int limit_network(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	static const struct cgroup_file class = {"network/classID", "net_cls", "net_cls.classid"},
					map = {"network/priorities", "net_prio",
						"net_prio.ifpriomap"};
	char line[64];

	if (r->net_class.set && cgroup_set_number(c, &class, r->net_class.v, e) < 0)
		return -1;
	for (size_t i = 0; i < r->net_priorities.n; i++) {
		const struct spec_pair *p = &r->net_priorities.v[i];

		if ((size_t)snprintf(line, sizeof(line), "%s %s", p->name, p->value) >=
			sizeof(line))
			return err_set(e, ERR_USAGE,
				"/linux/resources/network/priorities: '%.40s' is too long",
				p->name);
		if (cgroup_set(c, &map, line, e) < 0)
			return -1;
	}
	return 0;
}

int cgroup_v1_limit(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	static const struct cgroup_file reservation = {"memory/reservation", "memory",
						"memory.soft_limit_in_bytes"},
					kernel = {"memory/kernel", "memory",
						"memory.kmem.limit_in_bytes"},
					tcp = {"memory/kernelTCP", "memory",
						"memory.kmem.tcp.limit_in_bytes"};

	if (r->unified.n) {
		err_set(e, ERR_UNSUPPORTED,
			"/linux/resources/unified: invalid configuration: this host has cgroups "
			"of version 1");
		return err_hint(e, "say the same by the fields that have names");
	}
	/* Kernel memory first: it can only be limited while there are no processes. */
	if (cgroup_set_opt(c, &kernel, &r->memory_kernel, e) < 0 ||
		limit_memory_and_swap(c, r, e) < 0 ||
		cgroup_set_opt(c, &reservation, &r->memory_reservation, e) < 0 ||
		cgroup_set_opt(c, &tcp, &r->memory_kernel_tcp, e) < 0 ||
		limit_swappiness(c, r, e) < 0 || limit_cpu(c, r, e) < 0 ||
		limit_cpuset(c, r, e) < 0 || limit_block(c, r, e) < 0 || limit_network(c, r, e) < 0)
		return -1;
	return cgroup_limit_common(c, r, e);
}
