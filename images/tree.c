#include "images/tree.h"

#include <assert.h>
#include <string.h>
#include <sys/random.h>

#include "images/tree-attr.h"

enum { LINKS_MAX = 40, BUCKETS_MIN = 1024 };

struct tree {
	struct arena arena;
	struct node *root;
	struct node **buckets; /* by (parent, name); a power of two of them */
	size_t nbuckets, count;
	uint64_t seed; /* names come from outside: nobody shall be able to aim them at one bucket */
};

/* ---- nodes ---- */

static size_t bucket_of(const struct tree *t, const struct node *parent, const char *name, size_t n)
{
	uint64_t h = t->seed ^ (uintptr_t)parent;

	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)name[i]) * 0x100000001b3u;
	h ^= h >> 32;
	h *= 0x9e3779b97f4a7c15u;
	return (size_t)(h >> 32) & (t->nbuckets - 1);
}

static void hash_insert(struct tree *t, struct node *n)
{
	struct node **b = &t->buckets[bucket_of(t, n->parent, n->name, strlen(n->name))];

	n->hash_next = *b;
	*b = n;
}

static void hash_remove(struct tree *t, struct node *n)
{
	struct node **b = &t->buckets[bucket_of(t, n->parent, n->name, strlen(n->name))];

	while (*b != n)
		b = &(*b)->hash_next;
	*b = n->hash_next;
}

static void hash_grow(struct tree *t)
{
	struct node **old = t->buckets;
	size_t n = t->nbuckets;

	t->nbuckets = n * 2;
	t->buckets = mem_array(t->nbuckets, sizeof(struct node *));
	for (size_t i = 0; i < n; i++)
		for (struct node *k = old[i], *next; k; k = next) {
			next = k->hash_next;
			hash_insert(t, k);
		}
	free(old);
}

static struct node *child_of(
	const struct tree *t, const struct node *dir, const char *name, size_t n)
{
	struct node *k = t->buckets[bucket_of(t, dir, name, n)];

	while (k && !(k->parent == dir && strncmp(k->name, name, n) == 0 && k->name[n] == '\0'))
		k = k->hash_next;
	return k;
}

static struct node *add_child(
	struct tree *t, struct node *dir, const char *name, size_t n, struct err *e)
{
	struct node *k;

	if (t->count >= TREE_NODES_MAX) {
		err_set(e, ERR_CORRUPT, "more than %d objects", TREE_NODES_MAX);
		return NULL;
	}
	k = arena_alloc(&t->arena, sizeof(*k));
	k->name = arena_strndup(&t->arena, name, n);
	k->parent = dir;
	k->layer = CHUNK_NO_LAYER;
	k->next = dir->child;
	if (k->next)
		k->next->prev = k;
	dir->child = k;
	if (t->count >= t->nbuckets)
		hash_grow(t);
	hash_insert(t, k);
	t->count++;
	return k;
}

struct tree *tree_new(void)
{
	struct tree *t = mem_alloc(sizeof(*t));

	if (getrandom(&t->seed, sizeof(t->seed), GRND_NONBLOCK) < 0)
		t->seed = (uintptr_t)t;
	t->nbuckets = BUCKETS_MIN;
	t->buckets = mem_array(t->nbuckets, sizeof(struct node *));
	t->root = arena_alloc(&t->arena, sizeof(*t->root));
	t->root->name = "";
	t->root->a = (struct attr){.type = NODE_DIR, .mode = 0755};
	t->root->nlink = 2;
	t->root->layer = CHUNK_NO_LAYER;
	t->count = 1;
	return t;
}

void tree_free(struct tree *t)
{
	if (!t)
		return;
	arena_fini(&t->arena);
	free(t->buckets);
	free(t);
}

struct node *tree_root(struct tree *t)
{
	return t->root;
}

size_t tree_count(const struct tree *t)
{
	return t->count;
}

struct arena *tree_arena(struct tree *t)
{
	return &t->arena;
}

/* ---- hard links: all names of an object form a ring, in the order they were put ---- */

static void ring_add(struct node *object, struct node *link)
{
	if (!object->ring_next)
		object->ring_next = object->ring_prev = object;
	link->ring_prev = object->ring_prev;
	link->ring_next = object;
	object->ring_prev->ring_next = link;
	object->ring_prev = link;
	object->nlink++;
}

