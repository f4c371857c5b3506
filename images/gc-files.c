/* Garbage that is files. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>

#include "base/str.h"
#include "base/sys.h"
#include "images/gc-private.h"
#include "images/image.h"
#include "images/mount-image.h"
#include "images/pool.h"
#include "images/layer-list.h"
#include "images/reach.h"

enum {
	TMP_AGE = 3600,          /* seconds that nobody wrote to a temporary file: it is nobody's */
	PARTIAL_AGE = 86400,     /* a download that may go on */
	LOG_AGE = 86400,         /* a log of a build that came to no image: somebody may read it */
	RESULT_AGE = 30 * 86400, /* a result of a build that nothing has used since */
};

/* Remove a file and count it. */
static int take(
	struct gc *g, int dirfd, const char *name, size_t *count, uint64_t *bytes, struct err *e)
{
	struct stat st;

	if (sys_fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_sys(e, "stat %s", name);
	if (!g->dry && sys_remove_tree(dirfd, name) < 0)
		return err_sys(e, "remove %s", name);
	++*count;
	if (st.st_nlink <= 1)
		*bytes += (uint64_t)st.st_blocks * 512;
	return 0;
}

static int take_other(struct gc *g, int dirfd, const char *name, struct err *e)
{
	return take(g, dirfd, name, &g->r->others, &g->r->other_bytes, e);
}

/* ---- by digest ---- */

static int sweep_blob(void *ctx, int dirfd, const char *name, const struct digest *d, struct err *e)
{
	struct gc *g = ctx;

	if (digest_map_find(&g->images, d))
		return 0;
	return take(g, dirfd, name, &g->r->blobs, &g->r->blob_bytes, e);
}

static int sweep_other(
	void *ctx, int dirfd, const char *name, const struct digest *d, struct err *e)
{
	struct gc *g = ctx;

	return digest_map_find(&g->images, d) ? 0 : take_other(g, dirfd, name, e);
}

static int sweep_image(
	void *ctx, int dirfd, const char *name, const struct digest *d, struct err *e)
{
	struct gc *g = ctx;
	auto_fd int claim = -1;

	if (digest_map_find(&g->images, d))
		return 0;
	if (!g->dry) {
		struct err fault = {0};

		claim = image_claim(g->s, d, &fault);
		/* who deletes the image has it claimed, and takes this file, too, if nothing ends
		 * it */
		if (claim < 0 && (fault.kind != ERR_EXISTS || image_in_use(g->s, d, NULL) != 0)) {
			if (e)
				*e = fault;
			return -1;
		}
	}
	return take_other(g, dirfd, name, e);
}

int gc_metadata(struct gc *g, struct err *e)
{
	return reach_files(g->s, "erofs", ".img", sweep_image, g, e);
}

/* ---- by age ---- */

static bool is_old(int dirfd, const char *name, time_t age)
{
	struct stat st;

	return sys_fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
	       st.st_mtime <= time(NULL) - age;
}

/* A process that fetches it holds its lock. */
static bool is_locked(int dirfd, const char *name)
{
	auto_fd int fd = sys_openat(dirfd, name, O_RDONLY | O_NOFOLLOW, 0);

	return fd < 0 || sys_flock(fd, LOCK_EX | LOCK_NB) < 0;
}

/* Files of a folder whose names begin with prefix, and that are older than age. */
static int sweep_old(
	struct gc *g, const char *folder, const char *prefix, time_t age, struct err *e)
{
	struct dirent *x;
	DIR *dir;
	int rc = store_folder(g->s, folder, &dir, e), fd;

