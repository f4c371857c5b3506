/* What is installed, as dpkg, pip and npm inside the image would tell, and the licences of it. What
 * the lock brought is an item already; what the base image, a step, or a package brought besides
 * becomes one. */
#include <string.h>

#include "base/str.h"
#include "builder/bill.h"
#include "builder/license.h"
#include "builder/purl.h"
#include "builder/python-name.h"
#include "builder/rootfs.h"
#include "images/packages.h"

enum { TEXT_MAX = 8 << 20, CLASSIFIERS_MAX = 16, DEPENDENCIES_MAX = 4096 };

struct finding {
	struct bill *b;
	const struct composed *c;
	struct rootfs r;
	bool no_database; /* of Debian packages */
};

/* A new item that an item there is brought along. */
static struct bill_item *found_item(struct finding *f, enum origin_kind kind, const char *name,
	const char *version, uint32_t via)
{
	struct bill *b = f->b;
	struct bill_item *it;

	mem_grow(&b->items, &b->cap, b->nitems);
	it = &b->items[b->nitems++];
	*it = (struct bill_item){.kind = kind,
		.name = arena_strdup(&b->arena, name),
		.version = arena_strdup(&b->arena, version),
		.installed = true,
		.via = via};
	return it;
}

/* 1 with the text of the file at path (relative), NUL-terminated; 0: none, or it is absurdly long.
 */
static int read_text(struct finding *f, const char *path, struct buf *b, struct err *e)
{
	struct err fault = {0};
	int rc;

	*b = BUF_INIT(TEXT_MAX);
	rc = rootfs_read(&f->r, path, b, &fault);
	if (rc > 0 && b->len == 0)
		rc = 0;
	if (rc >= 0 || (fault.kind == ERR_CORRUPT && b->len > TEXT_MAX - CHUNK_SIZE))
		return rc > 0;
	if (e)
		*e = fault;
	return -1;
}

/* ---- deb ---- */

static struct bill_item *find_deb(struct finding *f, const struct package *p, size_t *hint)
{
	struct bill *b = f->b;

	/* both lists are sorted by name, so that the next is where the last was found */
	for (size_t i = 0; i < f->c->norigins; i++) {
		size_t at = (*hint + i) % f->c->norigins;
		struct bill_item *it = &b->items[at];

		if (it->kind == ORIGIN_DEB && it->version && str_eq(it->name, p->name) &&
			str_eq(it->version, p->version) && str_eq(it->arch, p->where)) {
			*hint = at + 1;
			return it;
		}
	}
	return NULL;
}

static uint32_t origin_at(struct finding *f, const char *path)
{
	const struct node *n = tree_resolve(f->c->tree, path);

	return n ? n->origin : 0;
}

/* Of the base, or of a step that ran dpkg: the list of its files says who brought it. */
static struct bill_item *other_deb(struct finding *f, const struct package *p)
{
	auto_free char *list = mem_printf("var/lib/dpkg/info/%s.list", p->name),
		       *multi = mem_printf("var/lib/dpkg/info/%s:%s.list", p->name, p->where);
	uint32_t via = origin_at(f, list);
	struct purl url = {
		.type = "deb", .space = "debian", .name = p->name, .version = p->version};
	struct bill_item *it;

	if (via == 0)
		via = origin_at(f, multi);
	it = found_item(f, ORIGIN_DEB, p->name, p->version, via);
	it->arch = arena_strdup(&f->b->arena, p->where);
	url.qualifiers[0].key = "arch";
	url.qualifiers[0].value = it->arch;
	it->purl = purl_text(&f->b->arena, &url);
	return it;
}

static int deb_license(struct finding *f, const char *name, const char **license, struct err *e)
{
	auto_free char *path = mem_printf("usr/share/doc/%s/copyright", name);
	auto_buf struct buf b = {0};
	int rc = read_text(f, path, &b, e);

	if (rc > 0)
		*license = license_of_debian(&f->b->arena, b.data, b.len);
	return rc < 0 ? -1 : 0;
}

