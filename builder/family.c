#include "builder/family.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "builder/document.h"
#include "builder/resolve.h"
#include "builder/rules.h"

char *manifests_folder(const char *dir)
{
	const char *slash = strrchr(dir, '/'), *last = slash ? slash + 1 : dir;

	if (str_eq(last, ".") || str_eq(last, ".."))
		return str_eq(dir, ".") ? mem_strdup("..") : mem_printf("%s/..", dir);
	if (!slash)
		return mem_strdup(".");
	return slash == dir ? mem_strdup("/") : mem_printf("%.*s", (int)(slash - dir), dir);
}

/* ---- paths beside a parent ---- */

/* The path in a string that names a local file, or NULL. */
static const char *local_path(const struct rule *rule, const char *s)
{
	if (rule->local == LOCAL_URL)
		return str_starts(s, "file:") ? s + strlen("file:") : NULL;
	if (rule->local == LOCAL_KEYRING && str_starts(s, "keyring:"))
		return NULL;
	return s;
}

/* Paths are relative to the manifest that was asked for; only those that are made here may lead to
 * the folder beside it. */
static void localize(struct family *f, struct member *m, struct value *v, const struct key *k)
{
	const char *path = v->kind == JSON_STRING && k->rule && k->rule->local
				   ? local_path(k->rule, v->text)
				   : NULL;

	for (size_t i = 0; (v->kind == JSON_OBJECT || v->kind == JSON_ARRAY) && i < v->n; i++) {
		/* of {"$replace": ...} too */
		bool op = v->v[i]->key && str_eq(v->v[i]->key, "$replace");
		struct key child = op ? *k : schema_child(k, v->v[i]->key);

		if (child.kind)
			localize(f, m, v->v[i], &child);
	}
	if (!path)
		return;
	if (str_starts(path, "../") && k->rule->ok(v->text)) {
		value_fault(v,
			(struct fault){.code = SV_PATH,
				.expected = "a file beside the manifest, or below its folder"},
			"not a clean path");
	} else if (m->name && k->rule->ok(v->text)) {
		v->text = arena_printf(
			f->arena, "%.*s../%s/%s", (int)(path - v->text), v->text, m->name, path);
		v->expanded = true;
	}
}

/* ---- reading ---- */

static void refuse(struct family *f, const struct value *at, const char *text)
{
	f->partial = true;
	value_fault(at, (struct fault){.code = SV_INHERIT}, "%s", text);
}

/* What is left of a parent's own keys when it is merged is checked with the child's; these are not.
 */
static void check_parent(struct family *f, const struct value *root)
{
	const struct value *schema = value_member(root, "schema"),
			   *from = value_member(root, "from");

	if (!value_text(schema) || !str_eq(schema->text, "svrun.image/1"))
		refuse(f, schema ? schema : root, "not a manifest svrun.image/1");
	if (from && from->kind != JSON_ARRAY)
		value_fault(from,
			(struct fault){.code = SV_TYPE, .expected = "an array of strings"},
			"wrong type");
	for (size_t i = 0; from && from->kind == JSON_ARRAY && i < from->n; i++)
		if (!value_text(from->v[i]) || !rule_from.ok(from->v[i]->text))
			value_fault(from->v[i],
				(struct fault){.code = SV_VALUE, .expected = rule_from.expected},
				"not a valid value");
}

static struct member *add(struct family *f, char *own_path, const char *name, const void *text,
	size_t n, const struct key *k)
{
	struct member *m = mem_alloc(sizeof(*m));

	f->v[f->n++] = m;
	m->path = own_path;
	m->name = name;
	m->origin.folder = name ? name : "";
	if (document_parse(&m->origin.doc, own_path, text, n, COMPLAINTS_MAX, &m->origin.report) <
		0) {
		f->partial = true;
		return m;
	}
	m->root = value_read(f->arena, &m->origin);
	if (m->root->kind != JSON_OBJECT) {
		f->partial = true;
		value_fault(m->root,
			(struct fault){.code = SV_TYPE,
				.expected = "an object",
				.got = m->origin.doc.root},
			"wrong type");
	} else if (name) {
		check_parent(f, m->root);
	}
	localize(f, m, m->root, k);
	return m;
}

/* "a -> b -> a" */
static char *chain(struct family *f, const struct member *child, const char *name)
{
	char *text = arena_strdup(f->arena, name);

	for (; child; child = child->child) {
		const char *own = child->name ? child->name : value_text_of(child->root, "name");

		text = arena_printf(f->arena, "%s -> %s", own ? own : child->path, text);
	}
	return text;
}

static const char *own_name(const struct member *m)
{
	return m->name ? m->name : value_text_of(m->root, "name");
}

static size_t generation(const struct member *m)
{
	size_t n = 0;

	for (; m->child; m = m->child)
		n++;
	return n;
}

