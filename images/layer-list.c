#include "images/layer-list.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/sys.h"

/* 8 bytes, the length of the tar, little-endian; the key; the list. */
enum {
	LIST_HEAD = 8 + DIGEST_SIZE,
	LIST_MAX = 512 << 20,
	LIST_PATH = sizeof("layers/" LAYER_LIST_TOC) + DIGEST_HEX,
};

static char *list_path(const struct digest *layer, const char *kind, char out[LIST_PATH])
{
	char hex[DIGEST_HEX + 1];

	snprintf(out, LIST_PATH, "layers/%s%s", digest_hex(layer, hex), kind);
	return out;
}

void layer_list_fini(struct layer_list *l)
{
	entries_fini(&l->entries);
	*l = (struct layer_list){0};
}

int layer_list_load(struct store *s, const struct digest *layer, const char *kind,
	struct layer_list *l, struct err *e)
{
	char path[LIST_PATH];
	auto_buf struct buf b = BUF_INIT(LIST_MAX);
	auto_fd int fd = sys_openat(s->fd, list_path(layer, kind, path), O_RDONLY | O_NOFOLLOW, 0);

	*l = (struct layer_list){0};
	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, "open %s/%s", s->path, path);
	if (file_read_fd(fd, path, &b, NULL) < 0 || b.len < LIST_HEAD ||
		entries_decode(&l->entries, b.data + LIST_HEAD, b.len - LIST_HEAD, NULL) < 0) {
		layer_list_fini(l);
		return 0;
	}
	for (int i = 0; i < 8; i++)
		l->tar_size |= (uint64_t)(uint8_t)b.data[i] << (8 * i);
	memcpy(l->key.b, b.data + 8, DIGEST_SIZE);
	return 1;
}

int layer_list_save(struct store *s, const struct digest *layer, const char *kind,
	const struct layer_list *l, struct err *e)
{
	char path[LIST_PATH];
	auto_buf struct buf b = BUF_INIT(LIST_MAX);

	for (int i = 0; i < 8; i++)
		buf_put(&b, &(uint8_t){(uint8_t)(l->tar_size >> (8 * i))}, 1);
	buf_put(&b, l->key.b, DIGEST_SIZE);
	if (entries_encode(&l->entries, &b, e) < 0)
		return -1;
	if (sys_mkdirat(s->fd, "layers", 0700) < 0 && errno != EEXIST)
		return err_sys(e, "create %s/layers", s->path);
	if (file_write(s->fd, list_path(layer, kind, path), b.data, b.len, 0600, e) < 0) {
		err_ctx(e, "%s", s->path);
		return sys_hint_space(e, s->fd, b.len);
	}
	return 0;
}
