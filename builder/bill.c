#include "builder/bill.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "builder/image-config.h"
#include "builder/license.h"
#include "builder/npm.h"
#include "builder/purl.h"
#include "builder/resolve.h"
#include "images/models.h"

enum { LOCK_TEXT_MAX = 256 << 20, PLACES_MAX = 100000 };

static const char *const kinds[] = {
	[ORIGIN_STATE] = "svrun",
	[ORIGIN_DEB] = "deb",
	[ORIGIN_NPM] = "npm",
	[ORIGIN_MODEL] = "model",
	[ORIGIN_FILE] = "file",
	[ORIGIN_WHEEL] = "pypi",
	[ORIGIN_SOURCE] = "source",
	[ORIGIN_RUN] = "run",
	[ORIGIN_BASE] = "base",
};

const char *bill_kind(enum origin_kind k)
{
	return kinds[k];
}

/* What bill_make() reads. */
struct making {
	struct bill *b;
	const struct manifest *m;
	const struct lock *l;
	const struct composed *c;
};

/* ---- what an item is ---- */

static const char *keep(struct making *x, const char *text)
{
	return text ? arena_strdup(&x->b->arena, text) : NULL;
}

static struct strings keep_all(struct making *x, const struct strings *l)
{
	struct strings out = {arena_alloc(&x->b->arena, l->n * sizeof(*out.v)), l->n};

	for (size_t i = 0; i < l->n; i++)
		out.v[i] = keep(x, l->v[i]);
	return out;
}

static struct strings one(struct making *x, const char *why)
{
	struct strings out = {arena_alloc(&x->b->arena, sizeof(*out.v)), 1};

	out.v[0] = keep(x, why);
	return out;
}

static void set_sha256(struct making *x, struct bill_item *it, const struct digest *d)
{
	char hex[DIGEST_HEX + 1];

	it->hash_kind = "sha256";
	it->hash = keep(x, digest_hex(d, hex));
}

/* The distribution: of "mirror:debian-security/..." it is debian. */
static const char *distribution_of(struct making *x, const char *url)
{
	size_t n;

	if (!url || !str_starts(url, "mirror:"))
		return "debian";
	url += strlen("mirror:");
	n = strcspn(url, "/-");
	return arena_strndup(&x->b->arena, url, n);
}

static void describe_deb(struct making *x, struct bill_item *it, const struct lock_deb *d)
{
	struct purl p = {.type = "deb", .name = d->name, .version = d->version};

	it->name = keep(x, d->name);
	it->version = keep(x, d->version);
	it->arch = keep(x, d->arch);
	it->source = keep(x, d->source);
	it->url = keep(x, d->url);
	it->why = keep_all(x, &d->why);
	set_sha256(x, it, &d->sha256);
	p.space = distribution_of(x, d->url);
	p.qualifiers[0].key = "arch";
	p.qualifiers[0].value = d->arch;
	p.qualifiers[1].key = "upstream"; /* what Debian's security tracker knows it by */
	p.qualifiers[1].value = d->source && !str_eq(d->source, d->name) ? d->source : NULL;
	it->purl = purl_text(&x->b->arena, &p);
}

static void describe_npm(struct making *x, struct bill_item *it, const struct lock_npm *n)
{
	uint8_t sha512[64];
	char hex[129];

	it->name = keep(x, n->name);
	it->version = keep(x, n->version);
	it->url = keep(x, n->url);
	it->purl = purl_npm(&x->b->arena, n->name, n->version);
	it->path = arena_printf(&x->b->arena, "%s/%s", x->m->node.prefix + 1, n->path);
	if (npm_integrity(n->integrity, sha512, NULL) < 0)
		return;
	hex_encode(sha512, sizeof(sha512), hex);
	it->hash_kind = "sha512";
	it->hash = keep(x, hex);
}

static void describe_wheel(struct making *x, struct bill_item *it, const struct lock_wheel *w)
{
	struct purl p = {.type = "pypi", .name = w->name, .version = w->version};

	it->name = keep(x, w->name);
	it->version = keep(x, w->version);
	it->url = keep(x, w->url);
	it->why = keep_all(x, &w->why);
	set_sha256(x, it, &w->sha256);
	it->purl = purl_text(&x->b->arena, &p);
}

static void describe_git(struct making *x, struct bill_item *it, const struct lock_source *s)
{
	struct purl p = {.type = "generic", .name = s->id, .version = s->commit};

	it->version = keep(x, s->commit);
	it->hash_kind = "sha1"; /* of the commit */
	it->hash = it->version;
	p.qualifiers[0].key = "vcs_url";
	p.qualifiers[0].value = arena_printf(&x->b->arena, "git+%s@%s", s->url, s->commit);
	it->purl = purl_text(&x->b->arena, &p);
	if (s->has_tree)
		set_sha256(x, it, &s->tree_sha256);
}