/* A parent's text; 0: it is not one, which has been said. */
static int read_parent(
	struct family *f, const struct value *at, const char *path, struct buf *text, struct err *e)
{
	struct stat st;
	auto_fd int fd = sys_open(path, O_RDONLY | O_NONBLOCK, 0);

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EACCES)) {
		refuse(f, at, arena_printf(f->arena, "no manifest '%s': tried %s", at->text, path));
		return 0;
	}
	if (fd < 0 || sys_fstat(fd, &st) < 0)
		return err_sys(e, "open %s", path);
	if (!S_ISREG(st.st_mode) || st.st_size > MANIFEST_MAX) {
		refuse(f, at,
			arena_printf(f->arena, "%s: %s", path,
				S_ISREG(st.st_mode) ? "longer than the limit of 1048576 bytes"
						    : "not a regular file"));
		return 0;
	}
	return file_read_fd(fd, path, text, e) < 0 ? -1 : 1;
}

static void check_digest(struct family *f, const struct value *at, const struct member *m)
{
	const char *want = strchr(at->text, '@');
	auto_buf struct buf text = BUF_INIT(16 * m->origin.doc.text.len + 4096);
	char got[DIGEST_TEXT + 1];
	struct digest d;

	if (!want || !m->origin.doc.root)
		return;
	json_text(m->origin.doc.root, true, &text);
	d = digest_of(text.data, text.len);
	if (!str_eq(digest_text(&d, got), want + 1))
		refuse(f, at, arena_printf(f->arena, "%s has the digest %s", m->path, got));
}

static int visit(struct family *f, struct member *m, const struct key *k, struct err *e);

/* The parent that `at` names, found or read; NULL: refused, or -1 in *rc. */
static struct member *parent_of(
	struct family *f, const struct value *at, const struct key *k, int *rc, struct err *e)
{
	const char *name = arena_strndup(f->arena, at->text, strcspn(at->text, "@"));
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	char *path;

	for (size_t i = 0; i < f->n; i++)
		if (f->v[i]->name && str_eq(f->v[i]->name, name))
			return f->v[i];
	if (f->n == FAMILY_MAX) {
		refuse(f, at, "more than 64 manifests");
		return NULL;
	}
	path = str_eq(f->folder, ".") ? mem_printf("%s/manifest.json", name)
				      : mem_printf("%s/%s/manifest.json", f->folder, name);
	if (str_eq(path, f->v[0]->path)) {
		free(path);
		return f->v[0];
	}
	*rc = read_parent(f, at, path, &text, e);
	if (*rc <= 0) {
		free(path);
		return NULL;
	}
	return add(f, path, name, text.data ? text.data : "", text.len, k);
}

static int visit_parent(struct family *f, struct member *child, const struct value *at,
	const struct key *k, struct err *e)
{
	int rc = 0;
	struct member *m;

	if (!value_text(at) || !rule_from.ok(at->text))
		return 0; /* which the tables, or check_parent(), say */
	m = parent_of(f, at, k, &rc, e);
	if (!m)
		return rc < 0 ? -1 : 0;
	for (const struct member *c = child; c; c = c->child)
		if (c == m) {
			refuse(f, at,
				arena_printf(f->arena, "a circle: %s",
					chain(f, child, own_name(m) ? own_name(m) : at->text)));
			return 0;
		}
	check_digest(f, at, m);
	if (m->done)
		return 0;
	if (generation(child) == FAMILY_DEPTH) {
		refuse(f, at,
			arena_printf(f->arena, "more than 8 deep: %s", chain(f, child, at->text)));
		return 0;
	}
	m->child = child;
	rc = visit(f, m, k, e);
	m->child = NULL;
	return rc;
}

/* Read m's parents, then it is next in the order. */
static int visit(struct family *f, struct member *m, const struct key *k, struct err *e)
{
	const struct value *from = m->root ? value_member(m->root, "from") : NULL;

	for (size_t i = 0; from && from->kind == JSON_ARRAY && i < from->n && i < FAMILY_MAX; i++)
		if (visit_parent(f, m, from->v[i], k, e) < 0)
			return -1;
	m->done = true;
	if (m->root && m->root->kind == JSON_OBJECT)
		f->order[f->ordered++] = m;
	return 0;
}

int family_read(struct family *f, struct arena *a, const char *path, const void *text, size_t n,
	const struct key *k, struct err *e)
{
	const char *slash = strrchr(path, '/');
	auto_free char *dir = !slash          ? mem_strdup(".")
			      : slash == path ? mem_strdup("/")
					      : mem_printf("%.*s", (int)(slash - path), path);

	*f = (struct family){.arena = a, .folder = manifests_folder(dir)};
	return visit(f, add(f, mem_strdup(path), NULL, text, n, k), k, e);
}

void family_fini(struct family *f)
{
	for (size_t i = 0; i < f->n; i++) {
		report_fini(&f->v[i]->origin.report);
		json_doc_fini(&f->v[i]->origin.doc);
		free(f->v[i]->origin.lines);
		free(f->v[i]->path);
		free(f->v[i]);
	}
	free(f->folder);
}
