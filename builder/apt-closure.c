#include "builder/apt-closure.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

/* One package while its entry is made. */
struct record {
	struct slice stanza;
	const char *name, *filename;
	struct lock_deb deb;
	size_t whycap;
};

/* A name that a record provides: its own, or a virtual one. */
struct provided {
	struct slice name;
	size_t record;
	bool own;
};

struct closure {
	struct record *v; /* sorted by name */
	size_t n, cap;
	struct provided *names; /* sorted: own names before virtual ones */
	size_t nnames, namescap;
	struct arena *arena; /* the lock's */
};

struct slice apt_asked_name(const char *asked)
{
	return (struct slice){.p = asked, .n = strcspn(asked, "=/:")};
}

/* %xx in place. */
static void unescape(char *s)
{
	char *w = s;
	unsigned v;

	for (; *s; s++, w++) {
		*w = *s;
		if (s[0] == '%' && s[1] && s[2] && sscanf(s + 1, "%2x", &v) == 1) {
			*w = (char)v;
			s += 2;
		}
	}
	*w = '\0';
}

bool apt_closure_next(struct slice *uris, struct arena *a, char **name_version, char **uri)
{
	struct slice line, file;

	while (slice_line(uris, &line)) {
		const char *end, *u1, *u2;

		if (line.n < 2 || line.p[0] != '\'')
			continue;
		end = memchr(line.p + 1, '\'', line.n - 1);
		if (!end)
			continue;
		*uri = arena_strndup(a, line.p + 1, (size_t)(end - line.p - 1));
		line.n -= (size_t)(end + 1 - line.p);
		line.p = end + 1;
		line = slice_trim(line);
		if (!slice_piece(&line, ' ', &file))
			continue;
		u1 = memchr(file.p, '_', file.n);
		u2 = memrchr(file.p, '_', file.n);
		if (!u1 || u1 == u2)
			continue;
		*name_version = arena_printf(
			a, "%.*s=%.*s", (int)(u1 - file.p), file.p, (int)(u2 - u1 - 1), u1 + 1);
		unescape(*name_version);
		return true;
	}
	return false;
}

/* ---- records ---- */

static int compare(struct slice x, struct slice y)
{
	int c = memcmp(x.p, y.p, x.n < y.n ? x.n : y.n);

	return c ? c : x.n < y.n ? -1 : x.n > y.n;
}

static int by_name(const void *a, const void *b)
{
	const struct record *x = a, *y = b;
	int c = strcmp(x->name, y->name);

	return c ? c : strcmp(x->deb.arch, y->deb.arch);
}

static int read_record(struct closure *c, struct slice stanza, struct err *e)
{
	struct arena *a = c->arena;
	struct record r = {.stanza = stanza};
	struct lock_deb *d = &r.deb;
	struct slice src = control_field(stanza, "Source"), essential;
	const char *sha = control_str(a, stanza, "SHA256"), *size = control_str(a, stanza, "Size");

	r.name = d->name = control_str(a, stanza, "Package");
	d->version = control_str(a, stanza, "Version");
	d->arch = control_str(a, stanza, "Architecture");
	r.filename = control_str(a, stanza, "Filename");
	if (!d->name || !d->version || !d->arch || !r.filename || !sha || !size)
		return err_set(e, ERR_CORRUPT,
			"apt's record of %s lacks version, architecture, file name, size or SHA256",
			d->name ? d->name : "a package");
	if (digest_from_hex(&d->sha256, sha) < 0 || str_u64(size, INT64_MAX, &d->size) < 0)
		return err_set(
			e, ERR_CORRUPT, "apt's record of %s has a bad size or SHA256", d->name);
	if (src.p) /* "Source: glibc (2.36-9)" */
		src.n = (size_t)(strcspn(arena_strndup(a, src.p, src.n), " (\n"));
	d->source = src.p ? arena_strndup(a, src.p, src.n) : d->name;
	essential = control_field(stanza, "Essential");
	d->essential = slice_eq(essential, "yes");
	mem_grow(&c->v, &c->cap, c->n);
	c->v[c->n++] = r;
	return 0;
}

