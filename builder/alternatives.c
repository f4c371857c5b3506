#include "builder/alternatives.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "builder/script.h"

/* All of Debian has some 500 groups and 2000 choices. */
enum {
	SLAVES_MAX = 256,
	CHOICES_MAX = 256,
	GROUPS_MAX = 2048,
	ALL_CHOICES_MAX = 8192,
	DATABASE_MAX = 4 << 20
};

struct slave {
	const char *name, *link;
};

struct choice {
	const char *path;
	int priority;
	const char **targets; /* by the group's slaves; NULL: this choice has none */
};

/* One alternative, "awk". */
struct group {
	const char *name, *link;
	struct slave *slaves; /* sorted by name when the group is made */
	size_t nslaves;
	struct choice *choices;
	size_t nchoices;
};

struct groups {
	struct arena arena;
	struct group *v;
	size_t n, cap, nchoices;
	bool full; /* something did not fit */
};

/* ---- what the scripts register ---- */

static struct group *get_group(struct groups *g, const char *name, const char *link)
{
	struct group *x;

	for (size_t i = 0; i < g->n; i++)
		if (str_eq(g->v[i].name, name))
			return &g->v[i];
	if (g->n == GROUPS_MAX) {
		g->full = true;
		return NULL;
	}
	mem_grow(&g->v, &g->cap, g->n);
	x = &g->v[g->n++];
	*x = (struct group){.name = arena_strdup(&g->arena, name),
		.link = arena_strdup(&g->arena, link),
		.slaves = arena_alloc(&g->arena, SLAVES_MAX * sizeof(*x->slaves)),
		.choices = arena_alloc(&g->arena, CHOICES_MAX * sizeof(*x->choices))};
	return x;
}

static struct choice *get_choice(struct groups *g, struct group *x, const char *path)
{
	struct choice *c;

	for (size_t i = 0; i < x->nchoices; i++)
		if (str_eq(x->choices[i].path, path))
			return &x->choices[i];
	if (x->nchoices == CHOICES_MAX || g->nchoices == ALL_CHOICES_MAX) {
		g->full = true;
		return NULL;
	}
	g->nchoices++;
	c = &x->choices[x->nchoices++];
	*c = (struct choice){.path = arena_strdup(&g->arena, path),
		.targets = arena_alloc(&g->arena, SLAVES_MAX * sizeof(const char *))};
	return c;
}

static void set_slave(struct groups *g, struct group *x, struct choice *c, const char *link,
	const char *name, const char *path)
{
	size_t i = 0;

	while (i < x->nslaves && !str_eq(x->slaves[i].name, name))
		i++;
	if (i == SLAVES_MAX) {
		g->full = true;
		return;
	}
	if (i == x->nslaves)
		x->slaves[x->nslaves++] = (struct slave){.name = arena_strdup(&g->arena, name),
			.link = arena_strdup(&g->arena, link)};
	c->targets[i] = arena_strdup(&g->arena, path);
}

static bool is_link(const char *s)
{
	return s[0] == '/' && s[1] && tree_check_path(s + 1, NULL) == 0 && !strchr(s, '\n');
}

static bool is_name(const char *s)
{
	return *s && !strpbrk(s, "/ \t\n") && !str_eq(s, ".") && !str_eq(s, "..") &&
	       strlen(s) <= TREE_NAME_MAX;
}

static int parse_priority(const char *s, int *v)
{
	uint64_t n;
	bool minus = s[0] == '-';

	if (str_u64(s + minus, INT32_MAX, &n) < 0)
		return -1;
	*v = minus ? -(int)n : (int)n;
	return 0;
}

/* --install LINK NAME PATH PRIORITY [--slave LINK NAME PATH]... */
static void read_install(struct groups *g, const struct strings *w, size_t i)
{
	struct group *x;
	struct choice *c;
	int priority;

	if (w->n - i < 5 || !is_link(w->v[i + 1]) || !is_name(w->v[i + 2]) ||
		!is_link(w->v[i + 3]) || parse_priority(w->v[i + 4], &priority) < 0)
		return;
	x = get_group(g, w->v[i + 2], w->v[i + 1]);
	c = x ? get_choice(g, x, w->v[i + 3]) : NULL;
	if (!c)
		return;
	c->priority = priority;
	for (i += 5; w->n - i >= 4 && str_eq(w->v[i], "--slave"); i += 4)
		if (is_link(w->v[i + 1]) && is_name(w->v[i + 2]) && is_link(w->v[i + 3]))
			set_slave(g, x, c, w->v[i + 1], w->v[i + 2], w->v[i + 3]);
}

