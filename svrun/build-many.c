/* Several builds side by side. A process each: a build may run steps in containers, which a process
 * of many threads must not, and one that fails takes no other with it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/json.h"
#include "base/str.h"
#include "base/sys.h"
#include "images/progress.h"
#include "svrun/build-request.h"

enum { OUTPUT_MAX = 1 << 20, ARGS_MAX = 64, FDS = 2 };

struct child {
	const struct build_job *job;
	pid_t pid;
	int fds[FDS]; /* its stdout and stderr; -1: at the end */
	struct buf out, err, notes, line;
	struct progress_line *row;
	uint64_t told; /* bytes of its stage that are in the row */
	int status;
	bool done;
};

struct many {
	const struct build_request *r;
	struct child *v;
	char share[24]; /* steps at a time of each */
	size_t n, started, running, failed, failed_tests;
	struct progress *p;
};

/* ---- starting ---- */

static void add_option(const char **argv, size_t *n, const char *name, const char *value)
{
	if (!value)
		return;
	argv[(*n)++] = name;
	argv[(*n)++] = value;
}

/* The same command for one image. */
static const char **make_argv(
	const struct build_request *r, const struct build_job *job, const char *share)
{
	const char **argv =
		mem_array(ARGS_MAX + 2 * (r->choice.vars.n + r->secrets.n + r->accepted.n),
			sizeof(const char *));
	size_t n = 0;

	argv[n++] = "svrun-image";
	argv[n++] = "image";
	argv[n++] = "build";
	add_option(argv, &n, "--progress", "json");
	add_option(argv, &n, "--format", r->json ? "json" : "table");
	add_option(argv, &n, "--mode", r->choice.mode);
	add_option(argv, &n, "--matrix", job->matrix);
	add_option(argv, &n, "--platform", r->choice.platform);
	add_option(argv, &n, "--push", r->push);
	add_option(argv, &n, "--cache-from", r->cache_from);
	add_option(argv, &n, "--cache-to", r->cache_to);
	add_option(argv, &n, "--compression", r->compression);
	add_option(argv, &n, "--jobs", share);
	for (size_t i = 0; i < r->choice.vars.n; i++)
		add_option(argv, &n, "--var", r->choice.vars.v[i]);
	for (size_t i = 0; i < r->secrets.n; i++)
		add_option(argv, &n, "--secret", r->secrets.v[i]);
	for (size_t i = 0; i < r->accepted.n; i++)
		add_option(argv, &n, "--accept-license", r->accepted.v[i]);
	if (r->locked)
		argv[n++] = "--locked";
	if (r->no_cache)
		argv[n++] = "--no-cache";
	if (r->test)
		argv[n++] = "--test";
	if (r->plain_http)
		argv[n++] = "--plain-http";
	argv[n++] = "--";
	argv[n++] = job->app;
	return argv;
}

/* In the child, between fork and exec. */
static void become(const char **argv, int out, int err, pid_t parent)
{
	char *const *words = (char *const *)(uintptr_t)argv;

	if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != parent || dup2(out, 1) < 0 ||
		dup2(err, 2) < 0)
		_exit(125);
	execv("/proc/self/exe", words);
	_exit(125);
}

static int start(struct many *m, struct err *e)
{
	struct child *c = &m->v[m->started];
	auto_free const char **argv = make_argv(m->r, c->job, m->share);
	pid_t parent = getpid();
	int out[2], errs[2];

	if (sys_pipe(out) < 0)
		return err_sys(e, "pipe");
	auto_fd int out_w = out[1];

	c->fds[0] = out[0];
	if (sys_pipe(errs) < 0)
		return err_sys(e, "pipe");
	auto_fd int err_w = errs[1];

	c->fds[1] = errs[0];
	c->pid = fork();
	if (c->pid < 0)
		return err_sys(e, "fork");
	if (c->pid == 0)
		become(argv, out_w, err_w, parent);
	c->row = progress_line(m->p, c->job->label, 0);
	m->started++;
	m->running++;
	return 0;
}

/* ---- what they say ---- */

static void take_note(struct child *c, const char *text)
{
	if (c->notes.len + strlen(text) < OUTPUT_MAX - 1)
		buf_printf(&c->notes, "%s\n", text);
}

/* A line of progress: what moved goes into the row. */
static bool take_progress(struct child *c, const char *text, size_t n)
{
	auto_json json_t *j = n && text[0] == '{' ? json_loadb(text, n, 0, NULL) : NULL;
	const char *stage = json_string_value(json_object_get(j, "stage"));
	json_int_t bytes = json_integer_value(json_object_get(j, "bytes"));

	if (!stage && json_string_value(json_object_get(j, "note"))) {
		take_note(c, json_string_value(json_object_get(j, "note")));
		return true;
	}
	if (!stage)
		return json_object_get(j, "steps") != NULL;
	if (json_object_get(j, "line"))
		return true;
	progress_line_stage(c->row, stage,
		(uint64_t)json_integer_value(json_object_get(j, "total")), (uint64_t)bytes);
	return true;
}

