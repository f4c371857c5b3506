#include "svrun/test-container.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/err.h"
#include "base/str.h"
#include "base/sys.h"
#include "images/workers.h"
#include "svrun/bundle.h"
#include "svrun/command.h"
#include "svrun/run-policy.h"

enum { STOP_SECONDS = 3, STOP_WAIT_MS = 8000, POLL_MS = 10, PIECE = 16384, WORDS_MAX = 4096 };
enum { TAIL_BYTES = 32 << 10 };

/* ---- waiting ---- */

int test_left(double deadline)
{
	double left = deadline - sys_now_ms();

	return left <= 0 ? 0 : left < INT_MAX ? (int)left + 1 : INT_MAX;
}

int test_wait(int signals, struct pollfd *p, size_t n, int ms, struct err *e)
{
	struct pollfd v[8] = {{.fd = signals, .events = POLLIN}};
	int rc;

	memcpy(v + 1, p, n * sizeof(*p));
	do
		rc = poll(v, n + 1, ms);
	while (rc < 0 && errno == EINTR);
	if (rc < 0)
		return err_sys(e, "poll");
	memcpy(p, v + 1, n * sizeof(*p));
	if (v[0].revents) /* it is left in the descriptor: whoever waits next ends, too */
		return err_set(e, ERR_DENIED, "interrupted");
	return rc;
}

/* ---- the log ---- */

/* All but these two: an end of somebody's pipe would stay open. */
static void close_others(int a, int b)
{
	int low = a < b ? a : b, high = a < b ? b : a;

	if (low > 0)
		sys_close_range(0, (unsigned)low - 1, 0);
	if (high > low + 1)
		sys_close_range((unsigned)low + 1, (unsigned)high - 1, 0);
	sys_close_range((unsigned)high + 1, UINT_MAX, 0);
}

/* Copies what comes from a pipe to the log, up to its limit, until nobody writes any more. A
 * process of its own, so that a container never waits for a test to read what it says. */
static void log_for_ever(int log, int from)
{
	char piece[PIECE];
	size_t left = TEST_LOG_MAX;
	ssize_t n;

	close_others(log, from);
	while ((n = sys_read(from, piece, sizeof(piece))) > 0) {
		size_t keep = (size_t)n < left ? (size_t)n : left;

		/* a full disk must not stop the container: the rest of the log is lost */
		if (keep && sys_write_all(log, piece, keep) < 0)
			keep = left;
		left -= keep;
	}
	_exit(0);
}

/* Returns the end to write to. */
static int start_logger(struct test_container *c, const char *path, struct err *e)
{
	int p[2];
	auto_fd int log =
		sys_open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW, 0600);

	c->log = mem_strdup(path);
	if (log < 0)
		return err_sys(e, "log %s", path);
	if (sys_pipe(p) < 0)
		return err_sys(e, "pipe");
	c->logger = fork();
	if (c->logger == 0)
		log_for_ever(log, p[0]);
	sys_close_ref(&p[0]);
	if (c->logger > 0)
		return p[1];
	c->logger = 0;
	close(p[1]);
	return err_sys(e, "fork");
}

void test_container_note(const struct test_container *c, const void *p, size_t n)
{
	auto_fd int fd = sys_open(c->log, O_WRONLY | O_APPEND | O_NOFOLLOW, 0);

	if (n && (fd < 0 || sys_write_all(fd, p, n) < 0))
		warn("write %s: %s", c->log, strerror(errno));
}

char *test_container_tail(const struct test_container *c)
{
	auto_fd int fd = c->log ? sys_open(c->log, O_RDONLY | O_NOFOLLOW, 0) : -1;
	off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END), from = size - TAIL_BYTES;
	size_t n = (size_t)(from > 0 ? TAIL_BYTES : size);
	auto_free char *text = mem_alloc(n + 1);
	char *start;

	if (size <= 0 || sys_pread_all(fd, text, n, from > 0 ? from : 0) < 0)
		return NULL;
	for (size_t i = 0; i < n; i++)
		text[i] = text[i] ? text[i] : '?';
	while (n && text[n - 1] == '\n')
		text[--n] = '\0';
	start = text + n;
	for (int lines = 0; start > text; start--)
		if (start[-1] == '\n' && ++lines == TEST_LOG_LINES)
			break;
	return n ? mem_strdup(start) : NULL;
}

/* ---- what `svrun run` is asked for ---- */

struct words {
	struct arena a;
	char *v[WORDS_MAX + 1];
	int n, image; /* v[image]: by its digest */
};

static int add(struct words *w, const char *word, struct err *e)
{
	if (w->n == WORDS_MAX)
		return err_set(e, ERR_USAGE, "more than %d words", WORDS_MAX);
	w->v[w->n++] = arena_strdup(&w->a, word);
	return 0;
}

static int add_option(struct words *w, const char *name, const char *value, struct err *e)
{
	if (!value)
		return 0;
	return add(w, name, e) < 0 ? -1 : add(w, value, e);
}

static int add_number(
	struct words *w, const char *name, uint64_t value, const char *unit, struct err *e)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64 "%s", value, unit);
	return value ? add_option(w, name, text, e) : 0;
}

