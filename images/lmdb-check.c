#include "images/lmdb-check.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/sys.h"

enum {
	PAGE_HEADER = 16, /* u64 number, u16, u16 flags, u16 lower, u16 upper (u32 pages) */
	PAGE_BRANCH = 1,
	PAGE_LEAF = 2,
	PAGE_OVERFLOW = 4,
	PAGE_META = 8,
	NODE_HEADER = 8, /* u32 data size or child, u16 flags or child, u16 key size */
	NODE_BIG = 1,    /* the data are the number of an overflow page */
	NODE_TABLE = 2,  /* the data are a table's description */
	KEY_MAX = 511,
	TABLE_SIZE = 48, /* u32, u16 flags, u16 depth, u64 branch, leaf, overflow, entries, root */
	TABLE_INTEGER_KEY = 8,
	DEPTH_MAX = 32,
	PAGE_SIZE_MIN = 512,
	PAGE_SIZE_MAX = 32768,
	FILE_PAGES_MAX = INT32_MAX,
	META_MAGIC = PAGE_HEADER,
	META_VERSION = PAGE_HEADER + 4,
	META_TABLES = PAGE_HEADER + 24, /* of the free pages, then the main table */
	META_LAST = META_TABLES + 2 * TABLE_SIZE,
	META_SNAPSHOT = META_LAST + 8,
	META_END = META_SNAPSHOT + 8,
};
static const uint64_t no_page = UINT64_MAX;
static const uint32_t magic = 0xbeefc0de, version = 1;

struct table {
	uint16_t flags, depth;
	uint64_t branch, leaf, overflow, entries, root;
};

struct walk {
	int fd;
	const char *name;
	uint32_t page_size;
	uint64_t last;        /* page number */
	uint8_t *seen;        /* a bit for each page: used by a table, or free */
	uint8_t *bufs;        /* a page for each level of two nested tables */
	struct table *table;  /* being walked */
	struct table counted; /* what was met of it so far */
	enum { FREE_PAGES, MAIN_TABLE, NAMED_TABLE } kind;
	unsigned base; /* first level of the table's bufs */
};

static uint16_t get16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return le16toh(v);
}

static uint32_t get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return le32toh(v);
}

static uint64_t get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return le64toh(v);
}

#define bad_page(w, page, ...) bad_page_at(w, page, e, __VA_ARGS__)
static int bad_page_at(const struct walk *w, uint64_t page, struct err *e, const char *what)
{
	return err_set(e, ERR_CORRUPT, "%s: page %" PRIu64 ": %s", w->name, page, what);
}

/* Every page has one use. */
static int mark(struct walk *w, uint64_t page, struct err *e)
{
	uint8_t bit = (uint8_t)(1 << (page % 8));

	if (page < 2 || page > w->last)
		return bad_page(w, page, "a number that no page of the file has");
	if (w->seen[page / 8] & bit)
		return bad_page(w, page, "used twice");
	w->seen[page / 8] |= bit;
	return 0;
}

static int read_pages(struct walk *w, uint64_t page, uint8_t *out, size_t n, struct err *e)
{
	if (sys_pread_all(w->fd, out, n, (off_t)(page * w->page_size)) == 0)
		return 0;
	if (errno == ENODATA)
		return bad_page(w, page, "the file ends before it");
	return err_sys(e, "read %s", w->name);
}

/* ---- data of leaves ---- */

/* A list of free pages: their count, then their numbers, the highest first. */
static int check_free_list(struct walk *w, uint64_t page, const uint8_t *p, size_t n, struct err *e)
{
	uint64_t count = n >= 8 ? get64(p) : 0, above = no_page;

	if (n < 8 || n % 8 || count > n / 8 - 1)
		return bad_page(w, page, "a list of free pages of a wrong length");
	for (uint64_t i = 1; i <= count; i++) {
		uint64_t id = get64(p + 8 * i);

		if (id >= above)
			return bad_page(w, page, "a list of free pages out of order");
		if (mark(w, id, e) < 0)
			return -1;
		above = id;
	}
	return 0;
}

/* Data of n bytes on pages of their own. */
static int check_overflow(struct walk *w, uint64_t page, uint64_t n, struct err *e)
{
	uint64_t pages = (PAGE_HEADER + n + w->page_size - 1) / w->page_size;
	uint8_t head[PAGE_HEADER];
	auto_free uint8_t *data = NULL;

	if (page < 2 || page > w->last || pages > w->last - page + 1)
		return bad_page(w, page, "overflow pages beyond the end");
	if (read_pages(w, page, head, sizeof(head), e) < 0)
		return -1;
	if (get64(head) != page || get16(head + 10) != PAGE_OVERFLOW || get32(head + 12) != pages)
		return bad_page(w, page, "not the overflow page it should be");
	for (uint64_t i = 0; i < pages; i++)
		if (mark(w, page + i, e) < 0)
			return -1;
	w->counted.overflow += pages;
	data = mem_alloc(pages * w->page_size);
	if (read_pages(w, page, data, PAGE_HEADER + n, e) < 0)
		return -1;
	return w->kind == FREE_PAGES ? check_free_list(w, page, data + PAGE_HEADER, n, e) : 0;
}

