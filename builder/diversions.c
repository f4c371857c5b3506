#include "builder/diversions.h"

#include <string.h>

#include "base/str.h"
#include "builder/script.h"

enum { DIVERSIONS_MAX = 1024 }; /* each is a search in all packages */

/* ---- the command ---- */

/* Its value when word i is --NAME=VALUE, or --NAME and a word behind it (then i is that one). */
static const char *option(const struct strings *w, size_t *i, const char *name)
{
	size_t n = strlen(name);

	if (strncmp(w->v[*i], name, n) != 0)
		return NULL;
	if (w->v[*i][n] == '=')
		return w->v[*i] + n + 1;
	return w->v[*i][n] == '\0' && *i + 1 < w->n ? w->v[++*i] : NULL;
}

/* An absolute path that fits a line of dpkg's database. */
static bool is_path(const char *s)
{
	return s[0] == '/' && !strchr(s, '\n') && tree_check_path(s + 1, NULL) == 0;
}

/* "dpkg-divert [--package P] [--add] [--rename] [--divert TO] FROM". Another action: false. */
static bool parse(const struct strings *w, struct diversion *d, struct arena *a)
{
	static const char *const plain[] = {
		"--add", "--rename", "--no-rename", "--quiet", "--test", "--"};
	const char *to = NULL, *from = NULL, *v;

	for (size_t i = 1; i < w->n; i++) {
		bool known = false;

		for (size_t k = 0; k < sizeof(plain) / sizeof(plain[0]); k++)
			known = known || str_eq(w->v[i], plain[k]);
		if (known)
			continue;
		if ((v = option(w, &i, "--package")))
			d->by = arena_strdup(a, v);
		else if ((v = option(w, &i, "--divert")))
			to = v;
		else if (w->v[i][0] == '-' || from)
			return false;
		else
			from = w->v[i];
	}
	if (!from || !is_path(from))
		return false;
	to = to ? to : arena_printf(a, "%s.distrib", from);
	if (!is_path(to) || str_eq(from, to))
		return false;
	d->from = arena_strdup(a, from + 1);
	d->to = arena_strdup(a, to + 1);
	return true;
}

/* ---- who ships it ---- */

/* With merged /usr, /bin/x and /usr/bin/x are one. */
static const char *short_of(const char *path)
{
	static const char *const merged[] = {"usr/bin/", "usr/sbin/", "usr/lib"};

	for (size_t i = 0; i < sizeof(merged) / sizeof(merged[0]); i++)
		if (str_starts(path, merged[i]))
			return path + strlen("usr/");
	return path;
}

static bool same_place(const char *a, const char *b)
{
	return str_eq(short_of(a), short_of(b));
}

static bool ships(const struct deb *d, const char *path)
{
	for (size_t i = 0; i < d->data.n; i++)
		if (d->data.v[i].a.type != NODE_DIR && same_place(d->data.v[i].path, path))
			return true;
	return false;
}

static bool is_shared(const struct deb *const *debs, size_t n, const struct diversion *d)
{
	bool own = false, others = false;

	for (size_t i = 0; i < n; i++)
		if (str_eq(debs[i]->name, d->by))
			own = own || ships(debs[i], d->from);
	for (size_t i = 0; own && !others && i < n; i++)
		others = !str_eq(debs[i]->name, d->by) && ships(debs[i], d->from);
	return others;
}

static bool is_known(const struct diversion *v, size_t n, const struct diversion *d)
{
	for (size_t i = 0; i < n; i++)
		if (same_place(v[i].from, d->from))
			return true;
	return false;
}

/* ---- the whole ---- */

struct diversion *diversions_find(
	const struct deb *const *debs, size_t n, struct arena *a, size_t *count)
{
	static const char name[] = "dpkg-divert";
	struct diversion *v = arena_alloc(a, DIVERSIONS_MAX * sizeof(*v));

	*count = 0;
	for (size_t i = 0; i < n; i++) {
		const struct deb_file *f = deb_file(debs[i], "preinst");
		struct script *s = NULL;
		struct command c;

		if (f && memmem(f->data, f->len, name, strlen(name)))
			s = script_new(f->data, f->len);
		while (s && *count < DIVERSIONS_MAX && script_next(s, &c)) {
			struct diversion d = {.by = debs[i]->name};

			if (!c.unknown && str_eq(c.words.v[0], name) && parse(&c.words, &d, a) &&
				!is_known(v, *count, &d) && is_shared(debs, n, &d))
				v[(*count)++] = d;
		}
		script_free(s);
	}
	return v;
}

void diversions_text(const struct diversion *v, size_t n, struct buf *out)
{
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "/%s\n/%s\n%s\n", v[i].from, v[i].to, v[i].by);
}

static void place_one(struct deb *d, const struct diversion *v, struct arena *a)
{
	for (size_t k = 0; k < d->data.n; k++) {
		const struct entry *en = &d->data.v[k];

		if (en->a.type == NODE_DIR || !same_place(en->path, v->from))
			continue;
		if (!d->places)
			d->places = arena_alloc(a, d->data.n * sizeof(*d->places));
		d->places[k] = v->to;
	}
}

void diversions_place(struct deb *debs, size_t n, struct arena *a)
{
	auto_free const struct deb **all = mem_array(n, sizeof(*all));
	const struct diversion *v;
	size_t count;

	for (size_t i = 0; i < n; i++)
		all[i] = &debs[i];
	v = diversions_find(all, n, a, &count);
	for (size_t k = 0; k < count; k++)
		for (size_t i = 0; i < n; i++)
			if (!str_eq(debs[i].name, v[k].by))
				place_one(&debs[i], &v[k], a);
}
