/* What a cgroup has used, in the shape of runc's `events --stats`: keys, units and what is left out
 * when it is 0 are its. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "base/str.h"
#include "base/sys.h"
#include "runtime/cgroup-file.h"
#include "svrun/oci.h"

enum { STAT_MAX = 1 << 20 };

static void always(json_t *o, const char *key, int64_t v)
{
	json_object_set_new(o, key, json_integer(v > 0 ? v : 0));
}

static void unless_0(json_t *o, const char *key, int64_t v)
{
	if (v > 0)
		always(o, key, v);
}

/* ---- cpu: nanoseconds ---- */

/* A line "1 2 3", one number for each CPU. */
static void per_cpu(json_t *usage, const char *key, const char *text)
{
	json_t *list = json_array();

	for (const char *p = text; *p; p += strspn(p, " \n")) {
		json_array_append_new(list, json_integer((int64_t)strtoull(p, NULL, 10)));
		p += strcspn(p, " \n");
	}
	if (json_array_size(list))
		json_object_set(usage, key, list);
	json_decref(list);
}

static void cpu_usage_v1(const struct cgroup *c, json_t *usage)
{
	auto_buf struct buf text = BUF_INIT(STAT_MAX);
	int dir = cgroup_dir_of(c, "cpuacct");

	unless_0(usage, "total", cgroup_number(dir, "cpuacct.usage"));
	per_cpu(usage, "percpu", cgroup_text(dir, "cpuacct.usage_percpu", &text));
	per_cpu(usage, "percpu_kernel", cgroup_text(dir, "cpuacct.usage_percpu_sys", &text));
	per_cpu(usage, "percpu_user", cgroup_text(dir, "cpuacct.usage_percpu_user", &text));
	always(usage, "kernel", cgroup_number(dir, "cpuacct.usage_sys"));
	always(usage, "user", cgroup_number(dir, "cpuacct.usage_user"));
}

static void cpu_usage_v2(const char *stat, json_t *usage)
{
	unless_0(usage, "total", cgroup_key(stat, "usage_usec") * 1000);
	always(usage, "kernel", cgroup_key(stat, "system_usec") * 1000);
	always(usage, "user", cgroup_key(stat, "user_usec") * 1000);
}

static json_t *cpu(const struct cgroup *c)
{
	auto_buf struct buf text = BUF_INIT(STAT_MAX);
	const char *stat = cgroup_text(cgroup_dir_of(c, "cpu"), "cpu.stat", &text);
	json_t *usage = json_object(), *throttling = json_object();

	if (c->v2)
		cpu_usage_v2(stat, usage);
	else
		cpu_usage_v1(c, usage);
	unless_0(throttling, "periods", cgroup_key(stat, "nr_periods"));
	unless_0(throttling, "throttledPeriods", cgroup_key(stat, "nr_throttled"));
	unless_0(throttling, "throttledTime",
		c->v2 ? cgroup_key(stat, "throttled_usec") * 1000
		      : cgroup_key(stat, "throttled_time"));
	return json_pack("{s:o, s:o}", "usage", usage, "throttling", throttling);
}

/* "0-2,5" as [0, 1, 2, 5]. */
static json_t *number_list(const char *text)
{
	json_t *list = json_array();
	char *end;

	for (const char *p = text; *p >= '0' && *p <= '9'; p = end + (*end == ',')) {
		unsigned long first = strtoul(p, &end, 10), last = first;

		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (; first <= last && json_array_size(list) < 65536; first++)
			json_array_append_new(list, json_integer((int64_t)first));
	}
	return list;
}

static json_t *cpuset(const struct cgroup *c)
{
	static const char *const flags[] = {"cpu_exclusive", "mem_hardwall", "mem_exclusive",
		"memory_migrate", "memory_spread_page", "memory_spread_slab", "memory_pressure",
		"sched_load_balance", "sched_relax_domain_level"};
	static const char *const lists[] = {"cpus", "mems"};
	auto_buf struct buf text = BUF_INIT(STAT_MAX);
	int dir = cgroup_dir_of(c, "cpuset");
	json_t *o = json_object(), *list;
	char name[64];

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		snprintf(name, sizeof(name), "cpuset.%s%s", lists[i], c->v2 ? ".effective" : "");
		list = number_list(cgroup_text(dir, name, &text));
		if (json_array_size(list))
			json_object_set(o, lists[i], list);
		json_decref(list);
	}
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		snprintf(name, sizeof(name), "cpuset.%s", flags[i]);
		/* The last may be -1: the host's default. */
		json_object_set_new(
			o, flags[i], json_integer(strtol(cgroup_text(dir, name, &text), NULL, 10)));
	}
	return o;
}

