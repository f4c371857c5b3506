#include "images/index.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <zstd.h>

#include "base/str.h"
#include "base/sys.h"
#include "images/tar.h"

enum { SKIPPABLE_MAGIC = 0x184D2A50, SKIPPABLE_HEADER = 8 };

static void put32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

/* The end of a tar as a zstd frame, then the header of the skippable frame. */
static size_t make_head(uint8_t *out, size_t size, size_t payload)
{
	static const char end[TAR_END];
	size_t n = ZSTD_compress(out, size - SKIPPABLE_HEADER, end, sizeof(end), 1);

	put32(out + n, SKIPPABLE_MAGIC);
	put32(out + n + 4, (uint32_t)payload);
	return n + SKIPPABLE_HEADER;
}

int index_layer_write(struct store *s, const void *payload, size_t n, struct layer *l,
	struct index_place *place, struct err *e)
{
	static const char end[TAR_END];
	uint8_t head[ZSTD_COMPRESSBOUND(TAR_END) + SKIPPABLE_HEADER];
	size_t at = make_head(head, sizeof(head), n);
	struct blob_writer w;
	int rc = -1;

	if (n == 0 || n > INDEX_BYTES_MAX)
		return err_set(e, ERR_CORRUPT, "an image index of %zu bytes", n);
	*l = (struct layer){.id = "index", .codec = CODEC_ZSTD, .level = 1, .tar_size = TAR_END};
	if (store_blob_begin(s, &w, e) < 0)
		return -1;
	if (store_blob_add(&w, head, at, e) == 0 && store_blob_add(&w, payload, n, e) == 0) {
		l->size = w.size;
		rc = store_blob_commit(&w, &l->digest, e);
	}
	store_blob_abort(&w);
	l->diff_id = digest_of(end, sizeof(end));
	*place = (struct index_place){
		.layer = l->digest, .offset = at, .length = n, .digest = digest_of(payload, n)};
	return rc;
}

int index_place_format(const struct index_place *p, char out[256])
{
	char layer[DIGEST_TEXT + 1], hex[DIGEST_HEX + 1];

	return snprintf(out, 256, "1:%s:%" PRIu64 ":%" PRIu64 ":%s", digest_text(&p->layer, layer),
		p->offset, p->length, digest_hex(&p->digest, hex));
}

/* "123:": a number and the colon after it; NULL when it is not one. */
static const char *parse_number(const char *text, uint64_t max, uint64_t *v)
{
	char number[24];
	const char *end = strchr(text, ':');

	if (!end || (size_t)(end - text) >= sizeof(number))
		return NULL;
	memcpy(number, text, (size_t)(end - text));
	number[end - text] = '\0';
	return str_u64(number, max, v) == 0 ? end + 1 : NULL;
}

static int parse_place(struct index_place *p, const char *text)
{
	char layer[DIGEST_TEXT + 1];

	if (strnlen(text, 256) < 2 + DIGEST_TEXT + 1 || memcmp(text, "1:", 2) != 0 ||
		text[2 + DIGEST_TEXT] != ':')
		return -1;
	memcpy(layer, text + 2, DIGEST_TEXT);
	layer[DIGEST_TEXT] = '\0';
	if (digest_parse(&p->layer, layer, NULL) < 0)
		return -1;
	text = parse_number(text + 2 + DIGEST_TEXT + 1, INT64_MAX, &p->offset);
	text = text ? parse_number(text, INDEX_BYTES_MAX, &p->length) : NULL;
	if (!text || p->length == 0 || strnlen(text, DIGEST_HEX + 1) != DIGEST_HEX)
		return -1;
	return digest_from_hex(&p->digest, text);
}

int index_place_parse(struct index_place *p, const char *text, struct err *e)
{
	if (parse_place(p, text) < 0)
		return err_set(e, ERR_CORRUPT, "annotation %s: '%.200s' names no place",
			INDEX_ANNOTATION, text);
	return 0;
}

int index_read(struct store *s, const struct index_place *place, struct buf *b, struct err *e)
{
	char want[DIGEST_TEXT + 1], got[DIGEST_TEXT + 1], layer[DIGEST_TEXT + 1];
	struct digest found;
	uint64_t size;
	auto_fd int fd = store_blob_open(s, &place->layer, &size, e);

	if (fd < 0)
		return err_ctx(e, "image index");
	digest_text(&place->layer, layer);
	if (place->offset > size || place->length > size - place->offset)
		return err_set(e, ERR_CORRUPT,
			"image index: %s ends at byte %" PRIu64 ", the index at %" PRIu64, layer,
			size, place->offset + place->length);
	if (buf_reserve(b, place->length, e) < 0)
		return err_ctx(e, "image index");
	if (sys_pread_all(fd, b->data + b->len, place->length, (off_t)place->offset) < 0)
		return err_sys(e, "image index: read %s", layer);
	found = digest_of(b->data + b->len, place->length);
	if (!digest_eq(&found, &place->digest))
		return err_set(e, ERR_CORRUPT, "image index in %s: expected %s, found %s", layer,
			digest_text(&place->digest, want), digest_text(&found, got));
	b->len += place->length;
	b->data[b->len] = '\0';
	return 0;
}
