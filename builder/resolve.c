#include "builder/resolve.h"

#include <string.h>

#include "base/str.h"
#include "builder/document.h"
#include "builder/family.h"
#include "builder/manifest-keys.h"
#include "builder/merge.h"
#include "builder/vars.h"

struct resolved {
	struct arena arena;
	struct family family;
	struct value *root; /* merged and expanded; NULL: there is none */
	json_t *whole, *document, *values;
	struct vars vars;
	struct strings entries, modes;
	const char *entry, *mode;
};

static const struct key root_key = {.kind = V_OBJECT, .of = &manifest_schema};

/* ---- what can be chosen ---- */

static void collect_names(struct resolved *r)
{
	const struct value *matrix = value_member(r->root, "matrix");
	const struct value *modes = value_member(r->root, "modes");

	if (matrix && matrix->kind == JSON_ARRAY) {
		r->entries.v = arena_alloc(&r->arena, matrix->n * sizeof(*r->entries.v));
		for (size_t i = 0; i < matrix->n; i++)
			if (value_text_of(matrix->v[i], "id"))
				r->entries.v[r->entries.n++] = value_text_of(matrix->v[i], "id");
	}
	if (modes && modes->kind == JSON_OBJECT) {
		r->modes.v = arena_alloc(&r->arena, modes->n * sizeof(*r->modes.v));
		for (size_t i = 0; i < modes->n; i++)
			if (modes->v[i]->kind == JSON_OBJECT)
				r->modes.v[r->modes.n++] = modes->v[i]->key;
	}
}

static int no_such(const char *option, const char *name, const char *what,
	const struct strings *names, struct err *e)
{
	auto_buf struct buf list = BUF_INIT(4 << 20);
	char shown[STR_SHOWN];

	for (size_t i = 0; i < names->n && list.len < 300; i++)
		buf_printf(&list, "%s%.64s", i ? ", " : "", names->v[i]);
	err_set(e, ERR_USAGE, "%s %s: the manifest has no such %s", option, str_shown(name, shown),
		what);
	return list.len ? err_hint(e, "it has %s", list.data) : -1;
}

static const struct value *choose_entry(
	struct resolved *r, const struct manifest_choice *c, struct err *e)
{
	const struct value *matrix = value_member(r->root, "matrix");
	static const struct value none = {.kind = JSON_OBJECT};

	for (size_t i = 0; matrix && matrix->kind == JSON_ARRAY && i < matrix->n; i++) {
		const char *id = value_text_of(matrix->v[i], "id");

		if (!id || (c->matrix && !str_eq(id, c->matrix)))
			continue;
		r->entry = id;
		return matrix->v[i];
	}
	if (c->matrix)
		return no_such("--matrix", c->matrix, "entry of its matrix", &r->entries, e), NULL;
	return &none;
}

/* The mode on top of the document, whose own place stays. */
static int apply_mode(struct resolved *r, struct merge *m, const char *name, struct err *e)
{
	struct value *mode = value_member(value_member(r->root, "modes"), name);
	struct value overlay, *merged;

	if (!mode || mode->kind != JSON_OBJECT)
		return no_such("--mode", name, "mode", &r->modes, e);
	overlay = *mode;
	overlay.v =
		arena_dup(&r->arena, mode->v ? (void *)mode->v : "", mode->n * sizeof(*mode->v));
	overlay.cap = overlay.n;
	value_drop(&overlay, "description");
	value_drop(&overlay, "modes");
	m->mode = true;
	merged = merge_values(m, r->root, &overlay, &root_key);
	m->mode = false;
	merged->from = r->root->from;
	merged->at = r->root->at;
	merged->up = NULL;
	merged->key = NULL;
	r->root = merged;
	r->mode = mode->key;
	return 0;
}

/* ---- from documents to one ---- */

static void merge_family(struct resolved *r, struct merge *m)
{
	for (size_t i = 0; i < r->family.ordered; i++) {
		struct value *root = r->family.order[i]->root;

		if (r->family.order[i] != r->family.v[0])
			value_drop(root, "from"); /* its own, which have been read */
		r->root = merge_values(m, r->root, root, &root_key);
	}
}

/* null is as if the key was not there: it takes away what was inherited. */
static void drop_nulls(struct value *v, const struct key *k)
{
	size_t n = 0;

	if ((v->kind != JSON_OBJECT && v->kind != JSON_ARRAY) || k->kind == V_JSON)
		return;
	for (size_t i = 0; i < v->n; i++) {
		struct key child = schema_child(k, v->v[i]->key);

		if (child.kind)
			drop_nulls(v->v[i], &child);
		if (v->kind == JSON_ARRAY || !child.kind || child.kind == V_JSON ||
			v->v[i]->kind != JSON_NULL)
			v->v[n++] = v->v[i];
	}
	v->n = n;
}

static void make_json(struct resolved *r)
{
	static const char *const gone[] = {"$schema", "from", "vars", "matrix", "modes"};

	r->values = json_object();
	for (size_t i = 0; i < r->vars.n; i++)
		if (r->vars.v[i].given)
			json_object_set_new(
				r->values, r->vars.v[i].name, value_json(r->vars.v[i].given));
	r->whole = value_json(r->root);
	r->document = json_copy(r->whole);
	for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++)
		json_object_del(r->document, gone[i]);
}

