#include "images/tar-read.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "images/tar-fields.h"
#include "images/tar.h"

struct tar_reader {
	struct source *src;
	const char *name;
	const unsigned char *p; /* what src gave and was not used yet */
	size_t left;
	uint64_t at; /* offset of p */
	bool eof, ended;
	uint64_t data;    /* bytes of the member's data that were not given out yet */
	unsigned padding; /* behind them */
	struct buf raw;
	bool raw_given; /* by tar_reader_rest() */
	/* of the member that is being read */
	bool has_long_name, has_long_link;
	struct buf long_name, long_link;
	struct buf records; /* a copy, cut into strings */
	struct buf global;  /* the same of a global header, only to be checked */
	struct tar_records ext;
	char name_text[TAR_NAME_TEXT], link_text[TAR_NAME_TEXT];
	struct tar_member m;
};

struct tar_reader *tar_reader_new(struct source *src, const char *name)
{
	struct tar_reader *r = mem_alloc(sizeof(*r));

	r->src = src;
	r->name = name;
	r->raw = BUF_INIT(TAR_RAW_MAX);
	r->long_name = r->long_link = r->records = r->global = BUF_INIT(TAR_EXTENDED_MAX);
	return r;
}

void tar_reader_free(struct tar_reader *r)
{
	if (!r)
		return;
	buf_fini(&r->raw);
	buf_fini(&r->long_name);
	buf_fini(&r->long_link);
	buf_fini(&r->records);
	buf_fini(&r->global);
	tar_records_fini(&r->ext);
	free(r);
}

uint64_t tar_reader_offset(const struct tar_reader *r)
{
	return r->at;
}

/* ---- bytes ---- */

static int at_byte(const struct tar_reader *r, uint64_t at, struct err *e)
{
	return err_ctx(e, "%s: tar: byte %" PRIu64, r->name, at);
}

/* Have a byte, unless src has ended. */
static int refill(struct tar_reader *r, struct err *e)
{
	const void *p;
	int rc;

	if (r->left || r->eof)
		return 0;
	rc = source_next(r->src, &p, &r->left, e);
	if (rc <= 0)
		r->left = 0;
	else
		r->p = p;
	r->eof = rc == 0;
	return rc < 0 ? -1 : 0;
}

/* Up to max bytes as they lie. */
static int take_span(struct tar_reader *r, uint64_t max, const void **p, size_t *n, struct err *e)
{
	*n = 0;
	if (refill(r, e) < 0)
		return -1;
	if (r->eof)
		return 0;
	*p = r->p;
	*n = r->left < max ? r->left : (size_t)max;
	r->p += *n;
	r->left -= *n;
	r->at += *n;
	return *n > 0;
}

/* n bytes to the end of raw; fewer when src ends. */
static int take_raw(struct tar_reader *r, size_t n, size_t *got, struct err *e)
{
	const void *p;
	size_t k;
	int rc;

	for (*got = 0; *got < n; *got += k) {
		rc = take_span(r, n - *got, &p, &k, e);
		if (rc <= 0)
			return rc;
		if (buf_add(&r->raw, p, k, e) < 0) {
			err_ctx(e, "the headers of a member");
			return at_byte(r, r->m.header_at, e);
		}
	}
	return 0;
}

/* Skip the rest of the member's data, and take their padding. */
static int finish_member(struct tar_reader *r, struct err *e)
{
	const void *p;
	size_t n;
	int rc;

	while ((rc = tar_reader_data(r, &p, &n, e)) > 0)
		;
	r->raw.len = 0;
	r->m = (struct tar_member){.raw_at = r->at, .name = "", .target = ""};
	/* the end of the tar may be cut off here: others read that, too */
	return rc < 0 ? -1 : take_raw(r, r->padding, &n, e);
}

/* ---- headers ---- */

/* The block that was read last. */
static const struct tar_block *last_block(const struct tar_reader *r)
{
	return (const struct tar_block *)(const void *)(r->raw.data + r->raw.len - TAR_BLOCK);
}

/* The next block, at the end of raw. 1, 0 at the end of the archive, -1. */
static int take_block(struct tar_reader *r, struct err *e)
{
	static const unsigned char zeros[TAR_BLOCK];
	uint64_t at = r->at;
	size_t n;

	if (take_raw(r, TAR_BLOCK, &n, e) < 0)
		return -1;
	if (n == 0)
		return 0;
	if (n == TAR_BLOCK && memcmp(last_block(r), zeros, TAR_BLOCK) != 0)
		return tar_block_check(last_block(r), e) < 0 ? at_byte(r, at, e) : 1;
	if (n == TAR_BLOCK) {
		if (take_raw(r, TAR_BLOCK, &n, e) < 0)
			return -1;
		if (n == 0 || (n == TAR_BLOCK && memcmp(last_block(r), zeros, TAR_BLOCK) == 0))
			return 0;
	}
	err_set(e, ERR_CORRUPT, "%s",
		n == TAR_BLOCK ? "one zero block, and then more members"
			       : "the tar ends in the middle of a header");
	return at_byte(r, at, e);
}

