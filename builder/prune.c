#include "builder/prune.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "images/glob.h"
#include "builder/rootfs.h"

enum { PATTERNS_MAX = 64, CONFIG_MAX = 64 << 10, LANG_MAX = 32 };

/* Globs over absolute paths, where ** crosses folders. */
struct rule {
	const char *name;
	const char *exclude[5], *include[5]; /* NULL-terminated */
};

/* ${LANG}: the language behind "locale:!". Licence texts always stay. */
static const struct rule rules[] = {
	{"apt-lists", {"/var/lib/apt/lists/**"}, {"/var/lib/apt/lists/partial"}},
	{"doc", {"/usr/share/doc/**", "/usr/share/lintian/**", "/usr/share/doc-base/**"},
		{"/usr/share/doc/*/copyright"}},
	{"man", {"/usr/share/man/**"}, {NULL}},
	{"info", {"/usr/share/info/**"}, {NULL}},
	{"locale:!", {"/usr/share/locale/**"},
		{"/usr/share/locale/locale.alias", "/usr/share/locale/${LANG}/**",
			"/usr/share/locale/${LANG}_*/**", "/usr/share/locale/${LANG}@*/**"}},
	{"pyc", {"/usr/**/__pycache__/**", "/usr/**/__pycache__", "/usr/**.pyc"}, {NULL}},
};

struct prune {
	struct arena arena;
	const char *exclude[PATTERNS_MAX], *include[PATTERNS_MAX];
	size_t nexclude, ninclude;
};

static const char *fill_lang(struct arena *a, const char *pattern, const char *lang)
{
	const char *at = strstr(pattern, "${LANG}");

	if (!at)
		return pattern;
	return arena_printf(a, "%.*s%s%s", (int)(at - pattern), pattern, lang, at + 7);
}

static int add_rule(struct prune *p, const char *name, struct err *e)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		const struct rule *r = &rules[i];
		bool locale = str_ends(r->name, "!");
		const char *lang =
			locale && str_starts(name, r->name) ? name + strlen(r->name) : "";

		if (!(locale ? *lang != '\0' : str_eq(name, r->name)))
			continue;
		if (strlen(lang) > LANG_MAX || strpbrk(lang, "/*?[]\n"))
			return err_set(e, ERR_USAGE, "/apt/prune: '%s' is no language", lang);
		if (p->nexclude + 5 > PATTERNS_MAX || p->ninclude + 5 > PATTERNS_MAX)
			return err_set(e, ERR_USAGE, "/apt/prune: too many entries");
		for (size_t k = 0; k < 5 && r->exclude[k]; k++)
			p->exclude[p->nexclude++] = r->exclude[k];
		for (size_t k = 0; k < 5 && r->include[k]; k++)
			p->include[p->ninclude++] = fill_lang(&p->arena, r->include[k], lang);
		return 0;
	}
	return err_set(e, ERR_USAGE, "/apt/prune: unknown name '%s'", name);
}

bool prune_matches(const struct prune *p, const char *path)
{
	char full[TREE_PATH_MAX + 2];

	if (p->nexclude == 0)
		return false;
	snprintf(full, sizeof(full), "/%s", path);
	for (size_t i = 0; i < p->ninclude; i++)
		if (glob_matches(p->include[i], full))
			return false;
	for (size_t i = 0; i < p->nexclude; i++)
		if (glob_matches(p->exclude[i], full))
			return true;
	return false;
}

/* Packages share documentation by a link; what it leads to holds the licence. */
static bool is_doc_link(const struct node *n, const char *path)
{
	return n->a.type == NODE_SYMLINK && str_starts(path, "usr/share/doc/") &&
	       !strchr(path + 14, '/');
}

static void remove_one(const struct rootfs *r, const struct prune *p, struct node *n)
{
	char path[TREE_PATH_MAX + 1];

	for (;;) {
		struct node *parent = n->parent;

		tree_remove(r->tree, n);
		if (parent->child || !parent->parent)
			return;
		if (!prune_matches(p, node_path(parent, path)))
			return;
		n = parent;
	}
}

static void remove_matching(const struct rootfs *r, const struct prune *p)
{
	struct found {
		struct node *node;
	} *v = NULL;
	size_t n = 0, cap = 0;
	char path[TREE_PATH_MAX + 1];

	for (struct node *k = tree_root(r->tree); k; k = tree_next(k)) {
		if (k->a.type == NODE_DIR)
			continue;
		if (!prune_matches(p, node_path(k, path)) || is_doc_link(k, path))
			continue;
		mem_grow(&v, &cap, n);
		v[n++].node = k;
	}
	for (size_t i = 0; i < n; i++)
		remove_one(r, p, v[i].node);
	free(v);
}

/* dpkg's * crosses folders, so ours become one. Source: dpkg(1) --path-exclude. */
static void put_pattern(struct buf *b, const char *option, const char *pattern)
{
	buf_printf(b, "path-%s=", option);
	for (const char *s = pattern; *s; s++)
		if (!(s[0] == '*' && s[1] == '*'))
			buf_printf(b, "%c", *s);
	buf_printf(b, "\n");
}

static int write_config(const struct rootfs *r, const struct prune *p, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(CONFIG_MAX);

	buf_printf(&b, "# what the image was built without stays out of what is installed later\n");
	for (size_t i = 0; i < p->nexclude; i++)
		if (!str_starts(p->exclude[i], "/var/"))
			put_pattern(&b, "exclude", p->exclude[i]);
	for (size_t i = 0; i < p->ninclude; i++)
		if (!str_starts(p->include[i], "/var/"))
			put_pattern(&b, "include", p->include[i]);
	return rootfs_file(r, "etc/dpkg/dpkg.cfg.d/svrun-prune", b.data, b.len,
		(struct owner){.mode = 0644}, e);
}

struct prune *prune_new(const struct strings *what, struct err *e)
{
	struct prune *p = mem_alloc(sizeof(*p));

	for (size_t i = 0; i < what->n; i++)
		if (add_rule(p, what->v[i], e) < 0) {
			prune_free(p);
			return NULL;
		}
	return p;
}

void prune_free(struct prune *p)
{
	if (!p)
		return;
	arena_fini(&p->arena);
	free(p);
}

int prune_tree(const struct rootfs *r, const struct prune *p, struct err *e)
{
	if (p->nexclude == 0)
		return 0;
	remove_matching(r, p);
	return write_config(r, p, e);
}