static void describe_source(struct making *x, struct bill_item *it, const struct lock_source *s)
{
	struct purl p = {.type = "generic", .name = s->id};
	char text[DIGEST_TEXT + 1];

	it->name = keep(x, s->id);
	it->url = keep(x, s->url);
	it->source = it->url;
	if (s->commit) {
		describe_git(x, it, s);
		return;
	}
	set_sha256(x, it, &s->sha256);
	p.qualifiers[0].key = "checksum";
	p.qualifiers[0].value = digest_text(&s->sha256, text);
	p.qualifiers[1].key = "download_url";
	p.qualifiers[1].value = s->url;
	it->purl = purl_text(&x->b->arena, &p);
}

static const struct lock_model *locked_model(const struct lock *l, const char *id)
{
	for (size_t i = 0; i < l->nmodels; i++)
		if (str_eq(l->models[i].id, id))
			return &l->models[i];
	return NULL;
}

static const char *model_license(struct making *x, const struct model_license *l)
{
	if (!l->present)
		return NULL;
	if (l->spdx)
		return keep(x, l->spdx);
	return l->name ? license_of_text(&x->b->arena, l->name) : NULL;
}

/* Slashes of "org/name" separate namespace and name. */
static const char *model_purl(struct making *x, const struct manifest_model *m, const char *set)
{
	struct purl p = {.type = "generic", .name = m->id, .version = m->revision};
	const char *slash = m->repo ? strrchr(m->repo, '/') : NULL;

	if (m->source == MODEL_HF && m->repo) {
		p.type = "huggingface";
		p.space = slash ? arena_strndup(&x->b->arena, m->repo, (size_t)(slash - m->repo))
				: NULL;
		p.name = slash ? slash + 1 : m->repo;
		return purl_text(&x->b->arena, &p);
	}
	p.qualifiers[0].key = "checksum";
	p.qualifiers[0].value = set;
	p.qualifiers[1].key = "download_url";
	p.qualifiers[1].value = m->source_url;
	return purl_text(&x->b->arena, &p);
}

/* What the lock says, or, of files beside the manifest, what it would say (struct lock_model). */
static bool model_set(struct making *x, const struct manifest_model *m, struct digest *set)
{
	const struct lock_model *l = locked_model(x->l, m->id);
	auto_free struct models_file *v = mem_array(m->nfiles, sizeof(*v));

	for (size_t i = 0; i < m->nfiles; i++)
		v[i] = (struct models_file){.path = m->files[i].path, .sha256 = m->files[i].sha256};
	if (l)
		*set = l->set;
	else
		*set = models_set(v, m->nfiles);
	return l || m->nfiles;
}

static void describe_model(struct making *x, struct bill_item *it, const struct manifest_model *m)
{
	char text[DIGEST_TEXT + 1];
	struct digest set;
	bool has_set = model_set(x, m, &set);

	it->name = keep(x, m->id);
	it->version = keep(x, m->revision);
	it->url = keep(x, m->source_url ? m->source_url : m->repo);
	it->source = it->url;
	it->license = model_license(x, &m->license);
	if (has_set)
		set_sha256(x, it, &set);
	it->purl = model_purl(x, m, has_set ? digest_text(&set, text) : NULL);
}

static void describe_base(struct making *x, struct bill_item *it)
{
	const struct lock_base *base = &x->l->base;
	char text[DIGEST_TEXT + 1];
	struct purl p = {.type = "oci", .name = base->ref};
	const char *slash = strrchr(base->ref, '/'), *name = slash ? slash + 1 : base->ref;

	it->name = keep(x, base->ref);
	it->version = keep(x, digest_text(&base->manifest, text));
	it->url = it->name;
	set_sha256(x, it, &base->manifest);
	p.name = arena_strndup(&x->b->arena, name, strcspn(name, ":@"));
	p.version = it->version;
	p.qualifiers[0].key = "repository_url";
	p.qualifiers[0].value = slash ? arena_strndup(&x->b->arena, base->ref,
						(size_t)(name - base->ref) + strcspn(name, ":@"))
				      : NULL;
	it->purl = purl_text(&x->b->arena, &p);
	it->why = one(x, "manifest:/base");
}

