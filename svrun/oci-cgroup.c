/* svrun-oci pause, resume and update: what is done to a container by its cgroup. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "runtime/rdt.h"
#include "svrun/oci.h"

enum { RESOURCES_MAX = 8 << 20 };

/* A container that lives, locked, and its cgroup. */
struct target {
	struct state s;
	struct cgroup c;
	enum state_status status;
};

static void target_fini(struct target *t)
{
	cgroup_fini(&t->c);
	state_close(&t->s);
}

static int target_open(struct target *t, const struct oci *o, const char *id, struct err *e)
{
	*t = (struct target){0};
	if (oci_open(o, id, true, &t->s, e) < 0)
		return -1;
	if (state_status(&t->s, &t->status, e) < 0 ||
		cgroup_open(&t->c, &t->s.cgroup, NULL, e) < 0) {
		state_close(&t->s);
		return -1;
	}
	return 0;
}

static int not_in(const struct target *t, const char *wanted, struct err *e)
{
	return err_set(e, ERR_USAGE, "container %s is %s, not %s", t->s.id,
		state_status_name(t->status), wanted);
}

/* ---- pause, resume ---- */

static int one_id(const struct command *self, int argc, char **argv, struct err *e)
{
	const struct option_spec options[] = {{0}};

	return options_parse(self, options, argc, argv, false, e);
}

int oci_pause(const struct oci *o, const struct command *self, int argc, char **argv, struct err *e)
{
	int first = one_id(self, argc, argv, e), rc;
	struct target t;

	if (first < 0 || target_open(&t, o, argv[first], e) < 0)
		return -1;
	if (t.status == STATE_RUNNING || t.status == STATE_CREATED)
		rc = cgroup_freeze(&t.c, true, e);
	else
		rc = not_in(&t, "running", e);
	target_fini(&t);
	return rc;
}

int oci_resume(
	const struct oci *o, const struct command *self, int argc, char **argv, struct err *e)
{
	int first = one_id(self, argc, argv, e), rc;
	struct target t;

	if (first < 0 || target_open(&t, o, argv[first], e) < 0)
		return -1;
	rc = t.status == STATE_PAUSED ? cgroup_freeze(&t.c, false, e) : not_in(&t, "paused", e);
	target_fini(&t);
	return rc;
}

/* ---- update ---- */

struct update {
	const char *resources, *cpus, *mems, *l3, *membw;
	const char *memory, *memory_swap, *reservation, *kernel, *kernel_tcp;
	const char *period, *quota, *shares, *burst, *idle, *rt_period, *rt_runtime;
	const char *weight, *pids;
};

/* A number, or with `bytes` a size ("512m"), or -1. */
static int number(
	const char *option, const char *text, bool bytes, struct opt_i64 *out, struct err *e)
{
	uint64_t v;

	if (!text || !*text)
		return 0;
	out->set = true;
	if (str_eq(text, "-1")) {
		out->v = -1;
		return 0;
	}
	if ((bytes ? option_bytes(text, &v) : str_u64(text, INT64_MAX, &v)) < 0 || v > INT64_MAX)
		return err_set(e, ERR_USAGE, "--%s: expected %s, or -1, got '%.60s'", option,
			bytes ? "bytes" : "a number", text);
	out->v = (int64_t)v;
	return 0;
}

