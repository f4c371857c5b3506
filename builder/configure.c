#include "builder/configure.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "builder/certs.h"
#include "builder/pam.h"
#include "builder/script.h"
#include "builder/users.h"

enum { STATE_MAX = 16 << 20, SHELLS_MAX = 256 };

/* ---- what scripts of well-known packages make, as a table ---- */

enum action_kind {
	MAKE_DIR,
	MAKE_EMPTY, /* an empty file */
	MAKE_COPY,  /* of the file `from` of the same tree */
	MAKE_LINK,  /* to `from`, a link's target */
};

struct action {
	const char *package;
	enum action_kind kind;
	const char *path, *from;
	uint32_t mode, gid;
};

/* Groups of base-passwd, fixed in Debian and Ubuntu. */
enum { GID_MAIL = 8, GID_UTMP = 43 };

/* Nothing that exists is touched. A copy without its source and a link whose absolute target is
 * missing are left out, so that one table serves several releases. */
static const struct action actions[] = {
	{"base-files", MAKE_COPY, "root/.profile", "usr/share/base-files/dot.profile", 0644, 0},
	{"base-files", MAKE_COPY, "root/.bashrc", "usr/share/base-files/dot.bashrc", 0644, 0},
	{"base-files", MAKE_COPY, "etc/profile", "usr/share/base-files/profile", 0644, 0},
	{"base-files", MAKE_COPY, "etc/motd", "usr/share/base-files/motd", 0644, 0},
	{"base-files", MAKE_COPY, "usr/share/info/dir", "usr/share/base-files/info.dir", 0644, 0},
	{"base-files", MAKE_DIR, "mnt", NULL, 0755, 0},
	{"base-files", MAKE_DIR, "srv", NULL, 0755, 0},
	{"base-files", MAKE_DIR, "opt", NULL, 0755, 0},
	{"base-files", MAKE_DIR, "etc/opt", NULL, 0755, 0},
	{"base-files", MAKE_DIR, "var/opt", NULL, 0755, 0},
	{"base-files", MAKE_DIR, "media", NULL, 0755, 0},
	{"base-files", MAKE_DIR, "var/mail", NULL, 02775, GID_MAIL},
	{"base-files", MAKE_LINK, "var/spool/mail", "../mail", 0, 0},
	{"base-files", MAKE_DIR, "run/lock", NULL, 01777, 0},
	{"base-files", MAKE_LINK, "var/run", "/run", 0, 0},
	{"base-files", MAKE_LINK, "var/lock", "/run/lock", 0, 0},
	{"base-files", MAKE_DIR, "usr/local", NULL, 0755, 0},
	{"base-files", MAKE_DIR, "usr/local/share", NULL, 0755, 0},
	{"base-files", MAKE_DIR, "usr/local/share/man", NULL, 0755, 0},
	{"base-files", MAKE_DIR, "usr/local/bin", NULL, 0755, 0},
	{"base-files", MAKE_DIR, "usr/local/games", NULL, 0755, 0},
	{"base-files", MAKE_DIR, "usr/local/lib", NULL, 0755, 0},
	{"base-files", MAKE_DIR, "usr/local/include", NULL, 0755, 0},
	{"base-files", MAKE_DIR, "usr/local/sbin", NULL, 0755, 0},
	{"base-files", MAKE_DIR, "usr/local/src", NULL, 0755, 0},
	{"base-files", MAKE_DIR, "usr/local/etc", NULL, 0755, 0},
	{"base-files", MAKE_LINK, "usr/local/man", "share/man", 0, 0},
	{"base-files", MAKE_EMPTY, "var/log/wtmp", NULL, 0664, GID_UTMP},
	{"base-files", MAKE_EMPTY, "var/log/btmp", NULL, 0660, GID_UTMP},
	{"base-files", MAKE_EMPTY, "var/log/lastlog", NULL, 0664, GID_UTMP},
	{"libc-bin", MAKE_COPY, "etc/nsswitch.conf", "usr/share/libc-bin/nsswitch.conf", 0644, 0},
	{"login", MAKE_EMPTY, "var/log/faillog", NULL, 0644, 0},
	{"login", MAKE_EMPTY, "etc/subuid", NULL, 0644, 0},
	{"login", MAKE_EMPTY, "etc/subgid", NULL, 0644, 0},
	{"libpam-modules", MAKE_EMPTY, "etc/environment", NULL, 0644, 0},
	{"libpam-modules", MAKE_EMPTY, "etc/security/opasswd", NULL, 0600, 0},
	{"tzdata", MAKE_LINK, "etc/localtime", "/usr/share/zoneinfo/Etc/UTC", 0, 0},
	{"ca-certificates", MAKE_DIR, "usr/local/share/ca-certificates", NULL, 0755, 0},
	{"fontconfig-config", MAKE_DIR, "usr/local/share/fonts", NULL, 0755, 0},
	{"fontconfig-config", MAKE_LINK, "etc/fonts/conf.d/10-hinting-slight.conf",
		"/usr/share/fontconfig/conf.avail/10-hinting-slight.conf", 0, 0},
	{"fontconfig-config", MAKE_LINK, "etc/fonts/conf.d/70-no-bitmaps.conf",
		"/usr/share/fontconfig/conf.avail/70-no-bitmaps.conf", 0, 0},
	{"fontconfig-config", MAKE_LINK, "etc/fonts/conf.d/70-no-bitmaps-except-emoji.conf",
		"/usr/share/fontconfig/conf.avail/70-no-bitmaps-except-emoji.conf", 0, 0},
	{"fontconfig", MAKE_DIR, "var/cache/fontconfig", NULL, 0755, 0},
};

