/* Finding and fetching the table of contents of a layer. toc.c's own. */
#ifndef IMAGES_TOC_TABLE_H
#define IMAGES_TOC_TABLE_H

#include "images/download.h"
#include "images/sink.h"
#include "images/toc-parse.h"

/* What the annotations say. */
struct toc_place {
	struct digest digest;    /* zstd:chunked: of the packed table; eStargz: of its text */
	uint64_t offset, packed; /* zstd:chunked only: where it lies, ... */
	uint64_t plain;          /* ... and the length of its text */
};

/* 1, 0 when there is none that can be used, -1: CORRUPT (annotations that are no strings). */
int toc_place_find(const struct descriptor *layer, enum codec codec, struct toc_place *p,
	struct err *e) must_check;

/* Fetch, check against p->digest, and parse. In an eStargz layer the table is a file of the layer,
 * too: it is with the sink then. Errors: those of toc_parse() and stream_next(). */
int toc_table_fetch(struct toc *t, const struct descriptor *layer, enum codec codec,
	const struct toc_place *p, struct download *d, struct sink *sink, struct entries *out,
	struct err *e) must_check;

/* The last bytes of an eStargz layer: where the gzip member of its table begins. UNSUPPORTED when
 * they are something else. Source: formats.md 2.2. */
enum { TOC_STARGZ_FOOTER = 51 };
int toc_stargz_footer(const unsigned char p[TOC_STARGZ_FOOTER], uint64_t blob_size,
	uint64_t *offset, struct err *e) must_check;

#endif