static void ring_remove(struct node *n)
{
	if (!n->ring_next)
		return;
	n->ring_prev->ring_next = n->ring_next;
	n->ring_next->ring_prev = n->ring_prev;
	if (n->ring_next->ring_next == n->ring_next) /* one left: no ring */
		n->ring_next->ring_next = n->ring_next->ring_prev = NULL;
	n->ring_next = n->ring_prev = NULL;
}

/* Make the link `heir` the object and the old object a link to it. */
static void ring_crown(struct node *heir)
{
	struct node *old = heir->link;

	heir->a = old->a;
	heir->nlink = old->nlink;
	heir->link = NULL;
	old->a = (struct attr){.type = NODE_HARDLINK};
	old->link = heir;
	for (struct node *k = heir->ring_next; k != heir; k = k->ring_next)
		k->link = heir;
}

/* n stops being a name of its object. */
static void ring_leave(struct node *n)
{
	if (n->ring_next && !n->link)
		ring_crown(n->ring_next);
	if (n->link)
		n->link->nlink--;
	ring_remove(n);
	n->link = NULL;
	n->nlink = 1;
}

static const struct attr *object_attr(const struct node *n)
{
	return n->link ? &n->link->a : &n->a;
}

/* ---- walking ---- */

/* A walk that follows links. What is left of the path stands at the end of `text`, so that a link's
 * target can be put in front of it; the bound is what one path and its links may add up to. */
struct walk {
	struct tree *t;
	const struct attr *make; /* of missing folders; NULL: none are made */
	uint32_t origin;
	unsigned links;
	size_t pos;
	char text[3 * (TREE_PATH_MAX + 1)];
};

/* Not an initializer: the text need not be cleared, and this runs for every object. */
static void walk_init(struct walk *w, struct tree *t, const struct attr *make, uint32_t origin)
{
	w->t = t;
	w->make = make;
	w->origin = origin;
	w->links = 0;
}

static int walk_push(struct walk *w, const char *text, size_t n)
{
	if (n + 1 > w->pos)
		return -1;
	w->text[--w->pos] = '/';
	w->pos -= n;
	memcpy(w->text + w->pos, text, n);
	return 0;
}

/* Would an object whose name has `name` bytes be within the limits in dir? */
static int check_place(const struct node *dir, size_t name, struct err *e)
{
	size_t len = name, depth = 1;

	for (const struct node *n = dir; n->parent; n = n->parent) {
		len += strlen(n->name) + 1;
		depth++;
	}
	if (len > TREE_PATH_MAX || depth > TREE_DEPTH_MAX)
		return err_set(e, ERR_CORRUPT,
			"it would stand at a path of more than %d bytes or %d components",
			TREE_PATH_MAX, TREE_DEPTH_MAX);
	return 0;
}

static struct node *make_folder(
	struct walk *w, struct node *dir, const char *name, size_t n, struct err *e)
{
	struct node *k;

	if (tree_check_name(name, n, e) < 0 || (w->links > 0 && check_place(dir, n, e) < 0))
		return NULL;
	k = add_child(w->t, dir, name, n, e);
	if (!k)
		return NULL;
	k->a = *w->make;
	k->origin = w->origin;
	return k;
}

/* One component below dir. NULL with an error: it cannot be; the walk of a reader passes no err. */
static struct node *walk_step(
	struct walk *w, struct node *dir, const char *name, size_t n, bool follow, struct err *e)
{
	const struct attr *a;
	struct node *k;

	if (n == 0 || (n == 1 && name[0] == '.'))
		return dir;
	if (n == 2 && name[0] == '.' && name[1] == '.')
		return dir->parent ? dir->parent : dir;
	k = child_of(w->t, dir, name, n);
	if (!k && w->make)
		return make_folder(w, dir, name, n, e);
	if (!k)
		return NULL;
	a = object_attr(k);
	if (a->type != NODE_SYMLINK || !follow)
		return k;
	if (++w->links > LINKS_MAX || walk_push(w, a->target, strlen(a->target)) < 0) {
		err_set(e, ERR_CORRUPT,
			"symbolic link '%.200s': more than %d links on the way, or too long",
			k->name, LINKS_MAX);
		return NULL;
	}
	return a->target[0] == '/' ? w->t->root : dir;
}

