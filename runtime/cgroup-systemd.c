/* Source: org.freedesktop.systemd1(5), systemd.resource-control(5), busctl(1), and systemd's
 * CGROUP_DELEGATION document. */
#include "runtime/cgroup-systemd.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

#include "base/proc.h"
#include "base/str.h"
#include "base/sys.h"
#include "runtime/cgroup-file.h"
#include "runtime/cgroup-values.h"

enum { WORDS_MAX = 512, BUSCTL_SECONDS = 30, SETTLE_MS = 30000, CPUS_MAX = 8192, START_TRIES = 3 };

/* A command line in the making. Words are passed as they are: no shell, and no option after the
 * "--" that it begins with. */
struct call {
	struct arena mem;
	const char *words[WORDS_MAX + 1];
	size_t n;
	size_t properties, at; /* how many, and which word says so; 0: none does */
};

/* The last is NULL. */
static void words(struct call *c, ...)
{
	const char *w;
	va_list list;

	va_start(list, c);
	while ((w = va_arg(list, const char *))) {
		if (c->n < WORDS_MAX) /* one too many: run() refuses it */
			c->words[c->n] = w;
		c->n++;
	}
	va_end(list);
}

static void begin(struct call *c, const char *method, const char *signature)
{
	*c = (struct call){0};
	words(c, "busctl", cgroup_privileged() ? "--system" : "--user", "--quiet", "--", "call",
		"org.freedesktop.systemd1", "/org/freedesktop/systemd1",
		"org.freedesktop.systemd1.Manager", method, signature, NULL);
}

/* The environment that finds the user's bus, and nothing else. */
static int run(struct call *c, struct err *e)
{
	static const char *const names[] = {"XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"};
	const char *env[4] = {"PATH=/usr/local/bin:/usr/bin:/bin"};
	size_t n = 1;
	int rc;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (getenv(names[i]))
			env[n++] = arena_printf(&c->mem, "%s=%s", names[i], getenv(names[i]));
	if (c->at && c->at < WORDS_MAX)
		c->words[c->at] = arena_printf(&c->mem, "%zu", c->properties);
	if (c->n > WORDS_MAX)
		rc = err_set(e, ERR_USAGE, "too many properties for systemd");
	else
		rc = proc_check(
			&(struct proc){.argv = c->words, .env = env, .seconds = BUSCTL_SECONDS}, e);
	if (rc < 0)
		err_hint(e, "is systemd's bus there? Else go without --systemd-cgroup");
	arena_fini(&c->mem);
	return rc;
}

/* ---- properties ---- */

static void begin_properties(struct call *c)
{
	c->at = c->n;
	words(c, "", NULL);
}

static void property(struct call *c, const char *name, const char *type, const char *value)
{
	words(c, name, type, value, NULL);
	c->properties++;
}

static void property_number(struct call *c, const char *name, int64_t v)
{
	/* -1: infinity */
	property(c, name, "t", arena_printf(&c->mem, "%" PRIu64, v < 0 ? UINT64_MAX : (uint64_t)v));
}

/* "0-3,5" as systemd's bit set. */
static int property_set(
	struct call *c, const char *name, const char *field, const char *list, struct err *e)
{
	uint8_t bits[CPUS_MAX / 8];
	size_t n;

	if (!list || !*list)
		return 0;
	if (cgroup_bit_set(list, bits, sizeof(bits), &n) < 0)
		return err_set(
			e, ERR_USAGE, "/linux/resources/cpu/%s: no list: '%.60s'", field, list);
	property(c, name, "ay", arena_printf(&c->mem, "%zu", n));
	for (size_t i = 0; i < n; i++)
		words(c, arena_printf(&c->mem, "%u", bits[i]), NULL);
	return 0;
}

