#include "builder/compose.h"

#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "builder/compose-private.h"
#include "builder/diversions.h"
#include "builder/dpkg.h"
#include "builder/engine.h"
#include "builder/npm.h"
#include "builder/python.h"
#include "builder/steps.h"
#include "builder/services.h"

/* ---- origins ---- */

uint32_t compose_origin(struct composed *c, const struct origin *o)
{
	mem_grow(&c->origins, &c->cap, c->norigins);
	c->origins[c->norigins] = *o;
	c->origins[c->norigins].name = arena_strdup(&c->arena, o->name);
	if (o->source)
		c->origins[c->norigins].source = arena_strdup(&c->arena, o->source);
	return (uint32_t)c->norigins++;
}

/* ---- the base ---- */

static int by_text(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

void compose_base(struct composed *c, struct base_image *b)
{
	uint32_t o = compose_origin(c, &(struct origin){.kind = ORIGIN_BASE, .name = "base"});
	char path[TREE_PATH_MAX + 1];
	size_t n = 0;

	c->tree = steal_ptr(&b->tree);
	c->nbase = b->nlayers;
	c->base_paths = mem_array(tree_count(c->tree), sizeof(*c->base_paths));
	for (struct node *x = tree_root(c->tree); x; x = tree_next(x)) {
		x->origin = o;
		if (x->parent)
			c->base_paths[n++] = arena_strdup(&c->arena, node_path(x, path));
	}
	qsort(c->base_paths, n, sizeof(*c->base_paths), by_text);
	c->nbase_paths = n;
}

int compose_find_chunks(struct composed *c, struct pool *p, struct err *e)
{
	auto_free struct chunk **v = NULL;
	size_t n = 0, cap = 0;

	for (struct node *x = tree_root(c->tree); x; x = tree_next(x))
		for (uint32_t k = 0; k < x->a.nchunks; k++) {
			mem_grow(&v, &cap, n);
			v[n++] = &x->a.chunks[k];
		}
	if (n && pool_find_all(p, v, n, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		if (v[i]->block == CHUNK_NO_BLOCK) {
			err_set(e, ERR_CORRUPT, "the pool lacks a chunk of the base image");
			return err_hint(
				e, "svrun image verify --repair the base, or pull it again");
		}
	return 0;
}

/* ---- merging ---- */

static int put_list(struct tree *t, const struct entries *l, uint32_t origin, struct err *e)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].kind == ENTRY_PUT && !l->v[i].pruned &&
			!tree_put(t, l->v[i].path, &l->v[i].a, origin, e))
			return -1;
	return 0;
}

static bool is_asked(const struct lock_deb *d)
{
	for (size_t i = 0; i < d->why.n; i++)
		if (str_starts(d->why.v[i], "manifest:"))
			return true;
	return false;
}

static int merge_debs(struct composed *c, struct work *w, struct err *e)
{
	size_t n = w->l->ndebs;
	const struct deb **all = arena_alloc(&c->arena, n * sizeof(const struct deb *));

	if (!w->m->apt.present)
		return 0;
	if (c->nbase && tree_resolve(c->tree, "var/lib/dpkg/status")) {
		err_set(e, ERR_UNSUPPORTED,
			"/apt: the base image has packages of its own, whose database ours would "
			"replace");
		err_hint(e, "inherit from a manifest (\"from\") instead of a base image, or "
			    "install what is missing in a run step");
		return manifest_at(w->m, "/apt", e);
	}
	for (size_t i = 0; i < n; i++) {
		w->debs[i].automatic = !is_asked(&w->l->debs[i]);
		all[i] = &w->debs[i];
	}
	if (dpkg_prepare(c->tree, &w->m->apt, e) < 0)
		return -1;
	if (w->m->apt.configure == APT_DPKG)
		diversions_place(w->debs, n, &c->arena);
	for (size_t i = 0; i < n; i++) {
		const struct lock_deb *d = &w->l->debs[i];
		uint32_t o = compose_origin(c, &(struct origin){.kind = ORIGIN_DEB,
						       .name = d->name,
						       .source = d->source,
						       .essential = d->essential,
						       .entry = i});

		if (dpkg_merge(c->tree, all[i], o, all, n, e) < 0)
			return err_ctx(e, "package %s", d->name);
	}
	if (dpkg_finish(c->tree, &w->m->apt, all, n, w->pool, w->m->build.epoch, 0, e) < 0)
		return manifest_at(w->m, "/apt", e);
	return 0;
}

