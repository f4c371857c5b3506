#include "builder/lock-make.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/sys.h"
#include "builder/apt.h"
#include "builder/base-image.h"
#include "builder/local.h"
#include "builder/model.h"
#include "builder/npm.h"
#include "builder/python.h"
#include "builder/source.h"

static int lock_debs(struct lock *l, const struct manifest *m, struct mirrors *mirrors,
	struct progress *p, struct err *e)
{
	char tmp[] = "/tmp/svrun-apt-XXXXXX";
	int rc;

	if (!m->apt.present)
		return 0;
	if (!mkdtemp(tmp))
		return err_sys(e, "create %s", tmp);
	rc = apt_lock(l, m, mirrors, tmp, p, e);
	if (sys_remove_tree(AT_FDCWD, tmp) < 0 && rc == 0)
		rc = err_sys(e, "remove %s", tmp);
	return rc;
}

/* A base that has packages has their database, too, which ours would replace: known now, and not
 * only when all has been fetched. */
static int check_base(const struct lock *l, const struct manifest *m, struct store *s,
	struct progress *p, struct err *e)
{
	struct base_image b;
	bool has;

	if (!m->apt.present)
		return 0;
	if (base_image_open(&b, m, l, s, p, e) < 0)
		return err_ctx(e, "base %s", m->base.ref);
	has = tree_resolve(b.tree, "var/lib/dpkg/status");
	base_image_close(&b);
	if (!has)
		return 0;
	err_set(e, ERR_UNSUPPORTED,
		"/apt: the base image has packages of its own, whose database ours would replace");
	err_hint(e, "inherit from the base's manifest (\"from\"), or take the base alone and leave "
		    "apt out: a run step can unpack what lies in sources");
	return manifest_at(m, "/apt", e);
}

/* The debs and the base come before the wheels, whose tags they decide. */
static int make(struct lock *l, const struct manifest *m, struct mirrors *mirrors, struct store *s,
	const struct lock_secrets *secrets, struct progress *p, struct err *e)
{
	const struct model_job models = {.m = m,
		.mirrors = mirrors,
		.s = s,
		.secrets = secrets->v,
		.nsecrets = secrets->n,
		.p = p};

	if (local_lock(l, m, e) < 0 ||
		(m->base.type == BASE_OCI &&
			(base_image_lock(l, m, s, p, e) < 0 || check_base(l, m, s, p, e) < 0)) ||
		lock_debs(l, m, mirrors, p, e) < 0 ||
		(m->python.present && python_lock(l, m, mirrors, s, e) < 0) ||
		(m->node.present && npm_lock(l, m, e) < 0) ||
		(m->nsources && source_lock(l, m, mirrors, s, p, e) < 0) ||
		(m->nmodels && model_lock(l, &models, e) < 0))
		return -1;
	return 0;
}

int lock_make(struct lock *l, const struct manifest *m, struct mirrors *mirrors, struct store *s,
	const struct lock_secrets *secrets, struct progress *p, struct err *e)
{
	int rc;

	*l = (struct lock){.platform = m->platform ? m->platform : manifest_platform(),
		.manifest = lock_manifest_digest(m),
		.envelope = lock_envelope()};
	progress_begin(p, "lock", 0);
	rc = make(l, m, mirrors, s, secrets, p, e);
	progress_end(p);
	return rc;
}

int lock_make_files(const struct manifest *m, struct err *e)
{
	struct lock l = {0};
	int rc;

	if (lock_load_of(&l, m, e) < 0)
		return -1;
	rc = lock_check(&l, m, e) < 0 || local_lock(&l, m, e) < 0 || lock_save_of(&l, m, e) < 0 ? -1
												: 0;
	lock_fini(&l);
	return rc;
}

/* ---- one package ---- */

/* Everything that is locked, as exact versions, but the one: what the resolver must keep. */
static struct pairs pins_of(
	struct arena *a, const struct manifest *m, const struct lock *old, const char *package)
{
	struct pairs out = {.v = arena_alloc(a, (m->apt.pins.n + old->ndebs) * sizeof(*out.v))};

	for (size_t i = 0; i < m->apt.pins.n; i++)
		out.v[out.n++] = m->apt.pins.v[i];
	for (size_t i = 0; i < old->ndebs; i++)
		if (!str_eq(old->debs[i].name, package))
			out.v[out.n++] = (struct pair){
				.name = old->debs[i].name, .value = old->debs[i].version};
	return out;
}

/* Put back each element of a list that is not called so: the old lock's where it has one. */
#define keep_others(l, old, list, count, field, package)                                           \
	for (size_t i_ = 0; i_ < (l)->count; i_++) {                                               \
		if (str_eq((l)->list[i_].field, package))                                          \
			continue;                                                                  \
		for (size_t k_ = 0; k_ < (old)->count; k_++)                                       \
			if (str_eq((l)->list[i_].field, (old)->list[k_].field))                    \
				(l)->list[i_] = (old)->list[k_];                                   \
	}

/* Debs that moved although they were not asked to. */
static int check_debs(
	const struct lock *l, const struct lock *old, const char *package, struct err *e)
{
	for (size_t i = 0; i < l->ndebs; i++)
		for (size_t k = 0; k < old->ndebs; k++) {
			const struct lock_deb *x = &l->debs[i], *y = &old->debs[k];

			if (!str_eq(x->name, y->name) || !str_eq(x->arch, y->arch) ||
				str_eq(x->name, package) || str_eq(x->version, y->version))
				continue;
			err_set(e, ERR_USAGE, "%s cannot move alone: %s would go from %s to %s",
				package, x->name, y->version, x->version);
			return err_hint(e, "svrun image lock, without --update");
		}
	return 0;
}