/* ---- memory: bytes ---- */

static json_t *entry(int64_t limit, int64_t usage, int64_t max, int64_t failures)
{
	json_t *o = json_object();

	always(o, "limit", limit);
	unless_0(o, "usage", usage);
	unless_0(o, "max", max);
	always(o, "failcnt", failures);
	return o;
}

static json_t *entry_v1(int dir, const char *prefix)
{
	static const char *const names[] = {
		"limit_in_bytes", "usage_in_bytes", "max_usage_in_bytes", "failcnt"};
	int64_t v[4];
	char name[64];

	for (size_t i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "%s.%s", prefix, names[i]);
		v[i] = cgroup_number(dir, name);
	}
	return entry(v[0], v[1], v[2], v[3]);
}

/* "KEY NUMBER" lines. */
static json_t *raw(const char *stat)
{
	json_t *o = json_object();
	char key[64];

	for (const char *p = stat; *p; p += *p == '\n') {
		size_t n = strcspn(p, " \n");

		if (n && n < sizeof(key) && p[n] == ' ') {
			snprintf(key, sizeof(key), "%.*s", (int)n, p);
			json_object_set_new(
				o, key, json_integer((int64_t)strtoull(p + n, NULL, 10)));
		}
		p += strcspn(p, "\n");
	}
	return o;
}

/* Sums in which "no limit" stays so. */
static int64_t sum(int64_t a, int64_t b)
{
	return a == INT64_MAX || b == INT64_MAX || a < 0 || b < 0 ? INT64_MAX : a + b;
}

static void memory_v2(int dir, json_t *o)
{
	int64_t limit = cgroup_number(dir, "memory.max"),
		used = cgroup_number(dir, "memory.current"),
		swap = cgroup_number(dir, "memory.swap.current");

	json_object_set_new(o, "usage", entry(limit, used, cgroup_number(dir, "memory.peak"), 0));
	/* Memory and swap together, as version 1 counts it. */
	json_object_set_new(o, "swap",
		entry(sum(limit, cgroup_number(dir, "memory.swap.max")),
			used + (swap > 0 ? swap : 0), 0, 0));
	json_object_set_new(o, "kernel", entry(0, 0, 0, 0));
	json_object_set_new(o, "kernelTCP", entry(0, 0, 0, 0));
}

static json_t *memory(const struct cgroup *c)
{
	auto_buf struct buf text = BUF_INIT(STAT_MAX);
	int dir = cgroup_dir_of(c, "memory");
	const char *stat = cgroup_text(dir, "memory.stat", &text);
	json_t *o = json_object();

	unless_0(o, "cache", cgroup_key(stat, c->v2 ? "file" : "cache"));
	if (c->v2) {
		memory_v2(dir, o);
	} else {
		json_object_set_new(o, "usage", entry_v1(dir, "memory"));
		json_object_set_new(o, "swap", entry_v1(dir, "memory.memsw"));
		json_object_set_new(o, "kernel", entry_v1(dir, "memory.kmem"));
		json_object_set_new(o, "kernelTCP", entry_v1(dir, "memory.kmem.tcp"));
	}
	if (*stat)
		json_object_set_new(o, "raw", raw(stat));
	return o;
}

/* ---- the rest ---- */

static json_t *pids(const struct cgroup *c)
{
	int dir = cgroup_dir_of(c, "pids");
	int64_t max = cgroup_number(dir, "pids.max");
	json_t *o = json_object();

	unless_0(o, "current", cgroup_number(dir, "pids.current"));
	unless_0(o, "limit", max == INT64_MAX ? 0 : max);
	return o;
}

static void add_io(
	json_t *o, const char *key, unsigned major, unsigned minor, const char *op, uint64_t v)
{
	json_t *list = json_object_get(o, key), *one = json_object();

	if (!list) {
		list = json_array();
		json_object_set_new(o, key, list);
	}
	unless_0(one, "major", major);
	unless_0(one, "minor", minor);
	if (op)
		json_object_set_new(one, "op", json_string(op));
	unless_0(one, "value", (int64_t)v);
	json_array_append_new(list, one);
}