/* The body of an extended header of `size` bytes: into raw, and a copy of it into out. */
static int take_body(struct tar_reader *r, uint64_t size, struct buf *out, struct err *e)
{
	size_t whole, got;

	if (size > TAR_EXTENDED_MAX)
		return err_set(e, ERR_CORRUPT,
			"an extended header of %" PRIu64 " bytes, the limit is %d", size,
			TAR_EXTENDED_MAX);
	whole = (size_t)(size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
	if (take_raw(r, whole, &got, e) < 0)
		return -1;
	if (got < whole)
		return err_set(e, ERR_CORRUPT, "the tar ends in the middle of a header");
	out->len = 0;
	return buf_add(out, r->raw.data + r->raw.len - whole, (size_t)size, e);
}

/* A header that speaks about the next one. */
static int read_extension(struct tar_reader *r, char type, uint64_t size, struct err *e)
{
	switch (type) {
	case 'x':
		return take_body(r, size, &r->records, e) < 0 ||
				       tar_records_parse(&r->ext, &r->records, e) < 0
			       ? -1
			       : 0;
	case 'g':
		return take_body(r, size, &r->global, e) < 0 || tar_records_check(&r->global, e) < 0
			       ? -1
			       : 0;
	case 'L':
		r->has_long_name = true;
		return take_body(r, size, &r->long_name, e);
	default:
		r->has_long_link = true;
		return take_body(r, size, &r->long_link, e);
	}
}

static bool has_data(char type)
{
	return type < '1' || type > '6';
}

static int fill_names(struct tar_reader *r, const struct tar_block *b, struct err *e)
{
	struct tar_member *m = &r->m;
	bool link = m->type == '1' || m->type == '2';

	m->name = r->has_long_name ? r->long_name.data
		  : r->ext.path    ? r->ext.path
				   : tar_block_name(b, r->name_text);
	m->target = !link              ? ""
		    : r->has_long_link ? r->long_link.data
		    : r->ext.linkpath  ? r->ext.linkpath
				       : tar_block_link(b, r->link_text);
	if (!*m->name)
		return err_set(e, ERR_CORRUPT, "a member without a name");
	return 0;
}

static int fill_member(struct tar_reader *r, const struct tar_block *b, struct err *e)
{
	struct tar_member *m = &r->m;

	if (tar_block_numbers(b, &r->ext, m, e) < 0 || fill_names(r, b, e) < 0)
		return -1;
	if (m->type == '\0')
		m->type = str_ends(m->name, "/") ? '5' : '0';
	if (m->type == '7') /* contiguous: a file like any other */
		m->type = '0';
	if (m->type == 'S')
		return err_set(e, ERR_UNSUPPORTED, "'%.200s' is a sparse file", m->name);
	if (!has_data(m->type))
		m->size = 0;
	m->xattrs = r->ext.xattrs;
	m->nxattrs = r->ext.nxattrs;
	return 0;
}

static void reset_member(struct tar_reader *r)
{
	r->has_long_name = r->has_long_link = false;
	tar_records_reset(&r->ext);
}

/* The member's headers, up to its data. */
static int read_headers(struct tar_reader *r, struct err *e)
{
	bool extended = false;
	uint64_t at, size;
	char type;
	int rc;

	r->m.header_at = r->at;
	for (;; extended = true) {
		at = r->at;
		rc = take_block(r, e);
		if (rc < 0)
			return -1;
		if (rc == 0 && extended) {
			err_set(e, ERR_CORRUPT, "an extended header without a member");
			return at_byte(r, r->m.header_at, e);
		}
		if (rc == 0)
			return 0;
		type = last_block(r)->type;
		if (type == '\0' || !strchr("xgLK", type))
			break;
		if (tar_block_size(last_block(r), &size, e) < 0 ||
			read_extension(r, type, size, e) < 0)
			return at_byte(r, at, e);
	}
	r->m.type = type;
	return fill_member(r, last_block(r), e) < 0 ? at_byte(r, at, e) : 1;
}

int tar_reader_next(struct tar_reader *r, const struct tar_member **m, struct err *e)
{
	int rc;

	if (r->ended)
		return 0;
	if (finish_member(r, e) < 0)
		return -1;
	reset_member(r);
	rc = read_headers(r, e);
	if (rc < 0)
		return -1;
	r->ended = rc == 0;
	r->m.data_at = r->at;
	r->m.raw = r->raw.data;
	r->data = r->m.size;
	r->padding = (unsigned)(-r->m.size % TAR_BLOCK);
	*m = &r->m;
	return rc;
}

/* ---- data ---- */

int tar_reader_take(struct tar_reader *r, uint64_t max, const void **p, size_t *n, struct err *e)
{
	int rc;

	*n = 0;
	if (r->data == 0)
		return 0;
	rc = take_span(r, max < r->data ? max : r->data, p, n, e);
	if (rc == 0) {
		err_set(e, ERR_CORRUPT, "the tar ends in the middle of '%.200s'", r->m.name);
		return at_byte(r, r->at, e);
	}
	if (rc > 0)
		r->data -= *n;
	return rc;
}

int tar_reader_data(struct tar_reader *r, const void **p, size_t *n, struct err *e)
{
	return tar_reader_take(r, UINT64_MAX, p, n, e);
}

int tar_reader_rest(struct tar_reader *r, const void **p, size_t *n, struct err *e)
{
	assert(r->ended);
	if (!r->raw_given && r->raw.len > 0) {
		r->raw_given = true;
		*p = r->raw.data;
		*n = r->raw.len;
		return 1;
	}
	return take_span(r, UINT64_MAX, p, n, e);
}
