#include "runtime/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <sys/xattr.h>

#include "base/str.h"
#include "base/sys.h"
#include "runtime/copy-up.h"
#include "runtime/fs-mount.h"
#include "runtime/idmap.h"
#include "runtime/lsm.h"
#include "runtime/procfs.h"

/* Kernel file systems: their mount points may not be links, and an image can't give a source. */
static const struct kernel_type {
	const char *name;
	const char *host; /* what a user namespace binds when it gets no instance of its own */
	bool unlabelled;  /* has labels of its own */
} kernel_types[] = {{"proc", "/proc", true}, {"sysfs", "/sys", true},
	{"mqueue", "/dev/mqueue", false}, {"devpts", NULL, false}, {"cgroup", NULL, true},
	{"cgroup2", NULL, true}};

static const struct kernel_type *kernel_type(const char *type)
{
	for (size_t i = 0; type && i < sizeof(kernel_types) / sizeof(kernel_types[0]); i++)
		if (str_eq(kernel_types[i].name, type))
			return &kernel_types[i];
	return NULL;
}

/* A new mount of this type? */
static bool is_type(const struct mount_plan *m, const char *type)
{
	return !m->o.bind && m->m->type && str_eq(m->m->type, type);
}

static bool is_idmapped(const struct mount_plan *m)
{
	return m->o.idmap || m->m->uids.n;
}

/* Do mounts that the host makes below the source, and those that the container makes, show on the
 * other side? Only where both the root and the mount are to be shared. */
static bool stays_peer(const struct spec *s, const struct mount_options *o)
{
	return s->propagation == MS_SHARED &&
	       (o->propagation == MS_SHARED || o->propagation_all == MS_SHARED);
}

/* ---- the plan ---- */

/* By the letters alone, as other runtimes do: "/a/../b" is /b even when /a is a link. */
static const char *clean_path(const char *path, struct arena *mem)
{
	char *out = arena_alloc(mem, strlen(path) + 2), *rest = arena_strdup(mem, path), *end = out;

	for (const char *part; (part = strsep(&rest, "/"));) {
		size_t n = strlen(part);

		if (str_eq(part, "..")) {
			while (end > out && *--end != '/')
				;
		} else if (n && !str_eq(part, ".")) {
			*end++ = '/';
			memcpy(end, part, n);
			end += n;
		}
	}
	*end = '\0';
	return *out ? out : "/";
}

/* The end of an option: at a comma that is neither quoted nor escaped. */
static size_t option_length(const char *s)
{
	bool quoted = false;
	size_t n = 0;

	for (; s[n] && (s[n] != ',' || quoted); n++) {
		if (s[n] == '"')
			quoted = !quoted;
		else if (s[n] == '\\' && s[n + 1])
			n++;
	}
	return n;
}

/* One word may hold several options of a file system: other runtimes join all words with commas,
 * and let the kernel take them apart. A quoted value (context="...") loses its quotes. */
static void split_data(struct mount_options *o, struct arena *mem)
{
	const struct strings in = o->data;
	size_t max = 1;

	for (size_t i = 0; i < in.n; i++)
		max += strlen(in.v[i]);
	o->data = (struct strings){arena_alloc(mem, max * sizeof(*in.v)), 0};
	for (size_t i = 0; i < in.n; i++)
		for (const char *p = in.v[i]; *p; p += *p == ',') {
			size_t n = option_length(p);
			char *word = arena_strndup(mem, p, n), *value = strchr(word, '=');

			if (value && word + n - value > 2 && value[1] == '"' &&
				word[n - 1] == '"') {
				word[n - 1] = '\0';
				memmove(value + 1, value + 2, strlen(value + 1));
			}
			if (n)
				o->data.v[o->data.n++] = word;
			p += n;
		}
}

static int check_plan(const struct spec *s, const struct mount_plan *p, struct err *e)
{
	const struct mount_options *o = &p->o;

	if (str_eq(p->destination, "/"))
		return err_set(e, ERR_USAGE, "nothing can be mounted over the root");
	if (o->remount)
		return 0;
	if (o->bind ? !p->m->source || !*p->m->source : !p->m->type)
		return err_set(e, ERR_CORRUPT, "no %s", o->bind ? "source" : "type");
	if (o->data.n && (o->bind || is_type(p, "cgroup") || is_type(p, "cgroup2")))
		return err_set(e, ERR_UNSUPPORTED, "unknown option '%s'", o->data.v[0]);
	if (o->tmpcopyup && !is_type(p, "tmpfs"))
		return err_set(e, ERR_UNSUPPORTED, "tmpcopyup of anything but a tmpfs");
	if (is_idmapped(p) && !o->bind)
		return err_set(e, ERR_UNSUPPORTED, "id maps of anything but a bind");
	if (is_idmapped(p) && !p->m->uids.n && !spec_has_ns(s, NS_USER))
		return err_set(
			e, ERR_USAGE, "'idmap' without uidMappings, and without a user namespace");
	return 0;
}

