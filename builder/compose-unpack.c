/* Unpacking all inputs, each by one thread, or finding what they unpacked to before. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/sys.h"
#include "builder/compose-private.h"
#include "builder/engine.h"
#include "builder/local.h"
#include "builder/npm.h"
#include "builder/python.h"
#include "builder/source.h"
#include "images/workers.h"

enum { KEY_TEXT = 64 << 20 };

/* ---- keys: all that decides what a list says ---- */

static struct digest key_of(struct buf *b)
{
	buf_printf(b, "\n%s", ENGINE_VERSION);
	return digest_of(b->data, b->len);
}

/* Each text with its length, so that no two lists of texts read alike. */
static void put(struct buf *b, const char *s)
{
	if (s)
		buf_printf(b, "%zu:%s,", strlen(s), s);
	else
		buf_printf(b, "-,");
}

static void put_all(struct buf *b, const struct strings *l)
{
	buf_printf(b, "%zu[", l->n);
	for (size_t i = 0; i < l->n; i++)
		put(b, l->v[i]);
}

static struct digest deb_key(const struct work *w, const struct lock_deb *d)
{
	char hex[DIGEST_HEX + 1];
	auto_buf struct buf b = BUF_INIT(KEY_TEXT);

	buf_printf(&b, "deb %s ", digest_hex(&d->sha256, hex));
	put_all(&b, &w->m->apt.prune);
	return key_of(&b);
}

static struct digest npm_key(const struct work *w, const struct lock_npm *n)
{
	auto_buf struct buf b = BUF_INIT(KEY_TEXT);

	buf_printf(&b, "npm ");
	put(&b, n->integrity);
	put(&b, n->path);
	put(&b, w->m->node.prefix);
	return key_of(&b);
}

static struct digest wheel_key(const struct work *w, const struct lock_wheel *x)
{
	const struct manifest_python *p = &w->m->python;
	char hex[DIGEST_HEX + 1];
	auto_buf struct buf b = BUF_INIT(KEY_TEXT);

	buf_printf(&b, "wheel %s %d ", digest_hex(&x->sha256, hex), (int)p->bytecode);
	put(&b, x->name);
	put(&b, x->version);
	put(&b, x->file);
	put(&b, x->url); /* direct_url.json */
	put(&b, p->interpreter);
	put(&b, p->prefix);
	put(&b, python_of_lock(w->l));
	put_all(&b, &x->why); /* REQUESTED */
	return key_of(&b);
}

static const struct lock_source *source_of(const struct work *w, const char *id)
{
	for (size_t i = 0; i < w->l->nsources; i++)
		if (str_eq(w->l->sources[i].id, id))
			return &w->l->sources[i];
	return NULL;
}

static struct digest source_key(
	const struct work *w, const struct manifest_source *s, const struct lock_source *l)
{
	char tree[DIGEST_HEX + 1], sum[DIGEST_HEX + 1];
	auto_buf struct buf b = BUF_INIT(KEY_TEXT);

	buf_printf(&b, "source %d %s %s %u %o %u %u %" PRId64 " ", (int)s->type,
		digest_hex(&l->tree_sha256, tree), digest_hex(&l->sha256, sum), s->strip, s->mode,
		s->uid, s->gid, w->m->build.epoch);
	put(&b, l->commit);
	put(&b, s->dest);
	put(&b, s->inline_text);
	put_all(&b, &s->include);
	put_all(&b, &s->exclude);
	return key_of(&b);
}

/* Of file data alone: where it goes and whose it is comes from the manifest. */
static struct digest content_key(const struct digest *sha256)
{
	char hex[DIGEST_HEX + 1];
	auto_buf struct buf b = BUF_INIT(KEY_TEXT);

	buf_printf(&b, "content %s", digest_hex(sha256, hex));
	return key_of(&b);
}

/* ---- listing ---- */

struct job *work_jobs(struct work *w, enum job_kind kind, size_t *n)
{
	struct job *first = NULL;

	*n = 0;
	for (size_t i = 0; i < w->njobs; i++)
		if (w->jobs[i].kind == kind) {
			first = first ? first : &w->jobs[i];
			++*n;
		}
	return first;
}

static struct job *add_job(struct work *w, enum job_kind kind, size_t i, const char *name)
{
	struct job *j = &w->jobs[w->njobs++];

	*j = (struct job){.kind = kind, .i = i, .name = name, .has_key = true};
	j->out = kind == JOB_DEB ? &w->debs[i].data : arena_alloc(&w->arena, sizeof(*j->out));
	return j;
}

static uint64_t npm_weight(struct work *w, const struct lock_npm *n)
{
	struct input in;
	struct stat st;
	char name[CACHE_NAME];

	return compose_npm_input(&w->arena, n, &in, NULL) == 0 &&
			       sys_fstatat(w->s->fd, cache_name(&in, name), &st, 0) == 0
		       ? (uint64_t)st.st_size
		       : 0;
}

