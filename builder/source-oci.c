/* Files of another image: no byte of them is copied, the pool has them. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "builder/image-input.h"
#include "builder/source-type.h"
#include "images/image.h"

/* ---- locking and fetching ---- */

static int lock_oci(const struct source_job *j, const struct manifest_source *ms,
	struct lock_source *ls, struct arena *a, struct err *e)
{
	static const struct digest none;

	if (!ms->url)
		return err_set(e, ERR_USAGE, "%s: missing key 'url'", j->pointer);
	if (digest_eq(&ms->sha256, &none)) {
		err_set(e, ERR_USAGE,
			"SV011 %s/sha256: missing: an image is named by the digest "
			"of its manifest",
			j->pointer);
		return err_hint(e, "svrun image inspect shows it");
	}
	if (image_input(j->s, ms->url, &ms->sha256, j->p, &ls->sha256, e) < 0)
		return err_ctx(e, "%s/url", j->pointer);
	ls->url = arena_strdup(a, ms->url);
	return 0;
}

static int fetch_oci(const struct source_job *j, const struct manifest_source *ms,
	const struct lock_source *ls, struct err *e)
{
	struct digest found;

	if (image_input(j->s, ms->url, &ms->sha256, j->p, &found, e) < 0)
		return -1;
	return digest_check(&found, &ls->sha256, e, "lock: the image of %s", ms->url);
}

/* ---- unpacking ---- */

/* Of extended attributes, what programs need to do their work. */
static void keep_capability(struct attr *a)
{
	uint32_t n = a->nxattrs;

	a->nxattrs = 0;
	for (uint32_t i = 0; i < n && !a->nxattrs; i++)
		if (str_eq(a->xattrs[i].name, "security.capability")) {
			a->xattrs = &a->xattrs[i];
			a->nxattrs = 1;
		}
}

/* A copy that outlives the image's tree. */
static void own(struct arena *arena, struct attr *a)
{
	keep_capability(a);
	if (a->target)
		a->target = arena_strdup(arena, a->target);
	if (a->nxattrs) {
		a->xattrs = arena_dup(arena, a->xattrs, sizeof(*a->xattrs));
		a->xattrs->name = arena_strdup(arena, a->xattrs->name);
		a->xattrs->value = arena_dup(arena, a->xattrs->value, a->xattrs->len);
	}
	if (a->nchunks)
		a->chunks = arena_dup(arena, a->chunks, a->nchunks * sizeof(*a->chunks));
	for (uint32_t i = 0; i < a->nchunks; i++) { /* those of the other image's layers */
		a->chunks[i].layer = CHUNK_NO_LAYER;
		a->chunks[i].offset = 0;
		a->chunks[i].stored = 0;
	}
}

static const char *wanted(const struct source_unpack *u, const struct node *n, char *path)
{
	const char *rest = source_strip(u->ms, node_path(n, path));

	return rest && *rest && source_keeps(u->ms, rest) ? rest : NULL;
}

static int put(const struct source_unpack *u, const struct node *n, struct err *e)
{
	char path[TREE_PATH_MAX + 1], target[TREE_PATH_MAX + 1], full[TREE_PATH_MAX + 1];
	const char *rest = wanted(u, n, path);
	struct attr a = n->a;

	if (!rest)
		return 0;
	if (n->link) { /* a name of what is left out becomes the file itself */
		const char *object = wanted(u, n->link, target);

		if (object && source_path(u->ms, object, full, e) < 0)
			return -1;
		if (object)
			a = (struct attr){.type = NODE_HARDLINK, .target = full};
		else
			a = n->link->a;
	}
	if (a.type == NODE_CHAR || a.type == NODE_BLOCK)
		return err_set(e, ERR_UNSUPPORTED, "/%s is a device node", path);
	own(&u->out->arena, &a);
	return source_put(u, rest, &a, e) ? 0 : -1;
}

/* An index says what chunks there are; where they lie is the pool's to say. */
static int find_chunks(const struct source_unpack *u, size_t first, struct err *e)
{
	auto_free struct chunk **v = NULL;
	size_t n = 0, cap = 0;

	for (size_t i = first; i < u->out->n; i++)
		for (uint32_t k = 0; k < u->out->v[i].a.nchunks; k++) {
			mem_grow(&v, &cap, n);
			v[n++] = &u->out->v[i].a.chunks[k];
		}
	if (n && pool_find_all(u->pool, v, n, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		if (v[i]->block == CHUNK_NO_BLOCK) {
			err_set(e, ERR_CORRUPT, "the pool lacks a chunk of %s", u->ls->url);
			return err_hint(e, "pull the image again");
		}
	return 0;
}

static int copy(const struct source_unpack *u, struct tree *t, struct err *e)
{
	size_t first = u->out->n;

	for (struct node *n = tree_next(tree_root(t)); n; n = tree_next(n))
		if (put(u, n, e) < 0)
			return -1;
	if (u->out->n == first)
		return err_set(e, ERR_NOT_FOUND, "strip, include and exclude leave nothing of %s",
			u->ls->url);
	return find_chunks(u, first, e);
}

static int unpack_oci(const struct source_unpack *u, struct err *e)
{
	struct image im;
	struct tree *t;
	int rc;

	if (image_load(&im, u->s, &u->ls->sha256, e) < 0)
		return -1;
	t = image_tree(&im, u->s, NULL, NULL, e);
	rc = t ? copy(u, t, e) : -1;
	tree_free(t);
	image_fini(&im);
	return rc;
}

const struct source_ops source_oci = {lock_oci, fetch_oci, unpack_oci};
