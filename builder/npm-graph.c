#include "builder/npm-graph.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "images/glob.h"
#include "builder/npm.h"

enum {
	LOCK_BYTES = 32 << 20, /* so no key is longer */
	LOCK_ENTRIES = 20000,
	LOCK_LOOKUPS = 1 << 20, /* of names in node_modules folders: bounds edges times depth */
	SHOWN = 200,            /* bytes of a hostile text in an error */
	ROOT = 0,               /* index of the entry "" */
};

/* ---- errors ---- */

int npm_graph_bad(const struct npm_graph *g, const struct npm_pkg *p, enum err_kind kind,
	struct err *e, const char *fmt, ...)
{
	auto_buf struct buf pointer = BUF_INIT(2 * LOCK_BYTES + 64); /* escaped */
	char text[1024];
	int line, col, n;
	va_list ap;

	n = snprintf(text, sizeof(text), "%.*s: ", SHOWN, p->key);
	va_start(ap, fmt);
	vsnprintf(text + n, sizeof(text) - (size_t)n, fmt, ap);
	va_end(ap);
	for (char *c = text; *c; c++) /* no terminal codes from a lock */
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
	buf_printf(&pointer, "/packages/");
	for (const char *c = p->key; *c; c++)
		if (*c == '/' || *c == '~')
			buf_printf(&pointer, "~%c", *c == '/' ? '1' : '0');
		else
			buf_put(&pointer, c, 1);
	json_doc_locate(&g->doc, pointer.data, true, &line, &col);
	return err_set(e, kind, "%s:%d:%d: %s", g->doc.name, line, col, text);
}

int npm_graph_text(const struct npm_graph *g, const struct npm_pkg *p, const char *key,
	const char **v, struct err *e)
{
	json_t *j = json_object_get(p->j, key);

	*v = json_string_value(j);
	return j && !*v ? npm_graph_bad(g, p, ERR_CORRUPT, e, "%s: expected a string", key) : 0;
}

/* ---- entries ---- */

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct npm_pkg *)a)->key, ((const struct npm_pkg *)b)->key);
}

static struct npm_pkg *find(struct npm_graph *g, const char *key)
{
	struct npm_pkg want = {.key = key};

	return bsearch(&want, g->v, g->n, sizeof(*g->v), by_key);
}

static bool flag(const struct npm_pkg *p, const char *key)
{
	return json_is_true(json_object_get(p->j, key));
}

static int read_entry(struct npm_graph *g, struct npm_pkg *p, struct err *e)
{
	struct err why = {0};

	if (!json_is_object(p->j))
		return npm_graph_bad(g, p, ERR_CORRUPT, e, "expected an object");
	p->dev = flag(p, "dev");
	p->optional = flag(p, "optional");
	p->dev_optional = flag(p, "devOptional");
	p->bundled = flag(p, "inBundle");
	if (!p->key[0])
		return 0;
	if (!str_starts(p->key, "node_modules/"))
		return npm_graph_bad(g, p, ERR_UNSUPPORTED, e,
			"is a folder beside the lock (a workspace), no package of a registry");
	if (npm_check_path(p->key, &why) < 0)
		return npm_graph_bad(g, p, why.kind, e, "%s", why.text);
	if (npm_graph_text(g, p, "name", &p->name, e) < 0 ||
		npm_graph_text(g, p, "version", &p->version, e) < 0)
		return -1;
	if (!p->name)
		p->name = npm_path_name(p->key);
	if (!npm_is_name(p->name))
		return npm_graph_bad(
			g, p, ERR_CORRUPT, e, "'%.*s' is no package name", SHOWN, p->name);
	return 0;
}

static int read_entries(struct npm_graph *g, struct err *e)
{
	json_t *packages = json_object_get(g->doc.root, "packages"), *j;
	size_t n = json_object_size(packages);
	const char *key;

	if (!json_is_object(packages) || !json_object_get(packages, "")) {
		err_set(e, ERR_UNSUPPORTED,
			"%s: no \"packages\" with a \"\": not of version 2 or 3", g->doc.name);
		return err_hint(e, "npm install --package-lock-only --lockfile-version 3");
	}
	if (n > LOCK_ENTRIES)
		return err_set(e, ERR_CORRUPT, "%s: %zu packages, more than the limit of %d",
			g->doc.name, n, LOCK_ENTRIES);
	g->v = mem_array(n, sizeof(*g->v));
	json_object_foreach (packages, key, j)
		g->v[g->n++] = (struct npm_pkg){.key = key, .j = j};
	qsort(g->v, g->n, sizeof(*g->v), by_key);
	for (size_t i = 0; i < g->n; i++)
		if (read_entry(g, &g->v[i], e) < 0)
			return -1;
	return 0;
}

