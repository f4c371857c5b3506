/* In a container that runs: programs, its network. */
#include "svrun/test-container.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/err.h"
#include "base/str.h"
#include "base/sys.h"
#include "runtime/exec.h"
#include "runtime/passwd.h"
#include "runtime/spec.h"

enum { DRAIN_MS = 200, NET_MAX = 16 << 20 };

/* 1; 0: it has ended, or is just ending; -1. */
static int find(struct test_container *c, struct instance_view *v, struct err *e)
{
	struct err fault = {0};

	if (test_container_ended(c))
		return 0;
	if (instance_open(c->s->fd, c->name, v, &fault) == 0) {
		if (v->pid)
			return 1;
		instance_close(v);
		return 0;
	}
	/* its folder goes with it */
	if (fault.kind == ERR_NOT_FOUND || fault.kind == ERR_EXISTS)
		return 0;
	if (e)
		*e = fault;
	return -1;
}

/* ---- one more program ---- */

struct inside {
	struct instance_view i;
	struct spec spec;
	struct cgroup cgroup;
	struct seccomp_prog filter;
	struct arena mem;
	struct spec_process process;
	bool has_spec, has_cgroup;
};

static void inside_close(struct inside *x)
{
	if (x->has_cgroup)
		cgroup_fini(&x->cgroup);
	seccomp_prog_fini(&x->filter);
	if (x->has_spec)
		spec_fini(&x->spec);
	arena_fini(&x->mem);
	instance_close(&x->i);
}

/* What it was started with is what another program gets, too. As find(). */
static int inside_open(struct inside *x, struct test_container *c, struct err *e)
{
	auto_fd int filters = sys_openat(c->s->fd, "filters", O_RDONLY | O_DIRECTORY, 0);
	int rc;

	*x = (struct inside){.has_spec = false};
	rc = find(c, &x->i, e);
	if (rc <= 0)
		return rc;
	if (spec_load(&x->spec, x->i.dir, "config.json", e) == 0) {
		x->has_spec = true;
		if (cgroup_open(&x->cgroup, &x->i.cgroup, NULL, e) == 0) {
			x->has_cgroup = true;
			if (!x->spec.has_seccomp ||
				seccomp_cached(&x->filter, filters, &x->spec.seccomp, e) == 0)
				return 1;
		}
	}
	inside_close(x);
	return -1;
}

static char *expanded(
	struct inside *x, const struct test_container *c, const char *text, struct err *e)
{
	auto_free char *value = test_expand(c->m, c->gpus, text, e);

	return value ? arena_strdup(&x->mem, value) : NULL;
}

static int set_args(
	struct inside *x, const struct test_container *c, const struct strings *argv, struct err *e)
{
	const char **v = arena_alloc(&x->mem, (argv->n + 1) * sizeof(*v)); /* ends with NULL */

	for (size_t i = 0; i < argv->n; i++) {
		v[i] = expanded(x, c, argv->v[i], e);
		if (!v[i])
			return -1;
	}
	x->process.args = (struct strings){v, argv->n};
	return 0;
}

static int set_env(
	struct inside *x, const struct test_container *c, const struct pairs *more, struct err *e)
{
	struct strings *env = &x->process.env;
	const char **v = arena_alloc(&x->mem, (env->n + more->n + 1) * sizeof(*v));
	size_t n = env->n;

	if (n)
		memcpy(v, env->v, n * sizeof(*v));
	for (size_t i = 0; i < more->n; i++) {
		const char *value = expanded(x, c, more->v[i].value, e);
		size_t at = 0, key = strlen(more->v[i].name) + 1;

		if (!value)
			return -1;
		char *pair = arena_printf(&x->mem, "%s=%s", more->v[i].name, value);
		while (at < n && strncmp(v[at], pair, key) != 0)
			at++;
		v[at] = pair;
		n += at == n;
	}
	*env = (struct strings){v, n};
	return 0;
}

