#include "images/unpack.h"

#include <inttypes.h>
#include <string.h>

#include "images/decompress.h"
#include "images/member.h"
#include "images/tar-read.h"
#include "images/tee.h"

enum { UNPACK_RATIO = 256, DRAIN_MAX = 64 << 20 };
#define UNPACK_FREE ((uint64_t)1 << 30)
#define UNPACK_MAX ((uint64_t)1 << 40)

/* The caller's thread reads, decompresses and walks the tar; a thread hashes the blob, another one
 * the tar when its digest is wanted; the sink's hash and write the file data. */
struct unpacking {
	struct unpack *u;
	struct sink *sink;
	uint64_t limit;
	struct tee *blob, *tar; /* tar: NULL when nobody asked */
	struct decompress *plain;
	struct tar_reader *reader;
	struct members members;
	unsigned char small[SINK_SMALL];
};

uint64_t unpack_limit(uint64_t size)
{
	uint64_t most = (UNPACK_MAX - UNPACK_FREE) / UNPACK_RATIO;

	return size < most ? UNPACK_FREE + size * UNPACK_RATIO : UNPACK_MAX;
}

/* ---- file data ---- */

/* n bytes of the member's data into p; the reader has so many. */
static int read_into(struct tar_reader *r, unsigned char *p, size_t n, const void *data,
	size_t have, struct err *e)
{
	size_t at = 0;

	for (;;) {
		memcpy(p + at, data, have);
		at += have;
		if (at == n)
			return 0;
		if (tar_reader_take(r, n - at, &data, &have, e) < 0)
			return -1;
	}
}

static int read_small(struct unpacking *x, uint32_t size, struct chunk *c, struct err *e)
{
	const void *data;
	size_t n;

	if (tar_reader_take(x->reader, size, &data, &n, e) < 0)
		return -1;
	if (n < size) {
		if (read_into(x->reader, x->small, size, data, n, e) < 0)
			return -1;
		data = x->small;
	}
	sink_add(x->sink, data, size, c, NULL);
	return 0;
}

static int read_chunk(struct unpacking *x, uint32_t size, struct chunk *c, struct err *e)
{
	unsigned char *buf;
	const void *data;
	size_t n;
	int rc;

	if (size <= SINK_SMALL)
		return read_small(x, size, c, e);
	if (tar_reader_take(x->reader, size, &data, &n, e) < 0)
		return -1;
	buf = sink_buffer(x->sink);
	rc = read_into(x->reader, buf, size, data, n, e);
	sink_put(x->sink, buf, rc < 0 ? 0 : size, c, NULL);
	return rc;
}

static int read_file(struct unpacking *x, struct entry *en, struct err *e)
{
	struct attr *a = &en->a;
	uint64_t left = a->size;

	/* so its chunks, which are reserved at once, are bounded, too */
	if (a->size > x->limit - tar_reader_offset(x->reader))
		return err_set(e, ERR_CORRUPT,
			"%s: '%.200s' of %" PRIu64
			" bytes: the layer would unpack to more than the limit of %" PRIu64
			" bytes",
			x->u->name, en->path, a->size, x->limit);
	a->nchunks = (uint32_t)((a->size + CHUNK_SIZE - 1) / CHUNK_SIZE);
	if (a->nchunks)
		a->chunks = arena_alloc(&x->members.out->arena, a->nchunks * sizeof(*a->chunks));
	for (uint32_t i = 0; i < a->nchunks; i++) {
		uint32_t n = left < CHUNK_SIZE ? (uint32_t)left : CHUNK_SIZE;

		a->chunks[i].block = CHUNK_NO_BLOCK;
		a->chunks[i].layer = CHUNK_NO_LAYER;
		if (read_chunk(x, n, &a->chunks[i], e) < 0 || sink_check(x->sink, e) < 0)
			return -1;
		left -= n;
	}
	return 0;
}

/* ---- the tar ---- */

