/* A config's limits in a cgroup's files, in the order that the kernel wants. */
#include "runtime/cgroup-file.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "base/str.h"
#include "runtime/cgroup-values.h"

/* ---- memory ---- */

static const struct cgroup_file memory_limit = {"memory/limit", "memory",
					{"memory.limit_in_bytes", "memory.max"}},
				memory_swap = {"memory/swap", "memory",
					{"memory.memsw.limit_in_bytes", "memory.swap.max"}};

/* Version 1: memory may at no time be allowed more than memory and swap together. Which comes first
 * depends on whether the two grow. */
static int limit_both(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	int dir = cgroup_dir_of(c, "memory");
	struct opt_i64 limit = r->memory_limit, swap = r->memory_swap;
	int64_t old = limit.v || swap.v ? cgroup_number(dir, memory_swap.name[0]) : -1;
	bool grows;

	/* No limit of memory means none of both; where swap is not counted there is none anyway. */
	if (limit.v == -1 && !swap.set && old >= 0)
		swap = limit;
	if (swap.v == -1 && old < 0 && dir >= 0)
		swap.set = false;
	grows = swap.set && (swap.v == -1 || swap.v > old);
	if (grows && cgroup_set_opt(c, &memory_swap, &swap, e) < 0)
		return -1;
	if (cgroup_set_opt(c, &memory_limit, &limit, e) < 0)
		return err_hint(e, "it cannot be less than what is in use and cannot be freed");
	return grows ? 0 : cgroup_set_opt(c, &memory_swap, &swap, e);
}

/* Version 2 counts swap alone. */
static int limit_swap(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	int64_t limit = r->memory_limit.v, both = r->memory_swap.v, swap;

	if (!both && limit == -1) /* no limit of memory means none of swap */
		both = -1;
	if (!both)
		return 0;
	if (!limit)
		limit = cgroup_number(cgroup_dir_of(c, "memory"), memory_limit.name[1]);
	if (cgroup_swap(both, limit, &swap, e) < 0)
		return -1;
	/* Where swap is not counted there is none to forbid. */
	if (swap <= 0 && !cgroup_has(c, "memory", memory_swap.name[1]))
		return 0;
	return cgroup_set_number(c, &memory_swap, swap, e);
}

static int limit_memory(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	static const struct cgroup_file swappiness = {"memory/swappiness", "memory",
						{"memory.swappiness", NULL}},
					no_oom = {"memory/disableOOMKiller", "memory",
						{"memory.oom_control", NULL}};

	if (!c->v2 && limit_both(c, r, e) < 0)
		return -1;
	if (c->v2 && (cgroup_set_opt(c, &memory_limit, &r->memory_limit, e) < 0 ||
			     limit_swap(c, r, e) < 0))
		return -1;
	/* -1: the host's default. */
	if (r->memory_swappiness.set && r->memory_swappiness.v >= 0 &&
		cgroup_set_number(c, &swappiness, r->memory_swappiness.v, e) < 0)
		return -1;
	return r->memory_no_oom_killer ? cgroup_set(c, &no_oom, "1", e) : 0;
}

/* ---- CPU ---- */

/* Version 1's kernels refuse a period that the old quota does not fit: the order depends on both.
 */
static int limit_quota(const struct cgroup *c, const struct cgroup_file *period,
	const struct opt_i64 *p, const struct cgroup_file *quota, const struct opt_i64 *q,
	struct err *e)
{
	if (cgroup_set_opt(c, period, p, q->set ? NULL : e) == 0)
		return cgroup_set_opt(c, quota, q, e);
	if (!q->set || cgroup_set_opt(c, quota, q, e) < 0)
		return -1;
	return cgroup_set_opt(c, period, p, e);
}