/* First record of that name, or NULL. */
static struct record *find_name(const struct closure *c, struct slice name)
{
	size_t lo = 0, hi = c->n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (compare(slice_of(c->v[mid].name), name) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < c->n && slice_eq(name, c->v[lo].name) ? &c->v[lo] : NULL;
}

/* ---- addresses ---- */

/* The manifest's form of an address that apt printed. */
static char *mirror_form(const struct apt_state *s, struct arena *a, const char *uri)
{
	size_t best = 0;
	char *url = NULL;

	for (size_t i = 0; i < s->norigins; i++) {
		const char *address = s->origins[i].address;
		size_t n = strlen(address);

		if (n > best && str_starts(uri, address) && uri[n] == '/') {
			best = n;
			url = arena_printf(a, "%s%s", s->origins[i].uri, uri + n);
		}
	}
	return url;
}

static int set_url(struct closure *c, const struct apt_state *s, const char *name_version,
	const char *uri, struct err *e)
{
	struct slice name = {.p = name_version, .n = strcspn(name_version, "=")};
	struct record *r = find_name(c, name);
	char *plain = arena_strdup(c->arena, uri);

	unescape(plain);
	for (; r && r < c->v + c->n && slice_eq(name, r->name); r++)
		if (!r->deb.url && str_ends(plain, r->filename)) {
			r->deb.url = mirror_form(s, c->arena, uri);
			if (r->deb.url)
				return 0;
			return err_set(e, ERR_CORRUPT, "apt takes %s from %s, which is no source's",
				name_version, uri);
		}
	return err_set(e, ERR_CORRUPT, "apt has no record of %s", name_version);
}

/* A version that several sources list has several records; the one at the address that apt chose
 * stays. */
static void keep_addressed(struct closure *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++)
		if (c->v[i].deb.url)
			c->v[n++] = c->v[i];
	c->n = n;
}

/* ---- why ---- */

static void add_why(struct closure *c, struct record *r, const char *why)
{
	struct strings *l = &r->deb.why;

	for (size_t i = 0; i < l->n; i++)
		if (str_eq(l->v[i], why))
			return;
	if (l->n == r->whycap) {
		const char **v;

		r->whycap = r->whycap ? 2 * r->whycap : 4;
		v = arena_alloc(c->arena, r->whycap * sizeof(*v));
		if (l->n)
			memcpy(v, l->v, l->n * sizeof(*v));
		l->v = v;
	}
	l->v[l->n++] = why;
}

/* "name (>= 1)", "name:any [amd64]" -> "name" */
static struct slice relation_name(struct slice s)
{
	size_t n = 0;

	while (n < s.n && !strchr(" (:[<\n\t", s.p[n]))
		n++;
	return (struct slice){.p = s.p, .n = n};
}

static void add_name(struct closure *c, struct slice name, size_t record, bool own)
{
	mem_grow(&c->names, &c->namescap, c->nnames);
	c->names[c->nnames++] = (struct provided){.name = name, .record = record, .own = own};
}

static int by_provided(const void *a, const void *b)
{
	const struct provided *x = a, *y = b;
	int c = compare(x->name, y->name);

	if (c == 0 && x->own != y->own)
		return x->own ? -1 : 1;
	return c ? c : x->record < y->record ? -1 : x->record > y->record;
}

static void fill_names(struct closure *c)
{
	for (size_t i = 0; i < c->n; i++) {
		struct slice provides = control_field(c->v[i].stanza, "Provides"), piece;

		add_name(c, slice_of(c->v[i].name), i, true);
		while (slice_piece(&provides, ',', &piece))
			add_name(c, relation_name(piece), i, false);
	}
	if (c->nnames)
		qsort(c->names, c->nnames, sizeof(*c->names), by_provided);
}

