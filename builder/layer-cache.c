#include "builder/layer-cache.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/sys.h"
#include "builder/engine.h"
#include "builder/unpacked.h"

#define DIR "cache/layers"
#define MAGIC "svrunly1"

enum {
	HEAD = 8 + 2 * DIGEST_SIZE + 3 * 8, /* magic, digests, size, tar size, number of chunks */
	PLACE = 12,                         /* of a chunk: stored, offset */
};
static const uint64_t record_max = (uint64_t)1 << 30;

/* ---- the key ---- */

static void add_number(struct hash *h, uint64_t v)
{
	uint8_t raw[8];

	for (unsigned i = 0; i < 8; i++)
		raw[i] = (uint8_t)(v >> 8 * i);
	hash_add(h, raw, sizeof(raw));
}

static void add_bytes(struct hash *h, const void *p, size_t n)
{
	add_number(h, n);
	hash_add(h, p, n);
}

static void add_text(struct hash *h, const char *s)
{
	add_bytes(h, s ? s : "", s ? strlen(s) : 0);
}

static void add_node(struct hash *h, const struct node *n)
{
	const struct attr *a = n->link ? &n->link->a : &n->a;
	char path[TREE_PATH_MAX + 1];

	const uint64_t numbers[] = {n->a.type, a->type, a->mode, a->uid, a->gid, (uint64_t)a->mtime,
		a->major, a->minor, a->size, a->nxattrs, n->a.nchunks};

	add_text(h, node_path(n, path));
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		add_number(h, numbers[i]);
	add_text(h, a->type == NODE_SYMLINK ? a->target : NULL);
	add_text(h, n->link ? node_path(n->link, path) : NULL);
	for (uint32_t i = 0; i < a->nxattrs; i++) {
		add_text(h, a->xattrs[i].name);
		add_bytes(h, a->xattrs[i].value, a->xattrs[i].len);
	}
	for (uint32_t i = 0; i < n->a.nchunks; i++)
		hash_add(h, n->a.chunks[i].digest.b, DIGEST_SIZE);
}

struct digest layer_key(const struct layer *l, struct node *const *nodes, size_t n)
{
	const char *const versions[] = {[CODEC_NONE] = "",
		[CODEC_ZSTD] = ZSTD_versionString(),
		[CODEC_GZIP] = zlibVersion()};
	struct hash h;

	hash_init(&h, HASH_SHA256);
	add_text(&h, "layer " ENGINE_VERSION);
	add_text(&h, codec_name(l->codec));
	add_text(&h, versions[l->codec]);
	add_number(&h, l->codec == CODEC_NONE ? 0 : (uint64_t)l->level);
	add_number(&h, n);
	for (size_t i = 0; i < n; i++)
		add_node(&h, nodes[i]);
	return hash_digest(&h);
}

/* ---- records ---- */

static void put_number(uint8_t *p, unsigned bytes, uint64_t v)
{
	for (unsigned i = 0; i < bytes; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

static uint64_t get_number(const uint8_t *p, unsigned bytes)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < bytes; i++)
		v |= (uint64_t)p[i] << 8 * i;
	return v;
}

static uint64_t count_chunks(struct node *const *nodes, size_t n)
{
	uint64_t k = 0;

	for (size_t i = 0; i < n; i++)
		k += nodes[i]->a.nchunks;
	return k;
}

/* The record ends with the sha256 of all before it. */
static int save(struct store *s, const struct digest *key, const struct layer *l,
	struct node *const *nodes, size_t n, struct err *e)
{
	uint64_t chunks = count_chunks(nodes, n);
	auto_buf struct buf b = BUF_INIT(record_max);
	uint8_t head[HEAD] = MAGIC;
	struct digest sum;

	memcpy(head + 8, l->digest.b, DIGEST_SIZE);
	memcpy(head + 8 + DIGEST_SIZE, l->diff_id.b, DIGEST_SIZE);
	put_number(head + 72, 8, l->size);
	put_number(head + 80, 8, l->tar_size);
	put_number(head + 88, 8, chunks);
	buf_put(&b, head, HEAD);
	for (size_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < nodes[i]->a.nchunks; k++) {
			uint8_t place[PLACE];

			put_number(place, 4, nodes[i]->a.chunks[k].stored);
			put_number(place + 4, 8, nodes[i]->a.chunks[k].offset);
			buf_put(&b, place, PLACE);
		}
	sum = digest_of(b.data, b.len);
	buf_put(&b, sum.b, DIGEST_SIZE);
	return cache_file_put(s, DIR, key, b.data, b.len, e);
}

