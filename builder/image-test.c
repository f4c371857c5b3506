#include "builder/image-test.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/str.h"
#include "builder/elf-needs.h"
#include "builder/image-config.h"
#include "builder/python-name.h"
#include "builder/python.h"
#include "images/glob.h"

enum { SHOWN = 20 }; /* findings that a text lists */

/* ---- results ---- */

static void set_result(struct test_result *r, enum test_verdict v, const char *fmt, va_list ap)
	__attribute__((format(printf, 3, 0)));

static void set_result(struct test_result *r, enum test_verdict v, const char *fmt, va_list ap)
{
	char text[4096];

	if (r->verdict == TEST_FAILED && r->text)
		return;
	vsnprintf(text, sizeof(text), fmt, ap);
	str_plain(text, "\n\t");
	free(r->text);
	r->text = mem_strdup(text);
	r->verdict = v;
}

void test_fail(struct test_result *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	set_result(r, TEST_FAILED, fmt, ap);
	va_end(ap);
}

void test_skip(struct test_result *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	set_result(r, TEST_SKIPPED, fmt, ap);
	va_end(ap);
}

void test_result_fini(struct test_result *r)
{
	free(r->text);
	free(r->log);
	r->text = r->log = NULL;
}

const char *test_stage_name(enum test_stage s)
{
	static const char *const names[] = {"plan", "image", "run"};

	return names[s];
}

const char *test_type_name(enum test_type t)
{
	static const char *const names[] = {
		[TEST_FILE] = "file",
		[TEST_METADATA] = "metadata",
		[TEST_LINT] = "lint",
		[TEST_ELF] = "elf",
		[TEST_PYTHON_GUARD] = "python-guard",
		[TEST_EXEC] = "exec",
		[TEST_HTTP] = "http",
		[TEST_PORT] = "port",
		[TEST_SIZE] = "size",
	};

	return names[t];
}

const char *test_verdict_name(enum test_verdict v)
{
	static const char *const names[] = {"passed", "failed", "skipped"};

	return names[v];
}

/* ---- a list of findings in one text ---- */

struct findings {
	struct buf text;
	size_t n;
};

static void add_finding(struct findings *f, const char *a, const char *b, const char *c)
{
	if (f->n++ < SHOWN)
		buf_printf(&f->text, "\n%.1000s%.200s%.1000s", a, b, c);
}

static void report_findings(struct test_result *r, struct findings *f, const char *what)
{
	if (f->n)
		test_fail(r, "%zu %s:%s%s", f->n, what, f->text.data, f->n > SHOWN ? "\n..." : "");
	buf_fini(&f->text);
}

static bool holds(const struct strings *s, const char *what)
{
	for (size_t i = 0; i < s->n; i++)
		if (str_eq(s->v[i], what))
			return true;
	return false;
}

/* ---- lint ---- */

static void add_lint(struct findings *f, const struct manifest_test *t, const struct lint *found)
{
	for (size_t i = 0; i < found->n; i++) {
		const struct lint_finding *x = &found->v[i];
		char code[16];

		snprintf(code, sizeof(code), "SV%03d", x->code);
		if (t->rules.n ? holds(&t->rules, code) : x->level == LINT_ERROR)
			add_finding(f, code, ": ", x->text ? x->text : "");
	}
}

/* The tree with the origins that the build saw: the bill has them. */
static void rebuild_origins(struct composed *c, const struct tested *x)
{
	char path[TREE_PATH_MAX + 1];

	c->tree = x->tree;
	c->norigins = x->bill->nitems;
	c->origins = mem_array(c->norigins + 1, sizeof(*c->origins));
	for (size_t i = 0; i < c->norigins; i++) {
		const struct bill_item *item = &x->bill->items[i];

		c->origins[i] = (struct origin){.kind = item->kind,
			.name = item->name,
			.source = item->source,
			.entry = SIZE_MAX};
	}
	for (struct node *n = tree_root(c->tree); n; n = tree_next(n)) {
		const struct bill_file *f = bill_find(x->bill, node_path(n, path));

		n->origin = f && f->item < c->norigins ? f->item : 0;
	}
}

static int lint_image(struct lint *out, const struct tested *x, struct err *e)
{
	struct composed c = {0};
	int rc;

	rebuild_origins(&c, x);
	rc = lint_tree(out, x->m, &c, x->pool, e);
	free(c.origins);
	return rc;
}

static int test_lint(struct test_result *r, const struct tested *x, struct err *e)
{
	struct findings f = {.text = BUF_INIT(1 << 20)};
	struct lint found = {0}, tree = {0};
	int rc = 0;

	lint_manifest(&found, x->m, x->l);
	add_lint(&f, r->test, &found);
	lint_fini(&found);
	if (x->tree && x->bill) {
		rc = lint_image(&tree, x, e);
		if (rc == 0)
			add_lint(&f, r->test, &tree);
		lint_fini(&tree);
	}
	report_findings(r, &f, "findings");
	return rc;
}

