#include "runtime/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <sys/vfs.h>

#include "base/str.h"
#include "base/sys.h"
#include "runtime/fs-mount.h"

/* Kernel file systems: their mount points may not be links, and an image can't give a source. */
static const char *const kernel_types[] = {
	"proc", "sysfs", "cgroup", "cgroup2", "mqueue", "devpts", NULL};

static bool is_kernel_type(const char *type)
{
	for (size_t i = 0; kernel_types[i]; i++)
		if (str_eq(kernel_types[i], type))
			return true;
	return false;
}

static int check_destination(const struct mount_plan *p, struct err *e)
{
	const char *d = p->m->destination;

	if (d[strspn(d, "/")] == '\0')
		return err_set(e, ERR_USAGE, "nothing can be mounted over the root");
	if (strstr(d, "/../") || str_ends(d, "/.."))
		return err_set(e, ERR_USAGE, "'..' in a mount destination");
	return 0;
}

/* Nothing but a procfs is mounted on or inside a procfs, whatever way led there: it could send
 * elsewhere what we or the container believe to read from and write to the kernel (CVE-2019-16884,
 * CVE-2025-52881). */
static int refuse_procfs(int at, struct err *e)
{
	struct statfs fs;

	if (fstatfs(at, &fs) < 0)
		return err_sys(e, "statfs");
	if (fs.f_type == PROC_SUPER_MAGIC)
		return err_set(e, ERR_USAGE, "nothing can be mounted on /proc or inside it");
	return 0;
}

int mounts_plan(const struct spec *s, struct arena *mem, struct mount_plan **v, struct err *e)
{
	*v = arena_alloc(mem, (s->nmounts + 1) * sizeof(**v));
	for (size_t i = 0; i < s->nmounts; i++) {
		struct mount_plan *p = &(*v)[i];

		p->m = &s->mounts[i];
		p->fd = -1;
		if (mount_options_parse(&p->o, &p->m->options, mem, e) < 0 ||
			check_destination(p, e) < 0)
			return err_ctx(e, "mount %s", p->m->destination);
		if (p->m->type && str_eq(p->m->type, "bind"))
			p->o.bind = true;
		if (p->o.bind ? !p->m->source : !p->m->type)
			return err_set(e, ERR_CORRUPT, "mount %s: no %s", p->m->destination,
				p->o.bind ? "source" : "type");
		if (p->o.bind && p->o.data.n)
			return err_set(e, ERR_UNSUPPORTED, "mount %s: unknown option '%s'",
				p->m->destination, p->o.data.v[0]);
	}
	return 0;
}

int mounts_open(struct mount_plan *v, const struct spec *s, int bundle, struct err *e)
{
	for (size_t i = 0; spec_new_ns(s, NS_USER) && i < s->nmounts; i++) {
		if (!v[i].o.bind)
			continue;
		v[i].fd = fs_bind(bundle, v[i].m->source, v[i].o.bind_all, e);
		if (v[i].fd < 0)
			return err_ctx(e, "mount %s", v[i].m->destination);
	}
	return 0;
}

void mounts_close(struct mount_plan *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sys_close_ref(&v[i].fd);
}

static int finish(int mnt, const struct mount_options *o, struct err *e)
{
	if (fs_attr(mnt, true, o->set_all, o->clear_all, o->propagation_all, e) < 0)
		return -1;
	/* A copy's flags change only where the options say so; a new mount has its flags already.
	 */
	if (fs_attr(mnt, false, o->bind ? o->set : 0, o->bind ? o->clear : 0, 0, e) < 0)
		return -1;
	return fs_attr(mnt, false, 0, 0, o->propagation, e);
}

static int make_bind(struct mounts_place *p, const struct mount_plan *m, struct err *e)
{
	struct stat st;
	enum point_kind kind;

	/* Trusted: the source is named by the user, or lies in the bundle. */
	auto_fd int mnt = m->fd >= 0 ? fcntl(m->fd, F_DUPFD_CLOEXEC, 0)
				     : fs_bind(p->bundle, m->m->source, m->o.bind_all, e);
	if (mnt < 0)
		return -1;
	if (sys_fstat(mnt, &st) < 0)
		return err_sys(e, "%s", m->m->source);
	kind = S_ISDIR(st.st_mode) ? POINT_DIR : POINT_FILE;
	auto_fd int at = mount_point(p->root, m->m->destination, kind, false, &p->own, e);
	if (at < 0 || refuse_procfs(at, e) < 0 || finish(mnt, &m->o, e) < 0)
		return -1;
	return fs_attach(mnt, at, e);
}