const struct deb *configure_find(const struct deb *const *debs, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(debs[i]->name, name))
			return debs[i];
	return NULL;
}

static int copy_file(const struct rootfs *r, const struct action *a, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(STATE_MAX);
	int rc = rootfs_read(r, a->from, &b, e);

	return rc > 0 ? rootfs_file(r, a->path, b.data ? b.data : "", b.len,
				(struct owner){.mode = a->mode}, e)
		      : rc;
}

static int act(const struct rootfs *r, const struct action *a, struct err *e)
{
	struct owner o = {.mode = a->mode, .gid = a->gid};

	switch (a->kind) {
	case MAKE_DIR:
		return rootfs_dir(r, a->path, o, e);
	case MAKE_LINK:
		if (a->from[0] == '/' && !rootfs_has(r, a->from + 1))
			return 0;
		return rootfs_link(r, a->path, a->from, e);
	case MAKE_EMPTY:
		return rootfs_has(r, a->path) ? 0 : rootfs_file(r, a->path, "", 0, o, e);
	case MAKE_COPY:
		return rootfs_has(r, a->path) ? 0 : copy_file(r, a, e);
	}
	return 0;
}

static int run_table(const struct rootfs *r, const struct deb *const *debs, size_t n, struct err *e)
{
	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
		if (configure_find(debs, n, actions[i].package) && act(r, &actions[i], e) < 0)
			return -1;
	return 0;
}

/* What dpkg itself, or any script, needs before the first package is configured: what preinst of
 * base-passwd makes, and a name that every awk registers later. */
static const struct action seeds[] = {
	{"base-passwd", MAKE_COPY, "etc/passwd", "usr/share/base-passwd/passwd.master", 0644, 0},
	{"base-passwd", MAKE_COPY, "etc/group", "usr/share/base-passwd/group.master", 0644, 0},
	{"mawk", MAKE_LINK, "usr/bin/awk", "mawk", 0, 0},
	{"gawk", MAKE_LINK, "usr/bin/awk", "gawk", 0, 0},
	{"original-awk", MAKE_LINK, "usr/bin/awk", "original-awk", 0, 0},
};

int configure_seed(const struct rootfs *r, const struct deb *const *debs, size_t n, struct err *e)
{
	for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++)
		if (configure_find(debs, n, seeds[i].package) && !rootfs_has(r, seeds[i].path) &&
			act(r, &seeds[i], e) < 0)
			return -1;
	return 0;
}