/* Put the place of "/LIST/I" and the pointer before the message. */
static int entry_at(const struct work *w, const char *list, size_t i, struct err *e)
{
	auto_free char *pointer = mem_printf("/%s/%zu", list, i);

	err_ctx(e, "%s", pointer);
	return manifest_at(w->m, pointer, e);
}

static bool same_data(const struct attr *a, const struct attr *b)
{
	if (a->type != b->type || a->size != b->size || a->nchunks != b->nchunks)
		return false;
	for (uint32_t i = 0; i < a->nchunks; i++)
		if (!digest_eq(&a->chunks[i].digest, &b->chunks[i].digest))
			return false;
	return true;
}

/* A wheel's file that stands there already in another version, from another wheel, a package or the
 * base: which one wins would be chance elsewhere. */
static int check_wheel(const struct composed *c, const struct entries *l, struct err *e)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct node *n = rootfs_at(c->tree, l->v[i].path);
		const struct origin *o = n ? &c->origins[n->origin] : NULL;

		if (!n || n->a.type == NODE_DIR ||
			same_data(&(n->link ? n->link : n)->a, &l->v[i].a))
			continue;
		err_set(e, ERR_CORRUPT, "SV102: /%s is in %s%s, too, with other bytes",
			l->v[i].path,
			o->kind == ORIGIN_WHEEL ? "the wheel "
			: o->kind == ORIGIN_DEB ? "the package "
						: "",
			o->name);
		return err_hint(e, "only one of the two can be in an image");
	}
	return 0;
}

