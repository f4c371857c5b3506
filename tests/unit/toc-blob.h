/* Layers with a table of contents, made from formats.md: zstd:chunked and eStargz. */
#ifndef TOC_BLOB_H
#define TOC_BLOB_H

#include <assert.h>
#include <stdlib.h>

#include "images/digest.h"
#include "images/frame.h"
#include "images/toc.h"
#include "tests/unit/test.h"

struct toc_blob {
	enum codec codec;
	struct encoder *encoder;
	struct buf blob, frame, json; /* frame: what the current one will hold */
	uint64_t tar_size;
	bool shared; /* eStargz: several files in one member, with innerOffset */
	struct digest digest;
	uint64_t toc_offset, toc_packed, toc_plain;
	struct digest toc_digest;
	struct descriptor layer;
	json_t *annotations;
};

static inline void toc_blob_init(struct toc_blob *b, enum codec codec)
{
	*b = (struct toc_blob){.codec = codec,
		.blob = BUF_INIT(256 << 20),
		.frame = BUF_INIT(256 << 20),
		.json = BUF_INIT(64 << 20)};
	b->encoder = encoder_new(codec, 1, NULL);
	assert_non_null(b->encoder);
	buf_printf(&b->json, "{\"version\":1,\"entries\":[");
}

static inline void toc_blob_fini(struct toc_blob *b)
{
	encoder_free(b->encoder);
	buf_fini(&b->blob);
	buf_fini(&b->frame);
	buf_fini(&b->json);
	json_decref(b->annotations);
}

static inline void toc_blob_flush(struct toc_blob *b)
{
	size_t len, room = frame_bound(b->codec, b->frame.len);

	if (b->frame.len == 0)
		return;
	assert_int_equal(buf_reserve(&b->blob, room, NULL), 0);
	assert_int_equal(encoder_frame(b->encoder, b->frame.data, b->frame.len,
				 b->blob.data + b->blob.len, &len, NULL),
		0);
	b->blob.len += len;
	b->tar_size += b->frame.len;
	b->frame.len = 0;
}

static inline void toc_blob_pad(struct toc_blob *b)
{
	static const char zeros[512];

	buf_put(&b->frame, zeros, (512 - (b->tar_size + b->frame.len) % 512) % 512);
}

/* A ustar header. */
static inline void toc_blob_header(
	struct toc_blob *b, char type, const char *name, const char *link, uint64_t size)
{
	char h[512] = {0};
	unsigned sum = 0;

	toc_blob_pad(b);
	snprintf(h, 100, "%s", name);
	snprintf(h + 100, 8, "%07o", 0644);
	snprintf(h + 108, 8, "%07o", 1000);
	snprintf(h + 116, 8, "%07o", 100);
	snprintf(h + 124, 12, "%011llo", (unsigned long long)size);
	snprintf(h + 136, 12, "%011o", 1700000000);
	memset(h + 148, ' ', 8);
	h[156] = type;
	snprintf(h + 157, 100, "%s", link);
	memcpy(h + 257, "ustar\00000", 8);
	for (unsigned i = 0; i < sizeof(h); i++)
		sum += (unsigned char)h[i];
	snprintf(h + 148, 8, "%06o", sum);
	buf_put(&b->frame, h, sizeof(h));
}

static inline void toc_blob_entry(
	struct toc_blob *b, const char *type, const char *name, const char *link)
{
	buf_printf(&b->json, "%s{\"type\":\"%s\",\"name\":\"%s\",\"linkName\":\"%s\",\"mode\":420,",
		b->json.data[b->json.len - 1] == '[' ? "" : ",", type, name, link);
	buf_printf(&b->json,
		"\"uid\":1000,\"gid\":100,\"modtime\":\"2023-11-14T22:13:20Z\",\"NumLink\":0");
}

static inline void toc_blob_object(
	struct toc_blob *b, char tar_type, const char *type, const char *name, const char *link)
{
	toc_blob_header(b, tar_type, name, link, 0);
	toc_blob_entry(b, type, name, link);
	buf_printf(&b->json, "}");
}

enum { TOC_NO_CHUNK_DIGEST = 1, TOC_ZEROS = 2, TOC_NO_DIGEST = 4, TOC_WRONG_DIGEST = 8 };

static inline void toc_blob_chunk(struct toc_blob *b, uint64_t at, const unsigned char *p, size_t n,
	bool only, bool last, unsigned flags)
{
	struct digest d = digest_of(p, n);
	char text[DIGEST_TEXT + 1];

	if (!b->shared || b->frame.len > 200000)
		toc_blob_flush(b);
	buf_printf(&b->json, ",\"offset\":%zu,\"chunkOffset\":%llu", b->blob.len,
		(unsigned long long)at);
	if (b->frame.len)
		buf_printf(&b->json, ",\"innerOffset\":%zu", b->frame.len);
	if (!last || (b->codec == CODEC_ZSTD && !only))
		buf_printf(&b->json, ",\"chunkSize\":%zu", n);
	d.b[0] ^= flags & TOC_WRONG_DIGEST ? 1 : 0;
	if (!(flags & TOC_NO_CHUNK_DIGEST))
		buf_printf(&b->json, ",\"chunkDigest\":\"%s\"", digest_text(&d, text));
	if (flags & TOC_ZEROS)
		buf_printf(&b->json, ",\"chunkType\":\"zeros\"");
	buf_printf(&b->json, "}");
	buf_put(&b->frame, p, n);
	/* in zstd:chunked nothing else may be in a chunk's frame */
	if (b->codec == CODEC_ZSTD)
		toc_blob_flush(b);
}