static int set_user(struct inside *x, const char *user, struct err *e)
{
	auto_free struct passwd_ids *ids = mem_alloc(sizeof(*ids));
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/root", (int)x->i.pid);
	auto_fd int root = sys_open(path, O_PATH | O_DIRECTORY, 0);
	if (root < 0)
		return err_sys(e, "root of the container");
	if (passwd_resolve(root, user, ids, e) < 0)
		return -1;
	x->process.user.uid = ids->uid;
	x->process.user.gid = ids->gid;
	x->process.user.ngroups = ids->ngroups;
	x->process.user.groups =
		arena_dup(&x->mem, ids->groups, (ids->ngroups + 1) * sizeof(*ids->groups));
	/* as confine_caps(): only root's programs get them without asking */
	x->process.caps.effective = ids->uid ? 0 : x->process.caps.bounding;
	x->process.caps.permitted = x->process.caps.effective;
	return 0;
}

static int set_process(struct inside *x, const struct test_container *c,
	const struct test_process *p, struct err *e)
{
	x->process = x->spec.process;
	x->process.terminal = false;
	if (p->workdir)
		x->process.cwd = p->workdir;
	if (set_args(x, c, &p->argv, e) < 0 || set_env(x, c, &p->env, e) < 0)
		return -1;
	return p->user ? set_user(x, p->user, e) : 0;
}

/* What it says: standard output for the test, standard error for the log. */
struct streams {
	int out, err; /* ends to read from; -1 when nobody writes any more */
	struct buf *text, log;
	bool *cut, log_cut;
};

/* Takes what there is. */
static int take_streams(struct streams *s, const struct pollfd p[2], struct err *e)
{
	int rc = p[0].revents ? test_take(s->out, s->text, s->cut, e) : 1;

	if (rc == 0)
		sys_close_ref(&s->out);
	if (rc >= 0 && p[1].revents) {
		rc = test_take(s->err, &s->log, &s->log_cut, e);
		if (rc == 0)
			sys_close_ref(&s->err);
	}
	return rc < 0 ? -1 : 0;
}

/* Until it has ended, 1; what a child of it goes on writing is not waited for. */
static int watch(struct test_container *c, const struct exec *run, struct streams *s,
	double deadline, struct err *e)
{
	bool ended = false;

	while (!ended || s->out >= 0 || s->err >= 0) {
		struct pollfd p[3] = {{.fd = ended ? -1 : run->pidfd, .events = POLLIN},
			{.fd = s->out, .events = POLLIN}, {.fd = s->err, .events = POLLIN}};
		int rc = test_wait(c->signals, p, 3, ended ? DRAIN_MS : test_left(deadline), e);

		if (rc < 0)
			return -1;
		ended = ended || (rc > 0 && p[0].revents);
		if (rc == 0 || test_left(deadline) == 0)
			return ended;
		if (take_streams(s, p + 1, e) < 0)
			return -1;
	}
	return 1;
}

static int reap(const struct exec *run, int *status, struct err *e)
{
	siginfo_t info;

	while (waitid(P_PIDFD, (id_t)run->pidfd, &info, WEXITED | __WALL) < 0)
		if (errno != EINTR)
			return err_sys(e, "wait for process %d", (int)run->pid);
	*status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
	return 0;
}

static int start_inside(struct test_container *c, struct inside *x, int out, int err,
	struct exec *run, int *status, struct err *e)
{
	auto_fd int null = sys_open("/dev/null", O_RDONLY, 0);
	struct exec_options o = {.spec = &x->spec,
		.process = &x->process,
		.pidfd = x->i.pidfd,
		.first = x->i.pid,
		.cgroup = &x->cgroup,
		.filter = x->spec.has_seccomp ? &x->filter : NULL,
		.stdio = {null, out, err},
		.id = c->name,
		.bundle = ""};

	if (null < 0)
		return err_sys(e, "/dev/null");
	return exec_start(run, &o, status, e);
}

static int run_inside(struct test_container *c, struct inside *x, double deadline,
	struct streams *s, int *status, struct err *e)
{
	int out[2], err[2], rc;
	struct exec run;

	if (sys_pipe(out) < 0)
		return err_sys(e, "pipe");
	s->out = out[0];
	auto_fd int out_in = out[1];
	if (sys_pipe(err) < 0)
		return err_sys(e, "pipe");
	s->err = err[0];
	auto_fd int err_in = err[1];
	if (start_inside(c, x, out_in, err_in, &run, status, e) < 0)
		return -1;
	sys_close_ref(&out_in);
	sys_close_ref(&err_in);
	rc = watch(c, &run, s, deadline, e);
	if (rc <= 0)
		exec_kill(&run);
	else if (reap(&run, status, e) < 0)
		rc = -1;
	exec_fini(&run);
	return rc;
}

