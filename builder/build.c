#include "builder/build.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/str.h"
#include "base/sys.h"
#include "builder/base-config.h"
#include "builder/bill.h"
#include "builder/build-check.h"
#include "builder/cache-share.h"
#include "builder/engine.h"
#include "builder/group.h"
#include "builder/image-config.h"
#include "builder/image-input.h"
#include "builder/image-modes.h"
#include "builder/layer-cache.h"
#include "builder/local.h"
#include "builder/model.h"
#include "builder/plan.h"
#include "builder/provenance.h"
#include "builder/services.h"
#include "builder/steps.h"
#include "images/glob.h"
#include "images/image.h"
#include "images/mount.h"

struct build {
	const struct manifest *m;
	const struct lock *l;
	struct mirrors *mirrors;
	struct store *s;
	struct pool *pool;
	struct progress *p;
	const struct build_options *o;
	struct manifest_build how; /* the manifest's, with the options' codec */
	struct digest key;
	struct base_image *base; /* NULL: scratch */
	json_t *base_config;
	struct cache_share *share; /* of steps; NULL: none */
	bool admitted;             /* what images it is made of may still be used: admitted() */
	struct build_result *r;
};

/* ---- keys, and what they find ---- */

struct digest build_key(const struct manifest *m, const struct lock *l, const enum codec *codec)
{
	struct digest envelope = lock_envelope();
	char hex[DIGEST_HEX + 1];
	auto_buf struct buf t = BUF_INIT(4096);

	buf_printf(&t, "image %s zstd-%s zlib-%s", ENGINE_VERSION, ZSTD_versionString(),
		zlibVersion());
	buf_printf(&t, " envelope %s", digest_hex(&envelope, hex));
	buf_printf(&t, " manifest %s", digest_hex(&m->digest, hex));
	buf_printf(&t, " lock %s", digest_hex(&l->digest, hex));
	buf_printf(&t, " platform %s", m->platform ? m->platform : manifest_platform());
	buf_printf(&t, " codec %s", codec ? codec_name(*codec) : "-");
	services_key(m, &t);
	steps_key(m, &t);
	image_modes_key(m, &t);
	return digest_of(t.data, t.len);
}

static int name_result(struct build *b, struct err *e)
{
	return build_name(b->m, b->l, b->s, &b->r->manifest, b->o->unnamed, e);
}

/* Which build made the bill that the image has under the app's name: folders whose manifests have
 * one name may give one image, and what is asked of the name is told of the one built last. */
static struct digest bill_note(const struct build *b)
{
	auto_buf struct buf t = BUF_INIT(4096);
	char hex[DIGEST_HEX + 1];

	buf_printf(&t, "bill of %s in %s", b->m->name, digest_hex(&b->r->manifest, hex));
	return digest_of(t.data, t.len);
}

static int note_bill(struct build *b, struct err *e)
{
	struct digest note = bill_note(b);
	char hex[DIGEST_HEX + 1];

	return pool_note_put(b->pool, &note, digest_hex(&b->key, hex), e);
}

static int has_own_bill(struct build *b, struct err *e)
{
	auto_free char *maker = NULL;
	struct digest note = bill_note(b);
	char hex[DIGEST_HEX + 1];
	int rc = pool_note_get(b->pool, &note, &maker, e);

	return rc > 0 ? str_eq(maker, digest_hex(&b->key, hex)) : rc == 0 ? 1 : -1;
}

/* The earlier result of the same build, when all of it is still there: 1, else 0. */
static int cached_result(struct build *b, struct err *e)
{
	auto_free char *note = NULL;
	int rc = pool_note_get(b->pool, &b->key, &note, e);

	if (rc <= 0)
		return rc;
	if (digest_from_hex(&b->r->manifest, note) < 0 || !store_has(b->s, &b->r->manifest))
		return 0;
	rc = has_own_bill(b, e);
	if (rc <= 0)
		return rc;
	return name_result(b, e) > 0;
}

/* ---- from the tree to layers ---- */

/* What comes after n and all below it. */
static struct node *next_beside(struct node *n)
{
	while (n && !n->next)
		n = n->parent;
	return n ? n->next : NULL;
}

/* Globs of paths that never reach a layer; what matches goes with all below it. What the base
 * brought stays in its layers. */
