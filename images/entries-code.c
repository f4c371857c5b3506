/* A layer's list as bytes, and back: docs/layers.md, "Lists that are kept". */
#include <inttypes.h>
#include <string.h>
#include <zstd.h>

#include "base/str.h"
#include "images/entries.h"
#include "images/index-format.h"
#include "images/tree-attr.h"

#define MAGIC "svrunlst"

enum {
	VERSION = 1,
	PLAIN = 0,
	ZSTD = 1,
	LEVEL = 3,
	HEADER = 64,
	RATIO_MAX = 32,        /* body / frame, beyond ... */
	RATIO_FREE = 64 << 10, /* ... this many bytes; else the body stays plain */
	TYPE_BITS = 3,         /* of an entry's first byte: type, then kind, then pruned */
	KIND_BITS = 2,
};
static const uint64_t body_max = (uint64_t)1 << 30;

/* ---- encoding ---- */

static int put_number(struct buf *b, uint64_t v, struct err *e)
{
	uint8_t text[10];
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		text[n++] = (uint8_t)(v | 0x80);
	text[n++] = (uint8_t)v;
	return buf_add(b, text, n, e);
}

static int put_bytes(struct buf *b, const void *p, size_t n, struct err *e)
{
	return put_number(b, n, e) < 0 ? -1 : buf_add(b, p, n, e);
}

static int put_text(struct buf *b, const char *s, struct err *e)
{
	return put_bytes(b, s, strlen(s), e);
}

static int put_chunks(struct buf *b, const struct attr *a, struct err *e)
{
	if (put_number(b, a->size, e) < 0)
		return -1;
	for (uint32_t i = 0; i < a->nchunks; i++)
		if (buf_add(b, a->chunks[i].digest.b, DIGEST_SIZE, e) < 0)
			return -1;
	return 0;
}

static int put_of_type(struct buf *b, const struct attr *a, struct err *e)
{
	switch (a->type) {
	case NODE_FILE:
		return put_chunks(b, a, e);
	case NODE_SYMLINK:
	case NODE_HARDLINK:
		return put_text(b, a->target, e);
	case NODE_CHAR:
	case NODE_BLOCK:
		return put_number(b, a->major, e) < 0 ? -1 : put_number(b, a->minor, e);
	case NODE_DIR:
	case NODE_FIFO:
		break;
	}
	return 0;
}

/* Sign in the lowest bit. */
static uint64_t fold(int64_t v)
{
	return (uint64_t)v << 1 ^ (v < 0 ? UINT64_MAX : 0);
}

static int put_attr(struct buf *b, const struct attr *a, struct err *e)
{
	const uint64_t numbers[] = {a->mode, a->uid, a->gid, fold(a->mtime)};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (put_number(b, numbers[i], e) < 0)
			return -1;
	if (put_of_type(b, a, e) < 0 || put_number(b, a->nxattrs, e) < 0)
		return -1;
	for (uint32_t i = 0; i < a->nxattrs; i++)
		if (put_text(b, a->xattrs[i].name, e) < 0 ||
			put_bytes(b, a->xattrs[i].value, a->xattrs[i].len, e) < 0)
			return -1;
	return 0;
}

static int put_entry(struct buf *b, const struct entry *en, struct err *e)
{
	bool put = en->kind == ENTRY_PUT;
	uint8_t first =
		(uint8_t)((put ? (unsigned)en->a.type : 0) | (unsigned)en->kind << TYPE_BITS |
			  (unsigned)en->pruned << (TYPE_BITS + KIND_BITS));

	if (buf_add(b, &first, 1, e) < 0 || put_text(b, en->path, e) < 0)
		return -1;
	return put ? put_attr(b, &en->a, e) : 0;
}

int entries_encode(const struct entries *l, struct buf *b, struct err *e)
{
	auto_buf struct buf body = BUF_INIT(body_max);
	uint8_t header[HEADER] = MAGIC;
	struct digest d;
	size_t at = b->len, bound, n;

	for (size_t i = 0; i < l->n; i++)
		if (put_entry(&body, &l->v[i], e) < 0)
			return err_ctx(e, "list of a layer");
	d = digest_of(body.data, body.len);
	index_set(header + 8, VERSION, 4);
	index_set(header + 12, ZSTD, 4);
	index_set(header + 16, body.len, 8);
	index_set(header + 24, l->n, 8);
	memcpy(header + 32, d.b, DIGEST_SIZE);
	bound = ZSTD_compressBound(body.len);
	if (buf_add(b, header, HEADER, e) < 0 || buf_reserve(b, bound, e) < 0)
		return err_ctx(e, "list of a layer");
	n = ZSTD_compress(b->data + b->len, bound, body.data, body.len, LEVEL);
	if (ZSTD_isError(n))
		return err_set(e, ERR_SYSTEM, "list of a layer: %s", ZSTD_getErrorName(n));
	if (body.len <= (uint64_t)n * RATIO_MAX + RATIO_FREE) {
		b->len += n;
		b->data[b->len] = '\0';
		return 0;
	}
	index_set((uint8_t *)b->data + at + 12, PLAIN, 4);
	return buf_add(b, body.data, body.len, e);
}

