/* What criu has made of image files, looked at before it runs: see checkpoint.h. All threads are
 * stopped, so that nothing changes meanwhile. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "runtime/ns.h"
#include "svrun/checkpoint.h"

enum { TEXT_MAX = 16 << 20, PROCESSES_MAX = 1 << 20 };

struct pids {
	pid_t *v;
	size_t n, cap;
};

/* A folder or file of the host that the container may see: the root, or a bind's source. */
struct source {
	char *dev, *root;              /* "8:1" and the path in it, as mountinfo has them */
	const struct spec_mount *bind; /* NULL: the root */
};

struct checking {
	const struct spec *s;
	const struct cgroup *cgroup;
	pid_t *members; /* of the cgroup, sorted */
	size_t nmembers;
	struct source *sources;
	size_t nsources;
	ino_t ours[NS_KINDS], theirs[NS_KINDS]; /* the host's; what the config names by path */
	ino_t user;                             /* the container's user namespace */
	ino_t checked;                          /* mount namespace */
};

/* Files of /proc/PID/ns, in the order of enum ns_kind. */
static const char *const ns_files[NS_KINDS] = {
	"mnt", "pid", "net", "ipc", "uts", "cgroup", "user", "time"};

/* ---- what to compare with ---- */

/* A line of mountinfo: ID PARENT MAJOR:MINOR ROOT PLACE OPTIONS... - TYPE SOURCE ... */
struct line {
	uint64_t id;
	char *dev, *root, *place, *options, *type;
};

/* "\040" is a space: the kernel writes spaces, tabs, newlines and backslashes so. */
static void unescape(char *s)
{
	char *to = s;

	for (; *s; s++, to++) {
		unsigned v;

		*to = *s;
		if (*s == '\\' && sscanf(s + 1, "%3o", &v) == 1 && strnlen(s, 4) == 4) {
			*to = (char)v;
			s += 3;
		}
	}
	*to = '\0';
}

static int read_line(char *text, struct line *l, struct err *e)
{
	char *field[6] = {NULL};

	l->type = strstr(text, " - ");
	if (l->type) {
		*l->type = '\0';
		l->type += strlen(" - ");
		l->type[strcspn(l->type, " ")] = '\0';
	}
	for (size_t f = 0; f < 6; f++)
		field[f] = strsep(&text, " ");
	if (!l->type || !field[5] || str_u64(field[0], UINT64_MAX, &l->id) < 0)
		return err_set(e, ERR_CORRUPT, "mountinfo is cut off");
	l->dev = field[2];
	l->root = field[3];
	l->place = field[4];
	l->options = field[5];
	unescape(l->root);
	unescape(l->place);
	return 0;
}

/* What of path is below top: "" for top itself, "/a/b"; NULL when it is not there. */
static const char *below(const char *path, const char *top)
{
	size_t n = str_eq(top, "/") ? 0 : strlen(top);

	if (strncmp(path, top, n) != 0 || (path[n] && path[n] != '/'))
		return NULL;
	return str_eq(path + n, "/") ? "" : path + n;
}

/* The mount that path is on, and where in that it is; st_dev is another device on some file
 * systems. */
static int read_source(struct source *s, const char *dir, const char *path, struct err *e)
{
	auto_buf struct buf info = BUF_INIT(4096);
	auto_buf struct buf mounts = BUF_INIT(TEXT_MAX);
	auto_fd int at = sys_open(dir, O_PATH | O_DIRECTORY, 0);
	auto_fd int fd = at < 0 ? -1 : sys_openat(at, path, O_PATH, 0);
	char name[48], id[32], full[PATH_MAX];
	const char *p;

	if (fd < 0)
		return err_sys(e, "%s", path);
	snprintf(name, sizeof(name), "/proc/self/fdinfo/%d", fd);
	if (file_read(AT_FDCWD, name, &info, e) < 0 ||
		file_read(AT_FDCWD, "/proc/self/mountinfo", &mounts, e) < 0)
		return -1;
	p = strstr(info.data, "mnt_id:\t");
	if (!p || !checkpoint_path_of(fd, full))
		return err_set(e, ERR_SYSTEM, "%s: no mnt_id", name);
	snprintf(id, sizeof(id), "%lu ", strtoul(p + strlen("mnt_id:\t"), NULL, 10));
	for (char *rest = mounts.data, *text; (text = strsep(&rest, "\n")) != NULL;) {
		struct line l;
		const char *in;

		if (!str_starts(text, id))
			continue;
		if (read_line(text, &l, e) < 0)
			return -1;
		in = below(full, l.place);
		s->dev = mem_strdup(l.dev);
		s->root = mem_printf(
			"%s%s", str_eq(l.root, "/") && in && *in ? "" : l.root, in ? in : "");
		return in ? 0 : err_set(e, ERR_SYSTEM, "%s is not below %s", full, l.place);
	}
	return err_set(e, ERR_SYSTEM, "%s is on no mount", path);
}

