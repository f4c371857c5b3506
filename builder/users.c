#include "builder/users.h"

#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "builder/script.h"

enum {
	FILE_MAX = 1 << 20,
	MADE_MAX = 4 << 20, /* more than the masters and all users can make */
	USERS_MAX = 1024,
	FIRST_SYSTEM = 100, /* adduser.conf: FIRST_SYSTEM_UID and _GID */
	LAST_SYSTEM = 999,
	NOGROUP = 65534,
	DAY = 24 * 60 * 60,
};

struct user {
	const char *name, *gecos, *home, *shell;
	uint32_t uid, gid;
	bool added; /* by a script, not base-passwd's */
};

struct group {
	const char *name;
	uint32_t gid;
	bool added;
};

struct users {
	struct arena arena;
	struct user *users;
	struct group *groups;
	size_t nusers, ngroups;
};

/* ---- the masters ---- */

/* The i-th field between colons, "" when there are fewer. */
static char *field(struct arena *a, struct slice line, unsigned i)
{
	const char *p = line.p, *end = line.p + line.n, *colon;

	for (; i > 0; i--) {
		colon = memchr(p, ':', (size_t)(end - p));
		if (!colon)
			return arena_strdup(a, "");
		p = colon + 1;
	}
	colon = memchr(p, ':', (size_t)(end - p));
	return arena_strndup(a, p, (size_t)((colon ? colon : end) - p));
}

static int number(struct arena *a, struct slice line, unsigned i, uint32_t *v)
{
	uint64_t n;

	if (str_u64(field(a, line, i), UINT32_MAX - 1, &n) < 0)
		return -1;
	*v = (uint32_t)n;
	return 0;
}

/* NAME:*:UID:GID:GECOS:HOME:SHELL */
static int read_user(struct users *u, struct slice line, struct err *e)
{
	struct arena *a = &u->arena;
	struct user x = {.name = field(a, line, 0),
		.gecos = field(a, line, 4),
		.home = field(a, line, 5),
		.shell = field(a, line, 6)};

	if (!*x.name || number(a, line, 2, &x.uid) < 0 || number(a, line, 3, &x.gid) < 0 ||
		u->nusers == USERS_MAX)
		return err_set(e, ERR_CORRUPT, "passwd.master: bad line '%.*s'",
			(int)(line.n < 80 ? line.n : 80), line.p);
	u->users[u->nusers++] = x;
	return 0;
}

/* NAME:*:GID:MEMBERS */
static int read_group(struct users *u, struct slice line, struct err *e)
{
	struct group x = {.name = field(&u->arena, line, 0)};

	if (!*x.name || number(&u->arena, line, 2, &x.gid) < 0 || u->ngroups == USERS_MAX)
		return err_set(e, ERR_CORRUPT, "group.master: bad line '%.*s'",
			(int)(line.n < 80 ? line.n : 80), line.p);
	u->groups[u->ngroups++] = x;
	return 0;
}

static int read_master(const struct rootfs *r, struct users *u, const char *path,
	int (*read_line)(struct users *, struct slice, struct err *), struct err *e)
{
	auto_buf struct buf b = BUF_INIT(FILE_MAX);
	int rc = rootfs_read(r, path, &b, e);
	struct slice text = {.p = b.data, .n = b.len}, line;

	if (rc <= 0)
		return rc;
	while (slice_line(&text, &line))
		if (line.n && read_line(u, line, e) < 0)
			return -1;
	return 1;
}

/* ---- adduser and its kin ---- */

static const struct user *find_user(const struct users *u, const char *name)
{
	for (size_t i = 0; i < u->nusers; i++)
		if (str_eq(u->users[i].name, name))
			return &u->users[i];
	return NULL;
}

static const struct group *find_group(const struct users *u, const char *name)
{
	for (size_t i = 0; i < u->ngroups; i++)
		if (str_eq(u->groups[i].name, name))
			return &u->groups[i];
	return NULL;
}

static uint32_t free_uid(const struct users *u)
{
	for (uint32_t id = FIRST_SYSTEM; id <= LAST_SYSTEM; id++) {
		bool used = false;

		for (size_t i = 0; i < u->nusers; i++)
			used |= u->users[i].uid == id;
		if (!used)
			return id;
	}
	return NOGROUP;
}