static void drop_volatile(struct tree *t, const struct strings *globs)
{
	char path[TREE_PATH_MAX + 2] = "/";
	struct node *next;

	for (struct node *n = globs->n ? tree_next(tree_root(t)) : NULL; n; n = next) {
		bool gone = false;

		node_path(n, path + 1);
		for (size_t i = 0; i < globs->n && n->layer == CHUNK_NO_LAYER; i++)
			gone = gone || glob_matches(globs->v[i], path);
		next = gone ? next_beside(n) : tree_next(n);
		if (gone)
			tree_remove(t, n);
	}
	if (globs->n)
		tree_sort(t);
}

static int write_layers(struct build *b, struct groups *g, struct err *e)
{
	uint64_t total = 0;

	for (size_t i = 0; i < g->n; i++)
		total += g->v[i].bytes;
	progress_begin(b->p, "compose", total);
	for (size_t i = 0; i < g->n; i++) {
		struct progress_line *line = progress_line(b->p, g->v[i].layer.id, 0);
		size_t reused = b->r->count.layers_reused;

		if (layer_cache_write(&g->v[i].layer, (int32_t)(g->first + i), g->v[i].nodes,
			    g->v[i].n, b->pool, b->s, b->o->no_cache, b->p, &b->r->count, e) < 0)
			return err_ctx(e, "layer %s", g->v[i].layer.id);
		progress_line_end(
			line, b->r->count.layers_reused > reused ? "unchanged" : "written");
	}
	progress_end(b->p);
	return 0;
}

/* ---- from layers to an image ---- */

static void add_base_names(const struct lock *l, json_t *annotations)
{
	char text[DIGEST_TEXT + 1];

	json_object_set_new(
		annotations, "org.opencontainers.image.base.name", json_string(l->base.ref));
	json_object_set_new(annotations, "org.opencontainers.image.base.digest",
		json_string(digest_text(&l->base.manifest, text)));
}

/* What the documents and the index layer add to what was written. */
static void count_documents(struct build *b, const struct digest *manifest)
{
	struct image im;
	uint64_t config = 0;

	if (image_load(&im, b->s, manifest, NULL) < 0)
		return;
	auto_fd int fd = store_blob_open(b->s, &im.config_digest, &config, NULL);

	(void)fd;
	b->r->count.bytes_written +=
		im.manifest_size + config + (im.nlayers ? im.layers[im.nlayers - 1].size : 0);
	image_fini(&im);
}

static struct model_job models_of(const struct build *b)
{
	return (struct model_job){.m = b->m,
		.l = b->l,
		.mirrors = b->mirrors,
		.s = b->s,
		.secrets = b->o->secrets,
		.nsecrets = b->o->nsecrets,
		.p = b->p};
}

static int publish(struct build *b, struct composed *c, const struct groups *g, struct err *e)
{
	const struct model_job models = models_of(b);
	auto_json json_t *config = image_config(b->m), *annotations = image_annotations(b->m),
			 *history = NULL;
	auto_free struct layer *layers = mem_array(g->first + g->n, sizeof(*layers));
	char created[32];
	uint64_t size;
	struct image_plan plan = {.tree = c->tree,
		.layers = layers,
		.nlayers = g->first + g->n,
		.config = config,
		.annotations = annotations,
		.created = created,
		.nbase = g->first};

	if (b->base) {
		base_config_merge(config, b->base_config, b->m);
		plan.base_history = history = base_history(b->base_config, g->first);
		add_base_names(b->l, annotations);
		memcpy(layers, b->base->layers, g->first * sizeof(*layers));
	}
	for (size_t i = 0; i < g->n; i++)
		layers[g->first + i] = g->v[i].layer;
	image_created(b->m, created);
	/* the chunks must be there before anything refers to them, the name comes last */
	if (pool_commit(b->pool, e) < 0 || model_publish(&models, annotations, e) < 0 ||
		image_publish(b->s, &plan, &b->r->manifest, &size, e) < 0 ||
		models_attach(b->s, &b->r->manifest, e) < 0)
		return -1;
	count_documents(b, &b->r->manifest);
	return mount_prepare(b->s, &b->r->manifest, c->tree, e);
}

static int keep_bill(
	struct build *b, const struct composed *c, const struct groups *g, struct err *e)
{
	struct bill bill;
	int rc = bill_make(&bill, b->m, b->l, c, g, b->pool, e);

	if (rc == 0) {
		rc = bill_save(&bill, b->s, &b->r->manifest, e) < 0 || note_bill(b, e) < 0 ||
				     provenance_attach(&bill, &b->how, b->s, &b->r->manifest, e) < 0
			     ? -1
			     : 0;
		bill_fini(&bill);
	}
	return rc;
}

