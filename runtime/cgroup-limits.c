/* A config's limits in a cgroup's files, in the order that the kernel wants. */
#include "runtime/cgroup-file.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "base/str.h"
#include "runtime/cgroup-values.h"

/* When it is set, and not 0: which means "as it is", as engines use it. */
static int set_opt(
	const struct cgroup *c, const struct cgroup_file *f, const struct opt_i64 *v, struct err *e)
{
	if (!v->set || !v->v || (v->v < 0 && !f->name[c->v2]))
		return 0;
	return cgroup_set_number(c, f, v->v, e);
}

/* ---- memory ---- */

static const struct cgroup_file memory_limit = {"memory/limit",
					{"memory.limit_in_bytes", "memory.max"}},
				memory_swap = {"memory/swap",
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
	if (grows && set_opt(c, &memory_swap, &swap, e) < 0)
		return -1;
	if (set_opt(c, &memory_limit, &limit, e) < 0)
		return err_hint(e, "it cannot be less than what is in use and cannot be freed");
	return grows ? 0 : set_opt(c, &memory_swap, &swap, e);
}

static int limit_memory(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	int64_t limit = r->memory_limit.v, both = r->memory_swap.v, swap;

	if (!c->v2)
		return limit_both(c, r, e);
	if (set_opt(c, &memory_limit, &r->memory_limit, e) < 0)
		return -1;
	/* Version 2 counts swap alone. No limit of memory means none of swap. */
	if (!both && limit == -1)
		both = -1;
	if (!both)
		return 0;
	if (!limit)
		limit = cgroup_number(cgroup_dir_of(c, "memory"), memory_limit.name[1]);
	if (cgroup_swap(both, limit, &swap, e) < 0)
		return -1;
	/* Where swap is not counted there is none to forbid. */
	if (swap <= 0 && !c->told && !cgroup_has(c, memory_swap.name[1]))
		return 0;
	return cgroup_set_number(c, &memory_swap, swap, e);
}

/* ---- CPU ---- */

/* Version 1's kernels refuse a period that the old quota does not fit: the order depends on both.
 */
static int limit_quota(const struct cgroup *c, const struct cgroup_file f[2],
	const struct opt_i64 *period, const struct opt_i64 *quota, struct err *e)
{
	if (set_opt(c, &f[0], period, quota->set ? NULL : e) == 0)
		return set_opt(c, &f[1], quota, e);
	return !quota->set || set_opt(c, &f[1], quota, e) < 0 ? -1 : set_opt(c, &f[0], period, e);
}

static int limit_cpu(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	static const struct cgroup_file realtime[] = {
		{"cpu/realtimePeriod", {"cpu.rt_period_us", NULL}},
		{"cpu/realtimeRuntime", {"cpu.rt_runtime_us", NULL}}};
	static const struct cgroup_file fair[] = {{"cpu/period", {"cpu.cfs_period_us", "cpu.max"}},
		{"cpu/quota", {"cpu.cfs_quota_us", "cpu.max"}}};
	auto_buf struct buf old = BUF_INIT(4096);
	char text[64];

	if (limit_quota(c, realtime, &r->cpu_rt_period, &r->cpu_rt_runtime, e) < 0)
		return -1;
	if (!c->v2)
		return limit_quota(c, fair, &r->cpu_period, &r->cpu_quota, e);
	if (!r->cpu_quota.v && !r->cpu_period.v)
		return 0;
	cgroup_cpu_max(text, cgroup_text(cgroup_dir_of(c, "cpu"), "cpu.max", &old), r->cpu_quota.v,
		r->cpu_period.v);
	return cgroup_set(c, &fair[1], e, "%s", text);
}

/* ---- disks ---- */

static int set_device(const struct cgroup *c, const struct cgroup_file *f,
	const struct spec_block_value *d, const char *key, int64_t v, struct err *e)
{
	/* 0 is no limit on version 1. */
	if (c->v2 && *key && !v)
		return cgroup_set(c, f, e, "%u:%u %smax", d->major, d->minor, key);
	return cgroup_set(c, f, e, "%u:%u %s%" PRId64, d->major, d->minor, c->v2 ? key : "", v);
}

/* The BFQ scheduler has files of its own, with the range of version 1, which are the only ones of
 * some kernels. iocost's weights have their own range. */
