#include "builder/scan-packages.h"

#include <string.h>

#include "base/str.h"
#include "builder/python-name.h"
#include "builder/sbom.h"
#include "images/attached.h"
#include "images/export.h"
#include "images/image.h"
#include "images/packages.h"

enum { RELEASE_MAX = 64 << 10, SBOM_DEPTH_MAX = 16 };

static int add(struct scan_packages *l, struct scan_package p, struct err *e)
{
	if (l->n >= SCAN_PACKAGES_MAX)
		return err_set(
			e, ERR_CORRUPT, "more than the limit of %d packages", SCAN_PACKAGES_MAX);
	if (!p.source)
		p.source = p.name;
	if (!p.source_version)
		p.source_version = p.version;
	mem_grow(&l->v, &l->cap, l->n);
	l->v[l->n++] = p;
	return 0;
}

static const char *keep(struct scan_packages *l, const char *text)
{
	return text ? arena_strdup(&l->arena, text) : NULL;
}

/* A package that was built again without a change of its source ends in +bN. */
static const char *without_rebuild(struct scan_packages *l, const char *version)
{
	const char *plus = strrchr(version, '+');

	if (!plus || plus[1] != 'b' || !plus[2] || plus[2 + strspn(plus + 2, "0123456789")])
		return version;
	return arena_strndup(&l->arena, version, (size_t)(plus - version));
}

static int add_python(struct scan_packages *l, const char *name, const char *version, struct err *e)
{
	struct scan_package p = {.kind = VERSION_PYPI, .version = keep(l, version)};

	p.name = python_name_normal(&l->arena, name, strlen(name));
	return p.name ? add(l, p, e) : 0;
}

/* ---- the image's files ---- */

struct listing {
	struct scan_packages *l;
	struct tree *t;
	struct pool *pool;
};

/* "name (version)", the version only where it is another. */
static void take_source(struct scan_packages *l, struct scan_package *p, char *text)
{
	char *open = strchr(text, '('), *close = open ? strchr(open, ')') : NULL;

	text[strcspn(text, " (")] = '\0';
	p->source = text;
	if (close)
		p->source_version = arena_strndup(&l->arena, open + 1, (size_t)(close - open - 1));
}

static int add_deb(struct scan_packages *l, const struct package *p, struct err *e)
{
	struct scan_package got = {
		.kind = VERSION_DEB, .name = keep(l, p->name), .version = keep(l, p->version)};

	if (p->source)
		take_source(l, &got, arena_strdup(&l->arena, p->source));
	return add(l, got, e);
}

/* Where Debian's own packages put modules: their advisories are Debian's. */
static bool is_debians(const struct listing *x, const char *where)
{
	static const char *const folders[] = {"usr/lib/python3/dist-packages", "usr/share/nodejs/",
		"usr/lib/nodejs/", "usr/lib/x86_64-linux-gnu/nodejs/",
		"usr/lib/aarch64-linux-gnu/nodejs/"};

	for (size_t i = 0; x->l->database && i < sizeof(folders) / sizeof(folders[0]); i++)
		if (str_starts(where, folders[i]))
			return true;
	return false;
}

static int take_package(struct listing *x, const struct package *p, struct err *e)
{
	if (str_eq(p->kind, "deb"))
		return add_deb(x->l, p, e);
	if (is_debians(x, p->where))
		return 0;
	if (str_eq(p->kind, "python"))
		return add_python(x->l, p->name, p->version, e);
	return add(x->l,
		(struct scan_package){.kind = VERSION_NPM,
			.name = keep(x->l, p->name),
			.version = keep(x->l, p->version)},
		e);
}

static int list_packages(struct listing *x, struct err *e)
{
	struct packages l;
	int rc = packages_list(&l, x->t, x->pool, e);

	for (size_t i = 0; rc == 0 && i < l.n; i++)
		x->l->database = x->l->database || str_eq(l.v[i].kind, "deb");
	for (size_t i = 0; rc == 0 && i < l.n; i++)
		rc = take_package(x, &l.v[i], e);
	packages_fini(&l);
	return rc;
}

/* ID=debian, VERSION_ID="12": to free(). */
static char *release_field(const char *text, const char *key)
{
	size_t n = strlen(key);

	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, n) == 0 && line[n] == '=') {
			const char *v = line + n + 1;
			size_t len = strcspn(v, "\r\n");

			if (len >= 2 && (*v == '"' || *v == '\'') && v[len - 1] == *v)
				v++, len -= 2;
			return len && len < 64 ? mem_printf("%.*s", (int)len, v) : NULL;
		}
	}
	return NULL;
}

static int read_release(struct listing *x, struct err *e)
{
	static const char *const paths[] = {"etc/os-release", "usr/lib/os-release"};
	auto_buf struct buf b = {0};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < sizeof(paths) / sizeof(paths[0]); i++)
		rc = export_read_small(x->pool, tree_resolve(x->t, paths[i]), RELEASE_MAX, &b, e);
	if (rc <= 0)
		return rc;

	auto_free char *id = release_field(b.data, "ID"),
		       *version = release_field(b.data, "VERSION_ID"),
		       *codename = release_field(b.data, "VERSION_CODENAME");

	x->l->distribution = keep(x->l, id);
	x->l->release = keep(x->l, version);
	x->l->codename = keep(x->l, codename);
	return 0;
}