static bool has_name(const struct lock *l, const char *package)
{
	bool found = l->base.present && str_eq(package, "base");

	for (size_t i = 0; i < l->ndebs; i++)
		found = found || str_eq(l->debs[i].name, package);
	for (size_t i = 0; i < l->nwheels; i++)
		found = found || str_eq(l->wheels[i].name, package);
	for (size_t i = 0; i < l->nnpms; i++)
		found = found || str_eq(l->npms[i].name, package);
	for (size_t i = 0; i < l->nsources; i++)
		found = found || str_eq(l->sources[i].id, package);
	for (size_t i = 0; i < l->nmodels; i++)
		found = found || str_eq(l->models[i].id, package);
	return found;
}

int lock_update(struct lock *l, const struct lock *old, const char *package,
	const struct manifest *m, struct mirrors *mirrors, struct store *s,
	const struct lock_secrets *secrets, struct progress *p, struct err *e)
{
	struct arena a = {0};
	struct manifest pinned = *m; /* only its pins are others */
	int rc;

	*l = (struct lock){0};
	if (!has_name(old, package))
		return err_set(e, ERR_USAGE, "nothing in the lock is called '%s'", package);
	pinned.apt.pins = pins_of(&a, m, old, package);
	rc = lock_make(l, &pinned, mirrors, s, secrets, p, e);
	arena_fini(&a);
	if (rc < 0 || check_debs(l, old, package, e) < 0)
		return -1;
	keep_others(l, old, wheels, nwheels, name, package);
	keep_others(l, old, npms, nnpms, path, package);
	keep_others(l, old, sources, nsources, id, package);
	keep_others(l, old, models, nmodels, id, package);
	if (!str_eq(package, "base"))
		l->base = old->base;
	return 0;
}

/* ---- differences ---- */

/* The inputs of a lock as lines of one shape. */
struct line {
	const char *kind, *id, *version;
};

struct lines {
	struct arena arena;
	struct line *v;
	size_t n, cap;
};

static void add(struct lines *l, const char *kind, const char *id, const char *version)
{
	mem_grow(&l->v, &l->cap, l->n);
	l->v[l->n++] = (struct line){.kind = kind, .id = id, .version = version};
}

static const char *short_hex(struct lines *l, const struct digest *d)
{
	char hex[DIGEST_HEX + 1];

	return arena_printf(&l->arena, "%.12s", digest_hex(d, hex));
}

/* A version that is the same with other bytes is a difference, too. */
static const char *with_sum(struct lines *l, const char *version, const struct digest *d)
{
	return arena_printf(&l->arena, "%s (%s)", version, short_hex(l, d));
}

static void list(struct lines *l, const struct lock *k)
{
	for (size_t i = 0; i < k->ndebs; i++)
		add(l, "deb", arena_printf(&l->arena, "%s:%s", k->debs[i].name, k->debs[i].arch),
			with_sum(l, k->debs[i].version, &k->debs[i].sha256));
	for (size_t i = 0; i < k->nwheels; i++)
		add(l, "wheel", k->wheels[i].name,
			with_sum(l, k->wheels[i].version, &k->wheels[i].sha256));
	for (size_t i = 0; i < k->nnpms; i++)
		add(l, "npm", k->npms[i].path,
			arena_printf(
				&l->arena, "%s (%.19s)", k->npms[i].version, k->npms[i].integrity));
	for (size_t i = 0; i < k->nsources; i++) {
		const struct lock_source *s = &k->sources[i];

		add(l, "source", s->id,
			s->commit ? arena_printf(&l->arena, "%s (%s)", s->commit,
					    short_hex(l, &s->tree_sha256))
				  : short_hex(l, &s->sha256));
	}
	for (size_t i = 0; i < k->nmodels; i++)
		add(l, "model", k->models[i].id, short_hex(l, &k->models[i].set));
	if (k->base.present)
		add(l, "base", k->base.ref, short_hex(l, &k->base.manifest));
	for (size_t i = 0; i < k->nfiles; i++)
		add(l, "file", k->files[i].path, short_hex(l, &k->files[i].sha256));
}

static const struct line *find(const struct lines *l, const struct line *x)
{
	for (size_t i = 0; i < l->n; i++)
		if (str_eq(l->v[i].kind, x->kind) && str_eq(l->v[i].id, x->id))
			return &l->v[i];
	return NULL;
}

static void lines_fini(struct lines *l)
{
	free(l->v);
	arena_fini(&l->arena);
}

size_t lock_diff(const struct lock *old, const struct lock *now, struct buf *out)
{
	struct lines a = {0}, b = {0};
	size_t n = 0;

	list(&a, old);
	list(&b, now);
	for (size_t i = 0; i < a.n; i++) {
		const struct line *x = find(&b, &a.v[i]);

		if (x && str_eq(x->version, a.v[i].version))
			continue;
		buf_printf(out, "%s %s %s -> %s\n", a.v[i].kind, a.v[i].id, a.v[i].version,
			x ? x->version : "gone");
		n++;
	}
	for (size_t i = 0; i < b.n; i++)
		if (!find(&a, &b.v[i])) {
			buf_printf(out, "%s %s new: %s\n", b.v[i].kind, b.v[i].id, b.v[i].version);
			n++;
		}
	lines_fini(&a);
	lines_fini(&b);
	return n;
}
