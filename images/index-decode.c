/* Everything here was written by others. The body's length is fixed by the header's counts, so that
 * a record is within it when its number is below its section's count, and nothing is reserved that
 * the payload does not pay for. */
#include "images/index.h"

#include <inttypes.h>
#include <string.h>
#include <zstd.h>

#include "images/index-format.h"

struct decode {
	const uint8_t *section[INDEX_SECTIONS];
	uint32_t count[INDEX_SECTIONS];
	uint32_t xattr, ref; /* how many of these sections are used up */
	uint32_t value, string;
	struct layer *layers;
	struct chunk *chunks; /* by number */
	struct node **nodes;  /* by number */
	struct tree *tree;
};

/* The n bytes at offset `at` of record i: sections lie by planes. */
static uint64_t field(
	const struct decode *d, enum index_section s, uint32_t i, unsigned at, unsigned n)
{
	uint64_t v = 0;

	for (unsigned k = 0; k < n; k++)
		v |= (uint64_t)d->section[s][(size_t)(at + k) * d->count[s] + i] << (8 * k);
	return v;
}

static uint32_t field32(const struct decode *d, enum index_section s, uint32_t i, unsigned at)
{
	return (uint32_t)field(d, s, i, at, 4);
}

static struct digest digest_field(
	const struct decode *d, enum index_section s, uint32_t i, unsigned at)
{
	struct digest v;

	for (unsigned k = 0; k < DIGEST_SIZE; k++)
		v.b[k] = (uint8_t)field(d, s, i, at + k, 1);
	return v;
}

#define bad(e, ...) err_set(e, ERR_CORRUPT, __VA_ARGS__)

/* ---- header and body ---- */

/* The counts, and the length of the body that follows from them. */
static int read_counts(struct decode *d, const uint8_t *h, uint64_t *body, struct err *e)
{
	static const uint32_t max[INDEX_SECTIONS] = {
		[INDEX_LAYERS] = INDEX_LAYERS_MAX,
		[INDEX_CHUNKS] = UINT32_MAX - 1,
		[INDEX_NODES] = TREE_NODES_MAX,
		[INDEX_XATTRS] = UINT32_MAX,
		[INDEX_REFS] = INDEX_REFS_MAX,
		[INDEX_TRACE] = UINT32_MAX,
		[INDEX_VALUES] = UINT32_MAX,
		[INDEX_STRINGS] = UINT32_MAX,
	};

	*body = 0;
	for (size_t s = 0; s < INDEX_SECTIONS; s++) {
		d->count[s] = (uint32_t)index_get(h + INDEX_AT_COUNTS + 4 * s, 4);
		if (d->count[s] > max[s])
			return bad(e, "byte %zu: %" PRIu32 " records, the limit is %" PRIu32,
				INDEX_AT_COUNTS + 4 * s, d->count[s], max[s]);
		*body += (uint64_t)d->count[s] * index_record[s];
	}
	if (*body != index_get(h + INDEX_AT_BODY, 8))
		return bad(e, "byte %d: the body's length is not what the counts add up to",
			INDEX_AT_BODY);
	if (*body > INDEX_BYTES_MAX - INDEX_HEADER)
		return bad(e, "byte %d: a body of %" PRIu64 " bytes, the limit is %d",
			INDEX_AT_BODY, *body, INDEX_BYTES_MAX - INDEX_HEADER);
	return 0;
}

static int inflate(const uint8_t *p, size_t n, uint64_t body, uint8_t **out, struct err *e)
{
	size_t rc = ZSTD_findFrameCompressedSize(p, n);

	if (body > (uint64_t)n * INDEX_RATIO_MAX + INDEX_RATIO_FREE)
		return bad(e, "byte %d: a body of %" PRIu64 " bytes in %zu compressed ones",
			INDEX_AT_BODY, body, n);
	if (ZSTD_isError(rc) || rc != n || ZSTD_getFrameContentSize(p, n) != body)
		return bad(e, "byte %d: not one zstd frame of the body's length", INDEX_HEADER);
	*out = mem_alloc((size_t)body);
	rc = ZSTD_decompress(*out, (size_t)body, p, n);
	if (ZSTD_isError(rc) || rc != body)
		return bad(e, "byte %d: %s", INDEX_HEADER, ZSTD_getErrorName(rc));
	return 0;
}

