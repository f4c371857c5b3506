#include "images/blob-fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#include "base/sys.h"
#include "images/progress.h"

enum {
	RESUME_MIN = 1 << 20, /* smaller ones are sooner fetched again */
	READ_BLOCK = 256 << 10,
	PATH = 64 + DIGEST_HEX,
};

/* ---- fetching ---- */

static int copy_pieces(struct stream *in, struct blob_writer *w, struct progress *pr, struct err *e)
{
	struct piece *p;
	int rc;

	while ((rc = stream_next(in, &p, e)) > 0) {
		uint32_t n = p->length;

		rc = store_blob_add(w, p->data, n, e);
		stream_release(in, p);
		if (rc < 0)
			return -1;
		progress_add(pr, n);
	}
	return rc;
}

int blob_fetch_rest(struct download *d, const struct digest *blob, uint64_t size,
	struct blob_writer *w, struct progress *p, struct err *e)
{
	size_t n = (size_t)((size - w->size + PIECE_MAX - 1) / PIECE_MAX);
	auto_free struct piece *v = mem_array(n + 1, sizeof(*v));
	struct stream *in;
	int rc;

	for (size_t i = 0; i < n; i++) {
		uint64_t at = w->size + (uint64_t)i * PIECE_MAX, left = size - at;

		v[i] = (struct piece){.blob = blob,
			.blob_size = size,
			.offset = at,
			.length = left < PIECE_MAX ? (uint32_t)left : PIECE_MAX};
	}
	in = stream_open(d, v, n, true);
	rc = copy_pieces(in, w, p, e);
	stream_close(in);
	return rc;
}

/* ---- what an earlier try left ---- */

struct partial {
	struct blob_writer w; /* its fd is the file's; no dirfd, no tmp */
	char path[PATH];
};

static int hash_again(struct partial *p, uint64_t size, struct err *e)
{
	auto_free unsigned char *block = mem_alloc(READ_BLOCK);
	struct stat st;
	ssize_t n;

	if (sys_fstat(p->w.fd, &st) < 0)
		return err_sys(e, "stat %s/%s", p->w.s->path, p->path);
	if ((uint64_t)st.st_size > size && sys_ftruncate(p->w.fd, 0) < 0)
		return err_sys(e, "truncate %s/%s", p->w.s->path, p->path);
	hash_init(&p->w.hash, HASH_SHA256);
	while ((n = sys_read(p->w.fd, block, READ_BLOCK)) > 0) {
		hash_add(&p->w.hash, block, (size_t)n);
		p->w.size += (uint64_t)n;
	}
	return n < 0 ? err_sys(e, "read %s/%s", p->w.s->path, p->path) : 0;
}

static int from_the_start(struct partial *p, struct err *e)
{
	hash_init(&p->w.hash, HASH_SHA256);
	p->w.size = 0;
	if (sys_ftruncate(p->w.fd, 0) < 0 || lseek(p->w.fd, 0, SEEK_SET) < 0)
		return err_sys(e, "truncate %s/%s", p->w.s->path, p->path);
	return 0;
}

/* Whoever had the lock before may have given the file its name. */
static bool still_there(const struct partial *p)
{
	struct stat mine, now;

	return sys_fstat(p->w.fd, &mine) == 0 &&
	       sys_fstatat(p->w.s->fd, p->path, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
	       mine.st_ino == now.st_ino && mine.st_dev == now.st_dev;
}

/* Alone with the file, and what is in it hashed: 1; 0: somebody else has it. */
static int open_partial(
	struct partial *p, struct store *s, const struct digest *blob, uint64_t size, struct err *e)
{
	char hex[DIGEST_HEX + 1];

	*p = (struct partial){.w = {.s = s, .fd = -1, .dirfd = -1}};
	snprintf(p->path, sizeof(p->path), "cache/partial/sha256-%s", digest_hex(blob, hex));
	if (sys_mkdir_p(s->fd, "cache/partial", 0755) < 0)
		return err_sys(e, "create %s/cache/partial", s->path);
	p->w.fd = sys_openat(s->fd, p->path, O_RDWR | O_CREAT | O_NOFOLLOW, 0644);
	if (p->w.fd < 0)
		return err_sys(e, "create %s/%s", s->path, p->path);
	if (sys_flock(p->w.fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? 0 : err_sys(e, "lock %s/%s", s->path, p->path);
	if (!still_there(p))
		return 0;
	return hash_again(p, size, e) < 0 ? -1 : 1;
}

/* Its digest is right: on the disk, then named. */
static int publish(struct partial *p, const struct digest *blob, struct err *e)
{
	char hex[DIGEST_HEX + 1], to[PATH];

	snprintf(to, sizeof(to), "blobs/sha256/%s", digest_hex(blob, hex));
	if (sys_fdatasync(p->w.fd) < 0)
		return err_sys(e, "sync %s/%s", p->w.s->path, p->path);
	if (sys_renameat(p->w.s->fd, p->path, p->w.s->fd, to) < 0)
		return err_sys(e, "rename %s/%s to %s", p->w.s->path, p->path, to);

	auto_fd int dir = sys_openat(p->w.s->fd, "blobs/sha256", O_RDONLY | O_DIRECTORY, 0);

	if (dir < 0 || sys_fsync(dir) < 0)
		return err_sys(e, "sync %s/blobs/sha256", p->w.s->path);
	return 0;
}

static bool is_right(const struct partial *p, const struct digest *blob)
{
	struct digest found = store_blob_digest(&p->w);

	return digest_eq(&found, blob);
}

static int go_on(struct partial *p, struct download *d, const struct digest *blob, uint64_t size,
	struct progress *pr, struct err *e)
{
	bool resumed = p->w.size > 0;
	struct digest found;

	progress_add(pr, p->w.size);
	if (blob_fetch_rest(d, blob, size, &p->w, pr, e) < 0)
		return -1;
	if (!is_right(p, blob) && resumed &&
		(from_the_start(p, e) < 0 || blob_fetch_rest(d, blob, size, &p->w, pr, e) < 0))
		return -1;
	if (is_right(p, blob))
		return publish(p, blob, e);
	found = store_blob_digest(&p->w);
	(void)sys_unlinkat(p->w.s->fd, p->path, 0); /* nothing of it is of use */
	return digest_check(blob, &found, e, "blob");
}

/* ---- either way ---- */

static int fetch_new(struct download *d, struct store *s, const struct digest *blob, uint64_t size,
	struct progress *p, struct err *e)
{
	struct blob_writer w;
	struct digest found;
	int rc;

	if (store_blob_begin(s, &w, e) < 0)
		return -1;
	rc = blob_fetch_rest(d, blob, size, &w, p, e);
	found = store_blob_digest(&w);
	if (rc == 0)
		rc = digest_check(blob, &found, e, "blob");
	if (rc == 0)
		rc = store_blob_commit(&w, &found, e);
	store_blob_abort(&w);
	return rc;
}

int blob_fetch(struct download *d, struct store *s, const struct digest *blob, uint64_t size,
	struct progress *p, struct err *e)
{
	struct partial x = {.w = {.fd = -1}};
	int rc = size < RESUME_MIN ? 0 : open_partial(&x, s, blob, size, e);

	if (rc == 0)
		rc = fetch_new(d, s, blob, size, p, e);
	else if (rc > 0)
		rc = go_on(&x, d, blob, size, p, e);
	sys_close_ref(&x.w.fd);
	return rc;
}
