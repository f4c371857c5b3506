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
	int from, to; /* the folders */
	const char *name;
	struct stat st;
	unsigned depth;
};

static int copy_folder(struct copy *c, int from, int to, unsigned depth, struct err *e);

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

/* After the content: a change of owner takes set-user-id bits and capabilities away. */
static int copy_attributes(int from, int to, const struct stat *st)
{
	const struct timespec times[2] = {st->st_atim, st->st_mtim};

	/* EINVAL: an owner without an id in this user namespace; it becomes ours. */
	if (fchown(to, st->st_uid, st->st_gid) < 0 && errno != EINVAL)
		return -1;
	copy_xattrs(from, to);
	return fchmod(to, st->st_mode & 07777) < 0 ? -1 : futimens(to, times);
}

static int copy_data(int from, int to)
{
	ssize_t n;

	do
		n = sendfile(to, from, NULL, 1 << 20);
	while (n > 0 || (n < 0 && errno == EINTR));
	return (int)n;
}

static int copy_file(const struct entry *f)
{
	struct stat st;

	/* What it was is what it is: opened without waiting for a pipe that took its place. */
	auto_fd int from = sys_openat(f->from, f->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	if (from < 0 || sys_fstat(from, &st) < 0)
		return -1;
	if (!S_ISREG(st.st_mode)) {
		errno = ESTALE;
		return -1;
	}
	auto_fd int to = sys_openat(f->to, f->name, O_CREAT | O_EXCL | O_WRONLY, 0600);
	if (to < 0 || copy_data(from, to) < 0)
		return -1;
	return copy_attributes(from, to, &st);
}

/* What has no content of its own: the owner by name, which only we can change in the new one. */
static int copy_special(const struct entry *f)
{
	bool link = S_ISLNK(f->st.st_mode);
	char target[PATH_MAX];
	ssize_t n = link ? readlinkat(f->from, f->name, target, sizeof(target) - 1) : 0;

	if (n < 0)
		return -1;
	target[n] = '\0';
	if ((link ? sys_symlinkat(target, f->to, f->name)
		  : mknodat(f->to, f->name, f->st.st_mode, f->st.st_rdev)) < 0)
		return -1;
	if (fchownat(f->to, f->name, f->st.st_uid, f->st.st_gid, AT_SYMLINK_NOFOLLOW) < 0 &&
		errno != EINVAL)
		return -1;
	return link ? 0 : fchmodat(f->to, f->name, f->st.st_mode & 07777, 0);
}

static int copy_subfolder(struct copy *c, const struct entry *f, struct err *e)
{
	if (sys_mkdirat(f->to, f->name, 0700) < 0)
		return err_sys(e, "%s", f->name);
	auto_fd int to = sys_openat(f->to, f->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	auto_fd int from = sys_openat(f->from, f->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (to < 0 || from < 0)
		return err_sys(e, "%s", f->name);
	if (f->st.st_dev == c->dev && copy_folder(c, from, to, f->depth + 1, e) < 0)
		return err_ctx(e, "%s", f->name);
	return copy_attributes(from, to, &f->st) < 0 ? err_sys(e, "%s", f->name) : 0;
}

static int copy_entry(struct copy *c, struct entry *f, struct err *e)
{
	int rc = 0;

	if (c->left-- == 0)
		return err_set(e, ERR_USAGE, "tmpcopyup: more than %d files", COPY_UP_FILES_MAX);
	if (sys_fstatat(f->from, f->name, &f->st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, "%s", f->name);
	if (S_ISDIR(f->st.st_mode))
		return copy_subfolder(c, f, e);
	if (S_ISREG(f->st.st_mode))
		rc = copy_file(f);
	else if (!S_ISSOCK(f->st.st_mode))
		rc = copy_special(f);
	return rc < 0 ? err_sys(e, "%s", f->name) : 0;
}

/* from: opened for this. */
static int copy_folder(struct copy *c, int from, int to, unsigned depth, struct err *e)
{
	struct dirent *d;
	int rc = 0, own = fcntl(from, F_DUPFD_CLOEXEC, 0);
	DIR *dir = own < 0 ? NULL : fdopendir(own);

	if (!dir) {
		sys_close_ref(&own);
		return err_sys(e, "read folder");
	}
	if (depth > COPY_UP_DEPTH_MAX)
		rc = err_set(
			e, ERR_USAGE, "tmpcopyup: more than %d folders deep", COPY_UP_DEPTH_MAX);
	while (rc == 0 && (errno = 0, d = readdir(dir))) {
		struct entry f = {.from = from, .to = to, .name = d->d_name, .depth = depth};

		if (!str_eq(d->d_name, ".") && !str_eq(d->d_name, ".."))
			rc = copy_entry(c, &f, e);
	}
	if (rc == 0 && errno)
		rc = err_sys(e, "read folder");
	closedir(dir);
	return rc;
}

int copy_up(int from, int to, struct err *e)
{
	struct copy c = {.left = COPY_UP_FILES_MAX};
	struct stat st, now;

	auto_fd int in = sys_openat(from, ".", O_RDONLY | O_DIRECTORY, 0);
	auto_fd int out = sys_openat(to, ".", O_RDONLY | O_DIRECTORY, 0);
	if (in < 0 || out < 0 || sys_fstat(in, &st) < 0 || sys_fstat(out, &now) < 0)
		return err_sys(e, "tmpcopyup");
	/* The owner of the folder itself, unless an option has chosen one. */
	if (!now.st_uid && !now.st_gid && fchown(out, st.st_uid, st.st_gid) < 0 && errno != EINVAL)
		return err_sys(e, "tmpcopyup: owner");
	c.dev = st.st_dev;
	return copy_folder(&c, in, out, 0, e);
}
