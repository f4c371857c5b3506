#include "builder/unpacked.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/sys.h"

#define DIR "cache/unpacked"
#define MAGIC "svrunpk1"

enum {
	PATH = 64 + DIGEST_HEX,
	HEAD = 8 + 8 + DIGEST_SIZE, /* magic, length of the control part, sum of that part */
	FILES_MAX = 4096,           /* control files of one package */
	FLUSH_BYTES = 256 << 20,    /* of file data: what an interruption may cost */
};
static const uint64_t file_max = (uint64_t)1 << 30;

/* ---- files of caches ---- */

int cache_file_put(struct store *s, const char *dir, const struct digest *key, const void *p,
	size_t n, struct err *e)
{
	char hex[DIGEST_HEX + 1], tmp[FILE_TMP_NAME];
	int rc = -1;

	if (sys_mkdir_p(s->fd, dir, 0700) < 0)
		return err_sys(e, "create %s/%s", s->path, dir);
	auto_fd int folder = sys_openat(s->fd, dir, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	auto_fd int fd = folder < 0 ? -1 : file_tmp(folder, tmp, 0600, e);

	if (folder < 0)
		return err_sys(e, "open %s/%s", s->path, dir);
	if (fd < 0)
		return err_ctx(e, "%s/%s", s->path, dir);
	digest_hex(key, hex);
	if (sys_write_all(fd, p, n) == 0)
		rc = file_name(folder, fd, tmp, hex, true, e);
	else
		err_sys(e, "write %s/%s/%s", s->path, dir, hex);
	if (rc < 0 && tmp[0])
		sys_unlinkat(folder, tmp, 0);
	return rc < 0 ? sys_hint_space(e, s->fd, n) : 0;
}

int cache_file_get(
	struct store *s, const char *dir, const struct digest *key, struct buf *b, struct err *e)
{
	char hex[DIGEST_HEX + 1], name[PATH];

	snprintf(name, sizeof(name), "%s/%s", dir, digest_hex(key, hex));

	auto_fd int fd = sys_openat(s->fd, name, O_RDONLY | O_NOFOLLOW, 0);

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return err_sys(e, "open %s/%s", s->path, name);
	(void)futimens(fd, NULL); /* used: garbage collection leaves it; no matter if it fails */
	return file_read_fd(fd, name, b, e) < 0 ? -1 : 1;
}

bool unpacked_has(struct store *s, const struct digest *key)
{
	char hex[DIGEST_HEX + 1], name[PATH];

	snprintf(name, sizeof(name), DIR "/%s", digest_hex(key, hex));
	return faccessat(s->fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* ---- the control part of a package ---- */

static void put_number(struct buf *b, uint64_t v)
{
	uint8_t raw[8];

	for (unsigned i = 0; i < 8; i++)
		raw[i] = (uint8_t)(v >> 8 * i);
	buf_put(b, raw, sizeof(raw));
}

static void put_text(struct buf *b, const char *s)
{
	size_t n = s ? strlen(s) : 0;

	put_number(b, s ? n + 1 : 0); /* 0: there is none */
	buf_put(b, s ? s : "", n);
}

static void put_deb(struct buf *b, const struct deb *d)
{
	put_text(b, d->name);
	put_text(b, d->version);
	put_text(b, d->arch);
	put_text(b, d->multi_arch);
	put_text(b, d->control);
	put_number(b, d->nfiles);
	for (size_t i = 0; i < d->nfiles; i++) {
		put_text(b, d->files[i].name);
		put_number(b, d->files[i].mode);
		put_number(b, d->files[i].len);
		buf_put(b, d->files[i].data, d->files[i].len);
	}
}

/* A cursor over bytes whose sum was right: what does not fit was written by another version. */
struct piece {
	const char *p;
	size_t n;
	bool bad;
};

static uint64_t get_number(struct piece *x)
{
	uint64_t v = 0;

	if (x->bad || x->n < 8) {
		x->bad = true;
		return 0;
	}
	for (unsigned i = 0; i < 8; i++)
		v |= (uint64_t)(uint8_t)x->p[i] << 8 * i;
	x->p += 8;
	x->n -= 8;
	return v;
}

/* n bytes as a text of their own, a NUL behind them. */
static const char *get_bytes(struct piece *x, uint64_t n, struct arena *a)
{
	const char *text;

	if (x->bad || n > x->n) {
		x->bad = true;
		return "";
	}
	text = arena_strndup(a, x->p, n);
	x->p += n;
	x->n -= n;
	return text;
}

static const char *get_text(struct piece *x, struct arena *a)
{
	uint64_t n = get_number(x);

	return n ? get_bytes(x, n - 1, a) : NULL;
}

static char *copy_of(struct arena *a, const char *p, size_t n)
{
	char *c = arena_alloc(a, n + 1); /* control files may hold a NUL */

	memcpy(c, p, n);
	return c;
}

static void get_file(struct piece *x, struct deb *d)
{
	struct deb_file *f = &d->files[d->nfiles++];
	uint64_t n;

	f->name = get_text(x, &d->arena);
	f->mode = (uint32_t)get_number(x);
	n = get_number(x);
	if (x->bad || !f->name || n > x->n) {
		x->bad = true;
		return;
	}
	f->data = copy_of(&d->arena, x->p, n);
	f->len = n;
	x->p += n;
	x->n -= n;
}

static int get_deb(struct piece x, struct deb *d)
{
	uint64_t n;

	d->name = get_text(&x, &d->arena);
	d->version = get_text(&x, &d->arena);
	d->arch = get_text(&x, &d->arena);
	d->multi_arch = get_text(&x, &d->arena);
	d->control = get_text(&x, &d->arena);
	n = get_number(&x);
	if (x.bad || !d->name || !d->version || !d->arch || !d->control || n > FILES_MAX)
		return -1;
	d->files = arena_alloc(&d->arena, n * sizeof(*d->files));
	for (uint64_t i = 0; i < n && !x.bad; i++)
		get_file(&x, d);
	return x.bad || x.n ? -1 : 0;
}

/* ---- reading ---- */

static int find_chunks(struct pool *p, const struct entries *l, struct err *e)
{
	auto_free struct chunk **v = NULL;
	size_t n = 0, cap = 0;

	for (size_t i = 0; i < l->n; i++)
		for (uint32_t k = 0; k < l->v[i].a.nchunks && !l->v[i].pruned; k++) {
			mem_grow(&v, &cap, n);
			v[n++] = &l->v[i].a.chunks[k];
		}
	if (n && pool_find_all(p, v, n, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		if (v[i]->block == CHUNK_NO_BLOCK)
			return 0;
	return 1;
}

/* 1 when b is a whole file, 0 when it is not one that this version wrote. */
static int decode(const struct buf *b, struct deb *d, struct entries *out)
{
	struct piece x = {.p = b->data + 8, .n = b->len < 8 ? 0 : b->len - 8};
	struct digest want, found;
	uint64_t n;

	if (b->len < HEAD || memcmp(b->data, MAGIC, 8) != 0)
		return 0;
	n = get_number(&x);
	memcpy(want.b, x.p, DIGEST_SIZE);
	x.p += DIGEST_SIZE;
	x.n -= DIGEST_SIZE;
	if (n > x.n)
		return 0;
	found = digest_of(x.p, n);
	if (!digest_eq(&want, &found) || entries_decode(out, x.p + n, x.n - n, NULL) < 0)
		return 0;
	return !d || get_deb((struct piece){.p = x.p, .n = n}, d) == 0;
}

int unpacked_load(struct store *s, struct pool *p, const struct digest *key, struct deb *d,
	struct entries *out, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(file_max);
	int rc = cache_file_get(s, DIR, key, &b, e);

	if (rc > 0)
		rc = decode(&b, d, out) ? find_chunks(p, out, e) : 0;
	if (rc > 0)
		return rc;
	if (d) { /* d->data is out */
		deb_fini(d);
		*d = (struct deb){0};
	} else {
		entries_fini(out);
		*out = (struct entries){0};
	}
	return rc;
}

/* ---- writing ---- */

struct unpacked_item {
	struct unpacked_item *next;
	struct digest key;
	struct buf bytes;
};

uint64_t unpacked_bytes(const struct entries *l)
{
	uint64_t n = 0;

	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].kind == ENTRY_PUT && l->v[i].a.type == NODE_FILE && !l->v[i].pruned)
			n += l->v[i].a.size;
	return n;
}

void unpacked_queue_init(struct unpacked_queue *q, struct store *s, struct pool *pool)
{
	*q = (struct unpacked_queue){.s = s, .pool = pool};
	pthread_mutex_init(&q->lock, NULL);
}

static void drop(struct unpacked_item *x)
{
	while (x) {
		struct unpacked_item *next = x->next;

		buf_fini(&x->bytes);
		free(x);
		x = next;
	}
}

void unpacked_queue_fini(struct unpacked_queue *q)
{
	drop(q->items);
	q->items = NULL;
	pthread_mutex_destroy(&q->lock);
}

static void encode_head(struct buf *b, const struct deb *d)
{
	auto_buf struct buf meta = BUF_INIT(file_max);
	struct digest sum;

	if (d)
		put_deb(&meta, d);
	sum = digest_of(meta.data ? meta.data : "", meta.len);
	buf_put(b, MAGIC, 8);
	put_number(b, meta.len);
	buf_put(b, sum.b, DIGEST_SIZE);
	buf_put(b, meta.data ? meta.data : "", meta.len);
}

int unpacked_parse(const struct buf *list, struct entries *out, struct err *e)
{
	return entries_decode(out, list->data ? list->data : "", list->len, e);
}

int unpacked_keep(struct store *s, const struct digest *key, const struct buf *list, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(file_max);

	encode_head(&b, NULL);
	return buf_add(&b, list->data, list->len, e) < 0
		       ? -1
		       : cache_file_put(s, DIR, key, b.data, b.len, e);
}

int unpacked_add(struct unpacked_queue *q, const struct digest *key, const struct deb *d,
	const struct entries *l, struct err *e)
{
	struct unpacked_item *x = mem_alloc(sizeof(*x));
	bool full;

	x->key = *key;
	x->bytes = BUF_INIT(file_max);
	encode_head(&x->bytes, d);
	if (entries_encode(l, &x->bytes, e) < 0) {
		drop(x);
		return -1;
	}
	pthread_mutex_lock(&q->lock);
	x->next = q->items;
	q->items = x;
	q->bytes += unpacked_bytes(l);
	full = q->bytes > FLUSH_BYTES;
	pthread_mutex_unlock(&q->lock);
	return full ? unpacked_flush(q, e) : 0;
}

int unpacked_flush(struct unpacked_queue *q, struct err *e)
{
	struct unpacked_item *all;
	int rc;

	pthread_mutex_lock(&q->lock);
	all = q->items;
	q->items = NULL;
	q->bytes = 0;
	pthread_mutex_unlock(&q->lock);
	if (!all)
		return 0;
	rc = pool_commit_soon(q->pool, e);
	for (struct unpacked_item *x = all; x && rc == 0; x = x->next)
		rc = cache_file_put(q->s, DIR, &x->key, x->bytes.data, x->bytes.len, e);
	drop(all);
	return rc;
}
