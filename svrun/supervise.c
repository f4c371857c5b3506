#include "svrun/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"

static const double interrupt_window_ms = 2000;

/* Signals that are not passed on: those that mean svrun itself, and those of its own faults. */
static const int kept[] = {SIGKILL, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SIGPIPE, SIGSEGV, SIGBUS,
	SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGABRT};

/* Those that ask for the end. */
static const int stops[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};

int supervise_streams_open(struct err *e)
{
	for (;;) {
		int fd = open("/dev/null", O_RDWR); /* without O_CLOEXEC: it is a standard stream */

		if (fd < 0)
			return err_sys(e, "/dev/null");
		if (fd > 2)
			return close(fd);
	}
}

/* ---- streams ---- */

static bool can_be_given(int fd)
{
	struct stat st;

	if (sys_fstat(fd, &st) < 0)
		return false;
	return S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) ||
	       (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3));
}

/* Our own descriptor of a standard stream, which does not block where that can be had without
 * changing the descriptor that we share with others. */
static int own_end(int fd)
{
	char path[32];
	struct stat st;
	int again = -1;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (sys_fstat(fd, &st) == 0 && S_ISCHR(st.st_mode))
		again = sys_open(path, (fd ? O_WRONLY : O_RDONLY) | O_NONBLOCK | O_NOCTTY, 0);
	return again >= 0 ? again : fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

static int add_relay(struct supervise *s, int i, int own_from, int own_to, struct err *e)
{
	if (own_from < 0 || own_to < 0) {
		err_sys(e, "standard stream %d", i);
		sys_close_ref(&own_from);
		sys_close_ref(&own_to);
		return -1;
	}
	s->relays[i] = mem_alloc(sizeof(*s->relays[i]));
	relay_init(s->relays[i], own_from, own_to);
	return 0;
}

static int pipe_stream(struct supervise *s, int i, struct err *e)
{
	int p[2], theirs = i == 0 ? 0 : 1; /* the container reads its 0 and writes the others */

	if (sys_pipe(p) < 0)
		return err_sys(e, "pipe");
	s->stdio[i] = p[theirs];
	if (fcntl(p[!theirs], F_SETFL, O_NONBLOCK) < 0) {
		close(p[!theirs]);
		return err_sys(e, "pipe");
	}
	return i == 0 ? add_relay(s, i, own_end(0), p[1], e) : add_relay(s, i, p[0], own_end(i), e);
}

static int prepare_stream(struct supervise *s, int i, struct err *e)
{
	if (s->terminal || (i == 0 && !s->interactive)) {
		s->stdio[i] = sys_open("/dev/null", O_RDWR, 0);
		return s->stdio[i] < 0 ? err_sys(e, "/dev/null") : 0;
	}
	if (!s->as_is && !can_be_given(i))
		return pipe_stream(s, i, e);
	s->stdio[i] = fcntl(i, F_DUPFD_CLOEXEC, 3);
	return s->stdio[i] < 0 ? err_sys(e, "standard stream %d", i) : 0;
}

static int open_signals(struct supervise *s, struct err *e)
{
	sigset_t set;

	sigfillset(&set);
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		sigdelset(&set, kept[i]);
	if (sigprocmask(SIG_SETMASK, &set, NULL) < 0)
		return err_sys(e, "block signals");
	signal(SIGPIPE, SIG_IGN); /* a reader that goes away ends its stream, not svrun */
	s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++)
		sigaddset(&set, stops[i]);
	s->stops = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return s->signals < 0 || s->stops < 0 ? err_sys(e, "signalfd") : 0;
}

int supervise_init(struct supervise *s, const struct supervise_options *o, struct err *e)
{
	*s = (struct supervise){.stdio = {-1, -1, -1},
		.signals = -1,
		.stops = -1,
		.master = -1,
		.tty = {.fd = -1},
		.interactive = o->interactive,
		.as_is = o->as_is,
		.terminal = o->terminal,
		.stop_ms = o->stop_seconds * 1000};
	if (open_signals(s, e) < 0) {
		supervise_fini(s);
		return -1;
	}
	for (int i = 0; i < 3; i++)
		if (prepare_stream(s, i, e) < 0) {
			supervise_fini(s);
			return -1;
		}
	return 0;
}