static void list_packages(struct work *w)
{
	for (size_t i = 0; i < w->l->ndebs; i++) {
		const struct lock_deb *d = &w->l->debs[i];
		struct job *j = add_job(
			w, JOB_DEB, i, arena_printf(&w->arena, "%s %s", d->name, d->version));

		j->weight = d->size;
		j->key = deb_key(w, d);
	}
	for (size_t i = 0; i < w->l->nnpms; i++) {
		const struct lock_npm *n = &w->l->npms[i];
		struct job *j = add_job(
			w, JOB_NPM, i, arena_printf(&w->arena, "%s %s", n->name, n->version));

		j->weight = npm_weight(w, n);
		j->key = npm_key(w, n);
	}
	for (size_t i = 0; i < w->l->nwheels; i++) {
		const struct lock_wheel *x = &w->l->wheels[i];
		struct job *j = add_job(
			w, JOB_WHEEL, i, arena_printf(&w->arena, "%s %s", x->name, x->version));

		j->weight = x->size;
		j->key = wheel_key(w, x);
	}
}

static int list_sources(struct work *w, struct err *e)
{
	for (size_t i = 0; i < w->m->nsources; i++) {
		const struct manifest_source *s = &w->m->sources[i];
		const struct lock_source *l = source_of(w, s->id);
		struct job *j;

		if (!l) {
			err_set(e, ERR_USAGE, "source %s is not in the lock", s->id);
			return err_hint(e, "svrun image lock %s", w->m->dir);
		}
		j = add_job(w, JOB_SOURCE, i, s->id);
		j->weight = l->size;
		j->key = source_key(w, s, l);
	}
	return 0;
}

static const struct lock_file *pinned(const struct work *w, const char *path)
{
	for (size_t i = 0; i < w->l->nfiles; i++)
		if (str_eq(w->l->files[i].path, path))
			return &w->l->files[i];
	return NULL;
}

static void list_contents(struct work *w)
{
	size_t n;

	for (size_t i = 0; i < w->m->nmodels; i++) {
		const struct model_file *f = compose_model_files(w->l, &w->m->models[i], &n);

		for (size_t k = 0; k < n; k++) {
			struct job *j = add_job(w, JOB_MODEL, i,
				arena_printf(&w->arena, "%s/%s", w->m->models[i].id, f[k].path));

			j->k = k;
			j->weight = f[k].size;
			j->key = content_key(&f[k].sha256);
		}
	}
	for (size_t i = 0; i < w->m->nfiles; i++) {
		const struct manifest_file *f = &w->m->files[i];
		const struct lock_file *p = f->from ? pinned(w, f->from) : NULL;
		struct job *j = add_job(w, JOB_FILE, i, f->dest);

		j->has_key = p != NULL;
		if (p) {
			j->weight = p->size;
			j->key = content_key(&p->sha256);
		}
	}
}

int work_init(struct work *w, struct err *e)
{
	size_t n = w->l->ndebs + w->l->nnpms + w->l->nwheels + w->m->nsources + w->m->nfiles, k;

	for (size_t i = 0; i < w->m->nmodels; i++) {
		compose_model_files(w->l, &w->m->models[i], &k);
		n += k;
	}
	w->prune = prune_new(&w->m->apt.prune, e);
	if (!w->prune)
		return -1;
	pthread_mutex_init(&w->lock, NULL);
	unpacked_queue_init(&w->queue, w->s, w->pool);
	w->jobs = arena_alloc(&w->arena, n * sizeof(*w->jobs));
	w->todo = arena_alloc(&w->arena, n * sizeof(*w->todo));
	w->debs = arena_alloc(&w->arena, w->l->ndebs * sizeof(*w->debs));
	list_packages(w);
	if (list_sources(w, e) < 0) {
		work_fini(w);
		return -1;
	}
	list_contents(w);
	return 0;
}

void work_fini(struct work *w)
{
	for (size_t i = 0; i < w->njobs; i++)
		if (w->jobs[i].kind == JOB_DEB)
			deb_fini(&w->debs[w->jobs[i].i]);
		else
			entries_fini(w->jobs[i].out);
	unpacked_queue_fini(&w->queue);
	pthread_mutex_destroy(&w->lock);
	prune_free(w->prune);
	arena_fini(&w->arena);
}

/* ---- unpacking ---- */

static int open_input(struct work *w, const struct input *in, struct err *e)
{
	auto_fd int fd = cache_open(w->s, in, e);

	return fd < 0 || cache_verify(w->s, in, fd, e) < 0 ? -1 : steal_fd(&fd);
}

/* Is the package what the lock calls it? Its bytes are, by their digest: the lock may have been
 * edited. */
