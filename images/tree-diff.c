#include "images/tree-diff.h"

#include <string.h>

#include "images/tree-attr.h"

const char *const diff_names[8] = {
	"type", "content", "mode", "owner", "target", "device", "xattrs", "mtime"};

struct walk {
	const struct tree_diff *d;
	char path[TREE_PATH_MAX + 1];
	size_t len;
};

static const struct node *object_of(const struct node *n)
{
	return n && n->link ? n->link : n;
}

static unsigned compare(const struct attr *a, const struct attr *b)
{
	bool device = a->type == NODE_CHAR || a->type == NODE_BLOCK;
	unsigned what = 0;

	if (a->type != b->type)
		return DIFF_TYPE;
	if (a->type == NODE_FILE && !attr_same_data(a, b))
		what |= DIFF_CONTENT;
	if (a->mode != b->mode)
		what |= DIFF_MODE;
	if (a->uid != b->uid || a->gid != b->gid)
		what |= DIFF_OWNER;
	if (a->type == NODE_SYMLINK && strcmp(a->target, b->target) != 0)
		what |= DIFF_TARGET;
	if (device && (a->major != b->major || a->minor != b->minor))
		what |= DIFF_DEVICE;
	if (!attr_same_xattrs(a, b))
		what |= DIFF_XATTRS;
	if (a->mtime != b->mtime)
		what |= DIFF_MTIME;
	return what;
}

/* Append a component; the length before, to go back to. */
static size_t enter(struct walk *w, const char *name)
{
	size_t before = w->len, n = strlen(name);

	if (w->len)
		w->path[w->len++] = '/';
	memcpy(w->path + w->len, name, n + 1); /* a tree's paths fit */
	w->len += n;
	return before;
}

static int walk_children(struct walk *w, struct node *a, struct node *b, struct err *e);

/* Of one path: a or b may be NULL. */
static int walk_pair(struct walk *w, struct node *a, struct node *b, struct err *e)
{
	const struct node *x = object_of(a), *y = object_of(b);
	unsigned what = x && y ? compare(&x->a, &y->a) & w->d->mask : 0;
	bool dir_a = a && a->a.type == NODE_DIR, dir_b = b && b->a.type == NODE_DIR;

	if ((!x || !y || what) && w->d->found(w->d->ctx, w->path, x, y, what, e) < 0)
		return -1;
	return dir_a || dir_b ? walk_children(w, dir_a ? a : NULL, dir_b ? b : NULL, e) : 0;
}

/* At most TREE_DEPTH_MAX calls deep. */
static int walk_children(struct walk *w, struct node *a, struct node *b, struct err *e)
{
	struct node *x = a ? a->child : NULL, *y = b ? b->child : NULL;

	while (x || y) {
		int order = !x ? 1 : !y ? -1 : strcmp(x->name, y->name);
		struct node *left = order <= 0 ? x : NULL, *right = order >= 0 ? y : NULL;
		size_t before = enter(w, left ? left->name : right->name);

		if (walk_pair(w, left, right, e) < 0)
			return -1;
		w->len = before;
		w->path[before] = '\0';
		x = left ? x->next : x;
		y = right ? y->next : y;
	}
	return 0;
}

int tree_diff(const struct tree_diff *d, struct tree *a, struct tree *b, struct err *e)
{
	struct walk w = {.d = d};

	return walk_pair(&w, tree_root(a), tree_root(b), e);
}