static int read_tar(struct unpacking *x, struct err *e)
{
	const struct tar_member *m;
	struct entry *en;
	const void *p;
	size_t n;
	int rc;

	while ((rc = tar_reader_next(x->reader, &m, e)) > 0) {
		if (members_add(&x->members, m, &en, e) < 0)
			return -1;
		if (en && en->kind == ENTRY_PUT && en->a.type == NODE_FILE &&
			read_file(x, en, e) < 0)
			return -1;
	}
	while (rc == 0 && (rc = tar_reader_rest(x->reader, &p, &n, e)) > 0)
		rc = 0;
	return rc;
}

/* ---- the blob ---- */

static int check_blob(struct unpacking *x, struct err *e)
{
	struct unpack *u = x->u;
	struct digest found;

	if (u->size == UNPACK_UNKNOWN) {
		u->digest = tee_digest(x->blob);
		return 0;
	}
	if (tee_bytes(x->blob) != u->size)
		return err_set(e, ERR_CORRUPT, "%s: expected %" PRIu64 " bytes, found %" PRIu64,
			u->name, u->size, tee_bytes(x->blob));
	found = tee_digest(x->blob);
	return digest_check(&u->digest, &found, e, "%s", u->name);
}

/* What is inside makes no sense. When the blob is not the one that was asked for, then this is why,
 * and worth telling instead; but nobody waits for the rest of a long download to learn it. */
static void find_reason(struct unpacking *x, struct err *e)
{
	uint64_t seen = tee_bytes(x->blob);
	struct err other = {0};
	const void *p;
	size_t n;
	int rc = 1;

	if (e->kind != ERR_CORRUPT || seen > x->u->size || x->u->size - seen > DRAIN_MAX)
		return;
	while (rc > 0)
		rc = source_next(tee_source(x->blob), &p, &n, &other);
	if (rc == 0 && check_blob(x, &other) < 0)
		*e = other;
}

static int check_tar(struct unpacking *x, struct err *e)
{
	struct unpack *u = x->u;

	u->tar_size = tar_reader_offset(x->reader);
	if (u->codec == CODEC_NONE)
		u->tar_digest = u->digest;
	else if (x->tar)
		u->tar_digest = tee_digest(x->tar);
	return u->diff_id ? digest_check(u->diff_id, &u->tar_digest, e, "%s: DiffID", u->name) : 0;
}

static int run(struct unpacking *x, struct source *src, struct err *e)
{
	const struct unpack *u = x->u;
	struct source *tar;

	x->blob = tee_new(src, 0, u->size, u->name);
	x->plain = decompress_new(u->codec, tee_source(x->blob), x->limit, u->name, e);
	if (!x->plain)
		return -1;
	tar = decompress_source(x->plain);
	if (u->diff_id && u->codec != CODEC_NONE) {
		x->tar = tee_new(tar, DECOMPRESS_LAG, x->limit, u->name);
		tar = tee_source(x->tar);
	}
	x->reader = tar_reader_new(tar, u->name);
	if (read_tar(x, e) < 0) {
		find_reason(x, e);
		return -1;
	}
	return check_blob(x, e) < 0 ? -1 : check_tar(x, e);
}

int unpack_layer(
	struct unpack *u, struct source *src, struct sink *sink, struct entries *out, struct err *e)
{
	struct unpacking *x = mem_alloc(sizeof(*x));
	struct err first = {0};
	int rc;

	x->u = u;
	x->sink = sink;
	x->limit = unpack_limit(u->size);
	members_init(&x->members, u->name, u->size, out);
	rc = run(x, src, &first);
	/* the sink's threads write into the list: nobody may free it before */
	if (sink_wait(sink, rc < 0 ? NULL : &first) < 0)
		rc = -1;
	tar_reader_free(x->reader);
	tee_free(x->tar);
	decompress_free(x->plain);
	tee_free(x->blob);
	free(x);
	if (rc < 0 && e)
		*e = first;
	return rc;
}
