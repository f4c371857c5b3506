/* svrun image lint. */
#include "svrun/command.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "base/sys.h"
#include "builder/lint.h"
#include "builder/resolve.h"
#include "svrun/options.h"

enum { APPS_MAX = 10000, IMAGES_MAX = 64 /* of one manifest: its matrix times its modes */ };

static const char catalogue[] = "manifests";

struct lint_request {
	const char *format, *explain;
	bool all, strict, json;
};

/* What is found in all manifests. */
struct verdict {
	size_t manifests, counts[LINT_ERROR + 1];
	json_t *findings; /* --format json; or NULL */
};

/* ---- output ---- */

static void count(struct verdict *v, enum lint_level level)
{
	v->counts[level]++;
}

static json_t *finding_json(const struct lint_finding *f)
{
	char code[16];
	json_t *j;

	snprintf(code, sizeof(code), "SV%03d", f->code);
	j = json_pack("{s:s, s:s, s:s, s:i, s:i, s:s, s:s, s:s}", "code", code, "level",
		lint_level_name(f->level), "file", f->file, "line", f->line, "column", f->col,
		"pointer", f->pointer, "message", f->text, "hint", f->hint);
	if (f->expected)
		json_object_set_new(j, "expected", json_string(f->expected));
	return j;
}

static void put_finding(struct verdict *v, const struct lint_finding *f)
{
	auto_buf struct buf line = BUF_INIT(1 << 20);

	count(v, f->level);
	if (v->findings) {
		json_array_append_new(v->findings, finding_json(f));
		return;
	}
	lint_line(f, &line);
	fputs(line.data, stdout);
}

/* "FILE:LINE:COL: SVnnn /pointer: message" in its parts. */
static json_t *complaint_json(char *line)
{
	char *code = strstr(line, ": SV"), *col = NULL, *row = NULL, *text;
	const char *pointer = "";

	if (!code || strlen(code) < 8)
		return json_pack("{s:s, s:s}", "level", "error", "message", line);
	*code = '\0';
	code += 2;
	text = code + 5 + (code[5] == ' ');
	code[5] = '\0';
	if ((col = strrchr(line, ':')))
		*col++ = '\0';
	if ((row = strrchr(line, ':')))
		*row++ = '\0';
	if (*text == '/' && strstr(text, ": ")) {
		pointer = text;
		text = strstr(text, ": ");
		*text = '\0';
		text += 2;
	}
	return json_pack("{s:s, s:s, s:s, s:I, s:I, s:s, s:s}", "code", code, "level", "error",
		"file", line, "line", (json_int_t)(row ? strtol(row, NULL, 10) : 1), "column",
		(json_int_t)(col ? strtol(col, NULL, 10) : 1), "pointer", pointer, "message", text);
}

static void put_complaint(struct verdict *v, char *line)
{
	count(v, LINT_ERROR);
	if (v->findings)
		json_array_append_new(v->findings, complaint_json(line));
	else
		printf("%s [error]\n", line);
}

/* What the parser said, or, when it said nothing, why the manifest could not be read. */
static void put_refusal(struct verdict *v, struct complaints *c, const struct err *e)
{
	auto_free char *text = mem_strdup(c->count ? c->text.data : e->text);
	char *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		put_complaint(v, line);
}

/* ---- one manifest ---- */

/* The lock of that choice, if there is one: without it there are fewer findings. What is wrong with
 * one that is there counts. */
static bool load_lock(struct lock *l, const struct manifest *m, struct verdict *v)
{
	struct complaints none = {0};
	struct err e = {0};

	if (lock_load_of(l, m, &e) == 0)
		return true;
	if (e.kind != ERR_NOT_FOUND)
		put_refusal(v, &none, &e);
	return false;
}

/* What else a manifest describes. */
struct images {
	struct arena arena;
	struct strings entries, modes; /* of its matrix */
};

/* Copied: they outlive the manifest. */
static void copy_names(struct arena *a, struct strings *to, struct strings from)
{
	to->v = arena_alloc(a, (from.n + 1) * sizeof(*to->v));
	for (size_t i = 0; i < from.n; i++)
		to->v[to->n++] = arena_strdup(a, from.v[i]);
}

/* images: NULL, or filled. 1: the manifest was refused, which is said. */
static int lint_choice(const char *app, const struct manifest_choice *choice, struct lint *out,
	struct images *images, struct verdict *v, struct err *e)
{
	struct complaints c = {0};
	struct manifest m;
	struct lock l;
	bool locked;

	if (manifest_load(&m, app, choice, &c, e) < 0) {
		bool refused = c.count > 0;

		if (refused)
			put_refusal(v, &c, e);
		complaints_fini(&c);
		return refused ? 1 : -1;
	}
	locked = load_lock(&l, &m, v);
	lint_manifest(out, &m, locked ? &l : NULL);
	if (images) {
		copy_names(&images->arena, &images->entries, resolved_matrix(m.source));
		copy_names(&images->arena, &images->modes, resolved_modes(m.source));
	}
	if (locked)
		lock_fini(&l);
	manifest_fini(&m);
	complaints_fini(&c);
	return 0;
}

/* Each entry of the matrix in each mode, but for the first in none, which was looked at. */
static int lint_others(
	const char *app, const struct images *o, struct lint *out, struct verdict *v, struct err *e)
{
	struct manifest_choice choice = {0};
	size_t count = 0;
	int rc = 0;

	for (size_t i = 0; i == 0 || i < o->entries.n; i++)
		for (size_t k = 0; k <= o->modes.n && count++ < IMAGES_MAX && rc == 0; k++) {
			choice.matrix = o->entries.n ? o->entries.v[i] : NULL;
			choice.mode = k ? o->modes.v[k - 1] : NULL;
			if (i || k)
				rc = lint_choice(app, &choice, out, NULL, v, e);
		}
	return rc;
}

