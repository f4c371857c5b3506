#include "svrun/criu.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "runtime/sync.h"

/* RPC_FD is what "criu swrk" is told; the others have to be out of the way of what goes below. */
enum { RPC_FD = 3, HIGH_FD = 64, FDS_MAX = 16 };
enum { REQUEST_MAX = 1 << 20, ANSWER_MAX = 64 << 10, LOG_READ = 256 << 10, LOG_LINES = 3 };
enum { KIND_NOTIFY = 6 };

/* ---- protocol buffers ---- */

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

static void put_varint(struct buf *b, uint64_t v)
{
	uint8_t bytes[10];
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		bytes[n++] = (uint8_t)(v | 0x80);
	bytes[n++] = (uint8_t)v;
	buf_put(b, bytes, n);
}

static void put_bytes(struct buf *b, unsigned field, const void *p, size_t n)
{
	put_varint(b, field << 3 | WIRE_BYTES);
	put_varint(b, n);
	buf_put(b, p, n);
}

void criu_put_int(struct buf *b, unsigned field, uint64_t v)
{
	put_varint(b, field << 3 | WIRE_VARINT);
	put_varint(b, v);
}

void criu_put_str(struct buf *b, unsigned field, const char *v)
{
	put_bytes(b, field, v, strlen(v));
}

void criu_put_pair(struct buf *b, unsigned field, const char *one, const char *two, uint64_t n)
{
	auto_buf struct buf m = BUF_INIT(REQUEST_MAX);

	if (one)
		criu_put_str(&m, 1, one);
	if (two)
		criu_put_str(&m, 2, two);
	else
		criu_put_int(&m, 2, n);
	put_bytes(b, field, m.data, m.len);
}

struct reader {
	const uint8_t *p, *end;
};

static int get_varint(struct reader *r, uint64_t *v)
{
	*v = 0;
	for (unsigned shift = 0; shift < 64 && r->p < r->end; shift += 7) {
		uint8_t byte = *r->p++;

		*v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return 0;
	}
	return -1;
}

/* The next field: a number in *v, or bytes in *sub. 1, 0 at the end, -1 when it is none. */
static int get_field(struct reader *r, unsigned *field, uint64_t *v, struct reader *sub)
{
	uint64_t key, n;

	*sub = (struct reader){NULL, NULL};
	if (r->p == r->end)
		return 0;
	if (get_varint(r, &key) < 0 || key >> 3 > UINT16_MAX)
		return -1;
	*field = (unsigned)(key >> 3);
	*v = 0;
	switch ((enum wire)(key & 7)) {
	case WIRE_VARINT:
		return get_varint(r, v) < 0 ? -1 : 1;
	case WIRE_BYTES:
		if (get_varint(r, &n) < 0)
			return -1;
		sub->p = r->p;
		break;
	case WIRE_64:
		n = 8;
		break;
	case WIRE_32:
		n = 4;
		break;
	default:
		return -1;
	}
	if (n > (uint64_t)(r->end - r->p))
		return -1;
	r->p += n;
	if (sub->p)
		sub->end = r->p;
	return 1;
}

/* criu_resp, as far as it matters here. */
struct answer {
	uint64_t kind;
	bool success;
	pid_t pid;
	char script[32];
	uint64_t error;
};

enum { RESP_KIND = 1, RESP_SUCCESS = 2, RESP_RESTORE = 4, RESP_NOTIFY = 5, RESP_ERRNO = 7 };
/* Inside of restore and of notify. */
enum { RESTORE_PID = 1, NOTIFY_SCRIPT = 1, NOTIFY_PID = 2 };

static void set_script(struct answer *a, const struct reader *text)
{
	size_t n = (size_t)(text->end - text->p);

	n = n < sizeof(a->script) ? n : sizeof(a->script) - 1;
	memcpy(a->script, text->p, n);
	a->script[n] = '\0';
}

static int read_inner(struct answer *a, unsigned outer, struct reader r)
{
	struct reader sub;
	unsigned field;
	uint64_t v;
	int rc;

	while ((rc = get_field(&r, &field, &v, &sub)) > 0) {
		if (outer == RESP_NOTIFY && field == NOTIFY_SCRIPT && sub.p)
			set_script(a, &sub);
		if (field == (outer == RESP_NOTIFY ? NOTIFY_PID : RESTORE_PID) && !sub.p)
			a->pid = v <= INT32_MAX ? (pid_t)v : 0;
	}
	return rc;
}