static int read_sources(struct checking *c, const char *rootfs, const char *bundle, struct err *e)
{
	c->sources = mem_array(c->s->nmounts + 1, sizeof(*c->sources));
	if (read_source(&c->sources[c->nsources++], "/", rootfs, e) < 0)
		return -1;
	for (size_t i = 0; i < c->s->nmounts; i++) {
		const struct spec_mount *m = &c->s->mounts[i];

		if (!checkpoint_is_bind(m))
			continue;
		c->sources[c->nsources].bind = m;
		if (read_source(&c->sources[c->nsources++], bundle, m->source, e) < 0)
			return -1;
	}
	return 0;
}

/* The ids of a new user namespace are the config's. */
static int check_idmaps(pid_t first, const char *file, const struct spec_idmaps *m, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(64 << 10);
	auto_free char *path = mem_printf("/proc/%d/%s", (int)first, file);
	size_t n = 0;

	if (file_read(AT_FDCWD, path, &text, e) < 0)
		return -1;
	for (char *rest = text.data, *line; (line = strsep(&rest, "\n")) != NULL;) {
		unsigned in, out, size;
		size_t i = 0;

		if (sscanf(line, "%u %u %u", &in, &out, &size) != 3)
			continue;
		while (i < m->n &&
			(m->v[i].container != in || m->v[i].host != out || m->v[i].size != size))
			i++;
		if (i == m->n)
			break;
		n++;
	}
	if (n != m->n)
		return err_set(e, ERR_DENIED, "the %s is not the config's", file);
	return 0;
}

static int read_namespaces(struct checking *c, pid_t first, struct err *e)
{
	auto_free char *user = mem_printf("/proc/%d/ns/user", (int)first);
	struct stat in;

	if (stat(user, &in) < 0)
		return err_sys(e, "%s", user);
	c->user = in.st_ino;
	if (spec_new_ns(c->s, NS_USER) &&
		(check_idmaps(first, "uid_map", &c->s->uids, e) < 0 ||
			check_idmaps(first, "gid_map", &c->s->gids, e) < 0))
		return -1;
	for (enum ns_kind k = 0; k < NS_KINDS; k++) {
		const char *path = c->s->namespaces[k].path;
		char own[48];
		struct stat st;

		snprintf(own, sizeof(own), "/proc/self/ns/%s", ns_files[k]);
		if (stat(own, &st) == 0) /* else the kernel has none of that kind */
			c->ours[k] = st.st_ino;
		if (path && stat(path, &st) < 0)
			return err_sys(e, "%s namespace %s", ns_name(k), path);
		if (path)
			c->theirs[k] = st.st_ino;
	}
	return 0;
}

static int by_number(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return x < y ? -1 : x > y;
}

/* ---- its processes ---- */

static int add_children(struct pids *all, const char *task, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(TEXT_MAX);
	auto_free char *path = mem_printf("%s/children", task);

	if (file_read(AT_FDCWD, path, &text, e) < 0)
		return -1;
	for (char *rest = text.data, *word; (word = strsep(&rest, " ")) != NULL;) {
		uint64_t pid;

		if (str_u64(word, INT32_MAX, &pid) < 0)
			continue;
		if (all->n >= PROCESSES_MAX)
			return err_set(e, ERR_CORRUPT, "too many processes");
		mem_grow(&all->v, &all->cap, all->n);
		all->v[all->n++] = (pid_t)pid;
	}
	return 0;
}

