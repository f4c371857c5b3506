#include "builder/zip.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/str.h"
#include "base/sys.h"

enum {
	LOCAL_BYTES = 30,
	CENTRAL_BYTES = 46,
	END_BYTES = 22,
	END64_BYTES = 56,
	LOCATOR_BYTES = 20,
	DIRECTORY_MAX = 64 << 20,
	READ_BYTES = 64 << 10,
	FLAG_ENCRYPTED = 1,
	FLAG_LATER = 8, /* sizes and CRC of the local header are behind the data */
	METHOD_STORED = 0,
	METHOD_DEFLATE = 8,
	EXTRA_ZIP64 = 1,
};

static uint16_t u16(const unsigned char *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t u32(const unsigned char *p)
{
	return u16(p) | (uint32_t)u16(p + 2) << 16;
}

static uint64_t u64(const unsigned char *p)
{
	return u32(p) | (uint64_t)u32(p + 4) << 32;
}

static int bad(const struct zip *z, const char *member, const char *why, struct err *e)
{
	char text[STR_SHOWN];

	if (!member)
		return err_set(e, ERR_CORRUPT, "SV170: %s: %s", z->name, why);
	return err_set(
		e, ERR_CORRUPT, "SV170: %s: member '%s' %s", z->name, str_shown(member, text), why);
}

static int read_at(const struct zip *z, uint64_t at, void *p, size_t n, struct err *e)
{
	if (at > z->length || n > z->length - at)
		return bad(z, NULL, "it is cut off", e);
	return sys_pread_all(z->fd, p, n, (off_t)at) < 0 ? err_sys(e, "read %s", z->name) : 0;
}

/* ---- the end ---- */

struct end {
	uint64_t n, size, at; /* of the central directory */
	uint64_t limit;       /* where its records end */
};

/* With zip64 the real numbers are in a record that a locator before the end record points to. */
static int read_end64(const struct zip *z, struct end *end, uint64_t at, struct err *e)
{
	unsigned char locator[LOCATOR_BYTES], p[END64_BYTES];
	uint64_t record;

	if (at < LOCATOR_BYTES)
		return 0;
	if (read_at(z, at - LOCATOR_BYTES, locator, LOCATOR_BYTES, e) < 0)
		return -1;
	if (memcmp(locator, "PK\6\7", 4) != 0)
		return 0;
	record = u64(locator + 8);
	if (u32(locator + 4) != 0 || u32(locator + 16) > 1)
		return bad(z, NULL, "it has several disks", e);
	if (record > at || at - LOCATOR_BYTES - record != END64_BYTES)
		return bad(z, NULL, "its zip64 record is not where it should be", e);
	if (read_at(z, record, p, END64_BYTES, e) < 0)
		return -1;
	if (memcmp(p, "PK\6\6", 4) != 0 || u64(p + 4) != END64_BYTES - 12 || u32(p + 16) != 0 ||
		u32(p + 20) != 0 || u64(p + 24) != u64(p + 32))
		return bad(z, NULL, "its zip64 record is malformed", e);
	*end = (struct end){.n = u64(p + 32), .size = u64(p + 40), .at = u64(p + 48)};
	end->limit = record;
	return 1;
}

/* The end record with its comment ends the file: of two candidates readers might take either. */
static int find_end(const struct zip *z, struct end *end, struct err *e)
{
	size_t room = z->length < END_BYTES + 65535 ? (size_t)z->length : END_BYTES + 65535;
	auto_free unsigned char *tail = mem_alloc(room + END_BYTES);
	const unsigned char *p = NULL;
	uint64_t at;
	int rc;

	if (read_at(z, z->length - room, tail, room, e) < 0)
		return -1;
	for (size_t k = END_BYTES; k <= room; k++) {
		const unsigned char *q = tail + room - k;
		bool whole = u16(q + 20) == k - END_BYTES;

		if (memcmp(q, "PK\5\6", 4) != 0)
			continue;
		if (p && whole)
			return bad(z, NULL, "it has two end records", e);
		if (!p && !whole)
			return bad(z, NULL, "something is behind its end record", e);
		p = p ? p : q;
	}
	if (!p)
		return bad(z, NULL, "not a zip archive", e);
	at = z->length - room + (uint64_t)(p - tail);
	rc = read_end64(z, end, at, e);
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	if (u16(p + 4) != 0 || u16(p + 6) != 0 || u16(p + 8) != u16(p + 10))
		return bad(z, NULL, "it has several disks", e);
	*end = (struct end){.n = u16(p + 10), .size = u32(p + 12), .at = u32(p + 16), .limit = at};
	return 0;
}

/* ---- members ---- */

/* The 64-bit numbers of those that did not fit, in their order. */
static int read_extra64(const struct zip *z, struct zip_member *m, const unsigned char *p, size_t n,
	bool central, struct err *e)
{
	uint64_t *want[3] = {m->size == UINT32_MAX ? &m->size : NULL,
		m->packed == UINT32_MAX ? &m->packed : NULL,
		central && m->header == UINT32_MAX ? &m->header : NULL};
	bool need = want[0] || want[1] || want[2], seen = false;

	while (n >= 4) {
		size_t len = u16(p + 2);
		const unsigned char *q = p + 4;

		if (len > n - 4)
			return bad(z, m->name, "has a malformed extra field", e);
		if (u16(p) == EXTRA_ZIP64 && need) {
			if (seen)
				return bad(z, m->name, "has its sizes twice", e);
			seen = true;
			for (size_t i = 0; i < 3; i++) {
				if (!want[i])
					continue;
				if (q + 8 > p + 4 + len)
					return bad(z, m->name, "has a malformed extra field", e);
				*want[i] = u64(q);
				q += 8;
			}
		}
		p += 4 + len;
		n -= 4 + len;
	}
	return need && !seen ? bad(z, m->name, "lacks its 64-bit sizes", e) : 0;
}

static int check_member(const struct zip *z, const struct zip_member *m, struct err *e)
{
	if (m->flags & FLAG_ENCRYPTED)
		return bad(z, m->name, "is encrypted", e);
	if (m->method != METHOD_STORED && m->method != METHOD_DEFLATE)
		return bad(z, m->name, "is neither stored nor deflated", e);
	if (m->method == METHOD_STORED && m->size != m->packed)
		return bad(z, m->name, "is stored with two sizes", e);
	/* deflate cannot do better than 1032 to 1 */
	if (m->size / 1040 > m->packed)
		return bad(z, m->name, "claims more bytes than it can have", e);
	return 0;
}

/* One record; returns its length, or 0. */
static size_t read_central(
	struct zip *z, struct zip_member *m, const unsigned char *p, size_t n, struct err *e)
{
	size_t names, extra, comment;

	if (n < CENTRAL_BYTES || memcmp(p, "PK\1\2", 4) != 0) {
		bad(z, NULL, "its directory is malformed", e);
		return 0;
	}
	names = u16(p + 28);
	extra = u16(p + 30);
	comment = u16(p + 32);
	if (names + extra + comment > n - CENTRAL_BYTES || names == 0 || u16(p + 34) != 0 ||
		memchr(p + CENTRAL_BYTES, '\0', names)) {
		bad(z, NULL, "its directory is malformed", e);
		return 0;
	}
	*m = (struct zip_member){.flags = u16(p + 8),
		.method = u16(p + 10),
		.crc = u32(p + 16),
		.packed = u32(p + 20),
		.size = u32(p + 24),
		.external = u32(p + 38),
		.header = u32(p + 42)};
	m->name = arena_strndup(&z->arena, (const char *)p + CENTRAL_BYTES, names);
	if (read_extra64(z, m, p + CENTRAL_BYTES + names, extra, true, e) < 0 ||
		check_member(z, m, e) < 0)
		return 0;
	return CENTRAL_BYTES + names + extra + comment;
}

/* The local header: what it repeats must be the same. */
static int check_local(const struct zip *z, struct zip_member *m, struct err *e)
{
	unsigned char p[LOCAL_BYTES];
	struct zip_member local = {.name = m->name};
	size_t names, extra;
	bool later;
	auto_free unsigned char *rest = NULL;

	if (read_at(z, m->header, p, LOCAL_BYTES, e) < 0)
		return -1;
	names = u16(p + 26);
	extra = u16(p + 28);
	rest = mem_alloc(names + extra + 1);
	if (memcmp(p, "PK\3\4", 4) != 0)
		return bad(z, m->name, "has no header", e);
	if (read_at(z, m->header + LOCAL_BYTES, rest, names + extra, e) < 0)
		return -1;
	local.packed = u32(p + 18);
	local.size = u32(p + 22);
	later = u16(p + 6) & FLAG_LATER;
	if (read_extra64(z, &local, rest + names, extra, false, e) < 0)
		return -1;
	if (u16(p + 6) != m->flags || u16(p + 8) != m->method || names != strlen(m->name) ||
		memcmp(rest, m->name, names) != 0 ||
		(!(later && u32(p + 14) == 0) && u32(p + 14) != m->crc) ||
		(!(later && local.size == 0) && local.size != m->size) ||
		(!(later && local.packed == 0) && local.packed != m->packed))
		return bad(z, m->name, "is something else in its own header", e);
	m->data = m->header + LOCAL_BYTES + names + extra;
	return 0;
}

static int by_header(const void *a, const void *b)
{
	const struct zip_member *x = *(const struct zip_member *const *)a;
	const struct zip_member *y = *(const struct zip_member *const *)b;

	return x->header < y->header ? -1 : x->header > y->header;
}

/* Members lie behind each other: one that lies in another is how small bombs are made. */
static int check_overlaps(const struct zip *z, uint64_t directory, struct err *e)
{
	auto_free const struct zip_member **v = mem_array(z->n, sizeof(const struct zip_member *));

	for (size_t i = 0; i < z->n; i++)
		v[i] = &z->v[i];
	qsort(v, z->n, sizeof(const struct zip_member *), by_header);
	for (size_t i = 0; i < z->n; i++) {
		uint64_t end = i + 1 < z->n ? v[i + 1]->header : directory;

		if (v[i]->data > end || v[i]->packed > end - v[i]->data)
			return bad(z, v[i]->name, "reaches into another one", e);
	}
	return 0;
}

static int check_limits(const struct zip *z, const struct zip_limits *l, struct err *e)
{
	uint64_t all = 0;
	char text[STR_SHOWN];

	for (size_t i = 0; i < z->n; i++) {
		const struct zip_member *m = &z->v[i];

		if (m->size > l->file || m->size > l->all - all)
			return err_set(e, ERR_CORRUPT,
				"SV172: %s: member '%s' has %" PRIu64
				" bytes, more than the limit of %" PRIu64 " (%" PRIu64
				" of all files)",
				z->name, str_shown(m->name, text), m->size, l->file, l->all);
		all += m->size;
	}
	return 0;
}

static int read_directory(struct zip *z, const struct end *end, struct err *e)
{
	auto_free unsigned char *p = NULL;
	size_t size = (size_t)end->size, used = 0;

	if (end->size > DIRECTORY_MAX)
		return err_set(e, ERR_CORRUPT,
			"SV172: %s: a directory of %" PRIu64 " bytes, more than the limit of %d",
			z->name, end->size, DIRECTORY_MAX);
	if (end->at > end->limit || end->limit - end->at != end->size)
		return bad(z, NULL, "its directory is not where it should be", e);
	if (end->n > size / CENTRAL_BYTES)
		return bad(z, NULL, "its directory is malformed", e);
	p = mem_alloc(size + 1);
	z->v = arena_alloc(&z->arena, (size_t)end->n * sizeof(*z->v));
	if (read_at(z, end->at, p, size, e) < 0)
		return -1;
	for (; z->n < end->n; z->n++) {
		size_t len = read_central(z, &z->v[z->n], p + used, size - used, e);

		if (len == 0)
			return -1;
		used += len;
	}
	return used == size ? 0 : bad(z, NULL, "its directory is malformed", e);
}

static int open_zip(struct zip *z, const struct zip_limits *l, struct err *e)
{
	struct end end = {0};

	if (find_end(z, &end, e) < 0)
		return -1;
	if (end.n > l->members)
		return err_set(e, ERR_CORRUPT,
			"SV172: %s: %" PRIu64 " members, more than the limit of %zu", z->name,
			end.n, l->members);
	if (read_directory(z, &end, e) < 0 || check_limits(z, l, e) < 0)
		return -1;
	for (size_t i = 0; i < z->n; i++)
		if (check_local(z, &z->v[i], e) < 0)
			return -1;
	return check_overlaps(z, end.at, e);
}

int zip_open(struct zip *z, int fd, const char *name, const struct zip_limits *l, struct err *e)
{
	struct stat st;

	*z = (struct zip){.fd = fd, .name = name};
	if (sys_fstat(fd, &st) < 0)
		return err_sys(e, "stat %s", name);
	z->length = (uint64_t)st.st_size;
	if (open_zip(z, l, e) == 0)
		return 0;
	zip_close(z);
	return -1;
}

void zip_close(struct zip *z)
{
	arena_fini(&z->arena);
	*z = (struct zip){.fd = -1};
}

/* ---- data ---- */

typedef int take_fn(void *ctx, const void *data, size_t n, struct err *e);

struct unpack {
	const struct zip *z;
	const struct zip_member *m;
	take_fn *take;
	void *ctx;
	uint64_t size;
	uLong crc;
	z_stream stream;
	unsigned char in[READ_BYTES], out[READ_BYTES];
};

static int give(struct unpack *u, const unsigned char *p, size_t n, struct err *e)
{
	if (n > u->m->size - u->size)
		return bad(u->z, u->m->name, "has more data than its size says", e);
	u->size += n;
	u->crc = crc32(u->crc, p, (uInt)n);
	return n ? u->take(u->ctx, p, n, e) : 0;
}

/* What inflate makes of the piece in u->in. 1: the stream has ended. */
static int inflate_piece(struct unpack *u, struct err *e)
{
	int rc;

	do {
		u->stream.next_out = u->out;
		u->stream.avail_out = READ_BYTES;
		rc = inflate(&u->stream, Z_NO_FLUSH);
		if (rc == Z_MEM_ERROR)
			return err_set(e, ERR_SYSTEM, "%s: out of memory", u->z->name);
		if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
			return bad(u->z, u->m->name, "is not deflated data", e);
		if (give(u, u->out, READ_BYTES - u->stream.avail_out, e) < 0)
			return -1;
	} while (rc == Z_OK && (u->stream.avail_in > 0 || u->stream.avail_out == 0));
	return rc == Z_STREAM_END;
}

static int unpack(struct unpack *u, struct err *e)
{
	uint64_t at = u->m->data, left = u->m->packed;
	bool deflated = u->m->method == METHOD_DEFLATE;
	int ended = 0;

	while (left > 0) {
		size_t n = left < READ_BYTES ? (size_t)left : READ_BYTES;

		if (read_at(u->z, at, u->in, n, e) < 0)
			return -1;
		at += n;
		left -= n;
		if (ended)
			return bad(u->z, u->m->name, "goes on behind its data", e);
		u->stream.next_in = u->in;
		u->stream.avail_in = (uInt)n;
		ended = deflated ? inflate_piece(u, e) : give(u, u->in, n, e);
		if (ended < 0)
			return -1;
		if (ended && u->stream.avail_in > 0)
			return bad(u->z, u->m->name, "goes on behind its data", e);
	}
	if (deflated && !ended)
		return bad(u->z, u->m->name, "is cut off", e);
	if (u->size != u->m->size || (uint32_t)u->crc != u->m->crc)
		return bad(u->z, u->m->name, "is not what its size and CRC say", e);
	return 0;
}

int zip_read(
	const struct zip *z, const struct zip_member *m, take_fn *take, void *ctx, struct err *e)
{
	auto_free struct unpack *u = mem_alloc(sizeof(*u));
	int rc;

	u->z = z;
	u->m = m;
	u->take = take;
	u->ctx = ctx;
	u->crc = crc32(0, NULL, 0);
	if (inflateInit2(&u->stream, -MAX_WBITS) != Z_OK)
		return err_set(e, ERR_SYSTEM, "%s: out of memory", z->name);
	rc = unpack(u, e);
	inflateEnd(&u->stream);
	return rc;
}

static int take_all(void *ctx, const void *data, size_t n, struct err *e)
{
	return buf_add(ctx, data, n, e);
}

int zip_read_all(const struct zip *z, const struct zip_member *m, struct buf *b, struct err *e)
{
	char text[STR_SHOWN];

	if (m->size > b->max - b->len)
		return err_set(e, ERR_CORRUPT,
			"SV172: %s: member '%s' has %" PRIu64 " bytes, more than the limit of %zu",
			z->name, str_shown(m->name, text), m->size, b->max);
	buf_put(b, "", 0);
	return zip_read(z, m, take_all, b, e);
}

bool zip_is_executable(const struct zip_member *m)
{
	return zip_type(m) == S_IFREG && (m->external >> 16 & 0111);
}

uint32_t zip_type(const struct zip_member *m)
{
	return m->external >> 16 & S_IFMT;
}