static int read_script(struct groups *g, const struct deb *d, struct err *e)
{
	const struct deb_file *f = deb_file(d, "postinst");
	struct script *s = f ? script_new(f->data, f->len) : NULL;
	struct command c;

	while (s && !g->full && script_next(s, &c)) {
		const char *base = strrchr(c.words.v[0], '/');

		if (c.unknown || !str_eq(base ? base + 1 : c.words.v[0], "update-alternatives"))
			continue;
		for (size_t i = 1; i < c.words.n; i++)
			if (str_eq(c.words.v[i], "--install")) {
				read_install(g, &c.words, i);
				break;
			}
	}
	if (s)
		script_free(s);
	if (!g->full)
		return 0;
	return err_set(e, ERR_CORRUPT,
		"postinst of %s: one alternative too many: more than %d groups, %d choices in all, "
		"or %d choices or slaves of one group",
		d->name, GROUPS_MAX, ALL_CHOICES_MAX, CHOICES_MAX);
}

/* ---- choosing ---- */

static bool target_exists(const struct rootfs *r, const char *path)
{
	return path && rootfs_has(r, path + 1);
}

static void drop_missing(const struct rootfs *r, struct group *x)
{
	size_t n = 0;

	for (size_t i = 0; i < x->nchoices; i++)
		if (target_exists(r, x->choices[i].path))
			x->choices[n++] = x->choices[i];
	x->nchoices = n;
}

static int by_path(const void *a, const void *b)
{
	const struct choice *x = a, *y = b;

	return strcmp(x->path, y->path);
}