static struct strings why_in(struct making *x, const char *list, size_t i)
{
	return one(x, arena_printf(&x->b->arena, "manifest:/%s/%zu", list, i));
}

static size_t source_index(const struct manifest *m, const char *id)
{
	size_t i = 0;

	while (i < m->nsources && !str_eq(m->sources[i].id, id))
		i++;
	return i;
}

static void describe(struct making *x, struct bill_item *it, const struct origin *o)
{
	it->kind = o->kind;
	it->name = keep(x, o->name);
	if (o->kind == ORIGIN_DEB && o->entry < x->l->ndebs) {
		describe_deb(x, it, &x->l->debs[o->entry]);
	} else if (o->kind == ORIGIN_NPM && o->entry < x->l->nnpms) {
		describe_npm(x, it, &x->l->npms[o->entry]);
	} else if (o->kind == ORIGIN_WHEEL && o->entry < x->l->nwheels) {
		describe_wheel(x, it, &x->l->wheels[o->entry]);
	} else if (o->kind == ORIGIN_SOURCE) {
		if (o->entry < x->l->nsources)
			describe_source(x, it, &x->l->sources[o->entry]);
		it->why = why_in(x, "sources", source_index(x->m, o->name));
	} else if (o->kind == ORIGIN_MODEL && o->entry < x->m->nmodels) {
		describe_model(x, it, &x->m->models[o->entry]);
		it->why = why_in(x, "models", o->entry);
	} else if (o->kind == ORIGIN_RUN && o->entry < x->m->nruns) {
		it->why = why_in(x, "run", o->entry);
	} else if (o->kind == ORIGIN_BASE) {
		describe_base(x, it);
	} else if (o->kind == ORIGIN_NPM) {
		it->why = one(x, "manifest:/node");
	} else if (o->kind == ORIGIN_WHEEL) {
		it->why = one(x, "manifest:/python");
	}
}

static void make_items(struct making *x)
{
	struct bill *b = x->b;

	b->nitems = b->cap = x->c->norigins;
	b->items = mem_array(b->cap, sizeof(*b->items));
	for (size_t i = 0; i < b->nitems; i++) {
		describe(x, &b->items[i], &x->c->origins[i]);
		b->items[i].via = (uint32_t)i;
	}
}

/* ---- layers, and which file is where ---- */

static void make_layers(struct making *x, const struct groups *g)
{
	struct bill *b = x->b;

	b->nlayers = g->first + g->n;
	b->layers = arena_alloc(&b->arena, b->nlayers * sizeof(*b->layers));
	for (size_t i = 0; i < g->first; i++) {
		b->layers[i].id = "base";
		if (i < x->l->base.nlayers)
			b->layers[i].diff_id = x->l->base.layers[i].diff_id;
	}
	for (size_t i = 0; i < g->n; i++) {
		b->layers[g->first + i].id = keep(x, g->v[i].layer.id);
		b->layers[g->first + i].diff_id = g->v[i].layer.diff_id;
	}
}

static void add_layer(struct bill *b, struct bill_item *it, uint32_t layer)
{
	size_t at = 0;

	while (at < it->nlayers && it->layers[at] < layer)
		at++;
	if (at < it->nlayers && it->layers[at] == layer)
		return;
	if (!it->layers)
		it->layers = arena_alloc(&b->arena, b->nlayers * sizeof(*it->layers));
	memmove(it->layers + at + 1, it->layers + at, (it->nlayers - at) * sizeof(*it->layers));
	it->layers[at] = layer;
	it->nlayers++;
}

static int make_files(struct making *x, struct err *e)
{
	struct bill *b = x->b;
	char path[TREE_PATH_MAX + 1];

	b->files = mem_array(tree_count(x->c->tree), sizeof(*b->files));
	for (struct node *n = tree_root(x->c->tree); n; n = tree_next(n)) {
		struct bill_file *f = &b->files[b->nfiles];
		struct bill_item *it;

		if (!n->parent)
			continue;
		if (n->layer < 0 || (size_t)n->layer >= b->nlayers || n->origin >= b->nitems)
			return err_set(e, ERR_CORRUPT, "/%s is in no layer", node_path(n, path));
		*f = (struct bill_file){keep(x, node_path(n, path)), n->origin, (uint32_t)n->layer};
		b->nfiles++;
		it = &b->items[n->origin];
		it->files += n->a.type != NODE_DIR;
		it->bytes += n->a.type == NODE_FILE ? n->a.size : 0;
		if (n->a.type != NODE_DIR || !n->child) /* full folders are in every layer */
			add_layer(b, it, f->layer);
	}
	return 0;
}

