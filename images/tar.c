#include "images/tar.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

/* POSIX ustar header block. */
struct ustar {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100];
	char magic[6], version[2], uname[32], gname[32], major[8], minor[8], prefix[155], pad[12];
};
static_assert(sizeof(struct ustar) == TAR_BLOCK, "a header is one block");

static const char type_flags[] = {
	[NODE_DIR] = '5',
	[NODE_FILE] = '0',
	[NODE_SYMLINK] = '2',
	[NODE_HARDLINK] = '1',
	[NODE_FIFO] = '6',
	[NODE_CHAR] = '3',
	[NODE_BLOCK] = '4',
};

/* What a node's member says, before it is known which header holds it. */
struct member {
	const struct attr *a;
	char type;
	char path[TREE_PATH_MAX + 2], link[TREE_PATH_MAX + 1];
	uint64_t size;
};

static bool plain_root(const struct node *n)
{
	return !n->parent && n->a.mode == 0755 && n->a.uid == 0 && n->a.gid == 0 &&
	       n->a.mtime == 0 && n->a.nxattrs == 0;
}

bool tar_has_member(const struct node *n)
{
	return !plain_root(n);
}

size_t tar_padding(const struct node *n)
{
	return n->a.type == NODE_FILE ? (size_t)(-n->a.size % TAR_BLOCK) : 0;
}

static void describe(struct member *m, const struct node *n)
{
	m->a = n->link ? &n->link->a : &n->a;
	m->type = type_flags[n->a.type];
	m->size = n->a.type == NODE_FILE ? n->a.size : 0;
	node_path(n, m->path);
	m->link[0] = '\0';
	if (n->a.type == NODE_DIR) {
		size_t len = strlen(m->path);

		memcpy(m->path + len, n->parent ? "/" : "./", n->parent ? 2 : 3);
	} else if (n->a.type == NODE_SYMLINK) {
		snprintf(m->link, sizeof(m->link), "%s", n->a.target);
	} else if (n->link) {
		node_path(n->link, m->link);
	}
}

/* ---- numbers and names that ustar can hold ---- */

static bool fits_name(const char *s)
{
	size_t n = 0;

	for (; s[n]; n++)
		if ((unsigned char)s[n] >= 0x80)
			return false;
	return n <= sizeof(((struct ustar *)0)->name);
}

static bool fits_octal(uint64_t v, size_t size)
{
	return v < (uint64_t)1 << (3 * (size - 1));
}

/* Zero where it does not fit: the extended header then says it. */
static void put_octal(char *field, size_t size, uint64_t v)
{
	char text[16];

	assert(size <= sizeof(text));
	snprintf(text, sizeof(text), "%0*" PRIo64, (int)size - 1, fits_octal(v, size) ? v : 0);
	memcpy(field, text, size);
}

#define OCTAL(h, field, v) put_octal((h)->field, sizeof((h)->field), v)
#define FITS(field, v) fits_octal(v, sizeof(((struct ustar *)0)->field))

static uint64_t seconds(int64_t mtime)
{
	return mtime >= 0 ? (uint64_t)mtime : UINT64_MAX; /* which fits nowhere */
}

static void put_text(char *field, size_t size, const char *text)
{
	memcpy(field, text, strnlen(text, size));
}

static int put_ustar(struct buf *b, struct ustar *h, struct err *e)
{
	const unsigned char *p = (const unsigned char *)h;
	unsigned sum = 0;

	memcpy(h->magic, "ustar", 6);
	memcpy(h->version, "00", 2);
	memset(h->sum, ' ', sizeof(h->sum));
	for (size_t i = 0; i < sizeof(*h); i++)
		sum += p[i];
	put_octal(h->sum, 7, sum); /* six digits, NUL, and the space stays */
	return buf_add(b, h, sizeof(*h), e);
}

/* ---- the extended header ---- */

static size_t digits(size_t n)
{
	size_t k = 1;

	for (; n >= 10; n /= 10)
		k++;
	return k;
}

/* "LENGTH key=value\n", where LENGTH counts its own digits. */
static int put_record(struct buf *b, const char *key, const void *value, size_t n, struct err *e)
{
	size_t rest = 1 + strlen(key) + 1 + n + 1, total = rest + digits(rest);
	char head[32];

	if (digits(total) > digits(rest))
		total++;
	snprintf(head, sizeof(head), "%zu ", total);
	return buf_add(b, head, strlen(head), e) < 0 || buf_add(b, key, strlen(key), e) < 0 ||
			       buf_add(b, "=", 1, e) < 0 || buf_add(b, value, n, e) < 0 ||
			       buf_add(b, "\n", 1, e) < 0
		       ? -1
		       : 0;
}

static int put_text_record(struct buf *b, const char *key, const char *value, struct err *e)
{
	return put_record(b, key, value, strlen(value), e);
}

static int put_number_record(struct buf *b, const char *key, int64_t v, struct err *e)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, v);
	return put_text_record(b, key, text, e);
}