static bool is_record(const struct buf *b, uint64_t chunks)
{
	struct digest sum;

	if (b->len < HEAD + DIGEST_SIZE || memcmp(b->data, MAGIC, 8) != 0 ||
		b->len - HEAD - DIGEST_SIZE != chunks * PLACE)
		return false;
	sum = digest_of(b->data, b->len - DIGEST_SIZE);
	return memcmp(sum.b, b->data + b->len - DIGEST_SIZE, DIGEST_SIZE) == 0;
}

static bool blob_is_there(struct store *s, const struct digest *d, uint64_t size)
{
	uint64_t found;
	auto_fd int fd = store_blob_open(s, d, &found, NULL);

	return fd >= 0 && found == size;
}

/* As layer_write() leaves them. */
static void place(struct node *const *nodes, size_t n, int32_t number, const uint8_t *places)
{
	for (size_t i = 0; i < n; i++) {
		if (nodes[i]->layer == CHUNK_NO_LAYER)
			nodes[i]->layer = number;
		for (uint32_t k = 0; k < nodes[i]->a.nchunks; k++, places += PLACE) {
			struct chunk *c = &nodes[i]->a.chunks[k];

			if (c->layer != CHUNK_NO_LAYER)
				continue;
			c->layer = number;
			c->stored = (uint32_t)get_number(places, 4);
			c->offset = get_number(places + 4, 8);
		}
	}
}

static int load(struct store *s, const struct digest *key, struct layer *l, int32_t number,
	struct node *const *nodes, size_t n, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(record_max);
	int rc = cache_file_get(s, DIR, key, &b, e);
	const uint8_t *p = (const uint8_t *)b.data;
	struct digest digest;
	uint64_t size;

	if (rc <= 0 || !is_record(&b, count_chunks(nodes, n)))
		return rc < 0 ? -1 : 0;
	memcpy(digest.b, p + 8, DIGEST_SIZE);
	size = get_number(p + 72, 8);
	if (!blob_is_there(s, &digest, size))
		return 0;
	l->digest = digest;
	memcpy(l->diff_id.b, p + 8 + DIGEST_SIZE, DIGEST_SIZE);
	l->size = size;
	l->tar_size = get_number(p + 80, 8);
	place(nodes, n, number, p + HEAD);
	return 1;
}

/* ---- */

/* The places that are recorded are those of this blob: a chunk that is in another layer already
 * (of the base) has others. */
static bool all_fresh(struct node *const *nodes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < nodes[i]->a.nchunks; k++)
			if (nodes[i]->a.chunks[k].layer != CHUNK_NO_LAYER)
				return false;
	return true;
}

static uint64_t bytes_of(struct node *const *nodes, size_t n)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < n; i++)
		bytes += nodes[i]->a.type == NODE_FILE ? nodes[i]->a.size : 0;
	return bytes;
}

int layer_cache_write(struct layer *l, int32_t number, struct node *const *nodes, size_t n,
	struct pool *p, struct store *s, bool no_cache, struct progress *pr,
	struct build_count *count, struct err *e)
{
	struct digest key = layer_key(l, nodes, n);
	bool fresh = all_fresh(nodes, n);
	int rc = fresh && !no_cache ? load(s, &key, l, number, nodes, n, e) : 0;

	if (rc == 0) {
		auto_fd int turn = store_work_lock(s, &key, e);

		if (turn < 0)
			return -1;
		rc = fresh && !no_cache ? load(s, &key, l, number, nodes, n, e) : 0;
		if (rc == 0 && (layer_write(l, number, nodes, n, p, s, pr, e) < 0 ||
				       (fresh && save(s, &key, l, nodes, n, e) < 0)))
			rc = -1;
		if (rc == 0 && count) {
			count->layers_written++;
			count->bytes_compressed += bytes_of(nodes, n);
			count->bytes_written += l->size;
		}
	}
	if (rc > 0 && count)
		count->layers_reused++;
	return rc < 0 ? -1 : 0;
}