/* Cut the last package off a placement path; false when there was none. */
static bool up(char *key)
{
	char *last = NULL;

	for (char *s = key; (s = strstr(s, "node_modules/")); s++)
		last = s;
	if (!last)
		return false;
	last[last == key ? 0 : -1] = '\0';
	return true;
}

/* What `name` means to the package at p: in its own node_modules, else in those of the folders
 * above. */
static struct npm_pkg *lookup(struct npm_graph *g, const struct npm_pkg *p, const char *name)
{
	auto_free char *at = mem_strdup(p->key);

	do {
		auto_free char *key = mem_printf("%s%snode_modules/%s", at, at[0] ? "/" : "", name);
		struct npm_pkg *found = find(g, key);

		g->lookups++;
		if (found)
			return found;
	} while (up(at));
	return NULL;
}

/* ---- edges ---- */

static bool optional_peer(const struct npm_pkg *p, const char *name)
{
	json_t *meta = json_object_get(json_object_get(p->j, "peerDependenciesMeta"), name);

	return json_is_true(json_object_get(meta, "optional"));
}

static int add_edges(struct npm_graph *g, size_t from, const char *list, struct err *e)
{
	const struct npm_pkg *p = &g->v[from];
	json_t *o = json_object_get(p->j, list);
	json_t *optional = json_object_get(p->j, "optionalDependencies");
	const char *name;
	json_t *range;

	if (o && !json_is_object(o))
		return npm_graph_bad(g, p, ERR_CORRUPT, e, "%s: expected an object", list);
	json_object_foreach (o, name, range) {
		struct npm_pkg *to = npm_is_name(name) ? lookup(g, p, name) : NULL;

		if (g->lookups > LOCK_LOOKUPS)
			return npm_graph_bad(g, p, ERR_CORRUPT, e,
				"more dependencies, or deeper ones, than the limit of %d look-ups",
				LOCK_LOOKUPS);
		if (!to)
			continue;
		mem_grow(&g->edges, &g->cap, g->nedges);
		g->edges[g->nedges++] = (struct npm_edge){.from = from,
			.to = (size_t)(to - g->v),
			.optional = json_object_get(optional, name) ||
				    (str_eq(list, "peerDependencies") && optional_peer(p, name))};
	}
	return 0;
}

static int read_edges(struct npm_graph *g, struct err *e)
{
	g->first = mem_array(g->n + 1, sizeof(*g->first));
	for (size_t i = 0; i < g->n; i++) {
		g->first[i] = g->nedges;
		if (add_edges(g, i, "dependencies", e) < 0 ||
			add_edges(g, i, "optionalDependencies", e) < 0 ||
			add_edges(g, i, "peerDependencies", e) < 0)
			return -1;
		if (i == ROOT && !g->omit_dev && add_edges(g, i, "devDependencies", e) < 0)
			return -1;
	}
	g->first[g->n] = g->nedges;
	return 0;
}

/* ---- who stays ---- */

/* npm's rule for os, cpu and libc: none of the "!" ones, and one of the others if there are any. */
static bool allows(const json_t *list, const char *value)
{
	size_t n = json_is_array(list) ? json_array_size(list) : 1, negated = 0;
	bool match = false;

	for (size_t i = 0; i < n; i++) {
		const char *s =
			json_string_value(json_is_array(list) ? json_array_get(list, i) : list);

		if (!s)
			return false;
		if (n == 1 && str_eq(s, "any"))
			return true;
		if (*s != '!')
			match = match || str_eq(s, value);
		else if (negated++, str_eq(s + 1, value))
			return false;
	}
	return match || negated == n;
}

static bool fits(const struct npm_graph *g, const struct npm_pkg *p)
{
	const struct {
		const char *key, *value;
	} rules[] = {{"os", g->os}, {"cpu", g->cpu}, {"libc", g->libc}};

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		json_t *list = json_object_get(p->j, rules[i].key);

		if (list && !allows(list, rules[i].value))
			return false;
	}
	return true;
}

/* Nothing that stays is broken without it: needed by optional packages only, or else by development
 * ones that are left out. */
static bool may_go(const struct npm_graph *g, const struct npm_pkg *p)
{
	return p->optional || (p->dev_optional && g->omit_dev);
}

static bool omitted(const struct npm_graph *g, const struct npm_pkg *p)
{
	static const char prefix[] = "optional:";

	if (p->dev && g->omit_dev)
		return true;
	for (size_t i = 0; may_go(g, p) && i < g->omit->n; i++)
		if (str_starts(g->omit->v[i], prefix) &&
			glob_matches(g->omit->v[i] + sizeof(prefix) - 1, p->name))
			return true;
	return false;
}

