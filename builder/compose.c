#include "builder/compose.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/sys.h"
#include "builder/cache.h"
#include "builder/dpkg.h"
#include "builder/local.h"
#include "builder/npm.h"
#include "images/workers.h"

/* ---- what to fetch ---- */

static struct input deb_input(struct arena *a, const struct lock_deb *d)
{
	struct input in = {.name = arena_printf(a, "%s %s", d->name, d->version),
		.kind = HASH_SHA256,
		.url = d->url,
		.size = d->size,
		.max = d->size};

	memcpy(in.digest, d->sha256.b, DIGEST_SIZE);
	return in;
}

static int npm_input(struct arena *a, const struct lock_npm *n, struct input *in, struct err *e)
{
	enum { NPM_TARBALL_MAX = 1 << 30 };

	*in = (struct input){.name = arena_printf(a, "%s %s", n->name, n->version),
		.kind = HASH_SHA512,
		.url = n->url,
		.max = NPM_TARBALL_MAX};
	return npm_integrity(n->integrity, in->digest, e);
}

static struct input model_input(
	struct arena *a, const struct manifest_model *m, const struct model_file *f)
{
	bool whole = m->nfiles == 1 && str_ends(m->source_url, f->path);
	struct input in = {.name = arena_printf(a, "%s/%s", m->id, f->path),
		.kind = HASH_SHA256,
		.url = whole ? m->source_url : arena_printf(a, "%s/%s", m->source_url, f->path),
		.size = f->size,
		.max = f->size};

	memcpy(in.digest, f->sha256.b, DIGEST_SIZE);
	return in;
}

static size_t count_inputs(const struct manifest *m, const struct lock *l)
{
	size_t n = l->ndebs + l->nnpms;

	for (size_t i = 0; i < m->nmodels; i++)
		n += m->models[i].nfiles;
	return n;
}

static int list_inputs(const struct manifest *m, const struct lock *l, struct arena *a,
	struct input *in, size_t *n, struct err *e)
{
	*n = 0;
	for (size_t i = 0; i < l->ndebs; i++)
		in[(*n)++] = deb_input(a, &l->debs[i]);
	for (size_t i = 0; i < l->nnpms; i++)
		if (npm_input(a, &l->npms[i], &in[(*n)++], e) < 0)
			return -1;
	for (size_t i = 0; i < m->nmodels; i++)
		for (size_t k = 0; m->models[i].source == MODEL_HTTPS && k < m->models[i].nfiles;
			k++)
			in[(*n)++] = model_input(a, &m->models[i], &m->models[i].files[k]);
	return 0;
}

static int fetch(const struct manifest *m, const struct lock *l, struct mirrors *mirrors,
	struct store *s, struct arena *a, struct progress *p, struct err *e)
{
	struct input *in = arena_alloc(a, count_inputs(m, l) * sizeof(*in));
	size_t n, missing = 0;

	if (list_inputs(m, l, a, in, &n, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		if (cache_has(s, &in[i]))
			continue;
		in[i].url = mirror_url(mirrors, in[i].url, e);
		if (!in[i].url)
			return err_ctx(e, "%s", in[i].name);
		in[missing++] = in[i];
	}
	return missing ? cache_fetch(s, in, missing, p, e) : 0;
}

int compose_fetch(const struct manifest *m, const struct lock *l, struct mirrors *mirrors,
	struct store *s, struct progress *p, struct err *e)
{
	struct arena a = {0};
	int rc = fetch(m, l, mirrors, s, &a, p, e);

