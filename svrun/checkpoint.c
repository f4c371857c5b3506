#include "svrun/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "runtime/cgroup-file.h"

enum { REQUEST_MAX = 1 << 20, MOUNTINFO_MAX = 16 << 20, LOG_LEVEL = 4 };
#define LOG "dump.log"

/* ---- what saving and restoring share ---- */

static int open_folder(const char *path, struct err *e)
{
	auto_fd int fd = -1;

	if (sys_mkdir_p(AT_FDCWD, path, 0700) == 0)
		fd = sys_open(path, O_RDONLY | O_DIRECTORY, 0);
	return fd < 0 ? err_sys(e, "folder %s", path) : steal_fd(&fd);
}

int checkpoint_folders(
	const struct checkpoint_options *o, struct checkpoint_folders *f, struct err *e)
{
	f->work = -1;
	f->images = open_folder(o->images, e);
	if (f->images < 0)
		return -1;
	f->work = open_folder(o->work ? o->work : o->images, e);
	if (f->work >= 0)
		return 0;
	checkpoint_folders_close(f);
	return -1;
}

void checkpoint_folders_close(struct checkpoint_folders *f)
{
	sys_close_ref(&f->images);
	sys_close_ref(&f->work);
}

void checkpoint_common(const struct checkpoint_options *o, const char *log, struct buf *b)
{
	criu_put_int(b, CRIU_IMAGES_FD, CRIU_FIRST_FD);
	criu_put_int(b, CRIU_WORK_FD, CRIU_FIRST_FD + 1);
	criu_put_int(b, CRIU_LOG_LEVEL, LOG_LEVEL);
	criu_put_str(b, CRIU_LOG_FILE, log);
	criu_put_int(b, CRIU_NOTIFY_SCRIPTS, true);
	criu_put_int(b, CRIU_ORPHAN_PTS_MASTER, true);
	criu_put_int(b, CRIU_CGROUPS_MODE, (unsigned)o->cgroups);
	criu_put_int(b, CRIU_EXT_UNIX_SK, o->ext_unix_sk);
	criu_put_int(b, CRIU_TCP_ESTABLISHED, o->tcp_established);
	criu_put_int(b, CRIU_SHELL_JOB, o->shell_job);
	criu_put_int(b, CRIU_FILE_LOCKS, o->file_locks);
	criu_put_int(b, CRIU_AUTO_DEDUP, o->auto_dedup);
	criu_put_int(b, CRIU_LAZY_PAGES, o->lazy_pages);
	if (o->empty_net)
		criu_put_int(b, CRIU_EMPTY_NS, CLONE_NEWNET);
	if (o->page_address)
		criu_put_pair(b, CRIU_PAGE_SERVER, o->page_address, NULL, o->page_port);
}

bool checkpoint_is_bind(const struct spec_mount *m)
{
	if (m->type && str_eq(m->type, "bind"))
		return true;
	for (size_t i = 0; i < m->options.n; i++)
		if (str_eq(m->options.v[i], "bind") || str_eq(m->options.v[i], "rbind"))
			return true;
	return false;
}

const char *checkpoint_ns_key(enum ns_kind k)
{
	return k == NS_NETWORK ? "extRootNetNS" : k == NS_PID ? "extRootPidNS" : NULL;
}

int checkpoint_note(const struct checkpoint_options *o, const struct criu_note *n, struct err *e)
{
	if (o->status_fd < 0 || !str_eq(n->script, "status-ready"))
		return 0;
	return sys_write_all(o->status_fd, "", 1) < 0 ? err_sys(e, "--status-fd") : 0;
}

bool checkpoint_path_of(int fd, char out[PATH_MAX])
{
	char link[48];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, out, PATH_MAX - 1);
	if (n <= 0 || out[0] != '/')
		return false;
	out[n] = '\0';
	return true;
}

/* ---- mounts that come from outside ---- */

/* Where a path of the config really is inside, as the kernel shows it. Returns false when it is not
 * there (any more). */
static bool place_inside(int root, const char *path, char out[PATH_MAX])
{
	auto_fd int fd = sys_open_in_root(root, path, O_PATH, 0);

	return fd >= 0 && checkpoint_path_of(fd, out);
}