static int each_thread(
	pid_t pid, int (*fn)(void *ctx, const char *task, struct err *e), void *ctx, struct err *e)
{
	auto_free char *path = mem_printf("/proc/%d/task", (int)pid);
	DIR *d = opendir(path);
	struct dirent *entry;
	int rc = 0;

	if (!d)
		return err_sys(e, "%s", path);
	while (rc == 0 && (entry = readdir(d))) {
		auto_free char *task = mem_printf("%s/%s", path, entry->d_name);

		if (entry->d_name[0] != '.')
			rc = fn(ctx, task, e);
	}
	closedir(d);
	return rc;
}

static int family_of(void *ctx, const char *task, struct err *e)
{
	return add_children(ctx, task, e);
}

/* ---- one thread ---- */

/* The number behind "NAME:\t" in /proc/PID/status; -1 without. */
static int64_t status_number(const char *text, const char *name, int base)
{
	auto_free char *head = mem_printf("\n%s:\t", name);
	const char *p = strstr(text, head);

	return p ? (int64_t)strtoll(p + strlen(head), NULL, base) : -1;
}

/* How a process may call itself. */
struct ids {
	const char *name; /* in /proc/PID/status */
	uint32_t want;
	const struct spec_user *user; /* whose groups are allowed, too; or NULL */
	const struct spec_idmaps *maps;
	int cap; /* with which it may change */
};

/* What an id of the host is inside. */
static bool id_inside(const struct checking *c, const struct ids *k, uint64_t host, uint64_t *id)
{
	*id = host;
	for (size_t i = 0; i < k->maps->n; i++) {
		const struct spec_idmap *m = &k->maps->v[i];

		*id = host - m->host + m->container;
		if (host >= m->host && host - m->host < m->size)
			return true;
	}
	return !spec_new_ns(c->s, NS_USER);
}

static bool id_allowed(const struct checking *c, const struct ids *k, uint64_t host)
{
	const struct spec_process *p = &c->s->process;
	uint64_t may = p->caps.ambient, id;

	if (!id_inside(c, k, host, &id))
		return false;
	if (id == k->want)
		return true;
	for (size_t i = 0; k->user && i < k->user->ngroups; i++)
		if (k->user->groups[i] == id)
			return true;
	if (p->user.uid == 0)
		may |= p->caps.permitted;
	/* Programs of the root file system may change it, but not to the host's root: what is
	 * such a program, images could say as well. */
	return (may >> k->cap & 1) || (!p->no_new_privs && host != 0);
}

static int check_ids(const struct checking *c, const char *status, struct err *e)
{
	const struct spec_user *u = &c->s->process.user;
	const struct ids kinds[] = {
		{"Uid", u->uid, NULL, &c->s->uids, CAP_SETUID},
		{"Gid", u->gid, NULL, &c->s->gids, CAP_SETGID},
		{"Groups", u->gid, u, &c->s->gids, CAP_SETGID},
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		auto_free char *head = mem_printf("\n%s:\t", kinds[i].name);
		const char *line = strstr(status, head);
		auto_free char *ids = NULL;

		if (!line)
			return err_set(e, ERR_CORRUPT, "a process without %s", kinds[i].name);
		line += strlen(head);
		ids = mem_printf("%.*s", (int)strcspn(line, "\n"), line);
		for (char *rest = ids, *word; (word = strsep(&rest, "\t ")) != NULL;) {
			uint64_t id;

			if (*word && (str_u64(word, UINT32_MAX, &id) < 0 ||
					     !id_allowed(c, &kinds[i], id)))
				return err_set(e, ERR_DENIED,
					"a process has the %s %s, which the config does not grant",
					kinds[i].name, word);
		}
	}
	return 0;
}