/* ---- the bill ---- */

/* What a package of Debian brought is Debian's business. */
static bool is_own(const struct bill *b, const struct bill_item *it)
{
	return it->installed && it->version && b->items[it->via].kind != ORIGIN_DEB;
}

static int take_item(
	struct scan_packages *l, const struct bill *b, const struct bill_item *it, struct err *e)
{
	if (it->kind == ORIGIN_DEB && it->installed && it->version)
		return add(l,
			(struct scan_package){.kind = VERSION_DEB,
				.name = keep(l, it->name),
				.version = keep(l, it->version),
				.source = keep(l, it->source),
				.source_version = without_rebuild(l, keep(l, it->version))},
			e);
	if (it->kind == ORIGIN_WHEEL && is_own(b, it))
		return add_python(l, it->name, it->version, e);
	if (it->kind == ORIGIN_NPM && is_own(b, it))
		return add(l,
			(struct scan_package){.kind = VERSION_NPM,
				.name = keep(l, it->name),
				.version = keep(l, it->version)},
			e);
	l->others += it->kind == ORIGIN_SOURCE || it->kind == ORIGIN_MODEL;
	return 0;
}

/* An image without base-files has no os-release: the suites that its packages came from tell. */
static void release_of_bill(struct scan_packages *l, const struct bill *b)
{
	auto_json json_t *doc = json_parse(b->document, strlen(b->document), NULL);
	const json_t *source =
		json_array_get(json_object_get(json_object_get(doc, "apt"), "sources"), 0);
	const char *uri = json_string_value(json_object_get(source, "uri")),
		   *suite = json_string_value(json_array_get(json_object_get(source, "suites"), 0));

	if (!l->distribution && uri)
		l->distribution = strstr(uri, "ubuntu") ? "ubuntu" : "debian";
	if (!l->codename && !l->release && suite)
		l->codename = arena_strndup(&l->arena, suite, strcspn(suite, "-/"));
}

static int take_bill(struct scan_packages *l, const struct bill *b, struct err *e)
{
	for (size_t i = 0; i < b->nitems; i++)
		/* the database knows the version of the source, too */
		if (!(l->database && b->items[i].kind == ORIGIN_DEB) &&
			take_item(l, b, &b->items[i], e) < 0)
			return -1;
	release_of_bill(l, b);
	return 0;
}

/* ---- an SBOM ---- */

struct purl_text {
	char *type, *space, *name, *version, *qualifiers; /* parts of one text; may be NULL */
};

/* Percent-decoded, in place. */
static char *decode(char *s)
{
	char *out = s;

	for (char *p = s; s && *p; p++) {
		unsigned v;

		if (*p == '%' && strspn(p + 1, "0123456789abcdefABCDEF") >= 2 &&
			sscanf(p + 1, "%2x", &v) == 1 && v) {
			*out++ = (char)v;
			p += 2;
		} else {
			*out++ = *p;
		}
	}
	if (s)
		*out = '\0';
	return s;
}

static char *cut(char *s, char at, bool last)
{
	char *p = last ? strrchr(s, at) : strchr(s, at);

	if (p)
		*p++ = '\0';
	return p;
}

/* pkg:TYPE/[SPACE/]NAME[@VERSION][?QUALIFIERS][#PATH] */
static bool parse_purl(char *s, struct purl_text *p)
{
	char *name;

	if (!str_starts(s, "pkg:"))
		return false;
	s += strlen("pkg:");
	(void)cut(s, '#', false);
	p->qualifiers = cut(s, '?', false);
	p->version = decode(cut(s, '@', true));
	p->type = s;
	name = cut(s, '/', false);
	if (!name)
		return false;
	p->space = name;
	p->name = cut(name, '/', true);
	if (!p->name) {
		p->name = name;
		p->space = NULL;
	}
	p->name = decode(p->name);
	p->space = decode(p->space);
	return *p->name && p->version && *p->version;
}

static char *qualifier(struct scan_packages *l, const struct purl_text *p, const char *key)
{
	const char *at = p->qualifiers;
	size_t n = strlen(key);

	for (; at && *at; at = strchr(at, '&')) {
		at += *at == '&';
		if (strncmp(at, key, n) == 0 && at[n] == '=')
			return decode(
				arena_strndup(&l->arena, at + n + 1, strcspn(at + n + 1, "&")));
	}
	return NULL;
}

static int add_deb_purl(struct scan_packages *l, const struct purl_text *t, struct err *e)
{
	struct scan_package p = {.kind = VERSION_DEB, .name = t->name, .version = t->version};
	char *upstream = qualifier(l, t, "upstream"), *distro = qualifier(l, t, "distro");

	if (upstream) {
		p.source_version = cut(upstream, '@', false);
		p.source = upstream;
	}
	if (!p.source_version)
		p.source_version = without_rebuild(l, p.version);
	if (!l->distribution && t->space)
		l->distribution = t->space;
	if (!l->release && !l->codename && distro && strchr(distro, '-')) { /* "debian-12" */
		const char *release = strchr(distro, '-') + 1;

		if (*release >= '0' && *release <= '9')
			l->release = release;
		else
			l->codename = release;
	}
	return add(l, p, e);
}