/* Binds of the config are known in the images by their destinations. */
static void put_binds(const struct spec *spec, int root, struct buf *b)
{
	char at[PATH_MAX];

	for (size_t i = 0; i < spec->nmounts; i++) {
		const struct spec_mount *m = &spec->mounts[i];

		if (checkpoint_is_bind(m) && place_inside(root, m->destination, at))
			criu_put_pair(b, CRIU_EXT_MOUNT, at, m->destination, 0);
	}
}

/* What else is bound from the host: device nodes (the null device over masked files, all of them in
 * a user namespace), known by their host's paths, and cgroups, known by their hierarchy.
 *
 * A line: ID PARENT MAJOR:MINOR ROOT PLACE OPTIONS... - TYPE SOURCE ... */
static void put_bound(char *line, struct buf *b)
{
	char *type = strstr(line, " - "), *field[5] = {NULL};
	auto_free char *name = NULL;

	if (!type)
		return;
	type[0] = '\0';
	type += strlen(" - ");
	type[strcspn(type, " ")] = '\0';
	for (size_t i = 0; i < 5; i++)
		field[i] = strsep(&line, " ");
	if (!field[4])
		return;
	if (str_eq(type, "devtmpfs") && !str_eq(field[3], "/"))
		name = mem_printf("/dev%s", field[3]);
	else if (str_starts(type, "cgroup"))
		name = mem_printf(CHECKPOINT_CGROUP "%s",
			str_eq(type, "cgroup") ? strrchr(field[4], '/') + 1 : "");
	if (name)
		criu_put_pair(b, CRIU_EXT_MOUNT, field[4], name, 0);
}

static int put_mounts(const struct spec *spec, pid_t pid, struct buf *b, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(MOUNTINFO_MAX);
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/root", (int)pid);
	auto_fd int root = sys_open(path, O_PATH | O_DIRECTORY, 0);
	if (root < 0)
		return err_sys(e, "%s", path);
	put_binds(spec, root, b);
	snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)pid);
	if (file_read(AT_FDCWD, path, &text, e) < 0)
		return -1;
	for (char *rest = text.data, *line; (line = strsep(&rest, "\n")) != NULL;)
		put_bound(line, b);
	return 0;
}

/* ---- namespaces ---- */

/* Those that others share with it by a path stay theirs. */
static int put_namespaces(const struct spec *spec, pid_t pid, struct buf *b, struct err *e)
{
	for (enum ns_kind k = 0; k < NS_KINDS; k++) {
		const char *key = checkpoint_ns_key(k), *kind = k == NS_PID ? "pid" : "net";
		auto_free char *text = NULL;
		struct stat st;
		char path[48];

		if (!key || !spec->namespaces[k].path)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, kind);
		if (stat(path, &st) < 0)
			return err_sys(e, "%s", path);
		text = mem_printf("%s[%ju]:%s", kind, (uintmax_t)st.st_ino, key);
		criu_put_str(b, CRIU_EXTERNAL, text);
	}
	return 0;
}

/* ---- standard streams ---- */

/* Has a process of the container the other end of a pipe? Then it is its own affair, wherever its
 * first process's output goes now. */
static bool holds_other_end(pid_t pid, const char *pipe, bool writes)
{
	char path[64], link[64];

	for (int fd = 0; fd < 1024; fd++) {
		auto_buf struct buf info = BUF_INIT(4096);
		const char *flags;
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
		n = readlink(path, link, sizeof(link) - 1);
		if (n <= 0)
			continue;
		link[n] = '\0';
		snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", (int)pid, fd);
		if (!str_eq(link, pipe) || file_read(AT_FDCWD, path, &info, NULL) < 0)
			continue;
		flags = strstr(info.data, "flags:\t");
		if (flags && ((strtoul(flags + strlen("flags:\t"), NULL, 8) & O_ACCMODE) ==
				     O_WRONLY) != writes)
			return true;
	}
	return false;
}

