/* Where an image's index is: in its last layer, or, when others made the image, in a file of ours.
 */
#include "images/image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/sys.h"

/* ROOT/indexes/HEX: the document, then its sha256. */
enum { PATH = sizeof("indexes/") + DIGEST_HEX };

static char *index_path(const struct digest *manifest, char out[PATH])
{
	char hex[DIGEST_HEX + 1];

	snprintf(out, PATH, "indexes/%s", digest_hex(manifest, hex));
	return out;
}

static int read_local(const struct image *im, struct store *s, struct buf *b, struct err *e)
{
	char path[PATH], hex[DIGEST_HEX + 1];
	struct digest want, found;
	auto_fd int fd =
		sys_openat(s->fd, index_path(&im->manifest_digest, path), O_RDONLY | O_NOFOLLOW, 0);

	if (fd < 0 && errno == ENOENT) {
		err_set(e, ERR_NOT_FOUND, "image %.12s has no index",
			digest_hex(&im->manifest_digest, hex));
		return err_hint(e, "svrun image pull or load makes one");
	}
	if (fd < 0)
		return err_sys(e, "open %s/%s", s->path, path);
	b->max = INDEX_BYTES_MAX + DIGEST_SIZE;
	if (file_read_fd(fd, path, b, e) < 0)
		return err_ctx(e, "%s", s->path);
	if (b->len < DIGEST_SIZE)
		return err_set(e, ERR_CORRUPT, "%s/%s is cut off", s->path, path);
	b->len -= DIGEST_SIZE;
	memcpy(want.b, b->data + b->len, DIGEST_SIZE);
	found = digest_of(b->data, b->len);
	if (digest_check(&want, &found, e, "%s/%s", s->path, path) == 0)
		return 0;
	return err_hint(e, "pull or load the image again");
}

int image_index(struct image *im, struct store *s, struct buf *b, struct err *e)
{
	b->len = 0;
	if (!im->has_index)
		return read_local(im, s, b, e);
	b->max = INDEX_BYTES_MAX;
	return index_read(s, &im->index, b, e);
}

bool image_is_indexed(const struct image *im, struct store *s)
{
	char path[PATH];

	return im->has_index ||
	       faccessat(s->fd, index_path(&im->manifest_digest, path), F_OK, 0) == 0;
}

int image_index_put(
	struct store *s, const struct digest *manifest, const void *p, size_t n, struct err *e)
{
	struct digest d = digest_of(p, n);
	char path[PATH];
	auto_free char *all = mem_alloc(n + DIGEST_SIZE);

	memcpy(all, p, n);
	memcpy(all + n, d.b, DIGEST_SIZE);
	if (sys_mkdirat(s->fd, "indexes", 0700) < 0 && errno != EEXIST)
		return err_sys(e, "create %s/indexes", s->path);
	if (file_write(s->fd, index_path(manifest, path), all, n + DIGEST_SIZE, 0600, e) < 0)
		return err_ctx(e, "%s", s->path);
	return 0;
}

int image_index_remove(struct store *s, const struct digest *manifest, struct err *e)
{
	char path[PATH];

	if (sys_unlinkat(s->fd, index_path(manifest, path), 0) < 0 && errno != ENOENT)
		return err_sys(e, "remove %s/%s", s->path, path);
	return 0;
}
