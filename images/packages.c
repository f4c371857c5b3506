#include "images/packages.h"

#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/str.h"
#include "images/export.h"

#define BLANKS " \t\r"

enum { STATUS_MAX = 128 << 20, PACKAGE_JSON_MAX = 4 << 20 };

struct listing {
	struct packages *l;
	struct tree *t;
	struct pool *pool;
};

static struct package *add(struct listing *x, const char *kind, const char *name, const char *where,
	const char *version)
{
	struct packages *l = x->l;

	mem_grow(&l->v, &l->cap, l->n);
	l->v[l->n] = (struct package){.kind = kind,
		.name = arena_strdup(&l->arena, name),
		.where = arena_strdup(&l->arena, where),
		.version = arena_strdup(&l->arena, version)};
	return &l->v[l->n++];
}

/* ---- dpkg ---- */

struct paragraph {
	char *package, *version, *arch, *status, *source;
};

static void end_paragraph(struct listing *x, struct paragraph *p)
{
	/* of what was removed, only its configuration is left; status.d has no such line */
	bool installed = !p->status || str_ends(p->status, " installed");

	if (p->package && p->version && installed) {
		struct package *got = add(x, "deb", p->package, p->arch ? p->arch : "", p->version);

		if (p->source)
			got->source = arena_strdup(&x->l->arena, p->source);
	}
	*p = (struct paragraph){0};
}

static char *trimmed(char *s)
{
	size_t n;

	s += strspn(s, BLANKS);
	for (n = strlen(s); n && strchr(BLANKS, s[n - 1]);)
		n--;
	s[n] = '\0';
	return s;
}

static void take_field(struct paragraph *p, char *line)
{
	const struct {
		const char *key;
		char **to;
	} fields[] = {{"Package", &p->package}, {"Version", &p->version},
		{"Architecture", &p->arch}, {"Status", &p->status}, {"Source", &p->source}};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		size_t n = strlen(fields[i].key);

		if (!*fields[i].to && strncasecmp(line, fields[i].key, n) == 0 && line[n] == ':')
			*fields[i].to = trimmed(line + n + 1);
	}
}

/* deb-src-control(5)'s paragraphs; text is cut into lines. A zero byte ends a line, not the text:
 * nothing behind it may be hidden from who looks for it. */
static void parse_status(struct listing *x, char *text, size_t n)
{
	struct paragraph p = {0};
	char *end = text + n;

	for (char *line = text, *next; line < end; line = next) {
		next = memchr(line, '\n', (size_t)(end - line));
		if (next)
			*next++ = '\0';
		else
			next = end;
		if (line[strspn(line, BLANKS)])
			take_field(&p, line);
		else
			end_paragraph(x, &p);
	}
	end_paragraph(x, &p);
}

static int list_status(struct listing *x, const struct node *n, struct err *e)
{
	auto_buf struct buf b = {0};
	int rc = export_read_small(x->pool, n, STATUS_MAX, &b, e);

	if (rc > 0)
		parse_status(x, b.data, b.len);
	return rc < 0 ? -1 : 0;
}

static int list_debs(struct listing *x, struct err *e)
{
	struct node *d = tree_resolve(x->t, "var/lib/dpkg/status.d");

	if (list_status(x, tree_resolve(x->t, "var/lib/dpkg/status"), e) < 0)
		return -1;
	for (struct node *n = d && d->a.type == NODE_DIR ? d->child : NULL; n; n = n->next)
		if (!str_ends(n->name, ".md5sums") && list_status(x, n, e) < 0)
			return -1;
	return 0;
}

/* ---- npm ---- */

/* node_modules/NAME/package.json or node_modules/@SCOPE/NAME/package.json */
static bool is_npm_package(const struct node *n)
{
	const struct node *dir = n->parent, *up = dir ? dir->parent : NULL;

	if (!up || !str_eq(n->name, "package.json"))
		return false;
	if (up->name[0] == '@')
		up = up->parent;
	return up && str_eq(up->name, "node_modules");
}

static int list_npm(struct listing *x, const struct node *n, struct err *e)
{
	auto_buf struct buf b = {0};
	auto_json json_t *doc = NULL;
	const char *name, *version;
	char path[TREE_PATH_MAX + 1];
	int rc = export_read_small(x->pool, n, PACKAGE_JSON_MAX, &b, e);

	if (rc <= 0)
		return rc;
	doc = json_parse(b.data, b.len, NULL);
	name = json_string_value(json_object_get(doc, "name"));
	version = json_string_value(json_object_get(doc, "version"));
	if (name && version)
		add(x, "npm", name, node_path(n->parent, path), version);
	return 0;
}

/* ---- Python ---- */

/* NAME-VERSION.dist-info, NAME-VERSION[-py3.11].egg-info */
static void list_python(struct listing *x, const struct node *n)
{
	char name[TREE_NAME_MAX + 1], path[TREE_PATH_MAX + 1], *dash, *py;

	if (n->a.type != NODE_DIR ||
		(!str_ends(n->name, ".dist-info") && !str_ends(n->name, ".egg-info")))
		return;
	memcpy(name, n->name, strlen(n->name) + 1);
	*strrchr(name, '.') = '\0';
	py = strstr(name, "-py");
	if (py && str_ends(n->name, ".egg-info"))
		*py = '\0';
	dash = strchr(name, '-');
	if (!dash || dash == name || !dash[1])
		return;
	*dash = '\0';
	add(x, "python", name, node_path(n->parent, path), dash + 1);
}

/* ---- all ---- */

int package_compare(const struct package *a, const struct package *b)
{
	int rc = strcmp(a->kind, b->kind);

	rc = rc ? rc : strcmp(a->name, b->name);
	rc = rc ? rc : strcmp(a->where, b->where);
	return rc < 0 ? -1 : rc > 0;
}

static int by_all(const void *a, const void *b)
{
	const struct package *x = a, *y = b;
	int rc = package_compare(x, y);

	return rc ? rc : strcmp(x->version, y->version);
}

int packages_list(struct packages *l, struct tree *t, struct pool *p, struct err *e)
{
	struct listing x = {.l = l, .t = t, .pool = p};

	*l = (struct packages){0};
	if (list_debs(&x, e) < 0)
		return err_ctx(e, "list of packages");
	for (struct node *n = tree_root(t); n; n = tree_next(n)) {
		list_python(&x, n);
		if (is_npm_package(n) && list_npm(&x, n, e) < 0)
			return err_ctx(e, "list of packages");
	}
	if (l->n)
		qsort(l->v, l->n, sizeof(*l->v), by_all);
	return 0;
}

void packages_fini(struct packages *l)
{
	arena_fini(&l->arena);
	free(l->v);
	*l = (struct packages){0};
}