/* Microseconds for each second, in whole percents, rounded up: what systemd keeps. */
static void quota(struct call *c, const struct cgroup *g, const struct spec_resources *r)
{
	auto_buf struct buf text = BUF_INIT(4096);
	int dir = cgroup_dir_of(g, "cpu");
	char both[64];
	const char *old = both;
	int64_t period;
	uint64_t us;

	if (!r->cpu_quota.v && !r->cpu_period.v)
		return;
	snprintf(both, sizeof(both), "%" PRId64 " %" PRId64, cgroup_number(dir, "cpu.cfs_quota_us"),
		cgroup_number(dir, "cpu.cfs_period_us"));
	if (g->v2)
		old = cgroup_text(dir, "cpu.max", &text);
	cgroup_cpu_max(both, old, r->cpu_quota.v, r->cpu_period.v);
	us = strtoull(both, NULL, 10);
	period = strtoll(both + strcspn(both, " "), NULL, 10);
	if (both[0] == 'm' || both[0] == '-' || us > UINT64_MAX / 1000000)
		us = UINT64_MAX;
	else
		us = (us * 1000000 / (uint64_t)period + 9999) / 10000 * 10000;
	property(c, "CPUQuotaPerSecUSec", "t", arena_printf(&c->mem, "%" PRIu64, us));
	property_number(c, "CPUQuotaPeriodUSec", period);
}

/* Those of `unified` that systemd has a property for. */
static void unified(struct call *c, const struct spec_resources *r)
{
	static const struct {
		const char *file, *property;
	} known[] = {
		{"memory.min", "MemoryMin"},
		{"memory.low", "MemoryLow"},
		{"memory.high", "MemoryHigh"},
		{"memory.max", "MemoryMax"},
		{"memory.swap.max", "MemorySwapMax"},
		{"pids.max", "TasksMax"},
		{"cpu.weight", "CPUWeight"},
	};

	for (size_t i = 0; i < r->unified.n; i++)
		for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++) {
			const struct spec_pair *p = &r->unified.v[i];
			uint64_t v;

			if (!str_eq(p->name, known[k].file))
				continue;
			if (str_eq(p->value, "max"))
				property_number(c, known[k].property, -1);
			else if (str_u64(p->value, INT64_MAX, &v) == 0)
				property_number(c, known[k].property, (int64_t)v);
		}
}

/* The limits that systemd knows too: it writes its own ones again now and then. */
static int limits(
	struct call *c, const struct cgroup *g, const struct spec_resources *r, struct err *e)
{
	static const struct {
		const char *name[2]; /* by version */
		size_t at;
		int64_t (*convert)(int64_t v); /* for version 2 */
	} numbers[] = {
		{{"MemoryLimit", "MemoryMax"}, offsetof(struct spec_resources, memory_limit), NULL},
		{{NULL, "MemoryLow"}, offsetof(struct spec_resources, memory_reservation), NULL},
		{{"CPUShares", "CPUWeight"}, offsetof(struct spec_resources, cpu_shares),
			cgroup_weight},
		{{"BlockIOWeight", "IOWeight"}, offsetof(struct spec_resources, block_weight),
			cgroup_io_weight},
	};
	int64_t swap;

	if (r->pids.set)
		property_number(c, "TasksMax", r->pids.v > 0 ? r->pids.v : -1);
	quota(c, g, r);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		const struct opt_i64 *o = (const void *)((const char *)r + numbers[i].at);
		int64_t v = g->v2 && o->v && numbers[i].convert ? numbers[i].convert(o->v) : o->v;

		if (v && numbers[i].name[g->v2])
			property_number(c, numbers[i].name[g->v2], v);
	}
	if (!g->v2)
		return 0;
	if (r->memory_limit.v && r->memory_swap.v) {
		if (cgroup_swap(r->memory_swap.v, r->memory_limit.v, &swap, e) < 0)
			return -1;
		property_number(c, "MemorySwapMax", swap);
	}
	if (property_set(c, "AllowedCPUs", "cpus", r->cpus, e) < 0 ||
		property_set(c, "AllowedMemoryNodes", "mems", r->mems, e) < 0)
		return -1;
	unified(c, r);
	return 0;
}

/* ---- start, update, stop ---- */

static bool is_slice(const struct cgroup_place *p)
{
	return str_ends(p->unit, ".slice");
}

