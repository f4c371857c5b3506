#include "builder/build-check.h"

#include "base/str.h"
#include "builder/compose-private.h"
#include "builder/plan.h"
#include "images/pool.h"

int build_check_platform(const struct manifest *m, const struct lock *l, struct err *e)
{
	struct arena a = {0};
	size_t n;
	const struct plan_code *code = plan_code(m, l, &a, &n);
	int rc = 0;

	if (n && !str_eq(l->platform, manifest_platform())) {
		err_set(e, ERR_UNSUPPORTED, "the step %s is for %s, this machine is %s", code[0].id,
			l->platform, manifest_platform());
		rc = err_hint(e, "build it on such a machine, and take it over with --cache-to and "
				 "--cache-from, or push and pull");
	}
	arena_fini(&a);
	return rc;
}

/* ---- secrets ---- */

static bool has_secret(const struct build_options *o, const char *id)
{
	for (size_t i = 0; i < o->nsecrets; i++)
		if (str_eq(o->secrets[i].id, id))
			return true;
	return false;
}

static const struct run_secret *lacking(const struct manifest_run *r, const struct build_options *o)
{
	for (size_t i = 0; i < r->nsecrets; i++)
		if (r->secrets[i].required && !has_secret(o, r->secrets[i].id))
			return &r->secrets[i];
	return NULL;
}

/* 1, 0, -1. */
static int was_run(struct store *s, const struct plan_code *code, struct err *e)
{
	struct pool *pool = pool_open(s->fd, false, e);
	int rc = pool ? plan_was_run(pool, code, e) : -1;

	pool_close(pool);
	return rc;
}

static int has_to_fetch(
	const struct manifest *m, const struct lock *l, struct store *s, struct err *e)
{
	struct arena a = {0};
	struct input *in;
	size_t n = 0;
	int rc = compose_inputs(m, l, &a, &in, &n, e);

	for (size_t i = 0; rc == 0 && i < n; i++)
		if (!cache_has(s, &in[i]))
			rc = 1;
	arena_fini(&a);
	return rc;
}

static int refuse(const struct manifest *m, size_t i, const struct run_secret *want, struct err *e)
{
	auto_free char *pointer =
		mem_printf("/run/%zu/secrets/%zu", i, (size_t)(want - m->runs[i].secrets));

	err_set(e, ERR_USAGE, "SV131 %s: step run:%s needs the secret '%s'", pointer, m->runs[i].id,
		want->id);
	err_hint(e, "--secret %s=FILE", want->id);
	return manifest_at(m, pointer, e);
}

int build_check_secrets(const struct manifest *m, const struct lock *l, struct store *s,
	const struct build_options *o, struct err *e)
{
	struct arena a = {0};
	size_t n;
	const struct plan_code *code = plan_code(m, l, &a, &n);
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < m->nruns; i++) {
		const struct run_secret *want = lacking(&m->runs[i], o);
		int done = !want ? 1 : o->no_cache ? 0 : was_run(s, &code[n - m->nruns + i], e);

		if (done < 0)
			rc = -1;
		if (done)
			continue;
		rc = has_to_fetch(m, l, s, e);
		if (rc > 0)
			rc = refuse(m, i, want, e);
	}
	arena_fini(&a);
	return rc;
}