static int limit_weights(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	bool bfq = cgroup_has(c, c->v2 ? "io.bfq.weight" : "blkio.bfq.weight") &&
		   (c->v2 || !cgroup_has(c, "blkio.weight"));
	const char *v2_name = bfq ? "io.bfq.weight" : "io.weight";
	const struct cgroup_file all = {"blockIO/weight",
					 {bfq ? "blkio.bfq.weight" : "blkio.weight", v2_name}},
				 one = {"blockIO/weightDevice",
					 {bfq ? "blkio.bfq.weight_device" : "blkio.weight_device",
						 v2_name}},
				 leaf = {"blockIO/weightDevice/leafWeight",
					 {"blkio.leaf_weight_device", NULL}};
	struct opt_i64 v = r->block_weight;
	bool converts = c->v2 && !bfq;

	if (v.v && converts)
		v.v = cgroup_io_weight(v.v);
	if (set_opt(c, &all, &v, e) < 0)
		return -1;
	for (size_t i = 0; i < r->block_weights.n; i++) {
		const struct spec_block_value *d = &r->block_weights.v[i];
		int64_t w = converts ? cgroup_io_weight(d->value.v) : d->value.v;

		if ((d->value.v && set_device(c, &one, d, "", w, e) < 0) ||
			(d->leaf.set && set_device(c, &leaf, d, "", d->leaf.v, e) < 0))
			return -1;
	}
	return 0;
}

/* ---- the rest ---- */

/* What is reserved counts apart, where the kernel can: without a limit, reserving would go around
 * the other one. */
static int limit_hugetlb(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	static const char *const kinds[] = {"", "rsvd."};
	char name[64];
	const struct cgroup_file f = {"hugepageLimits", {name, name}};

	for (size_t i = 0; i < 2 * r->nhugetlb; i++) {
		const struct spec_hugetlb *h = &r->hugetlb[i / 2];

		snprintf(name, sizeof(name), "hugetlb.%s.%s%s", h->page_size, kinds[i % 2],
			c->v2 ? "max" : "limit_in_bytes");
		if ((i % 2 == 0 || cgroup_has(c, name)) &&
			cgroup_set_number(c, &f, h->limit, e) < 0)
			return -1;
	}
	return 0;
}

static int limit_rdma(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	static const struct cgroup_file max = {"rdma", {"rdma.max", "rdma.max"}};

	for (size_t i = 0; i < r->nrdma; i++) {
		const struct spec_rdma *d = &r->rdma[i];
		char handles[48] = "", objects[48] = "";

		if (d->handles.set)
			snprintf(handles, sizeof(handles), " hca_handle=%" PRId64, d->handles.v);
		if (d->objects.set)
			snprintf(objects, sizeof(objects), " hca_object=%" PRId64, d->objects.v);
		if (cgroup_set(c, &max, e, "%.100s%s%s", d->device, handles, objects) < 0)
			return -1;
	}
	return 0;
}

static int limit_priorities(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	static const struct cgroup_file map = {"network/priorities", {"net_prio.ifpriomap", NULL}};

	for (size_t i = 0; i < r->net_priorities.n; i++) {
		const struct spec_pair *p = &r->net_priorities.v[i];

		if (cgroup_set(c, &map, e, "%s %s", p->name, p->value) < 0)
			return -1;
	}
	return 0;
}

/* Last, and as written: who uses these names knows better than the other fields. Line by line: the
 * kernel's files with several take one at a time. */
static int limit_unified(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	if (r->unified.n && !c->v2) {
		err_set(e, ERR_UNSUPPORTED,
			"/linux/resources/unified: invalid configuration: this host has cgroups of "
			"version 1");
		return err_hint(e, "say the same by the fields that have names");
	}
	for (size_t i = 0; i < r->unified.n; i++) {
		const struct spec_pair *p = &r->unified.v[i];
		char field[80];
		const struct cgroup_file f = {field, {NULL, p->name}};
		size_t n;

		snprintf(field, sizeof(field), "unified/%.60s", p->name);
		for (const char *at = p->value; *at; at += n + (at[n] == '\n')) {
			n = strcspn(at, "\n");
			if (n && cgroup_set(c, &f, e, "%.*s", (int)n, at) < 0)
				return -1;
		}
	}
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
	FLAG,
	RATES, /* one for each device; key: what version 2 calls it */
	OTHER  /* more than one file, or more than one field */
};

struct row {
	struct cgroup_file file;
	enum how how;
	size_t at; /* the member of struct spec_resources */
	const char *key;
	int (*other)(const struct cgroup *c, const struct spec_resources *r, struct err *e);
};

#define ROW(how_, member, field, v1, v2, ...)                                                      \
	{                                                                                          \
		.file = {field, {v1, v2}}, .how = how_,                                            \
		.at = offsetof(struct spec_resources, member), __VA_ARGS__                         \
	}
