/* svrun-oci kill and delete */
#include <errno.h>
#include <poll.h>
#include <regex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "runtime/hooks.h"
#include "runtime/rdt.h"
#include "svrun/oci.h"

enum { KILL_WAIT_MS = 10000 };

/* ---- names of signals ---- */

static const struct {
	const char *name;
	int sig;
} signals[] = {
	{"ABRT", SIGABRT},
	{"ALRM", SIGALRM},
	{"BUS", SIGBUS},
	{"CHLD", SIGCHLD},
	{"CLD", SIGCHLD},
	{"CONT", SIGCONT},
	{"FPE", SIGFPE},
	{"HUP", SIGHUP},
	{"ILL", SIGILL},
	{"INT", SIGINT},
	{"IO", SIGIO},
	{"IOT", SIGIOT},
	{"KILL", SIGKILL},
	{"PIPE", SIGPIPE},
	{"POLL", SIGPOLL},
	{"PROF", SIGPROF},
	{"PWR", SIGPWR},
	{"QUIT", SIGQUIT},
	{"SEGV", SIGSEGV},
	{"STKFLT", SIGSTKFLT},
	{"STOP", SIGSTOP},
	{"SYS", SIGSYS},
	{"TERM", SIGTERM},
	{"TRAP", SIGTRAP},
	{"TSTP", SIGTSTP},
	{"TTIN", SIGTTIN},
	{"TTOU", SIGTTOU},
	{"URG", SIGURG},
	{"USR1", SIGUSR1},
	{"USR2", SIGUSR2},
	{"VTALRM", SIGVTALRM},
	{"WINCH", SIGWINCH},
	{"XCPU", SIGXCPU},
	{"XFSZ", SIGXFSZ},
};

/* "RTMIN", "RTMIN+3", "RTMAX-1"; 0 when it is none. */
static int real_time(const char *name)
{
	bool min = str_starts(name, "RTMIN");
	uint64_t n = 0;

	if (!min && !str_starts(name, "RTMAX"))
		return 0;
	name += strlen("RTMIN");
	if (*name && (*name != (min ? '+' : '-') ||
			     str_u64(name + 1, (uint64_t)(SIGRTMAX - SIGRTMIN), &n) < 0))
		return 0;
	return min ? SIGRTMIN + (int)n : SIGRTMAX - (int)n;
}

/* A number, or a name with or without SIG, in any case. */
static int parse_signal(const char *text, int *sig, struct err *e)
{
	const char *name = strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;
	char upper[16];
	uint64_t v;
	size_t i;

	if (str_u64(text, (uint64_t)SIGRTMAX, &v) == 0) {
		*sig = (int)v;
		return 0;
	}
	for (i = 0; name[i] && i + 1 < sizeof(upper); i++)
		upper[i] = name[i] >= 'a' && name[i] <= 'z' ? (char)(name[i] - 'a' + 'A') : name[i];
	upper[i] = '\0';
	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (str_eq(upper, signals[i].name)) {
			*sig = signals[i].sig;
			return 0;
		}
	*sig = real_time(upper);
	return *sig ? 0 : err_set(e, ERR_USAGE, "unknown signal \"%.40s\"", text);
}

/* ---- to a container, or to all that a pattern fits ---- */

struct doing {
	const struct oci *o;
	int sig;
	bool all, force;
	int (*one)(const struct doing *d, const char *id, struct err *e);
};

static int each_match(const struct doing *d, const regex_t *re, char **ids, size_t n, struct err *e)
{
	size_t failed = 0, tried = 0;

	for (size_t i = 0; i < n; i++) {
		struct err one = {0};

		if (regexec(re, ids[i], 0, NULL, 0) != 0)
			continue;
		tried++;
		if (d->one(d, ids[i], &one) < 0) {
			warn("%s", one.text);
			failed++;
		}
	}
	if (failed)
		return err_set(
			e, ERR_SYSTEM, "%zu of %zu containers: it did not work", failed, tried);
	return 0;
}

static int for_pattern(const struct doing *d, const char *pattern, struct err *e)
{
	auto_fd int root = oci_root(d->o, e);
	char **ids;
	size_t n;
	regex_t re;
	int rc;

	if (root < 0)
		return -1;
	if (regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB) != 0)
		return err_set(e, ERR_USAGE, "--regex: '%.100s' is no regular expression", pattern);
	rc = state_list(root, &ids, &n, e);
	if (rc == 0) {
		rc = each_match(d, &re, ids, n, e);
		for (size_t i = 0; i < n; i++)
			free(ids[i]);
		free(ids);
	}
	regfree(&re);
	return rc;
}

/* ---- kill ---- */

static int signal_all(const struct state *s, int sig, struct err *e)
{
	struct cgroup c;
	int rc;

	if (cgroup_open(&c, &s->cgroup, NULL, e) < 0)
		return -1;
	rc = c.ndirs ? cgroup_signal(&c, sig, e) : 0;
	cgroup_fini(&c);
	return rc;
}

