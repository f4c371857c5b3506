/* Tars made by hand, header by header, and sources that give them in small pieces. */
#ifndef TAR_MAKE_H
#define TAR_MAKE_H

#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/mem.h"
#include "images/layer.h"
#include "images/source.h"
#include "images/tar.h"

#define MAKE_UNUSED __attribute__((unused))

/* A source of memory. Every piece is a block of its own that is gone with the next call, so that
 * whoever holds on to one is found. */
struct mem_source {
	struct source source;
	const unsigned char *data;
	size_t left, step;
	void *piece;
};

static MAKE_UNUSED int mem_source_next(
	struct source *source, const void **data, size_t *n, struct err *e MAKE_UNUSED)
{
	struct mem_source *s = (struct mem_source *)source;
	size_t k = s->left < s->step ? s->left : s->step;

	free(s->piece);
	s->piece = NULL;
	if (k == 0)
		return 0;
	s->piece = mem_dup(s->data, k);
	s->data += k;
	s->left -= k;
	*data = s->piece;
	*n = k;
	return 1;
}

static MAKE_UNUSED void mem_source_init(
	struct mem_source *s, const void *data, size_t n, size_t step)
{
	*s = (struct mem_source){.source.next = mem_source_next,
		.data = data,
		.left = n,
		.step = step ? step : SIZE_MAX};
}

static MAKE_UNUSED void mem_source_fini(struct mem_source *s)
{
	free(s->piece);
}

struct head {
	const char *name;
	char type; /* 0: '0' */
	uint64_t size;
	const char *link;
	uint32_t mode, uid, gid;
	int64_t mtime;
	uint32_t major, minor;
	bool v7;
};

static MAKE_UNUSED void make_sum(char *h)
{
	unsigned sum = 0;

	memset(h + 148, ' ', 8);
	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += (unsigned char)h[i];
	snprintf(h + 148, 8, "%06o", sum);
}

/* Returns where the header is, to be changed; then make_sum(). */
static MAKE_UNUSED char *make_head(struct buf *b, const struct head *m)
{
	char h[TAR_BLOCK] = {0};

	memcpy(h, m->name, strnlen(m->name, 100));
	snprintf(h + 100, 8, "%07o", m->mode);
	snprintf(h + 108, 8, "%07o", m->uid & 07777777);
	snprintf(h + 116, 8, "%07o", m->gid & 07777777);
	snprintf(h + 124, 12, "%011llo", (unsigned long long)m->size & 077777777777);
	snprintf(h + 136, 12, "%011llo", (unsigned long long)m->mtime & 077777777777);
	h[156] = m->type ? m->type : '0';
	if (m->link)
		memcpy(h + 157, m->link, strnlen(m->link, 100));
	if (!m->v7) {
		memcpy(h + 257, "ustar\00000", 8);
		snprintf(h + 329, 8, "%07o", m->major & 07777777);
		snprintf(h + 337, 8, "%07o", m->minor & 07777777);
	}
	make_sum(h);
	buf_put(b, h, sizeof(h));
	return b->data + b->len - TAR_BLOCK;
}

static MAKE_UNUSED void make_data(struct buf *b, const void *data, size_t n)
{
	static const char zeros[TAR_BLOCK];

	buf_put(b, data, n);
	buf_put(b, zeros, -n % TAR_BLOCK);
}

static MAKE_UNUSED void make_end(struct buf *b)
{
	static const char zeros[TAR_END];

	buf_put(b, zeros, sizeof(zeros));
}

/* An extended header of any type: 'x', 'g', 'L', 'K'. */
static MAKE_UNUSED void make_extended(struct buf *b, char type, const void *body, size_t n)
{
	make_head(b, &(struct head){.name = "././@LongLink", .type = type, .size = n});
	make_data(b, body, n);
}

static MAKE_UNUSED void make_record(struct buf *b, const char *key, const void *value, size_t n)
{
	size_t rest = strlen(key) + n + 3, total = rest;
	char text[32];

	for (size_t was = 0; was != total;) {
		was = total;
		total = rest + (size_t)snprintf(text, sizeof(text), "%zu", total);
	}
	buf_printf(b, "%zu %s=", total, key);
	buf_put(b, value, n);
	buf_put(b, "\n", 1);
}

/* An x header with one record. */
static MAKE_UNUSED void make_x(struct buf *b, const char *key, const char *value)
{
	struct buf r = BUF_INIT(1 << 20);

	make_record(&r, key, value, strlen(value));
	make_extended(b, 'x', r.data, r.len);
	buf_fini(&r);
}

static MAKE_UNUSED void make_file(struct buf *b, const char *name, const char *text)
{
	make_head(b, &(struct head){.name = name, .size = strlen(text), .mode = 0644});
	make_data(b, text, strlen(text));
}

static MAKE_UNUSED void make_dir(struct buf *b, const char *name)
{
	make_head(b, &(struct head){.name = name, .type = '5', .mode = 0755});
}

static MAKE_UNUSED void make_link(struct buf *b, const char *name, char type, const char *target)
{
	make_head(b, &(struct head){.name = name, .type = type, .link = target});
}

/* What the codec makes of n bytes, in one frame or member; to free(). */
static MAKE_UNUSED void make_packed(enum codec codec, const void *p, size_t n, struct buf *out)
{
	if (codec == CODEC_NONE) {
		buf_put(out, p, n);
	} else if (codec == CODEC_ZSTD) {
		size_t bound = ZSTD_compressBound(n);
		void *q = mem_alloc(bound);

		buf_put(out, q, ZSTD_compress(q, bound, p, n, 1));
		free(q);
	} else {
		z_stream z = {0};
		size_t bound = n + n / 16 + 1024;
		unsigned char *q = mem_alloc(bound);

		(void)deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
		z.next_in = (unsigned char *)(uintptr_t)p;
		z.avail_in = (unsigned)n;
		z.next_out = q;
		z.avail_out = (unsigned)bound;
		(void)deflate(&z, Z_FINISH);
		buf_put(out, q, z.total_out);
		deflateEnd(&z);
		free(q);
	}
}

#endif
