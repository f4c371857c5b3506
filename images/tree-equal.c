#include "images/tree-equal.h"

#include <string.h>

#include "base/str.h"
#include "images/tree-attr.h"

static const char *attr_difference(const struct attr *a, const struct attr *b)
{
	if (a->type != b->type)
		return "type";
	if (a->mode != b->mode)
		return "mode";
	if (a->uid != b->uid || a->gid != b->gid)
		return "owner";
	if (a->mtime != b->mtime)
		return "time";
	if (a->type == NODE_SYMLINK && !str_eq(a->target, b->target))
		return "target";
	if (a->major != b->major || a->minor != b->minor)
		return "device";
	if (!attr_same_xattrs(a, b))
		return "extended attributes";
	return a->type == NODE_FILE && !attr_same_data(a, b) ? "content" : NULL;
}

static const struct node *object(const struct node *n)
{
	return n->link ? n->link : n;
}

/* Which name of an object is the first is a matter of order, not of what the image is: names are
 * compared by what they lead to. */
static const char *difference(const struct node *a, const struct node *b)
{
	const struct node *x = object(a), *y = object(b);
	char p[TREE_PATH_MAX + 1], q[TREE_PATH_MAX + 1];

	if (!str_eq(a->name, b->name))
		return "name";
	if (x->nlink != y->nlink)
		return "number of links";
	if ((a->link || b->link) && !str_eq(node_path(x, p), node_path(y, q)))
		return "object of a hard link";
	return attr_difference(&x->a, &y->a);
}

int tree_equal(struct tree *a, struct tree *b, struct err *e)
{
	struct node *x = tree_root(a), *y = tree_root(b);
	char p[TREE_PATH_MAX + 1], q[TREE_PATH_MAX + 1];

	for (; x && y; x = tree_next(x), y = tree_next(y)) {
		const char *what =
			strcmp(node_path(x, p), node_path(y, q)) != 0 ? "path" : difference(x, y);

		if (what)
			return err_set(e, ERR_CORRUPT, "'/%.300s' against '/%.300s': %s differs", p,
				q, what);
	}
	if (x || y)
		return err_set(e, ERR_CORRUPT, "'/%.300s' is in one of them only",
			node_path(x ? x : y, p));
	return 0;
}
