#include "images/index.h"

#include <assert.h>
#include <string.h>
#include <zstd.h>

#include "images/index-format.h"

enum { LEVEL = 9 };

struct encode {
	struct buf section[INDEX_SECTIONS];
	uint32_t count[INDEX_SECTIONS];
	const struct chunk **chunks; /* by number, each digest once */
	size_t cap;
	uint32_t *map; /* open addressing by digest: number + 1, 0 is free */
	size_t mapsize;
};

static int add(struct encode *x, enum index_section s, const void *p, size_t n, struct err *e)
{
	x->count[s] += (uint32_t)(n / index_record[s]);
	return buf_add(&x->section[s], p, n, e);
}

static int add_number(struct encode *x, enum index_section s, uint32_t v, struct err *e)
{
	uint8_t b[INDEX_NUMBER];

	index_set(b, v, 4);
	return add(x, s, b, sizeof(b), e);
}

static int add_string(struct encode *x, const char *s, struct err *e)
{
	return add(x, INDEX_STRINGS, s, strlen(s) + 1, e);
}

/* ---- the chunk map ---- */

static void map_new(struct encode *x, struct tree *t)
{
	uint64_t n = 0;

	for (struct node *k = tree_root(t); k; k = tree_next(k))
		n += k->a.nchunks;
	for (x->mapsize = 16; x->mapsize < 2 * n;)
		x->mapsize *= 2;
	x->map = mem_array(x->mapsize, sizeof(*x->map));
}

/* Refer to c by its number among the distinct chunks. Of several places where one lies, the first
 * counts. */
static int add_ref(struct encode *x, const struct chunk *c, struct err *e)
{
	size_t at = (size_t)index_get(c->digest.b, 8) & (x->mapsize - 1);
	uint32_t n;

	while (x->map[at] && !digest_eq(&x->chunks[x->map[at] - 1]->digest, &c->digest))
		at = (at + 1) & (x->mapsize - 1);
	if (!x->map[at]) {
		mem_grow(&x->chunks, &x->cap, x->count[INDEX_CHUNKS]);
		x->chunks[x->count[INDEX_CHUNKS]] = c;
		x->map[at] = ++x->count[INDEX_CHUNKS];
	}
	n = x->map[at] - 1;
	if (x->count[INDEX_REFS] == INDEX_REFS_MAX)
		return err_set(e, ERR_UNSUPPORTED, "files of more than %d MiB", INDEX_REFS_MAX);
	if (x->chunks[n]->length != c->length)
		return err_set(e, ERR_CORRUPT, "two chunks of one digest, %u and %u bytes long",
			x->chunks[n]->length, c->length);
	if (x->chunks[n]->layer == CHUNK_NO_LAYER)
		x->chunks[n] = c;
	return add_number(x, INDEX_REFS, n, e);
}

static int add_chunk_records(struct encode *x, size_t nlayers, struct err *e)
{
	uint32_t n = x->count[INDEX_CHUNKS];

	x->count[INDEX_CHUNKS] = 0; /* add() counts them again */
	for (uint32_t i = 0; i < n; i++) {
		const struct chunk *c = x->chunks[i];
		uint8_t r[INDEX_CHUNK] = {0};

		memcpy(r, c->digest.b, DIGEST_SIZE);
		index_set(r + 40, c->length, 4);
		index_set(r + 48, INDEX_NONE, 4);
		if (c->layer != CHUNK_NO_LAYER) {
			assert((size_t)c->layer < nlayers);
			index_set(r + 32, c->offset, 8);
			index_set(r + 44, c->stored, 4);
			index_set(r + 48, (uint32_t)c->layer, 4);
		}
		if (add(x, INDEX_CHUNKS, r, sizeof(r), e) < 0)
			return -1;
	}
	return 0;
}

/* ---- layers and nodes ---- */

static int add_layer(struct encode *x, const struct layer *l, struct err *e)
{
	uint8_t r[INDEX_LAYER] = {0};

	memcpy(r, l->digest.b, DIGEST_SIZE);
	memcpy(r + 32, l->diff_id.b, DIGEST_SIZE);
	index_set(r + 64, l->size, 8);
	index_set(r + 72, l->tar_size, 8);
	index_set(r + 80, l->codec, 4);
	return add(x, INDEX_LAYERS, r, sizeof(r), e);
}

static int add_xattr(struct encode *x, const struct xattr *v, struct err *e)
{
	return add_number(x, INDEX_XATTRS, (uint32_t)v->len, e) < 0 ||
			       add(x, INDEX_VALUES, v->value, v->len, e) < 0 ||
			       add_string(x, v->name, e) < 0
		       ? -1
		       : 0;
}

static uint64_t node_number(const struct node *n)
{
	switch (n->a.type) {
	case NODE_FILE:
		return n->a.size;
	case NODE_HARDLINK:
		return n->link->scratch;
	case NODE_CHAR:
	case NODE_BLOCK:
		return (uint64_t)n->a.major << 32 | n->a.minor;
	case NODE_DIR:
	case NODE_SYMLINK:
	case NODE_FIFO:
		break;
	}
	return 0;
}

