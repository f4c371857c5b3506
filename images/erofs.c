#include "images/erofs.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "base/sys.h"

/* The image: superblock and device slot, then all inodes in the order of the tree, each with its
 * xattrs and what follows it (chunk indexes, or the last part of a folder or link), then the blocks
 * of big folders.
 *
 *   1024 superblock  1152 device slot  1280 inodes ...  | blocks of folders ... |
 *
 * Inodes are addressed by nid = offset / 32, so the first one, the root, has nid 40. */
enum {
	BLOCK = 4096,
	SUPER_AT = 1024,
	DEVICE_AT = SUPER_AT + 128,
	INODES_AT = DEVICE_AT + 128,
	SLOT = 32,
	INODE = 64, /* extended */
	DIRENT = 12,
	CHUNK_INDEX = 8,
	XATTR_HEADER = 12,
	XATTR_ENTRY = 4,
};

enum {
	MAGIC = 0xE0F5E1E2,
	COMPAT_MTIME = 2,
	INCOMPAT_CHUNKED = 4,
	INCOMPAT_DEVICES = 8,
	LAYOUT_PLAIN = 0,
	LAYOUT_INLINE = 2,
	LAYOUT_CHUNKED = 4,
	CHUNK_BITS = 8, /* log2(CHUNK_SIZE / BLOCK) */
	CHUNK_INDEXES = 0x20,
};
static_assert(CHUNK_SIZE == BLOCK << CHUNK_BITS, "a file's chunk is the pool's");

struct writer {
	uint8_t *image;
	uint64_t inodes_end; /* from here, whole blocks */
	uint64_t blocks;     /* of the image */
	uint64_t next_block; /* where the next folder's blocks go */
	uint32_t inodes;
};

