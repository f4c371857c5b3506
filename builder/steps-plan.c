/* Steps that run code, as they can be told before the tree is there. The manifest's are listed as
 * the build lists them (steps-manifest.c), and see what they see there (steps-graph.c). */
#include <string.h>

#include "base/str.h"
#include "builder/engine.h"
#include "builder/plan.h"
#include "builder/steps-private.h"

enum { KEY_TEXT = 64 << 20 };

/* Its own words, what is composed before it, and the keys of the steps that it sees. */
static struct digest key_of(
	const struct plan_code *v, size_t i, const struct digest *composed, const json_t *doc)
{
	char hex[DIGEST_HEX + 1];
	auto_buf struct buf b = BUF_INIT(KEY_TEXT), text = BUF_INIT(KEY_TEXT);

	if (doc)
		json_text(doc, true, &text);
	buf_printf(&b, "step %s over %s by %s %s", v[i].id, digest_hex(composed, hex),
		ENGINE_VERSION, SANDBOX_VERSION);
	for (size_t k = 0; k < i; k++)
		if (v[i].sees[k])
			buf_printf(&b, " %s", digest_hex(&v[k].key, hex));
	buf_printf(&b, " %s", text.data ? text.data : "");
	return digest_of(b.data, b.len);
}

/* Those that are not the manifest's own: each sees all before it. */
static size_t list_others(
	struct plan_code *v, const struct manifest *m, const struct lock *l, struct arena *a)
{
	size_t n = 0;

	if (m->apt.present && m->apt.configure == APT_DPKG)
		v[n++].id = "dpkg";
	for (size_t i = 0; m->node.present && i < m->node.scripts.n; i++)
		v[n++].id = arena_printf(a, "npm:%s", m->node.scripts.v[i]);
	if (l->nwheels && m->python.bytecode == BYTECODE_UNCHECKED_HASH)
		v[n++].id = "bytecode";
	return n;
}

/* All that is before the manifest's own, and of those what it says. */
static const bool *sight(const bool *own, size_t i, size_t others, struct arena *a)
{
	bool *sees = arena_alloc(a, (i + 1) * sizeof(*sees));

	for (size_t k = 0; k < i; k++)
		sees[k] = k < others || own[k - others];
	return sees;
}

struct plan_code *plan_code(
	const struct manifest *m, const struct lock *l, struct arena *a, size_t *n)
{
	const struct step_context x = {.m = m, .l = l};
	struct steps s = {.x = &x};
	struct step_list runs = {0};
	const struct digest composed = compose_key(m, l);
	struct plan_code *v = arena_alloc(a, (m->nruns + m->node.scripts.n + 2) * sizeof(*v));
	size_t others = list_others(v, m, l, a);
	bool **seen;

	steps_list_runs(&s, &runs);
	seen = steps_seen(&runs, a);
	*n = others + runs.n;
	for (size_t i = 0; i < *n; i++) {
		const struct step *st = i < others ? NULL : &runs.v[i - others];

		if (st)
			v[i].id = arena_strdup(a, st->id);
		v[i].sees = sight(st ? seen[i - others] : NULL, i, st ? others : i, a);
		v[i].key = key_of(v, i, &composed, st ? st->doc : NULL);
	}
	steps_free_list(&runs);
	arena_fini(&s.arena);
	return v;
}