void supervise_fini(struct supervise *s)
{
	tty_restore(&s->tty);
	for (int i = 0; i < 3; i++) {
		sys_close_ref(&s->stdio[i]);
		if (s->relays[i])
			relay_fini(s->relays[i]);
		free(s->relays[i]);
		s->relays[i] = NULL;
	}
	sys_close_ref(&s->signals);
	sys_close_ref(&s->stops);
	sys_close_ref(&s->master);
}

/* The container's terminal against ours: master to stdout, stdin to master. */
static int connect_terminal(struct supervise *s, int own_master, struct err *e)
{
	s->master = own_master;
	if (fcntl(s->master, F_SETFL, O_NONBLOCK) < 0)
		return err_sys(e, "terminal");
	tty_copy_size(s->master);
	if (add_relay(s, 1, fcntl(s->master, F_DUPFD_CLOEXEC, 3), own_end(1), e) < 0)
		return -1;
	if (!s->interactive)
		return 0;
	tty_raw(&s->tty, 0);
	if (add_relay(s, 0, own_end(0), fcntl(s->master, F_DUPFD_CLOEXEC, 3), e) < 0)
		return -1;
	s->relays[0]->typed = !isatty(0);
	return 0;
}

/* ---- signals ---- */

/* Would the first process of the container die of this signal, were it not the first? It would when
 * it neither handles nor ignores nor blocks it. */
static bool unhandled(pid_t pid, int sig)
{
	char path[32], line[128];
	uint64_t mask, seen = 0;
	unsigned found = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "SigBlk: %" SCNx64, &mask) == 1 ||
			sscanf(line, "SigIgn: %" SCNx64, &mask) == 1 ||
			sscanf(line, "SigCgt: %" SCNx64, &mask) == 1) {
			seen |= mask;
			found++;
		}
	if (f)
		fclose(f);
	return found == 3 && !(seen >> (sig - 1) & 1);
}

static bool is_stop(int sig)
{
	for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++)
		if (sig == stops[i])
			return true;
	return false;
}

static void send_signal(const struct supervised *p, int sig)
{
	/* A process that has ended meanwhile is what the loop waits for anyway. */
	if (syscall(SYS_pidfd_send_signal, p->pidfd, sig, NULL, 0) < 0)
		return;
}

/* It has ended, and someone does not read its output: whoever wants svrun to stop may have that. */
static void give_up_output(struct supervise *s)
{
	for (int i = 1; i < 3; i++)
		if (s->relays[i])
			relay_fini(s->relays[i]);
}

static void stop(struct supervise *s, const struct supervised *p, int sig)
{
	double now = sys_now_ms();
	bool again = false;

	if (s->ended) {
		give_up_output(s);
		return;
	}
	if (sig == SIGTERM) {
		again = s->asked > 0 && s->deadline > 0;
		s->asked++;
		s->deadline = now + s->stop_ms;
	} else if (sig == SIGINT) {
		s->asked = now - s->last_interrupt < interrupt_window_ms ? s->asked + 1 : 1;
		s->last_interrupt = now;
		again = s->asked >= 3;
	}
	if (again || unhandled(p->pid, sig)) {
		s->killed_by = sig;
		sig = SIGKILL;
	}
	send_signal(p, sig);
}