static int read_answer(struct answer *a, const void *p, size_t n, struct err *e)
{
	struct reader r = {p, (const uint8_t *)p + n}, sub;
	unsigned field;
	uint64_t v;
	int rc;

	*a = (struct answer){.kind = 0};
	while ((rc = get_field(&r, &field, &v, &sub)) > 0) {
		if (field == RESP_KIND)
			a->kind = v;
		else if (field == RESP_SUCCESS)
			a->success = v != 0;
		else if (field == RESP_ERRNO)
			a->error = v;
		else if (sub.p && (field == RESP_RESTORE || field == RESP_NOTIFY))
			rc = read_inner(a, field, sub);
		if (rc < 0)
			break;
	}
	return rc < 0 ? err_set(e, ERR_CORRUPT, "criu answers what is no message") : 0;
}

/* ---- its process ---- */

static void move(int fd, int to)
{
	if (fd < 0 || dup2(fd, to) < 0)
		_exit(127);
}

static int place_fds(const struct criu_options *o, int rpc)
{
	int high[3 + FDS_MAX], n = 3 + (int)o->nfds;

	rpc = fcntl(rpc, F_DUPFD_CLOEXEC, HIGH_FD);
	for (int i = 0; i < n; i++) {
		int fd = i < 3 ? o->stdio[i] : o->fds[i - 3];

		if (fd < 0)
			fd = sys_open("/dev/null", O_RDWR, 0);
		high[i] = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);
	}
	for (int i = 0; i < 3; i++)
		move(high[i], i);
	move(rpc, RPC_FD);
	for (int i = 3; i < n; i++)
		move(high[i], CRIU_FIRST_FD + i - 3);
	return sys_close_range((unsigned)(CRIU_FIRST_FD + n - 3), ~0U, 1U << 2 /* CLOEXEC */);
}

/* Its PATH is for iptables, ip and tar, which it runs: the system's, whatever ours is. What its
 * configuration files could add (scripts that it runs, among others) is not what we asked for. */
