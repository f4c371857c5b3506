/* Steps side by side. What a step sees does not depend on when it runs: the composed tree, and what
 * the steps that it depends on changed; so keys and results are the same whatever the schedule.
 * Changes are laid over the tree in the order of the list.
 *
 *	WAITING -> (all that it sees are done) -> RUNNING -> DONE -> applied, in the list's order
 */
#include <fcntl.h>
#include <signal.h>
#include <string.h>

#include "base/str.h"
#include "builder/step-conflict.h"
#include "builder/steps-private.h"
#include "images/workers.h"

enum { BUSY_MS = 200 }; /* until the next look whether another build gave a cache folder back */

enum phase { WAITING, RUNNING, DONE };

struct slot {
	enum phase phase;
	const bool *sees; /* the steps before it that it sees */
	bool sees_all;
	struct tree *view;
	bool own; /* the view */
	struct digest key;
	struct running *run;
	struct entries changed;
};

struct graph {
	struct steps *s;
	const struct step_list *l;
	struct slot *v;
	struct tree *before; /* the tree before the first; NULL: every step sees all before it */
	size_t applied, running, jobs;
	sigset_t signals; /* as they were, while some run */
};

/* ---- who sees whom ---- */

static bool names(const struct strings *inputs, const struct step *st)
{
	for (size_t i = 0; inputs && st->name && i < inputs->n; i++)
		if (str_eq(inputs->v[i], st->name))
			return true;
	return false;
}

static bool *find_seen(const struct step_list *l, bool *const *seen, size_t i, struct arena *a)
{
	bool *sees = arena_alloc(a, l->n * sizeof(*sees));
	const struct step *st = &l->v[i];

	for (size_t k = i; k-- > 0;) {
		if (!st->inputs || names(st->inputs, &l->v[k]))
			sees[k] = true;
		for (size_t j = 0; sees[k] && j < k; j++)
			sees[j] = sees[j] || seen[k][j];
	}
	return sees;
}

bool **steps_seen(const struct step_list *l, struct arena *a)
{
	bool **v = arena_alloc(a, (l->n + 1) * sizeof(*v));

	for (size_t i = 0; i < l->n; i++)
		v[i] = find_seen(l, v, i, a);
	return v;
}

static int init(struct graph *g, struct err *e)
{
	static const struct step whole;
	bool own, partial = false, **seen = steps_seen(g->l, &g->s->arena);

	g->v = mem_array(g->l->n, sizeof(*g->v));
	for (size_t i = 0; i < g->l->n; i++) {
		struct slot *x = &g->v[i];

		x->sees = seen[i];
		x->sees_all = true;
		for (size_t k = 0; k < i; k++)
			x->sees_all = x->sees_all && x->sees[k];
		partial = partial || !x->sees_all;
	}
	return partial ? step_view(g->s, &whole, true, &g->before, &own, e) : 0;
}

/* ---- what one sees ---- */

/* Its part of the tree as it was, with what it sees of the steps before it. */
static int partial_view(struct graph *g, size_t i, struct err *e)
{
	struct steps *s = g->s;
	struct slot *x = &g->v[i];
	struct tree *whole = s->c->tree;
	struct composed c = {0};
	int rc;

	s->c->tree = g->before;
	rc = step_view(s, &g->l->v[i], true, &x->view, &x->own, e);
	s->c->tree = whole;
	if (rc < 0)
		return -1;
	c.tree = x->view;
	for (size_t k = 0; rc == 0 && k < i; k++)
		if (x->sees[k])
			rc = compose_apply(&c, &g->v[k].changed, 0, s->x->m->build.epoch, e);
	return rc;
}

static int make_view(struct graph *g, size_t i, struct err *e)
{
	struct slot *x = &g->v[i];

	if (x->view)
		return 0;
	if (x->sees_all)
		return step_view(g->s, &g->l->v[i], false, &x->view, &x->own, e);
	return partial_view(g, i, e);
}

static void drop_view(struct slot *x)
{
	if (x->own)
		tree_free(x->view);
	x->view = NULL;
	x->own = false;
}

/* ---- the end of one ---- */

static int done(struct graph *g, size_t i, struct err *e)
{
	struct slot *x = &g->v[i];
	int rc = steps_check_writes(g->s, &g->l->v[i], &x->changed, x->view, e);

	drop_view(x);
	x->phase = DONE;
	return rc;
}

/* Two that do not see each other must not write the same: which one is on top would be chance. */
static int check_others(struct graph *g, size_t i, struct err *e)
{
	const struct step *b = &g->l->v[i];

	for (size_t k = 0; k < i; k++) {
		const struct step *a = &g->l->v[k];
		const char *path =
			g->v[i].sees[k] ? NULL : step_conflict(&g->v[k].changed, &g->v[i].changed);

		if (!path)
			continue;

		auto_free char *shown = step_shown(path);

		step_fault(g->s, b, "/inputs", 68, e,
			"the steps %s and %s both write /%.700s, and neither sees the other", a->id,
			b->id, shown);
		return err_hint(e,
			"add \"%.100s\" to these inputs, or have one of the two write "
			"elsewhere",
			a->name);
	}
	return 0;
}

static int apply_done(struct graph *g, struct err *e)
{
	for (; g->applied < g->l->n && g->v[g->applied].phase == DONE; g->applied++) {
		size_t i = g->applied;

		if (check_others(g, i, e) < 0 ||
			steps_apply(g->s, &g->l->v[i], &g->v[i].changed, e) < 0)
			return -1;
	}
	return 0;
}

/* ---- starting ---- */