static inline void toc_blob_file(struct toc_blob *b, const char *name, const unsigned char *p,
	size_t n, size_t chunk, unsigned flags)
{
	struct digest d = digest_of(p, n);
	char text[DIGEST_TEXT + 1];

	toc_blob_header(b, '0', name, "", n);
	toc_blob_entry(b, "reg", name, "");
	buf_printf(&b->json, ",\"size\":%zu", n);
	if (n == 0) {
		buf_printf(&b->json, "}");
		return;
	}
	if (!(flags & TOC_NO_DIGEST))
		buf_printf(&b->json, ",\"digest\":\"%s\"", digest_text(&d, text));
	for (size_t at = 0; at < n; at += chunk) {
		size_t k = n - at < chunk ? n - at : chunk;

		if (at > 0)
			buf_printf(&b->json, ",{\"type\":\"chunk\",\"name\":\"%s\"", name);
		toc_blob_chunk(b, at, p + at, k, k == n, at + k == n, flags);
	}
}

static inline void toc_blob_le(struct toc_blob *b, uint64_t v, unsigned n)
{
	unsigned char p[8];

	for (unsigned i = 0; i < n; i++)
		p[i] = (unsigned char)(v >> (8 * i));
	buf_put(&b->blob, p, n);
}

static inline void toc_blob_annotate(struct toc_blob *b, const char *prefix)
{
	char digest[DIGEST_TEXT + 1], key[128], position[128];

	b->annotations = json_object();
	digest_text(&b->toc_digest, digest);
	if (b->codec == CODEC_GZIP) {
		json_object_set_new(b->annotations, "containerd.io/snapshot/stargz/toc.digest",
			json_string(digest));
		return;
	}
	snprintf(position, sizeof(position), "%llu:%llu:%llu:1", (unsigned long long)b->toc_offset,
		(unsigned long long)b->toc_packed, (unsigned long long)b->toc_plain);
	snprintf(key, sizeof(key), "%s.zstd-chunked.manifest-checksum", prefix);
	json_object_set_new(b->annotations, key, json_string(digest));
	snprintf(key, sizeof(key), "%s.zstd-chunked.manifest-position", prefix);
	json_object_set_new(b->annotations, key, json_string(position));
}

static inline void toc_blob_end_zstd(struct toc_blob *b)
{
	static const char zeros[1024];
	size_t len, room = frame_bound(CODEC_ZSTD, b->json.len);

	toc_blob_pad(b);
	buf_put(&b->frame, zeros, sizeof(zeros));
	toc_blob_flush(b);
	toc_blob_le(b, 0x184d2a50, 4);
	toc_blob_le(b, 0, 4);
	b->toc_offset = b->blob.len;
	assert_int_equal(buf_reserve(&b->blob, room, NULL), 0);
	assert_int_equal(encoder_frame(b->encoder, b->json.data, b->json.len,
				 b->blob.data + b->blob.len, &len, NULL),
		0);
	b->toc_packed = len;
	b->toc_plain = b->json.len;
	b->toc_digest = digest_of(b->blob.data + b->blob.len, len);
	for (unsigned i = 0; i < 4; i++)
		b->blob.data[b->toc_offset - 4 + i] = (char)(len >> (8 * i));
	b->blob.len += len;
	toc_blob_le(b, 0x184d2a50, 4); /* a footer, or a tar-split: nobody reads it */
	toc_blob_le(b, 8, 4);
	toc_blob_le(b, 1, 8);
}

static inline void toc_blob_end_gzip(struct toc_blob *b)
{
	static const char zeros[1024];
	static const char head[] = "\x1f\x8b\x08\x04\0\0\0\0\0\xff\x1a\0SG\x16\0",
			  tail[] = "STARGZ\x01\0\0\xff\xff\0\0\0\0\0\0\0";

	b->shared = false;
	toc_blob_pad(b);
	toc_blob_flush(b);
	b->toc_offset = b->blob.len;
	toc_blob_header(b, '0', "stargz.index.json", "", b->json.len);
	buf_put(&b->frame, b->json.data, b->json.len);
	b->toc_digest = digest_of(b->json.data, b->json.len);
	toc_blob_pad(b);
	buf_put(&b->frame, zeros, sizeof(zeros));
	toc_blob_flush(b);
	buf_put(&b->blob, head, 16);
	buf_printf(&b->blob, "%016llx", (unsigned long long)b->toc_offset);
	buf_put(&b->blob, tail, 19);
}

/* prefix: of the annotations of zstd:chunked. */
static inline void toc_blob_end(struct toc_blob *b, const char *prefix)
{
	buf_printf(&b->json, "]}");
	if (b->codec == CODEC_ZSTD)
		toc_blob_end_zstd(b);
	else
		toc_blob_end_gzip(b);
	b->digest = digest_of(b->blob.data, b->blob.len);
	toc_blob_annotate(b, prefix);
	b->layer = (struct descriptor){
		.digest = b->digest, .size = b->blob.len, .annotations = b->annotations};
}

#endif
