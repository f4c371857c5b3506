#include "images/toc-table.h"

#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "images/decompress.h"
#include "images/member.h"
#include "images/tar-read.h"
#include "images/unpack.h"

/* ---- a range of the blob, in order ---- */

struct range {
	struct source source;
	struct piece *v;
	struct stream *stream;
	struct piece *piece; /* the one that the reader has, or NULL */
	struct hash hash;    /* of what has passed */
};

static int range_next(struct source *s, const void **data, size_t *n, struct err *e)
{
	struct range *r = (struct range *)(void *)s;
	int rc;

	if (r->piece)
		stream_release(r->stream, steal_ptr(&r->piece));
	rc = stream_next(r->stream, &r->piece, e);
	if (rc <= 0) {
		r->piece = NULL;
		return rc;
	}
	hash_add(&r->hash, r->piece->data, r->piece->length);
	*data = r->piece->data;
	*n = r->piece->length;
	return 1;
}

static void range_open(struct range *r, struct download *d, const struct descriptor *layer,
	uint64_t offset, uint64_t length)
{
	size_t n = (size_t)((length + PIECE_MAX - 1) / PIECE_MAX);

	*r = (struct range){.source.next = range_next, .v = mem_array(n, sizeof(*r->v))};
	hash_init(&r->hash, HASH_SHA256);
	for (size_t i = 0; i < n; i++) {
		r->v[i] = (struct piece){.blob = &layer->digest,
			.blob_size = layer->size,
			.offset = offset,
			.length = length < PIECE_MAX ? (uint32_t)length : PIECE_MAX};
		offset += r->v[i].length;
		length -= r->v[i].length;
	}
	r->stream = stream_open(d, r->v, n, true);
}

static void range_close(struct range *r)
{
	stream_close(r->stream);
	free(r->v);
}

/* ---- zstd:chunked ---- */

static int fetch_zstd(struct toc *t, const struct descriptor *layer, const struct toc_place *p,
	struct download *d, struct entries *out, struct err *e)
{
	const struct toc_rules rules = {.name = "table of contents",
		.codec = CODEC_ZSTD,
		.blob_size = layer->size,
		.data_end = p->offset - 8, /* of the skippable frame's header */
		.max_bytes = unpack_limit(layer->size)};
	struct decompress *plain;
	struct digest found;
	struct range range;
	int rc = -1;

	range_open(&range, d, layer, p->offset, p->packed);
	plain = decompress_new(CODEC_ZSTD, &range.source, p->plain, rules.name, e);
	if (plain)
		rc = toc_parse(t, decompress_source(plain), &rules, out, e);
	if (rc == 0) {
		found = hash_digest(&range.hash);
		rc = digest_check(&p->digest, &found, e, "%s", rules.name);
	}
	decompress_free(plain);
	range_close(&range);
	return rc;
}

/* ---- eStargz ---- */

/* The text of the table: hashed, and handed to the sink as the file that it is. */
struct text {
	struct source source;
	struct tar_reader *reader;
	struct hash hash;
	struct sink *sink;
	unsigned char *buf; /* of the sink, or NULL */
	uint32_t fill;
	struct chunk *chunks;
	uint32_t nchunks, done;
};

static void text_put(struct text *x)
{
	if (x->fill)
		sink_put(x->sink, steal_ptr(&x->buf), x->fill, &x->chunks[x->done++], NULL);
	x->fill = 0;
}

static int text_next(struct source *s, const void **data, size_t *n, struct err *e)
{
	struct text *x = (struct text *)(void *)s;
	int rc = tar_reader_take(x->reader, CHUNK_SIZE - x->fill, data, n, e);

	if (rc <= 0)
		return rc;
	hash_add(&x->hash, *data, *n);
	if (!x->buf)
		x->buf = sink_buffer(x->sink);
	memcpy(x->buf + x->fill, *data, *n);
	x->fill += (uint32_t)*n;
	if (x->fill == CHUNK_SIZE)
		text_put(x);
	return 1;
}