/* One core unless the manifest asks for more: threads that follow ${runtime:cpus} then never wait
 * for one another on a busy machine. */
static uint64_t cores(const struct manifest *m)
{
	uint64_t have = workers_cores(), want = m->resources.cpu_min ? m->resources.cpu_min : 1;

	return want < have ? want : have;
}

static int add_limits(struct words *w, const struct manifest *m, struct err *e)
{
	const struct manifest_resources *r = &m->resources;

	for (size_t i = 0; i < r->ulimits.n; i++) {
		auto_free char *limit =
			mem_printf("%s=%s", r->ulimits.v[i].name, r->ulimits.v[i].value);

		if (add_option(w, "--ulimit", limit, e) < 0)
			return -1;
	}
	return add_number(w, "--cpus", cores(m), "", e) < 0 ||
			       add_number(w, "--memory", r->memory_recommended, "MiB", e) < 0 ||
			       add_number(w, "--shm-size", r->shm_mib, "MiB", e) < 0 ||
			       add_number(w, "--pids", r->pids, "", e) < 0
		       ? -1
		       : 0;
}

/* "none": an image that cannot do without is tested without, where there is no GPU. */
static int add_gpus(struct words *w, uint32_t n, struct err *e)
{
	return n ? add_number(w, "--gpus", n, "", e) : add_option(w, "--gpus", "none", e);
}

char *test_expand(const struct manifest *m, uint32_t gpus, const char *text, struct err *e)
{
	struct run_options o = {.cores = (double)cores(m),
		.memory_bytes = (uint64_t)m->resources.memory_recommended << 20};

	return bundle_expand(&o, gpus, text, e);
}

static int add_expanded(struct words *w, const struct test_container_options *o, const char *option,
	const char *text, struct err *e)
{
	auto_free char *value = test_expand(o->m, o->gpus, text, e);

	if (!value)
		return -1;
	return option ? add_option(w, option, value, e) : add(w, value, e);
}

static int make_words(struct words *w, const struct test_container *c,
	const struct test_container_options *o, struct err *e)
{
	char stop[16];

	snprintf(stop, sizeof(stop), "%d", STOP_SECONDS);
	if (add(w, "run", e) < 0 || add(w, "--rm", e) < 0 ||
		add_option(w, "--pull", "never", e) < 0 ||
		add_option(w, "--network", "none", e) < 0 ||
		add_option(w, "--stop-timeout", stop, e) < 0 ||
		add_option(w, "--name", c->name, e) < 0 || add_limits(w, o->m, e) < 0 ||
		add_gpus(w, o->gpus, e) < 0 || add_option(w, "--user", o->user, e) < 0 ||
		add_option(w, "--workdir", o->workdir, e) < 0)
		return -1;
	for (size_t i = 0; o->accepted && i < o->accepted->n; i++)
		if (add_option(w, "--accept-license", o->accepted->v[i], e) < 0)
			return -1;
	for (size_t i = 0; i < o->env.n; i++) {
		auto_free char *pair = mem_printf("%s=%s", o->env.v[i].name, o->env.v[i].value);

		if (add_expanded(w, o, "--env", pair, e) < 0)
			return -1;
	}
	if (o->argv.n && add_expanded(w, o, "--entrypoint", o->argv.v[0], e) < 0)
		return -1;
	w->image = w->n;
	if (add(w, o->image, e) < 0 || add(w, "--", e) < 0)
		return -1;
	for (size_t i = 1; i < o->argv.n; i++)
		if (add_expanded(w, o, NULL, o->argv.v[i], e) < 0)
			return -1;
	return 0;
}

/* ---- its process ---- */

/* Ours: the same function that `svrun run` calls. */
static void become_run(struct words *w, int out, int err, pid_t parent)
{
	static const struct command self = {
		.name = "run", .words = "IMAGE", .min = 1, .max = -1, .full = "svrun run"};
	struct err e = {0};
	sigset_t none;
	int rc, null = sys_open("/dev/null", O_RDWR, 0);

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setenv(RUN_ADMITTED, w->v[w->image], 1);
	setpgid(0, 0); /* ^C is for the test, which then stops us in its way */
	if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != parent || null < 0 ||
		sys_dup3(null, 0, 0) < 0 || sys_dup3(out, 1, 0) < 0 || sys_dup3(err, 2, 0) < 0)
		_exit(125);
	/* the ends of pipes, the store: none of the test's business reaches the container anyway,
	 * but what it holds open would stay open as long as it lives */
	sys_close_range(3, UINT_MAX, 0);
	rc = cmd_run(&self, w->n, w->v, &e);
	if (rc < 0) {
		err_print(&e, "svrun");
		rc = e.kind == ERR_USAGE ? 2 : 125;
	}
	_exit(rc);
}

static int fork_run(struct test_container *c, struct words *w, int out, int err, struct err *e)
{
	pid_t self = getpid();

	fflush(stdout);
	c->pid = fork();
	if (c->pid == 0)
		become_run(w, out, err, self);
	if (c->pid < 0) {
		c->pid = 0;
		return err_sys(e, "fork");
	}
	c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
	return c->pidfd < 0 ? err_sys(e, "pidfd_open") : 0;
}