/* All images that the manifest describes: what is wrong with several of them is said once. */
static int lint_app(const char *app, struct verdict *v, struct err *e)
{
	struct images images = {0};
	struct lint found = {0};
	int rc = lint_choice(app, NULL, &found, &images, v, e);

	v->manifests++;
	if (rc == 0)
		rc = lint_others(app, &images, &found, v, e);
	for (size_t i = 0; i < found.n; i++)
		put_finding(v, &found.v[i]);
	lint_fini(&found);
	arena_fini(&images.arena);
	return rc < 0 ? -1 : 0;
}

/* ---- all manifests ---- */

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int list_apps(struct arena *a, struct strings *apps, struct err *e)
{
	DIR *d = opendir(catalogue);
	const struct dirent *de;

	if (!d) {
		err_sys(e, "open %s", catalogue);
		return err_hint(e, "run it where the folder %s/ is, or name the apps", catalogue);
	}
	apps->v = arena_alloc(a, APPS_MAX * sizeof(*apps->v));
	while ((de = readdir(d)) && apps->n < APPS_MAX) {
		const char *path = arena_printf(a, "%s/%s/manifest.json", catalogue, de->d_name);

		if (de->d_name[0] != '.' && access(path, F_OK) == 0)
			apps->v[apps->n++] = path;
	}
	closedir(d);
	qsort(apps->v, apps->n, sizeof(*apps->v), by_name);
	return 0;
}

static void print_summary(const struct verdict *v)
{
	fprintf(stderr, "%zu manifest%s: %zu error%s, %zu warning%s, %zu note%s\n", v->manifests,
		v->manifests == 1 ? "" : "s", v->counts[LINT_ERROR],
		v->counts[LINT_ERROR] == 1 ? "" : "s", v->counts[LINT_WARNING],
		v->counts[LINT_WARNING] == 1 ? "" : "s", v->counts[LINT_INFO],
		v->counts[LINT_INFO] == 1 ? "" : "s");
}

static int lint_apps(const struct lint_request *r, const struct strings *apps, struct err *e)
{
	struct verdict v = {.findings = r->json ? json_array() : NULL};
	int rc = 0;

	/* one that cannot be read does not hide the others; the first one's error is told */
	for (size_t i = 0; i < apps->n; i++)
		if (lint_app(apps->v[i], &v, rc == 0 ? e : NULL) < 0)
			rc = -1;
	if (r->json) {
		auto_buf struct buf b = BUF_INIT(256 << 20);

		json_text(v.findings, false, &b);
		fputs(b.data, stdout);
	}
	json_decref(v.findings);
	if (rc < 0)
		return -1;
	if (!r->json)
		print_summary(&v);
	return v.counts[LINT_ERROR] || (r->strict && v.counts[LINT_WARNING]);
}

/* ---- --explain ---- */

static int explain(const char *what, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(1 << 20);
	const struct lint_rule *r;
	uint64_t code;
	size_t n;

	if (str_eq(what, "all")) {
		r = lint_rules(&n);
		for (size_t i = 0; i < n; i++) {
			buf_printf(&b, "%s", i ? "\n" : "");
			lint_explain(&r[i], &b);
		}
		fputs(b.data, stdout);
		return 0;
	}
	r = strncasecmp(what, "SV", 2) == 0 && str_u64(what + 2, 999, &code) == 0
		    ? lint_rule((int)code)
		    : NULL;
	if (!r) {
		err_set(e, ERR_USAGE, "--explain: there is no code '%.40s'", what);
		return err_hint(e, "--explain all shows all of them");
	}
	lint_explain(r, &b);
	fputs(b.data, stdout);
	return 0;
}

/* ---- the command ---- */

static int check_request(struct lint_request *r, int words, struct err *e)
{
	r->json = r->format && str_eq(r->format, "json");
	if (r->format && !r->json && !str_eq(r->format, "text"))
		return err_set(
			e, ERR_USAGE, "--format: expected text or json, got '%s'", r->format);
	if (r->explain && (r->all || words))
		return err_set(e, ERR_USAGE, "--explain takes no APP");
	if (!r->explain && !r->all == !words)
		return err_set(e, ERR_USAGE, "name the apps, or --all for those in %s/", catalogue);
	return 0;
}

int cmd_image_lint(const struct command *self, int argc, char **argv, struct err *e)
{
	struct lint_request r = {0};
	const struct option_spec options[] = {
		{"all", 0, OPTION_FLAG, NULL, "all apps in manifests/", &r.all},
		{"format", 0, OPTION_STRING, "FORMAT", "text or json", &r.format},
		{"strict", 0, OPTION_FLAG, NULL, "warnings count as errors", &r.strict},
		{"explain", 0, OPTION_STRING, "SVnnn", "what a code means (all: of every code)",
			&r.explain},
		{0},
	};
	struct strings apps = {0};
	struct arena names = {0};
	int rc, n = options_parse(self, options, argc, argv, false, e);

	if (n < 0 || check_request(&r, argc - n, e) < 0)
		return -1;
	if (r.explain)
		return explain(r.explain, e);
	apps.v = arena_alloc(&names, (size_t)(argc - n + 1) * sizeof(*apps.v));
	for (int i = n; i < argc; i++)
		apps.v[apps.n++] = argv[i];
	rc = r.all ? list_apps(&names, &apps, e) : 0;
	if (rc == 0)
		rc = lint_apps(&r, &apps, e);
	arena_fini(&names);
	return rc;
}
