/* Where an image's index lies, and reading it from there. */
#include "images/index.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/sys.h"
#include "images/index-format.h"

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

/* Take the payload out of the gzip members that carry it, in place. -1 when they are not what
 * index_layer_write() makes. */
static int unwrap_gzip(char *data, size_t *n)
{
	uint8_t *p = (uint8_t *)data;
	size_t in = 0, out = 0;

	while (in < *n) {
		size_t k;

		if (*n - in < GZIP_CARRIER_HEAD + GZIP_CARRIER_TAIL ||
			memcmp(p + in, gzip_carrier_magic, sizeof(gzip_carrier_magic)) != 0 ||
			memcmp(p + in + 12, "SV", 2) != 0)
			return -1;
		k = (size_t)p[in + 14] | (size_t)p[in + 15] << 8;
		if (k > *n - in - GZIP_CARRIER_HEAD - GZIP_CARRIER_TAIL)
			return -1;
		memmove(p + out, p + in + GZIP_CARRIER_HEAD, k);
		out += k;
		in += GZIP_CARRIER_HEAD + k + GZIP_CARRIER_TAIL;
	}
	*n = out;
	return 0;
}

int index_read(struct store *s, const struct index_place *place, struct buf *b, struct err *e)
{
	char layer[DIGEST_TEXT + 1];
	struct digest found;
	size_t size;
	uint64_t blob_size;
	auto_fd int fd = store_blob_open(s, &place->layer, &blob_size, e);

	if (fd < 0)
		return err_ctx(e, "image index");
	digest_text(&place->layer, layer);
	if (place->offset > blob_size || place->length > blob_size - place->offset)
		return err_set(e, ERR_CORRUPT,
			"image index: %s ends at byte %" PRIu64 ", the index at %" PRIu64, layer,
			blob_size, place->offset + place->length);
	if (buf_reserve(b, place->length, e) < 0)
		return err_ctx(e, "image index");
	if (sys_pread_all(fd, b->data + b->len, place->length, (off_t)place->offset) < 0)
		return err_sys(e, "image index: read %s", layer);
	found = digest_of(b->data + b->len, place->length);
	if (digest_check(&place->digest, &found, e, "image index in %s", layer) < 0)
		return -1;
	size = place->length;
	if ((uint8_t)b->data[b->len] == gzip_carrier_magic[0] &&
		unwrap_gzip(b->data + b->len, &size) < 0)
		return err_set(
			e, ERR_CORRUPT, "image index in %s: not carried by gzip members", layer);
	b->len += size;
	b->data[b->len] = '\0';
	return 0;
}