static void pass_signals(struct supervise *s, const struct supervised *p)
{
	struct signalfd_siginfo info;

	while (sys_read(s->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		int sig = (int)info.ssi_signo;

		if (sig == SIGCHLD)
			continue;
		if (sig == SIGWINCH && s->terminal) {
			tty_copy_size(s->master);
			continue;
		}
		if (sig == SIGCONT)
			tty_raw_again(&s->tty);
		if (is_stop(sig) && !s->as_is)
			stop(s, p, sig);
		else
			send_signal(p, sig);
	}
}

int supervise_wait(void *supervise, int fd, struct err *e)
{
	struct supervise *s = supervise;
	struct pollfd p[] = {{.fd = fd, .events = POLLIN}, {.fd = s->stops, .events = POLLIN}};
	struct signalfd_siginfo info;

	while (poll(p, 2, -1) < 0)
		if (errno != EINTR)
			return err_sys(e, "poll");
	if (p[0].revents || sys_read(s->stops, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return 0;
	s->killed_by = (int)info.ssi_signo;
	return err_set(e, ERR_SYSTEM, "ended by SIG%s while the container was made",
		sigabbrev_np(s->killed_by));
}

/* ---- the loop ---- */

static bool output_done(const struct supervise *s)
{
	for (int i = 1; i < 3; i++)
		if (s->relays[i] && !relay_done(s->relays[i]))
			return false;
	return true;
}

static int time_left(const struct supervise *s)
{
	double left = s->deadline - sys_now_ms();

	if (s->deadline == 0)
		return -1;
	return left > 0 ? (int)left + 1 : 0;
}

enum { P_SIGNALS, P_PROCESS, P_RELAYS, P_COUNT = P_RELAYS + 6 };

static int wait_once(struct supervise *s, const struct supervised *process, struct err *e)
{
	struct pollfd p[P_COUNT] = {{.fd = s->signals, .events = POLLIN},
		{.fd = s->ended ? -1 : process->pidfd, .events = POLLIN}};
	int n;

	for (int i = 0; i < 3; i++)
		if (s->relays[i])
			relay_want(s->relays[i], p + P_RELAYS + 2 * i);
		else
			p[P_RELAYS + 2 * i].fd = p[P_RELAYS + 2 * i + 1].fd = -1;
	n = poll(p, P_COUNT, s->ended ? -1 : time_left(s));
	if (n < 0)
		return errno == EINTR ? 0 : err_sys(e, "poll");
	if (n == 0 && s->deadline > 0) {
		s->killed_by = 0;
		s->deadline = 0;
		send_signal(process, SIGKILL);
	}
	if (p[P_SIGNALS].revents)
		pass_signals(s, process);
	if (p[P_PROCESS].revents)
		s->ended = true;
	for (int i = 0; i < 3; i++)
		if (s->relays[i])
			relay_step(s->relays[i], p + P_RELAYS + 2 * i);
	return 0;
}

/* Output that is lost (the disk is full) must not look like success. */
static void report_lost_output(const struct supervise *s, int *status)
{
	static const char *const names[] = {"stdin", "stdout", "stderr"};

	for (int i = 1; i < 3; i++)
		if (s->relays[i] && s->relays[i]->error) {
			warn("write %s: %s; what follows is lost", names[i],
				strerror(s->relays[i]->error));
			*status = *status ? *status : 125;
		}
}

static int reap(const struct supervised *p, int *status, struct err *e)
{
	siginfo_t info;

	while (waitid(P_PIDFD, (id_t)p->pidfd, &info, WEXITED | __WALL) < 0)
		if (errno != EINTR)
			return err_sys(e, "wait for process %d", (int)p->pid);
	*status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
	return 0;
}

int supervise_run(struct supervise *s, const struct supervised *p, int *status, struct err *e)
{
	/* Only the container keeps its ends: else a stream would never end. */
	for (int i = 0; i < 3; i++)
		sys_close_ref(&s->stdio[i]);
	if (s->terminal && connect_terminal(s, p->terminal, e) < 0)
		return -1;
	while (!s->ended || !output_done(s))
		if (wait_once(s, p, e) < 0)
			return -1;
	tty_restore(&s->tty);
	if (reap(p, status, e) < 0)
		return -1;
	if (s->killed_by && *status == 128 + SIGKILL)
		*status = 128 + s->killed_by;
	report_lost_output(s, status);
	return 0;
}
