#include "runtime/copy-up.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"

struct copy {
	size_t left; /* files that may still come */
	dev_t dev;   /* the file system that is copied */
};

/* One entry of a folder. */
struct entry {
	int from, to; /* the folders; `to` is ours alone */
	const char *name;
	struct stat st;
	unsigned depth;
};

/* Those that the new file system does not take are of no use in it. */
static void copy_xattrs(int from, int to)
{
	enum { NAMES_MAX = 16384, VALUE_MAX = 65536 };
	auto_free char *names = mem_alloc(NAMES_MAX), *value = mem_alloc(VALUE_MAX);
	ssize_t n = flistxattr(from, names, NAMES_MAX);

	for (const char *p = names; n > 0 && p < names + n; p += strlen(p) + 1) {
		ssize_t size = fgetxattr(from, p, value, VALUE_MAX);

		/* The label comes with the mount. */
		if (size >= 0 && !str_eq(p, "security.selinux") &&
			fsetxattr(to, p, value, (size_t)size, 0) < 0)
			continue;
	}
}

/* After the content: a change of owner takes set-user-id bits and capabilities away. from, to: it,
 * opened, or -1. */
static int copy_attributes(const struct entry *f, int from, int to)
{
	const struct timespec times[2] = {f->st.st_atim, f->st.st_mtim};

	/* EINVAL: an owner without an id in this user namespace; it becomes ours. */
	if (fchownat(f->to, f->name, f->st.st_uid, f->st.st_gid, AT_SYMLINK_NOFOLLOW) < 0 &&
		errno != EINVAL)
		return -1;
	if (from >= 0)
		copy_xattrs(from, to);
	if (!S_ISLNK(f->st.st_mode) && fchmodat(f->to, f->name, f->st.st_mode & 07777, 0) < 0)
		return -1;
	return utimensat(f->to, f->name, times, AT_SYMLINK_NOFOLLOW);
}

static int copy_file(struct entry *f)
{
	/* What it was is what it is: opened without waiting for a pipe that took its place. */
	auto_fd int from = sys_openat(f->from, f->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	ssize_t n;

	if (from < 0 || sys_fstat(from, &f->st) < 0)
		return -1;
	if (!S_ISREG(f->st.st_mode)) {
		errno = ESTALE;
		return -1;
	}
	auto_fd int to = sys_openat(f->to, f->name, O_CREAT | O_EXCL | O_WRONLY, 0600);
	if (to < 0)
		return -1;
	do
		n = sendfile(to, from, NULL, 1 << 20);
	while (n > 0 || (n < 0 && errno == EINTR));
	return n < 0 ? -1 : copy_attributes(f, from, to);
}

/* What has no content of its own. */
static int copy_special(const struct entry *f)
{
	char target[PATH_MAX];
	ssize_t n = 0;

	if (S_ISLNK(f->st.st_mode))
		n = readlinkat(f->from, f->name, target, sizeof(target) - 1);
	if (n < 0)
		return -1;
	target[n] = '\0';
	if ((S_ISLNK(f->st.st_mode) ? sys_symlinkat(target, f->to, f->name)
				    : mknodat(f->to, f->name, f->st.st_mode, f->st.st_rdev)) < 0)
		return -1;
	return copy_attributes(f, -1, -1);
}

static int copy_folder(struct copy *c, const struct entry *f, struct err *e);

static int copy_entry(struct copy *c, struct entry *f, struct err *e)
{
	int rc = 0;

	if (c->left-- == 0)
		return err_set(e, ERR_USAGE, "tmpcopyup: more than %d files", COPY_UP_FILES_MAX);
	if (sys_fstatat(f->from, f->name, &f->st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, "%s", f->name);
	if (S_ISDIR(f->st.st_mode) && sys_mkdirat(f->to, f->name, 0700) == 0)
		return copy_folder(c, f, e) < 0 ? err_ctx(e, "%s", f->name) : 0;
	if (S_ISDIR(f->st.st_mode))
		rc = -1;
	else if (S_ISREG(f->st.st_mode))
		rc = copy_file(f);
	else if (!S_ISSOCK(f->st.st_mode))
		rc = copy_special(f);
	return rc < 0 ? err_sys(e, "%s", f->name) : 0;
}

/* What is in it, unless something is mounted on it; then its attributes, but for the first one's.
 */
static int copy_folder(struct copy *c, const struct entry *f, struct err *e)
{
	auto_fd int to = sys_openat(f->to, f->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	auto_fd int from = sys_openat(f->from, f->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	DIR *dir = to < 0 || from < 0 ? NULL : fdopendir(from);
	struct entry in = {.from = from, .to = to, .depth = f->depth + 1};
	struct dirent *d;
	int rc = 0;

	if (!dir)
		return err_sys(e, "open");
	from = -1; /* dir's */
	if (f->depth > COPY_UP_DEPTH_MAX)
		rc = err_set(
			e, ERR_USAGE, "tmpcopyup: more than %d folders deep", COPY_UP_DEPTH_MAX);
	errno = 0;
	while (rc == 0 && f->st.st_dev == c->dev && (errno = 0, d = readdir(dir))) {
		in.name = d->d_name;
		if (!str_eq(d->d_name, ".") && !str_eq(d->d_name, ".."))
			rc = copy_entry(c, &in, e);
	}
	if (rc == 0 && errno)
		rc = err_sys(e, "read folder");
	if (rc == 0 && f->depth && copy_attributes(f, in.from, to) < 0)
		rc = err_sys(e, "attributes");
	closedir(dir);
	return rc;
}

int copy_up(int from, int to, struct err *e)
{
	struct copy c = {.left = COPY_UP_FILES_MAX};
	struct entry top = {.from = from, .to = to, .name = "."};
	struct stat now;

	if (sys_fstat(from, &top.st) < 0 || sys_fstat(to, &now) < 0)
		return err_sys(e, "tmpcopyup");
	/* The owner of the folder itself, unless an option has chosen one. */
	if (!now.st_uid && !now.st_gid && fchownat(to, ".", top.st.st_uid, top.st.st_gid, 0) < 0 &&
		errno != EINVAL)
		return err_sys(e, "tmpcopyup: owner");
	c.dev = top.st.st_dev;
	return copy_folder(&c, &top, e);
}