static int add_purl(struct scan_packages *l, const char *text, struct err *e)
{
	struct purl_text t = {0};

	if (strlen(text) > 4096 || !parse_purl(arena_strdup(&l->arena, text), &t))
		return 0;
	if (str_eq(t.type, "deb"))
		return l->database ? 0 : add_deb_purl(l, &t, e);
	if (str_eq(t.type, "pypi"))
		return add_python(l, t.name, t.version, e);
	if (!str_eq(t.type, "npm"))
		return 0;
	return add(l,
		(struct scan_package){.kind = VERSION_NPM,
			.name = t.space ? arena_printf(&l->arena, "%s/%s", t.space, t.name)
					: t.name,
			.version = t.version},
		e);
}

static int add_components(
	struct scan_packages *l, const json_t *list, unsigned depth, struct err *e)
{
	const json_t *o;
	size_t i;

	if (depth > SBOM_DEPTH_MAX)
		return err_set(e, ERR_CORRUPT, "components more than %d deep", SBOM_DEPTH_MAX);
	json_array_foreach (list, i, o) {
		const char *purl = json_string_value(json_object_get(o, "purl"));

		if ((purl && add_purl(l, purl, e) < 0) ||
			add_components(l, json_object_get(o, "components"), depth + 1, e) < 0)
			return -1;
	}
	return 0;
}

int scan_packages_add_sbom(struct scan_packages *l, const json_t *doc, struct err *e)
{
	const json_t *o, *ref;
	size_t i, k;

	json_array_foreach (json_object_get(doc, "packages"), i, o)
		json_array_foreach (json_object_get(o, "externalRefs"), k, ref) {
			const char *type = json_string_value(json_object_get(ref, "referenceType")),
				   *text = json_string_value(
					   json_object_get(ref, "referenceLocator"));

			if (type && text && str_eq(type, "purl") && add_purl(l, text, e) < 0)
				return -1;
		}
	return add_components(l, json_object_get(doc, "components"), 0, e);
}

static int take_sboms(
	struct scan_packages *l, struct store *s, const struct digest *manifest, struct err *e)
{
	static const enum sbom_format formats[] = {SBOM_SPDX, SBOM_CYCLONEDX};

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		auto_buf struct buf b = BUF_INIT(ATTACHED_BLOB_MAX);
		auto_json json_t *doc = NULL;
		int rc = attached_blob(s, manifest, sbom_media_type(formats[i]), NULL, NULL, &b, e);

		if (rc == 0)
			continue;
		doc = rc > 0 ? json_parse(b.data ? b.data : "", b.len, e) : NULL;
		if (!doc || scan_packages_add_sbom(l, doc, e) < 0)
			return err_ctx(e, "the image's SBOM");
	}
	return 0;
}

/* ---- all ---- */

static int by_all(const void *a, const void *b)
{
	const struct scan_package *x = a, *y = b;
	int rc = (int)x->kind - (int)y->kind;

	rc = rc ? rc : strcmp(x->source, y->source);
	rc = rc ? rc : strcmp(x->source_version, y->source_version);
	rc = rc ? rc : strcmp(x->name, y->name);
	return rc ? rc : strcmp(x->version, y->version);
}

static void settle(struct scan_packages *l)
{
	size_t n = 0;

	if (l->n == 0)
		return;
	qsort(l->v, l->n, sizeof(*l->v), by_all);
	for (size_t i = 1; i < l->n; i++)
		if (by_all(&l->v[n], &l->v[i]) != 0)
			l->v[++n] = l->v[i];
	l->n = n + 1;
}

static int list_tree(struct listing *x, struct store *s, const struct digest *manifest,
	const struct bill *bill, struct err *e)
{
	if (read_release(x, e) < 0 || list_packages(x, e) < 0)
		return -1;
	return bill ? take_bill(x->l, bill, e) : take_sboms(x->l, s, manifest, e);
}

int scan_packages_list(struct scan_packages *l, struct store *s, const struct digest *manifest,
	const struct bill *bill, struct err *e)
{
	struct listing x = {.l = l};
	struct image im;
	int rc = -1;

	*l = (struct scan_packages){0};
	if (image_load(&im, s, manifest, e) < 0)
		return -1;
	x.t = image_tree(&im, s, NULL, NULL, e);
	x.pool = x.t ? pool_open(s->fd, false, e) : NULL;
	if (x.pool)
		rc = list_tree(&x, s, manifest, bill, e);
	pool_close(x.pool);
	tree_free(x.t);
	image_fini(&im);
	if (rc < 0)
		scan_packages_fini(l);
	else
		settle(l);
	return rc;
}

void scan_packages_fini(struct scan_packages *l)
{
	arena_fini(&l->arena);
	free(l->v);
	*l = (struct scan_packages){0};
}