static int start(struct test_container *c, const struct test_container_options *o, struct err *e)
{
	struct words *w = mem_alloc(sizeof(*w));
	int p[2] = {-1, -1}, rc = make_words(w, c, o, e);
	auto_fd int log = rc < 0 ? -1 : start_logger(c, o->log, e);

	rc = log < 0 ? -1 : 0;
	if (rc == 0 && o->capture && sys_pipe(p) < 0)
		rc = err_sys(e, "pipe");
	c->output = p[0];
	if (rc == 0)
		rc = fork_run(c, w, o->capture ? p[1] : log, log, e);
	sys_close_ref(&p[1]);
	arena_fini(&w->a);
	free(w);
	return rc;
}

int test_container_start(struct test_container *c, struct store *s, int signals,
	const struct test_container_options *o, struct err *e)
{
	uint64_t r;

	*c = (struct test_container){
		.s = s, .m = o->m, .gpus = o->gpus, .signals = signals, .pidfd = -1, .output = -1};
	if (getrandom(&r, sizeof(r), 0) != (ssize_t)sizeof(r))
		return err_sys(e, "getrandom");
	snprintf(c->name, sizeof(c->name), "imagetest-%016" PRIx64, r);
	if (start(c, o, e) == 0)
		return 0;
	test_container_stop(c);
	free(c->log);
	c->log = NULL;
	return -1;
}

/* ---- its end ---- */

static void reap(struct test_container *c)
{
	siginfo_t info;

	while (waitid(P_PID, (id_t)c->pid, &info, WEXITED) < 0)
		if (errno != EINTR)
			return;
	c->status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
	c->ended = true;
}

bool test_container_ended(struct test_container *c)
{
	struct pollfd p = {.fd = c->pidfd, .events = POLLIN};

	if (!c->ended && c->pidfd >= 0 && poll(&p, 1, 0) > 0)
		reap(c);
	return c->ended;
}

/* Between "it was made" and "it runs" it says nothing that could be waited for. */
int test_container_await(struct test_container *c, double deadline, struct err *e)
{
	char path[INSTANCE_ID_MAX + 32];

	snprintf(path, sizeof(path), "instances/%s/pid", c->name);
	for (;;) {
		struct pollfd p = {.fd = c->pidfd, .events = POLLIN};

		if (faccessat(c->s->fd, path, F_OK, 0) == 0)
			return 1;
		if (test_container_ended(c) || test_left(deadline) == 0)
			return 0;
		if (test_wait(c->signals, &p, 1, POLL_MS, e) < 0)
			return -1;
	}
}

int test_take(int fd, struct buf *out, bool *cut, struct err *e)
{
	char piece[PIECE];
	ssize_t n = sys_read(fd, piece, sizeof(piece));
	size_t room = out->max - out->len;

	if (n < 0)
		return err_sys(e, "read output");
	*cut = *cut || (size_t)n > room;
	if (buf_add(out, piece, (size_t)n < room ? (size_t)n : room, e) < 0)
		return -1;
	return n > 0;
}

int test_container_finish(
	struct test_container *c, double deadline, struct buf *out, bool *cut, struct err *e)
{
	while (!test_container_ended(c) || c->output >= 0) {
		struct pollfd p[2] = {{.fd = c->ended ? -1 : c->pidfd, .events = POLLIN},
			{.fd = c->output, .events = POLLIN}};
		int rc = test_wait(c->signals, p, 2, test_left(deadline), e);

		if (rc <= 0)
			return rc;
		rc = p[1].revents ? test_take(c->output, out, cut, e) : 1;
		if (rc < 0)
			return -1;
		if (rc == 0)
			sys_close_ref(&c->output);
	}
	return 1;
}

/* What its svrun left when it was killed, or ended before it was ready to be asked. */
static void sweep(struct test_container *c)
{
	char path[INSTANCE_ID_MAX + 16];
	struct err e = {0};

	snprintf(path, sizeof(path), "instances/%s", c->name);
	if (faccessat(c->s->fd, path, F_OK, 0) == 0 && instances_sweep(c->s->fd, &e) < 0)
		warn("%s", e.text);
}

void test_container_stop(struct test_container *c)
{
	struct pollfd p = {.fd = c->pidfd, .events = POLLIN};

	sys_close_ref(&c->output);
	if (c->pid > 0 && !test_container_ended(c)) {
		kill(c->pid, SIGTERM);
		/* nothing interrupts this: it is what an interrupted test waits for */
		if (poll(&p, c->pidfd >= 0, STOP_WAIT_MS) <= 0)
			kill(c->pid, SIGKILL);
		reap(c);
	}
	if (c->pid > 0)
		sweep(c);
	sys_close_ref(&c->pidfd);
	c->pid = 0;
	while (c->logger > 0 && waitpid(c->logger, NULL, 0) < 0 && errno == EINTR)
		;
	c->logger = 0;
}