int test_container_exec(struct test_container *c, const struct test_process *p, double deadline,
	struct buf *out, bool *cut, int *status, struct err *e)
{
	struct streams s = {
		.out = -1, .err = -1, .text = out, .cut = cut, .log = BUF_INIT(TEST_OUTPUT_MAX)};
	struct inside *x = mem_alloc(sizeof(*x));
	int rc = inside_open(x, c, e);

	*status = TEST_NOT_RUNNING;
	if (rc > 0) {
		rc = set_process(x, c, p, e);
		if (rc == 0)
			rc = run_inside(c, x, deadline, &s, status, e);
		inside_close(x);
	}
	test_container_note(c, s.log.data, s.log.len);
	buf_fini(&s.log);
	sys_close_ref(&s.out);
	sys_close_ref(&s.err);
	free(x);
	return rc;
}

/* ---- its network ---- */

int test_container_enter(struct test_container *c, int *back, struct err *e)
{
	struct instance_view i;
	int rc;

	*back = sys_open("/proc/self/ns/net", O_RDONLY, 0);
	if (*back < 0)
		return err_sys(e, "/proc/self/ns/net");
	rc = find(c, &i, e);
	if (rc > 0) {
		if (setns(i.pidfd, CLONE_NEWNET) < 0)
			rc = errno == ESRCH ? 0 : err_sys(e, "enter the container's network");
		instance_close(&i);
	}
	if (rc <= 0)
		sys_close_ref(back);
	return rc;
}

void test_container_leave(int *back)
{
	if (*back >= 0 && setns(*back, CLONE_NEWNET) < 0) {
		warn("leave the container's network: %s", strerror(errno));
		_exit(125);
	}
	sys_close_ref(back);
}

/* The address of a line of /proc/PID/net/tcp: 32-bit words in the host's order, as hex. */
static void print_address(const char *hex, size_t n, char *out, size_t size)
{
	uint32_t words[4];

	for (size_t i = 0; i < n / 8; i++) {
		char word[9];

		snprintf(word, sizeof(word), "%.8s", hex + 8 * i);
		words[i] = (uint32_t)strtoul(word, NULL, 16);
	}
	if (!inet_ntop(n == 8 ? AF_INET : AF_INET6, words, out, (socklen_t)size))
		snprintf(out, size, "?");
}

/* "  0: 00000000:1F40 00000000:0000 0A ..." */
static void look_at_line(const char *line, uint32_t port, const char *state, char out[256])
{
	char hex[33], st[3], address[INET6_ADDRSTRLEN];
	size_t used = strlen(out);
	unsigned p;

	if (sscanf(line, " %*u: %32[0-9A-F]:%4x %*32[0-9A-F]:%*4x %2s", hex, &p, st) != 3 ||
		p != port || !str_eq(st, state) || (strlen(hex) != 8 && strlen(hex) != 32))
		return;
	print_address(hex, strlen(hex), address, sizeof(address));
	snprintf(out + used, 256 - used, "%s%s", used ? ", " : "", address);
}

static int look_at(
	pid_t pid, const char *name, uint32_t port, const char *state, char out[256], struct err *e)
{
	auto_buf struct buf text = BUF_INIT(NET_MAX);
	char path[48], *save = NULL;

	snprintf(path, sizeof(path), "/proc/%d/net/%s", (int)pid, name);
	if (access(path, F_OK) < 0 && errno == ENOENT)
		return 0; /* a host without IPv6 */
	if (file_read(AT_FDCWD, path, &text, e) < 0)
		return -1;
	for (char *line = text.data ? strtok_r(text.data, "\n", &save) : NULL; line;
		line = strtok_r(NULL, "\n", &save))
		look_at_line(line, port, state, out);
	return 0;
}

int test_container_listens(
	struct test_container *c, uint32_t port, bool udp, char out[256], struct err *e)
{
	const char *state = udp ? "07" : "0A"; /* bound, and connected to nobody; listening */
	struct instance_view i;
	int rc = find(c, &i, e);

	out[0] = '\0';
	if (rc <= 0)
		return rc;
	rc = look_at(i.pid, udp ? "udp" : "tcp", port, state, out, e);
	if (rc == 0)
		rc = look_at(i.pid, udp ? "udp6" : "tcp6", port, state, out, e);
	instance_close(&i);
	return rc < 0 ? -1 : out[0] != '\0';
}
