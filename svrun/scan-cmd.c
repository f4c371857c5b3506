/* svrun image scan, and the scan of a build. */
#include "svrun/scan.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "builder/bill.h"
#include "builder/resolve.h"
#include "builder/scan.h"
#include "svrun/command.h"
#include "svrun/enter.h"
#include "svrun/options.h"
#include "svrun/output.h"

enum { SHOWN_MAX = 20 };

static int no_data(const struct config *c, struct err *e)
{
	err_set(e, ERR_USAGE, "there are no data about vulnerabilities");
	return err_hint(e,
		"name their folder: \"vulnerabilities\": \"/DIR\" in %s, or --db DIR of svrun "
		"image "
		"scan; what goes there: docs/scan.md",
		c->path);
}

/* 1 with the image's bill; 0: it was not built here; -1. */
static int load_bill(struct bill *b, struct store *s, const struct digest *manifest,
	const char *ref, struct err *e)
{
	struct err fault = {0};

	if (bill_load(b, s, manifest, ref, &fault) == 0)
		return 1;
	if (fault.kind == ERR_NOT_FOUND)
		return 0;
	if (e)
		*e = fault;
	return -1;
}

/* ---- of a build ---- */

int scan_build_check(const struct app *a, struct err *e)
{
	if (!a->m.build.scan || a->config.vulnerabilities)
		return 0;
	no_data(&a->config, e);
	return manifest_at(&a->m, "/build/scan", e);
}

static void tell_allow(const struct app *a, const struct scan_result *r, struct progress *p)
{
	for (size_t i = 0; i < r->nstates; i++) {
		const struct scan_allow *x = &a->m.build.allow[i];
		auto_free char *pointer = mem_printf("/build/scan/allow/%zu", i);
		const char *file = a->m.path;
		int line = 0, col = 0;

		if (r->states[i] == SCAN_USED)
			continue;
		resolved_place(a->m.source, pointer, false, &file, &line, &col);
		progress_note(p, "%s:%d:%d: %s: %s%s%s; %s [warning]", file, line, col, pointer,
			x->id,
			r->states[i] == SCAN_EXPIRED ? " was allowed until "
						     : " is not in the image",
			r->states[i] == SCAN_EXPIRED ? x->until : "",
			r->states[i] == SCAN_EXPIRED ? "look at it again, and set another day"
						     : "take the entry out");
	}
}

static void tell(const struct app *a, const struct scan_result *r, struct progress *p)
{
	size_t shown = 0;

	for (size_t i = 0; i < r->n && shown < SHOWN_MAX; i++) {
		auto_buf struct buf line = BUF_INIT(1 << 20);

		if (!r->v[i].fails)
			continue;
		scan_line(&r->v[i], &line);
		progress_note(p, "%.*s", (int)line.len - 1, line.data);
		shown++;
	}
	if (r->failing > shown)
		progress_note(p, "and %zu more", r->failing - shown);
	tell_allow(a, r, p);
	progress_note(p, "scan: %zu packages, %zu vulnerabilities, %zu allowed", r->packages.n,
		r->n, r->allowed);
}

static int judge(const struct app *a, const struct scan_result *r, struct err *e)
{
	auto_free char *failing = scan_failing(r);
	const struct scan_finding *f = NULL;

	for (size_t i = 0; !f && i < r->n; i++)
		f = r->v[i].fails ? &r->v[i] : NULL;
	if (!f)
		return 0;
	err_set(e, ERR_DENIED, "%s has vulnerabilities: %s; the worst is %s in %s %s", a->m.name,
		failing, f->id, f->of->source, f->of->source_version);
	return err_hint(e, "update what has a fix (svrun image lock --update), or let it through "
			   "for a time in "
			   "/build/scan/allow");
}

int scan_build(const struct app *a, struct store *s, const struct digest *manifest,
	struct progress *p, json_t **report, struct err *e)
{
	struct scan_rules rules = scan_rules_of(&a->m.build);
	struct scan_result r;
	struct bill b;
	int rc = load_bill(&b, s, manifest, a->m.name, e), with_bill = rc;

	*report = NULL;
	if (rc < 0)
		return -1;
	progress_begin(p, "scan", 0);
	rc = scan_image(
		&r, s, manifest, with_bill ? &b : NULL, a->config.vulnerabilities, &rules, e);
	progress_end(p);
	if (with_bill)
		bill_fini(&b);
	if (rc < 0)
		return err_ctx(e, "scan");
	tell(a, &r, p);
	*report = scan_json(&r, &rules);
	rc = judge(a, &r, e);
	scan_result_fini(&r);
	return rc;
}

/* ---- svrun image scan ---- */

enum scan_format { SCAN_TABLE, SCAN_JSON, SCAN_SARIF };

struct request {
	const char *db, *ref;
	enum scan_format format;
	bool no_allow;
	struct scan_rules rules;
	struct arena arena; /* of the rules */
};

