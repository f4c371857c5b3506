#include "runtime/passwd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"

enum { FILE_MAX = 1 << 20, USER_MAX = 512, FIELDS = 6 };
/* Beyond this some system, or a careless cast, takes ids for negative, and -1 for "no change". */
static const uint64_t id_max = INT32_MAX;

/* A file of the image: a plain one, or nothing. A fifo or a device would hang or harm us. */
static int read_file(int rootfd, const char *path, struct buf *b, struct err *e)
{
	struct stat st;

	auto_fd int fd = sys_open_in_root(rootfd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
		return buf_reserve(b, 0, e);
	if (fd < 0 || sys_fstat(fd, &st) < 0)
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
	char *line;

	do
		line = strsep(text, "\n");
	while (line && (!*line || *line == '#'));
	while (line && n < FIELDS)
		f[n++] = strsep(&line, ":");
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
	w->is_number = parse_id(name, &w->id) == 0;
	if (w->is_number || (*name != '-' && *name != '+' && name[strspn(name, "0123456789")]))
		return 0;
	return err_set(e, ERR_USAGE, "%s id '%.40s': expected 0 to %d", what, name, INT32_MAX);
}

/* The first entry that fits wins, as for libc. Returns its name, in text; NULL: there is none. */
static const char *find_user(const struct wanted *w, char *text, struct passwd_ids *ids)
{
	char *f[FIELDS];
	size_t n;

	*ids = (struct passwd_ids){.home = "/"};
	while ((n = next_line(&text, f))) {
		if (n < 4 || parse_id(f[2], &ids->uid) < 0 || parse_id(f[3], &ids->gid) < 0)
			continue;
		/* A number is an id, whatever an image calls its users: "1000" must not be one with
		 * uid 0. */
		if (w->is_number ? ids->uid != w->id : !str_eq(f[0], w->name))
			continue;
		if (n > 5 && f[5][0] == '/' && strlen(f[5]) < sizeof(ids->home))
			snprintf(ids->home, sizeof(ids->home), "%s", f[5]);
		return f[0];
	}
	ids->uid = w->id;
	ids->gid = 0;
	return NULL;
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
static int find_groups(
	const struct wanted *w, char *text, const char *user, struct passwd_ids *ids, struct err *e)
{
	bool found = !w->name || w->is_number;
	char *f[FIELDS];
	uint32_t gid;
	size_t n;

	if (w->is_number)
		ids->gid = w->id;
	if (found && add_group(ids, ids->gid, e) < 0)
		return -1;
	while (!w->is_number && (n = next_line(&text, f))) {
		if (n < 3 || parse_id(f[2], &gid) < 0)
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
	auto_buf struct buf users = BUF_INIT(FILE_MAX), groups = BUF_INIT(FILE_MAX);
	struct wanted u = {.name = NULL}, g = {.name = NULL};
	char copy[USER_MAX];
	const char *name;

	if (str_copy(copy, sizeof(copy), user) < 0)
		return err_set(e, ERR_USAGE, "user '%.40s...': too long", user);
	if (parse(&u, &g, copy, e) < 0)
		return err_ctx(e, "user '%s'", user);
	if (read_file(rootfd, "/etc/passwd", &users, e) < 0 ||
		read_file(rootfd, "/etc/group", &groups, e) < 0)
		return -1;
	name = find_user(&u, users.data, ids);
	if (!name && !u.is_number)
		return err_set(
			e, ERR_NOT_FOUND, "user '%s' is not in the image's /etc/passwd", u.name);
	return find_groups(&g, groups.data, name, ids, e);
}

void passwd_home(int rootfd, uint32_t uid, char home[PASSWD_HOME_MAX])
{
	auto_buf struct buf text = BUF_INIT(FILE_MAX);
	struct passwd_ids ids = {.home = "/"};

	if (read_file(rootfd, "/etc/passwd", &text, NULL) == 0)
		find_user(&(struct wanted){NULL, true, uid}, text.data, &ids);
	memcpy(home, ids.home, PASSWD_HOME_MAX);
}