#define RATE(member, key_, field, v1) ROW(RATES, member, field, v1, "io.max", .key = key_)
#define CALL(fn)                                                                                   \
	{                                                                                          \
		.how = OTHER, .other = (fn)                                                        \
	}

/* The kernel's memory comes before all: version 1 can only limit it while there are no processes.
 * An idle group has no shares to set. Burst is at most the quota. */
static const struct row rows[] = {
	ROW(NUMBER, memory_kernel, "memory/kernel", "memory.kmem.limit_in_bytes", NULL),
	ROW(NUMBER, memory_kernel_tcp, "memory/kernelTCP", "memory.kmem.tcp.limit_in_bytes", NULL),
	ROW(FROM_0, memory_swappiness, "memory/swappiness", "memory.swappiness", NULL),
	ROW(FLAG, memory_no_oom_killer, "memory/disableOOMKiller", "memory.oom_control", NULL),
	ROW(NUMBER, memory_reservation, "memory/reservation", "memory.soft_limit_in_bytes",
		"memory.low"),
	ROW(NUMBER, block_leaf_weight, "blockIO/leafWeight", "blkio.leaf_weight", NULL),
	ROW(NUMBER, net_class, "network/classID", "net_cls.classid", NULL),
	ROW(IF_0, cpu_idle, "cpu/idle", "cpu.idle", "cpu.idle"),
	ROW(SHARES, cpu_shares, "cpu/shares", "cpu.shares", "cpu.weight"),
	ROW(NUMBER, cpu_idle, "cpu/idle", "cpu.idle", "cpu.idle"),
	ROW(IF_0, cpu_burst, "cpu/burst", "cpu.cfs_burst_us", "cpu.max.burst"),
	CALL(limit_memory),
	CALL(limit_cpu),
	ROW(NUMBER, cpu_burst, "cpu/burst", "cpu.cfs_burst_us", "cpu.max.burst"),
	ROW(TEXT, cpus, "cpu/cpus", "cpuset.cpus", "cpuset.cpus"),
	ROW(TEXT, mems, "cpu/mems", "cpuset.mems", "cpuset.mems"),
	ROW(PROCESSES, pids, "pids/limit", "pids.max", "pids.max"),
	CALL(limit_weights),
	RATE(read_bps, "rbps=", "blockIO/throttleReadBpsDevice", "blkio.throttle.read_bps_device"),
	RATE(write_bps, "wbps=", "blockIO/throttleWriteBpsDevice",
		"blkio.throttle.write_bps_device"),
	RATE(read_iops, "riops=", "blockIO/throttleReadIOPSDevice",
		"blkio.throttle.read_iops_device"),
	RATE(write_iops, "wiops=", "blockIO/throttleWriteIOPSDevice",
		"blkio.throttle.write_iops_device"),
	CALL(limit_hugetlb),
	CALL(limit_rdma),
	CALL(limit_priorities),
	CALL(limit_unified),
};

static int set_rates(const struct cgroup *c, const struct row *row,
	const struct spec_block_values *l, struct err *e)
{
	for (size_t i = 0; i < l->n; i++)
		if (set_device(c, &row->file, &l->v[i], row->key, l->v[i].value.v, e) < 0)
			return -1;
	return 0;
}

static int set_row(const struct cgroup *c, const struct row *row, const struct spec_resources *r,
	struct err *e)
{
	const void *at = (const char *)r + row->at;
	const char *const *text = at;
	const struct opt_i64 *v = at;

	switch (row->how) {
	case NUMBER:
		return set_opt(c, &row->file, v, e);
	case FROM_0:
		return v->set && v->v >= 0 ? cgroup_set_number(c, &row->file, v->v, e) : 0;
	case IF_0:
		return v->set && !v->v ? cgroup_set_number(c, &row->file, 0, e) : 0;
	case PROCESSES:
		if (v->v > 0)
			return cgroup_set_number(c, &row->file, v->v, e);
		return v->set && (c->ndirs || c->told) ? cgroup_set(c, &row->file, e, "max") : 0;
	case SHARES:
		if (!v->v || !c->v2)
			return set_opt(c, &row->file, v, e);
		return cgroup_set_number(c, &row->file, cgroup_weight(v->v), e);
	case TEXT:
		return *text && **text ? cgroup_set(c, &row->file, e, "%s", *text) : 0;
	case FLAG:
		return *(const bool *)at ? cgroup_set(c, &row->file, e, "1") : 0;
	case RATES:
		return set_rates(c, row, at, e);
	case OTHER:
		return row->other(c, r, e);
	}
	return 0;
}

int cgroup_limit(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (set_row(c, &rows[i], r, e) < 0)
			return -1;
	return 0;
}