static struct node *walk(
	struct walk *w, const char *path, size_t len, bool follow_last, struct err *e)
{
	struct node *n = w->t->root;

	w->pos = sizeof(w->text);
	if (walk_push(w, path, len) < 0)
		return NULL;
	while (n && w->pos < sizeof(w->text)) {
		const char *name = w->text + w->pos;
		size_t k =
			(size_t)((const char *)memchr(name, '/', sizeof(w->text) - w->pos) - name);
		bool last = w->pos + k + 1 == sizeof(w->text);

		if (n->a.type != NODE_DIR) {
			err_set(e, ERR_CORRUPT, "'%.200s' is needed as a folder, but is none",
				n->name);
			return NULL;
		}
		w->pos += k + 1;
		n = walk_step(w, n, name, k, follow_last || !last, e);
	}
	return n;
}

struct node *tree_find(struct tree *t, const char *path)
{
	struct node *n = t->root;

	while (n && *path) {
		const char *end = strchrnul(path, '/');

		n = child_of(t, n, path, (size_t)(end - path));
		path = *end ? end + 1 : end;
	}
	return n;
}

struct node *tree_resolve(struct tree *t, const char *path)
{
	struct walk w;

	walk_init(&w, t, NULL, 0);
	return walk(&w, path, strlen(path), true, NULL);
}

struct node *tree_next(struct node *n)
{
	if (n->child)
		return n->child;
	while (n && !n->next)
		n = n->parent;
	return n ? n->next : NULL;
}

/* ---- putting ---- */

/* The folder that shall hold the last component of path, which is left in *leaf. */
static struct node *walk_parent(struct walk *w, const char *path, const char **leaf, struct err *e)
{
	const char *slash = strrchr(path, '/');
	struct node *dir;

	*leaf = slash ? slash + 1 : path;
	dir = walk(w, path, slash ? (size_t)(slash - path) : 0, true, e);
	if (!dir)
		return NULL;
	if (dir->a.type != NODE_DIR) {
		err_set(e, ERR_CORRUPT, "'%.200s' is needed as a folder, but is none", dir->name);
		return NULL;
	}
	/* only links lead beyond the limits: a path without any was checked as a whole */
	if (w->links > 0 && check_place(dir, strlen(*leaf), e) < 0)
		return NULL;
	return dir;
}

/* May the object have one more name? */
static int check_links(const struct node *object, struct err *e)
{
	if (object->nlink >= TREE_LINKS_MAX)
		return err_set(e, ERR_CORRUPT, "hard link to '%.200s', which has %d names already",
			object->name, TREE_LINKS_MAX);
	return 0;
}

/* The object that a hard link names. */
static struct node *link_object(struct tree *t, const char *target, struct err *e)
{
	struct walk w;
	struct node *dir, *n;
	const char *leaf;
	char path[TREE_PATH_MAX + 1];

	walk_init(&w, t, NULL, 0);
	if (tree_clean_path(target, path, e) < 0)
		return NULL;
	dir = walk_parent(&w, path, &leaf, NULL);
	n = dir ? child_of(t, dir, leaf, strlen(leaf)) : NULL;
	if (n && n->link)
		n = n->link;
	if (!n || n->a.type == NODE_DIR) {
		err_set(e, ERR_CORRUPT, "hard link to '%.200s', which %s", target,
			n ? "is a folder" : "does not exist");
		return NULL;
	}
	return check_links(n, e) < 0 ? NULL : n;
}

static struct node *put_at(struct tree *t, struct node *dir, const char *leaf, const struct attr *a,
	struct node *object, struct err *e)
{
	struct node *n = dir ? child_of(t, dir, leaf, strlen(leaf)) : t->root;

	if (n && a->type != NODE_DIR && (n->child || n == t->root)) {
		err_set(e, ERR_EXISTS, "a folder that is not empty stands there");
		return NULL;
	}
	if (n && object && (n == object || n->link == object)) /* is that name already */
		return n;
	if (!n)
		n = add_child(t, dir, leaf, strlen(leaf), e);
	if (!n)
		return NULL;
	ring_leave(n);
	n->a = attr_copy(&t->arena, a);
	n->layer = CHUNK_NO_LAYER;
	if (object) {
		n->a = (struct attr){.type = NODE_HARDLINK};
		n->link = object;
		ring_add(object, n);
	}
	return n;
}

