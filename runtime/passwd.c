#include "runtime/passwd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"

int passwd_read(int rootfd, const char *path, struct buf *b, struct err *e)
{
	struct stat st;

	auto_fd int fd = sys_open_in_root(rootfd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
		return buf_reserve(b, 0, e);
	if (fd < 0 || sys_fstat(fd, &st) < 0)
		return err_sys(e, "%s of the image", path);
	if (!S_ISREG(st.st_mode)) /* a fifo or a device would hang or harm us */
		return err_set(e, ERR_CORRUPT, "%s of the image is not a file", path);
	if (file_read_fd(fd, path, b, e) < 0)
		return err_ctx(e, "image");
	return 0;
}

size_t passwd_line(char **text, char *f[PASSWD_FIELDS])
{
	size_t n = 0;
	char *line;

	do
		line = strsep(text, "\n");
	while (line && (!*line || *line == '#'));
	while (line && n < PASSWD_FIELDS)
		f[n++] = strsep(&line, ":");
	return n;
}

int passwd_id(const char *s, uint32_t *id)
{
	uint64_t v;

	if (str_u64(s, PASSWD_ID_MAX, &v) < 0)
		return -1;
	*id = (uint32_t)v;
	return 0;
}

bool passwd_find(char *text, const char *name, uint32_t uid, struct passwd_user *u)
{
	char *f[PASSWD_FIELDS];
	size_t n;

	while ((n = passwd_line(&text, f))) {
		if (n < 4 || passwd_id(f[2], &u->uid) < 0 || passwd_id(f[3], &u->gid) < 0)
			continue;
		if (name ? !str_eq(f[0], name) : u->uid != uid)
			continue;
		u->name = f[0];
		u->home = n > 5 && f[5][0] == '/' && strlen(f[5]) < PASSWD_HOME_MAX ? f[5] : "/";
		return true;
	}
	*u = (struct passwd_user){.uid = uid, .home = "/"};
	return false;
}

void passwd_home(int rootfd, uint32_t uid, char home[PASSWD_HOME_MAX])
{
	auto_buf struct buf text = BUF_INIT(PASSWD_FILE_MAX);
	struct passwd_user u = {.home = "/"};

	if (passwd_read(rootfd, "/etc/passwd", &text, NULL) == 0)
		passwd_find(text.data, NULL, uid, &u);
	snprintf(home, PASSWD_HOME_MAX, "%s", u.home);
}