static int from_options(const struct update *u, struct spec_resources *r, struct err *e)
{
	const struct {
		const char *option, *text;
		bool bytes;
		struct opt_i64 *out;
	} numbers[] = {
		{"memory", u->memory, true, &r->memory_limit},
		{"memory-swap", u->memory_swap, true, &r->memory_swap},
		{"memory-reservation", u->reservation, true, &r->memory_reservation},
		{"kernel-memory", u->kernel, true, &r->memory_kernel},
		{"kernel-memory-tcp", u->kernel_tcp, true, &r->memory_kernel_tcp},
		{"cpu-period", u->period, false, &r->cpu_period},
		{"cpu-quota", u->quota, false, &r->cpu_quota},
		{"cpu-share", u->shares, false, &r->cpu_shares},
		{"cpu-burst", u->burst, false, &r->cpu_burst},
		{"cpu-idle", u->idle, false, &r->cpu_idle},
		{"cpu-rt-period", u->rt_period, false, &r->cpu_rt_period},
		{"cpu-rt-runtime", u->rt_runtime, false, &r->cpu_rt_runtime},
		{"blkio-weight", u->weight, false, &r->block_weight},
		{"pids-limit", u->pids, false, &r->pids},
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (number(numbers[i].option, numbers[i].text, numbers[i].bytes, numbers[i].out,
			    e) < 0)
			return -1;
	if (u->cpus)
		r->cpus = u->cpus;
	if (u->mems)
		r->mems = u->mems;
	return 0;
}

static int from_file(const char *path, struct json_doc *doc, struct spec_resources *r,
	struct arena *mem, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(RESOURCES_MAX);

	if (str_eq(path, "-")) {
		if (file_read_fd(0, "stdin", &text, e) < 0 ||
			spec_doc_parse(doc, "stdin", text.data ? text.data : "", text.len, e) < 0)
			return -1;
	} else if (spec_doc_load(doc, AT_FDCWD, path, RESOURCES_MAX, e) < 0) {
		return -1;
	}
	return spec_read_resources(r, doc->root, str_eq(path, "-") ? "stdin" : path, mem, e);
}

/* The class of service that the container was given when it was made. */
static int update_rdt(const struct target *t, const struct update *u, struct err *e)
{
	struct spec s = {0};
	int rc;

	if (!u->l3 && !u->membw)
		return 0;
	if (state_config(&t->s, &s, e) < 0)
		return -1;
	if (!s.rdt.given) {
		rc = err_set(e, ERR_USAGE,
			"container %s has no linux.intelRdt whose schema could be changed",
			t->s.id);
	} else {
		if (u->l3)
			s.rdt.l3 = u->l3;
		if (u->membw)
			s.rdt.membw = u->membw;
		rc = rdt_apply(&s, t->s.id, t->s.pid, e);
	}
	spec_fini(&s);
	return rc;
}

static int update(struct target *t, const struct update *u, struct err *e)
{
	struct spec_resources r = {0};
	struct json_doc doc = {0};
	struct arena mem = {0};
	int rc;

	if (t->status == STATE_STOPPED || t->status == STATE_CREATING)
		return not_in(t, "running", e);
	rc = u->resources ? from_file(u->resources, &doc, &r, &mem, e) : 0;
	/* Its device rules are left: a filter is attached once, and never edited. */
	if (rc == 0)
		rc = from_options(u, &r, e);
	if (rc == 0)
		rc = cgroup_update(&t->c, &r, e);
	if (rc == 0)
		rc = update_rdt(t, u, e);
	arena_fini(&mem);
	json_doc_fini(&doc);
	return rc;
}

int oci_update(
	const struct oci *o, const struct command *self, int argc, char **argv, struct err *e)
{
	struct update u = {0};
	const struct option_spec options[] = {
		{"resources", 'r', OPTION_STRING, "FILE",
			"read the limits from a JSON file, - is stdin", &u.resources},
		{"memory", 0, OPTION_STRING, "BYTES", "memory", &u.memory},
		{"memory-swap", 0, OPTION_STRING, "BYTES", "memory and swap together, -1: any",
			&u.memory_swap},
		{"memory-reservation", 0, OPTION_STRING, "BYTES", "memory that is not taken away",
			&u.reservation},
		{"kernel-memory", 0, OPTION_STRING, "BYTES", "the kernel's memory", &u.kernel},
		{"kernel-memory-tcp", 0, OPTION_STRING, "BYTES", "that of TCP buffers",
			&u.kernel_tcp},
		{"cpu-period", 0, OPTION_STRING, "US", "period of the quota", &u.period},
		{"cpu-quota", 0, OPTION_STRING, "US", "CPU time in a period, -1: any", &u.quota},
		{"cpu-share", 0, OPTION_STRING, "N", "weight, 1024 is usual", &u.shares},
		{"cpu-burst", 0, OPTION_STRING, "US", "what may be saved up", &u.burst},
		{"cpu-idle", 0, OPTION_STRING, "0|1", "only run when nobody else does", &u.idle},
		{"cpu-rt-period", 0, OPTION_STRING, "US", "period of real-time tasks",
			&u.rt_period},
		{"cpu-rt-runtime", 0, OPTION_STRING, "US", "their CPU time in a period",
			&u.rt_runtime},
		{"cpuset-cpus", 0, OPTION_STRING, "LIST", "CPUs, 0-3,5", &u.cpus},
		{"cpuset-mems", 0, OPTION_STRING, "LIST", "memory nodes", &u.mems},
		{"blkio-weight", 0, OPTION_STRING, "N", "weight of its disk accesses, 10 to 1000",
			&u.weight},
		{"pids-limit", 0, OPTION_STRING, "N", "processes, -1: any", &u.pids},
		{"l3-cache-schema", 0, OPTION_STRING, "TEXT", "Intel RDT's cache", &u.l3},
		{"mem-bw-schema", 0, OPTION_STRING, "TEXT", "Intel RDT's memory bandwidth",
			&u.membw},
		{0},
	};
	int first = options_parse(self, options, argc, argv, false, e), rc;
	struct target t;

	if (first < 0 || target_open(&t, o, argv[first], e) < 0)
		return -1;
	rc = update(&t, &u, e);
	target_fini(&t);
	return rc;
}