struct node *tree_put(
	struct tree *t, const char *path, const struct attr *a, uint32_t origin, struct err *e)
{
	struct attr folder = {.type = NODE_DIR, .mode = 0755, .mtime = a->mtime};
	struct node *dir = NULL, *object = NULL, *n = NULL;
	const char *leaf = path;
	struct walk w;

	walk_init(&w, t, &folder, origin);
	if (tree_check_path(path, e) < 0)
		return NULL;
	if (attr_check(a, e) == 0 &&
		(a->type != NODE_HARDLINK || (object = link_object(t, a->target, e))) &&
		(!*path || (dir = walk_parent(&w, path, &leaf, e))))
		n = put_at(t, dir, leaf, a, object, e);
	if (!n) {
		err_ctx(e, "'%.200s'", path);
		return NULL;
	}
	n->origin = origin;
	return n;
}

struct node *tree_add(struct tree *t, struct node *dir, const char *name, const struct attr *a,
	struct node *object, struct err *e)
{
	size_t n = strlen(name);
	struct node *k = NULL;

	assert(!object == (a->type != NODE_HARDLINK) && dir->a.type == NODE_DIR);
	if (tree_check_name(name, n, e) < 0 || check_place(dir, n, e) < 0 ||
		(object ? check_links(object, e) : attr_check(a, e)) < 0)
		k = NULL;
	else if (child_of(t, dir, name, n))
		err_set(e, ERR_EXISTS, "there is such an object already");
	else
		k = put_at(t, dir, name, a, object, e);
	if (!k)
		err_ctx(e, "'%.200s'", name);
	return k;
}

/* ---- removing ---- */

static struct node *next_within(struct node *n, const struct node *top)
{
	if (n->child)
		return n->child;
	while (n != top && !n->next)
		n = n->parent;
	return n == top ? NULL : n->next;
}

void tree_remove(struct tree *t, struct node *n)
{
	assert(n->parent);
	/* Links go before objects: an object's crown then passes once, to a name that stays. */
	for (struct node *k = n; k; k = next_within(k, n))
		if (k->link)
			ring_leave(k);
	for (struct node *k = n; k; k = next_within(k, n)) {
		ring_leave(k);
		hash_remove(t, k);
		t->count--;
	}
	if (n->prev)
		n->prev->next = n->next;
	else
		n->parent->child = n->next;
	if (n->next)
		n->next->prev = n->prev;
}

/* ---- sorting ---- */

static int by_name(const void *a, const void *b)
{
	const struct node *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

/* Sort the children of dir; v has room for all of them. */
static void sort_folder(struct node *dir, struct node ***v, size_t *cap)
{
	size_t n = 0;

	dir->nlink = 2;
	for (struct node *k = dir->child; k; k = k->next) {
		mem_grow(v, cap, n);
		(*v)[n++] = k;
		if (k->a.type == NODE_DIR)
			dir->nlink++;
	}
	if (n == 0)
		return;
	qsort(*v, n, sizeof(struct node *), by_name);
	dir->child = (*v)[0];
	for (size_t i = 0; i < n; i++) {
		(*v)[i]->prev = i > 0 ? (*v)[i - 1] : NULL;
		(*v)[i]->next = i + 1 < n ? (*v)[i + 1] : NULL;
	}
}

void tree_sort(struct tree *t)
{
	auto_free struct node **v = NULL;
	size_t cap = 0;

	for (struct node *n = t->root; n; n = tree_next(n)) {
		n->scratch = 0;
		if (n->a.type == NODE_DIR)
			sort_folder(n, &v, &cap);
	}
	/* scratch: this node, being an object, has been passed */
	for (struct node *n = t->root; n; n = tree_next(n)) {
		if (n->link && !n->link->scratch)
			ring_crown(n);
		if (n->link)
			n->nlink = n->link->nlink;
		else
			n->scratch = 1;
	}
}
