/* Deleting images, and keeping those from it that are used. */
#include "images/image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>

#include "base/sys.h"
#include "images/attached.h"
#include "images/bills.h"
#include "images/mount-image.h"
#include "images/mount-keep.h"
#include "images/reach.h"

/* ---- claims ---- */

/* svrun image mount holds no lock; and what somebody stands in stays mounted without one. */
static int is_mounted(struct store *s, const char *hex, struct err *e)
{
	auto_fd int folder = sys_openat(s->fd, "mnt", O_RDONLY | O_DIRECTORY, 0);
	struct stat here, there;

	if (folder < 0 || sys_fstat(folder, &here) < 0)
		return err_sys(e, "open %s/mnt", s->path);
	if (sys_fstatat(folder, hex, &there, AT_SYMLINK_NOFOLLOW) == 0)
		return here.st_dev != there.st_dev || mount_is_kept(folder, hex, e);
	return errno == ENOENT ? mount_is_kept(folder, hex, e)
			       : err_sys(e, "stat %s/mnt/%s", s->path, hex);
}

static int claim_kept(struct store *s, const char *hex, struct err *e)
{
	int mounted = is_mounted(s, hex, e);

	if (mounted <= 0)
		return mounted;
	err_set(e, ERR_EXISTS, "image %.12s is mounted", hex);
	return err_hint(e, "svrun image unmount %.12s", hex);
}

static int open_lock(struct store *s, const char *hex, struct err *e)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "mnt/%s.lock", hex);
	if (sys_mkdirat(s->fd, "mnt", 0700) < 0 && errno != EEXIST)
		return err_sys(e, "create %s/mnt", s->path);
	fd = sys_openat(s->fd, path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
	return fd < 0 ? err_sys(e, "open %s/%s", s->path, path) : fd;
}

static int claim_one(struct store *s, const struct digest *manifest, struct err *e)
{
	char hex[DIGEST_HEX + 1];
	auto_fd int fd = open_lock(s, digest_hex(manifest, hex), e);

	if (fd < 0)
		return -1;
	if (sys_flock(fd, LOCK_EX | LOCK_NB) == 0)
		return claim_kept(s, hex, e) < 0 ? -1 : steal_fd(&fd);
	if (errno != EWOULDBLOCK)
		return err_sys(e, "lock %s/mnt/%s.lock", s->path, hex);
	err_set(e, ERR_EXISTS, "image %.12s is in use by a running instance", hex);
	return err_hint(e, "stop the instance first");
}

int image_in_use(struct store *s, const struct digest *manifest, struct err *e)
{
	char hex[DIGEST_HEX + 1];
	auto_fd int fd = open_lock(s, digest_hex(manifest, hex), e);

	if (fd < 0)
		return -1;
	if (sys_flock(fd, LOCK_EX | LOCK_NB) == 0)
		return is_mounted(s, hex, e);
	if (errno != EWOULDBLOCK)
		return err_sys(e, "lock %s/mnt/%s.lock", s->path, hex);
	/* others have shares, or one has it alone: to delete it, or to unmount it */
	return sys_flock(fd, LOCK_SH | LOCK_NB) == 0;
}

struct claiming {
	struct store *s;
	const struct digest *whole;
};

static int claim_part(void *ctx, struct image *im, struct err *e)
{
	struct claiming *c = ctx;

	if (digest_eq(&im->manifest_digest, c->whole))
		return 0;

	auto_fd int fd = claim_one(c->s, &im->manifest_digest, e);

	return fd < 0 ? -1 : 0;
}

int image_claim(struct store *s, const struct digest *manifest, struct err *e)
{
	struct claiming c = {s, manifest};
	struct err fault = {0};
	auto_fd int fd = claim_one(s, manifest, e);

	if (fd < 0)
		return -1;
	/* The images of an index are run under their own digests. Looking is enough: image_delete()
	 * looks again. What cannot be read cannot be started either. */
	if (reach_images(s, manifest, claim_part, &c, &fault) == 0 || fault.kind != ERR_EXISTS)
		return steal_fd(&fd);
	if (e)
		*e = fault;
	return -1;
}