static int check_deb(const struct deb *d, const struct lock_deb *want, struct err *e)
{
	if (str_eq(d->name, want->name) && str_eq(d->version, want->version) &&
		str_eq(d->arch, want->arch))
		return 0;
	return err_set(e, ERR_CORRUPT, "the package calls itself %s %s %s, the lock %s %s %s",
		d->name, d->version, d->arch, want->name, want->version, want->arch);
}

static int unpack_deb(struct work *w, const struct job *j, struct err *e)
{
	struct arena a = {0};
	const struct lock_deb *want = &w->l->debs[j->i];
	struct input in = compose_deb_input(&a, want);
	struct deb *d = &w->debs[j->i];
	auto_fd int fd = open_input(w, &in, e);
	int rc = fd < 0 ? -1 : deb_unpack(d, fd, in.name, w->prune, w->pool, e);

	if (rc == 0)
		rc = check_deb(d, want, e);
	arena_fini(&a);
	return rc < 0 ? err_ctx(e, "package %s", want->name) : 0;
}

static int unpack_npm(struct work *w, const struct job *j, struct err *e)
{
	struct arena a = {0};
	const struct lock_npm *n = &w->l->npms[j->i];
	struct input in;
	int rc = compose_npm_input(&a, n, &in, e);

	if (rc == 0) {
		auto_fd int fd = open_input(w, &in, e);

		rc = fd < 0 ? -1 : npm_unpack(n, w->m->node.prefix, fd, w->pool, j->out, e);
	}
	arena_fini(&a);
	return rc < 0 ? err_ctx(e, "npm package %s", n->path) : 0;
}

/* A local wheel is pinned by the lock as one that is fetched is. */
static int open_wheel(struct work *w, const struct lock_wheel *x, struct arena *a, struct err *e)
{
	const char *path = compose_wheel_path(x);
	struct input in = compose_wheel_input(a, x);
	struct hash h;

	if (!path)
		return open_input(w, &in, e);

	auto_fd int fd = local_open(w->m->dir, path, NULL, e);

	hash_init(&h, HASH_SHA256);
	return fd < 0 || hash_add_file(fd, path, &h, e) < 0 ||
			       cache_check_digest(&in, &h, path, e) < 0
		       ? -1
		       : steal_fd(&fd);
}

static int unpack_wheel(struct work *w, const struct job *j, struct err *e)
{
	struct arena a = {0};
	const struct lock_wheel *x = &w->l->wheels[j->i];
	auto_fd int fd = open_wheel(w, x, &a, e);
	int rc = fd < 0 ? -1
			: wheel_unpack(
				  x, &w->m->python, python_of_lock(w->l), fd, w->pool, j->out, e);

	arena_fini(&a);
	return rc < 0 ? err_ctx(e, "wheel %s", x->name) : 0;
}

static int unpack_source(struct work *w, const struct job *j, struct err *e)
{
	const struct manifest_source *s = &w->m->sources[j->i];

	if (source_unpack(s, source_of(w, s->id), w->m->dir, w->s, w->pool, w->m->build.epoch,
		    j->out, e) < 0)
		return err_ctx(e, "source %s", s->id);
	return 0;
}

/* One entry without a name of its own: the manifest gives it one. */
static int unpack_content(struct work *w, const struct job *j, int fd, const char *name,
	struct digest *d, struct err *e)
{
	struct entry *en = entries_add(j->out, "content");

	en->a = (struct attr){.type = NODE_FILE, .mode = 0644};
	return content_from_fd(fd, name, w->pool, &j->out->arena, &en->a, d, e);
}

static int open_model(struct work *w, const struct manifest_model *m, const struct model_file *f,
	struct arena *a, struct err *e)
{
	struct input in;

	if (m->source == MODEL_FILE)
		return local_open(w->m->dir, local_model_path(a, m, f), NULL, e);
	in = compose_model_input(a, m, f);
	return cache_open(w->s, &in, e);
}

static int unpack_model(struct work *w, const struct job *j, struct err *e)
{
	const struct manifest_model *m = &w->m->models[j->i];
	size_t n;
	const struct model_file *f = &compose_model_files(w->l, m, &n)[j->k];
	struct digest d;
	auto_fd int fd = open_model(w, m, f, &j->out->arena, e);

	if (fd < 0 || unpack_content(w, j, fd, f->path, &d, e) < 0 ||
		digest_check(&f->sha256, &d, e, "%s", f->path) < 0)
		return err_ctx(e, "model %s", m->id);
	if (j->out->v[0].a.size != f->size) {
		err_set(e, ERR_CORRUPT, "%s: expected %" PRIu64 " bytes, found %" PRIu64, f->path,
			f->size, j->out->v[0].a.size);
		return err_ctx(e, "model %s", m->id);
	}
	return 0;
}