static int become_criu(const struct criu_options *o, int gate, struct err *e)
{
	static const char *const env[] = {
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", NULL};
	const char *program = o->program ? o->program : "criu";
	const char *argv[] = {program, "--no-default-config", "swrk", "3", NULL};
	struct sync_msg ready = {.kind = SYNC_ALONE};
	sigset_t none;
	int rpc[2];

	sigemptyset(&none);
	if (sigprocmask(SIG_SETMASK, &none, NULL) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return err_sys(e, "prepare criu");
	/* Made here: criu looks up the descriptors that a request names in the process that made
	 * its socket, which must be in criu's own mount namespace. */
	gate = fcntl(gate, F_DUPFD_CLOEXEC, HIGH_FD);
	if (gate < 0 || sys_socketpair(rpc) < 0)
		return err_sys(e, "prepare criu");
	if (o->enter && o->enter(o->ctx, e) < 0)
		return -1;
	if (sync_send(gate, &ready, rpc[0], e) < 0 ||
		sync_expect(gate, SYNC_GO, &ready, NULL, e) < 0)
		return -1;
	close(rpc[0]); /* or it would wait for itself */
	if (chdir("/") < 0 || place_fds(o, rpc[1]) < 0)
		return err_sys(e, "prepare criu");
	/* Looked up in the PATH of the runtime, never of a container. */
	execvpe(program, (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)env);
	err_sys(e, "start %s", program);
	return err_hint(e, "install criu, or name it with --criu");
}

static pid_t start(const struct criu_options *o, int *gate, struct err *e)
{
	int pair[2];
	pid_t pid;

	if (sys_socketpair(pair) < 0)
		return err_sys(e, "socketpair");
	auto_fd int theirs = pair[1];
	*gate = pair[0];
	pid = fork();
	if (pid < 0)
		return err_sys(e, "fork");
	if (pid == 0) {
		struct err why = {0};

		close(*gate);
		if (become_criu(o, theirs, &why) < 0)
			sync_fail(theirs, 125, &why);
		_exit(125);
	}
	return pid;
}

static int let_go(const struct criu_options *o, int gate, pid_t pid, int *rpc, struct err *e)
{
	struct sync_msg m;

	if (sync_expect(gate, SYNC_ALONE, &m, rpc, e) < 0)
		return -1;
	if (*rpc < 0)
		return err_set(e, ERR_SYSTEM, "no way to talk to criu");
	if (o->ready && o->ready(o->ctx, pid, e) < 0)
		return -1;
	m = (struct sync_msg){.kind = SYNC_GO};
	if (sync_send(gate, &m, -1, e) < 0)
		return -1;
	return sync_expect(gate, SYNC_END, &m, NULL, e);
}

/* ---- the conversation ---- */

static int send_request(int rpc, const struct buf *b, struct err *e)
{
	ssize_t n;

	do
		n = send(rpc, b->data, b->len, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? err_sys(e, "ask criu") : 0;
}

static int receive(int rpc, struct answer *a, int *fd, struct err *e)
{
	auto_free uint8_t *text = mem_alloc(ANSWER_MAX);
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} c;
	struct iovec iov = {text, ANSWER_MAX};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &c};
	struct cmsghdr *head;
	ssize_t n;

	h.msg_controllen = sizeof(c.buf);
	do
		n = recvmsg(rpc, &h, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno != ECONNRESET)
		return err_sys(e, "hear criu");
	if (n <= 0)
		return err_set(e, ERR_SYSTEM, "criu died");
	head = CMSG_FIRSTHDR(&h);
	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
		head->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(fd, CMSG_DATA(head), sizeof(*fd));
	if (h.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		return err_set(e, ERR_CORRUPT, "criu answers too much");
	return read_answer(a, text, (size_t)n, e);
}

static int answer_note(
	const struct criu_options *o, int rpc, const struct criu_note *note, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(64);
	int rc = o->note ? o->note(o->ctx, note, e) : 0;

	criu_put_int(&b, 1, KIND_NOTIFY);
	criu_put_int(&b, 3, rc == 0); /* notify_success */
	if (send_request(rpc, &b, rc < 0 ? NULL : e) < 0)
		return -1;
	return rc;
}

static int converse(const struct criu_options *o, int rpc, pid_t *pid, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(REQUEST_MAX);

	criu_put_int(&b, 1, o->kind);
	put_bytes(&b, 2, o->opts->data, o->opts->len);
	if (send_request(rpc, &b, e) < 0)
		return -1;
	for (;;) {
		auto_fd int fd = -1;
		struct answer a;

		if (receive(rpc, &a, &fd, e) < 0)
			return -1;
		if (a.pid)
			*pid = a.pid;
		if (!a.success)
			return err_set(e, ERR_SYSTEM, "criu failed (%d)", (int)a.error);
		if (a.kind == (uint64_t)o->kind)
			return 0;
		if (a.kind != KIND_NOTIFY)
			return err_set(e, ERR_CORRUPT, "criu answers something else");
		const struct criu_note note = {a.script, a.pid, fd};
		if (answer_note(o, rpc, &note, e) < 0)
			return -1;
	}
}

/* The last lines of its log that tell of errors, without their times. */
static int quote_log(const struct criu_options *o, struct err *e)
{
	auto_fd int fd = sys_openat(o->log_dir, o->log, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	auto_free char *text = mem_alloc(LOG_READ + 1);
	char *lines[LOG_LINES] = {NULL};
	off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
	ssize_t n =
		fd < 0 ? -1 : sys_pread(fd, text, LOG_READ, size > LOG_READ ? size - LOG_READ : 0);

	if (n <= 0)
		return -1;
	for (char *rest = text, *line; (line = strsep(&rest, "\n")) != NULL;) {
		char *error = strstr(line, "Error (");

		if (!error)
			continue;
		memmove(lines, lines + 1, sizeof(lines) - sizeof(lines[0]));
		lines[LOG_LINES - 1] = error;
	}
	for (int i = LOG_LINES - 1; i >= 0 && lines[i]; i--) {
		str_plain(lines[i], "");
		err_ctx(e, "%.300s", lines[i]);
	}
	return -1;
}

static int reap(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return status;
}

int criu_run(const struct criu_options *o, pid_t *pid, struct err *e)
{
	auto_fd int gate = -1, rpc = -1;
	pid_t restored = 0, criu = start(o, &gate, e);
	bool started;
	int rc, status;

	if (criu < 0)
		return -1;
	started = let_go(o, gate, criu, &rpc, e) == 0;
	rc = started ? converse(o, rpc, &restored, e) : -1;
	sys_close_ref(&rpc); /* ends it, should it wait for more (after a pre-dump) */
	if (rc < 0)
		kill(criu, SIGKILL);
	status = reap(criu);
	if (rc == 0 && o->kind != CRIU_PRE_DUMP && status != 0)
		rc = err_set(e, ERR_SYSTEM, "criu ended with status %d", status);
	if (rc < 0 && restored > 0 && kill(restored, SIGKILL) == 0)
		reap(restored); /* a child of ours, so the pid is its own */
	if (rc < 0)
		return started ? quote_log(o, e) : -1;
	*pid = restored;
	return 0;
}
