#include <string.h>

#include "base/str.h"
#include "images/toc-table.h"

enum { SKIPPABLE_HEADER = 8 };

/* Both names that containers/storage has had, the newer ones first. */
static const struct {
	const char *digest, *position;
} zstd_chunked[] = {
	{"io.github.containers.zstd-chunked.manifest-checksum",
		"io.github.containers.zstd-chunked.manifest-position"},
	{"io.containers.zstd-chunked.manifest-checksum",
		"io.containers.zstd-chunked.manifest-position"},
};
static const char stargz[] = "containerd.io/snapshot/stargz/toc.digest";

/* 1, 0, -1 */
static int annotation(
	const struct descriptor *layer, const char *key, const char **text, struct err *e)
{
	const json_t *v = layer->annotations ? json_object_get(layer->annotations, key) : NULL;

	if (!v)
		return 0;
	*text = json_string_value(v);
	return *text ? 1 : err_set(e, ERR_CORRUPT, "annotation %s is no string", key);
}

/* "offset:packed:plain:type" */
static int parse_position(const char *text, struct toc_place *p)
{
	uint64_t v[4];
	char number[24];

	for (unsigned i = 0; i < 4; i++) {
		size_t n = strcspn(text, ":");

		if (n >= sizeof(number) || text[n] != (i < 3 ? ':' : '\0'))
			return -1;
		memcpy(number, text, n);
		number[n] = '\0';
		if (str_u64(number, INT64_MAX, &v[i]) < 0)
			return -1;
		text += n + 1;
	}
	p->offset = v[0];
	p->packed = v[1];
	p->plain = v[2];
	return v[3] == 1 ? 0 : -1;
}

static bool is_inside(const struct toc_place *p, uint64_t blob_size)
{
	return p->packed > 0 && p->packed <= TOC_BYTES_MAX && p->plain > 0 &&
	       p->plain <= TOC_BYTES_MAX && p->offset >= SKIPPABLE_HEADER &&
	       p->offset <= blob_size && p->packed <= blob_size - p->offset;
}

static int find_zstd(const struct descriptor *layer, struct toc_place *p, struct err *e)
{
	for (size_t i = 0; i < sizeof(zstd_chunked) / sizeof(zstd_chunked[0]); i++) {
		const char *digest = NULL, *position = NULL;
		int a = annotation(layer, zstd_chunked[i].digest, &digest, e);
		int b = a < 0 ? -1 : annotation(layer, zstd_chunked[i].position, &position, e);

		if (b < 0)
			return -1;
		if (a > 0 && b > 0 && digest_parse(&p->digest, digest, NULL) == 0 &&
			parse_position(position, p) == 0 && is_inside(p, layer->size))
			return 1;
	}
	return 0;
}

int toc_place_find(
	const struct descriptor *layer, enum codec codec, struct toc_place *p, struct err *e)
{
	const char *digest = NULL;
	int rc;

	*p = (struct toc_place){0};
	if (codec == CODEC_ZSTD)
		return find_zstd(layer, p, e);
	if (codec != CODEC_GZIP || layer->size <= TOC_STARGZ_FOOTER)
		return 0;
	rc = annotation(layer, stargz, &digest, e);
	if (rc <= 0)
		return rc;
	return digest_parse(&p->digest, digest, NULL) == 0;
}

int toc_stargz_footer(const unsigned char p[TOC_STARGZ_FOOTER], uint64_t blob_size,
	uint64_t *offset, struct err *e)
{
	static const unsigned char head[] = {
		0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 0xff, 26, 0, 'S', 'G', 22, 0};
	static const unsigned char tail[] = {
		'S', 'T', 'A', 'R', 'G', 'Z', 1, 0, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0};
	enum { DIGITS = 16 };
	_Static_assert(sizeof(head) + DIGITS + sizeof(tail) == TOC_STARGZ_FOOTER, "formats.md 2.2");

	if (memcmp(p, head, sizeof(head)) != 0 ||
		memcmp(p + sizeof(head) + DIGITS, tail, sizeof(tail)) != 0)
		return err_set(e, ERR_UNSUPPORTED, "the layer does not end as eStargz does");
	*offset = 0;
	for (unsigned i = 0; i < DIGITS; i++) {
		static const char digits[] = "0123456789abcdef";
		const char *d = memchr(digits, p[sizeof(head) + i], 16);

		if (!d)
			return err_set(
				e, ERR_UNSUPPORTED, "the layer does not end as eStargz does");
		*offset = *offset << 4 | (uint64_t)(d - digits);
	}
	if (*offset == 0 || *offset >= blob_size - TOC_STARGZ_FOOTER)
		return err_set(e, ERR_CORRUPT, "its table of contents is outside of the layer");
	return 0;
}
