#include <string.h>

#include "base/str.h"
#include "builder/dpkg.h"
#include "builder/rootfs.h"

int dpkg_prepare(struct tree *t, const struct manifest_apt *apt, struct err *e)
{
	static const char *const names[] = {"bin", "sbin", "lib", "lib64", "lib32", "libx32"};
	const struct attr folder = {.type = NODE_DIR, .mode = 0755};

	for (size_t i = 0; apt->merge_usr && i < sizeof(names) / sizeof(names[0]); i++) {
		auto_free char *target = mem_printf("usr/%s", names[i]);
		const struct attr link = {.type = NODE_SYMLINK, .mode = 0777, .target = target};

		if (!tree_put(t, target, &folder, 0, e) || !tree_put(t, names[i], &link, 0, e))
			return err_ctx(e, "merged /usr");
	}
	return 0;
}

/* ---- two packages, one path ---- */

enum { CONFLICTS_MAX = 1024 }; /* of one package; each is a search in all of them */

struct merge {
	struct tree *tree;
	const struct deb *deb;
	uint32_t origin;
	const struct deb *const *all;
	size_t n;
	unsigned conflicts;
	const struct deb *last; /* the last owner asked about, and the answers */
	bool replaces_last, last_replaces;
};

static const struct attr *object_attr(const struct node *n)
{
	return n->link ? &n->link->a : &n->a;
}

/* What an entry would be: for a hard link, the object that its package shipped under the other
 * name. */
static const struct attr *entry_attr(const struct merge *m, const struct entry *en)
{
	const struct node *target;

	if (en->a.type != NODE_HARDLINK)
		return &en->a;
	target = rootfs_at(m->tree, en->a.target);
	return target ? object_attr(target) : &en->a;
}

static bool same_content(const struct attr *a, const struct attr *b)
{
	if (a->type != b->type)
		return false;
	if (a->type == NODE_SYMLINK)
		return str_eq(a->target, b->target);
	if (a->type != NODE_FILE || a->size != b->size || a->nchunks != b->nchunks)
		return false;
	for (uint32_t i = 0; i < a->nchunks; i++)
		if (!digest_eq(&a->chunks[i].digest, &b->chunks[i].digest))
			return false;
	return true;
}

static bool replaces(const struct deb *d, const struct deb *other)
{
	struct slice all = deb_field(d, "Replaces"), one;

	while (slice_piece(&all, ',', &one)) {
		size_t n = 0;

		while (n < one.n && !strchr(" (:", one.p[n]))
			n++;
		if (slice_eq((struct slice){.p = one.p, .n = n}, other->name))
			return true;
	}
	return false;
}

static const char *leaf(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The package that brought the node; slow, only for conflicts. */
static const struct deb *find_owner(const struct merge *m, const struct node *node)
{
	for (size_t i = 0; i < m->n; i++) {
		const struct deb *d = m->all[i];

		for (size_t k = 0; d != m->deb && k < d->data.n; k++)
			if (d->data.v[k].a.type != NODE_DIR && !d->data.v[k].pruned &&
				str_eq(leaf(deb_place(d, k)), node->name) &&
				rootfs_at(m->tree, deb_place(d, k)) == node &&
				same_content(object_attr(node), entry_attr(m, &d->data.v[k])))
				return d;
	}
	return NULL;
}

/* Replaces can be megabytes long: read once for each pair. */
static void ask_replaces(struct merge *m, const struct deb *owner)
{
	if (owner == m->last)
		return;
	m->last = owner;
	m->replaces_last = replaces(m->deb, owner);
	m->last_replaces = replaces(owner, m->deb);
}

/* A non-folder where another package's non-folder stands: 1 the new one is put, 0 the old one
 * stays. */
static int settle(struct merge *m, const struct entry *en, const struct node *there, struct err *e)
{
	const struct deb *owner;

	if (same_content(object_attr(there), entry_attr(m, en)))
		return 0;
	if (++m->conflicts > CONFLICTS_MAX)
		return err_set(e, ERR_CORRUPT,
			"package %s: /%s is one more than %d files that other packages ship, too",
			m->deb->name, en->path, CONFLICTS_MAX);
	owner = find_owner(m, there);
	if (owner)
		ask_replaces(m, owner);
	if (owner && m->replaces_last)
		return 1;
	if (owner && m->last_replaces)
		return 0;
	return err_set(e, ERR_CORRUPT, "packages %s and %s both ship /%s, with other contents",
		owner ? owner->name : "(another)", m->deb->name, en->path);
}

/* 1: put it, 0: leave what is there. */
static int decide(struct merge *m, const struct entry *en, struct err *e)
{
	const struct node *there = en->path[0] ? rootfs_at(m->tree, en->path) : NULL, *real;

	if (!there)
		return 1;
	if (en->a.type == NODE_DIR) {
		real = tree_resolve(m->tree, en->path);
		if (real && real->a.type == NODE_DIR) /* links to folders count as folders */
			return real == there && there->origin == 0;
	} else if (there->a.type == NODE_DIR && en->a.type == NODE_SYMLINK) {
		return 0;
	} else if (there->a.type == NODE_DIR) {
		return err_set(e, ERR_CORRUPT, "package %s ships /%s, which is a folder of another",
			m->deb->name, en->path);
	}
	if (there->origin == 0 || there->origin == m->origin)
		return 1;
	return settle(m, en, there, e);
}

/* Object i, where diversions have it; a hard link to one that is diverted follows it. */
static struct entry placed(const struct deb *d, size_t i)
{
	struct entry en = d->data.v[i];

	en.path = deb_place(d, i);
	for (size_t k = 0; d->places && en.a.type == NODE_HARDLINK && k < d->data.n; k++)
		if (str_eq(d->data.v[k].path, en.a.target))
			en.a.target = deb_place(d, k);
	return en;
}

int dpkg_merge(struct tree *t, const struct deb *d, uint32_t origin, const struct deb *const *all,
	size_t n, struct err *e)
{
	struct merge m = {.tree = t, .deb = d, .origin = origin, .all = all, .n = n};

	for (size_t i = 0; i < d->data.n; i++) {
		struct entry en = placed(d, i);
		int rc = en.pruned ? 0 : decide(&m, &en, e);

		if (rc < 0)
			return -1;
		if (rc > 0 && !tree_put(t, en.path, &en.a, origin, e))
			return err_ctx(e, "/%s", en.path);
	}
	return 0;
}