/* A walk's order: a folder, what is in it, then its next sibling. */
static int compare_paths(const char *a, const char *b)
{
	for (;; a++, b++) {
		int x = *a == '/' ? 1
			: *a      ? (unsigned char)*a + 1
				  : 0,
		    y = *b == '/' ? 1
			: *b      ? (unsigned char)*b + 1
				  : 0;

		if (x != y || x == 0)
			return x - y;
	}
}

const struct bill_file *bill_find(const struct bill *b, const char *path)
{
	size_t from = 0, to = b->nfiles;

	while (from < to) {
		size_t mid = from + (to - from) / 2;
		int rc = compare_paths(path, b->files[mid].path);

		if (rc == 0)
			return &b->files[mid];
		if (rc < 0)
			to = mid;
		else
			from = mid + 1;
	}
	return NULL;
}

/* ---- places in the manifest ---- */

static int by_pointer(const void *a, const void *b)
{
	return strcmp(
		((const struct bill_place *)a)->pointer, ((const struct bill_place *)b)->pointer);
}

static void add_place(struct making *x, size_t *cap, const char *pointer)
{
	struct bill *b = x->b;
	const char *file = NULL, *slash;
	int line = 0, col = 0;

	if (!x->m->source || b->nplaces >= PLACES_MAX)
		return;
	resolved_place(x->m->source, pointer, false, &file, &line, &col);
	if (!file)
		return;
	/* how the build was called does not count: the name of the app's folder, and the file */
	slash = strrchr(file, '/');
	while (slash && slash > file && slash[-1] != '/')
		slash--;
	mem_grow(&b->places, cap, b->nplaces);
	b->places[b->nplaces++] = (struct bill_place){keep(x, pointer),
		arena_printf(&b->arena, "%s:%d:%d", slash ? slash : file, line, col)};
}

static void add_list(struct making *x, size_t *cap, const char *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		auto_free char *pointer = mem_printf("/%s/%zu", list, i);

		add_place(x, cap, pointer);
	}
}

static void make_places(struct making *x)
{
	struct bill *b = x->b;
	const struct manifest *m = x->m;
	size_t cap = 0;

	static const char *const whole[] = {"/base", "/apt", "/python", "/node"};

	for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++)
		add_place(x, &cap, whole[i]);
	add_list(x, &cap, "apt/packages", m->apt.packages.n);
	add_list(x, &cap, "python/wheels", m->python.nwheels);
	add_list(x, &cap, "sources", m->nsources);
	add_list(x, &cap, "files", m->nfiles);
	add_list(x, &cap, "dirs", m->ndirs);
	add_list(x, &cap, "links", m->nlinks);
	add_list(x, &cap, "models", m->nmodels);
	add_list(x, &cap, "run", m->nruns);
	if (b->nplaces)
		qsort(b->places, b->nplaces, sizeof(*b->places), by_pointer);
}

const char *bill_place_of(const struct bill *b, const char *pointer)
{
	const struct bill_place key = {.pointer = pointer}, *found;

	found = b->nplaces ? bsearch(&key, b->places, b->nplaces, sizeof(*b->places), by_pointer)
			   : NULL;
	return found ? found->at : NULL;
}

/* ---- all of it ---- */

static void make_head(struct making *x)
{
	auto_buf struct buf b = BUF_INIT(LOCK_TEXT_MAX);
	char created[32];

	image_created(x->m, created);
	x->b->created = keep(x, created);
	x->b->name = keep(x, x->m->name);
	x->b->version = keep(x, x->m->version);
	x->b->platform = keep(x, x->l->platform);
	x->b->manifest_doc = x->m->digest;
	x->b->lock = x->l->digest;
	json_text(x->m->doc.root, true, &b);
	x->b->document = keep(x, b.data);
	b.len = 0;
	lock_text(x->l, &b);
	x->b->lock_text = keep(x, b.data);
}

int bill_make(struct bill *b, const struct manifest *m, const struct lock *l,
	const struct composed *c, const struct groups *g, struct pool *pool, struct err *e)
{
	struct making x = {b, m, l, c};

	*b = (struct bill){0};
	make_head(&x);
	make_items(&x);
	make_layers(&x, g);
	make_places(&x);
	if (make_files(&x, e) == 0 && bill_packages(b, &m->apt, c, pool, e) == 0)
		return 0;
	bill_fini(b);
	return err_ctx(e, "bill of materials");
}

void bill_fini(struct bill *b)
{
	arena_fini(&b->arena);
	free(b->places);
	free(b->items);
	free(b->files);
	*b = (struct bill){0};
}
