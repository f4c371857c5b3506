#include "builder/lint.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "builder/document.h"
#include "builder/lint-parts.h"
#include "builder/resolve.h"

enum {
	FINDINGS_MAX = 100, /* of one rule in one pass: the rest is counted */
	TEXT_MAX = 600,
	ALLOW_MAX = 1000,
};

const char *lint_level_name(enum lint_level l)
{
	static const char *const names[] = {"info", "warning", "error"};

	return names[l];
}

void lint_fini(struct lint *l)
{
	arena_fini(&l->arena);
	free(l->v);
	*l = (struct lint){0};
}

/* ---- findings ---- */

static void locate(struct lint_pass *p, struct lint_finding *f)
{
	const char *file = p->m->path;

	if (p->m->source)
		resolved_place(p->m->source, f->pointer, false, &file, &f->line, &f->col);
	else
		json_doc_locate(&p->m->doc, f->pointer, false, &f->line, &f->col);
	f->file = arena_strdup(&p->out->arena, file);
}

static bool is_known(const struct lint *l, const struct lint_finding *f)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct lint_finding *o = &l->v[i];

		if (o->code == f->code && o->line == f->line && o->col == f->col &&
			str_eq(o->text, f->text) && str_eq(o->pointer, f->pointer) &&
			str_eq(o->file, f->file))
			return true;
	}
	return false;
}

void lint_found(
	struct lint_pass *p, const char *pointer, const char *expected, const char *fmt, ...)
{
	struct lint_finding f = {.code = p->rule->code,
		.level = p->rule->level,
		.pointer = arena_strdup(&p->out->arena, pointer),
		.hint = p->rule->todo};
	char text[TEXT_MAX];
	va_list ap;

	if (p->found++ >= FINDINGS_MAX) {
		p->more++;
		return;
	}
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	str_plain(text, "");
	f.text = arena_strdup(&p->out->arena, text);
	f.expected = expected ? arena_strdup(&p->out->arena, expected) : NULL;
	locate(p, &f);
	if (is_known(p->out, &f))
		return;
	mem_grow(&p->out->v, &p->out->cap, p->out->n);
	p->out->v[p->out->n++] = f;
}

/* A rule that fires everywhere says so once. */
static void say_more(struct lint_pass *p)
{
	size_t more = p->more;

	p->found = p->more = 0;
	if (more)
		lint_found(p, "", NULL, "%zu more like it", more);
	p->found = p->more = 0;
}

/* ---- what the manifest allows ---- */

static bool is_below(const char *pointer, const char *top)
{
	size_t n = strlen(top);

	return strncmp(pointer, top, n) == 0 && (!pointer[n] || pointer[n] == '/');
}

static bool is_allowed(const json_t *allow, const struct lint_finding *f)
{
	char code[16];

	snprintf(code, sizeof(code), "SV%03d", f->code);
	for (size_t i = 0; i < json_array_size(allow) && i < ALLOW_MAX; i++) {
		const json_t *entry = json_array_get(allow, i);
		const char *id = json_string_value(json_object_get(entry, "id"));
		const char *top = json_string_value(json_object_get(entry, "pointer"));

		if (id && json_is_string(json_object_get(entry, "reason")) && str_eq(id, code) &&
			is_below(f->pointer, top ? top : ""))
			return true;
	}
	return false;
}

static void drop_allowed(struct lint *l, const struct manifest *m, size_t from)
{
	const json_t *allow = json_object_get(json_object_get(m->doc.root, "x-lint"), "allow");
	size_t kept = from;

	for (size_t i = from; i < l->n; i++)
		if (!is_allowed(allow, &l->v[i]))
			l->v[kept++] = l->v[i];
	l->n = kept;
}

/* ---- passes ---- */

/* The document that was asked for first, then its parents by name. */
static int by_place(const void *a, const void *b, void *main_file)
{
	const struct lint_finding *x = a, *y = b;
	bool other = !str_eq(x->file, main_file), more = !str_eq(y->file, main_file);

	if (other != more)
		return other ? 1 : -1;
	if (!str_eq(x->file, y->file))
		return strcmp(x->file, y->file);
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	if (x->col != y->col)
		return x->col < y->col ? -1 : 1;
	if (x->code != y->code)
		return x->code < y->code ? -1 : 1;
	return strcmp(x->text, y->text);
}

static void finish(struct lint *l, const struct manifest *m, size_t from)
{
	drop_allowed(l, m, from);
	if (l->n)
		qsort_r(l->v, l->n, sizeof(*l->v), by_place, m->path);
}

void lint_manifest(struct lint *out, const struct manifest *m, const struct lock *l)
{
	struct lint_pass p = {.out = out, .m = m, .l = l};
	size_t n, from = out->n;
	const struct lint_rule *rules = lint_rules(&n);

	for (size_t i = 0; i < n; i++) {
		p.rule = &rules[i];
		if (p.rule->check)
			p.rule->check(&p);
		say_more(&p);
	}
	finish(out, m, from);
}

int lint_tree(struct lint *out, const struct manifest *m, const struct composed *c,
	struct pool *pool, struct err *e)
{
	struct lint_pass p = {.out = out, .m = m, .c = c, .pool = pool};
	size_t n, from = out->n;
	const struct lint_rule *rules = lint_rules(&n);

	for (size_t i = 0; i < n; i++) {
		p.rule = &rules[i];
		if (p.rule->tree && p.rule->tree(&p, e) < 0)
			return -1;
		say_more(&p);
	}
	finish(out, m, from);
	return 0;
}

/* ---- text ---- */

void lint_line(const struct lint_finding *f, struct buf *out)
{
	buf_printf(out, "%s:%d:%d: SV%03d ", f->file, f->line, f->col, f->code);
	if (*f->pointer)
		buf_printf(out, "%s: ", f->pointer);
	buf_printf(out, "%s", f->text);
	if (f->expected)
		buf_printf(out, "; expected %s", f->expected);
	buf_printf(out, "; %s [%s]\n", f->hint, lint_level_name(f->level));
}

void lint_explain(const struct lint_rule *r, struct buf *out)
{
	static const char *const by[] = {"the manifest is read", "inputs are locked",
		"the image is built", "`svrun image lint`", "`lint` tests of an image"};

	buf_printf(out, "### SV%03d %s\n\n%s; found %s%s.\n\n%s\n\nInstead: %s.\n", r->code,
		r->title, lint_level_name(r->level),
		r->by == LINT_BY_LINT || r->by == LINT_BY_TREE ? "by " : "when ",
		r->check && r->tree ? "`svrun image lint` and by `lint` tests of an image"
				    : by[r->by],
		r->why, r->todo);
}

const char *lint_below(struct lint_pass *p, const char *pointer, const char *key)
{
	auto_buf struct buf b = BUF_INIT(4 << 20);

	buf_printf(&b, "%s", pointer);
	pointer_push(&b, key);
	return arena_strdup(&p->out->arena, b.data);
}