static int settle(struct resolved *r, const struct manifest_choice *choice, struct err *e)
{
	static const struct manifest_choice none;
	const struct manifest_choice *c = choice ? choice : &none;
	struct merge m = {.arena = &r->arena};
	const struct value *entry;
	struct value *modes;

	merge_family(r, &m);
	if (!r->root)
		return 0;
	collect_names(r);
	entry = choose_entry(r, c, e);
	if (!entry || vars_init(&r->vars, &r->arena, r->root, entry, &c->vars, e) < 0)
		return -1;
	if (c->mode && apply_mode(r, &m, c->mode, e) < 0)
		return -1;
	modes = value_member(r->root, "modes");
	if (modes) {
		struct key k = schema_child(&root_key, "modes");

		merge_settle_modes(&m, modes, &k);
	}
	vars_expand(&r->vars, r->root, &root_key);
	drop_nulls(r->root, &root_key);
	make_json(r);
	return 0;
}

int resolve(struct resolved **out, const char *path, const void *text, size_t n,
	const struct manifest_choice *choice, struct err *e)
{
	struct resolved *r;

	if (n > MANIFEST_MAX)
		return err_set(e, ERR_CORRUPT, "%s: longer than the limit of %d bytes", path,
			MANIFEST_MAX);
	r = mem_alloc(sizeof(*r));
	if (family_read(&r->family, &r->arena, path, text, n, &root_key, e) < 0 ||
		settle(r, choice, e) < 0) {
		resolved_free(r);
		return -1;
	}
	*out = r;
	return 0;
}

void resolved_free(struct resolved *r)
{
	if (!r)
		return;
	json_decref(r->whole);
	json_decref(r->document);
	json_decref(r->values);
	family_fini(&r->family);
	arena_fini(&r->arena);
	free(r);
}

/* ---- what came of it ---- */

bool resolved_is_partial(const struct resolved *r)
{
	return r->family.partial;
}

json_t *resolved_root(const struct resolved *r)
{
	return r->document;
}

json_t *resolved_whole(const struct resolved *r)
{
	return r->whole;
}

const char *resolved_entry(const struct resolved *r)
{
	return r->entry;
}

const char *resolved_mode(const struct resolved *r)
{
	return r->mode;
}

const json_t *resolved_var(const struct resolved *r, const char *name)
{
	return json_object_get(r->values, name);
}

struct strings resolved_matrix(const struct resolved *r)
{
	return r->entries;
}

struct strings resolved_modes(const struct resolved *r)
{
	return r->modes;
}

/* ---- places ---- */

/* One step of a pointer, unescaped, in a buffer of its own. */
static const char *step_of(const char *p, size_t n, struct buf *key)
{
	buf_fini(key);
	for (size_t i = 0; i < n; i++) {
		bool escape = p[i] == '~' && i + 1 < n && (p[i + 1] == '0' || p[i + 1] == '1');

		buf_put(key, escape ? (p[i + 1] == '0' ? "~" : "/") : p + i, 1);
		i += escape;
	}
	return key->data ? key->data : "";
}

/* The value at pointer, or its nearest ancestor: then *rest is what is missing. */
static const struct value *follow(const struct resolved *r, const char *pointer, const char **rest)
{
	auto_buf struct buf key = BUF_INIT(strlen(pointer) + 16);
	const struct value *v = r->root;

	while (*pointer == '/') {
		size_t n = strcspn(pointer + 1, "/");
		const char *name = step_of(pointer + 1, n, &key);
		const struct value *next = NULL;
		uint64_t i;

		if (v->kind == JSON_OBJECT)
			next = value_member(v, name);
		else if (v->kind == JSON_ARRAY && str_u64(name, SIZE_MAX, &i) == 0 && i < v->n)
			next = v->v[i];
		if (!next)
			break;
		v = next;
		pointer += 1 + n;
	}
	*rest = pointer;
	return v;
}

void resolved_place(const struct resolved *r, const char *pointer, bool at_key, const char **file,
	int *line, int *col)
{
	const char *rest;
	const struct value *v = r->root ? follow(r, pointer, &rest) : NULL;

	*file = r->family.v[0]->path;
	*line = *col = 1;
	if (!v || !v->from)
		return;
	*file = v->from->report.name;
	origin_place(v->from, at_key && !*rest && v->key ? v->key_at : v->at, line, col);
}

void resolved_fault(struct resolved *r, struct fault f, const char *message)
{
	auto_buf struct buf pointer = BUF_INIT(64 << 20);
	const char *rest;
	const struct value *v = follow(r, f.pointer, &rest);
	struct report *report = &v->from->report;
	bool at_key = f.at_key && !*rest && v->key;

	value_pointer(v, &pointer);
	buf_printf(&pointer, "%s", rest);
	f.pointer = pointer.data ? pointer.data : "";
	f.at = report->text + (at_key ? v->key_at : v->at);
	if (v->expanded || *rest)
		f.byte = 0;
	report_add(report, &f, "%s", message);
}

size_t resolved_finish(struct resolved *r, struct complaints *c)
{
	size_t before = c->count;

	for (size_t i = 0; i < r->family.n; i++)
		report_finish(&r->family.v[i]->origin.report, c);
	return c->count - before;
}