static void put(uint8_t *p, uint64_t v, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

static uint64_t align(uint64_t v, uint64_t to)
{
	return (v + to - 1) / to * to;
}

/* ---- extended attributes ---- */

static const struct {
	const char *text;
	uint8_t id;
} prefixes[] = {
	{"user.", 1},
	{"system.posix_acl_access", 2},
	{"system.posix_acl_default", 3},
	{"trusted.", 4},
	{"security.", 6},
};

/* What is left of the name after its prefix. */
static const char *split_name(const char *name, uint8_t *id)
{
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (str_starts(name, prefixes[i].text)) {
			*id = prefixes[i].id;
			return name + strlen(prefixes[i].text);
		}
	assert(false && "tree_put() lets no other name in");
	return NULL;
}

static uint64_t xattr_size(const struct xattr *x)
{
	uint8_t id;

	return align(XATTR_ENTRY + strlen(split_name(x->name, &id)) + x->len, 4);
}

static uint64_t xattrs_size(const struct attr *a)
{
	uint64_t n = a->nxattrs ? XATTR_HEADER : 0;

	for (uint32_t i = 0; i < a->nxattrs; i++)
		n += xattr_size(&a->xattrs[i]);
	return n;
}

static void put_xattrs(uint8_t *p, const struct attr *a)
{
	p += XATTR_HEADER; /* zero: none are shared */
	for (uint32_t i = 0; i < a->nxattrs; i++) {
		const struct xattr *x = &a->xattrs[i];
		uint8_t id;
		const char *rest = split_name(x->name, &id);
		size_t n = strlen(rest);

		p[0] = (uint8_t)n;
		p[1] = id;
		put(p + 2, x->len, 2);
		memcpy(p + XATTR_ENTRY, rest, n);
		if (x->len)
			memcpy(p + XATTR_ENTRY + n, x->value, x->len);
		p += xattr_size(x);
	}
}

/* ---- folders ---- */

/* A folder's entries in the order that binary search needs: "." and ".." stand among the children.
 */
struct entries {
	const struct node *dir, *child;
	int dots; /* how many of them are out */
};

struct entry {
	const char *name;
	const struct node *object;
};

static bool next_entry(struct entries *l, struct entry *en)
{
	static const char *const dots[] = {".", ".."};

	if (l->dots < 2 && (!l->child || strcmp(dots[l->dots], l->child->name) < 0)) {
		en->name = dots[l->dots];
		en->object = l->dots == 1 && l->dir->parent ? l->dir->parent : l->dir;
		l->dots++;
		return true;
	}
	if (!l->child)
		return false;
	en->name = l->child->name;
	en->object = l->child->link ? l->child->link : l->child;
	l->child = l->child->next;
	return true;
}

/* Entries of one block, at most: all names are at least one byte long. */
enum { ENTRIES_MAX = BLOCK / (DIRENT + 1) };

/* Take the entries of the next block into v; *used is how much of it they fill. */
static size_t next_block(struct entries *l, struct entry v[ENTRIES_MAX], size_t *used)
{
	size_t n = 0;

	*used = 0;
	for (;;) {
		struct entries before = *l;
		size_t need;

		if (!next_entry(l, &v[n]))
			return n;
		need = DIRENT + strlen(v[n].name);
		if (*used + need > BLOCK) {
			*l = before;
			return n;
		}
		*used += need;
		if (++n == ENTRIES_MAX)
			return n;
	}
}

static uint64_t folder_size(const struct node *dir)
{
	struct entries l = {.dir = dir, .child = dir->child};
	struct entry v[ENTRIES_MAX];
	uint64_t blocks = 0;
	size_t used, last = 0;

	while (next_block(&l, v, &used) > 0) {
		last = used;
		blocks++;
	}
	return (blocks - 1) * BLOCK + last;
}

static uint8_t entry_type(const struct node *n)
{
	static const uint8_t types[] = {
		[NODE_FILE] = 1,
		[NODE_DIR] = 2,
		[NODE_CHAR] = 3,
		[NODE_BLOCK] = 4,
		[NODE_FIFO] = 5,
		[NODE_SYMLINK] = 7,
	};

	return types[n->a.type];
}

static void put_entries(uint8_t *block, const struct entry *v, size_t n)
{
	size_t at = n * DIRENT;

	for (size_t i = 0; i < n; i++) {
		uint8_t *d = block + i * DIRENT;
		size_t len = strlen(v[i].name);

		put(d, v[i].object->scratch, 8);
		put(d + 8, at, 2);
		d[10] = entry_type(v[i].object);
		memcpy(block + at, v[i].name, len);
		at += len;
	}
}

/* ---- inodes ---- */

/* Where the parts of an inode go. */
struct shape {
	uint64_t size, xattrs; /* i_size; bytes of xattrs */
	uint64_t tail;         /* bytes of content right behind them */
	uint64_t blocks;       /* of content elsewhere */
	unsigned layout;
};

static uint64_t content_size(const struct node *n)
{
	if (n->a.type == NODE_DIR)
		return folder_size(n);
	return n->a.type == NODE_SYMLINK ? strlen(n->a.target) : 0;
}

static struct shape shape_of(const struct node *n)
{
	struct shape s = {.xattrs = xattrs_size(&n->a), .layout = LAYOUT_PLAIN};

	if (n->a.type == NODE_FILE) {
		s.size = n->a.size;
		if (n->a.nchunks)
			s.layout = LAYOUT_CHUNKED;
		return s;
	}
	s.size = content_size(n);
	s.tail = s.size % BLOCK;
	s.blocks = s.size / BLOCK;
	if (s.tail && INODE + s.xattrs + s.tail <= BLOCK) {
		s.layout = LAYOUT_INLINE;
	} else if (s.tail) {
		s.tail = 0;
		s.blocks++;
	}
	return s;
}

/* Bytes behind inode and xattrs; chunk indexes are aligned to their size, and so are inodes. */
static uint64_t behind(const struct node *n, const struct shape *s)
{
	if (s->layout == LAYOUT_CHUNKED)
		return align(s->xattrs, CHUNK_INDEX) - s->xattrs +
		       (uint64_t)n->a.nchunks * CHUNK_INDEX;
	return s->tail;
}

/* Give every object its place: node->scratch becomes its nid. */
static void place_inodes(struct writer *w, struct tree *t)
{
	uint64_t at = INODES_AT, blocks = 0;

	for (struct node *n = tree_root(t); n; n = tree_next(n)) {
		struct shape s;
		uint64_t whole;

		if (n->link)
			continue;
		s = shape_of(n);
		/* Neither the inode nor inline content may cross into another block. */
		whole = INODE + (s.layout == LAYOUT_INLINE ? s.xattrs + s.tail : 0);
		if (at % BLOCK + whole > BLOCK)
			at = align(at, BLOCK);
		n->scratch = at / SLOT;
		at = align(at + INODE + s.xattrs + behind(n, &s), SLOT);
		blocks += s.blocks;
		w->inodes++;
	}
	w->inodes_end = align(at, BLOCK);
	w->next_block = w->inodes_end / BLOCK;
	w->blocks = w->next_block + blocks;
}

static int put_chunks(uint8_t *p, const struct node *n, uint64_t pool_blocks, struct err *e)
{
	for (uint32_t i = 0; i < n->a.nchunks; i++) {
		int64_t block = n->a.chunks[i].block;

		assert(block >= 0);
		if (block >= UINT32_MAX) /* all ones means a hole */
			return err_set(e, ERR_UNSUPPORTED,
				"'%.200s': the pool's block %" PRId64
				" is beyond what EROFS addresses (16 TiB)",
				n->name, block);
		assert((uint64_t)block < pool_blocks);
		put(p + (size_t)i * CHUNK_INDEX + 2, 1, 2);
		put(p + (size_t)i * CHUNK_INDEX + 4, (uint64_t)block, 4);
	}
	return 0;
}

/* The content of a folder or link: whole blocks first, then the tail behind the inode. */
static void put_content(
	struct writer *w, const struct node *n, const struct shape *s, uint8_t *tail)
{
	struct entries l = {.dir = n, .child = n->child};
	struct entry v[ENTRIES_MAX];
	size_t used;

	for (uint64_t i = 0; i < s->blocks + (s->tail ? 1 : 0); i++) {
		uint8_t *p = i < s->blocks ? w->image + w->next_block++ * BLOCK : tail;

		if (n->a.type == NODE_SYMLINK)
			memcpy(p, n->a.target, s->size);
		else
			put_entries(p, v, next_block(&l, v, &used));
	}
}

static uint16_t format_bits(const struct node *n)
{
	static const uint16_t types[] = {
		[NODE_FILE] = S_IFREG >> 12,
		[NODE_DIR] = S_IFDIR >> 12,
		[NODE_CHAR] = S_IFCHR >> 12,
		[NODE_BLOCK] = S_IFBLK >> 12,
		[NODE_FIFO] = S_IFIFO >> 12,
		[NODE_SYMLINK] = S_IFLNK >> 12,
	};

	return (uint16_t)((unsigned)types[n->a.type] << 12 | n->a.mode);
}

/* The inode's union: first block, device number, or chunk format. */
static uint64_t union_of(const struct writer *w, const struct node *n, const struct shape *s)
{
	if (s->layout == LAYOUT_CHUNKED)
		return CHUNK_INDEXES | CHUNK_BITS;
	if (n->a.type == NODE_CHAR || n->a.type == NODE_BLOCK) /* the kernel's new_encode_dev() */
		return (n->a.minor & 0xff) | n->a.major << 8 | (n->a.minor & ~0xffu) << 12;
	return s->blocks ? w->next_block : 0;
}

static int put_inode(struct writer *w, const struct node *n, uint32_t number, uint64_t pool_blocks,
	struct err *e)
{
	struct shape s = shape_of(n);
	uint8_t *p = w->image + n->scratch * SLOT, *rest = p + INODE + s.xattrs;

	put(p, s.layout << 1 | 1, 2);
	put(p + 2, s.xattrs ? 1 + (s.xattrs - XATTR_HEADER) / 4 : 0, 2);
	put(p + 4, format_bits(n), 2);
	put(p + 8, s.size, 8);
	put(p + 16, union_of(w, n, &s), 4);
	put(p + 20, number, 4);
	put(p + 24, n->a.uid, 4);
	put(p + 28, n->a.gid, 4);
	put(p + 32, (uint64_t)n->a.mtime, 8);
	put(p + 44, n->nlink, 4);
	if (s.xattrs)
		put_xattrs(p + INODE, &n->a);
	if (s.layout == LAYOUT_CHUNKED)
		return put_chunks(p + INODE + align(s.xattrs, CHUNK_INDEX), n, pool_blocks, e);
	put_content(w, n, &s, rest);
	return 0;
}

static void put_super(const struct writer *w, const struct node *root, uint64_t pool_blocks)
{
	uint8_t *p = w->image + SUPER_AT;

	put(p, MAGIC, 4);
	put(p + 8, COMPAT_MTIME, 4);
	p[12] = 12; /* log2(BLOCK) */
	put(p + 14, root->scratch, 2);
	put(p + 16, w->inodes, 8);
	put(p + 36, w->blocks, 4);
	memcpy(p + 64, "svrun", 5);
	put(p + 80, INCOMPAT_CHUNKED | INCOMPAT_DEVICES, 4);
	put(p + 86, 1, 2); /* extra devices */
	put(p + 88, DEVICE_AT / 128, 2);
	p = w->image + DEVICE_AT;
	memcpy(p, "pool", 4);
	put(p + 64, pool_blocks < UINT32_MAX ? pool_blocks : UINT32_MAX, 4);
}

static int fill_image(struct writer *w, struct tree *t, uint64_t pool_blocks, struct err *e)
{
	uint32_t number = 1;

	for (struct node *n = tree_root(t); n; n = tree_next(n))
		if (!n->link && put_inode(w, n, number++, pool_blocks, e) < 0)
			return -1;
	put_super(w, tree_root(t), pool_blocks);
	return 0;
}

int erofs_write(struct tree *t, uint64_t pool_blocks, int fd, struct err *e)
{
	struct writer w = {0};
	int rc;

	place_inodes(&w, t);
	if (w.blocks >= UINT32_MAX)
		return err_set(
			e, ERR_UNSUPPORTED, "a metadata image of %" PRIu64 " blocks", w.blocks);
	w.image = mem_array(w.blocks, BLOCK);
	rc = fill_image(&w, t, pool_blocks, e);
	if (rc == 0 && sys_write_all(fd, w.image, w.blocks * BLOCK) < 0) {
		err_sys(e, "write the metadata image");
		rc = sys_hint_space(e, fd, w.blocks * BLOCK);
	}
	free(w.image);
	return rc;
}