static uint32_t free_gid(const struct users *u)
{
	for (uint32_t id = FIRST_SYSTEM; id <= LAST_SYSTEM; id++) {
		bool used = false;

		for (size_t i = 0; i < u->ngroups; i++)
			used |= u->groups[i].gid == id;
		if (!used)
			return id;
	}
	return NOGROUP;
}

/* Names and texts become fields of lines. */
static bool is_field(const char *s)
{
	return !strpbrk(s, ":\n") && strlen(s) < 256;
}

static bool is_name(const char *s)
{
	return *s && *s != '-' && is_field(s) && !strpbrk(s, " \t,/");
}

static void add_group(struct users *u, const char *name, uint32_t gid)
{
	if (!is_name(name) || find_group(u, name) || u->ngroups == USERS_MAX)
		return;
	u->groups[u->ngroups++] =
		(struct group){.name = arena_strdup(&u->arena, name), .gid = gid, .added = true};
}

static void add_user(struct users *u, struct user x)
{
	if (!is_name(x.name) || !is_field(x.gecos) || !is_field(x.home) || !is_field(x.shell) ||
		find_user(u, x.name) || u->nusers == USERS_MAX)
		return;
	x.name = arena_strdup(&u->arena, x.name);
	x.gecos = arena_strdup(&u->arena, x.gecos);
	x.home = arena_strdup(&u->arena, x.home);
	x.shell = arena_strdup(&u->arena, x.shell);
	x.added = true;
	u->users[u->nusers++] = x;
}

/* The options that decide what is made; the others of adduser(8) with a value are skipped with it.
 */
struct request {
	const char *name, *home, *shell, *gecos, *ingroup, *uid, *gid;
	bool system, group;
};

static void read_request(const struct strings *w, size_t i, struct request *q)
{
	const struct {
		const char *option;
		const char **value;
	} table[] = {
		{"--home", &q->home},
		{"--shell", &q->shell},
		{"--gecos", &q->gecos},
		{"--comment", &q->gecos},
		{"--ingroup", &q->ingroup},
		{"--uid", &q->uid},
		{"--gid", &q->gid},
		{"--conf", NULL},
		{"--firstuid", NULL},
		{"--lastuid", NULL},
	};

	for (; i < w->n; i++) {
		const char *s = w->v[i];

		q->system |= str_eq(s, "--system");
		q->group |= str_eq(s, "--group");
		if (s[0] != '-') {
			q->name = q->name ? q->name : s;
			continue;
		}
		for (size_t k = 0; k < sizeof(table) / sizeof(table[0]); k++)
			if (str_eq(s, table[k].option) && i + 1 < w->n) {
				i++;
				if (table[k].value)
					*table[k].value = w->v[i];
				break;
			}
	}
}

static uint32_t id_or(const char *text, uint32_t other)
{
	uint64_t v;

	return text && str_u64(text, UINT32_MAX - 1, &v) == 0 ? (uint32_t)v : other;
}

static void do_addgroup(struct users *u, const struct request *q)
{
	if (q->name)
		add_group(u, q->name, id_or(q->gid, free_gid(u)));
}

static void do_adduser(struct users *u, const struct request *q)
{
	const struct group *g;
	struct user x = {.name = q->name,
		.gecos = q->gecos ? q->gecos : "",
		.home = q->home ? q->home : "/nonexistent",
		.shell = q->shell ? q->shell : "/usr/sbin/nologin",
		.gid = NOGROUP};

	if (!q->name || !q->system || find_user(u, q->name))
		return;
	x.uid = id_or(q->uid, free_uid(u));
	if (q->group) /* a group of the user's name */
		add_group(u, q->name, id_or(q->gid, free_gid(u)));
	else
		x.gid = id_or(q->gid, NOGROUP);
	g = find_group(u, q->group ? q->name : q->ingroup ? q->ingroup : "nogroup");
	if (g && !(q->gid && !q->group))
		x.gid = g->gid;
	add_user(u, x);
}

