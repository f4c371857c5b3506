#include "images/mount-image.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/sys.h"
#include "images/erofs.h"
#include "images/image.h"
#include "images/mount.h"

#define MAGIC "svrunimg"
enum {
	TRAILER = 64,
	AT_POOL = 16,
	AT_DIGEST = 32,
	NAME = sizeof("erofs/.img") + DIGEST_HEX,
	PIECE = 64 << 10
};

static const char *image_name(const struct digest *manifest, char out[NAME])
{
	char hex[DIGEST_HEX + 1];

	snprintf(out, NAME, "erofs/%s.img", digest_hex(manifest, hex));
	return out;
}

/* ---- the trailer ---- */

static void make_trailer(uint8_t t[TRAILER], uint64_t length, const uint8_t pool[POOL_IDENTITY],
	const struct digest *d)
{
	memcpy(t, MAGIC, 8);
	for (int i = 0; i < 8; i++)
		t[8 + i] = (uint8_t)(length >> (8 * i));
	memcpy(t + AT_POOL, pool, POOL_IDENTITY);
	memcpy(t + AT_DIGEST, d->b, DIGEST_SIZE);
}

/* The trailer's digest and the length it speaks of: 1; 0 when the file does not end in one that
 * fits, and is of this pool; -1. */
static int read_trailer(struct store *s, int fd, uint64_t *length, struct digest *d, struct err *e)
{
	uint8_t t[TRAILER], want[TRAILER], pool[POOL_IDENTITY];
	struct stat st;
	int rc = pool_identity(s->fd, pool, e);

	if (rc <= 0)
		return rc;
	if (sys_fstat(fd, &st) < 0 || st.st_size < TRAILER ||
		sys_pread_all(fd, t, sizeof(t), st.st_size - TRAILER) < 0)
		return 0;
	*length = (uint64_t)st.st_size - TRAILER;
	memcpy(d->b, t + AT_DIGEST, DIGEST_SIZE);
	make_trailer(want, *length, pool, d);
	return memcmp(t, want, sizeof(t)) == 0;
}

static int hash_file(int fd, uint64_t length, struct digest *d)
{
	auto_free uint8_t *piece = mem_alloc(PIECE);
	struct hash h;

	hash_init(&h, HASH_SHA256);
	for (uint64_t at = 0; at < length;) {
		size_t n = length - at < PIECE ? (size_t)(length - at) : PIECE;

		if (sys_pread_all(fd, piece, n, (off_t)at) < 0)
			return -1;
		hash_add(&h, piece, n);
		at += n;
	}
	*d = hash_digest(&h);
	return 0;
}

int mount_image_ready(struct store *s, const struct digest *manifest, struct err *e)
{
	char name[NAME];
	uint64_t length;
	struct digest d;
	auto_fd int fd = sys_openat(s->fd, image_name(manifest, name), O_RDONLY, 0);

	if (fd < 0 && errno != ENOENT)
		return err_sys(e, "open %s/%s", s->path, name);
	return fd < 0 ? 0 : read_trailer(s, fd, &length, &d, e);
}

int mount_image_check(struct store *s, const struct digest *manifest, struct err *e)
{
	char name[NAME];
	uint64_t length;
	struct digest expected, found;
	int rc;
	auto_fd int fd = sys_openat(s->fd, image_name(manifest, name), O_RDONLY, 0);

	if (fd < 0)
		return err_sys(e, "open %s/%s", s->path, name);
	rc = read_trailer(s, fd, &length, &expected, e);
	if (rc <= 0)
		return rc < 0 ? -1
			      : err_set(e, ERR_CORRUPT,
					"%s/%s is cut off, or no metadata image of this pool",
					s->path, name);
	if (hash_file(fd, length, &found) < 0)
		return err_sys(e, "read %s/%s", s->path, name);
	return digest_check(&expected, &found, e, "%s/%s", s->path, name);
}

int mount_image_remove(struct store *s, const struct digest *manifest, struct err *e)
{
	char name[NAME];

	if (sys_unlinkat(s->fd, image_name(manifest, name), 0) < 0 && errno != ENOENT)
		return err_sys(e, "remove %s/%s", s->path, name);
	return 0;
}

/* ---- making it ---- */