static int merge_wheels(struct composed *c, struct work *w, struct err *e)
{
	struct rootfs r = {.tree = c->tree, .pool = w->pool, .epoch = w->m->build.epoch};
	size_t n;
	const struct job *j = work_jobs(w, JOB_WHEEL, &n);

	if (!w->m->python.present)
		return 0;
	r.origin = compose_origin(
		c, &(struct origin){.kind = ORIGIN_WHEEL, .name = "venv", .entry = SIZE_MAX});
	if (python_prepare(&r, &w->m->python, python_of_lock(w->l), e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		uint32_t o = compose_origin(
			c, &(struct origin){
				   .kind = ORIGIN_WHEEL, .name = w->l->wheels[i].name, .entry = i});

		if (check_wheel(c, j[i].out, e) < 0 || put_list(c->tree, j[i].out, o, e) < 0)
			return err_ctx(e, "wheel %s", w->l->wheels[i].name);
	}
	if (python_guard(&r, &w->m->python, e) < 0)
		return manifest_at(w->m, "/python/guard", e);
	if (python_extras(&r, &w->m->python, w->l, e) < 0)
		return manifest_at(w->m, "/python/lock", e);
	return 0;
}

static int merge_npms(struct composed *c, struct work *w, struct err *e)
{
	size_t n;
	const struct job *j = work_jobs(w, JOB_NPM, &n);
	struct origin bins = {.kind = ORIGIN_NPM, .name = ".bin", .entry = SIZE_MAX};

	for (size_t i = 0; i < n; i++) {
		const struct lock_npm *x = &w->l->npms[i];
		uint32_t o = compose_origin(
			c, &(struct origin){.kind = ORIGIN_NPM, .name = x->name, .entry = i});

		if (put_list(c->tree, j[i].out, o, e) < 0)
			return err_ctx(e, "npm package %s", x->path);
	}
	if (!w->m->node.present)
		return 0;
	return npm_bins(
		c->tree, w->l, w->m->node.prefix, w->m->build.epoch, compose_origin(c, &bins), e);
}

static size_t source_entry(const struct lock *l, const char *id)
{
	for (size_t i = 0; i < l->nsources; i++)
		if (str_eq(l->sources[i].id, id))
			return i;
	return SIZE_MAX;
}

static int merge_sources(struct composed *c, struct work *w, struct err *e)
{
	size_t n;
	const struct job *j = work_jobs(w, JOB_SOURCE, &n);

	for (size_t i = 0; i < n; i++) {
		const char *id = w->m->sources[i].id;
		uint32_t o = compose_origin(c, &(struct origin){.kind = ORIGIN_SOURCE,
						       .name = id,
						       .entry = source_entry(w->l, id)});

		if (put_list(c->tree, j[i].out, o, e) < 0)
			return entry_at(w, "sources", i, e);
	}
	return 0;
}

static int put_content(struct composed *c, const struct job *j, const char *path, struct attr a,
	uint32_t origin, struct err *e)
{
	const struct attr *data = &j->out->v[0].a;

	a.type = NODE_FILE;
	a.size = data->size;
	a.chunks = data->chunks;
	a.nchunks = data->nchunks;
	return tree_put(c->tree, path, &a, origin, e) ? 0 : -1;
}

static int put_link(struct composed *c, const struct work *w, const char *path, const char *target,
	uint32_t origin, struct err *e)
{
	struct attr a = {
		.type = NODE_SYMLINK, .mode = 0777, .target = target, .mtime = w->m->build.epoch};

	return tree_put(c->tree, path + 1, &a, origin, e) ? 0 : -1;
}

/* The links of a model name files beside its target, or anywhere. */
static int put_model_links(
	struct composed *c, const struct work *w, size_t i, uint32_t origin, struct err *e)
{
	const struct manifest_model *m = &w->m->models[i];

	for (size_t k = 0; k < m->links.n; k++) {
		const char *name = m->links.v[k].name;
		auto_free char *path =
			name[0] == '/' ? mem_strdup(name) : mem_printf("%s/%s", m->target, name);

		if (put_link(c, w, path, m->links.v[k].value, origin, e) < 0)
			return err_ctx(e, "links/%s", name);
	}
	return 0;
}

static int merge_models(struct composed *c, struct work *w, struct err *e)
{
	size_t all, n;
	const struct job *j = work_jobs(w, JOB_MODEL, &all);

	for (size_t i = 0; i < w->m->nmodels; i++) {
		const struct manifest_model *m = &w->m->models[i];
		const struct model_file *f = compose_model_files(w->l, m, &n);
		struct attr a = {.mode = 0644, .mtime = w->m->build.epoch};
		uint32_t o = compose_origin(
			c, &(struct origin){.kind = ORIGIN_MODEL, .name = m->id, .entry = i});

		for (size_t k = 0; k < n; k++, j++) {
			auto_free char *path = mem_printf("%s/%s", m->target + 1, f[k].path);

			if (put_content(c, j, path, a, o, e) < 0)
				return entry_at(w, "models", i, e);
		}
		if (n && put_model_links(c, w, i, o, e) < 0)
			return entry_at(w, "models", i, e);
	}
	return 0;
}

static int merge_contents(struct composed *c, struct work *w, struct err *e)
{
	const struct manifest *m = w->m;
	size_t n;
	const struct job *j = work_jobs(w, JOB_FILE, &n);
	uint32_t own = compose_origin(c, &(struct origin){.kind = ORIGIN_FILE, .name = "manifest"});

	for (size_t i = 0; i < m->ndirs; i++) {
		struct attr a = {.type = NODE_DIR,
			.mode = m->dirs[i].mode,
			.uid = m->dirs[i].uid,
			.gid = m->dirs[i].gid,
			.mtime = m->build.epoch};

		if (!tree_put(c->tree, m->dirs[i].path + 1, &a, own, e))
			return entry_at(w, "dirs", i, e);
	}
	if (merge_models(c, w, e) < 0)
		return -1;
	for (size_t i = 0; i < m->nfiles; i++) {
		struct attr a = {.mode = m->files[i].mode,
			.uid = m->files[i].uid,
			.gid = m->files[i].gid,
			.mtime = m->build.epoch};

		if (put_content(c, &j[i], m->files[i].dest + 1, a, own, e) < 0)
			return entry_at(w, "files", i, e);
	}
	for (size_t i = 0; i < m->nlinks; i++)
		if (put_link(c, w, m->links[i].path, m->links[i].target, own, e) < 0)
			return entry_at(w, "links", i, e);
	return 0;
}

/* Times beyond the manifest's epoch say when somebody built a package, not what is in it. The base
 * stays as it is. */
static void clamp_times(struct tree *t, int64_t epoch)
{
	for (struct node *n = tree_root(t); epoch > 0 && n; n = tree_next(n))
		if (n->a.mtime > epoch && n->layer == CHUNK_NO_LAYER)
			n->a.mtime = epoch;
}

static int merge(struct composed *c, struct work *w, struct base_image *base, struct err *e)
{
	struct rootfs r = {.pool = w->pool, .epoch = w->m->build.epoch};

	compose_origin(c, &(struct origin){.kind = ORIGIN_STATE, .name = "state"});
	if (base)
		compose_base(c, base);
	else
		c->tree = tree_new();
	r.tree = c->tree;
	if (base && compose_find_chunks(c, w->pool, e) < 0)
		return -1;
	if (merge_debs(c, w, e) < 0 || compose_accounts(&r, w->m, e) < 0 ||
		merge_wheels(c, w, e) < 0 || merge_npms(c, w, e) < 0 ||
		merge_sources(c, w, e) < 0 || merge_contents(c, w, e) < 0)
		return -1;
	clamp_times(c->tree, w->m->build.epoch);
	tree_sort(c->tree);
	return 0;
}

int compose_tree(struct composed *c, const struct compose *x, struct err *e)
{
	struct work w = {
		.m = x->m, .l = x->l, .s = x->s, .pool = x->pool, .p = x->p, .count = x->count};
	int rc;

	*c = (struct composed){0};
	if (work_init(&w, e) < 0)
		return -1;
	rc = work_run(&w, x->no_cache, e);
	if (rc == 0)
		rc = merge(c, &w, x->base, e);
	work_fini(&w);
	if (rc < 0)
		compose_fini(c);
	return rc;
}

void compose_fini(struct composed *c)
{
	tree_free(c->tree);
	free(c->origins);
	free(c->base_paths);
	arena_fini(&c->arena);
	*c = (struct composed){0};
}

/* ---- what steps change ---- */

/* Folders as they were, by path: an entry that puts one back with another time alone changes
 * nothing. */
static bool same_folder(struct tree *t, const struct entry *en)
{
	const struct node *n = en->a.type == NODE_DIR ? tree_find(t, en->path) : NULL;

	if (!n || n->a.type != NODE_DIR || n->a.mode != en->a.mode || n->a.uid != en->a.uid ||
		n->a.gid != en->a.gid || n->a.nxattrs != en->a.nxattrs)
		return false;
	for (uint32_t i = 0; i < n->a.nxattrs; i++) {
		const struct xattr *x = &n->a.xattrs[i], *y = &en->a.xattrs[i];

		if (!str_eq(x->name, y->name) || x->len != y->len ||
			memcmp(x->value, y->value, x->len) != 0)
			return false;
	}
	return true;
}

/* The removals of a list (puts false), or the objects among it that are changes indeed. */
static struct entries part_of(struct tree *t, const struct entries *l, bool puts, int64_t epoch)
{
	struct entries out = {.v = mem_array(l->n, sizeof(*out.v))};

	for (size_t i = 0; i < l->n; i++) {
		struct entry en = l->v[i];

		if ((en.kind == ENTRY_PUT) != puts || (puts && same_folder(t, &en)))
			continue;
		if (epoch > 0 && en.a.mtime > epoch)
			en.a.mtime = epoch;
		out.v[out.n++] = en;
	}
	return out;
}

int compose_apply(
	struct composed *c, const struct entries *l, uint32_t origin, int64_t epoch, struct err *e)
{
	struct entries part = part_of(c->tree, l, false, epoch);
	int rc = entries_apply(c->tree, &part, CHUNK_NO_LAYER, e);

	free(part.v);
	if (rc < 0)
		return -1;
	part = part_of(c->tree, l, true, epoch);
	rc = entries_apply(c->tree, &part, CHUNK_NO_LAYER, e);
	for (size_t i = 0; rc == 0 && i < part.n; i++) {
		struct node *n = rootfs_at(c->tree, part.v[i].path);

		if (n)
			n->origin = origin;
	}
	free(part.v);
	if (rc == 0)
		tree_sort(c->tree);
	return rc;
}

/* ---- the key ---- */

struct digest compose_key(const struct manifest *m, const struct lock *l)
{
	static const char *const keys[] = {"apt", "base", "dirs", "files", "groups", "icon",
		"links", "models", "node", "python", "readme", "sources", "users"};
	auto_json json_t *parts = json_object();
	auto_buf struct buf b = BUF_INIT(64 << 20), text = BUF_INIT(32 << 20);
	char hex[DIGEST_HEX + 1];

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		json_t *v = json_object_get(m->doc.root, keys[i]);

		if (v)
			json_object_set(parts, keys[i], v);
	}
	json_text(parts, true, &text);
	buf_printf(&b, "compose %s %" PRId64 " %s %s", ENGINE_VERSION, m->build.epoch,
		digest_hex(&l->digest, hex), text.data);
	services_key(m, &b);
	steps_key(m, &b);
	return digest_of(b.data, b.len);
}
