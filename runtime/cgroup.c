#include "runtime/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <signal.h>
#include <stdio.h>
#include <sys/vfs.h>
#include <time.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "runtime/cgroup-devices.h"
#include "runtime/fs-mount.h"

enum { NESTED_MAX = 16, REMOVE_TRIES = 2000 };

static const char mount_root[] = "/sys/fs/cgroup";

/* The hierarchies of version 1 that a container gets a folder in. Those without `always` cost a
 * microsecond or fifty each, for nothing unless the config limits something there, except that
 * usage can be read and the container frozen. */
static const struct {
	const char *name;
	bool required;
} v1_controllers[] = {
	{"devices", true},
	{"pids", false},
	{"memory", false},
	{"cpu", false},
	{"freezer", false},
};
enum { V1 = sizeof(v1_controllers) / sizeof(v1_controllers[0]) };

static long fs_type(const char *path)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 ? (long)fs.f_type : -1;
}

static bool is_v2(void)
{
	return fs_type(mount_root) == CGROUP2_SUPER_MAGIC;
}

/* Open the root of a hierarchy: the conventional places, which every distribution and engine keeps.
 */
static int open_root(const char *controller)
{
	char path[128];
	long want = *controller ? CGROUP_SUPER_MAGIC : CGROUP2_SUPER_MAGIC;

	snprintf(path, sizeof(path), "%s/%s", mount_root, controller);
	if (fs_type(path) != want) {
		errno = ENOENT;
		return -1;
	}
	return sys_open(path, O_PATH | O_DIRECTORY, 0);
}

static const char *relative(const char *path)
{
	return path + strspn(path, "/");
}

/* ---- version 2: controllers are enabled from the root down to the parent ---- */

static void enable(int dir)
{
	static const char *const wanted[] = {"+cpu", "+memory", "+pids", "+cpuset"};
	auto_fd int fd = sys_openat(dir, "cgroup.subtree_control", O_WRONLY, 0);

	/* One by one, and not checked: a limit whose file is missing then fails with its own name.
	 */
	for (size_t i = 0; fd >= 0 && i < sizeof(wanted) / sizeof(wanted[0]); i++)
		if (sys_write(fd, wanted[i], strlen(wanted[i])) < 0)
			continue;
}

/* A new cpuset of version 1 has no cores and no memory, and takes no process, until it is told. */
static int inherit(int up, int dir, const char *file, struct err *e)
{
	auto_buf struct buf old = BUF_INIT(4096), text = BUF_INIT(4096);

	if (file_read(dir, file, &old, e) < 0 || file_read(up, file, &text, e) < 0)
		return -1;
	if (old.len > 1) /* a newline alone is empty */
		return 0;
	auto_fd int fd = sys_openat(dir, file, O_WRONLY, 0);
	if (fd < 0 || sys_write_all(fd, text.data ? text.data : "", text.len) < 0)
		return err_sys(e, "write %s", file);
	return 0;
}