static int by_group(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* Slaves by name, and the choices' targets with them. */
static void sort_slaves(struct group *x)
{
	for (size_t i = 1; i < x->nslaves; i++)
		for (size_t k = i; k > 0 && strcmp(x->slaves[k - 1].name, x->slaves[k].name) > 0;
			k--) {
			struct slave s = x->slaves[k];

			x->slaves[k] = x->slaves[k - 1];
			x->slaves[k - 1] = s;
			for (size_t c = 0; c < x->nchoices; c++) {
				const char **t = x->choices[c].targets, *old = t[k];

				t[k] = t[k - 1];
				t[k - 1] = old;
			}
		}
}

static const struct choice *best(const struct group *x)
{
	const struct choice *c = &x->choices[0];

	for (size_t i = 1; i < x->nchoices; i++)
		if (x->choices[i].priority > c->priority)
			c = &x->choices[i];
	return c;
}

static const char *wanted(const struct group *x, const struct pairs *chosen)
{
	for (size_t i = 0; i < chosen->n; i++)
		if (str_eq(chosen->v[i].name, x->name) || str_eq(chosen->v[i].name, x->link))
			return chosen->v[i].value;
	return NULL;
}

static int no_such_choice(const struct group *x, const char *want, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(1 << 20);

	for (size_t i = 0; i < x->nchoices && b.len < 800; i++)
		buf_printf(&b, "%s%.200s", i ? ", " : "", x->choices[i].path);
	return err_set(e, ERR_USAGE, "/apt/alternatives: %s: no package offers %s; there is %s",
		x->name, want, b.len ? b.data : "nothing");
}

static int choose(
	const struct group *x, const struct pairs *chosen, const struct choice **c, struct err *e)
{
	const char *want = wanted(x, chosen);

	*c = x->nchoices ? best(x) : NULL;
	if (!want)
		return 0;
	for (size_t i = 0; i < x->nchoices; i++)
		if (str_eq(x->choices[i].path, want)) {
			*c = &x->choices[i];
			return 0;
		}
	return no_such_choice(x, want, e);
}

static int check_chosen(const struct groups *g, const struct pairs *chosen, struct err *e)
{
	for (size_t i = 0; i < chosen->n; i++) {
		const char *near;
		const char **names;
		bool found = false;

		for (size_t k = 0; k < g->n; k++)
			found |= str_eq(g->v[k].name, chosen->v[i].name) ||
				 str_eq(g->v[k].link, chosen->v[i].name);
		if (found)
			continue;
		names = mem_array(g->n + 1, sizeof(*names));
		for (size_t k = 0; k < g->n; k++)
			names[k] = g->v[k].name;
		near = str_nearest(chosen->v[i].name, names);
		free(names);
		return err_set(e, ERR_USAGE, "/apt/alternatives: no package offers '%s'%s%s%s",
			chosen->v[i].name, near ? "; did you mean '" : "", near ? near : "",
			near ? "'?" : "");
	}
	return 0;
}

/* ---- making ---- */

/* LINK -> /etc/alternatives/NAME -> target */
static int make_links(const struct rootfs *r, const char *link, const char *name,
	const char *target, struct err *e)
{
	auto_free char *middle = mem_printf("/etc/alternatives/%s", name);

	if (rootfs_link(r, middle + 1, target, e) < 0)
		return -1;
	return rootfs_link(r, link + 1, middle, e);
}

static int put_line(struct buf *b, const char *text, struct err *e)
{
	return buf_add(b, text, strlen(text), e) < 0 || buf_add(b, "\n", 1, e) < 0 ? -1 : 0;
}

static int put_choice(struct buf *b, const struct choice *c, size_t nslaves, struct err *e)
{
	char priority[16];

	snprintf(priority, sizeof(priority), "%d", c->priority);
	if (put_line(b, c->path, e) < 0 || put_line(b, priority, e) < 0)
		return -1;
	for (size_t k = 0; k < nslaves; k++)
		if (put_line(b, c->targets[k] ? c->targets[k] : "", e) < 0)
			return -1;
	return 0;
}

/* Source: dpkg, utils/update-alternatives.c, alternative_save(). */
static int put_group(struct buf *b, const struct group *x, bool automatic, struct err *e)
{
	if (put_line(b, automatic ? "auto" : "manual", e) < 0 || put_line(b, x->link, e) < 0)
		return -1;
	for (size_t i = 0; i < x->nslaves; i++)
		if (put_line(b, x->slaves[i].name, e) < 0 || put_line(b, x->slaves[i].link, e) < 0)
			return -1;
	if (put_line(b, "", e) < 0)
		return -1;
	for (size_t i = 0; i < x->nchoices; i++)
		if (put_choice(b, &x->choices[i], x->nslaves, e) < 0)
			return -1;
	return put_line(b, "", e);
}

static int save(const struct rootfs *r, const struct group *x, bool automatic, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(DATABASE_MAX);
	auto_free char *path = mem_printf("var/lib/dpkg/alternatives/%s", x->name);

	if (put_group(&b, x, automatic, e) < 0)
		return err_ctx(e, "alternative %s", x->name);
	return rootfs_file(r, path, b.data, b.len, (struct owner){.mode = 0644}, e);
}

static int make_group(
	const struct rootfs *r, struct group *x, const struct pairs *chosen, struct err *e)
{
	const struct choice *c;

	drop_missing(r, x);
	qsort(x->choices, x->nchoices, sizeof(*x->choices), by_path);
	sort_slaves(x);
	if (choose(x, chosen, &c, e) < 0)
		return -1;
	if (!c)
		return 0;
	if (make_links(r, x->link, x->name, c->path, e) < 0)
		return -1;
	for (size_t i = 0; i < x->nslaves; i++)
		if (target_exists(r, c->targets[i]) &&
			make_links(r, x->slaves[i].link, x->slaves[i].name, c->targets[i], e) < 0)
			return -1;
	return save(r, x, c == best(x), e);
}

int alternatives_make(const struct rootfs *r, const struct deb *const *debs, size_t n,
	const struct pairs *chosen, struct err *e)
{
	struct groups g = {0};
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++)
		rc = read_script(&g, debs[i], e);
	if (rc == 0)
		rc = check_chosen(&g, chosen, e);
	if (g.n)
		qsort(g.v, g.n, sizeof(*g.v), by_group);
	for (size_t i = 0; i < g.n && rc == 0; i++)
		rc = make_group(r, &g.v[i], chosen, e);
	free(g.v);
	arena_fini(&g.arena);
	return rc;
}