int mounts_plan(const struct spec *s, struct arena *mem, struct mount_plan **v, struct err *e)
{
	bool labels = s->mount_label && lsm_has_selinux();

	*v = arena_alloc(mem, (s->nmounts + 1) * sizeof(**v));
	for (size_t i = 0; i < s->nmounts; i++) {
		struct mount_plan *p = &(*v)[i];
		const struct spec_mount *m = &s->mounts[i];
		const struct kernel_type *t = kernel_type(m->type);

		*p = (struct mount_plan){
			.m = m, .fd = -1, .destination = clean_path(m->destination, mem)};
		if (labels && !(t && t->unlabelled))
			p->label = s->mount_label;
		if (mount_options_parse(&p->o, &m->options, mem, e) < 0)
			return err_ctx(e, "mount %s", m->destination);
		p->o.bind |= m->type && str_eq(m->type, "bind");
		if (check_plan(s, p, e) < 0)
			return err_ctx(e, "mount %s", m->destination);
		split_data(&p->o, mem);
		if (is_type(p, "tmpfs") && !p->o.remount) {
			p->sealed = (p->o.set | p->o.set_all) & MOUNT_ATTR_RDONLY;
			p->o.set &= ~(uint64_t)MOUNT_ATTR_RDONLY;
			p->o.set_all &= ~(uint64_t)MOUNT_ATTR_RDONLY;
		}
	}
	return 0;
}

/* ---- sources of binds ---- */

/* Trusted: the source is named by the user, or lies in the bundle. */
static int open_source(int bundle, const struct mount_plan *m, struct err *e)
{
	if (!m->o.src_nofollow)
		return fs_bind(bundle, m->m->source, m->o.bind_all, e);
	auto_fd int fd = sys_openat(bundle, m->m->source, O_PATH | O_NOFOLLOW, 0);
	return fd < 0 ? err_sys(e, "%s", m->m->source) : fs_bind(fd, "", m->o.bind_all, e);
}

/* The user namespace whose maps the mount gets. *own: that of the container's maps, kept for the
 * next one. */
static int apply_idmap(const struct spec *s, const struct mount_plan *m, int *own, struct err *e)
{
	const char *path = s->namespaces[NS_USER].path;

	if (m->m->uids.n) {
		auto_fd int ns = idmap_namespace(&m->m->uids, &m->m->gids, e);
		return ns < 0 ? -1 : fs_idmap(m->fd, m->o.idmap_all, ns, e);
	}
	if (*own < 0)
		*own = path ? sys_open(path, O_RDONLY, 0) : idmap_namespace(&s->uids, &s->gids, e);
	if (*own < 0)
		return path ? err_sys(e, "user namespace %s", path) : -1;
	return fs_idmap(m->fd, m->o.idmap_all, *own, e);
}

int mounts_open(struct mount_plan *v, const struct spec *s, int bundle, struct err *e)
{
	auto_fd int own = -1;

	for (size_t i = 0; i < s->nmounts; i++) {
		struct mount_plan *m = &v[i];
		struct err why = {0};

		if (!m->o.bind || m->o.remount || m->o.copy_symlink)
			continue;
		if (!spec_has_ns(s, NS_USER) && !is_idmapped(m) && !stays_peer(s, &m->o))
			continue;
		m->fd = open_source(bundle, m, &why);
		if (m->fd < 0 && why.sys == EPERM && !is_idmapped(m))
			continue; /* without root: the child can do it in its own namespace */
		if (m->fd < 0 && e)
			*e = why;
		if (m->fd < 0 || (is_idmapped(m) && apply_idmap(s, m, &own, e) < 0))
			return err_ctx(e, "mount %s", m->m->destination);
	}
	return 0;
}

void mounts_close(struct mount_plan *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sys_close_ref(&v[i].fd);
}

/* ---- where nothing may be mounted ---- */

/* What lxcfs and others put over single files of procfs. */
static const char *const over_proc[] = {"/proc/cpuinfo", "/proc/diskstats", "/proc/meminfo",
	"/proc/stat", "/proc/swaps", "/proc/uptime", "/proc/loadavg", "/proc/slabinfo",
	"/proc/sys/kernel/ns_last_pid", "/proc/sys/crypto/fips_enabled"};

/* Nothing but a procfs is mounted on or inside a procfs, whatever way led there: it could send
 * elsewhere what we or the container believe to read from and write to the kernel (CVE-2019-16884,
 * CVE-2025-52881). mnt -1: a new mount of another kind. */