/* Open path below root, making what is missing. */
static int make_dirs(int root, const char *path, const char *controller, struct err *e)
{
	bool v2 = !*controller, cpuset = str_eq(controller, "cpuset");
	char part[640];
	int dir = dup(root);
	const char *p = relative(path);

	while (dir >= 0 && *p) {
		auto_fd int up = dir;
		size_t n = strcspn(p, "/");

		dir = -1;
		if (n >= sizeof(part))
			return err_set(e, ERR_USAGE, "cgroup path too long");
		memcpy(part, p, n);
		part[n] = '\0';
		p = relative(p + n);
		if (v2)
			enable(up);
		if (sys_mkdirat(up, part, 0755) < 0 && errno != EEXIST)
			return err_sys(e, "make cgroup %s", path);
		dir = sys_openat(up, part, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
		if (cpuset && dir >= 0 &&
			(inherit(up, dir, "cpuset.cpus", e) < 0 ||
				inherit(up, dir, "cpuset.mems", e) < 0)) {
			sys_close_ref(&dir);
			return -1;
		}
	}
	return dir < 0 ? err_sys(e, "cgroup %s", path) : dir;
}

/* A folder that was left behind is empty; one in use has processes. */
static int check_free(int dir, const char *path, struct err *e)
{
	char c;

	auto_fd int fd = sys_openat(dir, "cgroup.procs", O_RDONLY, 0);
	if (fd < 0)
		return err_sys(e, "cgroup %s", path);
	if (sys_read(fd, &c, 1) > 0) {
		err_set(e, ERR_EXISTS, "cgroup %s has processes in it", path);
		return err_hint(
			e, "another container of that name runs, perhaps from another store");
	}
	return 0;
}

static int add_dir(struct cgroup *c, const char *controller, bool required, struct err *e)
{
	struct cgroup_dir *d = &c->dirs[c->ndirs];

	auto_fd int root = open_root(controller);
	if (root < 0 && errno == ENOENT && !required)
		return 0;
	if (root < 0) {
		err_set(e, ERR_UNSUPPORTED, "no %s cgroup at %s", controller, mount_root);
		return err_hint(e, "mount the cgroup file system there");
	}
	auto_fd int dir = make_dirs(root, c->path, controller, e);
	if (dir < 0)
		return -1;
	*d = (struct cgroup_dir){controller, dir, -1};
	c->ndirs++;
	steal_fd(&dir);
	if (check_free(d->dir, c->path, e) < 0)
		return -1;
	if (c->v2)
		return 0;
	d->tasks = sys_openat(d->dir, "tasks", O_WRONLY, 0);
	return d->tasks < 0 ? err_sys(e, "cgroup %s: tasks", c->path) : 0;
}

static int create_v1(struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	for (size_t i = 0; i < V1; i++)
		if (add_dir(c, v1_controllers[i].name, v1_controllers[i].required, e) < 0)
			return -1;
	if ((r->cpus || r->mems) && add_dir(c, "cpuset", true, e) < 0)
		return -1;
	/* All rules before there is a child: between "deny all" and what allows it again, its mknod
	 * would fail. */
	for (size_t i = 0; i < c->ndirs; i++)
		if (str_eq(c->dirs[i].controller, "devices"))
			return cgroup_devices_write(c->dirs[i].dir, r, e);
	return 0;
}

static int create(struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	if (c->v2)
		return add_dir(c, "", true, e) < 0 ? -1
						   : cgroup_devices_attach(c->dirs[0].dir, r, e);
	return create_v1(c, r, e);
}

int cgroup_create(struct cgroup *c, const char *path, const struct spec_resources *r, struct err *e)
{
	*c = (struct cgroup){.path = path, .v2 = is_v2()};
	if (!*relative(path))
		return err_set(e, ERR_USAGE, "a container needs a cgroup of its own, not /");
	if (create(c, r, e) == 0)
		return 0;
	if (e && e->kind != ERR_EXISTS && cgroup_destroy(path, NULL) < 0)
		err_hint(e, "and the cgroup %s could not be removed", path);
	cgroup_fini(c);
	return -1;
}

int cgroup_clone_fd(const struct cgroup *c)
{
	return c->v2 ? c->dirs[0].dir : -1;
}

int cgroup_join(const struct cgroup *c, struct err *e)
{
	for (size_t i = 0; i < c->ndirs && !c->v2; i++)
		if (sys_write_all(c->dirs[i].tasks, "0", 1) < 0)
			return err_sys(e, "enter cgroup %s (%s)", c->path, c->dirs[i].controller);
	return 0;
}

bool cgroup_out_of_memory(const struct cgroup *c)
{
	const char *file = c->v2 ? "memory.events" : "memory.oom_control", *line;
	auto_buf struct buf text = BUF_INIT(4096);

	for (size_t i = 0; i < c->ndirs; i++)
		if (c->v2 || str_eq(c->dirs[i].controller, "memory")) {
			if (file_read(c->dirs[i].dir, file, &text, NULL) < 0)
				return false;
			line = strstr(text.data ? text.data : "", "\noom_kill ");
			return line && line[strlen("\noom_kill ")] != '0';
		}
	return false;
}

void cgroup_fini(struct cgroup *c)
{
	for (size_t i = 0; i < c->ndirs; i++) {
		sys_close_ref(&c->dirs[i].dir);
		sys_close_ref(&c->dirs[i].tasks);
	}
	c->ndirs = 0;
}

/* ---- the container's view ---- */

/* Version 1: a small tmpfs with one folder for each hierarchy that the container is in. */
static int mount_v1(const struct cgroup *c, int at, uint64_t attrs, struct err *e)
{
	static const char *const data[] = {"mode=0755", "size=64k"};
	uint64_t all = attrs & ~(uint64_t)MOUNT_ATTR_RDONLY;

	auto_fd int top = fs_mount("tmpfs", "tmpfs", data, 2, all, e);
	if (top < 0 || fs_attach(top, at, e) < 0)
		return -1;
	for (size_t i = 0; c && i < c->ndirs; i++) {
		const char *name = c->dirs[i].controller;

		if (sys_mkdirat(top, name, 0755) < 0)
			return err_sys(e, "make %s", name);
		auto_fd int mnt = fs_mount("cgroup", "cgroup", &name, 1, attrs, e);
		auto_fd int dir = sys_openat(top, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
		if (mnt < 0)
			return -1;
		if (dir < 0)
			return err_sys(e, "%s", name);
		if (fs_attach(mnt, dir, e) < 0)
			return -1;
	}
	return fs_attr(top, false, attrs & MOUNT_ATTR_RDONLY, 0, 0, e);
}

int cgroup_mount(const struct cgroup *c, int at, uint64_t attrs, struct err *e)
{
	if (!is_v2())
		return mount_v1(c, at, attrs, e);
	auto_fd int mnt = fs_mount("cgroup2", "cgroup2", NULL, 0, attrs, e);
	return mnt < 0 ? -1 : fs_attach(mnt, at, e);
}

/* ---- removal ---- */

/* SIGKILL to every process in it. */
static int kill_all(int dir)
{
	auto_buf struct buf text = BUF_INIT(1 << 20);
	auto_fd int all = sys_openat(dir, "cgroup.kill", O_WRONLY, 0);
	char *p, *end;

	if (all >= 0 && sys_write_all(all, "1", 1) == 0)
		return 0;
	if (file_read(dir, "cgroup.procs", &text, NULL) < 0)
		return -1;
	for (p = text.data; p && *p; p = end + (*end == '\n')) {
		long pid = strtol(p, &end, 10);

		if (end == p)
			break;
		if (pid > 0)
			kill((pid_t)pid, SIGKILL);
	}
	return 0;
}

/* The container may have made cgroups inside its own. */
static int remove_children(int dir, unsigned depth)
{
	auto_fd int fd = sys_openat(dir, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!d)
		return -1;
	steal_fd(&fd);
	while ((entry = readdir(d))) {
		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		auto_fd int child = sys_openat(dir, entry->d_name, O_PATH | O_DIRECTORY, 0);
		if (child < 0 || kill_all(child) < 0)
			continue;
		if (depth < NESTED_MAX)
			remove_children(child, depth + 1);
		sys_unlinkat(dir, entry->d_name, AT_REMOVEDIR);
	}
	closedir(d);
	return 0;
}

/* Dying processes leave a cgroup a moment after they were killed. */
static int remove_dir(int root, const char *path, struct err *e)
{
	static const struct timespec pause = {.tv_nsec = 1000000};

	for (int tries = 0; tries < REMOVE_TRIES; tries++) {
		if (sys_unlinkat(root, path, AT_REMOVEDIR) == 0 || errno == ENOENT)
			return 0;
		if (errno != EBUSY)
			break;
		auto_fd int dir = sys_openat(root, path, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
		if (dir >= 0 && kill_all(dir) == 0)
			remove_children(dir, 0);
		nanosleep(&pause, NULL);
		errno = EBUSY;
	}
	return err_sys(e, "remove cgroup %s", path);
}

static int destroy_in(const char *controller, const char *path, struct err *e)
{
	auto_fd int root = open_root(controller);

	return root < 0 ? 0 : remove_dir(root, relative(path), e);
}

int cgroup_destroy(const char *path, struct err *e)
{
	int rc = 0;

	if (is_v2())
		return destroy_in("", path, e);
	for (size_t i = 0; i < V1; i++)
		if (destroy_in(v1_controllers[i].name, path, rc ? NULL : e) < 0)
			rc = -1;
	if (destroy_in("cpuset", path, rc ? NULL : e) < 0)
		rc = -1;
	return rc;
}

bool cgroup_has_swap(void)
{
	/* Version 2 has the file in every cgroup but the root. */
	return is_v2() ? access("/proc/swaps", F_OK) == 0
		       : access("/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes", F_OK) == 0;
}
