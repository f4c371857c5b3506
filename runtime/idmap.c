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
static const struct spec_idmap *find_missing(const char *file, const struct spec_idmaps *m)
{
	auto_buf struct buf text = BUF_INIT(64 << 10);
	uint32_t inside, outside, size;
	int used = 0;

	if (file_read(AT_FDCWD, file, &text, NULL) < 0)
		return NULL;
	for (size_t i = 0; i < m->n; i++) {
		uint64_t first = m->v[i].host, end = first + m->v[i].size, left = m->v[i].size;

		for (const char *p = text.data;
			sscanf(p, "%u %u %u%n", &inside, &outside, &size, &used) == 3; p += used) {
			uint64_t from = inside > first ? inside : first;
			uint64_t to = (uint64_t)inside + size < end ? (uint64_t)inside + size : end;

			left -= from < to ? to - from : 0;
		}
		if (left)
			return &m->v[i];
	}
	return NULL;
}

/* ---- writing, of maps of a kind: "uid", "gid" ---- */

static uint32_t own_id(const char *kind)
{
	return *kind == 'u' ? geteuid() : getegid();
}

/* May a process without rights map it? Its own id, and nothing else. */
static bool is_own_id(const char *kind, const struct spec_idmaps *m)
{
	return m->n == 1 && m->v[0].size == 1 && m->v[0].host == own_id(kind);
}

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

static int write_direct(const char *kind, pid_t pid, const struct spec_idmaps *m,
	const struct buf *text, struct err *e)
{
	char ours[32];
	const char *file = ours + strlen("/proc/self/");
	const struct spec_idmap *missing;

	snprintf(ours, sizeof(ours), "/proc/self/%s_map", kind);
	if (text->len > MAP_TEXT_MAX)
		return err_set(e, ERR_UNSUPPORTED,
			"%s map: longer than the kernel takes (%zu bytes)", kind, text->len);
	if (write_file(pid, file, text->data) == 0)
		return 0;
	/* Without CAP_SETGID a group may be mapped only by who can drop none (CVE-2014-8989). */
	if (errno == EPERM && *kind == 'g' && is_own_id(kind, m) &&
		write_file(pid, "setgroups", "deny") == 0 && write_file(pid, file, text->data) == 0)
		return 0;
	missing = errno == EPERM ? find_missing(ours, m) : NULL;
	if (missing)
		return err_set(e, ERR_DENIED,
			"%s map: range %u:%u:%u has ids that are not ours to give", kind,
			missing->container, missing->host, missing->size);
	return err_sys(e, "%s map of the user namespace", kind);
}

/* Where distributions have them: the PATH of an engine is not asked for a setuid program. */
static bool find_helper(const char *kind, char path[64])
{
	static const char *const folders[] = {"/usr/bin", "/bin", "/usr/local/bin", "/usr/sbin"};
	bool found = false;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && !found; i++) {
		snprintf(path, 64, "%s/new%smap", folders[i], kind);
		found = access(path, X_OK) == 0;
	}
	return found;
}

/* text: the map's, whose numbers are the helper's arguments. */
static int write_by_helper(
	const char *kind, pid_t pid, const struct spec_idmaps *m, char *text, struct err *e)
{
	static const char *const env[] = {"PATH=/usr/bin:/bin", NULL};
	auto_free const char **argv = mem_array(3 * m->n + 3, sizeof(*argv));
	struct proc p = {.argv = argv, .env = env, .seconds = 30};
	char path[64], number[16];
	size_t n = 2;

	argv[0] = path;
	argv[1] = number;
	snprintf(number, sizeof(number), "%d", (int)pid);
	if (!find_helper(kind, path)) {
		err_set(e, ERR_DENIED,
			"%s map: range %u:%u:%u needs new%smap, which is not installed", kind,
			m->v[0].container, m->v[0].host, m->v[0].size, kind);
		return err_hint(e, "install uidmap, or map the one id %u", own_id(kind));
	}
	for (char *word; (word = strsep(&text, " \n")) && *word;)
		argv[n++] = word;
	if (proc_check(&p, e) == 0) /* its words name the range */
		return 0;
	if (e)
		e->kind = ERR_DENIED;
	return err_hint(e, "grant the range in /etc/sub%s", kind);
}

static int write_map(const char *kind, pid_t pid, const struct spec_idmaps *m, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(SPEC_IDMAPS_MAX * sizeof("4294967295 ") * 3);
	struct spec_idmap own = {0, own_id(kind), 1};
	struct spec_idmaps one = {&own, 1};

	if (!m->n) /* none given: whoever runs us is root inside */
		m = &one;
	for (size_t i = 0; i < m->n; i++)
		buf_printf(&text, "%u %u %u\n", m->v[i].container, m->v[i].host, m->v[i].size);
	if (geteuid() == 0 || is_own_id(kind, m))
		return write_direct(kind, pid, m, &text, e);
	return write_by_helper(kind, pid, m, text.data, e);
}

int idmap_write(
	pid_t pid, const struct spec_idmaps *uids, const struct spec_idmaps *gids, struct err *e)
{
	return write_map("uid", pid, uids, e) < 0 ? -1 : write_map("gid", pid, gids, e);
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
