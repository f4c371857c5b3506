/* The numbers of docs/index-format.md, for the encoder and the decoder. */
#ifndef IMAGES_INDEX_FORMAT_H
#define IMAGES_INDEX_FORMAT_H

#include <stdint.h>

#define INDEX_MAGIC "svrunidx"

enum { INDEX_VERSION = 1 };

enum index_encoding { INDEX_RAW, INDEX_ZSTD };

/* Lengths in bytes. */
enum {
	INDEX_HEADER = 64,
	INDEX_LAYER = 88,
	INDEX_CHUNK = 52,
	INDEX_NODE = 36,
	INDEX_NUMBER = 4, /* of an xattr's length, a chunk reference, a trace entry */
};

enum {
	INDEX_LAYERS_MAX = 512,
	INDEX_REFS_MAX = 4 << 20,    /* 4 TiB of files: 4 bytes each here, 128 in memory */
	INDEX_RATIO_MAX = 16,        /* body / payload of a compressed one, beyond ... */
	INDEX_RATIO_FREE = 64 << 10, /* ... this many bytes */
	INDEX_STORED_SLACK =
		64 << 10, /* a chunk's frame is at most this much longer than the chunk */
};

/* A gzip member that carries a piece of the payload: this, XLEN, "SV", the piece's length; the
 * piece; an empty deflate block, CRC and length of nothing. */
static const uint8_t gzip_carrier_magic[10] = {0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 0xff};
enum {
	GZIP_CARRIER_HEAD = 16,
	GZIP_CARRIER_TAIL = 10,
	GZIP_CARRIER_MAX = 65535 - 4, /* XLEN counts the four bytes before the piece too */
};

#define INDEX_NONE UINT32_MAX /* a layer's number: none */

/* Sections of the body, in order; the header's counts stand in the same order. */
enum index_section {
	INDEX_LAYERS,
	INDEX_CHUNKS,
	INDEX_NODES,
	INDEX_XATTRS,
	INDEX_REFS,
	INDEX_TRACE,
	INDEX_VALUES,
	INDEX_STRINGS,
	INDEX_SECTIONS,
};
static const uint8_t index_record[INDEX_SECTIONS] = {
	INDEX_LAYER, INDEX_CHUNK, INDEX_NODE, INDEX_NUMBER, INDEX_NUMBER, INDEX_NUMBER, 1, 1};

/* Offsets in the header. */
enum {
	INDEX_AT_VERSION = 8,
	INDEX_AT_ENCODING = 12,
	INDEX_AT_COUNTS = 16,
	INDEX_AT_BODY = 48,
	INDEX_AT_ZERO = 56,
};

/* Little-endian numbers of n bytes. */
static inline uint64_t index_get(const uint8_t *p, unsigned n)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < n; i++)
		v |= (uint64_t)p[i] << (8 * i);
	return v;
}

static inline void index_set(uint8_t *p, uint64_t v, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

#endif