/* ---- deleting ---- */

struct deleting {
	struct store *s;
	const struct digest *whole;
	struct digest_map *used;
};

static int delete_blob(void *ctx, const struct digest *blob, struct err *e)
{
	struct deleting *d = ctx;

	return digest_map_find(d->used, blob) ? 0 : store_blob_remove(d->s, blob, e);
}

static int delete_documents(struct deleting *d, const struct digest *manifest, struct err *e)
{
	if (digest_map_find(d->used, manifest))
		return 0;
	/* what cannot be read of it is garbage */
	(void)!attached_blobs(d->s, manifest, delete_blob, d, NULL);
	if (attached_remove(d->s, manifest, e) < 0 || bills_remove(d->s, manifest, e) < 0 ||
		mount_image_remove(d->s, manifest, e) < 0 ||
		image_index_remove(d->s, manifest, e) < 0)
		return -1;
	return store_blob_remove(d->s, manifest, e);
}

/* Of an image that was started meanwhile under its own digest, everything stays: garbage
 * collection takes it when it has ended. */
static int delete_image(void *ctx, struct image *im, struct err *e)
{
	struct deleting *d = ctx;
	struct err fault = {0};
	auto_fd int claim = -1;

	if (!digest_eq(&im->manifest_digest, d->whole)) {
		claim = claim_one(d->s, &im->manifest_digest, &fault);
		if (claim < 0 && fault.kind == ERR_EXISTS)
			return 0;
		if (claim < 0) {
			if (e)
				*e = fault;
			return -1;
		}
	}
	for (size_t i = 0; i < im->nlayers; i++)
		if (delete_blob(d, &im->layers[i].digest, e) < 0)
			return -1;
	if (delete_blob(d, &im->config_digest, e) < 0)
		return -1;
	return delete_documents(d, &im->manifest_digest, e);
}

/* Be alone with what has no name: whoever is at work may have counted on a blob, and not named its
 * image yet. 1 and *users, to close; 0 when somebody is at work. */
static int alone(struct store *s, int *users, struct err *e)
{
	*users = sys_openat(s->fd, "pool/users", O_RDWR, 0);
	if (*users < 0 || sys_flock(*users, LOCK_EX | LOCK_NB) == 0)
		return 1;
	return errno == EWOULDBLOCK ? 0 : err_sys(e, "lock %s/pool/users", s->path);
}

int image_delete(struct store *s, const struct digest *manifest, struct err *e)
{
	struct digest_map used = {0};
	struct deleting d = {s, manifest, &used};
	auto_fd int users = -1, lock = -1;
	int rc = alone(s, &users, e);

	if (rc <= 0)
		return rc;
	lock = store_lock(s, e);
	rc = lock < 0 ? -1 : reach_all_blobs(s, &used, e);

	/* with a mark, it has got a name again */
	if (rc == 0 && !digest_map_find(&used, manifest)) {
		struct err fault = {0};

		/* of one whose documents are damaged, only the manifest can go; its other blobs are
		 * not known, and are garbage */
		rc = reach_images(s, manifest, delete_image, &d, &fault);
		if (rc < 0 && fault.kind != ERR_CORRUPT && fault.kind != ERR_NOT_FOUND) {
			if (e)
				*e = fault;
		} else {
			rc = delete_documents(&d, manifest, e);
		}
	}
	digest_map_fini(&used);
	return rc;
}

int image_drop_blobs(struct store *s, const struct digest *v, size_t n, struct err *e)
{
	struct digest_map used = {0};
	auto_fd int users = -1, lock = -1;
	int rc = alone(s, &users, e);

	if (rc <= 0)
		return rc;
	lock = store_lock(s, e);
	rc = lock < 0 ? -1 : reach_all_blobs(s, &used, e);

	for (size_t i = 0; i < n && rc == 0; i++)
		if (!digest_map_find(&used, &v[i]))
			rc = store_blob_remove(s, &v[i], e);
	digest_map_fini(&used);
	return rc;
}