static void take_line(struct child *c)
{
	if (!take_progress(c, c->line.data ? c->line.data : "", c->line.len) &&
		c->err.len + c->line.len < OUTPUT_MAX - 1)
		buf_printf(&c->err, "%s\n", c->line.data ? c->line.data : "");
	c->line.len = 0;
}

static void take_errors(struct child *c, const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] == '\n')
			take_line(c);
		else if (c->line.len < OUTPUT_MAX - 1)
			buf_put(&c->line, p + i, 1);
}

static void read_from(struct child *c, int which)
{
	char piece[16384];
	ssize_t n = sys_read(c->fds[which], piece, sizeof(piece));

	if (n <= 0)
		sys_close_ref(&c->fds[which]);
	else if (which == 1)
		take_errors(c, piece, (size_t)n);
	else if (c->out.len + (size_t)n < OUTPUT_MAX)
		buf_put(&c->out, piece, (size_t)n);
	if (n <= 0)
		c->fds[which] = -1;
}

/* ---- ends ---- */

static void reap(struct many *m, struct child *c)
{
	int status;

	while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
		;
	c->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	c->done = true;
	m->running--;
	m->failed += c->status != 0;
	m->failed_tests += c->status == 1;
	progress_line_end(c->row, c->status ? "failed" : "done");
}

static void wait_for_some(struct many *m)
{
	auto_free struct pollfd *fds = mem_array(FDS * m->n, sizeof(*fds));
	nfds_t n = FDS * m->started;

	for (nfds_t i = 0; i < n; i++)
		fds[i] = (struct pollfd){.fd = m->v[i / FDS].fds[i % FDS], .events = POLLIN};
	if (poll(fds, n, -1) < 0)
		return;
	for (nfds_t i = 0; i < n; i++)
		if (fds[i].fd >= 0 && fds[i].revents)
			read_from(&m->v[i / FDS], (int)(i % FDS));
	for (size_t i = 0; i < m->started; i++)
		if (!m->v[i].done && m->v[i].fds[0] < 0 && m->v[i].fds[1] < 0)
			reap(m, &m->v[i]);
}

/* Each line with the app's name before it: what the build said, then its errors. */
static void print_child(struct progress *to, const struct child *c)
{
	const char *p = c->notes.data ? c->notes.data : "";

	for (size_t n; *p; p += n + (p[n] == '\n')) {
		n = strcspn(p, "\n");
		progress_note(to, "%s: %.*s", c->job->label, (int)n, p);
	}
	p = c->err.data ? c->err.data : "";
	for (size_t n; *p; p += n + (p[n] == '\n')) {
		n = strcspn(p, "\n");
		fprintf(stderr, "%s: %.*s\n", c->job->label, (int)n, p);
	}
}

static void print_all(struct many *m)
{
	progress_end(m->p);
	for (size_t i = 0; i < m->n; i++) {
		if (m->v[i].out.data)
			fputs(m->v[i].out.data, stdout);
		print_child(m->p, &m->v[i]);
	}
}

static void many_fini(struct many *m)
{
	for (size_t i = 0; i < m->n; i++) {
		struct child *c = &m->v[i];

		if (c->pid > 0 && !c->done) {
			kill(c->pid, SIGTERM);
			reap(m, c);
		}
		for (int k = 0; k < FDS; k++)
			sys_close_ref(&c->fds[k]);
		buf_fini(&c->out);
		buf_fini(&c->err);
		buf_fini(&c->notes);
		buf_fini(&c->line);
	}
	free(m->v);
}

int build_many(const struct build_request *r, const struct build_job *list, size_t n, size_t jobs,
	struct progress *p, struct err *e)
{
	struct many m = {.r = r, .v = mem_array(n, sizeof(*m.v)), .n = n, .p = p};
	size_t share = jobs / (n < jobs ? n : jobs);
	int rc = 0;

	snprintf(m.share, sizeof(m.share), "%zu", share);
	for (size_t i = 0; i < n; i++)
		m.v[i] = (struct child){.job = &list[i],
			.fds = {-1, -1},
			.out = BUF_INIT(OUTPUT_MAX),
			.err = BUF_INIT(OUTPUT_MAX),
			.notes = BUF_INIT(OUTPUT_MAX),
			.line = BUF_INIT(OUTPUT_MAX)};
	progress_begin(p, "build", 0);
	fflush(NULL); /* a child must not print it again */
	while (rc == 0 && (m.started < n || m.running)) {
		while (rc == 0 && m.started < n && m.running < jobs)
			rc = start(&m, e);
		if (rc == 0)
			wait_for_some(&m);
	}
	if (rc == 0)
		print_all(&m);
	if (rc == 0 && m.failed) {
		struct err fault = {0};

		err_set(&fault, ERR_SYSTEM, "%zu of %zu builds failed", m.failed, n);
		rc = m.failed == m.failed_tests ? 1 : -1;
		if (rc > 0)
			err_print(&fault, "svrun");
		else if (e)
			*e = fault;
	}
	many_fini(&m);
	return rc;
}