/* Point the sections at the body; *own is what to free. */
static int read_body(struct decode *d, const uint8_t *p, size_t n, uint8_t **own, struct err *e)
{
	uint64_t body;
	uint32_t encoding;

	if (n < INDEX_HEADER || memcmp(p, INDEX_MAGIC, sizeof(INDEX_MAGIC) - 1) != 0)
		return bad(e, "byte 0: not an image index");
	if (index_get(p + INDEX_AT_VERSION, 4) != INDEX_VERSION)
		return err_set(e, ERR_UNSUPPORTED, "an image index of version %" PRIu64 ", not %d",
			index_get(p + INDEX_AT_VERSION, 4), INDEX_VERSION);
	encoding = (uint32_t)index_get(p + INDEX_AT_ENCODING, 4);
	if (encoding > INDEX_ZSTD || index_get(p + INDEX_AT_ZERO, 8) != 0)
		return bad(e, "byte %d: unknown encoding", INDEX_AT_ENCODING);
	if (read_counts(d, p, &body, e) < 0)
		return -1;
	p += INDEX_HEADER;
	n -= INDEX_HEADER;
	if (encoding == INDEX_ZSTD) {
		if (inflate(p, n, body, own, e) < 0)
			return -1;
		p = *own;
	} else if (n != body) {
		return bad(e, "byte %d: %zu bytes of body, not %" PRIu64, INDEX_HEADER, n, body);
	}
	for (size_t s = 0; s < INDEX_SECTIONS; s++) {
		d->section[s] = p;
		p += (size_t)d->count[s] * index_record[s];
	}
	return 0;
}

/* ---- layers and chunks ---- */

static int read_layer(struct decode *d, uint32_t i, struct err *e)
{
	struct layer *l = &d->layers[i];
	uint32_t codec = field32(d, INDEX_LAYERS, i, 80);

	l->digest = digest_field(d, INDEX_LAYERS, i, 0);
	l->diff_id = digest_field(d, INDEX_LAYERS, i, 32);
	l->size = field(d, INDEX_LAYERS, i, 64, 8);
	l->tar_size = field(d, INDEX_LAYERS, i, 72, 8);
	if (codec > CODEC_GZIP || field32(d, INDEX_LAYERS, i, 84) != 0)
		return bad(e, "layer %" PRIu32 ": codec %" PRIu32, i, codec);
	if (l->size > INT64_MAX || l->tar_size > INT64_MAX)
		return bad(e, "layer %" PRIu32 ": its size", i);
	l->codec = (enum codec)codec;
	return 0;
}

/* The frame must lie within its layer, and its length is bounded: whoever fetches it reserves that
 * much. */
static int check_frame(const struct decode *d, const struct chunk *c, uint32_t i, struct err *e)
{
	const struct layer *l = &d->layers[c->layer];

	if (c->stored == 0 || c->stored > c->length + INDEX_STORED_SLACK ||
		(l->codec == CODEC_NONE && c->stored != c->length))
		return bad(e, "chunk %" PRIu32 ": %" PRIu32 " stored bytes for %" PRIu32, i,
			c->stored, c->length);
	if (c->offset > l->size || c->stored > l->size - c->offset)
		return bad(e, "chunk %" PRIu32 ": its frame is not within layer %" PRId32, i,
			c->layer);
	return 0;
}

static int read_chunk(struct decode *d, uint32_t i, struct err *e)
{
	struct chunk *c = &d->chunks[i];
	uint32_t layer = field32(d, INDEX_CHUNKS, i, 48);

	*c = (struct chunk){.digest = digest_field(d, INDEX_CHUNKS, i, 0),
		.offset = field(d, INDEX_CHUNKS, i, 32, 8),
		.length = field32(d, INDEX_CHUNKS, i, 40),
		.stored = field32(d, INDEX_CHUNKS, i, 44),
		.block = CHUNK_NO_BLOCK,
		.layer = CHUNK_NO_LAYER};
	if (c->length == 0 || c->length > CHUNK_SIZE)
		return bad(e, "chunk %" PRIu32 ": a length of %" PRIu32, i, c->length);
	if (layer == INDEX_NONE && (c->offset != 0 || c->stored != 0))
		return bad(e, "chunk %" PRIu32 ": a place in no layer", i);
	if (layer == INDEX_NONE)
		return 0;
	if (layer >= d->count[INDEX_LAYERS])
		return bad(e, "chunk %" PRIu32 ": layer %" PRIu32, i, layer);
	c->layer = (int32_t)layer;
	return check_frame(d, c, i, e);
}

