#include "builder/npm.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"

/* package-lock.json as a graph: entries are placed packages, edges are what they ask for, found the
 * way node finds them. Which packages are installed follows npm's own rules: an optional package
 * that is left out takes along what needs it, and what only it needed. */

enum {
	LOCK_BYTES = 32 << 20,
	LOCK_ENTRIES = 20000,
	LOCK_LOOKUPS = 4 << 20, /* of names in node_modules folders: bounds edges times depth */
	VERSION_BYTES = 256,
	SHOWN = 200, /* bytes of a hostile text in an error */
	ROOT = 0,    /* index of the entry "" */
};

struct pkg {
	const char *key, *name, *version;
	json_t *j;
	bool dev, optional, dev_optional, bundled;
	bool gone;    /* left out */
	bool reached; /* something that stays asks for it */
};

struct edge {
	size_t from, to;
	bool optional;
};

struct graph {
	struct json_doc doc;
	struct arena *arena; /* the lock's */
	const struct manifest *m;
	bool omit_dev;
	const char *os, *cpu, *libc;
	struct pkg *v; /* sorted by key */
	size_t n;
	struct edge *edges; /* sorted by from */
	size_t nedges, cap;
	size_t *first; /* of edges, by entry; n + 1 of them */
	size_t lookups;
};

/* ---- errors ---- */

/* FILE:LINE:COL: KEY: text, and hints like any error. */
static int bad(const struct graph *g, const struct pkg *p, enum err_kind kind, struct err *e,
	const char *fmt, ...) printf_like(5, 6);

static int bad(const struct graph *g, const struct pkg *p, enum err_kind kind, struct err *e,
	const char *fmt, ...)
{
	auto_buf struct buf pointer = BUF_INIT(8 << 20);
	char text[800];
	int line, col;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	buf_printf(&pointer, "/packages/");
	for (const char *c = p->key; *c; c++)
		if (*c == '/' || *c == '~')
			buf_printf(&pointer, "~%c", *c == '/' ? '1' : '0');
		else
			buf_put(&pointer, c, 1);
	json_doc_locate(&g->doc, pointer.data, true, &line, &col);
	return err_set(e, kind, "%s:%d:%d: %.*s: %s", g->doc.name, line, col, SHOWN, p->key, text);
}

/* A member that must be a string, or absent (NULL in *v). */
static int text_of(
	const struct graph *g, const struct pkg *p, const char *key, const char **v, struct err *e)
{
	json_t *j = json_object_get(p->j, key);

	*v = json_string_value(j);
	return j && !*v ? bad(g, p, ERR_CORRUPT, e, "%s: expected a string", key) : 0;
}

/* ---- entries ---- */

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct pkg *)a)->key, ((const struct pkg *)b)->key);
}

static struct pkg *find(struct graph *g, const char *key)
{
	struct pkg want = {.key = key};

	return bsearch(&want, g->v, g->n, sizeof(*g->v), by_key);
}

static bool flag(const struct pkg *p, const char *key)
{
	return json_is_true(json_object_get(p->j, key));
}

static int read_entry(struct graph *g, struct pkg *p, struct err *e)
{
	struct err why = {0};

	if (!json_is_object(p->j))
		return bad(g, p, ERR_CORRUPT, e, "expected an object");
	p->dev = flag(p, "dev");
	p->optional = flag(p, "optional");
	p->dev_optional = flag(p, "devOptional");
	p->bundled = flag(p, "inBundle");
	if (!p->key[0])
		return 0;
	if (!str_starts(p->key, "node_modules/"))
		return bad(g, p, ERR_UNSUPPORTED, e,
			"is a folder beside the lock (a workspace), no package of a registry");
	if (npm_check_path(p->key, &why) < 0)
		return bad(g, p, why.kind, e, "%s", why.text);
	if (text_of(g, p, "name", &p->name, e) < 0 || text_of(g, p, "version", &p->version, e) < 0)
		return -1;
	if (!p->name)
		p->name = npm_path_name(p->key);
	if (!npm_is_name(p->name))
		return bad(g, p, ERR_CORRUPT, e, "'%.*s' is no package name", SHOWN, p->name);
	return 0;
}

