#include "runtime/idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/proc.h"
#include "base/str.h"
#include "base/sys.h"

enum { MAP_TEXT_MAX = 4095 }; /* the kernel takes less than a page */

/* The two kinds of ids, which differ in names only. */
struct kind {
	const char *name, *file, *granted, *helper;
};
static const struct kind uid_kind = {"uid", "uid_map", "/etc/subuid", "newuidmap"};
static const struct kind gid_kind = {"gid", "gid_map", "/etc/subgid", "newgidmap"};

#define RANGE "range %" PRIu32 ":%" PRIu32 ":%" PRIu32
#define RANGE_OF(r) (r)->container, (r)->host, (r)->size

int64_t idmap_host(const struct spec_idmaps *m, uint32_t id)
{
	if (!m->n)
		return id;
	for (size_t i = 0; i < m->n; i++)
		if (id >= m->v[i].container && id - m->v[i].container < m->v[i].size)
			return (int64_t)m->v[i].host + (id - m->v[i].container);
	return -1;
}

/* Of ids that our own user namespace lacks nothing can be given away. Which range is that? NULL:
 * all is granted. */
static const struct spec_idmap *find_missing(const struct kind *k, const struct spec_idmaps *m)
{
	auto_buf struct buf text = BUF_INIT(64 << 10);
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/%s", k->file);
	if (file_read(AT_FDCWD, path, &text, NULL) < 0)
		return NULL;
	for (size_t i = 0; i < m->n; i++) {
		uint64_t left = m->v[i].size;
		uint32_t inside, outside, size;
		int used = 0;

		for (const char *p = text.data; sscanf(p, "%" SCNu32 " %" SCNu32 " %" SCNu32 "%n",
							&inside, &outside, &size, &used) == 3;
			p += used) {
			uint64_t from = m->v[i].host > inside ? m->v[i].host : inside;
			uint64_t end = (uint64_t)m->v[i].host + m->v[i].size;
			uint64_t to = (uint64_t)inside + size < end ? (uint64_t)inside + size : end;

			left -= from < to ? to - from : 0;
		}
		if (left)
			return &m->v[i];
	}
	return NULL;
}

/* ---- writing ---- */

static int write_file(pid_t pid, const char *name, const char *text, size_t n)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	auto_fd int fd = sys_open(path, O_WRONLY, 0);
	if (fd < 0)
		return -1;
	return sys_write(fd, text, n) == (ssize_t)n ? 0 : -1; /* whole, or not at all */
}

/* May a process without rights map it? Its own id, and nothing else. */
static bool is_own_id(const struct kind *k, const struct spec_idmaps *m)
{
	return m->n == 1 && m->v[0].size == 1 &&
	       m->v[0].host == (k == &uid_kind ? geteuid() : getegid());
}

static int write_direct(const struct kind *k, pid_t pid, const struct spec_idmaps *m, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(2 * MAP_TEXT_MAX + SPEC_IDMAPS_MAX * 32);
	const struct spec_idmap *missing;

	for (size_t i = 0; i < m->n; i++)
		buf_printf(&text, "%" PRIu32 " %" PRIu32 " %" PRIu32 "\n", RANGE_OF(&m->v[i]));
	if (text.len > MAP_TEXT_MAX)
		return err_set(e, ERR_UNSUPPORTED,
			"%s map: longer than the kernel takes (%zu bytes)", k->name, text.len);
	if (write_file(pid, k->file, text.data, text.len) == 0)
		return 0;
	/* Without CAP_SETGID a group may be mapped only by who can drop none (CVE-2014-8989). */
	if (errno == EPERM && k == &gid_kind && is_own_id(k, m) &&
		write_file(pid, "setgroups", "deny", 4) == 0 &&
		write_file(pid, k->file, text.data, text.len) == 0)
		return 0;
	missing = errno == EPERM ? find_missing(k, m) : NULL;
	if (missing)
		return err_set(e, ERR_DENIED, "%s map: " RANGE " has ids that are not ours to give",
			k->name, RANGE_OF(missing));
	return err_sys(e, "%s map of the user namespace", k->name);
}