static int check_status(const struct checking *c, const char *task, bool nested, struct err *e)
{
	static const char *const sets[] = {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", NULL};
	const struct spec_process *p = &c->s->process;
	uint64_t may = p->caps.bounding | p->caps.permitted | p->caps.effective |
		       p->caps.inheritable | p->caps.ambient;
	auto_buf struct buf text = BUF_INIT(64 << 10);
	auto_free char *path = mem_printf("%s/status", task);

	if (file_read(AT_FDCWD, path, &text, e) < 0)
		return -1;
	if (c->s->has_seccomp && status_number(text.data, "Seccomp", 10) != 2)
		return err_set(e, ERR_DENIED, "a process without the config's seccomp filter");
	if (p->no_new_privs && status_number(text.data, "NoNewPrivs", 10) != 1)
		return err_set(e, ERR_DENIED, "a process without no_new_privs");
	/* Those of a user namespace that it has made inside mean nothing outside of that. */
	for (size_t i = 0; !nested && sets[i]; i++)
		if ((uint64_t)status_number(text.data, sets[i], 16) & ~may)
			return err_set(e, ERR_DENIED,
				"a process has capabilities that the config does not grant");
	return check_ids(c, text.data, e);
}

/* ---- mounts, as a process of ours sees them that has entered the namespace ---- */

/* Roots of the container's processes can be anywhere in it, and would hide what is elsewhere. */
struct view {
	const struct checking *c;
	int self, root;            /* the host's /proc/SELF, and the namespace's root */
	char **places;             /* where each mount of the config is; NULL: nowhere */
	char **masked, **readonly; /* and each of the paths */
};

static char *place_of(const struct view *v, const char *path)
{
	auto_fd int fd = sys_open_in_root(v->root, path, O_PATH, 0);
	char name[32], at[PATH_MAX];
	ssize_t n;

	snprintf(name, sizeof(name), "fd/%d", fd);
	n = fd < 0 ? -1 : readlinkat(v->self, name, at, sizeof(at) - 1);
	return n <= 0 ? NULL : mem_printf("%.*s", (int)n, at);
}

static bool any_above(char *const *places, size_t n, const char *path, bool itself)
{
	for (size_t i = 0; i < n; i++) {
		const char *rest = places[i] ? below(path, places[i]) : NULL;

		if (rest && (itself ? !*rest : *rest))
			return true;
	}
	return false;
}

/* Is it what one sees there, not covered by another mount? */
static bool is_visible(const struct view *v, const struct line *l, mode_t *mode)
{
	auto_fd int fd = sys_open_in_root(v->root, l->place, O_PATH | O_NOFOLLOW, 0);
	struct statx st;

	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID | STATX_TYPE, &st) < 0)
		return false;
	*mode = st.stx_mode;
	return st.stx_mnt_id == l->id;
}

static bool is_readonly(const struct line *l)
{
	return str_eq(l->options, "ro") || str_starts(l->options, "ro,");
}

static bool wants_readonly(const struct checking *c, const struct spec_mount *m)
{
	bool ro = !m && c->s->root_readonly;

	for (size_t i = 0; m && i < m->options.n; i++) {
		const char *o = m->options.v[i];

		if (str_eq(o, "ro") || str_eq(o, "rro"))
			ro = true;
		else if (str_eq(o, "rw"))
			ro = false;
	}
	return ro;
}

/* Does the mount show, at `place`, of what starts at `root`, the part that is there anyway? Parts
 * are mounts of their own below read-only paths. */
static bool is_part(const struct line *l, const char *root, const char *place)
{
	const char *in = below(l->root, root), *at = place ? below(l->place, place) : NULL;

	return in && at && str_eq(in, at);
}

/* Is it the root, or a bind of the config? *ro: some of those that it can be are read-only, and
 * none is not. */
static bool is_source(const struct view *v, const struct line *l, bool *ro)
{
	const struct checking *c = v->c;
	bool found = false;

	for (size_t i = 0; i < c->nsources; i++) {
		const struct source *s = &c->sources[i];
		const char *place = s->bind ? v->places[s->bind - c->s->mounts] : "/";

		if (!str_eq(l->dev, s->dev) || !is_part(l, s->root, place))
			continue;
		*ro = (*ro || !found) && wants_readonly(c, s->bind);
		found = true;
	}
	return found;
}