static int start(const struct cgroup *g, pid_t pid, const struct spec_resources *r, struct err *e)
{
	const struct cgroup_place *p = &g->place;
	const char *const yes[] = {"MemoryAccounting", "CPUAccounting", "TasksAccounting",
		g->v2 ? "IOAccounting" : "BlockIOAccounting"};
	struct call c;

	begin(&c, "StartTransientUnit", "ssa(sv)a(sa(sv))");
	words(&c, p->unit, "fail", NULL);
	begin_properties(&c);
	property(&c, "Description", "s", arena_printf(&c.mem, "container %s", p->unit));
	if (is_slice(p)) { /* has no processes of its own as systemd sees it, and is in its name */
		property(&c, "Wants", "as", "1");
		words(&c, p->slice, NULL);
	} else {
		property(&c, "Slice", "s", p->slice);
		property(&c, "PIDs", "au", "1");
		words(&c, arena_printf(&c.mem, "%d", (int)pid), NULL);
		property(&c, "Delegate", "b", "true");
		/* Else one that failed would be remembered, and the name be taken. */
		property(&c, "CollectMode", "s", "inactive-or-failed");
	}
	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		property(&c, yes[i], "b", "true");
	property(&c, "DefaultDependencies", "b", "false");
	if (limits(&c, g, r, e) < 0) {
		arena_fini(&c.mem);
		return -1;
	}
	words(&c, "0", NULL); /* no further units */
	return run(&c, e);
}

/* Where the process is now, when that is in the unit. */
static bool arrived(struct cgroup_place *p, pid_t pid, bool v2)
{
	char end[300];
	struct cgroup_lines lines;

	snprintf(end, sizeof(end), "/%s", p->unit);
	if (cgroup_lines_read(&lines, pid, v2, NULL) < 0)
		return false;
	for (size_t i = 0; i < lines.n; i++)
		if ((v2 || str_eq(lines.v[i].hierarchy, "systemd")) &&
			str_ends(lines.v[i].path, end)) {
			snprintf(p->path, sizeof(p->path), "%s", lines.v[i].path);
			return true;
		}
	return false;
}

/* The call only asks for a job; when the process has been moved, it is done. */
static int await(struct cgroup_place *p, pid_t pid, bool v2, struct err *e)
{
	static const struct timespec pause = {.tv_nsec = 2000000};
	double until = sys_now_ms() + SETTLE_MS;

	if (is_slice(p))
		return 0;
	while (!arrived(p, pid, v2)) {
		if (sys_now_ms() > until)
			return err_set(e, ERR_SYSTEM, "systemd did not start %s within %d s",
				p->unit, SETTLE_MS / 1000);
		nanosleep(&pause, NULL);
	}
	return 0;
}

static int forget(const struct cgroup_place *p, struct err *e)
{
	struct call c;

	begin(&c, "ResetFailedUnit", "s");
	words(&c, p->unit, NULL);
	return run(&c, e);
}

int cgroup_systemd_start(struct cgroup *g, pid_t pid, const struct spec_resources *r, struct err *e)
{
	struct err why = {0};

	for (int tries = 0; start(g, pid, r, &why) < 0; tries++) {
		/* One of that name failed once, or has ended and is still being cleared away. */
		if (tries < START_TRIES && strstr(why.text, "already") &&
			forget(&g->place, NULL) == 0) {
			why = (struct err){0};
			continue;
		}
		if (e)
			*e = why;
		return err_ctx(e, "have systemd make %s", g->place.unit);
	}
	return await(&g->place, pid, g->v2, e);
}

int cgroup_systemd_update(const struct cgroup *g, const struct spec_resources *r, struct err *e)
{
	struct call c;
	int rc;

	begin(&c, "SetUnitProperties", "sba(sv)");
	words(&c, g->place.unit, "true", NULL); /* until the next boot */
	begin_properties(&c);
	rc = limits(&c, g, r, e);
	if (rc < 0 || !c.properties) {
		arena_fini(&c.mem);
		return rc;
	}
	return run(&c, e) < 0 ? err_ctx(e, "have systemd change %s", g->place.unit) : 0;
}

int cgroup_systemd_stop(const struct cgroup_place *p, struct err *e)
{
	struct err why = {0};
	struct call c;

	begin(&c, "StopUnit", "ss");
	words(&c, p->unit, "replace", NULL);
	if (run(&c, &why) == 0 || strstr(why.text, "not loaded"))
		return 0;
	if (e)
		*e = why;
	return err_ctx(e, "have systemd stop %s", p->unit);
}
