/* Version 2: one folder, below folders in which the controllers it needs are enabled, and its
 * limits. Source: Documentation/admin-guide/cgroup-v2.rst. */
#include "runtime/cgroup-file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "runtime/cgroup-host.h"
#include "runtime/cgroup-values.h"

/* ---- the folder ---- */

/* What engines read, and what an engine inside would hand on; and those that something asks for. */
static const char *const always[] = {"cpu", "memory", "pids", "io", "cpuset"};
enum { ALWAYS = sizeof(always) / sizeof(always[0]), WANTED_MAX = ALWAYS + 3 };

static size_t wanted(const struct spec_resources *r, const char *out[WANTED_MAX])
{
	bool misc = false;
	size_t n = 0;

	for (; n < ALWAYS; n++)
		out[n] = always[n];
	for (size_t i = 0; i < r->unified.n; i++)
		misc = misc || str_starts(r->unified.v[i].name, "misc.");
	if (r->nhugetlb)
		out[n++] = "hugetlb";
	if (r->nrdma)
		out[n++] = "rdma";
	if (misc)
		out[n++] = "misc";
	return n;
}

/* Is it one of the words of text? */
static bool has_word(const char *text, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = text; *p; p += strspn(p, " \n")) {
		size_t len = strcspn(p, " \n");

		if (len == n && strncmp(p, word, n) == 0)
			return true;
		p += len;
	}
	return false;
}

/* May controllers be enabled in it for those below? In one that has processes that fails, or,
 * worse, makes it a root of threads, and what is below unfit for processes. The host's root may. */
static bool gives(int dir)
{
	auto_buf struct buf procs = BUF_INIT(CGROUP_PIDS_TEXT);

	return faccessat(dir, "cgroup.type", F_OK, 0) < 0 ||
	       !*cgroup_text(dir, "cgroup.procs", &procs);
}

/* Enable in `dir`, for the folders below it, what it can give. Not checked: a limit whose file is
 * then missing says so, with its name. Returns whether all are there. */
static bool enable(int dir, const char *const *names, size_t n)
{
	auto_buf struct buf have = BUF_INIT(4096), can = BUF_INIT(4096);
	const char *on = cgroup_text(dir, "cgroup.subtree_control", &have);
	bool all = true;

	for (size_t i = 0; i < n; i++)
		all = all && has_word(on, names[i]);
	if (all)
		return true;
	const char *possible = cgroup_text(dir, "cgroup.controllers", &can);
	auto_fd int fd = gives(dir) ? sys_openat(dir, "cgroup.subtree_control", O_WRONLY, 0) : -1;

	/* One by one: those that cannot be had must not take the others with them. */
	for (size_t i = 0; fd >= 0 && i < n; i++) {
		char word[64];
		int len = snprintf(word, sizeof(word), "+%s", names[i]);

		if (!has_word(on, names[i]) && has_word(possible, names[i]) &&
			sys_write(fd, word, (size_t)len) < 0)
			continue;
	}
	return false;
}

/* Make what is missing of the folders above, and enable in each. */
static int make_above(int root, const char *path, const char *const *names, size_t n, struct err *e)
{
	char part[CGROUP_PATH_MAX];

	enable(root, names, n);
	for (const char *p = strchr(path, '/'); p; p = strchr(p + 1, '/')) {
		snprintf(part, sizeof(part), "%.*s", (int)(p - path), path);
		if (sys_mkdirat(root, part, 0755) < 0 && errno != EEXIST)
			return err_sys(e, "make cgroup /%s", part);
		auto_fd int dir = sys_openat(root, part, O_PATH | O_DIRECTORY, 0);
		if (dir < 0)
			return err_sys(e, "cgroup /%s", part);
		enable(dir, names, n);
	}
	return 0;
}