/* ---- what needs more than a table ---- */

/* The vendor that dpkg and apt see: the one file beside "default". */
static int make_vendor(const struct rootfs *r, struct err *e)
{
	static const char *const vendors[] = {"debian", "ubuntu"};

	for (size_t i = 0; i < 2; i++) {
		auto_free char *path = mem_printf("etc/dpkg/origins/%s", vendors[i]);

		if (rootfs_has(r, path) && !rootfs_has(r, "etc/dpkg/origins/default"))
			return rootfs_link(r, "etc/dpkg/origins/default", vendors[i], e);
	}
	return 0;
}

static bool listed(const struct strings *l, const char *s)
{
	for (size_t i = 0; i < l->n; i++)
		if (str_eq(l->v[i], s))
			return true;
	return false;
}

/* A shell, and its path through the links of merged /usr. */
static void add_shell(const struct rootfs *r, struct arena *a, struct strings *l, struct slice line)
{
	const char *shell = arena_strndup(a, line.p, line.n), *name = strrchr(shell, '/');
	char real[TREE_PATH_MAX + 1];
	const struct node *dir;

	if (shell[0] != '/' || l->n + 2 > SHELLS_MAX)
		return;
	if (!listed(l, shell))
		l->v[l->n++] = shell;
	dir = tree_resolve(r->tree, arena_strndup(a, shell + 1, (size_t)(name - shell)));
	if (!dir)
		return;
	shell = arena_printf(a, "/%s%s", node_path(dir, real), name);
	if (!listed(l, shell))
		l->v[l->n++] = shell;
}

static int read_shells(
	const struct rootfs *r, struct arena *a, struct strings *l, const char *path, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(STATE_MAX);
	int rc = rootfs_read(r, path, &b, e);
	struct slice text = {.p = b.data, .n = b.len}, line;

	while (rc > 0 && slice_piece(&text, '\n', &line))
		if (line.n && line.p[0] != '#')
			add_shell(r, a, l, line);
	return rc < 0 ? -1 : 0;
}

/* /etc/shells and its state. Source: update-shells(8). */
static int make_shells(const struct rootfs *r, struct arena *a, struct err *e)
{
	static const char head[] = "# /etc/shells: valid login shells\n";
	struct strings l = {.v = arena_alloc(a, SHELLS_MAX * sizeof(const char *))};
	struct strings files = rootfs_list(r, "usr/share/debianutils/shells.d", a);
	auto_buf struct buf b = BUF_INIT(STATE_MAX);
	struct owner o = {.mode = 0644};

	if (read_shells(r, a, &l, "usr/share/debianutils/shells", e) < 0)
		return -1;
	for (size_t i = 0; i < files.n; i++) {
		auto_free char *path = mem_printf("usr/share/debianutils/shells.d/%s", files.v[i]);

		if (read_shells(r, a, &l, path, e) < 0)
			return -1;
	}
	buf_printf(&b, "%s", head);
	for (size_t i = 0; i < l.n; i++)
		buf_printf(&b, "%s\n", l.v[i]);
	if (!rootfs_has(r, "etc/shells") && rootfs_file(r, "etc/shells", b.data, b.len, o, e) < 0)
		return -1;
	return rootfs_file(
		r, "var/lib/shells.state", b.data + strlen(head), b.len - strlen(head), o, e);
}

static int make_timezone(const struct rootfs *r, struct err *e)
{
	if (rootfs_has(r, "etc/timezone") || !rootfs_has(r, "etc/localtime"))
		return 0;
	return rootfs_file(r, "etc/timezone", "Etc/UTC\n", 8, (struct owner){.mode = 0644}, e);
}

/* ---- dpkg-statoverride --add USER GROUP MODE PATH ---- */