	arena_fini(&a);
	return rc;
}

/* ---- unpacking ---- */

enum job_kind { JOB_DEB, JOB_NPM, JOB_MODEL, JOB_FILE };

/* One input, unpacked by one thread into its own place in the arrays of struct work. */
struct job {
	enum job_kind kind;
	size_t i, k;     /* of lock->debs, lock->npms, models and its file, files */
	uint64_t weight; /* bytes: big ones first, so that no core ends up alone with the biggest */
	size_t slot;
};

struct work {
	const struct manifest *m;
	const struct lock *l;
	struct store *s;
	struct pool *pool;
	struct prune *prune; /* what the manifest leaves out of packages */
	struct progress *progress;
	struct job *jobs;
	size_t njobs;
	struct deb *debs;         /* by lock->debs */
	struct entries *packages; /* by lock->npms */
	struct entries *contents; /* model files and files, one entry each, by slot */
	size_t ncontents;
	struct arena arena;
};

static bool is_asked(const struct lock_deb *d)
{
	for (size_t i = 0; i < d->why.n; i++)
		if (str_starts(d->why.v[i], "manifest:"))
			return true;
	return false;
}

static int unpack_deb(struct work *w, const struct job *j, struct err *e)
{
	struct arena a = {0};
	const struct lock_deb *want = &w->l->debs[j->i];
	struct input in = deb_input(&a, want);
	struct deb *d = &w->debs[j->i];
	auto_fd int fd = cache_open(w->s, &in, e);
	int rc = fd < 0 || cache_verify(w->s, &in, fd, e) < 0 ||
				 deb_unpack(d, fd, in.name, w->prune, w->pool, e) < 0
			 ? -1
			 : 0;

	if (rc == 0 && (!str_eq(d->name, want->name) || !str_eq(d->version, want->version) ||
			       !str_eq(d->arch, want->arch)))
		rc = err_set(e, ERR_CORRUPT, "the package calls itself %s %s %s, the lock %s %s %s",
			d->name, d->version, d->arch, want->name, want->version, want->arch);
	d->automatic = !is_asked(want);
	if (rc < 0)
		err_ctx(e, "package %s", want->name);
	arena_fini(&a);
	return rc;
}

static int unpack_npm(struct work *w, const struct job *j, struct err *e)
{
	struct arena a = {0};
	const struct lock_npm *n = &w->l->npms[j->i];
	struct input in;
	int rc = npm_input(&a, n, &in, e);

	if (rc == 0) {
		auto_fd int fd = cache_open(w->s, &in, e);

		rc = fd < 0 || cache_verify(w->s, &in, fd, e) < 0 ||
				     npm_unpack(n, w->m->node.prefix, fd, w->pool,
					     &w->packages[j->i], e) < 0
			     ? -1
			     : 0;
	}
	if (rc < 0)
		err_ctx(e, "npm package %s", n->path);
	arena_fini(&a);
	return rc;
}

static int open_model(struct work *w, const struct manifest_model *m, const struct model_file *f,
	struct arena *a, struct err *e)
{
	struct input in;

