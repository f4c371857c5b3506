#include "builder/python.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "builder/marker.h"
#include "builder/pep440.h"
#include "builder/python-base.h"
#include "builder/python-scheme.h"
#include "builder/wheel-meta.h"

enum { VERSION_SHOWN = 100, LIST_MAX = 1200 };

/* ---- what is there ---- */

/* Only what lies where an interpreter looks: packages that others carry inside are not installed.
 */
static bool is_place(const struct node *n)
{
	const struct node *dir = n->parent;

	return dir && (str_eq(dir->name, "site-packages") || str_eq(dir->name, "dist-packages"));
}

static bool is_folder(const struct node *n)
{
	return n->a.type == NODE_DIR;
}

/* Folder or file with the metadata, or NULL: "x-1.dist-info/METADATA", "x-1.egg-info/PKG-INFO",
 * "x-1.egg-info" (a file), "x-1.egg/EGG-INFO/PKG-INFO". */
static const char *metadata_name(const struct node *n)
{
	if (!is_place(n))
		return NULL;
	if (str_ends(n->name, ".dist-info"))
		return is_folder(n) ? "/METADATA" : NULL;
	if (str_ends(n->name, ".egg-info"))
		return is_folder(n) ? "/PKG-INFO" : "";
	return str_ends(n->name, ".egg") && is_folder(n) ? "/EGG-INFO/PKG-INFO" : NULL;
}

static bool is_shown(const char *version)
{
	for (const char *c = version; *c; c++)
		if ((unsigned char)*c <= ' ' || (unsigned char)*c >= 0x7f)
			return false;
	return *version && strlen(version) <= VERSION_SHOWN;
}

/* "x-1.0-py3.11.egg-info", for what has no metadata that can be read. */
static bool from_folder(struct arena *a, const char *folder, struct python_dist *d)
{
	size_t n = (size_t)(strrchr(folder, '.') - folder), dash = 0;
	const char *version;

	while (dash < n && folder[dash] != '-')
		dash++;
	d->name = python_name_normal(a, folder, dash);
	version = dash < n ? arena_strndup(a, folder + dash + 1, n - dash - 1) : "";
	d->version = arena_strndup(a, version, strcspn(version, "-"));
	return d->name && is_shown(d->version);
}

static bool from_metadata(struct arena *a, const struct buf *text, struct python_dist *d)
{
	const char *name = metadata_field(a, text->data, text->len, "Name", NULL);
	const char *version = metadata_field(a, text->data, text->len, "Version", NULL);

	d->name = name ? python_name_normal(a, name, strlen(name)) : NULL;
	d->version = version;
	return d->name && version && is_shown(version);
}

static bool read_dist(
	const struct rootfs *r, const struct node *n, struct arena *a, struct python_dist *d)
{
	auto_buf struct buf text = BUF_INIT(METADATA_MAX);
	char path[TREE_PATH_MAX + 1];
	auto_free char *file = mem_printf("%s%s", node_path(n, path), metadata_name(n));

	d->path = arena_strdup(a, path);
	if (python_read(r, file, &text, NULL) == 1 && text.len && from_metadata(a, &text, d))
		return true;
	return from_folder(a, n->name, d);
}

static int by_name(const void *a, const void *b)
{
	const struct python_dist *x = a, *y = b;
	int c = strcmp(x->name, y->name);

	return c ? c : strcmp(x->path, y->path);
}

struct python_dist *python_installed(const struct rootfs *r, struct arena *a, size_t *n)
{
	struct python_dist *v, *found = NULL;
	size_t cap = 0;

	*n = 0;
	for (struct node *k = tree_root(r->tree); k; k = tree_next(k)) {
		if (!metadata_name(k))
			continue;
		mem_grow(&found, &cap, *n);
		if (read_dist(r, k, a, &found[*n]))
			(*n)++;
	}
	if (*n)
		qsort(found, *n, sizeof(*found), by_name);
	v = arena_alloc(a, (*n + 1) * sizeof(*v));
	if (*n)
		memcpy(v, found, *n * sizeof(*v));
	free(found);
	return v;
}

/* ---- the guard ---- */

int python_version_fits(const char *version, const char *specifier)
{
	auto_free char *equal = NULL;

	specifier += strspn(specifier, " ");
	if (str_eq(specifier, "compatible"))
		return 1;
	if (*specifier && !strchr("<>=!~,", *specifier)) /* "1.13.*" is "==1.13.*" */
		equal = mem_printf("==%s", specifier);
	return pep440_fits(version, equal ? equal : specifier);
}

struct guard {
	const struct rootfs *r;
	const struct manifest_python *p;
	struct arena *a;
	const struct python_dist *v;
	size_t n, broken;
	struct buf text;
	const char *extra; /* only what it adds; NULL: all that is needed without any */
};

static void complain(struct guard *g, const char *line)
{
	if (g->broken++ && g->text.len + 2 < LIST_MAX)
		buf_put(&g->text, "; ", 2);
	if (g->text.len + strlen(line) < LIST_MAX)
		buf_put(&g->text, line, strlen(line));
}