/* A procfs or sysfs, or a part of one: where the config has it. */
static bool is_configured(const struct view *v, const struct line *l, bool *ro)
{
	for (size_t i = 0; i < v->c->s->nmounts; i++) {
		const struct spec_mount *m = &v->c->s->mounts[i];

		if (!checkpoint_is_bind(m) && m->type && str_eq(m->type, l->type) &&
			is_part(l, "/", v->places[i])) {
			*ro = wants_readonly(v->c, m);
			return true;
		}
	}
	return false;
}

/* Device nodes that every container has, or the config's. */
static bool is_device(const struct spec *s, const char *root)
{
	static const char *const all[] = {
		"/null", "/zero", "/full", "/random", "/urandom", "/tty", NULL};

	for (size_t i = 0; all[i]; i++)
		if (str_eq(all[i], root))
			return true;
	for (size_t i = 0; i < s->ndevices; i++)
		if (str_starts(s->devices[i].path, "/dev/") &&
			str_eq(s->devices[i].path + strlen("/dev"), root))
			return true;
	return false;
}

static int check_kind(const struct view *v, const struct line *l, bool *ro, struct err *e)
{
	static const char *const kernel[] = {
		"tmpfs", "devpts", "mqueue", "devtmpfs", "cgroup", "cgroup2", NULL};
	const struct checking *c = v->c;
	bool files = str_eq(l->type, "proc") || str_eq(l->type, "sysfs");
	size_t i = 0;
	mode_t mode = 0;

	if (files && !is_configured(v, l, ro))
		return err_set(e, ERR_DENIED, "a %s that is not the config's on %.200s", l->type,
			l->place);
	while (!files && kernel[i] && !str_eq(kernel[i], l->type))
		i++;
	if (!files && !kernel[i])
		return err_set(e, ERR_DENIED, "a mount that is not the config's: %s on %.200s",
			l->type, l->place);
	if (str_eq(l->type, "devtmpfs") && !is_device(c->s, l->root))
		return err_set(e, ERR_DENIED, "the host's devices on %.200s", l->place);
	if (str_starts(l->type, "cgroup") && !below(l->root, c->cgroup->place.path))
		return err_set(e, ERR_DENIED, "cgroups of others on %.200s", l->place);
	/* The host's own ones may have device nodes, too. */
	for (i = 0; str_eq(l->type, "tmpfs") && i < c->nsources; i++)
		if (str_eq(l->dev, c->sources[i].dev) &&
			(!is_visible(v, l, &mode) || !S_ISCHR(mode)))
			return err_set(e, ERR_DENIED, "a folder that is not the config's on %.200s",
				l->place);
	return 0;
}

/* What the config wants read-only at this place, is, and what it hides is not shown again. own: of
 * the root or a bind. */
static int check_cover(const struct view *v, const struct line *l, bool own, bool ro, struct err *e)
{
	const struct spec *s = v->c->s;
	bool files = str_eq(l->type, "proc") || str_eq(l->type, "sysfs");
	bool listed = any_above(v->masked, s->masked.n, l->place, true) ||
		      any_above(v->readonly, s->readonly.n, l->place, true);
	mode_t mode;
	bool visible = is_visible(v, l, &mode);

	for (size_t i = 0; i < s->nmounts; i++) {
		const struct spec_mount *m = &s->mounts[i];
		const char *rest = v->places[i] ? below(l->place, v->places[i]) : NULL;
		/* Version 1 has one mount for each hierarchy below it. */
		bool inside = rest && m->type && str_eq(m->type, "cgroup") &&
			      str_starts(l->type, "cgroup");

		if (rest && (!*rest || inside))
			ro = ro || wants_readonly(v->c, m);
	}
	if ((files || own) && visible && any_above(v->readonly, s->readonly.n, l->place, false))
		ro = true;
	if (ro && !is_readonly(l))
		return err_set(e, ERR_DENIED, "%.200s is not read-only", l->place);
	if (files && !own && !visible && !listed)
		return err_set(e, ERR_DENIED, "the %s on %.200s is covered", l->type, l->place);
	if (visible && any_above(v->masked, s->masked.n, l->place, false))
		return err_set(e, ERR_DENIED, "%.200s is below a masked path", l->place);
	return 0;
}