int cgroup_v2_make(struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	const char *path = c->place.path + 1, *slash = strrchr(path, '/'), *names[WANTED_MAX];
	size_t n = wanted(r, names);
	char parent[CGROUP_PATH_MAX];
	bool there;

	auto_fd int root = cgroup_root("");
	if (root < 0)
		return err_sys(e, CGROUP_ROOT);
	snprintf(parent, sizeof(parent), "%.*s", slash ? (int)(slash - path) : 1,
		slash ? path : ".");
	auto_fd int above = sys_openat(root, parent, O_PATH | O_DIRECTORY, 0);
	/* What the folder above gives, those above it give too. */
	if ((above < 0 || !enable(above, names, n)) && make_above(root, path, names, n, e) < 0)
		return -1;
	there = sys_mkdirat(root, path, 0755) < 0;
	if (there && errno != EEXIST)
		return err_sys(e, "make cgroup %s", c->place.path);
	auto_fd int dir = sys_openat(root, path, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	if (dir < 0)
		return err_sys(e, "cgroup %s", c->place.path);
	if (there && cgroup_take_over(c, dir, e) < 0)
		return -1;
	c->dirs[0] = (struct cgroup_dir){.dir = steal_fd(&dir), .tasks = -1, .made = !there};
	c->ndirs = 1;
	return 0;
}

/* ---- limits ---- */

static int refuse(const char *field, struct err *e)
{
	return err_set(e, ERR_UNSUPPORTED,
		"/linux/resources/%s: cgroups of version 2 have no such limit", field);
}

/* What version 1 had and no other field of version 2 says. */
static int check(const struct spec_resources *r, struct err *e)
{
	if (r->memory_kernel.v > 0)
		return refuse("memory/kernel", e);
	if (r->memory_kernel_tcp.v > 0)
		return refuse("memory/kernelTCP", e);
	if (r->memory_swappiness.set && r->memory_swappiness.v >= 0)
		return refuse("memory/swappiness", e);
	if (r->memory_no_oom_killer)
		return refuse("memory/disableOOMKiller", e);
	if (r->cpu_rt_runtime.v || r->cpu_rt_period.v)
		return refuse("cpu/realtimeRuntime", e);
	if (r->block_leaf_weight.v)
		return refuse("blockIO/leafWeight", e);
	if (r->net_class.v)
		return refuse("network/classID", e);
	return r->net_priorities.n ? refuse("network/priorities", e) : 0;
}

/* The spec's number is memory and swap together; this version's is swap alone. */
static int limit_swap(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	static const struct cgroup_file max = {"memory/swap", "memory", "memory.swap.max"};
	int64_t limit = r->memory_limit.v, both = r->memory_swap.v, swap;

	if (!both && limit == -1) /* no limit of memory means none of swap */
		both = -1;
	if (!both)
		return 0;
	if (!limit)
		limit = cgroup_number(cgroup_dir_of(c, "memory"), "memory.max");
	if (cgroup_swap(both, limit, &swap, e) < 0)
		return -1;
	/* Where swap is not counted there is none to forbid. */
	if (swap <= 0 && !cgroup_has(c, "memory", max.name))
		return 0;
	return cgroup_set_number(c, &max, swap, e);
}

static int limit_memory(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	static const struct cgroup_file max = {"memory/limit", "memory", "memory.max"},
					low = {"memory/reservation", "memory", "memory.low"};

	if (cgroup_set_opt(c, &max, &r->memory_limit, e) < 0 || limit_swap(c, r, e) < 0)
		return -1;
	return cgroup_set_opt(c, &low, &r->memory_reservation, e);
}

static int limit_cpu(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	static const struct cgroup_file weight = {"cpu/shares", "cpu", "cpu.weight"},
					idle = {"cpu/idle", "cpu", "cpu.idle"},
					max = {"cpu/quota", "cpu", "cpu.max"},
					burst = {"cpu/burst", "cpu", "cpu.max.burst"};
	auto_buf struct buf old = BUF_INIT(4096);
	char text[64];

	/* An idle group has no weight to set. */
	if ((r->cpu_idle.set && !r->cpu_idle.v && cgroup_set_number(c, &idle, 0, e) < 0) ||
		(r->cpu_shares.v &&
			cgroup_set_number(c, &weight, cgroup_weight(r->cpu_shares.v), e) < 0) ||
		cgroup_set_opt(c, &idle, &r->cpu_idle, e) < 0)
		return -1;
	/* Burst is at most the quota. */
	if (r->cpu_burst.set && !r->cpu_burst.v && cgroup_set_number(c, &burst, 0, e) < 0)
		return -1;
	if (r->cpu_quota.v || r->cpu_period.v) {
		cgroup_cpu_max(text, cgroup_text(cgroup_dir_of(c, "cpu"), max.name, &old),
			r->cpu_quota.v, r->cpu_period.v);
		if (cgroup_set(c, &max, text, e) < 0)
			return -1;
	}
	return cgroup_set_opt(c, &burst, &r->cpu_burst, e);
}

static int limit_cpuset(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	static const struct cgroup_file cpus = {"cpu/cpus", "cpuset", "cpuset.cpus"},
					mems = {"cpu/mems", "cpuset", "cpuset.mems"};

	if (r->cpus && *r->cpus && cgroup_set(c, &cpus, r->cpus, e) < 0)
		return -1;
	return r->mems && *r->mems ? cgroup_set(c, &mems, r->mems, e) : 0;
}

/* BFQ's weights are those of version 1, iocost's have their own range. */
static int limit_weights(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	bool bfq = cgroup_has(c, "io", "io.bfq.weight");
	const char *name = bfq ? "io.bfq.weight" : "io.weight";
	const struct cgroup_file all = {"blockIO/weight", "io", name},
				 one = {"blockIO/weightDevice", "io", name};
	char line[64];

	if (r->block_weight.v &&
		cgroup_set_number(c, &all,
			bfq ? r->block_weight.v : cgroup_io_weight(r->block_weight.v), e) < 0)
		return -1;
	for (size_t i = 0; i < r->block_weights.n; i++) {
		const struct spec_block_value *v = &r->block_weights.v[i];

		if (v->leaf.v)
			return refuse("blockIO/weightDevice/leafWeight", e);
		snprintf(line, sizeof(line), "%u:%u %" PRId64, v->major, v->minor,
			bfq ? v->value.v : cgroup_io_weight(v->value.v));
		if (v->value.v && cgroup_set(c, &one, line, e) < 0)
			return -1;
	}
	return 0;
}

static int limit_rates(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	const struct {
		const char *field, *key;
		const struct spec_block_values *v;
	} rates[] = {
		{"blockIO/throttleReadBpsDevice", "rbps", &r->read_bps},
		{"blockIO/throttleWriteBpsDevice", "wbps", &r->write_bps},
		{"blockIO/throttleReadIOPSDevice", "riops", &r->read_iops},
		{"blockIO/throttleWriteIOPSDevice", "wiops", &r->write_iops},
	};

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		const struct cgroup_file max = {rates[i].field, "io", "io.max"};

		for (size_t k = 0; k < rates[i].v->n; k++) {
			const struct spec_block_value *v = &rates[i].v->v[k];
			char line[80], n[24] = "max"; /* 0: no limit, as version 1 has it */

			if (v->value.v)
				snprintf(n, sizeof(n), "%" PRId64, v->value.v);
			snprintf(line, sizeof(line), "%u:%u %s=%s", v->major, v->minor,
				rates[i].key, n);
			if (cgroup_set(c, &max, line, e) < 0)
				return -1;
		}
	}
	return 0;
}

/* Line by line: the kernel's files with several take one at a time. */
static int write_unified(const struct cgroup *c, const struct spec_pair *p, struct err *e)
{
	char field[80], controller[64], line[4096];
	const struct cgroup_file f = {field, controller, p->name};

	snprintf(field, sizeof(field), "unified/%.60s", p->name);
	snprintf(controller, sizeof(controller), "%.*s",
		(int)strnlen(p->name, strcspn(p->name, ".")), p->name);
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

int cgroup_v2_limit(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	if (check(r, e) < 0 || limit_memory(c, r, e) < 0 || limit_cpu(c, r, e) < 0 ||
		limit_cpuset(c, r, e) < 0 || limit_weights(c, r, e) < 0 ||
		limit_rates(c, r, e) < 0 || cgroup_limit_common(c, r, e) < 0)
		return -1;
	/* Last, and as written: who uses these names knows better than the other fields. */
	for (size_t i = 0; i < r->unified.n; i++)
		if (write_unified(c, &r->unified.v[i], e) < 0)
			return -1;
	return 0;
}
