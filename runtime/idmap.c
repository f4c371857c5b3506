#include "runtime/idmap.h"

#include <errno.h>
#include <fcntl.h>
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
	uint32_t own; /* the caller's */
};

int64_t idmap_host(const struct spec_idmaps *m, uint32_t id)
{
	if (!m->n)
		return id;
	for (size_t i = 0; i < m->n; i++)
		if (id >= m->v[i].container && id - m->v[i].container < m->v[i].size)
			return (int64_t)m->v[i].host + (id - m->v[i].container);
	return -1;
}

/* How many ids do a and b have in common? */
static uint64_t common(uint64_t a, uint64_t na, uint64_t b, uint64_t nb)
{
	uint64_t from = a > b ? a : b, to = a + na < b + nb ? a + na : b + nb;

	return from < to ? to - from : 0;
}

/* Of ids that our own user namespace lacks nothing can be given away. Which range is that? NULL:
 * all is granted. */
static const struct spec_idmap *find_missing(const struct kind *k, const struct spec_idmaps *m)
{
	auto_buf struct buf text = BUF_INIT(64 << 10);
	uint32_t inside, outside, size;
	char path[64];
	int used = 0;

	snprintf(path, sizeof(path), "/proc/self/%s", k->file);
	if (file_read(AT_FDCWD, path, &text, NULL) < 0)
		return NULL;
	for (size_t i = 0; i < m->n; i++) {
		uint64_t left = m->v[i].size;

		for (const char *p = text.data;
			sscanf(p, "%u %u %u%n", &inside, &outside, &size, &used) == 3; p += used)
			left -= common(inside, size, m->v[i].host, m->v[i].size);
		if (left)
			return &m->v[i];
	}
	return NULL;
}

/* ---- writing ---- */

static int write_file(pid_t pid, const char *name, const char *text)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	auto_fd int fd = sys_open(path, O_WRONLY, 0);
	if (fd < 0)
		return -1;
	/* Whole, or not at all. */
	return sys_write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
}

/* May a process without rights map it? Its own id, and nothing else. */
static bool is_own_id(const struct kind *k, const struct spec_idmaps *m)
{
	return m->n == 1 && m->v[0].size == 1 && m->v[0].host == k->own;
}

static int write_direct(const struct kind *k, pid_t pid, const struct spec_idmaps *m,
	const struct buf *text, struct err *e)
{
	const struct spec_idmap *missing;

	if (text->len > MAP_TEXT_MAX)
		return err_set(e, ERR_UNSUPPORTED,
			"%s map: longer than the kernel takes (%zu bytes)", k->name, text->len);
	if (write_file(pid, k->file, text->data) == 0)
		return 0;
	/* Without CAP_SETGID a group may be mapped only by who can drop none (CVE-2014-8989). */
	if (errno == EPERM && *k->name == 'g' && is_own_id(k, m) &&
		write_file(pid, "setgroups", "deny") == 0 &&
		write_file(pid, k->file, text->data) == 0)
		return 0;
	missing = errno == EPERM ? find_missing(k, m) : NULL;
	if (missing)
		return err_set(e, ERR_DENIED,
			"%s map: range %u:%u:%u has ids that are not ours to give", k->name,
			missing->container, missing->host, missing->size);
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

/* text: the map's, whose numbers are the helper's arguments. */
static int write_by_helper(
	const struct kind *k, pid_t pid, const struct spec_idmaps *m, char *text, struct err *e)
{
	static const char *const env[] = {"PATH=/usr/bin:/bin", NULL};
	auto_free const char **argv = mem_array(3 * m->n + 3, sizeof(*argv));
	struct proc p = {.argv = argv, .env = env, .seconds = 30};
	char path[64], number[16];
	size_t n = 2;

	argv[0] = find_helper(k, path);
	argv[1] = number;
	snprintf(number, sizeof(number), "%d", (int)pid);
	if (!argv[0]) {
		err_set(e, ERR_DENIED, "%s map: range %u:%u:%u needs %s, which is not installed",
			k->name, m->v[0].container, m->v[0].host, m->v[0].size, k->helper);
		return err_hint(e, "install uidmap, or map the one id %u", k->own);
	}
	for (char *word; (word = strsep(&text, " \n")) && *word;)
		argv[n++] = word;
	if (proc_check(&p, e) == 0) /* its words name the range */
		return 0;
	if (e)
		e->kind = ERR_DENIED;
	return err_hint(e, "grant the range in %s", k->granted);
}

static int write_kind(const struct kind *k, pid_t pid, const struct spec_idmaps *m, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(SPEC_IDMAPS_MAX * sizeof("4294967295 ") * 3);
	struct spec_idmap own = {0, k->own, 1};
	struct spec_idmaps one = {&own, 1};

	if (!m->n) /* none given: whoever runs us is root inside */
		m = &one;
	for (size_t i = 0; i < m->n; i++)
		buf_printf(&text, "%u %u %u\n", m->v[i].container, m->v[i].host, m->v[i].size);
	if (geteuid() == 0 || is_own_id(k, m))
		return write_direct(k, pid, m, &text, e);
	return write_by_helper(k, pid, m, text.data, e);
}

int idmap_write(
	pid_t pid, const struct spec_idmaps *uids, const struct spec_idmaps *gids, struct err *e)
{
	const struct kind uid = {"uid", "uid_map", "/etc/subuid", "newuidmap", geteuid()};
	const struct kind gid = {"gid", "gid_map", "/etc/subgid", "newgidmap", getegid()};

	return write_kind(&uid, pid, uids, e) < 0 ? -1 : write_kind(&gid, pid, gids, e);
}

/* ---- a namespace without a process ---- */

int idmap_namespace(const struct spec_idmaps *uids, const struct spec_idmaps *gids, struct err *e)
{
	/* No exit signal: its end is nobody's business, also not of who waits for children. */
	struct clone_args a = {.flags = CLONE_NEWUSER};
	int fds[2], fd = -1;
	char path[64];
	pid_t pid;

	if (sys_pipe(fds) < 0)
		return err_sys(e, "pipe");
	auto_fd int in = fds[0];
	auto_fd int out = fds[1];

	pid = (pid_t)syscall(SYS_clone3, &a, sizeof(a));
	if (pid < 0)
		return err_sys(e, "new user namespace");
	if (pid == 0) { /* it lives until we say so, or are gone */
		close(out);
		_exit(sys_read(in, path, 1) == 0 ? 0 : 1);
	}
	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	if (idmap_write(pid, uids, gids, e) == 0) {
		fd = sys_open(path, O_RDONLY, 0);
		if (fd < 0)
			err_sys(e, "%s", path);
	}
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	return fd;
}
