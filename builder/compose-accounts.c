/* The manifest's users and groups in /etc/passwd and its kin. Source: passwd(5), group(5),
 * shadow(5), gshadow(5). */
#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "builder/compose-private.h"
#include "builder/control.h"
#include "builder/rootfs.h"

enum { FILE_MAX = 4 << 20, DAY = 86400, FIELDS = 9 };

/* One of the files: its lines, and whether the image has it. */
struct account_file {
	const char *path;
	bool there;
	struct owner owner;
	struct buf text;
};

struct accounts {
	const struct rootfs *r;
	struct account_file passwd, group, shadow, gshadow;
};

static int load(struct accounts *a, struct account_file *f, const char *path, uint32_t mode,
	const char *fresh, struct err *e)
{
	const struct node *n = tree_resolve(a->r->tree, path);
	int rc;

	*f = (struct account_file){
		.path = path, .owner = {.mode = mode}, .text = BUF_INIT(FILE_MAX)};
	rc = rootfs_read(a->r, path, &f->text, e);
	f->there = rc > 0;
	if (n && f->there)
		f->owner = (struct owner){.mode = n->a.mode, .uid = n->a.uid, .gid = n->a.gid};
	if (f->text.len && f->text.data[f->text.len - 1] != '\n')
		buf_printf(&f->text, "\n");
	if (rc == 0 && fresh) {
		buf_printf(&f->text, "%s", fresh);
		f->there = true;
	}
	return rc < 0 ? -1 : 0;
}

static int save(struct accounts *a, struct account_file *f, struct err *e)
{
	return f->there ? rootfs_file(a->r, f->path, f->text.data, f->text.len, f->owner, e) : 0;
}

/* ---- lines ---- */

/* Field i of a line. */
static struct slice field(struct slice line, unsigned i)
{
	struct slice s = line;

	for (; i > 0; i--) {
		const char *colon = s.n ? memchr(s.p, ':', s.n) : NULL;

		if (!colon)
			return (struct slice){.p = "", .n = 0};
		s.n -= (size_t)(colon + 1 - s.p);
		s.p = colon + 1;
	}
	const char *end = s.n ? memchr(s.p, ':', s.n) : NULL;

	if (end)
		s.n = (size_t)(end - s.p);
	return s;
}

/* The line whose field i is text; n is 0 when there is none. */
static struct slice line_with(const struct account_file *f, unsigned i, const char *text)
{
	struct slice rest = {.p = f->text.data, .n = f->text.len}, line;

	while (slice_line(&rest, &line))
		if (slice_eq(field(line, i), text))
			return line;
	return (struct slice){0};
}

/* Is it there with that number? 1; 0: neither the name nor the number is; USAGE: one of them. */
static int check(const struct account_file *f, const char *kind, const char *name, uint32_t id,
	struct err *e)
{
	char number[16];
	struct slice by_name, by_id;

	snprintf(number, sizeof(number), "%" PRIu32, id);
	by_name = line_with(f, 0, name);
	by_id = line_with(f, 2, number);
	if (by_name.n && slice_eq(field(by_name, 2), number))
		return 1;
	if (by_name.n)
		return err_set(e, ERR_USAGE, "%s %s is %.*s in /%s, the manifest says %" PRIu32,
			kind, name, (int)field(by_name, 2).n, field(by_name, 2).p, f->path, id);
	if (by_id.n)
		return err_set(e, ERR_USAGE, "%s %" PRIu32 " is %.*s in /%s, the manifest says %s",
			kind, id, (int)field(by_id, 0).n, field(by_id, 0).p, f->path, name);
	return 0;
}

/* Add a name to the last field (members, separated by commas) of the line that begins with group.
 */
static void add_member(struct account_file *f, const char *group, const char *name)
{
	struct slice line = line_with(f, 0, group), members, piece, rest;
	size_t at;
	auto_free char *tail = NULL;

	if (!f->there || !line.n)
		return;
	members = rest = field(line, 3);
	while (slice_piece(&rest, ',', &piece))
		if (slice_eq(piece, name))
			return;
	at = (size_t)(members.p - f->text.data) + members.n;
	tail = mem_printf("%s", f->text.data + at);
	f->text.len = at;
	buf_printf(&f->text, "%s%s%s", members.n ? "," : "", name, tail);
}

