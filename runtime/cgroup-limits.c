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
	if (!c->v2)
		return limit_both(c, r, e);
	return cgroup_set_opt(c, &memory_limit, &r->memory_limit, e) < 0 ? -1 : limit_swap(c, r, e);
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

static int limit_cpu(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	static const struct cgroup_file files[] = {
		{"cpu/period", "cpu", {"cpu.cfs_period_us", "cpu.max"}},
		{"cpu/quota", "cpu", {"cpu.cfs_quota_us", "cpu.max"}},
		{"cpu/realtimePeriod", "cpu", {"cpu.rt_period_us", NULL}},
		{"cpu/realtimeRuntime", "cpu", {"cpu.rt_runtime_us", NULL}},
	};
	auto_buf struct buf old = BUF_INIT(4096);
	char text[64];

	if (limit_quota(c, &files[2], &r->cpu_rt_period, &files[3], &r->cpu_rt_runtime, e) < 0)
		return -1;
	if (!c->v2)
		return limit_quota(c, &files[0], &r->cpu_period, &files[1], &r->cpu_quota, e);
	if (!r->cpu_quota.v && !r->cpu_period.v)
		return 0;
	cgroup_cpu_max(text, cgroup_text(cgroup_dir_of(c, "cpu"), "cpu.max", &old), r->cpu_quota.v,
		r->cpu_period.v);
	return cgroup_set(c, &files[1], text, e);
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

/* What is reserved counts apart, where the kernel can: without a limit, reserving would go around
 * the other one. */
static int limit_hugetlb(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	const char *word = c->v2 ? "max" : "limit_in_bytes";
	char name[64], reserved[64];
	const struct cgroup_file files[] = {{"hugepageLimits", "hugetlb", {name, name}},
		{"hugepageLimits", "hugetlb", {reserved, reserved}}};

	for (size_t i = 0; i < r->nhugetlb; i++) {
		const struct spec_hugetlb *h = &r->hugetlb[i];

		if (strlen(h->page_size) > 16 || strchr(h->page_size, '/'))
			return err_set(e, ERR_USAGE,
				"/linux/resources/hugepageLimits: no page size: '%.40s'",
				h->page_size);
		snprintf(name, sizeof(name), "hugetlb.%s.%s", h->page_size, word);
		snprintf(reserved, sizeof(reserved), "hugetlb.%s.rsvd.%s", h->page_size, word);
		if (cgroup_set_number(c, &files[0], h->limit, e) < 0 ||
			(cgroup_has(c, "hugetlb", reserved) &&
				cgroup_set_number(c, &files[1], h->limit, e) < 0))
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

/* ---- all ---- */

enum how {
	NUMBER,    /* as it is */
	FROM_0,    /* the same, and 0 is one too; less is the host's default */
	IF_0,      /* only 0 */
	PROCESSES, /* "max" for all that is no limit, which the file knows in both versions */
	SHARES,    /* version 2 has a weight */
	TEXT,
	FLAG
};

/* A field that goes into one file. */
struct row {
	struct cgroup_file file;
	size_t at;
	enum how how;
};
#define AT(member) offsetof(struct spec_resources, member)

/* The kernel's memory comes before all: version 1 can only limit it while there are no processes.
 * An idle group has no shares to set. Burst is at most the quota. */
static const struct row before[] = {
	{{"memory/kernel", "memory", {"memory.kmem.limit_in_bytes", NULL}}, AT(memory_kernel),
		NUMBER},
	{{"memory/kernelTCP", "memory", {"memory.kmem.tcp.limit_in_bytes", NULL}},
		AT(memory_kernel_tcp), NUMBER},
	{{"memory/swappiness", "memory", {"memory.swappiness", NULL}}, AT(memory_swappiness),
		FROM_0},
	{{"memory/disableOOMKiller", "memory", {"memory.oom_control", NULL}},
		AT(memory_no_oom_killer), FLAG},
	{{"memory/reservation", "memory", {"memory.soft_limit_in_bytes", "memory.low"}},
		AT(memory_reservation), NUMBER},
	{{"blockIO/leafWeight", "blkio", {"blkio.leaf_weight", NULL}}, AT(block_leaf_weight),
		NUMBER},
	{{"network/classID", "net_cls", {"net_cls.classid", NULL}}, AT(net_class), NUMBER},
	{{"cpu/idle", "cpu", {"cpu.idle", "cpu.idle"}}, AT(cpu_idle), IF_0},
	{{"cpu/shares", "cpu", {"cpu.shares", "cpu.weight"}}, AT(cpu_shares), SHARES},
	{{"cpu/idle", "cpu", {"cpu.idle", "cpu.idle"}}, AT(cpu_idle), NUMBER},
	{{"cpu/burst", "cpu", {"cpu.cfs_burst_us", "cpu.max.burst"}}, AT(cpu_burst), IF_0},
};
static const struct row after[] = {
	{{"cpu/burst", "cpu", {"cpu.cfs_burst_us", "cpu.max.burst"}}, AT(cpu_burst), NUMBER},
	{{"cpu/cpus", "cpuset", {"cpuset.cpus", "cpuset.cpus"}}, AT(cpus), TEXT},
	{{"cpu/mems", "cpuset", {"cpuset.mems", "cpuset.mems"}}, AT(mems), TEXT},
	{{"pids/limit", "pids", {"pids.max", "pids.max"}}, AT(pids), PROCESSES},
};

static int set_row(const struct cgroup *c, const struct row *row, const struct spec_resources *r,
	struct err *e)
{
	const void *at = (const char *)r + row->at;
	const char *const *text = at;
	const struct opt_i64 *v = at;
	const bool *flag = at;

	switch (row->how) {
	case NUMBER:
		return cgroup_set_opt(c, &row->file, v, e);
	case FROM_0:
		return v->set && v->v >= 0 ? cgroup_set_number(c, &row->file, v->v, e) : 0;
	case IF_0:
		return v->set && !v->v ? cgroup_set_number(c, &row->file, 0, e) : 0;
	case PROCESSES:
		if (v->v > 0)
			return cgroup_set_number(c, &row->file, v->v, e);
		return v->set && c->ndirs ? cgroup_set(c, &row->file, "max", e) : 0;
	case SHARES:
		if (!v->v || !c->v2)
			return cgroup_set_opt(c, &row->file, v, e);
		return cgroup_set_number(c, &row->file, cgroup_weight(v->v), e);
	case TEXT:
		return *text && **text ? cgroup_set(c, &row->file, *text, e) : 0;
	case FLAG:
		return *flag ? cgroup_set(c, &row->file, "1", e) : 0;
	}
	return 0;
}

int cgroup_limit(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++)
		if (set_row(c, &before[i], r, e) < 0)
			return -1;
	if (limit_memory(c, r, e) < 0 || limit_cpu(c, r, e) < 0)
		return -1;
	for (size_t i = 0; i < sizeof(after) / sizeof(after[0]); i++)
		if (set_row(c, &after[i], r, e) < 0)
			return -1;
	if (limit_weights(c, r, e) < 0 || limit_rates(c, r, e) < 0 || limit_hugetlb(c, r, e) < 0 ||
		limit_rdma(c, r, e) < 0 || limit_priorities(c, r, e) < 0)
		return -1;
	return limit_unified(c, r, e);
}