/* The text is what engines take for "it has ended already". */
static int signal_first(const struct state *s, int sig, struct err *e)
{
	auto_fd int fd = state_pidfd(s);

	if (fd < 0 || syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0) < 0) {
		if (errno == ESRCH)
			return err_set(e, ERR_NOT_FOUND, "%s: container not running", s->id);
		return err_sys(e, "%s: signal %d", s->id, sig);
	}
	return 0;
}

/* Without the lock: it changes nothing of ours, and a `create` that hangs must not keep it away. */
static int kill_one(const struct doing *d, const char *id, struct err *e)
{
	struct state s;
	int rc;

	if (oci_open(d->o, id, false, &s, e) < 0)
		return -1;
	rc = d->all ? signal_all(&s, d->sig, e) : signal_first(&s, d->sig, e);
	/* On version 1 not even SIGKILL ends a frozen process. */
	if (rc == 0 && d->sig == SIGKILL && state_frozen(&s, true, e) < 0)
		rc = -1;
	state_close(&s);
	return rc;
}

int oci_kill(const struct oci *o, const struct command *self, int argc, char **argv, struct err *e)
{
	struct doing d = {.o = o, .sig = SIGTERM, .one = kill_one};
	bool regex = false;
	const struct option_spec options[] = {
		{"all", 'a', OPTION_FLAG, NULL, "to all processes of its cgroup", &d.all},
		{"regex", 'r', OPTION_FLAG, NULL, "ID is a pattern: to all that it fits", &regex},
		{0},
	};
	int first = options_parse(self, options, argc, argv, false, e);

	if (first < 0)
		return -1;
	if (argc - first > 1 && parse_signal(argv[first + 1], &d.sig, e) < 0)
		return -1;
	return regex ? for_pattern(&d, argv[first], e) : kill_one(&d, argv[first], e);
}

/* ---- delete ---- */

/* Kill the first process, and wait until it has ended. */
static int end_process(const struct state *s, struct err *e)
{
	struct pollfd p = {.fd = state_pidfd(s), .events = POLLIN};
	auto_fd int fd = p.fd;
	int n;

	if (fd < 0)
		return errno == ESRCH ? 0 : err_sys(e, "%s: process %d", s->id, (int)s->pid);
	if (syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0) < 0 && errno != ESRCH)
		return err_sys(e, "%s: kill process %d", s->id, (int)s->pid);
	if (state_frozen(s, true, e) < 0)
		return -1;
	do
		n = poll(&p, 1, KILL_WAIT_MS);
	while (n < 0 && errno == EINTR);
	if (n > 0)
		return 0;
	return err_set(e, ERR_SYSTEM, "%s: process %d does not end", s->id, (int)s->pid);
}

/* In an order that a kill in between does no harm to: the folder goes last. */
int oci_remove(const struct state *s, struct err *e)
{
	struct spec spec = {.json = NULL};
	struct err why = {0};
	int rc = 0;

	if (end_process(s, e) < 0)
		return -1;
	if (state_config(s, &spec, &why) < 0 && why.kind != ERR_NOT_FOUND)
		warn("%s: its hooks are not run: %s", s->id, why.text);
	if (s->cgroup.path[0] || s->cgroup.unit[0])
		rc = cgroup_destroy(&s->cgroup, e);
	if (rc == 0 && spec.json && s->bundle)
		oci_late_hooks(&spec, HOOK_POSTSTOP, s, STATE_STOPPED);
	if (rc == 0 && spec.rdt.given)
		rc = rdt_remove(&spec, s->id, e);
	if (rc == 0)
		rc = state_remove(s, e);
	spec_fini(&spec);
	return rc;
}

static int delete_one(const struct doing *d, const char *id, struct err *e)
{
	enum state_status status;
	struct err why = {0};
	struct state s;
	int rc;

	if (oci_open(d->o, id, true, &s, &why) < 0) {
		if (d->force && why.kind == ERR_NOT_FOUND && state_check_id(id, NULL) == 0)
			return 0;
		*e = why;
		return -1;
	}
	rc = d->force ? 0 : state_status(&s, &status, e);
	if (!d->force && rc == 0 && (status == STATE_RUNNING || status == STATE_PAUSED)) {
		rc = err_set(e, ERR_USAGE, "cannot delete container %s that is not stopped: %s", id,
			state_status_name(status));
		err_hint(e, "end it with kill, or use --force");
	}
	if (rc == 0)
		rc = oci_remove(&s, e);
	state_close(&s);
	return rc;
}

int oci_delete(
	const struct oci *o, const struct command *self, int argc, char **argv, struct err *e)
{
	struct doing d = {.o = o, .one = delete_one};
	bool regex = false;
	const struct option_spec options[] = {
		{"force", 'f', OPTION_FLAG, NULL, "kill it when it runs", &d.force},
		{"regex", 'r', OPTION_FLAG, NULL, "ID is a pattern: all that it fits", &regex},
		{0},
	};
	int first = options_parse(self, options, argc, argv, false, e);

	if (first < 0)
		return -1;
	return regex ? for_pattern(&d, argv[first], e) : delete_one(&d, argv[first], e);
}
