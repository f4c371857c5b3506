#include "svrun/instance-stop.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"
#include "svrun/command.h"
#include "svrun/enter.h"
#include "svrun/instance.h"
#include "svrun/options.h"

#include "base/str.h"

enum { STARTING_MS = 30000, STEP_MS = 20, SECONDS_MAX = 86400 };

static int send_signal(int pidfd, int sig, struct err *e)
{
	if (syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0) < 0 && errno != ESRCH)
		return err_sys(e, "send a signal");
	return 0;
}

/* 1: it has ended, 0: not within the time (-1: there is none). */
static int await(int pidfd, int ms, struct err *e)
{
	double end = sys_now_ms() + ms;
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	for (;;) {
		double left = ms < 0 ? -1 : end - sys_now_ms();
		int n = poll(&p, 1, ms < 0 ? -1 : left > 0 ? (int)left + 1 : 0);

		if (n < 0 && errno == EINTR)
			continue;
		return n < 0 ? err_sys(e, "poll") : n;
	}
}

static int stop(const struct instance_view *v, int supervisor, int seconds, struct err *e)
{
	int rc;

	if (send_signal(supervisor, SIGTERM, e) < 0)
		return -1;
	rc = await(supervisor, seconds < 0 ? -1 : seconds * 1000, e);
	if (rc)
		return rc;
	return send_signal(v->pidfd, SIGKILL, e) < 0 ? -1 : await(supervisor, -1, e);
}

/* One that is just being made, started again, or cleaned up has no process to be stopped: it soon
 * has, or none is left. */
static int try_stop(int root, const char *id, int seconds, bool *wait, struct err *e)
{
	struct err why = {0};
	struct instance_view v;
	int supervisor, rc;

	*wait = false;
	if (instance_open(root, id, &v, &why) < 0) {
		*wait = why.kind == ERR_EXISTS; /* somebody has locked it */
		if (*wait)
			return 0;
		if (e)
			*e = why;
		return -1;
	}
	supervisor = v.running ? instance_supervisor(&v) : -1;
	rc = supervisor < 0 ? 0 : stop(&v, supervisor, seconds, e);
	*wait = v.running && rc == 0;
	sys_close_ref(&supervisor);
	instance_close(&v);
	return rc;
}

int instance_stop(int root, const char *id, int seconds, struct err *e)
{
	double end = sys_now_ms() + STARTING_MS;

	for (;;) {
		bool wait;
		int rc = try_stop(root, id, seconds, &wait, e);

		if (rc || !wait)
			return rc;
		if (sys_now_ms() > end)
			return err_set(e, ERR_EXISTS, "container %s neither starts nor ends", id);
		(void)poll(NULL, 0, STEP_MS);
	}
}

int cmd_stop(const struct command *self, int argc, char **argv, struct err *e)
{
	const char *time = NULL;
	const struct option_spec options[] = {
		{"time", 't', OPTION_STRING, "SECONDS", "until it is killed (its --stop-timeout)",
			&time},
		{0},
	};
	int rc = 0, first = options_parse(self, options, argc, argv, false, e);
	uint64_t seconds = 0;
	struct store s;

	if (first < 0)
		return -1;
	if (time && str_u64(time, SECONDS_MAX, &seconds) < 0)
		return err_set(
			e, ERR_USAGE, "--time '%s': expected seconds, 0 to %d", time, SECONDS_MAX);
	if (store_enter(&s, e) < 0)
		return -1;
	for (int i = first; i < argc && rc >= 0; i++) {
		rc = instance_stop(s.fd, argv[i], time ? (int)seconds : -1, e);
		if (rc >= 0)
			puts(argv[i]);
	}
	store_close(&s);
	return rc < 0 ? -1 : 0;
}