static int check_procfs(const struct mount_plan *m, int at, int mnt, struct err *e)
{
	if ((!str_eq(m->destination, "/proc") && !procfs_is(at)) || procfs_is(mnt))
		return 0;
	for (size_t i = 0; i < sizeof(over_proc) / sizeof(over_proc[0]); i++)
		if (str_eq(over_proc[i], m->destination))
			return 0;
	return err_set(e, ERR_USAGE, "nothing can be mounted on /proc or inside it");
}

/* ---- making them ---- */

static int set_attrs(
	const struct mounts_place *p, const struct mount_plan *m, int mnt, struct err *e)
{
	const struct mount_options *o = &m->o;
	/* A copy's flags change only where the options say so (in a user namespace the kernel may
	 * have locked those of the host); a new mount has its own already. */
	bool has = !o->bind && !o->tmpcopyup && !o->remount;
	uint64_t set = has ? 0 : o->set, clear = has ? 0 : o->clear;

	/* What the supervisor copied is a peer of the host's mount. */
	if (m->fd >= 0 && !stays_peer(p->spec, o) && fs_attr(mnt, true, 0, 0, MS_SLAVE, e) < 0)
		return -1;
	if (fs_attr(mnt, true, o->set_all, o->clear_all, o->propagation_all, e) == 0 &&
		fs_attr(mnt, false, set, clear, o->propagation, e) == 0)
		return 0;
	if (e && e->sys == EPERM && spec_has_ns(p->spec, NS_USER))
		err_hint(e, "a user namespace cannot clear flags of the host's mounts");
	return -1;
}

/* A mount point, opened. */
static int open_at(struct mounts_place *p, const struct mount_plan *m, enum point_kind kind,
	bool no_links, struct err *e)
{
	if (m->o.dest_nofollow && !no_links) {
		int fd = sys_open_in_root(p->root, m->destination, O_PATH | O_NOFOLLOW, 0);

		if (fd >= 0 || errno != ENOENT)
			return fd < 0 ? err_sys(e, "%s", m->destination) : fd;
	}
	return mount_point(p->root, m->destination, kind, no_links, &p->own, e);
}

/* Option copy-symlink: 1 when the source is a link, and the same one is at the destination now. */
static int copy_symlink(struct mounts_place *p, const struct mount_plan *m, struct err *e)
{
	char want[PATH_MAX], have[PATH_MAX];
	ssize_t n = readlinkat(p->bundle, m->m->source, want, sizeof(want) - 1);
	const char *name;

	if (n < 0)
		return errno == EINVAL ? 0 : err_sys(e, "%s", m->m->source);
	want[n] = '\0';
	auto_fd int at = mount_point_folder(p->root, m->destination, &name, false, &p->own, e);
	if (at < 0)
		return -1;
	if (sys_symlinkat(want, at, name) == 0)
		return 1;
	n = errno == EEXIST ? readlinkat(at, name, have, sizeof(have) - 1) : -1;
	if (n < 0)
		return err_sys(e, "make the link");
	have[n] = '\0';
	return str_eq(want, have) ? 1 : err_set(e, ERR_EXISTS, "there is another link");
}

static int make_bind(struct mounts_place *p, const struct mount_plan *m, struct err *e)
{
	struct stat st;
	int rc = m->o.copy_symlink ? copy_symlink(p, m, e) : 0;

	if (rc)
		return rc < 0 ? -1 : 0;
	auto_fd int mnt =
		m->fd >= 0 ? fcntl(m->fd, F_DUPFD_CLOEXEC, 0) : open_source(p->bundle, m, e);
	if (mnt < 0)
		return -1;
	if (sys_fstat(mnt, &st) < 0)
		return err_sys(e, "%s", m->m->source);
	auto_fd int at = open_at(p, m, S_ISDIR(st.st_mode) ? POINT_DIR : POINT_FILE, false, e);
	if (at < 0 || check_procfs(m, at, mnt, e) < 0 || set_attrs(p, m, mnt, e) < 0)
		return -1;
	return fs_attach(mnt, at, e);
}

static int make_remount(struct mounts_place *p, const struct mount_plan *m, struct err *e)
{
	auto_fd int at = sys_open_in_root(p->root, m->destination, O_PATH, 0);

	if (at < 0)
		return err_sys(e, "remount");
	if (!m->o.bind && m->o.data.n && fs_reconfigure(at, m->o.data.v, m->o.data.n, e) < 0)
		return -1;
	return set_attrs(p, m, at, e);
}

static int make_cgroup(struct mounts_place *p, const struct mount_plan *m, int at, struct err *e)
{
	if (check_procfs(m, at, -1, e) < 0 ||
		cgroup_mount(p->cgroup, at, m->o.set, spec_has_ns(p->spec, NS_CGROUP), e) < 0)
		return -1;
	if (!m->o.propagation && !m->o.propagation_all && !m->o.set_all)
		return 0;
	auto_fd int top = sys_open_in_root(p->root, m->destination, O_PATH, 0);
	return top < 0 ? err_sys(e, "reopen") : set_attrs(p, m, top, e);
}

