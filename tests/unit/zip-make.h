/* Zip archives and wheels made by hand, for what no writer of ours would write. */
#ifndef ZIP_MAKE_H
#define ZIP_MAKE_H

#include <zlib.h>

#include "builder/wheel-record.h"
#include "tests/unit/archive.h"

struct hand_zip {
	struct buf body, directory, record; /* record: lines of RECORD, as files are added */
	unsigned n;
	/* for the next member only */
	uint16_t flags, method, local_method;
	uint32_t mode, wrong_crc, claimed; /* claimed: its size, as headers say it; 0: the truth */
	uint32_t shift;                    /* its header is this much before where it is */
	const char *local_name;            /* in its own header */
};

static MAYBE_UNUSED void put16(struct buf *b, unsigned v)
{
	char p[2] = {(char)v, (char)(v >> 8)};

	buf_put(b, p, 2);
}

static MAYBE_UNUSED void put32(struct buf *b, uint32_t v)
{
	put16(b, v & 0xffff);
	put16(b, v >> 16);
}

static MAYBE_UNUSED void zip_begin(struct hand_zip *z)
{
	*z = (struct hand_zip){.body = BUF_INIT(256 << 20),
		.directory = BUF_INIT(64 << 20),
		.record = BUF_INIT(64 << 20)};
	buf_put(&z->record, "", 0);
}

/* What headers of both kinds have. */
static MAYBE_UNUSED void zip_numbers(struct buf *b, const struct hand_zip *z, unsigned method,
	uint32_t crc, size_t n, size_t packed)
{
	put16(b, 20);
	put16(b, z->flags | 0x800);
	put16(b, method);
	put32(b, 0x00210000); /* 1980-01-01 */
	put32(b, crc ^ z->wrong_crc);
	put32(b, (uint32_t)packed);
	put32(b, z->claimed ? z->claimed : (uint32_t)n);
}

static MAYBE_UNUSED size_t deflate_raw(const void *p, size_t n, unsigned char *out, size_t room)
{
	z_stream s = {0};
	auto_free unsigned char *in = mem_dup(p, n + !n);

	assert_int_equal(deflateInit2(&s, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY), Z_OK);
	s.next_in = in;
	s.avail_in = (uInt)n;
	s.next_out = out;
	s.avail_out = (uInt)room;
	assert_int_equal(deflate(&s, Z_FINISH), Z_STREAM_END);
	deflateEnd(&s);
	return s.total_out;
}

static MAYBE_UNUSED void zip_add(struct hand_zip *z, const char *name, const void *p, size_t n)
{
	size_t at = z->body.len, room = n + n / 10 + 100;
	auto_free unsigned char *packed = mem_alloc(room);
	const char *local = z->local_name ? z->local_name : name;
	uint32_t crc = (uint32_t)crc32(0, p, (uInt)n);
	size_t k = z->method == 8 ? deflate_raw(p, n, packed, room) : n;

	if (z->method != 8)
		memcpy(packed, p, n);
	buf_put(&z->body, "PK\3\4", 4);
	zip_numbers(&z->body, z, z->local_method ? z->local_method : z->method, crc, n, k);
	put16(&z->body, (unsigned)strlen(local));
	put16(&z->body, 0);
	buf_put(&z->body, local, strlen(local));
	buf_put(&z->body, packed, k);

	buf_put(&z->directory, "PK\1\2", 4);
	put16(&z->directory, 3 << 8 | 20);
	zip_numbers(&z->directory, z, z->method, crc, n, k);
	put16(&z->directory, (unsigned)strlen(name));
	put16(&z->directory, 0);
	put16(&z->directory, 0);
	put16(&z->directory, 0);
	put16(&z->directory, 0);
	put32(&z->directory, z->mode << 16);
	put32(&z->directory, (uint32_t)at - z->shift);
	buf_put(&z->directory, name, strlen(name));
	z->n++;
	z->flags = z->method = z->local_method = 0;
	z->mode = z->wrong_crc = z->claimed = z->shift = 0;
	z->local_name = NULL;
}

/* A member, and its line in RECORD. */
static MAYBE_UNUSED void zip_file(struct hand_zip *z, const char *name, const void *p, size_t n)
{
	struct digest d = digest_of(p, n);
	struct record r = {0};
	char size[24];

	snprintf(size, sizeof(size), "%zu", n);
	record_add(&r, name, record_hash(&r.arena, "sha256", d.b, DIGEST_SIZE), size);
	record_text(&r, &z->record);
	record_fini(&r);
	zip_add(z, name, p, n);
}

static MAYBE_UNUSED void zip_text(struct hand_zip *z, const char *name, const char *text)
{
	zip_file(z, name, text, strlen(text));
}

/* The directory and the end; returns a file of it, and z is used up. */
static MAYBE_UNUSED int zip_finish(struct hand_zip *z)
{
	size_t at = z->body.len;
	int fd;

	buf_put(&z->body, z->directory.data, z->directory.len);
	buf_put(&z->body, "PK\5\6\0\0\0\0", 8);
	put16(&z->body, z->n);
	put16(&z->body, z->n);
	put32(&z->body, (uint32_t)z->directory.len);
	put32(&z->body, (uint32_t)at);
	put16(&z->body, 0);
	fd = file_of(z->body.data, z->body.len);
	buf_fini(&z->body);
	buf_fini(&z->directory);
	buf_fini(&z->record);
	return fd;
}

/* ---- wheels ---- */

#define WHEEL_TEXT "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n"

/* METADATA and WHEEL of "demo 1.0". */
static MAYBE_UNUSED void wheel_begin(struct hand_zip *z)
{
	zip_begin(z);
	zip_text(z, "demo-1.0.dist-info/METADATA",
		"Metadata-Version: 2.1\nName: Demo\nVersion: 1.0\n\nText\nName: other\n");
	zip_text(z, "demo-1.0.dist-info/WHEEL", WHEEL_TEXT);
}

static MAYBE_UNUSED int wheel_finish(struct hand_zip *z)
{
	buf_printf(&z->record, "demo-1.0.dist-info/RECORD,,\n");
	zip_add(z, "demo-1.0.dist-info/RECORD", z->record.data, z->record.len);
	return zip_finish(z);
}

#endif