/* Whoever ends the build waits until nothing of its steps is left: the sandbox looks for signals
 * that wait (sandbox-watch.c), and they arrive when all is tidy. */
static void hold_signals(struct graph *g)
{
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGHUP);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &ends, &g->signals);
}

static void count_started(struct graph *g, const struct step *st)
{
	if (g->running++ > 0) {
		progress_line(g->s->x->p, st->id, 0);
		return;
	}
	progress_begin(g->s->x->p, st->id, 0);
}

static void count_ended(struct graph *g)
{
	if (--g->running > 0)
		return;
	progress_end(g->s->x->p);
	pthread_sigmask(SIG_SETMASK, &g->signals, NULL);
}

static bool is_ready(const struct graph *g, size_t i)
{
	const struct slot *x = &g->v[i];

	if (x->phase != WAITING || (x->sees_all && g->applied < i))
		return false;
	for (size_t k = 0; k < i; k++)
		if (x->sees[k] && g->v[k].phase != DONE)
			return false;
	return true;
}

/* Alone it may wait for a cache folder, without a signal being held back. */
static int start(struct graph *g, size_t i, struct err *e)
{
	struct slot *x = &g->v[i];
	const struct step *st = &g->l->v[i];
	bool alone = g->running == 0;
	int rc = step_prepare(&x->run, g->s, st, x->view, alone, e);

	if (rc <= 0)
		return rc;
	if (alone)
		hold_signals(g);
	count_started(g, st);
	if (step_start(x->run, e) == 0) {
		x->phase = RUNNING;
		return 0;
	}
	x->run = NULL;
	count_ended(g);
	return -1;
}

static int try_one(struct graph *g, size_t i, struct err *e)
{
	struct slot *x = &g->v[i];
	const struct step *st = &g->l->v[i];
	bool looked = x->view != NULL;
	int rc;

	if (make_view(g, i, e) < 0)
		return err_ctx(e, "step %s", st->id);
	rc = looked ? 0 : step_find(g->s, st, x->view, &x->key, &x->changed, e);
	if (rc > 0)
		return done(g, i, e);
	return rc < 0 || g->running >= g->jobs ? rc : start(g, i, e);
}

static int try_all(struct graph *g, struct err *e)
{
	for (size_t i = 0; i < g->l->n; i++)
		if (g->running < g->jobs && is_ready(g, i) &&
			(try_one(g, i, e) < 0 || apply_done(g, e) < 0))
			return -1;
	return 0;
}

/* ---- waiting ---- */

/* The one that has ended; g->l->n: none within ms. */
static size_t wait_one(struct graph *g, int ms)
{
	auto_free struct sandbox **v = mem_array(g->l->n, sizeof(struct sandbox *));
	auto_free size_t *of = mem_array(g->l->n, sizeof(*of));
	size_t n = 0;
	int at;

	for (size_t i = 0; i < g->l->n; i++)
		if (g->v[i].phase == RUNNING) {
			of[n] = i;
			v[n++] = step_sandbox(g->v[i].run);
		}
	at = sandbox_wait(v, n, ms);
	return at < 0 ? g->l->n : of[at];
}

/* Those that run beside i. To free(). */
static struct sandbox **others(struct graph *g, size_t i, size_t *n)
{
	struct sandbox **v = mem_array(g->l->n, sizeof(struct sandbox *));

	*n = 0;
	for (size_t k = 0; k < g->l->n; k++)
		if (k != i && g->v[k].phase == RUNNING)
			v[(*n)++] = step_sandbox(g->v[k].run);
	return v;
}

static bool any_waits(const struct graph *g)
{
	for (size_t i = 0; i < g->l->n; i++)
		if (is_ready(g, i))
			return true;
	return false;
}

static int end_one(struct graph *g, size_t i, struct err *e)
{
	struct slot *x = &g->v[i];
	size_t n;
	auto_free struct sandbox **v = others(g, i, &n);
	int rc;

	sandbox_beside(step_sandbox(x->run), v, n);
	rc = step_end(steal_ptr(&x->run), &x->key, &x->changed, e);

	x->phase = DONE;
	count_ended(g);
	return rc < 0 ? -1 : done(g, i, e);
}

/* Ends the others: their logs say why. */
static void stop_all(struct graph *g, const char *why)
{
	for (size_t i = 0; i < g->l->n; i++)
		if (g->v[i].phase == RUNNING)
			sandbox_stop(step_sandbox(g->v[i].run));
	while (g->running > 0) {
		struct slot *x = &g->v[wait_one(g, -1)];

		step_abandon(steal_ptr(&x->run), why);
		x->phase = DONE;
		count_ended(g);
	}
}

static int run_all(struct graph *g, struct err *e)
{
	while (g->applied < g->l->n) {
		size_t i;

		if (try_all(g, e) < 0)
			return -1;
		if (g->running == 0)
			continue;
		i = wait_one(g, g->running < g->jobs && any_waits(g) ? BUSY_MS : -1);
		if (i < g->l->n && (end_one(g, i, e) < 0 || apply_done(g, e) < 0))
			return -1;
	}
	return 0;
}

int steps_run_list(struct steps *s, const struct step_list *l, struct err *e)
{
	struct graph g = {
		.s = s, .l = l, .jobs = s->x->jobs ? s->x->jobs : (size_t)workers_cores()};
	int rc = init(&g, e) < 0 ? -1 : run_all(&g, e);

	if (rc < 0)
		stop_all(&g, "stopped, as another step failed");
	for (size_t i = 0; i < l->n; i++) {
		drop_view(&g.v[i]);
		entries_fini(&g.v[i].changed);
	}
	if (g.before)
		tree_free(g.before);
	free(g.v);
	return rc;
}