	if (rc <= 0)
		return rc;
	rc = 0;
	fd = dirfd(dir);
	while (rc == 0 && (x = readdir(dir)))
		if (str_starts(x->d_name, prefix) && is_old(fd, x->d_name, age) &&
			!is_locked(fd, x->d_name))
			rc = take_other(g, fd, x->d_name, e);
	closedir(dir);
	return rc;
}

/* ---- logs ---- */

/* Does an image have the name of the folder "NAME" or "NAME:ENTRY" of logs? */
static bool is_named(const struct store_name *v, size_t n, const char *folder)
{
	size_t len = strcspn(folder, ":");

	for (size_t i = 0; i < n; i++)
		if (strcspn(v[i].name, ":") == len && memcmp(v[i].name, folder, len) == 0)
			return true;
	return false;
}

/* Has nobody written to the folder, or to a file in it, for a while? */
static bool is_quiet(int dirfd_, const char *name)
{
	time_t before = time(NULL) - LOG_AGE;
	int fd = sys_openat(dirfd_, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	bool quiet = dir != NULL;
	struct dirent *x;
	struct stat st;

	if (!dir)
		sys_close_ref(&fd);
	while (quiet && (x = readdir(dir)))
		quiet = str_eq(x->d_name, "..") ||
			(sys_fstatat(fd, x->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
				st.st_mtime <= before);
	if (dir)
		closedir(dir);
	return quiet;
}

/* Logs of the steps of images that are gone (builder/build.h). */
static int sweep_logs(struct gc *g, struct err *e)
{
	struct store_name *v;
	struct dirent *x;
	DIR *dir;
	size_t n;
	int rc = store_folder(g->s, "logs", &dir, e), fd;

	if (rc <= 0)
		return rc;
	rc = 0;
	fd = dirfd(dir);
	if (store_names(g->s, &v, &n, e) < 0) {
		closedir(dir);
		return -1;
	}
	while (rc == 0 && (x = readdir(dir)))
		if (x->d_name[0] != '.' && !is_named(v, n, x->d_name) && is_quiet(fd, x->d_name))
			rc = take_other(g, fd, x->d_name, e);
	store_names_free(v, n);
	closedir(dir);
	return rc;
}

/* What builds and scans keep to do nothing twice (builder/unpacked.h, layer-cache.h, vuln.h). */
static const char *const results[] = {
	"cache/unpacked", "cache/layers", "cache/step-logs", "cache/indexes", "cache/vuln"};
enum { RESULTS = sizeof(results) / sizeof(results[0]) };

int gc_documents(struct gc *g, struct err *e)
{
	static const char *const folders[] = {".", "blobs/sha256", "indexes", "layers", "erofs",
		"mnt", "pool", "attached", "bills"};

	if (reach_files(g->s, "blobs/sha256", "", sweep_blob, g, e) < 0 ||
		reach_files(g->s, "indexes", "", sweep_other, g, e) < 0 ||
		reach_files(g->s, "attached", "", sweep_other, g, e) < 0 ||
		reach_files(g->s, "bills", "", sweep_other, g, e) < 0 ||
		reach_files(g->s, "models", "", sweep_other, g, e) < 0 ||
		reach_files(g->s, "layers", LAYER_LIST_WHOLE, sweep_other, g, e) < 0 ||
		reach_files(g->s, "layers", LAYER_LIST_TOC, sweep_other, g, e) < 0)
		return -1;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		if (sweep_old(g, folders[i], ".tmp.", TMP_AGE, e) < 0)
			return -1;
	if (sweep_logs(g, e) < 0)
		return -1;
	for (size_t i = 0; i < RESULTS; i++)
		if (sweep_old(g, results[i], ".tmp.", TMP_AGE, e) < 0 ||
			sweep_old(g, results[i], "", RESULT_AGE, e) < 0)
			return -1;
	return sweep_old(g, "cache/partial", "", PARTIAL_AGE, e);
}

/* ---- the builder's cache ---- */

/* Folders that steps keep from build to build: no build is under way. */
static int take_mounts(struct gc *g, struct err *e)
{
	auto_fd int dir = sys_openat(g->s->fd, "cache", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

	if (dir < 0)
		return errno == ENOENT ? 0 : err_sys(e, "open %s/cache", g->s->path);
	return take_other(g, dir, "mounts", e);
}

int gc_cache(struct store *s, bool dry, struct gc_report *r, struct err *e)
{
	static const char *const folders[] = {"cache/sha256", "cache/sha512", "cache/git"};
	const size_t n = sizeof(folders) / sizeof(folders[0]);
	struct gc g = {.s = s, .dry = dry, .r = r};
	auto_fd int users = -1;
	int rc = 0;

	if (!dry) { /* a build under way has looked what is there */
		users = sys_openat(s->fd, "pool/users", O_RDWR, 0);
		if (users >= 0 && sys_flock(users, LOCK_EX) < 0)
			return err_sys(e, "lock %s/pool/users", s->path);
	}
	for (size_t i = 0; rc == 0 && i < n + RESULTS; i++)
		rc = sweep_old(&g, i < n ? folders[i] : results[i - n], "", 0, e);
	return rc < 0 ? -1 : take_mounts(&g, e);
}
