#include "runtime/passwd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"

enum { FILE_MAX = 1 << 20, NAME_SIZE = 256, FIELDS = 7 };
/* Beyond this some system, or a careless cast, takes ids for negative, and -1 for "no change". */
static const uint64_t id_max = INT32_MAX;

/* A file of the image: a plain one, or nothing. A fifo or a device would hang or harm us. */
static int read_file(int rootfd, const char *path, struct buf *b, struct err *e)
{
	struct stat st;

	auto_fd int fd = sys_open_in_root(rootfd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
		return 0;
	if (fd < 0)
		return err_sys(e, "%s of the image", path);
	if (sys_fstat(fd, &st) < 0)
		return err_sys(e, "%s of the image", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_CORRUPT, "%s of the image is not a file", path);
	if (file_read_fd(fd, path, b, e) < 0)
		return err_ctx(e, "image");
	return 0;
}

/* Cut the next line of *text into fields at its colons. Returns how many, 0 at the end. */
static size_t next_line(char **text, char *f[FIELDS])
{
	size_t n = 0;
	char *line = *text, *end;

	while (line && (*line == '\n' || *line == '#'))
		line = *line == '#' ? strchr(line, '\n') : line + 1;
	if (!line || !*line)
		return 0;
	end = strchr(line, '\n');
	if (end)
		*end = '\0';
	*text = end ? end + 1 : line + strlen(line);
	for (f[n++] = line; n < FIELDS && (line = strchr(line, ':')); f[n++] = line)
		*line++ = '\0';
	return n;
}

static int parse_id(const char *s, uint32_t *id)
{
	uint64_t v;

	if (str_u64(s, id_max, &v) < 0)
		return -1;
	*id = (uint32_t)v;
	return 0;
}

struct lookup {
	const char *user, *group; /* what was asked for; group NULL: not given */
	bool user_is_number, group_is_number;
	uint32_t uid, gid;
	char name[NAME_SIZE]; /* of the user, once known */
};

/* The first entry that fits wins, as for libc. */
static int find_user(struct lookup *l, char *text, struct passwd_ids *ids)
{
	char *f[FIELDS];
	size_t n;

	while ((n = next_line(&text, f))) {
		uint32_t uid, gid;

		if (n < 4 || parse_id(f[2], &uid) < 0 || parse_id(f[3], &gid) < 0)
			continue;
		/* A number is an id, whatever an image calls its users: "1000" must not be one with
		 * uid 0. */
		if (l->user_is_number ? uid != l->uid : !str_eq(f[0], l->user))
			continue;
		ids->uid = uid;
		ids->gid = gid;
		if (str_copy(l->name, sizeof(l->name), f[0]) < 0)
			l->name[0] = '\0';
		if (n > 5 && f[5][0] == '/' && str_copy(ids->home, sizeof(ids->home), f[5]) < 0)
			ids->home[0] = '\0';
		return 1;
	}
	return 0;
}

static bool lists(char *members, const char *name)
{
	char *next;

	for (; members; members = next) {
		next = strchr(members, ',');
		if (next)
			*next++ = '\0';
		if (str_eq(members, name))
			return true;
	}
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

/* Either the one group that was asked for, or those that list the user. */
static int find_groups(const struct lookup *l, char *text, struct passwd_ids *ids, bool *found,
	uint32_t *extra, uint32_t *nextra, struct err *e)
{
	char *f[FIELDS];
	size_t n;

	*nextra = 0;
	while ((n = next_line(&text, f))) {
		uint32_t gid;

		if (n < 3 || parse_id(f[2], &gid) < 0)
			continue;
		if (l->group) {
			if (str_eq(f[0], l->group) && !*found) {
				ids->gid = gid;
				*found = true;
			}
		} else if (n > 3 && l->name[0] && lists(f[3], l->name)) {
			if (*nextra == PASSWD_GROUPS_MAX)
				return err_set(e, ERR_CORRUPT,
					"/etc/group: the user is in more than %d groups",
					PASSWD_GROUPS_MAX);
			extra[(*nextra)++] = gid;
		}
	}
	return 0;
}

static int resolve_groups(const struct lookup *l, int rootfd, struct passwd_ids *ids, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(FILE_MAX);
	uint32_t extra[PASSWD_GROUPS_MAX], nextra = 0;
	bool found = l->group_is_number;

	if (l->group_is_number)
		ids->gid = l->gid;
	if (read_file(rootfd, "/etc/group", &text, e) < 0)
		return -1;
	if (text.len && !l->group_is_number &&
		find_groups(l, text.data, ids, &found, extra, &nextra, e) < 0)
		return -1;
	if (l->group && !found)
		return err_set(
			e, ERR_NOT_FOUND, "group '%s' is not in the image's /etc/group", l->group);
	if (add_group(ids, ids->gid, e) < 0)
		return -1;
	for (uint32_t i = 0; i < nextra; i++)
		if (add_group(ids, extra[i], e) < 0)
			return -1;
	return 0;
}

/* "user[:group]" taken apart. Digits that do not make an id are no name either. */
static int parse(struct lookup *l, char *text, struct err *e)
{
	char *colon = strchr(text, ':');

	if (colon) {
		*colon = '\0';
		l->group = colon + 1;
	}
	l->user = *text ? text : "0";
	l->user_is_number = parse_id(l->user, &l->uid) == 0;
	l->group_is_number = l->group && parse_id(l->group, &l->gid) == 0;
	if (l->group && (!*l->group || strchr(l->group, ':')))
		return err_set(e, ERR_USAGE, "expected USER[:GROUP]");
	if (!l->user_is_number &&
		(l->user[0] == '-' || l->user[0] == '+' ||
			(l->user[0] >= '0' && l->user[0] <= '9' &&
				strspn(l->user, "0123456789") == strlen(l->user))))
		return err_set(
			e, ERR_USAGE, "user id '%.40s': expected 0 to %d", l->user, INT32_MAX);
	if (l->group && !l->group_is_number &&
		(l->group[0] == '-' || strspn(l->group, "0123456789") == strlen(l->group)))
		return err_set(
			e, ERR_USAGE, "group id '%.40s': expected 0 to %d", l->group, INT32_MAX);
	return 0;
}

int passwd_resolve(int rootfd, const char *user, struct passwd_ids *ids, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(FILE_MAX);
	struct lookup l = {.group = NULL};
	char copy[2 * NAME_SIZE], none[1] = "";

	*ids = (struct passwd_ids){.uid = 0};
	if (str_copy(copy, sizeof(copy), user) < 0)
		return err_set(e, ERR_USAGE, "user '%.40s...': too long", user);
	if (parse(&l, copy, e) < 0)
		return err_ctx(e, "user '%s'", user);
	if (read_file(rootfd, "/etc/passwd", &text, e) < 0)
		return -1;
	if (!find_user(&l, text.len ? text.data : none, ids)) {
		if (!l.user_is_number)
			return err_set(e, ERR_NOT_FOUND,
				"user '%s' is not in the image's /etc/passwd", l.user);
		ids->uid = l.uid;
	}
	if (resolve_groups(&l, rootfd, ids, e) < 0)
		return -1;
	if (!ids->home[0])
		ids->home[0] = '/';
	return 0;
}

void passwd_home(int rootfd, uint32_t uid, char home[PASSWD_HOME_MAX])
{
	auto_buf struct buf text = BUF_INIT(FILE_MAX);
	struct passwd_ids ids = {.uid = 0};
	struct lookup l = {.user_is_number = true, .uid = uid};

	if (read_file(rootfd, "/etc/passwd", &text, NULL) < 0 || !text.len ||
		!find_user(&l, text.data, &ids) || !ids.home[0])
		snprintf(ids.home, sizeof(ids.home), "/");
	memcpy(home, ids.home, PASSWD_HOME_MAX);
}
