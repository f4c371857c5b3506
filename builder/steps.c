#include "builder/steps.h"

#include <string.h>

#include "base/str.h"
#include "builder/prune.h"
#include "builder/step-mounts.h"
#include "builder/steps-private.h"
#include "builder/writes.h"

enum { SHOWN_PATHS = 8 };

/* ---- lists ---- */

struct step *steps_new(struct step_list *l, const char *id, const char *pointer)
{
	struct step *st;

	mem_grow(&l->v, &l->cap, l->n);
	st = &l->v[l->n++];
	*st = (struct step){.id = id, .pointer = pointer, .box = {.id = id}};
	return st;
}

struct strings steps_words(struct steps *s, size_t n, const char *const *v)
{
	return (struct strings){arena_dup(&s->arena, v, n * sizeof(*v)), n};
}

json_t *steps_json(const struct strings *v)
{
	json_t *list = json_array();

	for (size_t i = 0; i < v->n; i++)
		json_array_append_new(list, json_string(v->v[i]));
	return list;
}

json_t *steps_json_pairs(const struct pairs *v)
{
	json_t *o = json_object();

	for (size_t i = 0; i < v->n; i++)
		json_object_set_new(o, v->v[i].name, json_string(v->v[i].value));
	return o;
}

/* ---- what a step changed ---- */

/* SV061 names every path: the first ones in the error, all in the log. */
int steps_check_writes(struct steps *s, const struct step *st, const struct entries *l,
	struct tree *view, struct err *e)
{
	struct strings out = {0};
	auto_buf struct buf some = BUF_INIT(1 << 16);

	if (!st->writes)
		return 0;
	out = writes_outside(st->writes, l, view, &s->arena);
	if (out.n == 0)
		return 0;
	for (size_t i = 0; i < out.n && i < SHOWN_PATHS; i++) {
		auto_free char *path = step_shown(out.v[i]);

		buf_printf(&some, "%s%.200s", i ? ", " : "", path);
	}
	if (out.n > SHOWN_PATHS)
		buf_printf(&some, " and %zu more", out.n - SHOWN_PATHS);
	step_log_paths(s, st, "wrote outside of its \"writes\"", &out);
	step_fault(s, st, str_starts(st->id, "run:") ? "/writes" : "", 61, e,
		"step %s wrote outside: %.700s", st->id, some.data);
	return err_hint(e, "all are in %.200s: add them to \"writes\", or have the step leave them",
		step_log_path(s, st));
}

/* Of a step that sees a part of the tree: what others put there is theirs. */
static bool is_others(struct steps *s, const struct step *st, const char *path)
{
	const struct node *n = tree_find(s->c->tree, path);

	return st->sees && n && n->parent && !(st->sees >> s->c->origins[n->origin].kind & 1);
}

/* The part of the list that belongs to the image. Its arrays are the list's. */
static struct entries kept_part(struct steps *s, const struct step *st, const struct entries *l)
{
	struct entries out = {.v = mem_array(l->n, sizeof(*out.v))};

	for (size_t i = 0; i < l->n; i++) {
		const struct entry *en = &l->v[i];

		if (is_others(s, st, en->path) || (st->keep && !st->keep(st, en)))
			continue;
		out.v[out.n++] = *en;
	}
	return out;
}

int steps_apply(struct steps *s, const struct step *st, const struct entries *l, struct err *e)
{
	struct entries part = kept_part(s, st, l);
	int rc = compose_apply(
		s->c, &part, compose_origin(s->c, &st->origin), s->x->m->build.epoch, e);

	free(part.v);
	return rc;
}

/* ---- all of them ---- */

void steps_free_list(struct step_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		json_decref(l->v[i].doc);
		prune_free(l->v[i].prune);
	}
	free(l->v);
}

static int run_list(struct steps *s, struct step_list *l, struct err *e)
{
	int rc = steps_run_list(s, l, e);

	steps_free_list(l);
	return rc;
}

void steps_key(const struct manifest *m, struct buf *out)
{
	if (m->apt.present && m->apt.configure == APT_DPKG)
		buf_printf(out, " dpkg/2"); /* preinst scripts */
	if (m->nruns)
		buf_printf(out, " run/2"); /* inputs name steps */
}

/* Each kind is listed when the steps before have run: it looks at what they left. */
int steps_run(const struct step_context *x, struct composed *c, struct err *e)
{
	static int (*const kinds[])(struct steps * s, struct step_list * l, struct err * e) = {
		steps_add_dpkg,
		steps_add_npm,
		steps_add_bytecode,
		steps_add_runs,
	};
	struct steps s = {.x = x, .c = c};
	int rc = sandbox_sweep(x->s, e) < 0 ? -1 : step_mounts_sweep(x->s, e);

	for (size_t i = 0; rc == 0 && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct step_list l = {0};
		int added = kinds[i](&s, &l, e);

		if (added < 0)
			l.n = 0;
		rc = run_list(&s, &l, e) < 0 || added < 0 ? -1 : 0;
	}
	arena_fini(&s.arena);
	return rc;
}