static int add_node(struct encode *x, const struct node *n, struct err *e)
{
	uint8_t r[INDEX_NODE] = {0};

	index_set(r, n->parent ? n->parent->scratch : 0, 4);
	r[4] = (uint8_t)n->a.type;
	r[5] = (uint8_t)n->a.nxattrs;
	index_set(r + 6, n->a.mode, 2);
	index_set(r + 8, n->a.uid, 4);
	index_set(r + 12, n->a.gid, 4);
	index_set(r + 16, (uint64_t)n->a.mtime, 8);
	index_set(r + 24, node_number(n), 8);
	index_set(r + 32, (uint32_t)n->layer, 4); /* CHUNK_NO_LAYER is INDEX_NONE */
	if (add(x, INDEX_NODES, r, sizeof(r), e) < 0 || add_string(x, n->name, e) < 0)
		return -1;
	if (n->a.type == NODE_SYMLINK && add_string(x, n->a.target, e) < 0)
		return -1;
	for (uint32_t i = 0; i < n->a.nxattrs; i++)
		if (add_xattr(x, &n->a.xattrs[i], e) < 0)
			return -1;
	for (uint32_t i = 0; i < n->a.nchunks; i++)
		if (add_ref(x, &n->a.chunks[i], e) < 0)
			return -1;
	return 0;
}

/* ---- the document ---- */

/* The body, compressed where that helps and stays within what a reader accepts. */
static int add_body(struct buf *b, const struct buf *body, enum index_encoding *how, struct err *e)
{
	size_t n;

	if (buf_reserve(b, ZSTD_compressBound(body->len), NULL) == 0) {
		n = ZSTD_compress(b->data + b->len, ZSTD_compressBound(body->len), body->data,
			body->len, LEVEL);
		if (ZSTD_isError(n))
			return err_set(e, ERR_SYSTEM, "zstd: %s", ZSTD_getErrorName(n));
		if (n < body->len && body->len <= INDEX_RATIO_MAX * n + INDEX_RATIO_FREE) {
			*how = INDEX_ZSTD;
			b->len += n;
			return 0;
		}
	}
	*how = INDEX_RAW;
	return buf_add(b, body->data, body->len, e);
}

/* A section by planes: the first bytes of all records, then the second ones, and so on. Like meets
 * like, which makes the compressed body an eighth smaller. */
static int add_planes(struct buf *body, const struct buf *rows, size_t record, struct err *e)
{
	size_t n = rows->len / record;

	if (buf_reserve(body, rows->len, e) < 0)
		return -1;
	for (size_t k = 0; k < record; k++)
		for (size_t i = 0; i < n; i++)
			body->data[body->len++] = rows->data[i * record + k];
	return 0;
}

static int add_document(struct encode *x, struct buf *b, struct err *e)
{
	auto_buf struct buf body = BUF_INIT(INDEX_BYTES_MAX - INDEX_HEADER);
	uint8_t h[INDEX_HEADER] = INDEX_MAGIC;
	enum index_encoding how;
	size_t at = b->len;

	for (size_t s = 0; s < INDEX_SECTIONS; s++) {
		if (add_planes(&body, &x->section[s], index_record[s], e) < 0)
			return -1;
		buf_fini(&x->section[s]);
		index_set(h + INDEX_AT_COUNTS + 4 * s, x->count[s], 4);
	}
	if (buf_add(b, h, sizeof(h), e) < 0 || add_body(b, &body, &how, e) < 0)
		return -1;
	index_set(h + INDEX_AT_VERSION, INDEX_VERSION, 4);
	index_set(h + INDEX_AT_ENCODING, how, 4);
	index_set(h + INDEX_AT_BODY, body.len, 8);
	memcpy(b->data + at, h, sizeof(h));
	return 0;
}

static int encode(struct encode *x, struct tree *t, const struct layer *layers, size_t nlayers,
	struct buf *b, struct err *e)
{
	uint64_t number = 0;

	if (nlayers > INDEX_LAYERS_MAX)
		return err_set(
			e, ERR_CORRUPT, "%zu layers, the limit is %d", nlayers, INDEX_LAYERS_MAX);
	for (size_t i = 0; i < nlayers; i++)
		if (add_layer(x, &layers[i], e) < 0)
			return -1;
	map_new(x, t);
	for (struct node *n = tree_root(t); n; n = tree_next(n)) {
		n->scratch = number++;
		if (add_node(x, n, e) < 0)
			return -1;
	}
	if (add_chunk_records(x, nlayers, e) < 0)
		return -1;
	return add_document(x, b, e);
}

int index_encode(
	struct tree *t, const struct layer *layers, size_t nlayers, struct buf *b, struct err *e)
{
	struct encode x = {0};
	int rc;

	for (size_t s = 0; s < INDEX_SECTIONS; s++)
		x.section[s].max = INDEX_BYTES_MAX;
	rc = encode(&x, t, layers, nlayers, b, e);
	for (size_t s = 0; s < INDEX_SECTIONS; s++)
		buf_fini(&x.section[s]);
	free(x.chunks);
	free(x.map);
	return rc < 0 ? err_ctx(e, "image index") : 0;
}