static int finish(struct build *b, struct composed *c, struct groups *g, struct err *e)
{
	char hex[DIGEST_HEX + 1];

	progress_begin(b->p, "publish", 0);
	if (publish(b, c, g, e) < 0 || keep_bill(b, c, g, e) < 0 ||
		pool_note_put(b->pool, &b->key, digest_hex(&b->r->manifest, hex), e) < 0 ||
		plan_remember(b->m, b->l, b->o->codec, g, b->s, b->pool, e) < 0 ||
		name_result(b, e) < 0)
		return -1;
	progress_end(b->p);
	return 0;
}

/* ---- all of it ---- */

static int run_steps(struct build *b, struct composed *c, struct err *e)
{
	auto_free char *folder = build_log_folder(b->m);
	auto_free char *logs = mem_printf("%s/%s", b->s->path, folder);
	auto_free char *command = mem_printf("svrun image build %s%s%s%s%s", b->m->dir,
		b->m->mode ? " --mode " : "", b->m->mode ? b->m->mode : "",
		b->m->matrix ? " --matrix " : "", b->m->matrix ? b->m->matrix : "");
	struct step_context x = {.m = b->m,
		.l = b->l,
		.s = b->s,
		.pool = b->pool,
		.p = b->p,
		.secrets = b->o->secrets,
		.nsecrets = b->o->nsecrets,
		.no_cache = b->o->no_cache,
		.jobs = b->o->jobs,
		.count = &b->r->count,
		.share = b->share,
		.keys = &b->r->steps,
		.logs = logs,
		.command = command};

	if (sys_mkdir_p(b->s->fd, folder, 0700) < 0)
		return err_sys(e, "create %s", logs);
	return steps_run(&x, c, e);
}

static int compose(struct build *b, struct err *e)
{
	struct compose x = {.m = b->m,
		.l = b->l,
		.s = b->s,
		.pool = b->pool,
		.p = b->p,
		.base = b->base,
		.no_cache = b->o->no_cache,
		.count = &b->r->count};
	struct composed c;
	struct groups g;
	int rc;

	if (compose_tree(&c, &x, e) < 0)
		return -1;
	rc = run_steps(b, &c, e);
	if (rc == 0) {
		drop_volatile(c.tree, &b->m->build.volatiles);
		rc = group_tree(&g, &c, &b->how, e);
	}
	if (rc == 0) {
		rc = write_layers(b, &g, e) < 0 || finish(b, &c, &g, e) < 0 ? -1 : 0;
		groups_fini(&g);
	}
	compose_fini(&c);
	return rc;
}

/* With the pool open from here on: garbage collection waits. */
static int with_pool(struct build *b, int (*fn)(struct build *b, struct err *e), struct err *e)
{
	int rc;

	b->pool = pool_open(b->s->fd, true, e);
	if (!b->pool)
		return -1;
	rc = fn(b, e);
	pool_close(b->pool);
	b->pool = NULL;
	return rc;
}

static int look(struct build *b, struct err *e)
{
	if (local_check(b->l, b->m, b->pool, e) < 0)
		return -1;
	return b->o->no_cache || !b->admitted ? 0 : cached_result(b, e);
}

/* A result that was made before is handed out only when what it is made of would be let in today:
 * signatures and the policy are asked by what the store holds. Where that does not do, the build
 * goes its way, which asks them with all that there is, and says why not. */
static bool admitted(const struct build *b)
{
	const struct model_job models = models_of(b);

	if (!base_image_admitted(b->m, b->l, b->o->config, b->s) || !model_admitted(&models))
		return false;
	for (size_t i = 0; b->o->config && i < b->m->nsources; i++)
		if (b->m->sources[i].type == SOURCE_OCI)
			for (size_t k = 0; k < b->l->nsources; k++)
				if (str_eq(b->l->sources[k].id, b->m->sources[i].id) &&
					image_input_admit(b->s, b->o->config, b->m->sources[i].url,
						&b->l->sources[k].sha256, NULL) < 0)
					return false;
	return true;
}

enum { CODE_AT = 2 }; /* steps that run code come behind fetch and unpack */

/* Step i of those that run code (n: what comes behind all) waits for those that it sees, but not
 * for what others of them wait for. */
