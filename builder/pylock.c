#include "builder/pylock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "builder/pep440.h"
#include "builder/toml.h"
#include "images/tree.h"

enum { PACKAGES_MAX = 20000, WHEELS_MAX = 2000 };
#define SIZE_LIMIT (8ull << 30)

struct pylock {
	const struct python_target *t;
	const char *name, *folder;
	struct marker_env env;
	struct pairs needs; /* package -> one that needs it */
	struct wheel_list *out;
	struct err *e;
};

struct lock_wheel *wheel_list_add(struct wheel_list *l)
{
	mem_grow(&l->v, &l->cap, l->n);
	l->v[l->n] = (struct lock_wheel){0};
	return &l->v[l->n++];
}

/* ---- fields ---- */

static int bad(const struct pylock *p, const char *who, const char *what)
{
	char text[STR_SHOWN];

	return err_set(p->e, ERR_CORRUPT, "SV054: %s: %s%s%s", p->name,
		who ? str_shown(who, text) : "", who ? ": " : "", what);
}

/* A string, NULL when there is none; -1 for another type, and for what has control characters. */
static int text_of(
	const struct pylock *p, const json_t *o, const char *who, const char *key, const char **out)
{
	const json_t *v = json_object_get(o, key);
	char what[96];

	*out = NULL;
	if (!v)
		return 0;
	*out = json_string_value(v);
	for (const char *c = *out; c && *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*out = NULL;
	if (*out && json_string_length(v) == strlen(*out))
		return 0;
	snprintf(what, sizeof(what), "%s: expected a line of text", key);
	return bad(p, who, what);
}

static int strings_of(const struct pylock *p, const json_t *o, const char *key, struct strings *out)
{
	const json_t *list = json_object_get(o, key), *v;
	size_t i;

	*out = (struct strings){0};
	if (list && !json_is_array(list))
		return bad(p, NULL, "expected an array of texts");
	out->v = arena_alloc(p->t->a, (json_array_size(list) + 1) * sizeof(char *));
	json_array_foreach (list, i, v) {
		if (!json_is_string(v))
			return bad(p, NULL, "expected an array of texts");
		out->v[out->n++] = arena_strdup(p->t->a, json_string_value(v));
	}
	return 0;
}

/* ---- wheels ---- */

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

char *wheel_local_url(struct arena *a, const char *folder, const char *path)
{
	auto_free char *full = mem_printf("%s%s%s", folder, *folder ? "/" : "", path);
	auto_free char *clean = mem_alloc(strlen(full) + 2);
	size_t n = 0;

	for (const char *s = full; *s;) {
		size_t k = strcspn(s, "/");

		if (k == 2 && strncmp(s, "..", 2) == 0) {
			if (n == 0)
				return NULL;
			while (n > 0 && clean[--n] != '/')
				;
		} else if (k > 0 && !(k == 1 && *s == '.')) {
			if (n > 0)
				clean[n++] = '/';
			memcpy(clean + n, s, k);
			n += k;
		}
		s += k + (s[k] == '/');
	}
	return n == 0 || path[0] == '/' ? NULL : arena_printf(a, "file:%.*s", (int)n, clean);
}

static int take_address(
	const struct pylock *p, const json_t *j, const char *who, struct wheel_offer *out)
{
	const char *url, *path, *name;

	if (text_of(p, j, who, "url", &url) < 0 || text_of(p, j, who, "path", &path) < 0 ||
		text_of(p, j, who, "name", &name) < 0)
		return -1;
	if (!url && !path)
		return err_set(p->e, ERR_USAGE, "SV053: %s: %s: a wheel without url and path",
			p->name, who);
	out->file = name ? name : base_of(path ? path : url);
	if (!name && !path) /* what is behind the name in an address */
		out->file = arena_strndup(p->t->a, out->file, strcspn(out->file, "?#"));
	out->file = arena_strdup(p->t->a, out->file);
	if (path) {
		out->url = wheel_local_url(p->t->a, p->folder, path);
		return out->url ? 0
				: err_set(p->e, ERR_DENIED,
					  "SV053: %s: %s: %s leads out of the manifest's folder",
					  p->name, who, path);
	}
	out->url = arena_strndup(p->t->a, url, strcspn(url, "#"));
	if (!str_starts(url, "https://") && !str_starts(url, "mirror:"))
		return err_set(p->e, ERR_USAGE,
			"SV053: %s: %s: '%.200s' is neither https:// nor mirror:", p->name, who,
			url);
	return 0;
}

static int take_wheel(
	const struct pylock *p, const json_t *j, const char *who, struct wheel_offer *out)
{
	const json_t *hashes = json_object_get(j, "hashes"), *size = json_object_get(j, "size");
	const char *sha256 = json_string_value(json_object_get(hashes, "sha256"));
	json_int_t bytes = json_integer_value(size);

	*out = (struct wheel_offer){0};
	if (!json_is_object(j))
		return bad(p, who, "wheels: expected tables");
	if (take_address(p, j, who, out) < 0)
		return -1;
	if (!sha256)
		return err_set(p->e, ERR_USAGE, "SV053: %s: %s: the wheel %.200s has no sha256",
			p->name, who, out->file);
	if (digest_from_hex(&out->sha256, sha256) < 0)
		return bad(p, who, "hashes.sha256: expected 64 lower-case hex digits");
	if (size && (!json_is_integer(size) || bytes < 1 || bytes > (json_int_t)SIZE_LIMIT))
		return bad(p, who, "size: expected a number of bytes");
	out->size = (uint64_t)bytes;
	return 0;
}

/* What there is instead of wheels. */
static int no_wheels(const struct pylock *p, const json_t *j, const char *who)
{
	static const char *const kinds[] = {"sdist", "vcs", "directory", "archive", NULL};

	for (size_t i = 0; kinds[i]; i++)
		if (json_object_get(j, kinds[i])) {
			err_set(p->e, ERR_USAGE,
				"SV051: %s: %s has no wheel, only %s: it would have to be built",
				p->name, who, kinds[i]);
			return err_hint(
				p->e, "build a wheel of it once, and name that in the lock");
		}
	return err_set(p->e, ERR_USAGE, "SV052: %s: %s has no wheel", p->name, who);
}

static int take_wheels(
	const struct pylock *p, const json_t *j, const char *name, const char *version)
{
	const json_t *list = json_object_get(j, "wheels"), *v;
	size_t n = json_array_size(list), i;
	const char *who = version ? arena_printf(p->t->a, "%s %s", name, version) : name;
	struct wheel_offer *offers;
	struct lock_wheel *w;
	struct wheel_name parsed;
	int best;

	if (list && !json_is_array(list))
		return bad(p, who, "wheels: expected an array");
	if (n == 0)
		return no_wheels(p, j, who);
	if (n > WHEELS_MAX)
		return bad(p, who, "too many wheels");
	offers = arena_alloc(p->t->a, n * sizeof(*offers));
	json_array_foreach (list, i, v)
		if (take_wheel(p, v, who, &offers[i]) < 0)
			return -1;
	best = python_target_pick(p->t, who, version, offers, n, p->e);
	if (best < 0 || wheel_name_parse(&parsed, p->t->a, offers[best].file, p->e) < 0)
		return err_ctx(p->e, "%s", p->name);
	if (!str_eq(parsed.name, name))
		return bad(p, who, "a wheel of another package");
	w = wheel_list_add(p->out);
	*w = (struct lock_wheel){.name = arena_strdup(p->t->a, name),
		.version = parsed.version,
		.file = offers[best].file,
		.url = offers[best].url,
		.sha256 = offers[best].sha256,
		.size = offers[best].size};
	return 0;
}

/* ---- packages ---- */

static int by_need(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;
	int c = strcmp(x->name, y->name);

	return c ? c : strcmp(x->value, y->value);
}

/* Who needs what, sorted by what is needed. */
static void list_needs(struct pylock *p, const json_t *packages)
{
	const json_t *j, *d;
	size_t i, k, n = 0;

	json_array_foreach (packages, i, j)
		n += json_array_size(json_object_get(j, "dependencies"));
	p->needs.v = arena_alloc(p->t->a, (n + 1) * sizeof(*p->needs.v));
	json_array_foreach (packages, i, j) {
		const char *name = json_string_value(json_object_get(j, "name"));

		json_array_foreach (json_object_get(j, "dependencies"), k, d) {
			const char *need = json_string_value(json_object_get(d, "name"));

			if (name && need && python_name_is_normal(name))
				p->needs.v[p->needs.n++] = (struct pair){need, name};
		}
	}
	if (p->needs.n)
		qsort(p->needs.v, p->needs.n, sizeof(*p->needs.v), by_need);
}

/* The packages that need this one, else the lock. */
static void take_why(const struct pylock *p, struct lock_wheel *w)
{
	size_t low = 0, high = p->needs.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (strcmp(p->needs.v[mid].name, w->name) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	while (high < p->needs.n && str_eq(p->needs.v[high].name, w->name))
		high++;
	w->why.v = arena_alloc(p->t->a, (high - low + 1) * sizeof(char *));
	for (; low < high; low++) {
		const char *who = p->needs.v[low].value;

		if (!w->why.n || !str_eq(w->why.v[w->why.n - 1], who))
			w->why.v[w->why.n++] = arena_strdup(p->t->a, who);
	}
	if (w->why.n == 0)
		w->why.v[w->why.n++] = base_of(arena_strdup(p->t->a, p->name));
}

static int python_fits(const struct pylock *p, const json_t *j, const char *who)
{
	const char *specifiers;
	const char *version =
		p->env.python_full_version ? p->env.python_full_version : p->env.python_version;

	if (text_of(p, j, who, "requires-python", &specifiers) < 0)
		return -1;
	switch (specifiers ? pep440_fits(version, specifiers) : 1) {
	case 1:
		return 0;
	case 0:
		return err_set(p->e, ERR_USAGE,
			"SV052: %s: %s%sneeds Python %.200s, the image has %s", p->name,
			who ? who : "it ", who ? " " : "", specifiers, version);
	default:
		return bad(p, who, "requires-python: expected version specifiers");
	}
}

static int take_package(const struct pylock *p, const json_t *j)
{
	const char *name, *version, *marker;
	struct pep440 v;
	char normal[PEP440_TEXT];
	int rc;

	if (!json_is_object(j))
		return bad(p, NULL, "packages: expected tables");
	if (text_of(p, j, NULL, "name", &name) < 0)
		return -1;
	if (!name || !python_name_is_normal(name))
		return bad(p, name, "expected a name in its normal form");
	if (text_of(p, j, name, "version", &version) < 0 ||
		text_of(p, j, name, "marker", &marker) < 0)
		return -1;
	rc = marker ? marker_holds(marker, &p->env, p->e) : 1;
	if (rc <= 0)
		return rc < 0 ? err_ctx(p->e, "%s: %s", p->name, name) : 0;
	if (version && pep440_parse(&v, version, strlen(version)) < 0)
		return bad(p, name, "version: expected a version (PEP 440)");
	if (version)
		version = arena_strdup(p->t->a, pep440_text(&v, normal));
	if (python_fits(p, j, name) < 0 || take_wheels(p, j, name, version) < 0)
		return -1;
	take_why(p, &p->out->v[p->out->n - 1]);
	return 0;
}

/* ---- the document ---- */

static int check_version(const struct pylock *p, const json_t *root)
{
	const char *version, *by;

	if (text_of(p, root, NULL, "lock-version", &version) < 0 ||
		text_of(p, root, NULL, "created-by", &by) < 0)
		return -1;
	if (!version || !by)
		return bad(p, NULL, "expected lock-version and created-by");
	if (!str_starts(version, "1.") || version[2 + strspn(version + 2, "0123456789")])
		return err_set(p->e, ERR_UNSUPPORTED,
			"SV054: %s: lock-version is '%.60s'; expected 1.0 or another 1.x", p->name,
			version);
	return 0;
}

static int check_environments(const struct pylock *p, const json_t *root)
{
	struct strings list;

	if (strings_of(p, root, "environments", &list) < 0)
		return -1;
	for (size_t i = 0; i < list.n; i++) {
		int rc = marker_holds(list.v[i], &p->env, p->e);

		if (rc != 0)
			return rc < 0 ? err_ctx(p->e, "%s: environments", p->name) : 0;
	}
	if (list.n == 0)
		return 0;
	err_set(p->e, ERR_USAGE,
		"SV052: %s: none of its %zu environments is Python %s on Linux, %s", p->name,
		list.n, p->env.python_version, p->env.machine);
	return err_hint(p->e, "lock again with the image's environment");
}

static int take_all(struct pylock *p, const json_t *root)
{
	const json_t *packages = json_object_get(root, "packages"), *j;
	size_t i;

	if (!json_is_object(root))
		return bad(p, NULL, "expected a table");
	if (check_version(p, root) < 0 || python_fits(p, root, NULL) < 0 ||
		check_environments(p, root) < 0 ||
		strings_of(p, root, "default-groups", &p->env.groups) < 0)
		return -1;
	if (!json_is_array(packages) || json_array_size(packages) > PACKAGES_MAX)
		return bad(p, NULL, "packages: expected an array of at most 20000 tables");
	list_needs(p, packages);
	json_array_foreach (packages, i, j)
		if (take_package(p, j) < 0)
			return -1;
	return 0;
}

int pylock_read(const struct python_target *t, const char *name, const char *folder,
	const char *text, size_t n, bool json, struct wheel_list *out, struct err *e)
{
	struct pylock p = {
		.t = t, .name = name, .folder = folder, .env = t->env, .out = out, .e = e};
	auto_json json_t *root = NULL;

	root = json ? json_parse(text, n, e) : toml_parse(name, text, n, e);
	if (!root)
		return json ? err_ctx(e, "SV054: %s", name) : err_ctx(e, "SV054");
	return take_all(&p, root);
}