static int walk_table(struct walk *w, const uint8_t *p, uint64_t page, struct err *e);

/* A named table, inside the main one. */
static int check_named(struct walk *w, const uint8_t *p, uint64_t page, struct err *e)
{
	struct walk inner = *w;

	inner.kind = NAMED_TABLE;
	inner.base = DEPTH_MAX;
	return walk_table(&inner, p, page, e);
}

static int check_leaf_node(
	struct walk *w, uint64_t page, const uint8_t *node, size_t room, struct err *e)
{
	uint32_t n = get32(node);
	uint16_t flags = get16(node + 4), key = get16(node + 6);
	size_t in_page = flags & NODE_BIG ? 8 : n;
	const uint8_t *data = node + NODE_HEADER + key;

	w->counted.entries++;
	if (key == 0 || key > KEY_MAX || NODE_HEADER + (size_t)key + in_page > room)
		return bad_page(w, page, "an entry that does not fit");
	if (w->kind == FREE_PAGES && key != 8)
		return bad_page(w, page, "a list of free pages with a wrong key");
	if (w->kind == MAIN_TABLE)
		return flags == NODE_TABLE && n == TABLE_SIZE
			       ? check_named(w, data, page, e)
			       : bad_page(w, page, "an entry that is no table");
	if (flags == NODE_BIG)
		return check_overflow(w, get64(data), n, e);
	if (flags != 0)
		return bad_page(w, page, "an entry of an unknown kind");
	return w->kind == FREE_PAGES ? check_free_list(w, page, data, n, e) : 0;
}

/* ---- pages ---- */

static int walk_page(struct walk *w, uint64_t page, unsigned level, struct err *e);

static int check_branch_node(struct walk *w, uint64_t page, const uint8_t *node, size_t room,
	unsigned level, struct err *e)
{
	uint64_t child = get32(node) | (uint64_t)get16(node + 4) << 32;
	uint16_t key = get16(node + 6);

	if (key > KEY_MAX || NODE_HEADER + (size_t)key > room)
		return bad_page(w, page, "an entry that does not fit");
	return walk_page(w, child, level + 1, e);
}

/* Keys of one page ascend. */
static int check_order(
	struct walk *w, uint64_t page, const uint8_t *a, const uint8_t *b, struct err *e)
{
	uint16_t na = get16(a + 6), nb = get16(b + 6);
	int cmp;

	if (w->kind == FREE_PAGES)
		cmp = get64(a + NODE_HEADER) < get64(b + NODE_HEADER) ? -1 : 1;
	else
		cmp = memcmp(a + NODE_HEADER, b + NODE_HEADER, na < nb ? na : nb);
	if (cmp == 0)
		cmp = na < nb ? -1 : 1;
	return cmp < 0 ? 0 : bad_page(w, page, "keys out of order");
}

static int walk_nodes(
	struct walk *w, uint64_t page, const uint8_t *buf, unsigned level, struct err *e)
{
	bool leaf = get16(buf + 10) == PAGE_LEAF;
	uint16_t lower = get16(buf + 12), upper = get16(buf + 14);
	size_t n = (size_t)(lower - PAGE_HEADER) / 2;
	const uint8_t *before = NULL;

	for (size_t i = 0; i < n; i++) {
		uint16_t at = get16(buf + PAGE_HEADER + 2 * i);
		const uint8_t *node = buf + at;
		int rc;

		if (at < upper || at % 2 || (uint32_t)at + NODE_HEADER > w->page_size)
			return bad_page(w, page, "an entry outside of the page");
		rc = leaf ? check_leaf_node(w, page, node, w->page_size - at, e)
			  : check_branch_node(w, page, node, w->page_size - at, level, e);
		if (rc < 0 || (before && check_order(w, page, before, node, e) < 0))
			return -1;
		before = leaf || i > 0 ? node : NULL; /* a branch's first key is never looked at */
	}
	return 0;
}