static int make_cgroup(struct mounts_place *p, const struct mount_plan *m, int at, struct err *e)
{
	return cgroup_mount(p->cgroup, at, m->o.set, spec_has_ns(p->spec, NS_CGROUP), e);
}

static int make_new(struct mounts_place *p, const struct mount_plan *m, struct err *e)
{
	const char *type = m->m->type, *dest = m->m->destination;
	bool kernel = is_kernel_type(type);
	/* The root's own /dev may not be a link either: nodes are made in it (CVE-2026-41579). */
	bool no_links = kernel || str_eq(dest, "/dev");

	auto_fd int at = mount_point(p->root, dest, POINT_DIR, no_links, &p->own, e);
	if (at < 0 || (!str_eq(type, "proc") && refuse_procfs(at, e) < 0))
		return -1;
	if (str_eq(type, "cgroup") || str_eq(type, "cgroup2"))
		return make_cgroup(p, m, at, e);
	auto_fd int mnt =
		fs_mount(type, kernel ? type : m->m->source, m->o.data.v, m->o.data.n, m->o.set, e);
	if (mnt < 0 || finish(mnt, &m->o, e) < 0 || fs_attach(mnt, at, e) < 0)
		return -1;
	if (str_eq(type, "tmpfs") && own_mounts_add(&p->own, mnt, e) < 0)
		return -1;
	if (str_eq(type, "proc") && p->proc < 0)
		p->proc = steal_fd(&mnt);
	return 0;
}

int mounts_make(struct mounts_place *p, const struct mount_plan *v, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		int rc = v[i].o.bind ? make_bind(p, &v[i], e) : make_new(p, &v[i], e);

		if (rc < 0)
			return err_ctx(e, "mount %s", v[i].m->destination);
	}
	return 0;
}

/* An empty folder for all masks: new for the first, copied from there for the others. */
static int empty_folder(int *first, struct err *e)
{
	static const char *const data[] = {"size=0", "nr_inodes=1", "mode=0555"};

	if (*first >= 0)
		return fs_bind(*first, "", false, e);
	*first = fs_mount("tmpfs", "tmpfs", data, 3,
		MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, e);
	return *first < 0 ? -1 : fcntl(*first, F_DUPFD_CLOEXEC, 0);
}

static int mask_one(int at, int null, int *empty, struct err *e)
{
	struct stat st;

	if (sys_fstat(at, &st) < 0)
		return err_sys(e, "stat");
	auto_fd int mnt =
		S_ISDIR(st.st_mode) ? empty_folder(empty, e) : fs_bind(null, "", false, e);
	if (mnt < 0)
		return -1;
	/* Read-only, or a chmod in the container would reach the host's /dev/null; a device on a
	 * read-only mount can be written to all the same. */
	if (!S_ISDIR(st.st_mode) &&
		fs_attr(mnt, false, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_NOSUID, 0,
			MS_PRIVATE, e) < 0)
		return -1;
	return fs_attach(mnt, at, e);
}

int mounts_mask(int root, int null, const struct strings *paths, struct err *e)
{
	auto_fd int empty = -1;

	for (size_t i = 0; i < paths->n; i++) {
		auto_fd int at = sys_open_in_root(root, paths->v[i], O_PATH, 0);

		if (at < 0 && (errno == ENOENT || errno == ENOTDIR))
			continue;
		if (at < 0)
			return err_sys(e, "mask %s", paths->v[i]);
		if (mask_one(at, null, &empty, e) < 0)
			return err_ctx(e, "mask %s", paths->v[i]);
	}
	return 0;
}

int mounts_readonly(int root, const struct strings *paths, struct err *e)
{
	for (size_t i = 0; i < paths->n; i++) {
		auto_fd int at = sys_open_in_root(root, paths->v[i], O_PATH, 0);

		if (at < 0 && (errno == ENOENT || errno == ENOTDIR))
			continue;
		if (at < 0)
			return err_sys(e, "read-only path %s", paths->v[i]);
		auto_fd int mnt = fs_bind(at, "", true, e);
		if (mnt < 0 || fs_attr(mnt, true, MOUNT_ATTR_RDONLY, 0, 0, e) < 0 ||
			fs_attach(mnt, at, e) < 0)
			return err_ctx(e, "read-only path %s", paths->v[i]);
	}
	return 0;
}