static int apply_override(
	const struct rootfs *r, const char *const w[4], struct buf *db, struct err *e)
{
	struct node *n = w[3][0] == '/' ? tree_resolve(r->tree, w[3] + 1) : NULL;
	char *end;
	unsigned long mode = strtoul(w[2], &end, 8);
	uint32_t uid, gid;
	int u = users_find(r, "etc/passwd", w[0], &uid, e), g;

	if (u < 0)
		return -1;
	g = users_find(r, "etc/group", w[1], &gid, e);
	if (g < 0)
		return -1;
	if (!n || !u || !g || !*w[2] || *end || mode > 07777 || strpbrk(w[3], "\n"))
		return 0;
	n = n->link ? n->link : n;
	n->a.uid = uid;
	n->a.gid = gid;
	n->a.mode = (uint32_t)mode;
	if (db->len + strlen(w[3]) + 600 < db->max)
		buf_printf(db, "%.200s %.200s %lo %s\n", w[0], w[1], mode, w[3]);
	return 0;
}

static int read_overrides(
	const struct rootfs *r, const struct deb_file *f, struct buf *db, struct err *e)
{
	struct script *s = script_new(f->data, f->len);
	struct command c;
	int rc = 0;

	while (rc == 0 && script_next(s, &c)) {
		const struct strings *w = &c.words;

		if (c.unknown || !str_eq(w->v[0], "dpkg-statoverride"))
			continue;
		for (size_t i = 1; i + 4 < w->n; i++)
			if (str_eq(w->v[i], "--add")) {
				rc = apply_override(r, w->v + i + 1, db, e);
				break;
			}
	}
	script_free(s);
	return rc;
}

static int make_overrides(
	const struct rootfs *r, const struct deb *const *debs, size_t n, struct err *e)
{
	auto_buf struct buf db = BUF_INIT(STATE_MAX);

	for (size_t i = 0; i < n; i++) {
		const struct deb_file *f = deb_file(debs[i], "postinst");

		if (f && read_overrides(r, f, &db, e) < 0)
			return -1;
	}
	return rootfs_file(r, "var/lib/dpkg/statoverride", db.data ? db.data : "", db.len,
		(struct owner){.mode = 0644}, e);
}

/* dash claims /bin/sh against bash by diverting it from everybody else: its script does so where it
 * knows dpkg-divert. */
static int make_diversions(
	const struct rootfs *r, const struct deb *const *debs, size_t n, struct err *e)
{
	static const char text[] = "/usr/share/man/man1/sh.1.gz\n"
				   "/usr/share/man/man1/sh.distrib.1.gz\n"
				   "dash\n"
				   "/bin/sh\n"
				   "/bin/sh.distrib\n"
				   "dash\n";
	const struct deb *dash = configure_find(debs, n, "dash");
	const struct deb_file *f = dash ? deb_file(dash, "postinst") : NULL;
	bool diverts = f && memmem(f->data, f->len, "dpkg-divert --package dash", 26) != NULL;

	return rootfs_file(r, "var/lib/dpkg/diversions", text, diverts ? strlen(text) : 0,
		(struct owner){.mode = 0644}, e);
}

/* ---- the whole ---- */

int configure_builtin(
	const struct rootfs *r, const struct deb *const *debs, size_t n, struct err *e)
{
	struct arena a = {0};
	int rc = run_table(r, debs, n, e);

	if (rc == 0)
		rc = make_vendor(r, e);
	if (rc == 0)
		rc = make_timezone(r, e);
	if (rc == 0)
		rc = users_make(r, debs, n, configure_find(debs, n, "passwd") != NULL, e);
	if (rc == 0 && configure_find(debs, n, "debianutils"))
		rc = make_shells(r, &a, e);
	if (rc == 0 && configure_find(debs, n, "ca-certificates"))
		rc = certs_make(r, e);
	if (rc == 0 && configure_find(debs, n, "libpam-runtime"))
		rc = pam_make(r, e);
	if (rc == 0)
		rc = make_overrides(r, debs, n, e);
	if (rc == 0)
		rc = make_diversions(r, debs, n, e);
	arena_fini(&a);
	return rc;
}