static bool is_inner_pipe(const struct cgroup *c, const char *link, bool writes)
{
	auto_free pid_t *pids = NULL;
	size_t n;

	if (!str_starts(link, "pipe:") || cgroup_pids(c, &pids, &n, NULL) < 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if (holds_other_end(pids[i], link, writes))
			return true;
	return false;
}

/* The host's null device is on a mount that the container does not have: its name in images instead
 * of its path. */
static void name_null(pid_t pid, int fd, char link[PATH_MAX])
{
	auto_buf struct buf info = BUF_INIT(4096);
	struct stat st;
	char path[48];
	const char *id;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", (int)pid, fd);
	if (file_read(AT_FDCWD, path, &info, NULL) < 0)
		return;
	id = strstr(info.data, "mnt_id:\t");
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	if (id && sys_fstatat(AT_FDCWD, path, &st, 0) == 0)
		snprintf(link, PATH_MAX, "file[%lx:%jx]",
			strtoul(id + strlen("mnt_id:\t"), NULL, 10), (uintmax_t)st.st_ino);
}

static int put_descriptors(
	int images, pid_t pid, const struct cgroup *c, struct buf *b, struct err *e)
{
	auto_json json_t *all = json_array();
	auto_buf struct buf text = BUF_INIT(16 << 10);

	for (int fd = 0; fd < 3; fd++) {
		char path[48], link[PATH_MAX];
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
		n = readlink(path, link, sizeof(link) - 1);
		link[n > 0 ? n : 0] = '\0';
		if (!str_utf8(link, strlen(link)) || is_inner_pipe(c, link, fd > 0))
			link[0] = '\0';
		if (str_eq(link, "/dev/null")) {
			name_null(pid, fd, link);
			criu_put_str(b, CRIU_EXTERNAL, link);
		}
		json_array_append_new(all, json_string(link));
	}
	json_text(all, true, &text);
	return file_write(images, CHECKPOINT_DESCRIPTORS, text.data, text.len, 0600, e);
}

/* ---- saving ---- */

/* The folder of the freezer, by which criu stops everything at once. */
static bool freezer(const struct cgroup *c, char out[PATH_MAX])
{
	int dir = cgroup_dir_of(c, "freezer");

	return dir >= 0 && checkpoint_path_of(dir, out);
}

struct saving {
	const struct checkpoint_options *o;
	const struct spec *spec;
	const struct state *s;
	struct cgroup cgroup;
	struct checkpoint_folders folders;
};

static int note(void *ctx, const struct criu_note *n, struct err *e)
{
	const struct saving *a = ctx;

	return checkpoint_note(a->o, n, e);
}

static int put_options(const struct saving *a, struct buf *b, struct err *e)
{
	const struct checkpoint_options *o = a->o;
	pid_t pid = a->s->pid;
	char path[PATH_MAX];

	checkpoint_common(o, LOG, b);
	criu_put_int(b, CRIU_PID, (unsigned)pid);
	criu_put_int(b, CRIU_LEAVE_RUNNING, o->leave_running);
	criu_put_str(b, CRIU_ROOT, a->s->rootfs);
	if (o->parent)
		criu_put_str(b, CRIU_PARENT_IMAGES, o->parent);
	if (o->parent || o->pre_dump)
		criu_put_int(b, CRIU_TRACK_MEM, true);
	if (freezer(&a->cgroup, path))
		criu_put_str(b, CRIU_FREEZE_CGROUP, path);
	if (put_namespaces(a->spec, pid, b, e) < 0)
		return -1;
	if (o->pre_dump)
		return 0;
	if (put_mounts(a->spec, pid, b, e) < 0)
		return -1;
	return put_descriptors(a->folders.images, pid, &a->cgroup, b, e);
}

static int save(struct saving *a, struct err *e)
{
	auto_buf struct buf opts = BUF_INIT(REQUEST_MAX);
	const int fds[] = {a->folders.images, a->folders.work};
	struct criu_options run = {
		.program = a->o->criu,
		.kind = a->o->pre_dump ? CRIU_PRE_DUMP : CRIU_DUMP,
		.opts = &opts,
		.log_dir = a->folders.work,
		.log = LOG,
		.stdio = {-1, -1, -1},
		.fds = fds,
		.nfds = 2,
		.note = note,
		.ctx = a,
	};
	pid_t none;

	return put_options(a, &opts, e) < 0 ? -1 : criu_run(&run, &none, e);
}

int checkpoint_save(const struct checkpoint_options *o, const struct spec *spec,
	const struct state *s, struct err *e)
{
	struct saving a = {.o = o, .spec = spec, .s = s};
	int rc;

	if (cgroup_open(&a.cgroup, &s->cgroup, NULL, e) < 0)
		return -1;
	rc = checkpoint_folders(o, &a.folders, e);
	if (rc == 0) {
		rc = save(&a, e);
		checkpoint_folders_close(&a.folders);
	}
	cgroup_fini(&a.cgroup);
	return rc;
}