/* ---- decoding ---- */

struct decode {
	const uint8_t *p;
	size_t left;
	struct entries *l;
	struct xattr xattrs[TREE_XATTRS_MAX];
	char text[TREE_PATH_MAX + 1];
};

static int bad(struct err *e, const char *what)
{
	return err_set(e, ERR_CORRUPT, "%s", what);
}

/* At most max; one number has one way to be written. */
static int get_number(struct decode *d, uint64_t max, uint64_t *v, struct err *e)
{
	*v = 0;
	for (unsigned shift = 0; d->left > 0 && shift < 64; shift += 7) {
		uint8_t c = *d->p++;

		d->left--;
		if (shift == 63 && c > 1)
			break;
		*v |= (uint64_t)(c & 0x7f) << shift;
		if (c & 0x80)
			continue;
		if (c == 0 && shift > 0)
			break;
		return *v <= max ? 0 : bad(e, "a number beyond its limit");
	}
	return bad(e, "a number that ends early, or is too long");
}

static int get_u32(struct decode *d, uint32_t max, uint32_t *out, struct err *e)
{
	uint64_t v;

	if (get_number(d, max, &v, e) < 0)
		return -1;
	*out = (uint32_t)v;
	return 0;
}

static int get_bytes(struct decode *d, size_t max, const void **p, size_t *n, struct err *e)
{
	uint64_t v;

	*p = NULL;
	*n = 0;
	if (get_number(d, max, &v, e) < 0)
		return -1;
	if (v > d->left)
		return bad(e, "it ends early");
	*p = d->p;
	*n = (size_t)v;
	d->p += v;
	d->left -= (size_t)v;
	return 0;
}

/* Into d->text. */
static int get_text(struct decode *d, struct err *e)
{
	const void *p = NULL;
	size_t n = 0;

	if (get_bytes(d, TREE_PATH_MAX, &p, &n, e) < 0)
		return -1;
	if (memchr(p, '\0', n))
		return bad(e, "a NUL in a text");
	memcpy(d->text, p, n);
	d->text[n] = '\0';
	return 0;
}

static int get_chunks(struct decode *d, struct attr *a, struct err *e)
{
	uint64_t n;

	if (get_number(d, INT64_MAX, &a->size, e) < 0)
		return -1;
	n = a->size / CHUNK_SIZE + (a->size % CHUNK_SIZE != 0);
	if (n > d->left / DIGEST_SIZE || n > UINT32_MAX)
		return bad(e, "a file with fewer chunks than its size needs");
	a->nchunks = (uint32_t)n;
	if (n == 0)
		return 0;
	a->chunks = arena_alloc(&d->l->arena, (size_t)n * sizeof(*a->chunks));
	for (uint32_t i = 0; i < a->nchunks; i++) {
		uint64_t rest = a->size - (uint64_t)i * CHUNK_SIZE;
		struct chunk *c = &a->chunks[i];

		memcpy(c->digest.b, d->p, DIGEST_SIZE);
		c->length = rest < CHUNK_SIZE ? (uint32_t)rest : CHUNK_SIZE;
		c->block = CHUNK_NO_BLOCK;
		c->layer = CHUNK_NO_LAYER;
		d->p += DIGEST_SIZE;
		d->left -= DIGEST_SIZE;
	}
	return 0;
}

static int get_of_type(struct decode *d, struct attr *a, struct err *e)
{
	switch (a->type) {
	case NODE_FILE:
		return get_chunks(d, a, e);
	case NODE_SYMLINK:
	case NODE_HARDLINK:
		if (get_text(d, e) < 0)
			return -1;
		a->target = arena_strdup(&d->l->arena, d->text);
		return 0;
	case NODE_CHAR:
	case NODE_BLOCK:
		return get_u32(d, UINT32_MAX, &a->major, e) < 0
			       ? -1
			       : get_u32(d, UINT32_MAX, &a->minor, e);
	case NODE_DIR:
	case NODE_FIFO:
		return 0;
	}
	return bad(e, "an unknown type");
}

static int get_xattrs(struct decode *d, struct attr *a, struct err *e)
{
	struct arena *arena = &d->l->arena;

	if (get_u32(d, TREE_XATTRS_MAX, &a->nxattrs, e) < 0)
		return -1;
	for (uint32_t i = 0; i < a->nxattrs; i++) {
		struct xattr *x = &d->xattrs[i];
		const void *value = NULL;

		if (get_text(d, e) < 0)
			return -1;
		x->name = arena_strdup(arena, d->text);
		if (get_bytes(d, TREE_XATTR_VALUE_MAX, &value, &x->len, e) < 0)
			return -1;
		x->value = arena_dup(arena, value, x->len);
	}
	if (a->nxattrs)
		a->xattrs = arena_dup(arena, d->xattrs, a->nxattrs * sizeof(*a->xattrs));
	return 0;
}