static int limit_max(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	static const struct cgroup_file period = {"cpu/period", "cpu",
						{"cpu.cfs_period_us", "cpu.max"}},
					quota = {"cpu/quota", "cpu",
						{"cpu.cfs_quota_us", "cpu.max"}};
	auto_buf struct buf old = BUF_INIT(4096);
	char text[64];

	if (!c->v2)
		return limit_quota(c, &period, &r->cpu_period, &quota, &r->cpu_quota, e);
	if (!r->cpu_quota.v && !r->cpu_period.v)
		return 0;
	cgroup_cpu_max(text, cgroup_text(cgroup_dir_of(c, "cpu"), "cpu.max", &old), r->cpu_quota.v,
		r->cpu_period.v);
	return cgroup_set(c, &quota, text, e);
}

static int limit_cpu(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	static const struct cgroup_file shares = {"cpu/shares", "cpu",
						{"cpu.shares", "cpu.weight"}},
					idle = {"cpu/idle", "cpu", {"cpu.idle", "cpu.idle"}},
					burst = {"cpu/burst", "cpu",
						{"cpu.cfs_burst_us", "cpu.max.burst"}},
					period = {"cpu/realtimePeriod", "cpu",
						{"cpu.rt_period_us", NULL}},
					runtime = {"cpu/realtimeRuntime", "cpu",
						{"cpu.rt_runtime_us", NULL}};
	struct opt_i64 weight = r->cpu_shares;

	if (c->v2 && weight.v)
		weight.v = cgroup_weight(weight.v);
	/* An idle group has no weight to set. */
	if ((r->cpu_idle.set && !r->cpu_idle.v && cgroup_set_number(c, &idle, 0, e) < 0) ||
		cgroup_set_opt(c, &shares, &weight, e) < 0 ||
		cgroup_set_opt(c, &idle, &r->cpu_idle, e) < 0)
		return -1;
	/* Burst is at most the quota. */
	if ((r->cpu_burst.set && !r->cpu_burst.v && cgroup_set_number(c, &burst, 0, e) < 0) ||
		limit_max(c, r, e) < 0 || cgroup_set_opt(c, &burst, &r->cpu_burst, e) < 0)
		return -1;
	return limit_quota(c, &period, &r->cpu_rt_period, &runtime, &r->cpu_rt_runtime, e);
}

static int limit_cpuset(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	static const struct cgroup_file cpus = {"cpu/cpus", "cpuset",
						{"cpuset.cpus", "cpuset.cpus"}},
					mems = {"cpu/mems", "cpuset",
						{"cpuset.mems", "cpuset.mems"}};

	if (r->cpus && *r->cpus && cgroup_set(c, &cpus, r->cpus, e) < 0)
		return -1;
	return r->mems && *r->mems ? cgroup_set(c, &mems, r->mems, e) : 0;
}

/* ---- disks ---- */

static int set_device(const struct cgroup *c, const struct cgroup_file *f,
	const struct spec_block_value *d, const char *key, const struct opt_i64 *v, struct err *e)
{
	char line[96];

	if (!v->set)
		return 0;
	/* 0 is no limit on version 1. */
	if (c->v2 && *key && !v->v)
		snprintf(line, sizeof(line), "%u:%u %smax", d->major, d->minor, key);
	else
		snprintf(line, sizeof(line), "%u:%u %s%" PRId64, d->major, d->minor,
			c->v2 ? key : "", v->v);
	return cgroup_set(c, f, line, e);
}

/* The BFQ scheduler has files of its own, with the range of version 1, which are the only ones of
 * some kernels. iocost's weights have their own range. */