static int read_entries(struct graph *g, struct err *e)
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
		g->v[g->n++] = (struct pkg){.key = key, .j = j};
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
static struct pkg *lookup(struct graph *g, const struct pkg *p, const char *name)
{
	auto_free char *at = mem_strdup(p->key);

	do {
		auto_free char *key = mem_printf("%s%snode_modules/%s", at, at[0] ? "/" : "", name);
		struct pkg *found = find(g, key);

		g->lookups++;
		if (found)
			return found;
	} while (up(at));
	return NULL;
}

/* ---- edges ---- */

static bool optional_peer(const struct pkg *p, const char *name)
{
	json_t *meta = json_object_get(json_object_get(p->j, "peerDependenciesMeta"), name);

	return json_is_true(json_object_get(meta, "optional"));
}

static int add_edges(struct graph *g, size_t from, const char *list, struct err *e)
{
	const struct pkg *p = &g->v[from];
	json_t *o = json_object_get(p->j, list);
	json_t *optional = json_object_get(p->j, "optionalDependencies");
	const char *name;
	json_t *range;

	if (o && !json_is_object(o))
		return bad(g, p, ERR_CORRUPT, e, "%s: expected an object", list);
	json_object_foreach (o, name, range) {
		struct pkg *to = npm_is_name(name) ? lookup(g, p, name) : NULL;

		if (g->lookups > LOCK_LOOKUPS)
			return bad(g, p, ERR_CORRUPT, e,
				"more dependencies, or deeper ones, than the limit of %d look-ups",
				LOCK_LOOKUPS);
		if (!to)
			continue;
		mem_grow(&g->edges, &g->cap, g->nedges);
		g->edges[g->nedges++] = (struct edge){.from = from,
			.to = (size_t)(to - g->v),
			.optional = json_object_get(optional, name) ||
				    (str_eq(list, "peerDependencies") && optional_peer(p, name))};
	}
	return 0;
}

static int read_edges(struct graph *g, struct err *e)
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

static bool fits(const struct graph *g, const struct pkg *p)
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

static bool omitted(const struct graph *g, const struct pkg *p)
{
	static const char prefix[] = "optional:";
	const struct strings *omit = &g->m->node.omit;
	bool may_go = p->optional || (p->dev_optional && g->omit_dev);

	if (p->dev && g->omit_dev)
		return true;
	for (size_t i = 0; may_go && i < omit->n; i++)
		if (str_starts(omit->v[i], prefix) &&
			str_glob(omit->v[i] + sizeof(prefix) - 1, p->name))
			return true;
	return false;
}

static int refuse_platform(const struct graph *g, const struct pkg *p, struct err *e)
{
	json_t *wants = json_pack("{s:O*, s:O*, s:O*}", "os", json_object_get(p->j, "os"), "cpu",
		json_object_get(p->j, "cpu"), "libc", json_object_get(p->j, "libc"));
	auto_buf struct buf text = BUF_INIT(LOCK_BYTES);

	json_text(wants, true, &text);
	json_decref(wants);
	return bad(g, p, ERR_UNSUPPORTED, e, "%s %s is for %.*s, the image is %s %s %s", p->name,
		p->version ? p->version : "", SHOWN, text.data, g->os, g->cpu, g->libc);
}

/* What needs a package that is left out is left out, too, as far as it is optional itself. */
static void leave_out_dependents(struct graph *g)
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
			const struct edge *d = &g->edges[by_to[k]];
			struct pkg *from = &g->v[d->from];

			if (d->optional || from->gone || !from->optional)
				continue;
			from->gone = true;
			stack[depth++] = d->from;
		}
	}
}

static void reach(struct graph *g)
{
	auto_free size_t *stack = mem_array(g->n, sizeof(*stack));
	size_t depth = 1;

	stack[0] = ROOT;
	g->v[ROOT].reached = true;
	while (depth > 0) {
		size_t from = stack[--depth];

		for (size_t k = g->first[from]; k < g->first[from + 1]; k++) {
			struct pkg *to = &g->v[g->edges[k].to];

			if (to->gone || to->reached)
				continue;
			to->reached = true;
			stack[depth++] = g->edges[k].to;
		}
	}
}