/* ---- elf ---- */

static const char *library_path(const struct manifest *m)
{
	for (size_t i = 0; i < m->env.n; i++)
		if (str_eq(m->env.v[i].name, "LD_LIBRARY_PATH"))
			return m->env.v[i].value;
	return NULL;
}

static bool is_allowed(const struct strings *globs, const char *library)
{
	for (size_t i = 0; i < globs->n; i++)
		if (glob_matches(globs->v[i], library))
			return true;
	return false;
}

static bool is_unresolved(const struct elf_unresolved *v, size_t n, const char *library)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(v[i].library, library))
			return true;
	return false;
}

static int test_elf(struct test_result *r, const struct tested *x, struct err *e)
{
	struct rootfs fs = {.tree = x->tree, .pool = x->pool};
	const struct test_expect *want = &r->test->expect;
	struct findings f = {.text = BUF_INIT(1 << 20)};
	struct arena a = {0};
	struct elf_unresolved *v;
	size_t n;
	int rc = elf_unresolved(&fs, &r->test->paths, library_path(x->m), &a, &v, &n, e);

	for (size_t i = 0; rc == 0 && i < n; i++)
		if (!is_allowed(&want->allow_unresolved, v[i].library) &&
			!holds(&want->unresolved, v[i].library))
			add_finding(&f, v[i].path, " needs ", v[i].library);
	report_findings(r, &f, "libraries are not found");
	for (size_t i = 0; rc == 0 && i < want->unresolved.n; i++)
		if (!is_unresolved(v, n, want->unresolved.v[i]))
			test_fail(r, "%s was expected to be unresolved, and nothing lacks it",
				want->unresolved.v[i]);
	arena_fini(&a);
	return rc;
}

/* ---- python-guard ---- */

static void guard_lock(struct test_result *r, const struct manifest_python *p, const struct lock *l)
{
	for (size_t i = 0; i < p->guard.n; i++) {
		const char *name = p->guard.v[i].name, *version = NULL;

		for (size_t k = 0; l && k < l->nwheels; k++)
			if (python_same_name(l->wheels[k].name, name))
				version = l->wheels[k].version;
		if (!version)
			test_fail(r, "%s: no wheel of the lock is it; the stage image can tell",
				name);
		else if (python_version_fits(version, p->guard.v[i].value) != 1)
			test_fail(r, "%s is locked at %s, expected %s", name, version,
				p->guard.v[i].value);
	}
}

static int test_guard(struct test_result *r, const struct tested *x, struct err *e)
{
	struct rootfs fs = {.tree = x->tree, .pool = x->pool};
	struct err fault = {0};

	if (x->m->python.guard.n == 0) {
		test_fail(r, "the manifest has no python.guard");
		return 0;
	}
	if (!x->tree) {
		guard_lock(r, &x->m->python, x->l);
		return 0;
	}
	if (python_guard(&fs, &x->m->python, &fault) == 0)
		return 0;
	if (fault.kind == ERR_SYSTEM) {
		if (e)
			*e = fault;
		return -1;
	}
	test_fail(r, "%s", fault.text);
	return 0;
}

/* ---- one of them ---- */

static int metadata(struct test_result *r, const struct tested *x, struct err *e)
{
	auto_json json_t *planned = x->image ? NULL : image_config(x->m);

	(void)e;
	test_metadata(r, planned ? planned : x->image->config);
	return 0;
}

int image_test(struct test_result *r, const struct tested *x, struct err *e)
{
	static const struct {
		int (*run)(struct test_result *r, const struct tested *x, struct err *e);
		bool planned; /* the manifest and the lock can tell, too */
	} types[] = {
		[TEST_FILE] = {test_file, false},
		[TEST_METADATA] = {metadata, true},
		[TEST_LINT] = {test_lint, true},
		[TEST_ELF] = {test_elf, false},
		[TEST_PYTHON_GUARD] = {test_guard, true},
		[TEST_EXEC] = {0},
		[TEST_HTTP] = {0},
		[TEST_PORT] = {0},
		[TEST_SIZE] = {test_size, true},
	};
	enum test_type t = r->test->type;

	r->verdict = TEST_PASSED;
	if (!types[t].run)
		test_fail(r, "a test of type %s runs: its stage is run, not %s", test_type_name(t),
			test_stage_name(r->test->stage));
	else if (!x->tree && !types[t].planned)
		test_fail(r, "a test of type %s needs the image: its stage is image, not plan",
			test_type_name(t));
	else
		return types[t].run(r, x, e);
	return 0;
}