static int limit_weights(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	const char *io = c->v2 ? "io" : "blkio";
	bool bfq = cgroup_has(c, io, c->v2 ? "io.bfq.weight" : "blkio.bfq.weight") &&
		   (c->v2 || !cgroup_has(c, io, "blkio.weight"));
	const char *v2_name = bfq ? "io.bfq.weight" : "io.weight";
	const struct cgroup_file all = {"blockIO/weight", io,
					 {bfq ? "blkio.bfq.weight" : "blkio.weight", v2_name}},
				 one = {"blockIO/weightDevice", io,
					 {bfq ? "blkio.bfq.weight_device" : "blkio.weight_device",
						 v2_name}},
				 leaf = {"blockIO/weightDevice/leafWeight", io,
					 {"blkio.leaf_weight_device", NULL}};
	struct opt_i64 v = r->block_weight;

	if (c->v2 && !bfq && v.v)
		v.v = cgroup_io_weight(v.v);
	if (cgroup_set_opt(c, &all, &v, e) < 0)
		return -1;
	for (size_t i = 0; i < r->block_weights.n; i++) {
		const struct spec_block_value *d = &r->block_weights.v[i];

		v.set = d->value.v != 0;
		v.v = c->v2 && !bfq ? cgroup_io_weight(d->value.v) : d->value.v;
		if (set_device(c, &one, d, "", &v, e) < 0 ||
			set_device(c, &leaf, d, "", &d->leaf, e) < 0)
			return -1;
	}
	return 0;
}

static int limit_rates(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	const struct {
		const char *field, *file, *key;
		const struct spec_block_values *v;
	} rates[] = {
		{"blockIO/throttleReadBpsDevice", "blkio.throttle.read_bps_device",
			"rbps=", &r->read_bps},
		{"blockIO/throttleWriteBpsDevice", "blkio.throttle.write_bps_device",
			"wbps=", &r->write_bps},
		{"blockIO/throttleReadIOPSDevice", "blkio.throttle.read_iops_device",
			"riops=", &r->read_iops},
		{"blockIO/throttleWriteIOPSDevice", "blkio.throttle.write_iops_device",
			"wiops=", &r->write_iops},
	};

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
		for (size_t k = 0; k < rates[i].v->n; k++) {
			const struct cgroup_file f = {
				rates[i].field, c->v2 ? "io" : "blkio", {rates[i].file, "io.max"}};
			const struct spec_block_value *d = &rates[i].v->v[k];

			if (set_device(c, &f, d, rates[i].key, &d->value, e) < 0)
				return -1;
		}
	return 0;
}

/* ---- the rest ---- */

/* "max" to the files that know it. */
static int limit_pids(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	static const struct cgroup_file pids = {"pids/limit", "pids", {"pids.max", "pids.max"}};

	if (!r->pids.set || (r->pids.v <= 0 && !c->ndirs))
		return 0;
	return r->pids.v > 0 ? cgroup_set_number(c, &pids, r->pids.v, e)
			     : cgroup_set(c, &pids, "max", e);
}

/* What is reserved counts apart, where the kernel can: without a limit, reserving would go around
 * the other one. */
static int limit_hugetlb(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	const char *word = c->v2 ? "max" : "limit_in_bytes";
	char name[64], reserved[64];
	const struct cgroup_file f = {"hugepageLimits", "hugetlb", {name, name}},
				 other = {"hugepageLimits", "hugetlb", {reserved, reserved}};

	for (size_t i = 0; i < r->nhugetlb; i++) {
		const struct spec_hugetlb *h = &r->hugetlb[i];

		if (strlen(h->page_size) > 16 || strchr(h->page_size, '/'))
			return err_set(e, ERR_USAGE,
				"/linux/resources/hugepageLimits: no page size: '%.40s'",
				h->page_size);
		snprintf(name, sizeof(name), "hugetlb.%s.%s", h->page_size, word);
		snprintf(reserved, sizeof(reserved), "hugetlb.%s.rsvd.%s", h->page_size, word);
		if (cgroup_set_number(c, &f, h->limit, e) < 0)
			return -1;
		if (cgroup_has(c, "hugetlb", reserved) &&
			cgroup_set_number(c, &other, h->limit, e) < 0)
			return -1;
	}
	return 0;
}

static int limit_rdma(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	static const struct cgroup_file max = {"rdma", "rdma", {"rdma.max", "rdma.max"}};

	for (size_t i = 0; i < r->nrdma; i++) {
		const struct spec_rdma *d = &r->rdma[i];
		char line[192];
		int n = snprintf(line, sizeof(line), "%.100s", d->device);

		if (d->handles.set)
			n += snprintf(line + n, sizeof(line) - (size_t)n, " hca_handle=%" PRId64,
				d->handles.v);
		if (d->objects.set)
			snprintf(line + n, sizeof(line) - (size_t)n, " hca_object=%" PRId64,
				d->objects.v);
		if (cgroup_set(c, &max, line, e) < 0)
			return -1;
	}
	return 0;
}