static bool inside_gone(struct graph *g, const struct pkg *p)
{
	auto_free char *at = mem_strdup(p->key);

	while (up(at) && at[0]) {
		const struct pkg *above = find(g, at);

		if (above && above->gone)
			return true;
	}
	return false;
}

static int choose(struct graph *g, struct err *e)
{
	for (size_t i = 1; i < g->n; i++) {
		struct pkg *p = &g->v[i];

		p->gone = omitted(g, p);
		if (p->gone || fits(g, p))
			continue;
		if (!p->optional && !(p->dev_optional && g->omit_dev))
			return refuse_platform(g, p, e);
		p->gone = true;
	}
	leave_out_dependents(g);
	reach(g);
	for (size_t i = 1; i < g->n; i++) {
		struct pkg *p = &g->v[i];
		bool may_go = p->optional || (p->dev_optional && g->omit_dev);

		if ((may_go && !p->reached) || inside_gone(g, p))
			p->gone = true;
	}
	return 0;
}

/* ---- what the lock says of those who stay ---- */

static const char *base_name(const char *name)
{
	const char *slash = strchr(name, '/');

	return slash ? slash + 1 : name;
}

/* An address in the lock is not used, but tells where the package is from: the registry has it
 * under its own name, anything else is another package. */
static int check_origin(const struct graph *g, const struct pkg *p, struct err *e)
{
	auto_free char *tail = mem_printf("/%s-%s.tgz", base_name(p->name), p->version);
	auto_free char *address = NULL;
	const char *resolved;

	if (text_of(g, p, "resolved", &resolved, e) < 0)
		return -1;
	if (flag(p, "link") || (resolved && str_starts(resolved, "file:")))
		return bad(g, p, ERR_UNSUPPORTED, e, "is a link or a file beside the lock");
	if (!resolved)
		return 0;
	address = mem_strdup(resolved);
	address[strcspn(address, "?#")] = '\0';
	if (!str_starts(address, "https://") && !str_starts(address, "http://"))
		return bad(g, p, ERR_UNSUPPORTED, e,
			"'%.*s' is a git or another dependency, not a "
			"registry's",
			SHOWN, resolved);
	if (!strstr(address, "/-/") || !str_ends(address, tail))
		return bad(g, p, ERR_UNSUPPORTED, e,
			"'%.*s' is a tarball of its own, not a registry's", SHOWN, resolved);
	return 0;
}