static int find_debs(struct finding *f, struct err *e)
{
	struct bill *b = f->b;
	struct packages l;
	size_t hint = 0;
	int rc = 0;

	/* an image without a database has what the lock has: nothing in it could take it away */
	for (size_t i = 0; i < f->c->norigins; i++)
		if (f->no_database && b->items[i].kind == ORIGIN_DEB) {
			b->items[i].installed = true;
			if (deb_license(f, b->items[i].name, &b->items[i].license, e) < 0)
				return -1;
		}
	if (packages_list(&l, f->c->tree, f->r.pool, e) < 0)
		return -1;
	for (size_t i = 0; rc == 0 && i < l.n; i++) {
		struct bill_item *it;

		if (!str_eq(l.v[i].kind, "deb"))
			continue;
		it = find_deb(f, &l.v[i], &hint);
		if (!it)
			it = other_deb(f, &l.v[i]);
		it->installed = true;
		rc = deb_license(f, l.v[i].name, &it->license, e);
	}
	packages_fini(&l);
	return rc;
}

/* ---- Python ---- */

/* Fields of core metadata, which look as those of a mail. */
struct metadata {
	char *name, *version, *license, *expression;
	char *classifiers[CLASSIFIERS_MAX];
	size_t nclassifiers;
};

static void take_field(struct metadata *m, char *line)
{
	const struct {
		const char *key;
		char **to;
	} fields[] = {{"Name: ", &m->name}, {"Version: ", &m->version}, {"License: ", &m->license},
		{"License-Expression: ", &m->expression}};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (str_starts(line, fields[i].key) && !*fields[i].to)
			*fields[i].to = line + strlen(fields[i].key);
	if (str_starts(line, "Classifier: License ::") && m->nclassifiers < CLASSIFIERS_MAX)
		m->classifiers[m->nclassifiers++] = line + strlen("Classifier: ");
}

/* Up to the empty line, behind which is the description. Cuts text. */
static void parse_metadata(struct metadata *m, char *text)
{
	for (char *line = text, *next; line && *line; line = next) {
		next = strchr(line, '\n');
		if (next) {
			if (next > line && next[-1] == '\r')
				next[-1] = '\0';
			*next++ = '\0';
		}
		if (!*line)
			break;
		take_field(m, line);
	}
}

static const char *python_license(struct arena *a, const struct metadata *m)
{
	const char *found = NULL;

	if (m->expression)
		return license_of_text(a, m->expression);
	for (size_t i = 0; !found && i < m->nclassifiers; i++)
		found = license_of_classifier(a, m->classifiers[i]);
	if (found && !str_starts(found, "LicenseRef-"))
		return found;
	/* some put the whole licence there */
	if (m->license && strlen(m->license) < 80) {
		const char *said = license_of_text(a, m->license);

		return said ? said : found;
	}
	return found;
}

/* Debian ships egg-info as a file, too. */
static bool is_metadata(const struct node *n)
{
	const char *up = n->parent ? n->parent->name : NULL;

	if (!up || !(str_eq(up, "site-packages") || str_eq(up, "dist-packages")))
		return false;
	if (str_ends(n->name, ".dist-info"))
		return n->a.type == NODE_DIR;
	return str_ends(n->name, ".egg-info");
}

static struct bill_item *wheel_item(
	struct finding *f, const struct metadata *m, const char *path, uint32_t origin)
{
	struct bill_item *it = &f->b->items[origin];
	const char *name = python_name_normal(&f->b->arena, m->name, strlen(m->name));
	struct purl p = {.type = "pypi", .version = m->version};

	if (!name)
		return NULL;
	p.name = name;
	/* a wheel of the lock that says it is itself */
	if (it->kind == ORIGIN_WHEEL && it->version && str_eq(it->name, name)) {
		it->installed = true;
	} else {
		it = found_item(f, ORIGIN_WHEEL, name, m->version, origin);
		it->purl = purl_text(&f->b->arena, &p);
	}
	it->path = arena_strdup(&f->b->arena, path);
	return it;
}