static int refuse_platform(const struct npm_graph *g, const struct npm_pkg *p, struct err *e)
{
	json_t *wants = json_pack("{s:O*, s:O*, s:O*}", "os", json_object_get(p->j, "os"), "cpu",
		json_object_get(p->j, "cpu"), "libc", json_object_get(p->j, "libc"));
	auto_buf struct buf text = BUF_INIT(LOCK_BYTES);

	json_text(wants, true, &text);
	json_decref(wants);
	return npm_graph_bad(g, p, ERR_UNSUPPORTED, e, "%s %s is for %.*s, the image is %s %s %s",
		p->name, p->version ? p->version : "", SHOWN, text.data, g->os, g->cpu, g->libc);
}

/* What needs a package that is left out is left out, too, as far as it is optional itself. */
static void leave_out_dependents(struct npm_graph *g)
{
	auto_free size_t *count = mem_array(g->n + 1, sizeof(*count));
	auto_free size_t *by_to = mem_array(g->nedges + 1, sizeof(*by_to));
	auto_free size_t *stack = mem_array(g->n, sizeof(*stack));
	size_t depth = 0;

	for (size_t i = 0; i < g->nedges; i++) /* counting sort of the edges by their end */
		count[g->edges[i].to + 1]++;
	for (size_t i = 0; i < g->n; i++)
		count[i + 1] += count[i];
	for (size_t i = g->nedges; i-- > 0;)
		by_to[--count[g->edges[i].to + 1]] = i;
	for (size_t i = 0; i < g->n; i++)
		if (g->v[i].gone && !g->v[i].dev)
			stack[depth++] = i;
	while (depth > 0) {
		size_t to = stack[--depth];

		/* after the sort count[to + 1] is where the edges to `to` begin */
		for (size_t k = count[to + 1]; k < g->nedges && g->edges[by_to[k]].to == to; k++) {
			const struct npm_edge *d = &g->edges[by_to[k]];
			struct npm_pkg *from = &g->v[d->from];

			if (d->optional || from->gone || !may_go(g, from))
				continue;
			from->gone = true;
			stack[depth++] = d->from;
		}
	}
}

static void reach(struct npm_graph *g)
{
	auto_free size_t *stack = mem_array(g->n, sizeof(*stack));
	size_t depth = 1;

	stack[0] = ROOT;
	g->v[ROOT].reached = true;
	while (depth > 0) {
		size_t from = stack[--depth];

		for (size_t k = g->first[from]; k < g->first[from + 1]; k++) {
			struct npm_pkg *to = &g->v[g->edges[k].to];

			if (to->gone || to->reached)
				continue;
			to->reached = true;
			stack[depth++] = g->edges[k].to;
		}
	}
}

static bool inside_gone(struct npm_graph *g, const struct npm_pkg *p)
{
	auto_free char *at = mem_strdup(p->key);

	while (up(at) && at[0]) {
		const struct npm_pkg *above = find(g, at);

		if (above && above->gone)
			return true;
	}
	return false;
}

static int choose(struct npm_graph *g, struct err *e)
{
	for (size_t i = 1; i < g->n; i++) {
		struct npm_pkg *p = &g->v[i];

		p->gone = omitted(g, p);
		if (p->gone || fits(g, p))
			continue;
		if (!may_go(g, p))
			return refuse_platform(g, p, e);
		p->gone = true;
	}
	leave_out_dependents(g);
	reach(g);
	for (size_t i = 1; i < g->n; i++) {
		struct npm_pkg *p = &g->v[i];

		if ((may_go(g, p) && !p->reached) || inside_gone(g, p))
			p->gone = true;
	}
	return 0;
}

/* ---- the whole ---- */

/* How node calls the platform of the image. Its base is Debian: glibc. */
static int set_platform(struct npm_graph *g, const char *platform, struct err *e)
{
	static const struct {
		const char *platform, *cpu;
	} known[] = {{"linux/amd64", "x64"}, {"linux/arm64", "arm64"}};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (str_starts(platform, known[i].platform)) {
			g->os = "linux";
			g->cpu = known[i].cpu;
			g->libc = "glibc";
			return 0;
		}
	return err_set(e, ERR_UNSUPPORTED, "npm packages for platform %s", platform);
}

int npm_graph_init(
	struct npm_graph *g, const char *platform, const struct strings *omit, struct err *e)
{
	*g = (struct npm_graph){.omit = omit};
	for (size_t i = 0; i < omit->n; i++)
		g->omit_dev = g->omit_dev || str_eq(omit->v[i], "dev");
	return set_platform(g, platform, e);
}

void npm_graph_fini(struct npm_graph *g)
{
	free(g->v);
	free(g->edges);
	free(g->first);
	json_doc_fini(&g->doc);
	*g = (struct npm_graph){0};
}

int npm_graph_read(struct npm_graph *g, const char *name, const void *text, size_t n, struct err *e)
{
	if (json_doc_parse(&g->doc, name, text, n, e) < 0 || read_entries(g, e) < 0 ||
		read_edges(g, e) < 0)
		return -1;
	return choose(g, e);
}