static bool has_fitting(
	const struct guard *g, const char *name, const char *specifiers, const char **found)
{
	*found = "nothing";
	for (size_t i = 0; i < g->n; i++) {
		if (!str_eq(g->v[i].name, name))
			continue;
		*found = g->v[i].version;
		if (pep440_fits(g->v[i].version, specifiers) == 1)
			return true;
	}
	return false;
}

/* 1, 0, -1. What is needed without the extra that is looked at is the guard's business. */
static int is_needed(
	const struct guard *g, const char *marker, const struct marker_env *env, struct err *e)
{
	struct marker_env with = *env;
	int rc = marker ? marker_holds(marker, env, e) : 1;

	if (!g->extra || rc != 0)
		return g->extra && rc > 0 ? 0 : rc;
	with.extra = g->extra;
	return marker_holds(marker, &with, e);
}

static void check_requirement(struct guard *g, const struct python_dist *d, const char *text,
	const struct marker_env *env)
{
	struct requirement q;
	const char *found;
	struct err e = {0};
	int rc;

	if (requirement_parse(&q, g->a, text, &e) < 0) {
		complain(g, arena_printf(g->a, "%s %s: %.300s", d->name, d->version, e.text));
		return;
	}
	rc = is_needed(g, q.marker, env, &e);
	if (rc < 0)
		complain(g, arena_printf(g->a, "%s %s: %.300s", d->name, d->version, e.text));
	if (rc == 1 && !has_fitting(g, q.name, q.specifiers, &found))
		complain(g,
			arena_printf(g->a, "%s %s%s%s%s needs %s%.200s, and %s is installed",
				d->name, d->version, g->extra ? " [" : "", g->extra ? g->extra : "",
				g->extra ? "]" : "", q.name, q.specifiers, found));
}

/* "compatible": what a distribution says that it needs is there. */
static void check_requirements(struct guard *g, const struct python_dist *d)
{
	auto_buf struct buf text = BUF_INIT(METADATA_MAX);
	bool folder = str_ends(d->path, ".dist-info");
	auto_free char *file = mem_printf("%s%s", d->path, folder ? "/METADATA" : "/PKG-INFO");
	const struct node *python = tree_resolve(g->r->tree, g->p->interpreter + 1);
	struct marker_env env = {.extra = ""};
	const char *line;
	size_t from = 0;

#if defined(__aarch64__)
	env.machine = "aarch64";
#else
	env.machine = "x86_64";
#endif
	env.python_version = python ? python_version_of_path(g->a, python->name) : NULL;
	if (python_read(g->r, file, &text, NULL) != 1)
		return;
	while (from < text.len &&
		(line = metadata_field(g->a, text.data, text.len, "Requires-Dist", &from)))
		check_requirement(g, d, line, &env);
}

static void check_pair(struct guard *g, const struct pair *want)
{
	bool compatible = str_eq(want->value, "compatible");
	size_t found = 0;

	for (size_t i = 0; i < g->n; i++) {
		const struct python_dist *d = &g->v[i];

		if (!python_same_name(d->name, want->name))
			continue;
		found++;
		if (compatible)
			check_requirements(g, d);
		else if (python_version_fits(d->version, want->value) != 1)
			complain(g, arena_printf(g->a, "%s is %s (/%.200s), not %s", d->name,
					    d->version, d->path, want->value));
	}
	if (!found)
		complain(g, arena_printf(g->a, "%s is not installed", want->name));
}

int python_guard(const struct rootfs *r, const struct manifest_python *p, struct err *e)
{
	struct arena a = {0};
	struct guard g = {.r = r, .p = p, .a = &a, .text = BUF_INIT(LIST_MAX + 1)};
	int rc = 0;

	if (p->guard.n == 0)
		return 0;
	g.v = python_installed(r, &a, &g.n);
	for (size_t i = 0; i < p->guard.n; i++)
		check_pair(&g, &p->guard.v[i]);
	if (g.broken) {
		err_set(e, ERR_USAGE, "SV050: /python/guard: %s", g.text.data ? g.text.data : "");
		rc = err_hint(e, "lock versions that fit, or change what the guard asks for");
	}
	buf_fini(&g.text);
	arena_fini(&a);
	return rc;
}

int python_extras(const struct rootfs *r, const struct manifest_python *p, const struct lock *l,
	struct err *e)
{
	struct arena a = {0};
	struct guard g = {.r = r, .p = p, .a = &a, .text = BUF_INIT(LIST_MAX + 1)};
	int rc = 0;

	for (size_t i = 0; i < l->nwheels; i++)
		for (size_t x = 0; x < l->wheels[i].extras.n; x++) {
			if (!g.v)
				g.v = python_installed(r, &a, &g.n);
			g.extra = l->wheels[i].extras.v[x];
			for (size_t k = 0; k < g.n; k++)
				if (str_eq(g.v[k].name, l->wheels[i].name))
					check_requirements(&g, &g.v[k]);
		}
	if (g.broken) {
		err_set(e, ERR_USAGE, "SV053: %s", g.text.data ? g.text.data : "");
		rc = err_hint(e, "pin what the extra needs beside it, as pip-compile does");
	}
	buf_fini(&g.text);
	arena_fini(&a);
	return rc;
}
