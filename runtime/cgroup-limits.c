/* Limits that both versions have. */
#include <inttypes.h>
#include <stdio.h>

#include "base/str.h"
#include "runtime/cgroup-file.h"

/* "max" to the files that know it. */
static int limit_pids(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	static const struct cgroup_file pids = {"pids/limit", "pids", "pids.max"};

	if (!r->pids.set)
		return 0;
	return r->pids.v > 0 ? cgroup_set_number(c, &pids, r->pids.v, e)
			     : cgroup_set(c, &pids, "max", e);
}

/* What is reserved counts apart, where the kernel can: without a limit, reserving would go around
 * the other one. */
static int limit_hugetlb(const struct cgroup *c, const struct spec_hugetlb *h, struct err *e)
{
	const char *word = c->v2 ? "max" : "limit_in_bytes";
	char name[64], reserved[64];
	struct cgroup_file f = {"hugepageLimits", "hugetlb", name};

	if (strlen(h->page_size) > 16 || strchr(h->page_size, '/'))
		return err_set(e, ERR_USAGE,
			"/linux/resources/hugepageLimits: no page size: '%.40s'", h->page_size);
	snprintf(name, sizeof(name), "hugetlb.%s.%s", h->page_size, word);
	snprintf(reserved, sizeof(reserved), "hugetlb.%s.rsvd.%s", h->page_size, word);
	if (cgroup_set_number(c, &f, h->limit, e) < 0)
		return -1;
	f.name = reserved;
	return cgroup_has(c, "hugetlb", reserved) ? cgroup_set_number(c, &f, h->limit, e) : 0;
}

static int limit_rdma(const struct cgroup *c, const struct spec_rdma *d, struct err *e)
{
	static const struct cgroup_file max = {"rdma", "rdma", "rdma.max"};
	char line[192];
	int n = snprintf(line, sizeof(line), "%.100s", d->device);

	if (d->handles.set)
		n += snprintf(
			line + n, sizeof(line) - (size_t)n, " hca_handle=%" PRId64, d->handles.v);
	if (d->objects.set)
		snprintf(line + n, sizeof(line) - (size_t)n, " hca_object=%" PRId64, d->objects.v);
	return cgroup_set(c, &max, line, e);
}

int cgroup_limit_common(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	for (size_t i = 0; i < r->nhugetlb; i++)
		if (limit_hugetlb(c, &r->hugetlb[i], e) < 0)
			return -1;
	for (size_t i = 0; i < r->nrdma; i++)
		if (limit_rdma(c, &r->rdma[i], e) < 0)
			return -1;
	return limit_pids(c, r, e);
}

const char *cgroup_first_limit(const struct spec_resources *r)
{
	const struct {
		const char *field;
		bool asked;
	} limits[] = {
		{"memory/limit", r->memory_limit.v != 0},
		{"memory/reservation", r->memory_reservation.v != 0},
		{"memory/swap", r->memory_swap.v != 0},
		{"memory/kernel", r->memory_kernel.v != 0},
		{"memory/kernelTCP", r->memory_kernel_tcp.v != 0},
		{"memory/swappiness", r->memory_swappiness.set && r->memory_swappiness.v >= 0},
		{"memory/disableOOMKiller", r->memory_no_oom_killer},
		{"cpu/shares", r->cpu_shares.v != 0},
		{"cpu/quota", r->cpu_quota.v != 0},
		{"cpu/period", r->cpu_period.v != 0},
		{"cpu/burst", r->cpu_burst.v != 0},
		{"cpu/idle", r->cpu_idle.v != 0},
		{"cpu/realtimeRuntime", r->cpu_rt_runtime.v != 0},
		{"cpu/realtimePeriod", r->cpu_rt_period.v != 0},
		{"cpu/cpus", r->cpus && *r->cpus},
		{"cpu/mems", r->mems && *r->mems},
		{"pids/limit", r->pids.set && r->pids.v > 0},
		{"blockIO/weight", r->block_weight.v != 0},
		{"blockIO/leafWeight", r->block_leaf_weight.v != 0},
		{"blockIO/weightDevice", r->block_weights.n > 0},
		{"blockIO/throttleReadBpsDevice", r->read_bps.n > 0},
		{"blockIO/throttleWriteBpsDevice", r->write_bps.n > 0},
		{"blockIO/throttleReadIOPSDevice", r->read_iops.n > 0},
		{"blockIO/throttleWriteIOPSDevice", r->write_iops.n > 0},
		{"hugepageLimits", r->nhugetlb > 0},
		{"rdma", r->nrdma > 0},
		{"network/classID", r->net_class.set},
		{"network/priorities", r->net_priorities.n > 0},
		{"unified", r->unified.n > 0},
	};

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		if (limits[i].asked)
			return limits[i].field;
	return NULL;
}