/* Whatever image files say, a folder that is hidden is an empty one, a file the null device. */
static bool is_cover(int fd)
{
	struct statx st;
	struct statfs fs;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_MODE, &st) < 0 ||
		!(st.stx_attributes & STATX_ATTR_MOUNT_ROOT))
		return false;
	if (S_ISCHR(st.stx_mode))
		return st.stx_rdev_major == 1 && st.stx_rdev_minor == 3;
	return S_ISDIR(st.stx_mode) && fstatfs(fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC &&
	       (fs.f_flags & ST_RDONLY);
}

static bool is_readonly_at(int fd)
{
	struct statvfs fs;

	return fstatvfs(fd, &fs) == 0 && (fs.f_flag & ST_RDONLY);
}

static int check_paths(const struct view *v, const struct strings *paths, bool (*good)(int fd),
	const char *what, struct err *e)
{
	for (size_t i = 0; i < paths->n; i++) {
		auto_fd int fd = sys_open_in_root(v->root, paths->v[i], O_PATH, 0);

		if (fd < 0 && errno != ENOENT && errno != ENOTDIR)
			return err_sys(e, "%s", paths->v[i]);
		if (fd >= 0 && !good(fd))
			return err_set(e, ERR_DENIED, "%.200s is not %s", paths->v[i], what);
	}
	return 0;
}

static char **places_of(const struct view *v, const struct strings *paths)
{
	char **places = mem_array(paths->n + 1, sizeof(*places));

	for (size_t i = 0; i < paths->n; i++)
		places[i] = place_of(v, paths->v[i]);
	return places;
}

static int check_view(struct view *v, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(TEXT_MAX);
	const struct spec *s = v->c->s;

	if (file_read(v->self, "mountinfo", &text, e) < 0)
		return -1;
	v->places = mem_array(s->nmounts + 1, sizeof(*v->places));
	for (size_t i = 0; i < s->nmounts; i++)
		v->places[i] = place_of(v, s->mounts[i].destination);
	v->masked = places_of(v, &s->masked);
	v->readonly = places_of(v, &s->readonly);
	for (char *rest = text.data, *one; (one = strsep(&rest, "\n")) != NULL;) {
		struct line l;
		bool ro = false, own;

		if (!*one)
			continue;
		if (read_line(one, &l, e) < 0)
			return -1;
		own = is_source(v, &l, &ro);
		if ((!own && check_kind(v, &l, &ro, e) < 0) || check_cover(v, &l, own, ro, e) < 0)
			return -1;
	}
	if (check_paths(v, &s->masked, is_cover, "masked", e) < 0)
		return -1;
	return check_paths(v, &s->readonly, is_readonly_at, "read-only", e);
}

/* In a child, which goes with what it has allocated. */
static int enter_and_check(const struct checking *c, const char *task, struct err *e)
{
	auto_free char *path = mem_printf("%s/ns/mnt", task);
	auto_fd int self = sys_open("/proc/self", O_PATH | O_DIRECTORY, 0);
	auto_fd int ns = sys_open(path, O_RDONLY, 0);

	if (self < 0 || ns < 0 || setns(ns, CLONE_NEWNS) < 0)
		return err_sys(e, "enter %s", path);
	auto_fd int root = sys_open("/", O_PATH | O_DIRECTORY, 0);
	struct view v = {.c = c, .self = self, .root = root};
	return root < 0 ? err_sys(e, "the root of %s", path) : check_view(&v, e);
}

