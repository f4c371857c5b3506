/* The manifest's run steps. */
#include <string.h>

#include "base/str.h"
#include "builder/steps-private.h"

static const char script_at[] = "/run/svrun/step";

/* What decides the result: not the limits, which end a step or do not, and not `writes`, which is
 * looked at every time. */
static json_t *run_doc(const struct manifest_run *r)
{
	json_t *doc = json_pack("{s:s, s:o, s:o, s:b, s:o}", "kind", "run", "argv",
		steps_json(&r->argv), "env", steps_json_pairs(&r->env), "network", r->network,
		"inputs", steps_json(&r->inputs));
	json_t *secrets = json_array(), *caches = json_array();

	if (r->script) {
		json_object_set_new(doc, "script", json_string(r->script));
		json_object_set_new(doc, "interpreter", json_string(r->interpreter));
	}
	if (r->user)
		json_object_set_new(doc, "user", json_string(r->user));
	if (r->workdir)
		json_object_set_new(doc, "workdir", json_string(r->workdir));
	for (size_t i = 0; i < r->nsecrets; i++)
		json_array_append_new(
			secrets, json_pack("{s:s, s:s}", "id", r->secrets[i].id, "target",
					 r->secrets[i].target ? r->secrets[i].target : ""));
	for (size_t i = 0; i < r->ncaches; i++)
		json_array_append_new(caches, json_pack("{s:s, s:s}", "id", r->caches[i].id,
						      "target", r->caches[i].target));
	json_object_set_new(doc, "secrets", secrets);
	json_object_set_new(doc, "cache", caches);
	return doc;
}

/* A script is a file, so that its interpreter says which line failed. */
static void set_script(struct steps *s, struct step *st, const struct manifest_run *r)
{
	const char *words[] = {r->interpreter ? r->interpreter : "/bin/sh", script_at};
	struct sandbox_file *f = arena_alloc(&s->arena, sizeof(*f));

	*f = (struct sandbox_file){script_at, r->script, strlen(r->script), 0555};
	st->box.files = f;
	st->box.nfiles = 1;
	st->box.argv = steps_words(s, 2, words);
}

/* An empty list is one, too: nothing of that is seen. */
static bool has_inputs(const struct steps *s, size_t i)
{
	const json_t *runs = json_object_get(s->x->m->doc.root, "run");

	return s->x->m->runs[i].inputs.n || json_object_get(json_array_get(runs, i), "inputs");
}

static void add_run(struct steps *s, struct step_list *l, size_t i)
{
	const struct manifest_run *r = &s->x->m->runs[i];
	struct step *st = steps_new(l, arena_printf(&s->arena, "run:%s", r->id),
		arena_printf(&s->arena, "/run/%zu", i));

	st->box.argv = r->argv;
	if (r->script)
		set_script(s, st, r);
	st->box.env = r->env;
	st->box.user = r->user;
	st->box.workdir = r->workdir;
	st->box.network = r->network;
	st->box.timeout_ms = r->timeout_ms;
	st->box.memory_mib = r->memory_mib;
	st->box.cpus = r->cpus;
	st->box.max_bytes = (uint64_t)r->disk_mib << 20;
	st->doc = run_doc(r);
	st->name = r->id;
	st->inputs = has_inputs(s, i) ? &r->inputs : NULL;
	st->writes = &r->writes;
	st->caches = r->caches;
	st->ncaches = r->ncaches;
	st->secrets = r->secrets;
	st->nsecrets = r->nsecrets;
	st->origin = (struct origin){.kind = ORIGIN_RUN, .name = r->id, .entry = i};
}

void steps_list_runs(struct steps *s, struct step_list *l)
{
	for (size_t i = 0; i < s->x->m->nruns; i++)
		add_run(s, l, i);
}

int steps_add_runs(struct steps *s, struct step_list *l, struct err *e)
{
	(void)e;
	steps_list_runs(s, l);
	return 0;
}
