/* Steps in the shared cache: the list of what one changed, and the data of its chunks. */
#include <stdio.h>
#include <string.h>
#include <zstd.h>

#include "base/sys.h"
#include "builder/cache-share-private.h"
#include "builder/unpacked.h"
#include "images/attached.h"
#include "images/digest-map.h"

#define LIST_TYPE "application/vnd.svrun.step.list.v1"
#define DATA_TYPE "application/vnd.svrun.step.data.v1+zstd"

enum { LIST_MAX = 64 << 20, LEVEL = 3 };
/* In memory, both ways: what is bigger is run again sooner than fetched. */
static const size_t data_max = (size_t)512 << 20;

struct cache_share {
	struct registry *r;
	struct progress *p;
	bool broken; /* it was said once */
};

struct cache_share *cache_share_open(
	const struct cache_share_site *c, const char *from, struct progress *p, struct err *e)
{
	struct cache_share *x;
	struct reference ref;
	struct registry *r;

	if (share_repository(&ref, from, "--cache-from", e) < 0)
		return NULL;
	r = share_open_registry(c, &ref, false, e);
	if (!r)
		return NULL;
	x = mem_alloc(sizeof(*x));
	x->r = r;
	x->p = p;
	return x;
}

void cache_share_close(struct cache_share *x)
{
	if (x)
		registry_close(x->r);
	free(x);
}

/* ---- chunks of a list ---- */

struct chunks {
	struct chunk **v; /* each digest once, in the order of the list */
	size_t n, cap;
	uint64_t bytes;
};

static void list_chunks(struct chunks *c, const struct entries *l)
{
	struct digest_map seen = {0};

	for (size_t i = 0; i < l->n; i++)
		for (uint32_t k = 0; k < l->v[i].a.nchunks && !l->v[i].pruned; k++) {
			struct chunk *x = &l->v[i].a.chunks[k];

			if (digest_map_find(&seen, &x->digest))
				continue;
			digest_map_add(&seen, &x->digest);
			mem_grow(&c->v, &c->cap, c->n);
			c->v[c->n++] = x;
			c->bytes += x->length;
		}
	digest_map_fini(&seen);
}

/* ---- in ---- */

static int put_chunks(
	const struct entries *l, struct pool *pool, const struct buf *packed, struct err *e)
{
	struct chunks c = {0};
	auto_free char *plain = NULL;
	size_t n, at = 0;
	int rc = 0;

	list_chunks(&c, l);
	if (c.bytes > data_max)
		rc = err_set(e, ERR_CORRUPT, "a step with %zu chunks is too big", c.n);
	if (rc == 0) {
		plain = mem_alloc(c.bytes + 1);
		n = ZSTD_decompress(plain, c.bytes + 1, packed->data, packed->len);
		if (ZSTD_isError(n) || n != c.bytes)
			rc = err_set(
				e, ERR_CORRUPT, "the data of a step are not what its list says");
	}
	for (size_t i = 0; rc == 0 && i < c.n; at += c.v[i++]->length) {
		struct pool_item item = {.data = plain + at, .c = c.v[i]};

		rc = pool_put_known(pool, &item, 1, e); /* checks the digest */
	}
	free(c.v);
	return rc < 0 ? -1 : pool_commit_soon(pool, e);
}

static int take_step(const struct share_action *a, struct cache_share *x, struct store *s,
	struct pool *pool, const struct digest *key, struct err *e)
{
	auto_buf struct buf list = BUF_INIT(LIST_MAX), data = BUF_INIT(data_max);
	struct entries l = {0};
	int rc;

	if (share_blob(a, 1, x->r, &list, e) < 0 || share_blob(a, 2, x->r, &data, e) < 0)
		return -1;
	rc = unpacked_parse(&list, &l, e);
	if (rc == 0)
		rc = put_chunks(&l, pool, &data, e);
	if (rc == 0)
		rc = unpacked_keep(s, key, &list, e);
	entries_fini(&l);
	return rc < 0 ? -1 : 1;
}

int cache_share_step(struct cache_share *x, struct store *s, struct pool *pool,
	const struct digest *key, struct err *e)
{
	struct share_action a = {0};
	struct err fault = {0};
	int rc;

	if (!x || x->broken)
		return 0;
	rc = share_read(&a, x->r, key, "step", &fault);
	if (rc > 0)
		rc = take_step(&a, x, s, pool, key, &fault);
	share_action_fini(&a);
	if (rc >= 0)
		return rc;
	if (fault.kind == ERR_SYSTEM) {
		if (e)
			*e = fault;
		return -1;
	}
	x->broken = true;
	progress_note(x->p, "the shared cache was no help: %s", fault.text);
	return 0;
}

/* ---- out ---- */

static int pack(const struct chunks *c, struct pool *pool, struct buf *out, struct err *e)
{
	auto_free char *plain = mem_alloc(c->bytes + 1);
	size_t at = 0, n;

	for (size_t i = 0; i < c->n; at += c->v[i++]->length)
		if (pool_read(pool, c->v[i], plain + at, e) < 0)
			return -1;
	if (buf_reserve(out, ZSTD_compressBound(c->bytes), e) < 0)
		return -1;
	n = ZSTD_compress(out->data, ZSTD_compressBound(c->bytes), plain, c->bytes, LEVEL);
	if (ZSTD_isError(n))
		return err_set(e, ERR_SYSTEM, "zstd: %s", ZSTD_getErrorName(n));
	out->len = n;
	return 0;
}

/* 1 when both are there; 0 when the step is not, or is too big to be shared. */
static int read_step(struct store *s, const struct digest *key, struct buf *list, struct buf *data,
	struct err *e)
{
	struct pool *pool = pool_open(s->fd, false, e);
	struct entries l = {0};
	struct chunks c = {0};
	int rc = pool ? unpacked_load(s, pool, key, NULL, &l, e) : -1;

	if (rc > 0)
		list_chunks(&c, &l);
	if (rc > 0 && c.bytes > data_max / 2)
		rc = 0;
	if (rc > 0 && (pack(&c, pool, data, e) < 0 || entries_encode(&l, list, e) < 0))
		rc = -1;
	free(c.v);
	entries_fini(&l);
	pool_close(pool);
	return rc;
}

int share_send_step(struct share_to *to, const struct digest *key, struct err *e)
{
	struct store *s = to->s;
	auto_buf struct buf list = BUF_INIT(LIST_MAX), data = BUF_INIT(data_max);
	char hex[DIGEST_HEX + 1], tag[SHARE_TAG];
	auto_free char *doc =
		mem_printf("{\"key\":\"%s\",\"kind\":\"step\"}", digest_hex(key, hex));
	struct share_out v[4];
	size_t n = 0;
	int rc = registry_has_manifest(to->r, share_tag(key, tag), e);

	if (rc != 0)
		return rc < 0 ? -1 : 0;
	rc = read_step(s, key, &list, &data, e);
	if (rc <= 0)
		return rc;

	auto_fd int hold = pool_hold(s->fd, e);

	if (hold < 0 || share_add(v, &n, s, EMPTY_TYPE, "{}", 2, e) < 0 ||
		share_add(v, &n, s, ACTION_TYPE, doc, strlen(doc), e) < 0 ||
		share_add(v, &n, s, LIST_TYPE, list.data, list.len, e) < 0 ||
		share_add(v, &n, s, DATA_TYPE, data.data, data.len, e) < 0)
		return -1;
	return share_send(to, key, v, n, e);
}