static int get_attr(struct decode *d, struct attr *a, struct err *e)
{
	uint64_t mtime;

	if (get_u32(d, 07777, &a->mode, e) < 0 || get_u32(d, UINT32_MAX, &a->uid, e) < 0 ||
		get_u32(d, UINT32_MAX, &a->gid, e) < 0 || get_number(d, UINT64_MAX, &mtime, e) < 0)
		return -1;
	a->mtime = (int64_t)(mtime >> 1 ^ (mtime & 1 ? UINT64_MAX : 0));
	if (get_of_type(d, a, e) < 0 || get_xattrs(d, a, e) < 0)
		return -1;
	return attr_check(a, e);
}

static int get_entry(struct decode *d, struct err *e)
{
	struct entry *en;
	unsigned first, kind, type;

	if (d->left == 0)
		return bad(e, "it ends early");
	first = *d->p++;
	d->left--;
	type = first & ((1 << TYPE_BITS) - 1);
	kind = first >> TYPE_BITS & ((1 << KIND_BITS) - 1);
	if (first >> (TYPE_BITS + KIND_BITS) > 1 || kind > ENTRY_OPAQUE ||
		(type == 0) != (kind != ENTRY_PUT))
		return bad(e, "an unknown kind");
	if (get_text(d, e) < 0 || tree_check_path(d->text, e) < 0)
		return -1;
	if (!*d->text && (kind == ENTRY_WHITEOUT || (kind == ENTRY_PUT && type != NODE_DIR)))
		return bad(e, "the root is a folder");
	en = entries_add(d->l, d->text);
	en->kind = (enum entry_kind)kind;
	en->pruned = first >> (TYPE_BITS + KIND_BITS);
	en->a.type = (enum node_type)type;
	return kind == ENTRY_PUT ? get_attr(d, &en->a, e) : 0;
}

/* Point d at the body; *own is what to free. */
static int open_body(struct decode *d, const uint8_t *p, size_t n, uint8_t **own, struct err *e)
{
	uint64_t body = index_get(p + 16, 8);
	uint64_t encoding = index_get(p + 12, 4);
	struct digest want, found;
	size_t rc;

	d->p = p + HEADER;
	d->left = n - HEADER;
	if (encoding == ZSTD) {
		if (body > body_max || body > (uint64_t)d->left * RATIO_MAX + RATIO_FREE)
			return bad(e, "a body that is too long for its frame");
		rc = ZSTD_findFrameCompressedSize(d->p, d->left);
		if (ZSTD_isError(rc) || rc != d->left ||
			ZSTD_getFrameContentSize(d->p, d->left) != body)
			return bad(e, "not one zstd frame of the body's length");
		*own = mem_alloc((size_t)body + 1);
		rc = ZSTD_decompress(*own, (size_t)body, d->p, d->left);
		if (ZSTD_isError(rc) || rc != body)
			return bad(e, "a damaged zstd frame");
		d->p = *own;
		d->left = (size_t)body;
	}
	if (encoding > ZSTD || d->left != body)
		return bad(e, "an unknown encoding, or not as long as it says");
	memcpy(want.b, p + 32, DIGEST_SIZE);
	found = digest_of(d->p, d->left);
	return digest_eq(&want, &found) ? 0 : bad(e, "its digest is not the body's");
}

static int decode(struct decode *d, const uint8_t *p, size_t n, struct err *e)
{
	auto_free uint8_t *own = NULL;
	uint64_t count;

	if (n < HEADER || memcmp(p, MAGIC, 8) != 0)
		return bad(e, "not such a list");
	if (index_get(p + 8, 4) != VERSION)
		return err_set(e, ERR_UNSUPPORTED, "version %" PRIu64 ", not %d",
			index_get(p + 8, 4), VERSION);
	if (open_body(d, p, n, &own, e) < 0)
		return -1;
	count = index_get(p + 24, 8);
	if (count > TREE_NODES_MAX)
		return bad(e, "too many entries");
	for (uint64_t i = 0; i < count; i++)
		if (get_entry(d, e) < 0)
			return err_ctx(e, "entry %" PRIu64, i);
	return d->left == 0 ? 0 : bad(e, "bytes behind the last entry");
}

int entries_decode(struct entries *l, const void *p, size_t n, struct err *e)
{
	auto_free struct decode *d = mem_alloc(sizeof(*d));

	*l = (struct entries){0};
	d->l = l;
	if (decode(d, p, n, e) == 0)
		return 0;
	entries_fini(l);
	return err_ctx(e, "list of a layer");
}