static int walk_page(struct walk *w, uint64_t page, unsigned level, struct err *e)
{
	bool leaf = level + 1 == w->table->depth;
	uint8_t *buf = w->bufs + (size_t)(w->base + level) * w->page_size;
	uint16_t lower, upper;

	if (mark(w, page, e) < 0 || read_pages(w, page, buf, w->page_size, e) < 0)
		return -1;
	if (get64(buf) != page || get16(buf + 10) != (leaf ? PAGE_LEAF : PAGE_BRANCH))
		return bad_page(w, page, "not the page it should be");
	lower = get16(buf + 12);
	upper = get16(buf + 14);
	if (lower <= PAGE_HEADER || lower % 2 || lower > upper || upper > w->page_size)
		return bad_page(w, page, "a damaged header");
	if (leaf)
		w->counted.leaf++;
	else
		w->counted.branch++;
	return walk_nodes(w, page, buf, level, e);
}

static int walk_table(struct walk *w, const uint8_t *p, uint64_t page, struct err *e)
{
	struct table t = {.flags = get16(p + 4),
		.depth = get16(p + 6),
		.branch = get64(p + 8),
		.leaf = get64(p + 16),
		.overflow = get64(p + 24),
		.entries = get64(p + 32),
		.root = get64(p + 40)};

	if (t.flags != (w->kind == FREE_PAGES ? TABLE_INTEGER_KEY : 0) || t.depth > DEPTH_MAX ||
		(t.depth == 0) != (t.root == no_page))
		return bad_page(w, page, "a damaged description of a table");
	w->table = &t;
	w->counted = (struct table){0};
	if (t.depth && walk_page(w, t.root, 0, e) < 0)
		return -1;
	if (w->counted.branch != t.branch || w->counted.leaf != t.leaf ||
		w->counted.overflow != t.overflow || w->counted.entries != t.entries)
		return bad_page(w, page, "a table that holds other numbers of pages than it says");
	return 0;
}

static int walk_file(struct walk *w, const uint8_t *meta, uint64_t meta_page, struct err *e)
{
	w->kind = FREE_PAGES;
	if (walk_table(w, meta + META_TABLES, meta_page, e) < 0)
		return -1;
	w->kind = MAIN_TABLE;
	return walk_table(w, meta + META_TABLES + TABLE_SIZE, meta_page, e);
}

static bool is_meta(const uint8_t *m, uint64_t page, uint32_t page_size)
{
	uint64_t last = get64(m + META_LAST);

	return get64(m) == page && get16(m + 10) == PAGE_META && get32(m + META_MAGIC) == magic &&
	       get32(m + META_VERSION) == version && get32(m + META_TABLES) == page_size &&
	       get16(m + META_TABLES + 4) == TABLE_INTEGER_KEY && last >= 1 &&
	       last <= FILE_PAGES_MAX;
}

int lmdb_check_head(int fd, const char *name, struct err *e)
{
	struct walk w = {.fd = fd, .name = name};
	uint8_t meta[META_END];
	struct stat st;

	if (sys_fstat(fd, &st) < 0)
		return err_sys(e, "stat %s", name);
	if (st.st_size == 0)
		return 0;
	if (read_pages(&w, 0, meta, sizeof(meta), e) < 0)
		return -1;
	w.page_size = get32(meta + META_TABLES); /* where LMDB keeps it */
	if (w.page_size < PAGE_SIZE_MIN || w.page_size > PAGE_SIZE_MAX ||
		(w.page_size & (w.page_size - 1)) || !is_meta(meta, 0, w.page_size))
		return bad_page(&w, 0, "not the head of an LMDB file");
	if (read_pages(&w, 1, meta, sizeof(meta), e) < 0)
		return -1;
	return is_meta(meta, 1, w.page_size) ? 0 : bad_page(&w, 1, "not the head of an LMDB file");
}

int lmdb_check(int fd, const char *name, uint32_t page_size, uint64_t snapshot, struct err *e)
{
	struct walk w = {.fd = fd, .name = name, .page_size = page_size};
	uint8_t meta[META_END];
	uint64_t meta_page = snapshot & 1;
	int rc;

	if (page_size < PAGE_SIZE_MIN || page_size > PAGE_SIZE_MAX)
		return err_set(e, ERR_CORRUPT, "%s: pages of %" PRIu32 " bytes", name, page_size);
	if (read_pages(&w, meta_page, meta, sizeof(meta), e) < 0)
		return -1;
	w.last = get64(meta + META_LAST);
	if (!is_meta(meta, meta_page, page_size) || get64(meta + META_SNAPSHOT) != snapshot)
		return bad_page(&w, meta_page, "a damaged description of the file");
	w.seen = mem_alloc(w.last / 8 + 1);
	w.bufs = mem_array(2 * DEPTH_MAX, page_size);
	rc = walk_file(&w, meta, meta_page, e);
	free(w.seen);
	free(w.bufs);
	return rc;
}
