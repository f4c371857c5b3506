#include "builder/dpkg-order.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "builder/control.h"

enum { STATUS_MAX = 256 << 20, SCRIPT_MAX = 16 << 20, PACKAGES_MAX = 1 << 20 };

struct package {
	struct dpkg_package p;
	struct slice needs[2]; /* Pre-Depends and Depends */
	struct slice left[2];  /* what is left of them to be visited */
	bool seen;
};

struct provider {
	struct slice name;
	size_t package;
};

struct graph {
	const struct rootfs *r;
	struct arena *arena;
	struct package *v;
	size_t n, cap;
	struct provider *names; /* sorted; names of packages before what they provide */
	size_t nnames, names_cap;
	size_t *stack, depth;
	size_t *out, nout;
};

static bool is_plain(const char *s)
{
	return s && *s && s[strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789+-.")] == '\0';
}

static char *path_of(const struct dpkg_package *p, const char *what)
{
	return mem_printf("var/lib/dpkg/info/%s.%s", p->file, what);
}

static int look_at_scripts(struct graph *g, struct dpkg_package *p, struct err *e)
{
	auto_free char *preinst = path_of(p, "preinst"), *postinst = path_of(p, "postinst");
	auto_buf struct buf text = BUF_INIT(SCRIPT_MAX);
	int rc = rootfs_read(g->r, postinst, &text, e);

	if (rc < 0)
		return err_ctx(e, "/%s", postinst);
	p->preinst = rootfs_has(g->r, preinst);
	p->python =
		rc > 0 && text.len &&
		(memmem(text.data, text.len, "python", 6) || memmem(text.data, text.len, "py3", 3));
	return 0;
}

static int add_package(struct graph *g, struct slice stanza, struct err *e)
{
	const char *same = control_str(g->arena, stanza, "Multi-Arch");
	struct slice before = control_field(stanza, "Pre-Depends"),
		     needs = control_field(stanza, "Depends");
	struct dpkg_package *p;

	if (g->n == PACKAGES_MAX)
		return err_set(e, ERR_CORRUPT, "more than %d packages", PACKAGES_MAX);
	mem_grow(&g->v, &g->cap, g->n);
	g->v[g->n] = (struct package){.needs = {before, needs}, .left = {before, needs}};
	p = &g->v[g->n++].p;
	p->name = control_str(g->arena, stanza, "Package");
	p->arch = control_str(g->arena, stanza, "Architecture");
	p->essential = slice_eq(control_field(stanza, "Essential"), "yes");
	if (!is_plain(p->name) || !is_plain(p->arch))
		return err_set(e, ERR_CORRUPT, "a package with the name or architecture '%.100s'",
			p->name ? p->name : "");
	p->file = same && str_eq(same, "same") ? arena_printf(g->arena, "%s:%s", p->name, p->arch)
					       : p->name;
	return look_at_scripts(g, p, e);
}

/* The name at the beginning of "libc6:any (>= 2.36)". */
static struct slice name_of(struct slice s)
{
	size_t n = 0;

	s = slice_trim(s);
	while (n < s.n && !strchr(" \t\n(:[<", s.p[n]))
		n++;
	return (struct slice){s.p, n};
}

static void add_name(struct graph *g, struct slice name, size_t package)
{
	if (name.n == 0)
		return;
	mem_grow(&g->names, &g->names_cap, g->nnames);
	g->names[g->nnames++] = (struct provider){name, package};
}

static int by_name(const void *a, const void *b)
{
	const struct provider *x = a, *y = b;
	size_t n = x->name.n < y->name.n ? x->name.n : y->name.n;
	int c = memcmp(x->name.p, y->name.p, n);

	if (c == 0 && x->name.n != y->name.n)
		c = x->name.n < y->name.n ? -1 : 1;
	return c ? c : x->package < y->package ? -1 : x->package > y->package;
}

static int read_packages(struct graph *g, struct slice text, struct err *e)
{
	struct slice stanza, list, one, *provides = NULL;
	size_t cap = 0;
	int rc = 0;

	while (rc == 0 && control_next(&text, &stanza)) {
		mem_grow(&provides, &cap, g->n);
		provides[g->n] = control_field(stanza, "Provides");
		rc = add_package(g, stanza, e);
	}
	for (size_t i = 0; rc == 0 && i < g->n; i++) {
		add_name(g, slice_of(g->v[i].p.name), i);
		for (list = provides[i]; slice_piece(&list, ',', &one);)
			add_name(g, name_of(one), i);
	}
	free(provides);
	if (g->nnames)
		qsort(g->names, g->nnames, sizeof(*g->names), by_name);
	return rc;
}

static bool is_name(const struct graph *g, size_t i, struct slice name)
{
	return i < g->nnames && name.n == g->names[i].name.n &&
	       memcmp(name.p, g->names[i].name.p, name.n) == 0;
}

/* Where the packages of that name, and those that provide it, begin; g->nnames: there is none. */
static size_t find_name(const struct graph *g, struct slice name)
{
	struct provider key = {name, 0};
	size_t from = 0, to = g->nnames;

	while (from < to) {
		size_t mid = from + (to - from) / 2;

		if (by_name(&g->names[mid], &key) < 0)
			from = mid + 1;
		else
			to = mid;
	}
	return is_name(g, from, name) ? from : g->nnames;
}

/* ---- the order ---- */

/* The next that it needs and that nobody has come to yet; g->n: none. Of alternatives the first
 * that is there. */
static size_t next_need(const struct graph *g, struct package *p)
{
	struct slice need, one;

	for (size_t i = 0; i < 2; i++)
		while (slice_piece(&p->left[i], ',', &need)) {
			size_t found = g->nnames;

			while (found == g->nnames && slice_piece(&need, '|', &one))
				found = find_name(g, name_of(one));
			if (found < g->nnames && !g->v[g->names[found].package].seen)
				return g->names[found].package;
		}
	return g->n;
}

static void push(struct graph *g, size_t i)
{
	g->v[i].seen = true;
	g->stack[g->depth++] = i;
}

/* What i needs, and i. */
static void visit(struct graph *g, size_t i)
{
	if (g->v[i].seen)
		return;
	push(g, i);
	while (g->depth > 0) {
		size_t top = g->stack[g->depth - 1], need = next_need(g, &g->v[top]);

		if (need < g->n) {
			push(g, need);
			continue;
		}
		g->out[g->nout++] = top;
		g->depth--;
	}
}

static void make_order(struct graph *g)
{
	size_t first = find_name(g, slice_of("base-passwd"));

	g->stack = mem_array(g->n, sizeof(*g->stack));
	g->out = mem_array(g->n, sizeof(*g->out));
	if (first < g->nnames)
		visit(g, g->names[first].package);
	for (size_t i = 0; i < g->n; i++)
		if (g->v[i].p.essential)
			visit(g, i);
	for (size_t i = 0; i < g->n; i++)
		visit(g, i);
}

/* ---- what waits for Python ---- */

/* May something that it needs be such a package? All alternatives and providers count: which one
 * dpkg takes depends on versions. */
static bool needs_python(const struct graph *g, const struct package *p)
{
	struct slice needs, need, one;

	for (size_t i = 0; i < 2; i++)
		for (needs = p->needs[i]; slice_piece(&needs, ',', &need);)
			while (slice_piece(&need, '|', &one)) {
				struct slice name = name_of(one);
				size_t k = find_name(g, name);

				for (; is_name(g, k, name); k++)
					if (g->v[g->names[k].package].p.python)
						return true;
			}
	return false;
}

/* What is needed comes before, but for circles: once is nearly always enough. */
static void mark_python(struct graph *g)
{
	for (bool more = true; more;) {
		more = false;
		for (size_t i = 0; i < g->nout; i++) {
			struct package *p = &g->v[g->out[i]];

			if (p->p.python || !needs_python(g, p))
				continue;
			p->p.python = true;
			more = true;
		}
	}
}

int dpkg_order_read(struct dpkg_order *o, const struct rootfs *r, struct err *e)
{
	auto_buf struct buf status = BUF_INIT(STATUS_MAX);
	struct graph g = {.r = r, .arena = &o->arena};
	int rc;

	*o = (struct dpkg_order){0};
	rc = rootfs_read(r, "var/lib/dpkg/status", &status, e);
	if (rc > 0)
		rc = read_packages(&g, (struct slice){status.data, status.len}, e);
	if (rc == 0 && g.n) {
		make_order(&g);
		mark_python(&g);
		o->v = arena_alloc(&o->arena, g.n * sizeof(*o->v));
		while (o->n < g.nout) {
			o->v[o->n] = g.v[g.out[o->n]].p;
			o->n++;
		}
	}
	free(g.v);
	free(g.names);
	free(g.stack);
	free(g.out);
	return rc < 0 ? err_ctx(e, "/var/lib/dpkg/status") : 0;
}

void dpkg_order_fini(struct dpkg_order *o)
{
	arena_fini(&o->arena);
}