/* Tell the packages that satisfy `name`: those called so, else those that provide it. */
static bool tell(struct closure *c, struct slice name, const char *why, const char *except)
{
	size_t lo = 0, hi = c->nnames;
	bool own;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (compare(c->names[mid].name, name) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == c->nnames || compare(c->names[lo].name, name) != 0)
		return false;
	own = c->names[lo].own;
	for (; lo < c->nnames && compare(c->names[lo].name, name) == 0; lo++) {
		struct record *r = &c->v[c->names[lo].record];

		if (c->names[lo].own == own && !(except && str_eq(r->name, except)))
			add_why(c, r, why);
	}
	return true;
}

/* In "a | b" it is the first that is there which counts. */
static void tell_dependencies(struct closure *c, const struct record *r, const char *field)
{
	struct slice all = control_field(r->stanza, field), group, one;

	while (slice_piece(&all, ',', &group))
		while (slice_piece(&group, '|', &one))
			if (tell(c, relation_name(one), r->name, r->name))
				break;
}

/* Tell what the manifest's packages[i] asks for. Returns the reason if it is a pattern, else NULL.
 */
static const char *tell_asked(struct closure *c, const char *asked, size_t i)
{
	const char *why = arena_printf(c->arena, "manifest:/apt/packages/%zu", i);

	if (!str_eq(asked, "?essential")) {
		tell(c, apt_asked_name(asked), why, NULL);
		return NULL;
	}
	for (size_t k = 0; k < c->n; k++)
		if (c->v[k].deb.essential)
			add_why(c, &c->v[k], why);
	return why;
}

static int by_text(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

static void fill_why(struct closure *c, const struct manifest *m)
{
	static const char *const fields[] = {"Pre-Depends", "Depends", "Recommends"};
	size_t nfields = m->apt.recommends ? 3 : 2;
	size_t *asked = mem_array(c->n, sizeof(*asked));
	const char *pattern = NULL;

	fill_names(c);
	for (size_t i = 0; i < m->apt.packages.n; i++) {
		const char *why = tell_asked(c, m->apt.packages.v[i], i);

		pattern = why ? why : pattern;
	}
	for (size_t i = 0; i < c->n; i++)
		asked[i] = c->v[i].deb.why.n;
	for (size_t i = 0; i < c->n; i++)
		for (size_t k = 0; k < nfields; k++)
			tell_dependencies(c, &c->v[i], fields[k]);
	for (size_t i = 0; i < c->n; i++) {
		struct strings *w = &c->v[i].deb.why;

		if (asked[i]) /* the manifest is reason enough */
			w->n = asked[i];
		else if (w->n == 0 && pattern) /* apt counts itself among the essential ones */
			add_why(c, &c->v[i], pattern);
		if (w->n > 1)
			qsort(w->v, w->n, sizeof(const char *), by_text);
	}
	free(asked);
}

/* ---- the whole ---- */

static int read_all(struct closure *c, const struct manifest *m, const struct apt_state *s,
	struct slice uris, struct slice records, struct err *e)
{
	struct slice stanza;
	char *name_version, *uri;

	while (control_next(&records, &stanza))
		if (read_record(c, stanza, e) < 0)
			return -1;
	if (c->n)
		qsort(c->v, c->n, sizeof(*c->v), by_name);
	while (apt_closure_next(&uris, c->arena, &name_version, &uri))
		if (set_url(c, s, name_version, uri, e) < 0)
			return -1;
	keep_addressed(c);
	fill_why(c, m);
	return 0;
}

int apt_closure_read(struct lock *l, const struct manifest *m, const struct apt_state *s,
	struct slice uris, struct slice records, struct err *e)
{
	struct closure c = {.arena = &l->arena};
	int rc = read_all(&c, m, s, uris, records, e);

	if (rc == 0) {
		l->debs = arena_alloc(&l->arena, c.n * sizeof(*l->debs));
		l->ndebs = c.n;
		for (size_t i = 0; i < c.n; i++)
			l->debs[i] = c.v[i].deb;
	}
	free(c.v);
	free(c.names);
	return rc;
}