static int read_tables(struct decode *d, struct err *e)
{
	d->layers = mem_array(d->count[INDEX_LAYERS], sizeof(*d->layers));
	d->chunks = mem_array(d->count[INDEX_CHUNKS], sizeof(*d->chunks));
	for (uint32_t i = 0; i < d->count[INDEX_LAYERS]; i++)
		if (read_layer(d, i, e) < 0)
			return -1;
	for (uint32_t i = 0; i < d->count[INDEX_CHUNKS]; i++)
		if (read_chunk(d, i, e) < 0)
			return -1;
	for (uint32_t i = 0; i < d->count[INDEX_TRACE]; i++)
		if (field32(d, INDEX_TRACE, i, 0) >= d->count[INDEX_CHUNKS])
			return bad(e, "trace entry %" PRIu32 ": no such chunk", i);
	return 0;
}

/* ---- nodes ---- */

/* The next string: a name, a target, or an xattr's name. */
static const char *next_string(struct decode *d, struct err *e)
{
	const char *s = (const char *)d->section[INDEX_STRINGS] + d->string;
	const char *end = memchr(s, '\0', d->count[INDEX_STRINGS] - d->string);

	if (!end) {
		bad(e, "the strings end early");
		return NULL;
	}
	d->string += (uint32_t)(end - s) + 1;
	return s;
}

static int read_xattrs(struct decode *d, struct attr *a, struct err *e)
{
	if (a->nxattrs > d->count[INDEX_XATTRS] - d->xattr)
		return bad(e, "more extended attributes than there are");
	for (uint32_t i = 0; i < a->nxattrs; i++) {
		uint32_t len = field32(d, INDEX_XATTRS, d->xattr++, 0);

		if (len > d->count[INDEX_VALUES] - d->value)
			return bad(e, "an extended attribute of %" PRIu32 " bytes", len);
		a->xattrs[i].name = next_string(d, e);
		if (!a->xattrs[i].name)
			return -1;
		a->xattrs[i].value = d->section[INDEX_VALUES] + d->value;
		a->xattrs[i].len = len;
		d->value += len;
	}
	return 0;
}

/* The chunks of a file; *cap is of a->chunks. All but the last have the full length. */
static int read_refs(struct decode *d, struct attr *a, size_t *cap, struct err *e)
{
	uint64_t n = a->size / CHUNK_SIZE + (a->size % CHUNK_SIZE != 0), left = a->size;

	if (n > d->count[INDEX_REFS] - d->ref)
		return bad(e, "%" PRIu64 " bytes need more chunks than there are", a->size);
	a->nchunks = (uint32_t)n;
	for (uint32_t i = 0; i < a->nchunks; i++) {
		uint32_t c = field32(d, INDEX_REFS, d->ref++, 0);
		uint64_t want = left > CHUNK_SIZE ? CHUNK_SIZE : left;

		if (c >= d->count[INDEX_CHUNKS] || d->chunks[c].length != want)
			return bad(e,
				"chunk %" PRIu32 " at byte %" PRIu64
				" of the file: no such chunk of %" PRIu64 " bytes",
				c, a->size - left, want);
		mem_grow(&a->chunks, cap, i);
		a->chunks[i] = d->chunks[c];
		left -= want;
	}
	return 0;
}

/* Where node i hangs. In pre-order the parent is the node before it, or a folder above that one;
 * the walk up meets the last sibling on its way. All walks together go up no further than the tree
 * went down. */
static struct node *find_parent(const struct decode *d, uint32_t i, const char *name, struct err *e)
{
	uint32_t number = field32(d, INDEX_NODES, i, 0);
	struct node *parent = number < i ? d->nodes[number] : NULL, *last = NULL;
	struct node *n = d->nodes[i - 1];

	while (n && n != parent) {
		last = n;
		n = n->parent;
	}
	if (!n || n->a.type != NODE_DIR) {
		bad(e, "its parent %" PRIu32 " is no folder of the nodes before it", number);
		return NULL;
	}
	if (last && strcmp(last->name, name) >= 0) {
		bad(e, "'%.200s' after '%.200s': not sorted, or twice", name, last->name);
		return NULL;
	}
	return n;
}