static int find_wheel(struct finding *f, struct node *n, struct err *e)
{
	static const char *const names[] = {"/METADATA", "/PKG-INFO", ""};
	char path[TREE_PATH_MAX + 1];
	struct metadata m = {0};
	auto_buf struct buf b = {0};
	struct bill_item *it;
	int rc = 0;

	node_path(n, path);
	for (size_t i = 0; rc == 0 && i < sizeof(names) / sizeof(names[0]); i++) {
		auto_free char *file = mem_printf("%s%s", path, names[i]);

		buf_fini(&b);
		rc = read_text(f, file, &b, e);
	}
	if (rc <= 0)
		return rc;
	parse_metadata(&m, b.data);
	if (!m.name || !m.version) /* pip leaves it out, too */
		return 0;
	if (n->a.type == NODE_DIR && n->child)
		n = n->child; /* the folder's last owner need not be who brought its files */
	it = wheel_item(f, &m, path, n->origin);
	if (it)
		it->license = python_license(&f->b->arena, &m);
	return 0;
}

/* ---- npm ---- */

/* Where is it: ROOT/node_modules/NAME[/node_modules/NAME...], the names perhaps scoped? A folder in
 * between belongs to a package's own files (its tests, say), which npm does not look at. */
static bool is_placed(const char *path)
{
	const char *at = strstr(path, "node_modules/");

	while (at) {
		at += strlen("node_modules/");
		if (*at == '@')
			at = strchr(at, '/') ? strchr(at, '/') + 1 : at + strlen(at);
		at += strcspn(at, "/");
		if (!*at)
			return true;
		if (!str_starts(++at, "node_modules/"))
			return false;
	}
	return false;
}

static const char *npm_license(struct arena *a, const json_t *doc)
{
	const json_t *l = json_object_get(doc, "license");

	if (!l)
		l = json_array_get(json_object_get(doc, "licenses"), 0);
	if (json_is_object(l))
		l = json_object_get(l, "type");
	return json_is_string(l) ? license_of_text(a, json_string_value(l)) : NULL;
}

static void add_why(struct finding *f, struct bill_item *it, const char *who)
{
	const char **v = arena_alloc(&f->b->arena, (it->why.n + 1) * sizeof(*v));

	for (size_t i = 0; i < it->why.n; i++)
		if (str_eq(it->why.v[i], who))
			return;
	if (it->why.n)
		memcpy(v, it->why.v, it->why.n * sizeof(*v));
	v[it->why.n] = who;
	it->why.v = v;
	it->why.n++;
}

struct placed {
	const char *path;
	uint32_t item;
};

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct placed *)a)->path, ((const struct placed *)b)->path);
}

/* All npm items by their folder. */
struct places {
	struct placed *v;
	size_t n;
};

static struct bill_item *item_at(struct finding *f, const struct places *l, const char *path)
{
	const struct placed key = {.path = path},
			    *found =
				    l->n ? bsearch(&key, l->v, l->n, sizeof(*l->v), by_path) : NULL;

	return found ? &f->b->items[found->item] : NULL;
}

/* Node's resolution: in the package's own node_modules, else in that of each folder above. */
static void needs(
	struct finding *f, const struct places *l, const struct bill_item *who, const char *name)
{
	auto_free char *dir = mem_strdup(who->path);

	for (;;) {
		auto_free char *path = mem_printf("%s/node_modules/%s", dir, name);
		struct bill_item *it = item_at(f, l, path);
		char *up;

		if (it) {
			add_why(f, it, who->path);
			return;
		}
		up = strstr(dir, "/node_modules/") ? strrchr(dir, '/') : NULL;
		if (!up)
			return;
		*up = '\0';
		if (str_ends(dir, "/node_modules"))
			dir[strlen(dir) - strlen("/node_modules")] = '\0';
	}
}