static int parse_format(const char *text, enum scan_format *f, struct err *e)
{
	static const char *const names[] = {"table", "json", "sarif"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (str_eq(text, names[i])) {
			*f = (enum scan_format)i;
			return 0;
		}
	return err_set(e, ERR_USAGE, "--format: expected table, json or sarif, got '%.40s'", text);
}

/* What the image's own manifest lets through; it was checked when it was built. */
static void take_allow(struct request *r, const struct bill *b)
{
	auto_json json_t *doc = json_parse(b->document, strlen(b->document), NULL);
	const json_t *list = json_object_get(
			     json_object_get(json_object_get(doc, "build"), "scan"), "allow"),
		     *o;
	struct scan_allow *v = arena_alloc(&r->arena, json_array_size(list) * sizeof(*v));
	size_t i;

	r->rules.allow = v;
	json_array_foreach (list, i, o) {
		const char *id = json_string_value(json_object_get(o, "id")),
			   *until = json_string_value(json_object_get(o, "until")),
			   *reason = json_string_value(json_object_get(o, "reason"));

		if (id && until && reason)
			v[r->rules.nallow++] = (struct scan_allow){arena_strdup(&r->arena, id),
				arena_strdup(&r->arena, until), arena_strdup(&r->arena, reason)};
	}
}

/* 0, or the exit status 1 when something fails. */
static int print(const struct request *r, const struct scan_result *x, struct err *e)
{
	auto_buf struct buf out = BUF_INIT(1 << 30);
	auto_json json_t *doc = NULL;

	if (r->format == SCAN_TABLE) {
		scan_table(x, &out);
		for (size_t i = 0; i < x->nstates; i++)
			if (x->states[i] != SCAN_USED)
				buf_printf(&out, "/build/scan/allow/%zu: %s %s\n", i,
					r->rules.allow[i].id,
					x->states[i] == SCAN_EXPIRED ? "is allowed no longer"
								     : "is not in the image");
	} else {
		doc = r->format == SCAN_JSON ? scan_json(x, &r->rules) : scan_sarif(x, r->ref);
		if (!doc)
			return err_set(e, ERR_CORRUPT, "a finding that is no JSON");
		json_text(doc, false, &out);
	}
	if (fwrite(out.data, 1, out.len, stdout) != out.len)
		return err_sys(e, "write stdout");
	return x->failing > 0;
}

static int scan_in(struct request *r, struct store *s, const char *db, struct err *e)
{
	struct scan_result x;
	struct digest d;
	struct bill b;
	int rc, with_bill;

	if (store_resolve(s, r->ref, &d, e) < 0)
		return -1;
	with_bill = load_bill(&b, s, &d, r->ref, e);
	if (with_bill < 0)
		return -1;
	if (with_bill && !r->no_allow)
		take_allow(r, &b);
	rc = scan_image(&x, s, &d, with_bill ? &b : NULL, db, &r->rules, e);
	if (with_bill)
		bill_fini(&b);
	if (rc < 0)
		return err_ctx(e, "scan of %s", r->ref);
	rc = print(r, &x, e);
	scan_result_fini(&x);
	return rc;
}

static int scan(struct request *r, struct err *e)
{
	struct config c;
	struct store s;
	int rc;

	if (config_load(&c, e) < 0)
		return -1;
	if (!r->db && !c.vulnerabilities)
		rc = no_data(&c, e);
	else
		rc = store_enter_at(&s, &c, false, e);
	if (rc == 0) {
		rc = scan_in(r, &s, r->db ? r->db : c.vulnerabilities, e);
		store_close(&s);
	}
	config_fini(&c);
	return rc;
}

int cmd_image_scan(const struct command *self, int argc, char **argv, struct err *e)
{
	struct request r = {0};
	const char *format = "table", *level = NULL;
	const struct option_spec options[] = {
		{"db", 0, OPTION_STRING, "DIR", "the data, instead of those of the site", &r.db},
		{"format", 0, OPTION_STRING, "FORMAT", "table, json or sarif", &format},
		{"fail-on", 0, OPTION_STRING, "LEVEL",
			"exit status 1 when something is so bad: low, medium, high or critical",
			&level},
		{"ignore-unfixed", 0, OPTION_FLAG, NULL, "but not for what has no fix",
			&r.rules.ignore_unfixed},
		{"no-allow", 0, OPTION_FLAG, NULL, "whatever the image's manifest lets through",
			&r.no_allow},
		{0},
	};
	int rc, n = options_parse(self, options, argc, argv, false, e);

	if (n < 0 || parse_format(format, &r.format, e) < 0)
		return -1;
	if (level && scan_level_parse(level, &r.rules.fail_on, e) < 0)
		return err_ctx(e, "--fail-on");
	r.ref = argv[n];
	rc = scan(&r, e);
	arena_fini(&r.arena);
	return rc;
}