	if (m->source == MODEL_FILE)
		return local_open(w->m->dir, local_model_path(a, m, f), NULL, e);
	in = model_input(a, m, f);
	return cache_open(w->s, &in, e);
}

static int unpack_model(struct work *w, const struct job *j, struct err *e)
{
	const struct manifest_model *m = &w->m->models[j->i];
	const struct model_file *f = &m->files[j->k];
	struct entries *out = &w->contents[j->slot];
	auto_free char *path = mem_printf("%s/%s", m->target + 1, f->path);
	struct entry *en = entries_add(out, path);
	struct digest d;
	auto_fd int fd = open_model(w, m, f, &out->arena, e);

	en->a = (struct attr){.type = NODE_FILE, .mode = 0644, .mtime = w->m->build.epoch};
	if (fd < 0 || content_from_fd(fd, f->path, w->pool, &out->arena, &en->a, &d, e) < 0 ||
		digest_check(&f->sha256, &d, e, "%s", f->path) < 0)
		return err_ctx(e, "model %s", m->id);
	if (en->a.size != f->size) {
		err_set(e, ERR_CORRUPT, "%s: expected %" PRIu64 " bytes, found %" PRIu64, f->path,
			f->size, en->a.size);
		return err_ctx(e, "model %s", m->id);
	}
	return 0;
}

static int unpack_file(struct work *w, const struct job *j, struct err *e)
{
	const struct manifest_file *f = &w->m->files[j->i];
	struct entries *out = &w->contents[j->slot];
	struct entry *en = entries_add(out, f->dest + 1);
	struct digest d;

	en->a = (struct attr){.type = NODE_FILE,
		.mode = f->mode,
		.uid = f->uid,
		.gid = f->gid,
		.mtime = w->m->build.epoch};
	if (!f->from)
		return content_from_mem(
			f->inline_text, strlen(f->inline_text), w->pool, &out->arena, &en->a, e);

	auto_fd int fd = local_open(w->m->dir, f->from, NULL, e);

	return fd < 0 ? -1 : content_from_fd(fd, f->from, w->pool, &out->arena, &en->a, &d, e);
}

static int unpack_one(void *ctx, size_t i, struct err *e)
{
	static int (*const unpack[])(struct work *, const struct job *, struct err *) = {
		[JOB_DEB] = unpack_deb,
		[JOB_NPM] = unpack_npm,
		[JOB_MODEL] = unpack_model,
		[JOB_FILE] = unpack_file,
	};
	struct work *w = ctx;

	if (unpack[w->jobs[i].kind](w, &w->jobs[i], e) < 0)
		return -1;
	progress_add(w->progress, w->jobs[i].weight);
	return 0;
}

static int heavier(const void *a, const void *b)
{
	const struct job *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight < y->weight ? 1 : -1;
	return x->slot < y->slot ? -1 : x->slot > y->slot; /* stable, for readable logs */
}

static uint64_t npm_weight(const struct work *w, const struct lock_npm *n)
{
	struct arena a = {0};
	struct input in;
	struct stat st;
	uint64_t size = 0;

	if (npm_input(&a, n, &in, NULL) == 0) {
		auto_fd int fd = cache_open(w->s, &in, NULL);

		if (fd >= 0 && sys_fstat(fd, &st) == 0)
			size = (uint64_t)st.st_size;
	}
	arena_fini(&a);
	return size;
}

static void list_jobs(struct work *w)
{
	const struct manifest *m = w->m;
	size_t max = count_inputs(m, w->l) + m->nfiles;

	w->jobs = arena_alloc(&w->arena, max * sizeof(*w->jobs));
	w->debs = arena_alloc(&w->arena, w->l->ndebs * sizeof(*w->debs));
	w->packages = arena_alloc(&w->arena, w->l->nnpms * sizeof(*w->packages));
	w->contents = arena_alloc(&w->arena, max * sizeof(*w->contents));
	for (size_t i = 0; i < w->l->ndebs; i++)
		w->jobs[w->njobs++] = (struct job){
			.kind = JOB_DEB, .i = i, .weight = w->l->debs[i].size, .slot = i};
	for (size_t i = 0; i < w->l->nnpms; i++)
		w->jobs[w->njobs++] = (struct job){.kind = JOB_NPM,
			.i = i,
			.weight = npm_weight(w, &w->l->npms[i]),
			.slot = i};
	for (size_t i = 0; i < m->nmodels; i++)
		for (size_t k = 0; k < m->models[i].nfiles; k++)
			w->jobs[w->njobs++] = (struct job){.kind = JOB_MODEL,
				.i = i,
				.k = k,
				.weight = m->models[i].files[k].size,
				.slot = w->ncontents++};
	for (size_t i = 0; i < m->nfiles; i++)
		w->jobs[w->njobs++] =
			(struct job){.kind = JOB_FILE, .i = i, .slot = w->ncontents++};
	qsort(w->jobs, w->njobs, sizeof(*w->jobs), heavier);
}

static void work_fini(struct work *w)
{
	for (size_t i = 0; i < w->l->ndebs; i++)
		deb_fini(&w->debs[i]);
	for (size_t i = 0; i < w->l->nnpms; i++)
		entries_fini(&w->packages[i]);
	for (size_t i = 0; i < w->ncontents; i++)
		entries_fini(&w->contents[i]);
	prune_free(w->prune);
	arena_fini(&w->arena);
}

/* ---- merging ---- */

static uint32_t new_origin(struct composed *c, struct origin o)
{
	c->origins[c->norigins] = o;
	return (uint32_t)c->norigins++;
}

static int put_all(struct tree *t, const struct entries *l, uint32_t origin, struct err *e)
{
	for (size_t i = 0; i < l->n; i++)
		if (!tree_put(t, l->v[i].path, &l->v[i].a, origin, e))
			return -1;
	return 0;
}

static int merge_debs(struct composed *c, struct work *w, struct err *e)
{
	size_t n = w->l->ndebs;
	const struct deb **all = arena_alloc(&c->arena, n * sizeof(const struct deb *));

	if (!w->m->apt.present)
		return 0;
	for (size_t i = 0; i < n; i++)
		all[i] = &w->debs[i];
	if (dpkg_prepare(c->tree, &w->m->apt, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		const struct lock_deb *d = &w->l->debs[i];
		uint32_t o = new_origin(c, (struct origin){.kind = ORIGIN_DEB,
						   .name = arena_strdup(&c->arena, d->name),
						   .source = arena_strdup(&c->arena, d->source),
						   .essential = d->essential,
						   .entry = i});

		if (dpkg_merge(c->tree, all[i], o, all, n, e) < 0)
			return err_ctx(e, "package %s", d->name);
	}
	return dpkg_finish(c->tree, &w->m->apt, all, n, w->pool, w->m->build.epoch, 0, e);
}

static int merge_npms(struct composed *c, struct work *w, struct err *e)
{
	for (size_t i = 0; i < w->l->nnpms; i++) {
		const struct lock_npm *n = &w->l->npms[i];
		uint32_t o = new_origin(c, (struct origin){.kind = ORIGIN_NPM,
						   .name = arena_strdup(&c->arena, n->name),
						   .entry = i});

		if (put_all(c->tree, &w->packages[i], o, e) < 0)
			return err_ctx(e, "npm package %s", n->path);
	}
	if (!w->m->node.present)
		return 0;
	return npm_bins(c->tree, w->l, w->m->node.prefix, w->m->build.epoch,
		new_origin(c, (struct origin){.kind = ORIGIN_NPM, .name = ".bin", .entry = SIZE_MAX}), e);
}

static int merge_contents(struct composed *c, struct work *w, struct err *e)
{
	const struct manifest *m = w->m;
	uint32_t own = new_origin(c, (struct origin){.kind = ORIGIN_FILE, .name = "manifest"});
	size_t slot = 0;

	for (size_t i = 0; i < m->ndirs; i++) {
		struct attr a = {.type = NODE_DIR,
			.mode = m->dirs[i].mode,
			.uid = m->dirs[i].uid,
			.gid = m->dirs[i].gid,
			.mtime = m->build.epoch};

		if (!tree_put(c->tree, m->dirs[i].path + 1, &a, own, e))
			return err_ctx(e, "/dirs/%zu", i);
	}
	for (size_t i = 0; i < m->nmodels; i++) {
		uint32_t o =
			new_origin(c, (struct origin){.kind = ORIGIN_MODEL,
					      .name = arena_strdup(&c->arena, m->models[i].id),
					      .entry = i});

		for (size_t k = 0; k < m->models[i].nfiles; k++)
			if (put_all(c->tree, &w->contents[slot++], o, e) < 0)
				return err_ctx(e, "/models/%zu", i);
	}
	for (size_t i = 0; i < m->nfiles; i++)
		if (put_all(c->tree, &w->contents[slot++], own, e) < 0)
			return err_ctx(e, "/files/%zu", i);
	for (size_t i = 0; i < m->nlinks; i++) {
		struct attr a = {.type = NODE_SYMLINK,
			.mode = 0777,
			.target = m->links[i].target,
			.mtime = m->build.epoch};

		if (!tree_put(c->tree, m->links[i].path + 1, &a, own, e))
			return err_ctx(e, "/links/%zu", i);
	}
	return 0;
}

/* Times beyond the manifest's epoch say when somebody built a package, not what is in it. */
static void clamp_times(struct tree *t, int64_t epoch)
{
	for (struct node *n = tree_root(t); epoch > 0 && n; n = tree_next(n))
		if (n->a.mtime > epoch)
			n->a.mtime = epoch;
}

static int merge(struct composed *c, struct work *w, struct err *e)
{
	size_t max = 4 + w->l->ndebs + w->l->nnpms + w->m->nmodels;

	c->tree = tree_new();
	c->origins = arena_alloc(&c->arena, max * sizeof(*c->origins));
	new_origin(c, (struct origin){.kind = ORIGIN_STATE, .name = "state"});
	if (merge_debs(c, w, e) < 0 || merge_npms(c, w, e) < 0 || merge_contents(c, w, e) < 0)
		return -1;
	clamp_times(c->tree, w->m->build.epoch);
	tree_sort(c->tree);
	return 0;
}

int compose_tree(struct composed *c, const struct manifest *m, const struct lock *l,
	struct store *s, struct pool *pool, struct progress *p, struct err *e)
{
	struct work w = {.m = m, .l = l, .s = s, .pool = pool, .progress = p};
	uint64_t total = 0;
	int rc;

	*c = (struct composed){0};
	w.prune = prune_new(&m->apt.prune, e);
	if (!w.prune)
		return -1;
	list_jobs(&w);
	for (size_t i = 0; i < w.njobs; i++)
		total += w.jobs[i].weight;
	progress_begin(p, "unpack", total);
	rc = workers_each(w.njobs, 0, unpack_one, &w, e);
	if (rc == 0)
		rc = merge(c, &w, e);
	progress_end(p);
	work_fini(&w);
	if (rc < 0)
		compose_fini(c);
	return rc;
}

void compose_fini(struct composed *c)
{
	tree_free(c->tree);
	arena_fini(&c->arena);
	*c = (struct composed){0};
}