static int add_text_file(const struct descriptor *layer, const struct tar_member *m,
	const struct text *x, struct entries *out, struct err *e)
{
	struct members members;
	struct entry *en;

	members_init(&members, "table of contents", layer->size, out);
	if (members_add(&members, m, &en, e) < 0)
		return -1;
	en->a.chunks = x->chunks;
	en->a.nchunks = x->nchunks;
	return 0;
}

static int parse_text(struct toc *t, const struct toc_rules *rules, const struct descriptor *layer,
	const struct toc_place *p, struct text *x, const struct tar_member *m, struct entries *out,
	struct err *e)
{
	struct digest found;

	if (m->type != '0' || !str_eq(m->name, "stargz.index.json"))
		return err_set(e, ERR_CORRUPT, "%s: the layer's last file is '%.100s'", rules->name,
			m->name);
	if (m->size == 0 || m->size > TOC_BYTES_MAX)
		return err_set(e, ERR_UNSUPPORTED, "%s: %" PRIu64 " bytes; the limit is %d",
			rules->name, m->size, TOC_BYTES_MAX);
	x->nchunks = (uint32_t)((m->size + CHUNK_SIZE - 1) / CHUNK_SIZE);
	x->chunks = arena_alloc(&out->arena, x->nchunks * sizeof(*x->chunks));
	for (uint32_t i = 0; i < x->nchunks; i++) {
		x->chunks[i].block = CHUNK_NO_BLOCK;
		x->chunks[i].layer = CHUNK_NO_LAYER;
	}
	if (toc_parse(t, &x->source, rules, out, e) < 0)
		return -1;
	text_put(x);
	found = hash_digest(&x->hash);
	return digest_check(&p->digest, &found, e, "%s", rules->name) < 0
		       ? -1
		       : add_text_file(layer, m, x, out, e);
}

static int read_footer(
	const struct descriptor *layer, struct download *d, uint64_t *offset, struct err *e)
{
	struct range range;
	const void *data;
	size_t n = 0;
	int rc;

	range_open(&range, d, layer, layer->size - TOC_STARGZ_FOOTER, TOC_STARGZ_FOOTER);
	rc = range_next(&range.source, &data, &n, e);
	if (rc > 0)
		rc = toc_stargz_footer(data, layer->size, offset, e);
	range_close(&range);
	return rc;
}

static int fetch_stargz(struct toc *t, const struct descriptor *layer, const struct toc_place *p,
	struct download *d, struct sink *sink, struct entries *out, struct err *e)
{
	struct toc_rules rules = {.name = "table of contents",
		.codec = CODEC_GZIP,
		.blob_size = layer->size,
		.max_bytes = unpack_limit(layer->size)};
	struct text x = {.source.next = text_next, .sink = sink};
	const struct tar_member *m;
	struct decompress *plain;
	struct range range;
	int rc = -1;

	if (read_footer(layer, d, &rules.data_end, e) < 0)
		return -1;
	range_open(
		&range, d, layer, rules.data_end, layer->size - TOC_STARGZ_FOOTER - rules.data_end);
	hash_init(&x.hash, HASH_SHA256);
	plain = decompress_new(CODEC_GZIP, &range.source,
		(uint64_t)TOC_BYTES_MAX + TAR_EXTENDED_MAX, rules.name, e);
	if (plain) {
		x.reader = tar_reader_new(decompress_source(plain), rules.name);
		rc = tar_reader_next(x.reader, &m, e);
		if (rc == 0)
			rc = err_set(e, ERR_CORRUPT, "%s: there is none", rules.name);
		if (rc > 0)
			rc = parse_text(t, &rules, layer, p, &x, m, out, e);
		if (x.buf)
			sink_put(sink, x.buf, 0, NULL, NULL);
		tar_reader_free(x.reader);
	}
	decompress_free(plain);
	range_close(&range);
	return rc;
}

int toc_table_fetch(struct toc *t, const struct descriptor *layer, enum codec codec,
	const struct toc_place *p, struct download *d, struct sink *sink, struct entries *out,
	struct err *e)
{
	*t = (struct toc){0};
	return codec == CODEC_ZSTD ? fetch_zstd(t, layer, p, d, out, e)
				   : fetch_stargz(t, layer, p, d, sink, out, e);
}