/* The options that the config leaves to us: the label, and the mode of what a tmpfs covers. */
static int new_mount(const struct mount_plan *m, int at, struct err *e)
{
	const char *source = kernel_type(m->m->type) ? m->m->type : m->m->source;
	size_t n = m->o.data.n;
	auto_free const char **data = mem_array(n + 2, sizeof(*data));
	char mode[32], context[300];
	bool has_mode = false;
	struct stat st;

	for (size_t i = 0; i < n; i++) {
		data[i] = m->o.data.v[i];
		has_mode |= str_starts(data[i], "mode=");
	}
	if (is_type(m, "tmpfs") && !has_mode) {
		if (sys_fstat(at, &st) < 0)
			return err_sys(e, "stat");
		snprintf(mode, sizeof(mode), "mode=%04o", st.st_mode & 07777);
		data[n++] = mode;
	}
	if (m->label && !is_type(m, "mqueue")) {
		snprintf(context, sizeof(context), "context=%s", m->label);
		data[n++] = context;
	}
	return fs_mount(m->m->type, source, data, n, m->o.tmpcopyup ? 0 : m->o.set, e);
}

/* A user namespace without the other namespace, or inside of another container, gets no instance of
 * its own; of the host's it may see only what it can see anyway. */
static int new_or_host(struct mounts_place *p, const struct mount_plan *m, int at, struct err *e)
{
	enum {
		LOCKABLE =
			MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC
	};
	const struct kernel_type *t = kernel_type(m->m->type);
	uint64_t set = (m->o.set & LOCKABLE) | (is_type(m, "sysfs") ? MOUNT_ATTR_RDONLY : 0);
	bool own = is_type(m, "proc") && spec_has_ns(p->spec, NS_PID);
	struct err why = {0};
	int fd = new_mount(m, at, &why);

	if (fd >= 0)
		return fd;
	if (why.sys != EPERM || !t || !t->host || !spec_has_ns(p->spec, NS_USER) || own) {
		if (e)
			*e = why;
		return -1;
	}
	auto_fd int mnt = fs_bind(AT_FDCWD, t->host, true, e);
	return mnt < 0 || fs_attr(mnt, true, set, 0, 0, e) < 0 ? -1 : steal_fd(&mnt);
}

/* mqueue takes no context; its root is labelled as a file. */
static int set_label(const struct mount_plan *m, int mnt, struct err *e)
{
	char path[64];

	if (!m->label || !is_type(m, "mqueue"))
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", mnt);
	return setxattr(path, "security.selinux", m->label, strlen(m->label), 0) < 0
		       ? err_sys(e, "label")
		       : 0;
}

static int make_new(struct mounts_place *p, const struct mount_plan *m, struct err *e)
{
	/* The root's own /dev may not be a link either: nodes are made in it (CVE-2026-41579). */
	bool no_links = kernel_type(m->m->type) || str_eq(m->destination, "/dev");

	auto_fd int at = open_at(p, m, POINT_DIR, no_links, e);
	if (at < 0)
		return -1;
	if (is_type(m, "cgroup") || is_type(m, "cgroup2"))
		return make_cgroup(p, m, at, e);
	auto_fd int mnt = new_or_host(p, m, at, e);
	if (mnt < 0 || check_procfs(m, at, mnt, e) < 0 || set_label(m, mnt, e) < 0 ||
		(m->o.tmpcopyup && copy_up(at, mnt, e) < 0) || set_attrs(p, m, mnt, e) < 0 ||
		fs_attach(mnt, at, e) < 0)
		return -1;
	if (is_type(m, "tmpfs") && own_mounts_add(&p->own, mnt, e) < 0)
		return -1;
	if (m->sealed)
		p->sealed[p->nsealed++] = steal_fd(&mnt);
	if (is_type(m, "proc") && p->proc < 0)
		p->proc = steal_fd(&mnt);
	return 0;
}

int mounts_make(struct mounts_place *p, const struct mount_plan *v, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		int rc = v[i].o.remount ? make_remount(p, &v[i], e)
			 : v[i].o.bind  ? make_bind(p, &v[i], e)
					: make_new(p, &v[i], e);

		if (rc < 0)
			return err_ctx(e, "mount %s", v[i].m->destination);
	}
	return 0;
}

int mounts_seal(struct mounts_place *p, struct err *e)
{
	for (; p->nsealed; p->nsealed--) {
		auto_fd int mnt = p->sealed[p->nsealed - 1];

		if (fs_attr(mnt, false, MOUNT_ATTR_RDONLY, 0, 0, e) < 0)
			return err_ctx(e, "read-only tmpfs");
	}
	return 0;
}
