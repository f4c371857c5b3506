/* Source: org.freedesktop.systemd1(5), systemd.resource-control(5), busctl(1), and systemd's
 * CGROUP_DELEGATION document. */
#include "runtime/cgroup-file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "base/proc.h"
#include "base/str.h"
#include "base/sys.h"
#include "runtime/cgroup-values.h"

enum { WORDS_MAX = 512, BUSCTL_SECONDS = 30, SETTLE_MS = 30000, CPUS_MAX = 8192, START_TRIES = 3 };

/* A command line in the making. Words are passed as they are: no shell, and no option after the
 * "--" that it begins with. */
struct cgroup_told {
	struct arena mem;
	const char *words[WORDS_MAX + 1];
	size_t n;
	size_t properties, count_at; /* how many, and which word says so; 0: none does */
	bool v2;
	int64_t quota, period; /* of the CPU; 0: not told of */
};

/* Several at once, with a '|' between them: no word has one. COUNT: how many properties follow. */
static void printf_like(2, 3) words(struct cgroup_told *t, const char *fmt, ...)
{
	char text[2048], *at, *word;
	va_list list;

	va_start(list, fmt);
	vsnprintf(text, sizeof(text), fmt, list);
	va_end(list);
	for (at = arena_strdup(&t->mem, text); (word = strsep(&at, "|")); t->n++) {
		if (t->n < WORDS_MAX) /* one too many: run() refuses it */
			t->words[t->n] = word;
		if (str_eq(word, "COUNT"))
			t->count_at = t->n;
	}
}

/* Its name, type and value. */
#define property(t, ...) ((t)->properties++, words(t, __VA_ARGS__))

static void begin(struct cgroup_told *t, bool v2)
{
	*t = (struct cgroup_told){.v2 = v2};
	words(t,
		"busctl|%s|--quiet|--|call|org.freedesktop.systemd1|/org/freedesktop/systemd1|"
		"org.freedesktop.systemd1.Manager",
		cgroup_privileged() ? "--system" : "--user");
}

/* The environment that finds the user's bus, and nothing else. */
static int run(struct cgroup_told *t, struct err *e)
{
	static const char *const names[] = {"XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"};
	const char *env[4] = {"PATH=/usr/local/bin:/usr/bin:/bin"};
	const struct proc busctl = {.argv = t->words, .env = env, .seconds = BUSCTL_SECONDS};
	size_t n = 1;
	int rc = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (getenv(names[i]))
			env[n++] = arena_printf(&t->mem, "%s=%s", names[i], getenv(names[i]));
	if (t->count_at)
		t->words[t->count_at] = arena_printf(&t->mem, "%zu", t->properties);
	if (t->n > WORDS_MAX)
		rc = err_set(e, ERR_USAGE, "too many properties for systemd");
	else if (t->properties || !t->count_at)
		rc = proc_check(&busctl, e);
	if (rc < 0)
		err_hint(e, "is systemd's bus there? Else go without --systemd-cgroup");
	arena_fini(&t->mem);
	return rc;
}

/* ---- limits ---- */

/* "0-3,5" as systemd's bit set. A list that cannot be read is the kernel's to refuse. */
static void property_set(struct cgroup_told *t, const char *name, const char *list)
{
	uint8_t bits[CPUS_MAX / 8];
	size_t n;

	if (!t->v2 || cgroup_bit_set(list, bits, sizeof(bits), &n) < 0)
		return;
	property(t, "%s|ay|%zu", name, n);
	for (size_t i = 0; i < n; i++)
		words(t, "%u", bits[i]);
}

void cgroup_systemd_told(struct cgroup_told *t, const char *file, const char *text)
{
	static const struct {
		const char *file, *property;
	} known[] = {
		{"memory.limit_in_bytes", "MemoryLimit"},
		{"memory.max", "MemoryMax"},
		{"memory.min", "MemoryMin"},
		{"memory.low", "MemoryLow"},
		{"memory.high", "MemoryHigh"},
		{"memory.swap.max", "MemorySwapMax"},
		{"pids.max", "TasksMax"},
		{"cpu.shares", "CPUShares"},
		{"cpu.weight", "CPUWeight"},
		{"blkio.weight", "BlockIOWeight"},
		{"io.weight", "IOWeight"},
	};
	uint64_t v = UINT64_MAX; /* infinity */
	bool number =
		str_eq(text, "max") || str_eq(text, "-1") || str_u64(text, INT64_MAX, &v) == 0;

	for (size_t i = 0; number && i < sizeof(known) / sizeof(known[0]); i++)
		if (str_eq(file, known[i].file))
			property(t, "%s|t|%llu", known[i].property, (unsigned long long)v);
	if (str_eq(file, "cpuset.cpus"))
		property_set(t, "AllowedCPUs", text);
	else if (str_eq(file, "cpuset.mems"))
		property_set(t, "AllowedMemoryNodes", text);
	else if (str_eq(file, "cpu.cfs_quota_us"))
		t->quota = (int64_t)v;
	else if (str_eq(file, "cpu.cfs_period_us"))
		t->period = (int64_t)v;
	else if (str_eq(file, "cpu.max")) {
		t->quota = *text == 'm' ? -1 : strtoll(text, NULL, 10);
		t->period = strtoll(text + strcspn(text, " "), NULL, 10);
	}
}