/* What the node's number means by its type. */
static int read_number(struct decode *d, uint32_t i, struct attr *a, struct node **object,
	size_t *cap, struct err *e)
{
	uint64_t v = field(d, INDEX_NODES, i, 24, 8);

	switch (a->type) {
	case NODE_FILE:
		a->size = v;
		return read_refs(d, a, cap, e);
	case NODE_HARDLINK:
		*object = v < i ? d->nodes[v] : NULL;
		if (!*object || (*object)->a.type == NODE_DIR || (*object)->link)
			return bad(
				e, "a hard link to %" PRIu64 ", which is no object before it", v);
		if (a->mode || a->uid || a->gid || a->mtime || a->nxattrs)
			return bad(e, "a hard link with attributes of its own");
		return 0;
	case NODE_CHAR:
	case NODE_BLOCK:
		a->major = (uint32_t)(v >> 32);
		a->minor = (uint32_t)v;
		return 0;
	case NODE_SYMLINK:
		a->target = next_string(d, e);
		if (!a->target)
			return -1;
		break;
	case NODE_DIR:
	case NODE_FIFO:
		break;
	}
	return v == 0 ? 0 : bad(e, "a number that its type does not have");
}

static int read_node(struct decode *d, uint32_t i, struct attr *a, size_t *cap, struct err *e)
{
	const char *name = next_string(d, e);
	uint64_t type = field(d, INDEX_NODES, i, 4, 1);
	uint32_t layer = field32(d, INDEX_NODES, i, 32);
	struct node *dir = NULL, *object = NULL;

	if (!name || (i > 0 && !(dir = find_parent(d, i, name, e))))
		return -1;
	if (type < NODE_DIR || type > NODE_BLOCK || (i == 0 && (type != NODE_DIR || *name)))
		return bad(e, "type %" PRIu64, type);
	*a = (struct attr){.type = (enum node_type)type,
		.nxattrs = (uint32_t)field(d, INDEX_NODES, i, 5, 1),
		.mode = (uint32_t)field(d, INDEX_NODES, i, 6, 2),
		.uid = field32(d, INDEX_NODES, i, 8),
		.gid = field32(d, INDEX_NODES, i, 12),
		.mtime = (int64_t)field(d, INDEX_NODES, i, 16, 8),
		.chunks = a->chunks,
		.xattrs = a->xattrs};
	if (a->mode > 07777 || a->nxattrs > TREE_XATTRS_MAX)
		return bad(e, "mode %o, %" PRIu32 " extended attributes", a->mode, a->nxattrs);
	if (layer != INDEX_NONE && layer >= d->count[INDEX_LAYERS])
		return bad(e, "layer %" PRIu32, layer);
	if (read_number(d, i, a, &object, cap, e) < 0 || read_xattrs(d, a, e) < 0)
		return -1;
	d->nodes[i] =
		dir ? tree_add(d->tree, dir, name, a, object, e) : tree_put(d->tree, "", a, 0, e);
	if (!d->nodes[i])
		return -1;
	d->nodes[i]->layer = layer == INDEX_NONE ? CHUNK_NO_LAYER : (int32_t)layer;
	return 0;
}

static int read_nodes(struct decode *d, struct err *e)
{
	auto_free struct chunk *chunks = NULL;
	struct xattr xattrs[TREE_XATTRS_MAX];
	struct attr a = {.xattrs = xattrs};
	size_t cap = 0;
	int rc = 0;

	if (d->count[INDEX_NODES] == 0)
		return bad(e, "no root");
	d->nodes = mem_array(d->count[INDEX_NODES], sizeof(struct node *));
	d->tree = tree_new();
	for (uint32_t i = 0; rc == 0 && i < d->count[INDEX_NODES]; i++) {
		a.chunks = chunks;
		rc = read_node(d, i, &a, &cap, e);
		chunks = a.chunks;
		if (rc < 0)
			err_ctx(e, "node %" PRIu32, i);
	}
	if (rc == 0 &&
		(d->xattr != d->count[INDEX_XATTRS] || d->ref != d->count[INDEX_REFS] ||
			d->value != d->count[INDEX_VALUES] || d->string != d->count[INDEX_STRINGS]))
		return bad(e, "something is left that no node uses");
	return rc;
}

struct tree *index_decode(
	const void *p, size_t n, struct layer **layers, size_t *nlayers, struct err *e)
{
	struct decode d = {0};
	auto_free uint8_t *own = NULL;
	int rc = read_body(&d, p, n, &own, e) < 0 || read_tables(&d, e) < 0 || read_nodes(&d, e) < 0
			 ? -1
			 : 0;

	free(d.chunks);
	free(d.nodes);
	if (rc < 0) {
		free(d.layers);
		tree_free(d.tree);
		err_ctx(e, "image index");
		return NULL;
	}
	tree_sort(d.tree);
	*layers = d.layers;
	*nlayers = d.count[INDEX_LAYERS];
	return d.tree;
}