/* ---- entries ---- */

static int add_group(struct accounts *a, const struct manifest_group *g, struct err *e)
{
	int rc = check(&a->group, "group", g->name, g->gid, e);

	if (rc != 0)
		return rc < 0 ? -1 : 0;
	buf_printf(&a->group.text, "%s:x:%" PRIu32 ":\n", g->name, g->gid);
	if (a->gshadow.there)
		buf_printf(&a->gshadow.text, "%s:!::\n", g->name);
	return 0;
}

static int make_home(
	struct accounts *a, const struct manifest_user *u, const char *home, struct err *e)
{
	if (home[0] != '/' || !home[1] || rootfs_has(a->r, home + 1))
		return 0;
	return rootfs_dir(
		a->r, home + 1, (struct owner){.mode = 0755, .uid = u->uid, .gid = u->gid}, e);
}

static int add_user(struct accounts *a, const struct manifest_user *u, struct err *e)
{
	auto_free char *home = u->home ? mem_strdup(u->home) : mem_printf("/home/%s", u->name);
	int64_t day = a->r->epoch < DAY ? 1 : a->r->epoch / DAY; /* 0: must be changed at once */
	int rc = check(&a->passwd, "user", u->name, u->uid, e);

	if (rc < 0)
		return -1;
	if (rc == 0) {
		buf_printf(&a->passwd.text, "%s:%s:%" PRIu32 ":%" PRIu32 "::%s:%s\n", u->name,
			a->shadow.there ? "x" : "*", u->uid, u->gid, home,
			u->shell ? u->shell : "/bin/sh");
		if (a->shadow.there)
			buf_printf(&a->shadow.text, "%s:!:%" PRIi64 "::::::\n", u->name, day);
	}
	for (size_t i = 0; i < u->groups.n; i++) {
		if (!line_with(&a->group, 0, u->groups.v[i]).n) {
			err_set(e, ERR_USAGE, "there is no group %s in /etc/group", u->groups.v[i]);
			return err_hint(e, "add it to \"groups\"");
		}
		add_member(&a->group, u->groups.v[i], u->name);
		if (a->gshadow.there)
			add_member(&a->gshadow, u->groups.v[i], u->name);
	}
	return make_home(a, u, home, e);
}

static int add_all(struct accounts *a, const struct manifest *m, struct err *e)
{
	if (load(a, &a->passwd, "etc/passwd", 0644, "root:*:0:0:root:/root:/bin/sh\n", e) < 0 ||
		load(a, &a->group, "etc/group", 0644, "root:x:0:\n", e) < 0 ||
		load(a, &a->shadow, "etc/shadow", 0640, NULL, e) < 0 ||
		load(a, &a->gshadow, "etc/gshadow", 0640, NULL, e) < 0)
		return -1;
	for (size_t i = 0; i < m->ngroups; i++)
		if (add_group(a, &m->groups[i], e) < 0)
			return err_ctx(e, "/groups/%zu", i);
	for (size_t i = 0; i < m->nusers; i++)
		if (add_user(a, &m->users[i], e) < 0)
			return err_ctx(e, "/users/%zu", i);
	return save(a, &a->passwd, e) < 0 || save(a, &a->group, e) < 0 ||
			       save(a, &a->shadow, e) < 0 || save(a, &a->gshadow, e) < 0
		       ? -1
		       : 0;
}

int compose_accounts(const struct rootfs *r, const struct manifest *m, struct err *e)
{
	struct accounts a = {.r = r};
	int rc;

	if (!m->nusers && !m->ngroups)
		return 0;
	rc = add_all(&a, m, e);
	buf_fini(&a.passwd.text);
	buf_fini(&a.group.text);
	buf_fini(&a.shadow.text);
	buf_fini(&a.gshadow.text);
	return rc;
}