static int limit_priorities(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	static const struct cgroup_file map = {
		"network/priorities", "net_prio", {"net_prio.ifpriomap", NULL}};
	char line[64];

	for (size_t i = 0; i < r->net_priorities.n; i++) {
		const struct spec_pair *p = &r->net_priorities.v[i];
		int n = snprintf(line, sizeof(line), "%s %s", p->name, p->value);

		if ((size_t)n >= sizeof(line))
			return err_set(e, ERR_USAGE,
				"/linux/resources/network/priorities: '%.40s' is too long",
				p->name);
		if (cgroup_set(c, &map, line, e) < 0)
			return -1;
	}
	return 0;
}

/* Line by line: the kernel's files with several take one at a time. */
static int write_unified(const struct cgroup *c, const struct spec_pair *p, struct err *e)
{
	char field[80], controller[64], line[4096];
	const struct cgroup_file f = {field, controller, {NULL, p->name}};

	snprintf(field, sizeof(field), "unified/%.60s", p->name);
	snprintf(controller, sizeof(controller), "%.*s", (int)strcspn(p->name, "."), p->name);
	for (const char *at = p->value; *at; at += *at == '\n') {
		size_t n = strcspn(at, "\n");

		if (n >= sizeof(line))
			return err_set(e, ERR_USAGE, "/linux/resources/%s: too long", field);
		snprintf(line, sizeof(line), "%.*s", (int)n, at);
		if (n && cgroup_set(c, &f, line, e) < 0)
			return -1;
		at += n;
	}
	return 0;
}

/* Last, and as written: who uses these names knows better than the other fields. */
static int limit_unified(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	if (r->unified.n && !c->v2) {
		err_set(e, ERR_UNSUPPORTED,
			"/linux/resources/unified: invalid configuration: this host has cgroups of "
			"version 1");
		return err_hint(e, "say the same by the fields that have names");
	}
	for (size_t i = 0; i < r->unified.n; i++)
		if (write_unified(c, &r->unified.v[i], e) < 0)
			return -1;
	return 0;
}

/* Fields that are a number for a file. The kernel's memory first: version 1 can only limit it while
 * there are no processes. */
static int limit_numbers(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	static const struct {
		struct cgroup_file file;
		size_t at;
	} numbers[] = {
		{{"memory/kernel", "memory", {"memory.kmem.limit_in_bytes", NULL}},
			offsetof(struct spec_resources, memory_kernel)},
		{{"memory/kernelTCP", "memory", {"memory.kmem.tcp.limit_in_bytes", NULL}},
			offsetof(struct spec_resources, memory_kernel_tcp)},
		{{"memory/reservation", "memory", {"memory.soft_limit_in_bytes", "memory.low"}},
			offsetof(struct spec_resources, memory_reservation)},
		{{"blockIO/leafWeight", "blkio", {"blkio.leaf_weight", NULL}},
			offsetof(struct spec_resources, block_leaf_weight)},
		{{"network/classID", "net_cls", {"net_cls.classid", NULL}},
			offsetof(struct spec_resources, net_class)},
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		const void *v = (const char *)r + numbers[i].at;

		if (cgroup_set_opt(c, &numbers[i].file, v, e) < 0)
			return -1;
	}
	return 0;
}

int cgroup_limit(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	static int (*const all[])(const struct cgroup *, const struct spec_resources *,
		struct err *) = {limit_numbers, limit_memory, limit_cpu, limit_cpuset,
		limit_weights, limit_rates, limit_hugetlb, limit_rdma, limit_priorities, limit_pids,
		limit_unified};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i](c, r, e) < 0)
			return -1;
	return 0;
}
