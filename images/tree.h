/* The file tree of an image, in memory: what all layers add up to.
 *
 * The builder fills it from packages, index_decode() fills it from an image's index; layer_write(),
 * index_encode() and erofs_write() read it. Everything in a tree lives in its arena. One thread at
 * a time.
 *
 * Paths are relative to the root, without a leading or trailing slash; "" is the root itself.
 */
#ifndef IMAGES_TREE_H
#define IMAGES_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "images/digest.h"

enum {
	CHUNK_SIZE = 1 << 20, /* files are cut into chunks of this many bytes; the last is short */
	CHUNK_NO_BLOCK = -1,  /* chunk.block: not in the pool, as far as is known */
	CHUNK_NO_LAYER = -1,  /* chunk.layer: in no layer yet */
	TREE_PATH_MAX = 4095, /* bytes of a path */
	TREE_NAME_MAX = 255,  /* bytes of one component */
	TREE_DEPTH_MAX = 256, /* components of a path */
	TREE_NODES_MAX = 16 << 20, /* objects of one image */
	TREE_XATTRS_MAX = 64,      /* of one object */
	TREE_XATTR_VALUE_MAX = 65535,
	TREE_XATTRS_BYTES = 128 << 10, /* names and values of one object */
	TREE_LINKS_MAX = 65000,        /* names of one object (ext4's limit, too) */
};

/* A piece of file data: what it is, where it lies in the pool, where it travels. */
struct chunk {
	struct digest digest; /* sha256 of the uncompressed bytes */
	uint32_t length;      /* uncompressed bytes, 1 to CHUNK_SIZE */
	int64_t block;        /* first 4 KiB block in the pool, or CHUNK_NO_BLOCK */
	int32_t layer;        /* index of the layer that carries it, or CHUNK_NO_LAYER */
	uint32_t stored;      /* bytes of its frame in the layer blob */
	uint64_t offset;      /* of its frame in the layer blob */
};

enum node_type {
	NODE_DIR = 1,
	NODE_FILE,
	NODE_SYMLINK,
	NODE_HARDLINK, /* target: path of the object it is another name of */
	NODE_FIFO,
	NODE_CHAR,
	NODE_BLOCK,
};

struct xattr {
	const char *name; /* with its prefix: "security.capability" */
	const void *value;
	size_t len;
};

/* What an archive or a manifest says of one object. Pointers are borrowed from whoever made it. */
struct attr {
	enum node_type type;
	uint32_t mode; /* permission bits, 07777 */
	uint32_t uid, gid;
	int64_t mtime;         /* seconds; whole seconds are all that images carry */
	const char *target;    /* SYMLINK, HARDLINK */
	uint32_t major, minor; /* CHAR, BLOCK */
	uint64_t size;         /* FILE */
	struct chunk *chunks;  /* FILE: in order, ceil(size / CHUNK_SIZE) of them */
	uint32_t nchunks, nxattrs;
	struct xattr *xattrs; /* sorted by name */
};

struct node {
	struct node *parent, *child, *next;                    /* child: first; next: sibling */
	struct node *prev, *hash_next, *ring_next, *ring_prev; /* tree.c's own */
	const char *name;
	struct attr a;     /* of a HARDLINK's node only the type is set: the rest is in link->a */
	struct node *link; /* HARDLINK: the object itself, never another HARDLINK */
	uint32_t nlink;   /* names of this object (FILE and the like) or of sub-folders + 2 (DIR) */
	int32_t layer;    /* index of the layer that carries this entry, or CHUNK_NO_LAYER */
	uint32_t origin;  /* the caller's number of the input that brought it; 0: none */
	uint64_t scratch; /* for writers (inode number, nid) */
};

struct tree;

/* An empty tree: a root folder of mode 0755, root:root, mtime 0. */
struct tree *tree_new(void);
void tree_free(struct tree *t);
struct node *tree_root(struct tree *t);
size_t tree_count(const struct tree *t);
struct arena *tree_arena(struct tree *t);

/* The same as tree_check_path() for one component of n bytes. */
int tree_check_name(const char *name, size_t n, struct err *e) must_check;
/* Is path one that a tree may hold: relative, no empty, "." or ".." component, no NUL, within the
 * limits above, and no name that begins with ".wh." (layers cannot carry those)? The error names it
 * and the limit. Every path from an archive goes through here after tree_clean_path(). Errors:
 * CORRUPT. */
int tree_check_path(const char *path, struct err *e) must_check;
/* Normalise an archive's member name into out (TREE_PATH_MAX + 1 bytes): strips "./", leading and
 * trailing and doubled slashes. Refuses ".." and what tree_check_path() refuses. */
int tree_clean_path(const char *name, char *out, struct err *e) must_check;
/* The stripping alone, for names of which a path is yet to be made (whiteouts). */
int tree_strip_path(const char *name, char *out, struct err *e) must_check;

/* The node at path, links not followed; NULL when there is none. */
struct node *tree_find(struct tree *t, const char *path);
/* The node at path with links followed inside the tree (an absolute target starts at the root, ".."
 * stops there); NULL when it does not lead anywhere or loops (40 links). */
struct node *tree_resolve(struct tree *t, const char *path);

/* Put an object at path, copying a and all that it points to into the arena. The folder part of
 * path is followed through links (merged /usr: "bin/sh" lands in usr/bin when bin is a link) and
 * its missing folders are made (0755 root, mtime of the object). What stands there already: folder
 * over folder   its attributes are replaced, its children stay anything else        is replaced; a
 * non-empty folder is not: EXISTS A HARDLINK's target must exist and be no folder (CORRUPT); links
 * in its folder part are followed, too. Of a hard link's attributes only the target counts. The
 * root's attributes are set by path "". Errors: CORRUPT (bad path, dangling hard link, a folder
 * part that is a file, too many nodes, xattrs beyond the limits, unsorted, or of a kind that cannot
 * be mounted), EXISTS. */
struct node *tree_put(struct tree *t, const char *path, const struct attr *a, uint32_t origin,
	struct err *e) must_check;
/* The same for whoever has a tree already, and so the folder: nothing is followed or made, and
 * nothing may stand there (EXISTS). object: of a HARDLINK, whose a->target is not looked at; else
 * NULL. */
struct node *tree_add(struct tree *t, struct node *dir, const char *name, const struct attr *a,
	struct node *object, struct err *e) must_check;
/* Remove the node (not the root) and all below it. When it is the object of hard links, the name
 * that was put next becomes the object. The nodes' memory stays until tree_free(). */
void tree_remove(struct tree *t, struct node *n);

/* Sort every folder bytewise by name and fill nlink; needed before the writers. A HARDLINK comes
 * after its object in the order of tree_next() (names are swapped where they do not). Clobbers
 * scratch. */
void tree_sort(struct tree *t);
/* Pre-order walk: start with tree_root(), NULL at the end. */
struct node *tree_next(struct node *n);
/* Path of n into out (TREE_PATH_MAX + 1 bytes); returns out. */
char *node_path(const struct node *n, char *out);

#endif