static int check_mounts(const struct checking *c, const char *task, struct err *e)
{
	struct err what = {0};
	int ends[2], status = -1;
	pid_t pid;

	if (sys_pipe(ends) < 0)
		return err_sys(e, "pipe");
	pid = fork();
	if (pid == 0) {
		int rc = enter_and_check(c, task, &what);

		_exit(rc < 0 && sys_write_all(ends[1], &what, sizeof(what)) < 0 ? 2 : rc < 0);
	}
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return err_sys(e, "fork");
	}
	bool told = sys_read_all(ends[0], &what, sizeof(what)) == 0;
	close(ends[0]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!told && status == 0)
		return 0;
	if (!told)
		return err_set(e, ERR_SYSTEM, "looking at its mounts failed");
	if (e)
		*e = what;
	return -1;
}

static int check_thread(void *ctx, const char *task, struct err *e)
{
	struct checking *c = ctx;
	bool nested = false;

	for (enum ns_kind k = 0; k < NS_KINDS; k++) {
		auto_free char *path = mem_printf("%s/ns/%s", task, ns_files[k]);
		bool fresh = spec_new_ns(c->s, k);
		struct stat st;

		if (!c->ours[k])
			continue;
		if (stat(path, &st) < 0)
			return err_sys(e, "%s", path);
		if (fresh ? st.st_ino == c->ours[k] : c->theirs[k] && st.st_ino != c->theirs[k])
			return err_set(
				e, ERR_DENIED, "a process in another %s namespace", ns_name(k));
		if (k == NS_USER)
			nested = st.st_ino != c->user;
		if (k != NS_MOUNT || st.st_ino == c->checked)
			continue;
		if (check_mounts(c, task, e) < 0)
			return -1;
		c->checked = st.st_ino;
	}
	return check_status(c, task, nested, e);
}

/* ---- all ---- */

/* Has it ended, with all of its threads, and is only not waited for yet? Then it is in no
 * namespace, and in no cgroup's list. */
static int is_zombie(pid_t pid, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(TEXT_MAX);
	auto_free char *path = mem_printf("/proc/%d/status", (int)pid);

	if (file_read(AT_FDCWD, path, &text, e) < 0)
		return -1;
	return strstr(text.data, "\nState:\tZ") && status_number(text.data, "Threads", 10) <= 1;
}

static int check_process(struct checking *c, pid_t pid, struct err *e)
{
	int ended = is_zombie(pid, e);

	if (ended)
		return ended < 0 ? -1 : 0;
	if (!bsearch(&pid, c->members, c->nmembers, sizeof(pid), by_number))
		return err_set(e, ERR_DENIED, "a process outside of the container's cgroup");
	return each_thread(pid, check_thread, c, e);
}

static int check_all(struct checking *c, struct pids *all, struct err *e)
{
	if (c->cgroup->ndirs && cgroup_pids(c->cgroup, &c->members, &c->nmembers, e) < 0)
		return -1;
	if (c->nmembers)
		qsort(c->members, c->nmembers, sizeof(*c->members), by_number);
	/* Grows while it is walked through. */
	for (size_t i = 0; i < all->n; i++)
		if (each_thread(all->v[i], family_of, all, e) < 0 ||
			check_process(c, all->v[i], e) < 0)
			return -1;
	return 0;
}

int restored_check(const struct spec *s, const char *rootfs, const char *bundle,
	const struct cgroup *cgroup, pid_t first, struct err *e)
{
	struct checking c = {.s = s, .cgroup = cgroup};
	struct pids all = {.n = 0};
	int rc = 0;

	mem_grow(&all.v, &all.cap, all.n);
	all.v[all.n++] = first;
	if (read_sources(&c, rootfs, bundle, e) < 0 || read_namespaces(&c, first, e) < 0 ||
		check_all(&c, &all, e) < 0)
		rc = err_ctx(e, "the images are refused");
	for (size_t i = 0; rc < 0 && i < all.n; i++)
		kill(all.v[i], SIGKILL); /* stopped, so the pids are theirs */
	free(all.v);
	free(c.members);
	for (size_t i = 0; i < c.nsources; i++) {
		free(c.sources[i].dev);
		free(c.sources[i].root);
	}
	free(c.sources);
	return rc;
}