static void read_script(struct users *u, const struct deb_file *f)
{
	struct script *s = script_new(f->data, f->len);
	struct command c;

	while (script_next(s, &c))
		/* the command itself, or what another one is to run */
		for (size_t i = 0; i < c.words.n && i < 2 && !c.unknown; i++) {
			const char *w = c.words.v[i];
			bool addgroup = str_eq(w, "addgroup");
			struct request q = {0};

			if (!addgroup && !str_eq(w, "adduser"))
				continue;
			read_request(&c.words, i + 1, &q);
			if (addgroup)
				do_addgroup(u, &q);
			else
				do_adduser(u, &q);
			break;
		}
	script_free(s);
}

/* ---- writing ---- */

static int64_t today(const struct rootfs *r)
{
	return r->epoch < DAY ? 1 : r->epoch / DAY; /* 0 would mean: must be changed at once */
}

static int write_users(const struct rootfs *r, const struct users *u, bool shadow, struct err *e)
{
	auto_buf struct buf p = BUF_INIT(MADE_MAX), s = BUF_INIT(MADE_MAX);

	for (size_t i = 0; i < u->nusers; i++) {
		const struct user *x = &u->users[i];

		buf_printf(&p, "%s:%s:%" PRIu32 ":%" PRIu32 ":%s:%s:%s\n", x->name,
			shadow ? "x" : "*", x->uid, x->gid, x->gecos, x->home, x->shell);
		buf_printf(&s, "%s:%s:%" PRIi64 "%s\n", x->name, x->added ? "!" : "*", today(r),
			x->added ? "::::::" : ":0:99999:7:::");
	}
	if (rootfs_file(r, "etc/passwd", p.data, p.len, (struct owner){.mode = 0644}, e) < 0)
		return -1;
	return shadow ? rootfs_file(r, "etc/shadow", s.data, s.len,
				(struct owner){.mode = 0640, .gid = 42}, e)
		      : 0;
}

static int write_groups(const struct rootfs *r, const struct users *u, bool shadow, struct err *e)
{
	auto_buf struct buf p = BUF_INIT(MADE_MAX), s = BUF_INIT(MADE_MAX);

	for (size_t i = 0; i < u->ngroups; i++) {
		const struct group *x = &u->groups[i];

		buf_printf(&p, "%s:%s:%" PRIu32 ":\n", x->name, shadow ? "x" : "*", x->gid);
		buf_printf(&s, "%s:%s::\n", x->name, x->added ? "!" : "*");
	}
	if (rootfs_file(r, "etc/group", p.data, p.len, (struct owner){.mode = 0644}, e) < 0)
		return -1;
	return shadow ? rootfs_file(r, "etc/gshadow", s.data, s.len,
				(struct owner){.mode = 0640, .gid = 42}, e)
		      : 0;
}

static int make(const struct rootfs *r, struct users *u, const struct deb *const *debs, size_t n,
	bool shadow, struct err *e)
{
	int rc = read_master(r, u, "usr/share/base-passwd/passwd.master", read_user, e);

	if (rc > 0)
		rc = read_master(r, u, "usr/share/base-passwd/group.master", read_group, e);
	if (rc <= 0)
		return rc;
	for (size_t i = 0; i < n; i++) {
		const struct deb_file *f = deb_file(debs[i], "postinst");

		if (f)
			read_script(u, f);
	}
	if (write_users(r, u, shadow, e) < 0)
		return -1;
	return write_groups(r, u, shadow, e);
}

int users_make(
	const struct rootfs *r, const struct deb *const *debs, size_t n, bool shadow, struct err *e)
{
	struct users u = {0};
	int rc;

	u.users = arena_alloc(&u.arena, USERS_MAX * sizeof(*u.users));
	u.groups = arena_alloc(&u.arena, USERS_MAX * sizeof(*u.groups));
	rc = make(r, &u, debs, n, shadow, e);
	arena_fini(&u.arena);
	return rc < 0 ? -1 : 0;
}

int users_find(
	const struct rootfs *r, const char *file, const char *name, uint32_t *id, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(MADE_MAX);
	struct slice text, line;
	struct arena a = {0};
	int rc = rootfs_read(r, file, &b, e);

	text = (struct slice){.p = b.data, .n = b.len};
	if (rc > 0)
		rc = 0;
	while (rc == 0 && slice_line(&text, &line))
		if (str_eq(field(&a, line, 0), name) && number(&a, line, 2, id) == 0)
			rc = 1;
	arena_fini(&a);
	return rc;
}