static int put_xattrs(struct buf *b, const struct attr *a, struct err *e)
{
	for (uint32_t i = 0; i < a->nxattrs; i++) {
		const struct xattr *x = &a->xattrs[i];
		char key[TREE_NAME_MAX + 32];

		if (strchr(x->name, '='))
			return err_set(e, ERR_UNSUPPORTED,
				"extended attribute '%.200s': a layer cannot hold a name with '='",
				x->name);
		snprintf(key, sizeof(key), "SCHILY.xattr.%s", x->name);
		if (put_record(b, key, x->value, x->len, e) < 0)
			return -1;
	}
	return 0;
}

/* Everything about m that its ustar header cannot say. */
static int put_records(struct buf *b, const struct member *m, struct err *e)
{
	const struct attr *a = m->a;

	if (!str_utf8(m->path, strlen(m->path)) || !str_utf8(m->link, strlen(m->link)))
		if (put_text_record(b, "hdrcharset", "BINARY", e) < 0)
			return -1;
	if (!fits_name(m->path) && put_text_record(b, "path", m->path, e) < 0)
		return -1;
	if (!fits_name(m->link) && put_text_record(b, "linkpath", m->link, e) < 0)
		return -1;
	if (!FITS(size, m->size) && put_number_record(b, "size", (int64_t)m->size, e) < 0)
		return -1;
	if (!FITS(uid, a->uid) && put_number_record(b, "uid", a->uid, e) < 0)
		return -1;
	if (!FITS(gid, a->gid) && put_number_record(b, "gid", a->gid, e) < 0)
		return -1;
	if (!FITS(mtime, seconds(a->mtime)) && put_number_record(b, "mtime", a->mtime, e) < 0)
		return -1;
	return m->type == '1' ? 0 : put_xattrs(b, a, e);
}

/* Bring the data to a multiple of TAR_ALIGN with a comment that fills the records' last block. */
static int put_comment(struct buf *records, uint64_t at, struct err *e)
{
	enum { COMMENT_MIN = sizeof("12 comment=\n") - 1, PER_ALIGN = TAR_ALIGN / TAR_BLOCK };
	size_t blocks = (records->len + TAR_BLOCK - 1) / TAR_BLOCK, fill;
	char spaces[TAR_ALIGN + 2 * TAR_BLOCK];

	/* two more blocks are the headers; without records only the second of them is there */
	if ((at / TAR_BLOCK + blocks + (blocks ? 2 : 1)) % PER_ALIGN == 0)
		return 0;
	while ((at / TAR_BLOCK + blocks + 2) % PER_ALIGN != 0 ||
		blocks * TAR_BLOCK < records->len + COMMENT_MIN)
		blocks++;
	fill = blocks * TAR_BLOCK - records->len;
	memset(spaces, ' ', sizeof(spaces));
	return put_record(
		records, "comment", spaces, fill - strlen(" comment=\n") - digits(fill), e);
}

static int put_extended(
	struct buf *b, const struct buf *records, const struct member *m, struct err *e)
{
	static const char zeros[TAR_BLOCK];
	struct ustar h = {.type = 'x', .name = "PaxHeaders/0"};

	if (records->len == 0)
		return 0;
	OCTAL(&h, mode, 0644);
	OCTAL(&h, uid, 0);
	OCTAL(&h, gid, 0);
	OCTAL(&h, size, records->len);
	OCTAL(&h, mtime, seconds(m->a->mtime));
	OCTAL(&h, major, 0);
	OCTAL(&h, minor, 0);
	if (put_ustar(b, &h, e) < 0 || buf_add(b, records->data, records->len, e) < 0)
		return -1;
	return buf_add(b, zeros, -records->len % TAR_BLOCK, e);
}

static int put_member(struct buf *b, const struct member *m, struct err *e)
{
	struct ustar h = {.type = m->type};

	put_text(h.name, sizeof(h.name), m->path);
	put_text(h.link, sizeof(h.link), m->link);
	OCTAL(&h, mode, m->a->mode);
	OCTAL(&h, uid, m->a->uid);
	OCTAL(&h, gid, m->a->gid);
	OCTAL(&h, size, m->size);
	OCTAL(&h, mtime, seconds(m->a->mtime));
	OCTAL(&h, major, m->a->major);
	OCTAL(&h, minor, m->a->minor);
	return put_ustar(b, &h, e);
}

int tar_header(struct buf *b, const struct node *n, uint64_t at, bool align, struct err *e)
{
	auto_buf struct buf records = BUF_INIT(TAR_HEADER_MAX);
	struct member m;

	describe(&m, n);
	if (put_records(&records, &m, e) < 0 || (align && put_comment(&records, at, e) < 0) ||
		put_extended(b, &records, &m, e) < 0 || put_member(b, &m, e) < 0)
		return err_ctx(e, "'%.200s'", m.path);
	return 0;
}