/* Where distributions have them: the PATH of an engine is not asked for a setuid program. */
static const char *find_helper(const struct kind *k, char path[64])
{
	static const char *const folders[] = {"/usr/bin", "/bin", "/usr/local/bin", "/usr/sbin"};

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		snprintf(path, 64, "%s/%s", folders[i], k->helper);
		if (access(path, X_OK) == 0)
			return path;
	}
	return NULL;
}

static int write_by_helper(
	const struct kind *k, pid_t pid, const struct spec_idmaps *m, struct err *e)
{
	static const char *const env[] = {"PATH=/usr/bin:/bin", NULL};
	struct arena mem = {NULL};
	const char **argv = arena_alloc(&mem, (3 * m->n + 3) * sizeof(*argv));
	struct proc p = {.argv = argv, .env = env, .seconds = 30};
	char path[64];
	size_t n = 0;
	int rc;

	argv[n++] = find_helper(k, path);
	if (!argv[0]) {
		arena_fini(&mem);
		err_set(e, ERR_DENIED, "%s map: " RANGE " needs %s, which is not installed",
			k->name, RANGE_OF(&m->v[0]), k->helper);
		return err_hint(e, "install uidmap, or map the one id %u",
			k == &uid_kind ? geteuid() : getegid());
	}
	argv[n++] = arena_printf(&mem, "%d", (int)pid);
	for (size_t i = 0; i < m->n; i++) {
		argv[n++] = arena_printf(&mem, "%" PRIu32, m->v[i].container);
		argv[n++] = arena_printf(&mem, "%" PRIu32, m->v[i].host);
		argv[n++] = arena_printf(&mem, "%" PRIu32, m->v[i].size);
	}
	rc = proc_check(&p, e); /* its words name the range */
	arena_fini(&mem);
	if (rc < 0) {
		if (e)
			e->kind = ERR_DENIED;
		return err_hint(e, "grant the range in %s", k->granted);
	}
	return 0;
}

static int write_kind(const struct kind *k, pid_t pid, const struct spec_idmaps *m, struct err *e)
{
	struct spec_idmap own = {0, k == &uid_kind ? geteuid() : getegid(), 1};
	struct spec_idmaps one = {&own, 1};

	if (!m->n) /* none given: whoever runs us is root inside */
		m = &one;
	if (geteuid() == 0 || is_own_id(k, m))
		return write_direct(k, pid, m, e);
	return write_by_helper(k, pid, m, e);
}

int idmap_write(
	pid_t pid, const struct spec_idmaps *uids, const struct spec_idmaps *gids, struct err *e)
{
	if (write_kind(&uid_kind, pid, uids, e) < 0)
		return -1;
	return write_kind(&gid_kind, pid, gids, e);
}

/* ---- a namespace without a process ---- */

static int open_namespace(
	pid_t pid, const struct spec_idmaps *uids, const struct spec_idmaps *gids, struct err *e)
{
	char path[64];
	int fd;

	if (idmap_write(pid, uids, gids, e) < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	fd = sys_open(path, O_RDONLY, 0);
	return fd < 0 ? err_sys(e, "%s", path) : fd;
}

int idmap_namespace(const struct spec_idmaps *uids, const struct spec_idmaps *gids, struct err *e)
{
	/* No exit signal: its end is nobody's business, also not of who waits for children. */
	struct clone_args a = {.flags = CLONE_NEWUSER};
	int fds[2], fd;
	pid_t pid;
	char c;

	if (sys_pipe(fds) < 0)
		return err_sys(e, "pipe");
	auto_fd int in = fds[0];
	auto_fd int out = fds[1];

	pid = (pid_t)syscall(SYS_clone3, &a, sizeof(a));
	if (pid < 0)
		return err_sys(e, "new user namespace");
	if (pid == 0) { /* it lives until we say so, or are gone */
		close(out);
		_exit(sys_read(in, &c, 1) == 0 ? 0 : 1);
	}
	fd = open_namespace(pid, uids, gids, e);
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	return fd;
}