/* Lines "8:0 Read 123"; the last, "Total 123", is of no device. */
static void io_v1(json_t *o, const char *key, const char *text)
{
	for (const char *p = text; *p; p += *p == '\n') {
		unsigned major, minor;
		char op[16];
		uint64_t v;

		if (sscanf(p, "%u:%u %15s %" SCNu64, &major, &minor, op, &v) == 4)
			add_io(o, key, major, minor, op, v);
		p += strcspn(p, "\n");
	}
}

/* Lines "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6". */
static void io_v2(json_t *o, const char *text)
{
	static const char bytes[] = "ioServiceBytesRecursive", count[] = "ioServicedRecursive";
	static const struct {
		const char *word, *key, *op;
	} words[] = {{" rbytes=", bytes, "Read"}, {" wbytes=", bytes, "Write"},
		{" dbytes=", bytes, "Discard"}, {" rios=", count, "Read"},
		{" wios=", count, "Write"}, {" dios=", count, "Discard"}};

	for (const char *p = text; *p; p += *p == '\n') {
		size_t n = strcspn(p, "\n");
		unsigned major, minor;

		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
			const char *at = strstr(p, words[i].word);

			if (at && at < p + n && sscanf(p, "%u:%u ", &major, &minor) == 2)
				add_io(o, words[i].key, major, minor, words[i].op,
					strtoull(at + strlen(words[i].word), NULL, 10));
		}
		p += n;
	}
}

static json_t *blkio(const struct cgroup *c)
{
	static const struct {
		const char *key, *files[2];
	} v1[] = {
		{"ioServiceBytesRecursive", {"blkio.bfq.io_service_bytes_recursive",
						    "blkio.throttle.io_service_bytes_recursive"}},
		{"ioServicedRecursive", {"blkio.bfq.io_serviced_recursive",
						"blkio.throttle.io_serviced_recursive"}},
	};
	auto_buf struct buf text = BUF_INIT(STAT_MAX);
	json_t *o = json_object();

	if (c->v2)
		io_v2(o, cgroup_text(cgroup_dir_of(c, "io"), "io.stat", &text));
	for (size_t i = 0; !c->v2 && i < sizeof(v1) / sizeof(v1[0]); i++)
		for (size_t k = 0; k < 2 && !json_object_get(o, v1[i].key); k++)
			io_v1(o, v1[i].key,
				cgroup_text(cgroup_dir_of(c, "blkio"), v1[i].files[k], &text));
	return o;
}

/* The host's sizes of huge pages, as the names of the cgroup's files have them: "2MB". */
static json_t *hugetlb(const struct cgroup *c)
{
	int dir = cgroup_dir_of(c, "hugetlb");
	auto_fd int list = dir < 0 ? -1 : sys_openat(dir, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *d = list < 0 ? NULL : fdopendir(list);
	const char *end = c->v2 ? ".current" : ".usage_in_bytes";
	json_t *o = json_object(), *one;
	struct dirent *entry;
	char size[32], name[96];

	if (!d)
		return o;
	steal_fd(&list);
	while ((entry = readdir(d))) {
		const char *p = entry->d_name + strlen("hugetlb.");
		size_t n;

		if (!str_starts(entry->d_name, "hugetlb.") || !str_ends(entry->d_name, end))
			continue;
		n = strlen(p) - strlen(end);
		if (n >= sizeof(size) || memchr(p, '.', n)) /* "2MB.rsvd.current" */
			continue;
		snprintf(size, sizeof(size), "%.*s", (int)n, p);
		one = json_object();
		unless_0(one, "usage", cgroup_number(dir, entry->d_name));
		snprintf(name, sizeof(name), "hugetlb.%s.max_usage_in_bytes", size);
		unless_0(one, "max", cgroup_number(dir, name));
		snprintf(name, sizeof(name), "hugetlb.%s.failcnt", size);
		always(one, "failcnt", cgroup_number(dir, name));
		json_object_set_new(o, size, one);
	}
	closedir(d);
	return o;
}

json_t *oci_stats(const struct cgroup *c)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:{}, s:n}", "cpu", cpu(c), "cpuset",
		cpuset(c), "memory", memory(c), "pids", pids(c), "blkio", blkio(c), "hugetlb",
		hugetlb(c), "intel_rdt", "network_interfaces");
}