static struct progress_step told_step(
	const char *name, const struct plan_code *code, size_t i, size_t n, struct arena *a)
{
	size_t *after = arena_alloc(a, (i + 1) * sizeof(*after)), found = 0;

	for (size_t k = 0; k < i; k++) {
		bool direct = i == n || code[i].sees[k];

		for (size_t j = k + 1; direct && j < i; j++)
			direct = !((i == n || code[i].sees[j]) && code[j].sees[k]);
		if (direct)
			after[found++] = CODE_AT + k;
	}
	if (!found)
		after[found++] = CODE_AT - 1;
	return (struct progress_step){name, after, found};
}

/* What is to come, for who watches. */
static void tell_steps(const struct build *b)
{
	struct arena a = {0};
	size_t n;
	const struct plan_code *code = plan_code(b->m, b->l, &a, &n);
	struct progress_step *v = arena_alloc(&a, (CODE_AT + n + 2) * sizeof(*v));

	v[0].name = "fetch";
	v[1].name = "unpack";
	for (size_t i = 0; i < n; i++)
		v[CODE_AT + i] = told_step(code[i].id, code, i, n, &a);
	v[CODE_AT + n] = told_step("compose", code, n, n, &a);
	v[CODE_AT + n + 1].name = "publish";
	progress_steps(b->p, v, CODE_AT + n + 2);
	arena_fini(&a);
}

/* Pulling needs the pool for itself, so inputs and base come first. */
static int make(struct build *b, struct err *e)
{
	const struct model_job models = models_of(b);
	struct base_image base;
	int rc;

	tell_steps(b);
	if (model_fetch(&models, e) < 0 || compose_fetch(b->m, b->l, b->mirrors, b->s, b->p, e) < 0)
		return -1;
	if (!b->l->base.present)
		return with_pool(b, compose, e);
	if (base_image_open(&base, b->m, b->l, b->s, b->p, e) < 0)
		return err_ctx(e, "base %s", b->l->base.ref);
	b->base = &base;
	b->base_config = base.image.config;
	rc = with_pool(b, compose, e);
	base_image_close(&base);
	return rc;
}

/* What came out of a shared cache is a result like one of our own. */
static int adopt(struct build *b, struct err *e)
{
	char hex[DIGEST_HEX + 1];

	return pool_note_put(b->pool, &b->key, digest_hex(&b->r->manifest, hex), e) < 0 ||
			       note_bill(b, e) < 0
		       ? -1
		       : name_result(b, e);
}

static int import(struct build *b, struct err *e)
{
	auto_free char *pulled = NULL;
	const struct cache_share_site site = {
		.config = b->o->config, .plain_http = b->o->plain_http};
	int rc = b->admitted ? cache_share_import(b->s, &site, b->o->cache_from, &b->key, b->p,
				       &b->r->manifest, &pulled, e)
			     : 0;

	if (rc == 0)
		b->share = cache_share_open(&site, b->o->cache_from, b->p, e);
	if (rc <= 0)
		return rc == 0 && b->share ? 0 : -1;
	rc = with_pool(b, adopt, e);
	b->r->imported = rc > 0;
	/* the name that the pull gave it is not the user's */
	if (rc > 0 && pulled && store_name_remove(b->s, pulled, e) < 0)
		return -1;
	return rc;
}

void build_result_fini(struct build_result *r)
{
	free(r->steps.v);
	r->steps = (struct step_keys){0};
}

int build_run(const struct manifest *m, const struct lock *l, struct mirrors *mirrors,
	struct store *s, const struct build_options *o, struct progress *p, struct build_result *r,
	struct err *e)
{
	struct build b = {.m = m,
		.l = l,
		.mirrors = mirrors,
		.s = s,
		.p = p,
		.o = o,
		.how = m->build,
		.key = build_key(m, l, o->codec),
		.r = r};
	int rc;

	*r = (struct build_result){0};
	if (o->codec)
		b.how.codec = *o->codec;
	if (lock_check(l, m, e) < 0 || model_gate(m, &o->accepted, e) < 0)
		return -1;
	b.admitted = admitted(&b);
	rc = with_pool(&b, look, e);
	r->cached = rc > 0;
	if (rc == 0 && o->cache_from && !o->no_cache)
		rc = import(&b, e);
	if (rc == 0)
		rc = build_check_platform(m, l, e) < 0 ||
				     (!b.share && build_check_secrets(m, l, s, o, e) < 0)
			     ? -1
			     : make(&b, e);
	cache_share_close(b.share);
	return rc < 0 ? -1 : 0;
}