static int check_version(const struct graph *g, const struct pkg *p, struct err *e)
{
	size_t n;

	if (!p->version)
		return bad(g, p, ERR_CORRUPT, e, "has no version");
	n = strspn(p->version, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz.+-");
	if (n == 0 || p->version[n] || n > VERSION_BYTES)
		return bad(g, p, ERR_CORRUPT, e, "'%.*s' is no version", SHOWN, p->version);
	return 0;
}

static int fill_integrity(
	const struct graph *g, const struct pkg *p, struct lock_npm *out, struct err *e)
{
	enum { SHA512_TEXT = 7 + 88 };
	uint8_t digest[64];
	const char *text;
	struct err why = {0};

	if (text_of(g, p, "integrity", &text, e) < 0)
		return -1;
	if (!text)
		return bad(g, p, ERR_CORRUPT, e, "has no integrity: nothing to verify it against");
	if (npm_integrity(text, digest, &why) < 0)
		return bad(g, p, why.kind, e, "%s", why.text);
	out->integrity = arena_strndup(g->arena, strstr(text, "sha512-"), SHA512_TEXT);
	return 0;
}

static int by_pair_name(const void *a, const void *b)
{
	return strcmp(((const struct pair *)a)->name, ((const struct pair *)b)->name);
}

static int fill_bin(const struct graph *g, const struct pkg *p, struct lock_npm *out, struct err *e)
{
	json_t *bin = json_object_get(p->j, "bin"), *path;
	size_t n = json_is_object(bin) ? json_object_size(bin) : 1;
	struct err why = {0};
	const char *name;

	if (!bin)
		return 0;
	if (n > NPM_BINS_MAX)
		return bad(g, p, ERR_CORRUPT, e, "bin: %zu commands, more than the limit of %d", n,
			NPM_BINS_MAX);
	out->bin.v = arena_alloc(g->arena, n * sizeof(*out->bin.v));
	if (json_is_string(bin))
		out->bin.v[out->bin.n++] =
			(struct pair){.name = base_name(p->name), .value = json_string_value(bin)};
	else if (!json_is_object(bin))
		return bad(g, p, ERR_CORRUPT, e, "bin: expected an object or a string");
	json_object_foreach (bin, name, path)
		out->bin.v[out->bin.n++] =
			(struct pair){.name = name, .value = json_string_value(path)};
	for (size_t i = 0; i < out->bin.n; i++) {
		struct pair *b = &out->bin.v[i];

		if (!b->value)
			return bad(g, p, ERR_CORRUPT, e, "bin: expected strings");
		if (npm_check_bin(b, &why) < 0)
			return bad(g, p, why.kind, e, "bin: %s", why.text);
		b->name = arena_strdup(g->arena, b->name);
		b->value = arena_strdup(g->arena, b->value);
	}
	qsort(out->bin.v, out->bin.n, sizeof(*out->bin.v), by_pair_name);
	return 0;
}

static int fill(const struct graph *g, const struct pkg *p, struct lock_npm *out, struct err *e)
{
	if (check_version(g, p, e) < 0 || check_origin(g, p, e) < 0 ||
		fill_integrity(g, p, out, e) < 0 || fill_bin(g, p, out, e) < 0)
		return -1;
	out->path = arena_strdup(g->arena, p->key);
	out->name = arena_strdup(g->arena, p->name);
	out->version = arena_strdup(g->arena, p->version);
	out->url = arena_printf(
		g->arena, "mirror:npm/%s/-/%s-%s.tgz", p->name, base_name(p->name), p->version);
	return 0;
}

/* What comes inside another package's tarball (inBundle) is installed with that one. */
static int fill_all(const struct graph *g, struct lock *l, struct err *e)
{
	l->npms = arena_alloc(g->arena, g->n * sizeof(*l->npms));
	l->nnpms = 0;
	for (size_t i = 1; i < g->n; i++)
		if (!g->v[i].gone && !g->v[i].bundled &&
			fill(g, &g->v[i], &l->npms[l->nnpms++], e) < 0)
			return -1;
	return 0;
}

/* ---- the file ---- */

static int load(struct graph *g, struct err *e)
{
	auto_fd int dir = sys_open(g->m->dir, O_RDONLY | O_DIRECTORY, 0);
	auto_fd int fd = dir < 0 ? -1 : sys_open_beneath(dir, g->m->node.lock, O_RDONLY, 0);
	auto_free char *name = mem_printf("%s/%s", g->m->dir, g->m->node.lock);
	auto_buf struct buf text = BUF_INIT(LOCK_BYTES);

	if (fd < 0)
		return err_sys(e, "open %s", name);
	if (file_read_fd(fd, name, &text, e) < 0)
		return -1;
	return json_doc_parse(&g->doc, name, text.data, text.len, e);
}

/* How node calls the platform of the image. Its base is Debian: glibc. */
static int set_platform(struct graph *g, const char *platform, struct err *e)
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

int npm_lock(struct lock *l, const struct manifest *m, struct err *e)
{
	struct graph g = {.m = m, .arena = &l->arena};
	int rc;

	for (size_t i = 0; i < m->node.omit.n; i++)
		g.omit_dev = g.omit_dev || str_eq(m->node.omit.v[i], "dev");
	rc = set_platform(&g, l->platform, e) < 0 || load(&g, e) < 0 || read_entries(&g, e) < 0 ||
			     read_edges(&g, e) < 0 || choose(&g, e) < 0 || fill_all(&g, l, e) < 0
		     ? -1
		     : 0;
	free(g.v);
	free(g.edges);
	free(g.first);
	json_doc_fini(&g.doc);
	return rc;
}
