/* Users and groups by name, or by number. */
#include <string.h>

#include "base/str.h"
#include "runtime/passwd.h"

enum { USER_MAX = 512 };

/* A name, or the number that it is. */
struct wanted {
	const char *name; /* NULL: not given */
	bool is_number;
	uint32_t id;
};

/* Digits, or a sign, that do not make an id are no name either. */
static int parse_wanted(struct wanted *w, const char *what, const char *name, struct err *e)
{
	w->name = name;
	w->is_number = passwd_id(name, &w->id) == 0;
	if (w->is_number || (*name != '-' && *name != '+' && name[strspn(name, "0123456789")]))
		return 0;
	return err_set(e, ERR_USAGE, "%s id '%.40s': expected 0 to %d", what, name, INT32_MAX);
}

static bool lists(char *members, const char *name)
{
	const char *member;

	while ((member = strsep(&members, ",")))
		if (str_eq(member, name))
			return true;
	return false;
}

static int add_group(struct passwd_ids *ids, uint32_t gid, struct err *e)
{
	for (uint32_t i = 0; i < ids->ngroups; i++)
		if (ids->groups[i] == gid)
			return 0;
	if (ids->ngroups == PASSWD_GROUPS_MAX)
		return err_set(e, ERR_CORRUPT, "/etc/group: the user is in more than %d groups",
			PASSWD_GROUPS_MAX);
	ids->groups[ids->ngroups++] = gid;
	return 0;
}

/* Either the one group that was asked for, or the user's own and those that list the user. */
static int find_groups(const struct wanted *w, char *text, const char *user,
	struct passwd_ids *ids, struct err *e)
{
	bool found = !w->name || w->is_number;
	char *f[PASSWD_FIELDS];
	uint32_t gid;
	size_t n;

	if (w->is_number)
		ids->gid = w->id;
	if (found && add_group(ids, ids->gid, e) < 0)
		return -1;
	while (!w->is_number && (n = passwd_line(&text, f))) {
		if (n < 3 || passwd_id(f[2], &gid) < 0)
			continue;
		if (w->name && str_eq(f[0], w->name)) {
			ids->gid = gid;
			return add_group(ids, gid, e);
		}
		if (!w->name && n > 3 && user && lists(f[3], user) && add_group(ids, gid, e) < 0)
			return -1;
	}
	return found ? 0
		     : err_set(e, ERR_NOT_FOUND, "group '%s' is not in the image's /etc/group",
			       w->name);
}

/* "user[:group]" taken apart. */
static int parse(struct wanted *user, struct wanted *group, char *text, struct err *e)
{
	const char *name = strsep(&text, ":");

	if (text && (!*text || strchr(text, ':')))
		return err_set(e, ERR_USAGE, "expected USER[:GROUP]");
	if (parse_wanted(user, "user", *name ? name : "0", e) < 0)
		return -1;
	return text ? parse_wanted(group, "group", text, e) : 0;
}

int passwd_resolve(int rootfd, const char *user, struct passwd_ids *ids, struct err *e)
{
	auto_buf struct buf users = BUF_INIT(PASSWD_FILE_MAX), groups = BUF_INIT(PASSWD_FILE_MAX);
	struct wanted u = {.name = NULL}, g = {.name = NULL};
	struct passwd_user found;
	char copy[USER_MAX];

	if (str_copy(copy, sizeof(copy), user) < 0)
		return err_set(e, ERR_USAGE, "user '%.40s...': too long", user);
	if (parse(&u, &g, copy, e) < 0)
		return err_ctx(e, "user '%s'", user);
	if (passwd_read(rootfd, "/etc/passwd", &users, e) < 0 ||
		passwd_read(rootfd, "/etc/group", &groups, e) < 0)
		return -1;
	/* A number is an id, whatever an image calls its users: "1000" must not be one with uid 0.
	 */
	if (!passwd_find(users.data, u.is_number ? NULL : u.name, u.id, &found) && !u.is_number)
		return err_set(
			e, ERR_NOT_FOUND, "user '%s' is not in the image's /etc/passwd", u.name);
	*ids = (struct passwd_ids){.uid = found.uid, .gid = found.gid};
	snprintf(ids->home, sizeof(ids->home), "%s", found.home);
	return find_groups(&g, groups.data, found.name, ids, e);
}
