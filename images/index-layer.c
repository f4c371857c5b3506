/* Writing the tiny layer that carries the index. Reading it is in index-place.c. */
#include "images/index.h"

#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "images/index-format.h"
#include "images/tar.h"

enum { SKIPPABLE_MAGIC = 0x184D2A50 };

static const char tar_end[TAR_END];

static void put16(uint8_t *p, size_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
}

static void put32(uint8_t *p, size_t v)
{
	put16(p, v);
	put16(p + 2, v >> 16);
}

/* The end of a tar as a zstd frame, then the payload in one skippable frame. */
static int write_zstd(
	struct blob_writer *w, const uint8_t *payload, size_t n, uint64_t *at, struct err *e)
{
	uint8_t frame[ZSTD_COMPRESSBOUND(TAR_END)], head[8];
	size_t length = ZSTD_compress(frame, sizeof(frame), tar_end, sizeof(tar_end), 1);

	put32(head, SKIPPABLE_MAGIC);
	put32(head + 4, n);
	*at = length + sizeof(head);
	return store_blob_add(w, frame, length, e) < 0 ||
			       store_blob_add(w, head, sizeof(head), e) < 0
		       ? -1
		       : store_blob_add(w, payload, n, e);
}

/* The end of a tar as a gzip member with one stored block, then the payload in the extra fields of
 * members that decode to nothing (RFC 1952 2.3.1.1), 64 KiB at a time. */
static int write_gzip(
	struct blob_writer *w, const uint8_t *payload, size_t n, uint64_t *at, struct err *e)
{
	static const uint8_t head[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff, 1, TAR_END & 0xff,
		TAR_END >> 8, ~TAR_END & 0xff, (~TAR_END >> 8) & 0xff};
	static const uint8_t tail[GZIP_CARRIER_TAIL] = {
		3}; /* an empty last block, CRC 0, length 0 */
	uint8_t sum[8];

	put32(sum, crc32(0, (const Bytef *)tar_end, sizeof(tar_end)));
	put32(sum + 4, TAR_END);
	*at = sizeof(head) + sizeof(tar_end) + sizeof(sum);
	if (store_blob_add(w, head, sizeof(head), e) < 0 ||
		store_blob_add(w, tar_end, sizeof(tar_end), e) < 0 ||
		store_blob_add(w, sum, sizeof(sum), e) < 0)
		return -1;
	for (size_t done = 0, k; done < n; done += k) {
		uint8_t member[GZIP_CARRIER_HEAD];

		k = n - done < GZIP_CARRIER_MAX ? n - done : GZIP_CARRIER_MAX;
		memcpy(member, gzip_carrier_magic, sizeof(gzip_carrier_magic));
		put16(member + 10, k + 4);
		memcpy(member + 12, "SV", 2);
		put16(member + 14, k);
		if (store_blob_add(w, member, sizeof(member), e) < 0 ||
			store_blob_add(w, payload + done, k, e) < 0 ||
			store_blob_add(w, tail, sizeof(tail), e) < 0)
			return -1;
	}
	return 0;
}

/* What lies at [at, end of the blob), hashed. */
static int place_of(
	struct store *s, struct layer *l, uint64_t at, struct index_place *place, struct err *e)
{
	auto_buf struct buf b = {0};

	if (store_blob_read(s, &l->digest, l->size, &b, e) < 0)
		return -1;
	*place = (struct index_place){.layer = l->digest,
		.offset = at,
		.length = l->size - at,
		.digest = digest_of(b.data + at, l->size - at)};
	return 0;
}

int index_layer_write(struct store *s, enum codec codec, const void *payload, size_t n,
	struct layer *l, struct index_place *place, struct err *e)
{
	struct blob_writer w;
	uint64_t at;
	int rc;

	if (n == 0 || n > INDEX_BYTES_MAX)
		return err_set(e, ERR_CORRUPT, "an image index of %zu bytes", n);
	*l = (struct layer){.id = "index",
		.codec = codec,
		.tar_size = TAR_END,
		.diff_id = digest_of(tar_end, TAR_END)};
	if (store_blob_begin(s, &w, e) < 0)
		return -1;
	rc = codec == CODEC_GZIP ? write_gzip(&w, payload, n, &at, e)
				 : write_zstd(&w, payload, n, &at, e);
	l->size = w.size;
	if (rc == 0)
		rc = store_blob_commit(&w, &l->digest, e);
	store_blob_abort(&w);
	return rc == 0 ? place_of(s, l, at, place, e) : -1;
}