static int write_image(struct store *s, int fd, struct tree *t, uint64_t pool_blocks, struct err *e)
{
	uint8_t trailer[TRAILER], pool[POOL_IDENTITY];
	struct digest d;
	struct stat st;
	int rc;

	if (erofs_write(t, pool_blocks, fd, e) < 0)
		return -1;
	if (sys_fstat(fd, &st) < 0 || hash_file(fd, (uint64_t)st.st_size, &d) < 0)
		return err_sys(e, "read the metadata image");
	rc = pool_identity(s->fd, pool, e);
	if (rc <= 0)
		return rc < 0 ? -1 : err_set(e, ERR_NOT_FOUND, "no pool in %s", s->path);
	make_trailer(trailer, (uint64_t)st.st_size, pool, &d);
	if (sys_write_all(fd, trailer, sizeof(trailer)) < 0) {
		err_sys(e, "write the metadata image");
		return sys_hint_space(e, fd, sizeof(trailer));
	}
	return 0;
}

static int publish_image(
	struct store *s, const struct digest *manifest, struct tree *t, struct err *e)
{
	char tmp[64], name[NAME];
	struct stat pool;
	int rc;

	image_name(manifest, name);
	if (sys_fstatat(s->fd, "pool/data", &pool, 0) < 0)
		return err_sys(e, "%s/pool/data", s->path);
	if (sys_mkdirat(s->fd, "erofs", 0700) < 0 && errno != EEXIST)
		return err_sys(e, "create %s/erofs", s->path);

	auto_fd int dir = sys_openat(s->fd, "erofs", O_RDONLY | O_DIRECTORY, 0);

	if (dir < 0)
		return err_sys(e, "open %s/erofs", s->path);

	auto_fd int fd = file_tmp(dir, tmp, 0600, e);

	if (fd < 0)
		return -1;
	/* publishing leaves a file that is there, so one that was cut off must go before */
	rc = write_image(s, fd, t, (uint64_t)pool.st_size / POOL_BLOCK, e) < 0 ||
			     mount_image_remove(s, manifest, e) < 0 ||
			     file_publish(dir, fd, tmp, name + sizeof("erofs/") - 1, false, e) < 0
		     ? -1
		     : 0;
	if (rc < 0 && tmp[0])
		sys_unlinkat(dir, tmp, 0);
	return rc;
}

static int find_blocks(struct tree *t, struct pool *p, struct err *e)
{
	char path[TREE_PATH_MAX + 1], want[DIGEST_TEXT + 1];

	for (struct node *n = tree_root(t); n; n = tree_next(n))
		for (uint32_t i = 0; i < n->a.nchunks; i++) {
			int rc = pool_find(p, &n->a.chunks[i], e);

			if (rc < 0)
				return -1;
			if (rc == 0)
				return err_set(e, ERR_CORRUPT,
					"'%.200s': the pool lacks its chunk %s", node_path(n, path),
					digest_text(&n->a.chunks[i].digest, want));
		}
	return 0;
}

/* The image's tree, from its index, with the pool's blocks. */
static struct tree *load_tree(struct store *s, struct image *im, struct err *e)
{
	struct pool *p = pool_open(s->fd, false, e);
	struct tree *t;

	if (!p)
		return NULL;
	t = image_tree(im, s, NULL, NULL, e);
	if (t && find_blocks(t, p, e) < 0) {
		tree_free(t);
		t = NULL;
	}
	pool_close(p);
	return t;
}

static int prepare_from_store(struct store *s, const struct digest *manifest, struct err *e)
{
	struct image im;
	struct tree *t;
	int rc;

	if (image_load(&im, s, manifest, e) < 0)
		return -1;
	t = load_tree(s, &im, e);
	image_fini(&im);
	if (!t) {
		auto_free char *source = store_source(s, manifest);
		char hex[DIGEST_HEX + 1];

		if (e && source && e->kind == ERR_CORRUPT)
			err_hint(e, "svrun image fsck --repair");
		else if (e && (e->kind == ERR_CORRUPT || e->kind == ERR_NOT_FOUND))
			err_hint(e, "svrun image verify --repair sha256:%s",
				digest_hex(manifest, hex));
		return -1;
	}
	rc = publish_image(s, manifest, t, e);
	tree_free(t);
	return rc;
}

int mount_prepare(struct store *s, const struct digest *manifest, struct tree *tree, struct err *e)
{
	int rc = mount_image_ready(s, manifest, e);

	if (rc != 0)
		return rc < 0 ? -1 : 0;
	return tree ? publish_image(s, manifest, tree, e) : prepare_from_store(s, manifest, e);
}