static int read_npm(struct finding *f, const struct places *l, struct bill_item *it, struct err *e)
{
	static const char *const lists[] = {
		"dependencies", "optionalDependencies", "peerDependencies"};
	auto_free char *path = mem_printf("%s/package.json", it->path);
	auto_buf struct buf b = {0};
	auto_json json_t *doc = NULL;
	const char *name;
	size_t count = 0;
	json_t *v;
	int rc = read_text(f, path, &b, e);

	if (rc <= 0)
		return rc;
	it->installed = true;
	doc = json_parse(b.data, b.len, NULL);
	it->license = npm_license(&f->b->arena, doc);
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		json_object_foreach (json_object_get(doc, lists[i]), name, v)
			if (count++ < DEPENDENCIES_MAX)
				needs(f, l, it, name);
	return 0;
}

/* What is there beside the lock's: bundled with a package, or from the base or a step. */
static int find_npm(struct finding *f, const struct node *n, struct err *e)
{
	char path[TREE_PATH_MAX + 1];
	auto_buf struct buf b = {0};
	auto_json json_t *doc = NULL;
	const char *name, *version;
	const struct bill_item *by = &f->b->items[n->origin];
	struct bill_item *it;
	int rc;

	node_path(n, path);
	*strrchr(path, '/') = '\0';
	if (!is_placed(path) || by->kind == ORIGIN_DEB ||
		(by->kind == ORIGIN_NPM && by->path && str_eq(by->path, path)))
		return 0;
	strncat(path, "/package.json", sizeof(path) - strlen(path) - 1);
	rc = read_text(f, path, &b, e);
	if (rc <= 0)
		return rc;
	*strrchr(path, '/') = '\0';
	doc = json_parse(b.data, b.len, NULL);
	name = json_string_value(json_object_get(doc, "name"));
	version = json_string_value(json_object_get(doc, "version"));
	if (!name || !version)
		return 0;
	it = found_item(f, ORIGIN_NPM, name, version, n->origin);
	it->path = arena_strdup(&f->b->arena, path);
	it->purl = purl_npm(&f->b->arena, it->name, it->version);
	return 0;
}

static int read_npms(struct finding *f, struct err *e)
{
	struct bill *b = f->b;
	struct places l = {.v = mem_array(b->nitems, sizeof(*l.v))};
	int rc = 0;

	for (size_t i = 0; i < b->nitems; i++)
		if (b->items[i].kind == ORIGIN_NPM && b->items[i].path)
			l.v[l.n++] = (struct placed){b->items[i].path, (uint32_t)i};
	if (l.n)
		qsort(l.v, l.n, sizeof(*l.v), by_path);
	for (size_t i = 0; rc == 0 && i < l.n; i++)
		rc = read_npm(f, &l, &b->items[l.v[i].item], e);
	for (size_t i = 0; i < l.n; i++) { /* nobody needs it: it was asked for */
		struct bill_item *it = &b->items[l.v[i].item];

		if (it->why.n == 0 && it->via == l.v[i].item)
			add_why(f, it, "manifest:/node");
	}
	free(l.v);
	return rc;
}

/* ---- all ---- */

int bill_packages(struct bill *b, const struct manifest_apt *apt, const struct composed *c,
	struct pool *pool, struct err *e)
{
	struct finding f = {b, c, {.tree = c->tree, .pool = pool},
		.no_database = apt->database == DATABASE_NONE};

	if (find_debs(&f, e) < 0)
		return -1;
	for (struct node *n = tree_root(c->tree); n; n = tree_next(n)) {
		if (is_metadata(n) && find_wheel(&f, n, e) < 0)
			return -1;
		if (str_eq(n->name, "package.json") && find_npm(&f, n, e) < 0)
			return -1;
	}
	return read_npms(&f, e);
}