static int unpack_file(struct work *w, const struct job *j, struct err *e)
{
	const struct manifest_file *f = &w->m->files[j->i];
	const struct lock_file *p = f->from ? pinned(w, f->from) : NULL;
	struct digest d;

	if (!f->from) {
		struct entry *en = entries_add(j->out, "content");

		en->a = (struct attr){.type = NODE_FILE, .mode = 0644};
		return content_from_mem(
			f->inline_text, strlen(f->inline_text), w->pool, &j->out->arena, &en->a, e);
	}

	auto_fd int fd = local_open(w->m->dir, f->from, NULL, e);

	if (fd < 0 || unpack_content(w, j, fd, f->from, &d, e) < 0)
		return -1;
	return p ? digest_check(&p->sha256, &d, e, "%s/%s", w->m->dir, f->from) : 0;
}

static int unpack(struct work *w, struct job *j, struct err *e)
{
	static int (*const how[])(struct work *, const struct job *, struct err *) = {
		[JOB_DEB] = unpack_deb,
		[JOB_NPM] = unpack_npm,
		[JOB_WHEEL] = unpack_wheel,
		[JOB_SOURCE] = unpack_source,
		[JOB_MODEL] = unpack_model,
		[JOB_FILE] = unpack_file,
	};

	if (how[j->kind](w, j, e) < 0 ||
		(j->has_key && unpacked_add(&w->queue, &j->key,
				       j->kind == JOB_DEB ? &w->debs[j->i] : NULL, j->out, e) < 0))
		return -1;
	j->loaded = true;
	if (w->count && j->has_key) {
		pthread_mutex_lock(&w->lock);
		w->count->inputs_unpacked++;
		w->count->bytes_unpacked += unpacked_bytes(j->out);
		pthread_mutex_unlock(&w->lock);
	}
	return 0;
}

/* ---- all of them ---- */

static int load_one(void *ctx, size_t i, struct err *e)
{
	struct work *w = ctx;
	struct job *j = &w->jobs[w->todo[i]];
	int rc = unpacked_load(
		w->s, w->pool, &j->key, j->kind == JOB_DEB ? &w->debs[j->i] : NULL, j->out, e);

	j->loaded = rc > 0;
	if (rc > 0 && j->kind == JOB_DEB)
		rc = check_deb(&w->debs[j->i], &w->l->debs[j->i], e);
	return rc < 0 ? err_ctx(e, "%s", j->name) : 0;
}

static int unpack_one(void *ctx, size_t i, struct err *e)
{
	struct work *w = ctx;
	struct job *j = &w->jobs[w->todo[i]];

	if (unpack(w, j, e) < 0)
		return -1;
	progress_add(w->p, j->weight);
	return 0;
}

/* Those that are not there yet, the heaviest first. */
static size_t choose(struct work *w, bool keyed)
{
	size_t n = 0;

	for (size_t i = 0; i < w->njobs; i++)
		if (!w->jobs[i].loaded && (w->jobs[i].has_key || !keyed)) {
			size_t at = n++;

			for (; at > 0 && w->jobs[w->todo[at - 1]].weight < w->jobs[i].weight; at--)
				w->todo[at] = w->todo[at - 1];
			w->todo[at] = i;
		}
	return n;
}

static int load_all(struct work *w, struct err *e)
{
	return workers_each(choose(w, true), 0, load_one, w, e);
}

static int unpack_all(struct work *w, struct err *e)
{
	size_t n = choose(w, false);
	uint64_t total = 0;
	int rc;

	for (size_t i = 0; i < n; i++)
		total += w->jobs[w->todo[i]].weight;
	if (total)
		progress_begin(w->p, "unpack", total);
	rc = workers_each(n, 0, unpack_one, w, e);
	if (unpacked_flush(&w->queue, rc == 0 ? e : NULL) < 0)
		rc = -1;
	progress_end(w->p);
	return rc;
}

/* Builds at the same time take turns, so that what they share is unpacked by the first alone; each
 * would use all cores anyway. */
static int turn_lock(struct work *w, struct err *e)
{
	struct digest d = digest_of("unpack", 6);

	return store_work_lock(w->s, &d, e);
}

int work_run(struct work *w, bool no_cache, struct err *e)
{
	size_t reused = 0, missing;

	if (!no_cache && load_all(w, e) < 0)
		return -1;
	missing = choose(w, true);

	auto_fd int turn = missing ? turn_lock(w, e) : -1;

	if (missing && (turn < 0 || (!no_cache && load_all(w, e) < 0)))
		return -1;
	for (size_t i = 0; i < w->njobs; i++)
		reused += w->jobs[i].loaded;
	if (w->count)
		w->count->inputs_reused += reused;
	return unpack_all(w, e);
}