/* Microseconds for each second, in whole percents, rounded up: what systemd keeps. */
static void quota(struct cgroup_told *t, const struct cgroup *c)
{
	int dir = cgroup_dir_of(c, "cpu");
	uint64_t us = UINT64_MAX;

	if (!t->quota && !t->period)
		return;
	if (!t->quota)
		t->quota = cgroup_number(dir, "cpu.cfs_quota_us");
	if (t->period <= 0)
		t->period = cgroup_number(dir, "cpu.cfs_period_us");
	if (t->period <= 0)
		t->period = 100000;
	if (t->quota >= 0 && t->quota <= INT64_MAX / 1000000)
		us = ((uint64_t)t->quota * 1000000 / (uint64_t)t->period + 9999) / 10000 * 10000;
	property(t, "CPUQuotaPerSecUSec|t|%llu", (unsigned long long)us);
	property(t, "CPUQuotaPeriodUSec|t|%lld", (long long)t->period);
}

/* The limits that systemd knows too: it writes its own ones again now and then. */
static int limits(struct cgroup_told *t, const struct cgroup *c, const struct spec_resources *r,
	struct err *e)
{
	struct cgroup telling = *c;
	int rc;

	telling.told = t;
	rc = cgroup_limit(&telling, r, e);
	quota(t, c);
	if (rc < 0)
		arena_fini(&t->mem);
	return rc;
}

/* ---- start, update, stop ---- */

static bool is_slice(const struct cgroup_place *p)
{
	return str_ends(p->unit, ".slice");
}

static int start(const struct cgroup *c, pid_t pid, const struct spec_resources *r, struct err *e)
{
	const struct cgroup_place *p = &c->place;
	struct cgroup_told t;

	begin(&t, c->v2);
	words(&t, "StartTransientUnit|ssa(sv)a(sa(sv))|%s|fail|COUNT", p->unit);
	property(&t, "Description|s|container %s", p->unit);
	if (is_slice(p)) { /* has no processes of its own as systemd sees it, and is in its name */
		property(&t, "Wants|as|1|%s", p->slice);
	} else {
		property(&t, "Slice|s|%s", p->slice);
		property(&t, "PIDs|au|1|%d", (int)pid);
		property(&t, "Delegate|b|true");
		/* Else one that failed would be remembered, and the name be taken. */
		property(&t, "CollectMode|s|inactive-or-failed");
	}
	property(&t, "MemoryAccounting|b|true");
	property(&t, "CPUAccounting|b|true");
	property(&t, "TasksAccounting|b|true");
	property(&t, "%s|b|true", c->v2 ? "IOAccounting" : "BlockIOAccounting");
	property(&t, "DefaultDependencies|b|false");
	if (limits(&t, c, r, e) < 0)
		return -1;
	words(&t, "0"); /* no further units */
	return run(&t, e);
}

/* The call only asks for a job; when the process is in the unit, it is done. */
static int await(struct cgroup_place *p, pid_t pid, bool v2, struct err *e)
{
	double until = sys_now_ms() + SETTLE_MS;
	struct cgroup_lines l;
	char end[300];

	snprintf(end, sizeof(end), "/%s", p->unit);
	while (!is_slice(p)) {
		if (cgroup_lines_read(&l, pid, v2, NULL) < 0)
			l.n = 0;
		for (size_t i = 0; i < l.n; i++)
			if ((v2 || str_eq(l.v[i].hierarchy, "systemd")) &&
				str_ends(l.v[i].path, end))
				return str_copy(p->path, sizeof(p->path), l.v[i].path);
		if (sys_now_ms() > until)
			return err_set(e, ERR_SYSTEM, "systemd did not start %s within %d s",
				p->unit, SETTLE_MS / 1000);
		nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
	}
	return 0;
}

static int forget(const struct cgroup_place *p)
{
	struct cgroup_told t;

	begin(&t, false);
	words(&t, "ResetFailedUnit|s|%s", p->unit);
	return run(&t, NULL);
}

int cgroup_systemd_start(struct cgroup *c, pid_t pid, const struct spec_resources *r, struct err *e)
{
	struct err why = {0};

	for (int tries = 0; start(c, pid, r, &why) < 0; tries++) {
		/* One of that name failed once, or has ended and is still being cleared away. */
		if (tries == START_TRIES || !strstr(why.text, "already") || forget(&c->place) < 0) {
			cgroup_fail(e, &why);
			return err_ctx(e, "have systemd make %s", c->place.unit);
		}
		why = (struct err){0};
	}
	return await(&c->place, pid, c->v2, e);
}

int cgroup_systemd_update(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	struct cgroup_told t;

	begin(&t, c->v2);
	words(&t, "SetUnitProperties|sba(sv)|%s|true|COUNT", c->place.unit); /* until a boot */
	if (limits(&t, c, r, e) < 0)
		return -1;
	return run(&t, e) < 0 ? err_ctx(e, "have systemd change %s", c->place.unit) : 0;
}

int cgroup_systemd_stop(const struct cgroup_place *p, struct err *e)
{
	struct err why = {0};
	struct cgroup_told t;

	begin(&t, false);
	words(&t, "StopUnit|ss|%s|replace", p->unit);
	if (run(&t, &why) == 0 || strstr(why.text, "not loaded"))
		return 0;
	cgroup_fail(e, &why);
	return err_ctx(e, "have systemd stop %s", p->unit);
}
