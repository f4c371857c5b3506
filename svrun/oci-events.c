/* svrun-oci events: what a container uses, once or again and again, and when it runs out of memory;
 * one JSON object a line, as runc prints them. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/json.h"
#include "base/str.h"
#include "base/sys.h"
#include "runtime/cgroup-file.h"
#include "svrun/oci.h"

enum { INTERVAL_MS = 5000 };

struct watch {
	struct state s;
	struct cgroup c;
	int process, oom; /* descriptors; oom -1: nobody tells */
	uint64_t kills;   /* that were told */
};

/* "5s", "500ms", "1m30s": as Go writes durations. */
static int duration(const char *text, int *ms, struct err *e)
{
	static const struct {
		const char *unit;
		double ms;
	} units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
	const char *p = text;
	double sum = 0;

	while (*p) {
		char *end;
		double n = *p >= '0' && *p <= '9' ? strtod(p, &end) : -1;
		size_t i = 0, len = n < 0 ? 0 : strspn(end, "hms");

		for (; i < 4; i++)
			if (strlen(units[i].unit) == len && strncmp(end, units[i].unit, len) == 0)
				break;
		if (n < 0 || i == 4)
			return err_set(e, ERR_USAGE,
				"--interval: expected a time as 5s or 500ms, got '%.40s'", text);
		sum += n * units[i].ms;
		p = end + len;
	}
	if (sum < 1 || sum > 1e9)
		return err_set(e, ERR_USAGE, "--interval: must be from 1ms to 277h");
	*ms = (int)sum;
	return 0;
}

/* Whole lines at once: who reads the pipe parses line by line. */
static int print(const char *type, const char *id, json_t *data, struct err *e)
{
	auto_json json_t *o = json_pack("{s:s, s:s}", "type", type, "id", id);
	auto_free char *text = NULL;
	size_t n;

	if (data)
		json_object_set_new(o, "data", data);
	text = json_dumps(o, JSON_COMPACT);
	n = strlen(text);
	text[n] = '\n';
	return sys_write_all(1, text, n + 1) < 0 ? err_sys(e, "write to stdout") : 0;
}

static int print_stats(const struct watch *w, struct err *e)
{
	return print("stats", w->s.id, oci_stats(&w->c), e);
}

static int print_oom(struct watch *w, struct err *e)
{
	uint64_t kills = cgroup_oom_kills(&w->c), count;
	bool told = kills > w->kills;

	/* Version 1's descriptor counts, also what the kernel was not allowed to kill for. */
	if (!w->c.v2 && sys_read(w->oom, &count, sizeof(count)) == sizeof(count))
		told = true;
	w->kills = kills;
	return told ? print("oom", w->s.id, NULL, e) : 0;
}

/* Until the container ends. */
static int follow(struct watch *w, int interval, struct err *e)
{
	double next = sys_now_ms() + interval;
	struct pollfd fds[2] = {{.fd = w->process, .events = POLLIN},
		{.fd = w->oom, .events = (short)(w->c.v2 ? POLLPRI : POLLIN)}};

	for (;;) {
		double left = next - sys_now_ms();
		int n = poll(fds, 2, left < 0 ? 0 : (int)left + 1);

		if (n < 0 && errno != EINTR)
			return err_sys(e, "poll");
		if (n > 0 && fds[1].revents && print_oom(w, e) < 0)
			return -1;
		if (n > 0 && fds[0].revents)
			return 0;
		if (sys_now_ms() < next)
			continue;
		if (print_stats(w, e) < 0)
			return -1;
		next += interval;
	}
}

static int watch_open(struct watch *w, const struct oci *o, const char *id, struct err *e)
{
	enum state_status status;

	if (oci_open(o, id, false, &w->s, e) < 0)
		return -1;
	if (state_status(&w->s, &status, e) < 0 || cgroup_open(&w->c, &w->s.cgroup, NULL, e) < 0)
		return -1;
	if (status == STATE_STOPPED || status == STATE_CREATING)
		return err_set(e, ERR_USAGE, "container %s is not running", id);
	w->process = state_pidfd(&w->s);
	if (w->process < 0)
		return err_sys(e, "container %s", id);
	return 0;
}

/* Readable when memory ran out or, on version 2, something else happened to it, on version 1 also
 * when the kernel may not kill, and when the cgroup goes. -1: it cannot be had. */
static int oom_fd(const struct cgroup *c)
{
	int dir = cgroup_dir_of(c, "memory");
	char text[32];
	int n;

	auto_fd int file =
		sys_openat(dir, c->v2 ? "memory.events" : "memory.oom_control", O_RDONLY, 0);
	if (dir < 0 || file < 0 || c->v2)
		return dir < 0 ? -1 : steal_fd(&file);
	auto_fd int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	auto_fd int control = sys_openat(dir, "cgroup.event_control", O_WRONLY, 0);
	n = snprintf(text, sizeof(text), "%d %d", event, file);
	if (event < 0 || control < 0 || sys_write_all(control, text, (size_t)n) < 0)
		return -1;
	return steal_fd(&event);
}

static int events(struct watch *w, bool once, int interval, struct err *e)
{
	if (once)
		return print_stats(w, e);
	w->kills = cgroup_oom_kills(&w->c);
	w->oom = oom_fd(&w->c); /* without, there are statistics alone */
	return follow(w, interval, e);
}

int oci_events(
	const struct oci *o, const struct command *self, int argc, char **argv, struct err *e)
{
	struct watch w = {.s = {.root = -1, .dir = -1}, .process = -1, .oom = -1};
	const char *every = NULL;
	bool once = false;
	const struct option_spec options[] = {
		{"stats", 0, OPTION_FLAG, NULL, "print what it uses once", &once},
		{"interval", 0, OPTION_STRING, "TIME", "how often that is printed (5s)", &every},
		{0},
	};
	int first = options_parse(self, options, argc, argv, false, e), ms = INTERVAL_MS, rc;

	if (first < 0 || (every && duration(every, &ms, e) < 0))
		return -1;
	rc = watch_open(&w, o, argv[first], e) < 0 ? -1 : events(&w, once, ms, e);
	sys_close_ref(&w.process);
	sys_close_ref(&w.oom);
	cgroup_fini(&w.c);
	state_close(&w.s);
	return rc;
}
