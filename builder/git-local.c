#include "builder/git-local.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"
#include "builder/local.h"

enum { DEPTH_MAX = 64, HEAD_MAX = 1024, WHERE_MAX = 4096 };
static const size_t entries_max = 4 << 20;

/* ---- nothing but folders and files ---- */

struct walk {
	const char *repo; /* for errors */
	size_t n;
};

static int elsewhere(const char *repo, const char *part, const char *why, struct err *e)
{
	char text[STR_SHOWN];

	err_set(e, ERR_DENIED, "%s: %s %s", repo, str_shown(part, text), why);
	return err_hint(e, "git clone --bare --no-local makes one that has all of its data");
}

static int open_inside(int dirfd, const char *name, int flags)
{
	return sys_openat2(
		dirfd, name, flags, 0, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
}

static int walk(struct walk *w, int fd, const char *at, int depth, struct err *e);

static int walk_entry(
	struct walk *w, int dirfd, const char *at, const char *name, int depth, struct err *e)
{
	auto_free char *path = mem_printf("%s/%s", at, name);
	struct stat st;

	if (++w->n > entries_max)
		return err_set(e, ERR_UNSUPPORTED, "%s: more than %zu files", w->repo, entries_max);
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, "%s: %s", w->repo, path);
	if (S_ISREG(st.st_mode))
		return 0;
	if (!S_ISDIR(st.st_mode))
		return elsewhere(w->repo, path, "is neither a file nor a folder", e);

	auto_fd int fd = open_inside(dirfd, name, O_RDONLY | O_DIRECTORY);

	return fd < 0 ? err_sys(e, "%s: %s", w->repo, path) : walk(w, fd, path, depth + 1, e);
}

static int walk(struct walk *w, int fd, const char *at, int depth, struct err *e)
{
	auto_fd int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct dirent *d;
	int rc = 0;
	DIR *all;

	if (depth > DEPTH_MAX)
		return err_set(
			e, ERR_UNSUPPORTED, "%s: folders deeper than %d", w->repo, DEPTH_MAX);
	all = own < 0 ? NULL : fdopendir(own);
	if (!all)
		return err_sys(e, "%s: %s", w->repo, at);
	(void)steal_fd(&own);
	while (rc == 0 && (errno = 0, d = readdir(all)))
		if (!str_eq(d->d_name, ".") && !str_eq(d->d_name, ".."))
			rc = walk_entry(w, fd, at, d->d_name, depth, e);
	if (rc == 0 && errno)
		rc = err_sys(e, "%s: %s", w->repo, at);
	closedir(all);
	return rc;
}

/* ---- a repository ---- */

/* As git looks at it: it would take one beside it ("NAME.git") for one with a HEAD that is none. */
static bool is_head(const char *s)
{
	if (str_starts(s, "ref:"))
		return str_starts(s + 4 + strspn(s + 4, " \t\n\r"), "refs/");
	return strspn(s, "0123456789abcdefABCDEF") >= 40;
}

static int check_head(int fd, const char *repo, struct err *e)
{
	auto_fd int head = open_inside(fd, "HEAD", O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
	char text[HEAD_MAX] = "";
	struct stat st;

	if (head < 0 && errno == ELOOP)
		return elsewhere(repo, "HEAD", "is a link", e);
	if (head < 0 || sys_fstat(head, &st) < 0 || !S_ISREG(st.st_mode) ||
		sys_read(head, text, sizeof(text) - 1) < 0 || !is_head(text))
		return err_set(e, ERR_USAGE, "%s: no git repository: it has no HEAD", repo);
	return 0;
}

static int check_folder(int fd, const char *name, struct walk *w, struct err *e)
{
	auto_fd int sub = open_inside(fd, name, O_RDONLY | O_DIRECTORY);

	if (sub < 0 && (errno == ELOOP || errno == EXDEV))
		return elsewhere(w->repo, name, "is a link", e);
	if (sub < 0 || faccessat(fd, name, X_OK, 0) < 0)
		return err_set(
			e, ERR_USAGE, "%s: no git repository: it has no folder %s", w->repo, name);
	return walk(w, sub, name, 0, e);
}

/* Files that lead git to another folder. */
static int check_leads(int fd, const char *repo, struct err *e)
{
	static const char *const leads[] = {"objects/info/alternates",
		"objects/info/http-alternates", "commondir", "gitdir", ".git"};
	static const char *const files[] = {
		"packed-refs", "shallow", "config", "config.worktree", "info"};
	struct stat st;

	for (size_t i = 0; i < sizeof(leads) / sizeof(leads[0]); i++)
		if (fstatat(fd, leads[i], &st, AT_SYMLINK_NOFOLLOW) == 0)
			return elsewhere(repo, leads[i], "leads to another repository", e);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (fstatat(fd, files[i], &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
			return elsewhere(repo, files[i], "is a link", e);
	return 0;
}

static int check_repo(int fd, const char *repo, struct err *e)
{
	struct walk w = {.repo = repo};

	return check_head(fd, repo, e) < 0 || check_folder(fd, "objects", &w, e) < 0 ||
			       check_folder(fd, "refs", &w, e) < 0 || check_leads(fd, repo, e) < 0
		       ? -1
		       : 0;
}

/* The folder with git's data in fd's: fd's own in a bare repository. */
static int open_git_dir(int fd, const char *repo, struct err *e)
{
	struct stat st;
	int sub;

	if (fstatat(fd, ".git", &st, AT_SYMLINK_NOFOLLOW) < 0)
		sub = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	else if (!S_ISDIR(st.st_mode))
		return elsewhere(repo, ".git", "leads to another folder", e);
	else
		sub = open_inside(fd, ".git", O_RDONLY | O_DIRECTORY);
	return sub < 0 ? err_sys(e, "%s", repo) : sub;
}

char *git_local(const char *dir, const char *path, struct err *e)
{
	char link[64], where[WHERE_MAX];
	auto_free char *repo = mem_printf("%s/%s", dir, path);
	auto_fd int fd = local_open_dir(dir, path, e), git = -1;
	ssize_t n;

	if (fd >= 0)
		git = open_git_dir(fd, repo, e);
	if (git < 0 || check_repo(git, repo, e) < 0)
		return NULL;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", git);
	n = readlink(link, where, sizeof(where) - 1);
	if (n < 0) {
		err_sys(e, "%s", repo);
		return NULL;
	}
	where[n] = '\0';
	return mem_strdup(where);
}
