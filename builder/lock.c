#include "builder/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "builder/document.h"
#include "builder/local.h"
#include "builder/lock-keys.h"

enum {
	TEXT_MAX = 32 << 20,
	COMPLAINTS_MAX = 1, /* machine-written: the first one tells where it went wrong */
};

void lock_fini(struct lock *l)
{
	arena_fini(&l->arena);
	*l = (struct lock){0};
}

/* ---- reading ---- */

static struct digest text_digest(const json_t *root, size_t size)
{
	auto_buf struct buf b = BUF_INIT(16 * size + 4096);

	json_text(root, true, &b);
	return digest_of(b.data, b.len);
}

static void read_lock(struct lock *l, const struct json_doc *d, struct report *report)
{
	struct reader r = {
		.arena = &l->arena, .r = report, .pointer = BUF_INIT(2 * d->text.len + 65536)};
	const char *manifest = json_string_value(json_object_get(d->root, "manifestDigest"));

	schema_read(&r, &lock_schema, d->root, l);
	lock_check_order(&r, l);
	buf_fini(&r.pointer);
	if (report->total == 0 && digest_parse(&l->manifest, manifest, NULL) == 0)
		l->digest = text_digest(d->root, d->text.len);
}

int lock_parse(struct lock *l, const char *name, const void *text, size_t n, struct err *e)
{
	struct complaints c = {0};
	struct report report;
	struct json_doc d;

	*l = (struct lock){0};
	if (n > TEXT_MAX)
		return err_set(
			e, ERR_CORRUPT, "%s: longer than the limit of %d bytes", name, TEXT_MAX);
	if (document_parse(&d, name, text, n, COMPLAINTS_MAX, &report) == 0)
		read_lock(l, &d, &report);
	report_finish(&report, &c);
	report_fini(&report);
	json_doc_fini(&d);
	if (c.count) {
		lock_fini(l);
		err_set(e, ERR_CORRUPT, "%.*s", (int)strcspn(c.text.data, "\n"), c.text.data);
		err_hint(e, "it is machine-written: make it again with svrun image lock");
	}
	complaints_fini(&c);
	return l->platform ? 0 : -1;
}

int lock_load(struct lock *l, const char *dir, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(TEXT_MAX);
	auto_free char *path = mem_printf("%s/lock.json", dir);
	auto_fd int fd = sys_open(path, O_RDONLY | O_NONBLOCK, 0);
	struct stat st;

	*l = (struct lock){0};
	if (fd < 0 && errno == ENOENT) {
		err_set(e, ERR_NOT_FOUND, "%s: the inputs are not locked yet", path);
		return err_hint(e, "svrun image lock %s", dir);
	}
	if (fd < 0 || sys_fstat(fd, &st) < 0)
		return err_sys(e, "open %s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_USAGE, "%s: not a regular file", path);
	if (file_read_fd(fd, path, &text, e) < 0)
		return -1;
	return lock_parse(l, path, text.data ? text.data : "", text.len, e);
}

/* ---- does it belong to the manifest? ---- */

/* The manifest's keys that name inputs. */
struct digest lock_manifest_digest(const struct manifest *m)
{
	static const char *const keys[] = {"apt", "node", "models"};
	auto_json json_t *parts = json_object();
	json_t *from = json_array();

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		json_t *v = json_object_get(m->doc.root, keys[i]);

		if (v)
			json_object_set(parts, keys[i], v);
	}
	for (size_t i = 0; i < m->nfiles; i++)
		if (m->files[i].from)
			json_array_append_new(from, json_string(m->files[i].from));
	json_object_set_new(parts, "files", from);
	return text_digest(parts, m->doc.text.len);
}

static bool pins(const struct lock *l, const char *path)
{
	const struct lock_file key = {.path = path};

	return l->nfiles && bsearch(&key, l->files, l->nfiles, sizeof(key), lock_file_compare);
}

/* A local input of m that l does not pin, or NULL. A lock may have been edited. */
static const char *unpinned(const struct lock *l, const struct manifest *m, struct arena *a)
{
	for (size_t i = 0; i < m->nfiles; i++)
		if (m->files[i].from && !pins(l, m->files[i].from))
			return m->files[i].from;
	if (m->node.present && !pins(l, m->node.lock))
		return m->node.lock;
	for (size_t i = 0; i < m->nmodels; i++)
		for (size_t k = 0; m->models[i].source == MODEL_FILE && k < m->models[i].nfiles;
			k++) {
			const char *path =
				local_model_path(a, &m->models[i], &m->models[i].files[k]);

			if (!pins(l, path))
				return path;
		}
	return NULL;
}

int lock_check(const struct lock *l, const struct manifest *m, struct err *e)
{
	struct digest d = lock_manifest_digest(m);
	struct arena a = {0};
	const char *missing = unpinned(l, m, &a);
	int rc = 0;

	if (!str_eq(l->platform, manifest_platform()))
		rc = err_set(e, ERR_USAGE, "%s/lock.json is for %s, this machine builds %s", m->dir,
			l->platform, manifest_platform());
	else if (!digest_eq(&d, &l->manifest))
		rc = err_set(e, ERR_USAGE,
			"%s: apt, node, models or files.from changed since lock.json was made",
			m->path);
	else if (missing || m->apt.present != (l->ndebs > 0))
		rc = err_set(e, ERR_USAGE, "%s/lock.json does not pin %s", m->dir,
			missing ? missing : "the packages that the manifest asks for");
	arena_fini(&a);
	return rc < 0 ? err_hint(e, "svrun image lock %s", m->dir) : 0;
}

/* ---- writing ---- */

static json_t *sha256_json(const struct digest *d)
{
	char hex[DIGEST_HEX + 1];

	return json_string(digest_hex(d, hex));
}

static json_t *strings_json(const struct strings *s)
{
	json_t *a = json_array();

	for (size_t i = 0; i < s->n; i++)
		json_array_append_new(a, json_string(s->v[i]));
	return a;
}

static json_t *index_json(const void *p)
{
	const struct lock_index *x = p;
	json_t *o = json_pack("{s:s, s:s, s:s}", "uri", x->uri, "suite", x->suite, "date", x->date);

	json_object_set_new(o, "signedBy", strings_json(&x->signed_by));
	json_object_set_new(o, "sha256", sha256_json(&x->release));
	return o;
}

static json_t *deb_json(const void *p)
{
	const struct lock_deb *d = p;
	json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:b}", "name", d->name, "version",
		d->version, "arch", d->arch, "url", d->url, "source", d->source, "size",
		(json_int_t)d->size, "essential", (int)d->essential);

	json_object_set_new(o, "sha256", sha256_json(&d->sha256));
	json_object_set_new(o, "why", strings_json(&d->why));
	return o;
}

static json_t *npm_json(const void *p)
{
	const struct lock_npm *n = p;
	json_t *bin = json_object(),
	       *o = json_pack("{s:s, s:s, s:s, s:s, s:s}", "path", n->path, "name", n->name,
		       "version", n->version, "url", n->url, "integrity", n->integrity);

	for (size_t i = 0; i < n->bin.n; i++)
		json_object_set_new(bin, n->bin.v[i].name, json_string(n->bin.v[i].value));
	json_object_set_new(o, "bin", bin);
	return o;
}

static json_t *file_json(const void *p)
{
	const struct lock_file *f = p;
	json_t *o = json_pack("{s:s, s:I}", "path", f->path, "size", (json_int_t)f->size);

	json_object_set_new(o, "sha256", sha256_json(&f->sha256));
	return o;
}

/* The array of n structs as JSON, in the order that lock_check_order() wants. */
static json_t *sorted_json(const void *v, size_t n, size_t size,
	int (*compare)(const void *, const void *), json_t *(*element)(const void *))
{
	auto_free char *copy = mem_dup(v ? v : "", n * size);
	json_t *a = json_array();

	if (n)
		qsort(copy, n, size, compare);
	for (size_t i = 0; i < n; i++)
		json_array_append_new(a, element(copy + i * size));
	return a;
}

static json_t *lock_json(const struct lock *l)
{
	char manifest[DIGEST_TEXT + 1];
	json_t *apt = json_object(), *node = json_object(), *o;

	json_object_set_new(apt, "indexes",
		sorted_json(l->indexes, l->nindexes, sizeof(*l->indexes), lock_index_compare,
			index_json));
	json_object_set_new(apt, "packages",
		sorted_json(l->debs, l->ndebs, sizeof(*l->debs), lock_deb_compare, deb_json));
	json_object_set_new(node, "packages",
		sorted_json(l->npms, l->nnpms, sizeof(*l->npms), lock_npm_compare, npm_json));
	o = json_pack("{s:s, s:s, s:s, s:o, s:o}", "schema", "svrun.lock/1", "manifestDigest",
		digest_text(&l->manifest, manifest), "platform", l->platform, "apt", apt, "node",
		node);
	json_object_set_new(o, "files",
		sorted_json(l->files, l->nfiles, sizeof(*l->files), lock_file_compare, file_json));
	return o;
}

void lock_text(const struct lock *l, struct buf *b)
{
	auto_json json_t *o = lock_json(l);

	json_text(o, false, b);
}

int lock_save(const struct lock *l, const char *dir, struct err *e)
{
	auto_free char *path = mem_printf("%s/lock.json", dir);
	auto_buf struct buf b = BUF_INIT(4 * (size_t)TEXT_MAX);
	struct lock again;
	bool same;

	lock_text(l, &b);
	/* what a build would refuse must not become a lock */
	if (lock_parse(&again, path, b.data, b.len, e) < 0)
		return err_ctx(e, "the new lock");
	same = again.nindexes == l->nindexes && again.ndebs == l->ndebs &&
	       again.nnpms == l->nnpms && again.nfiles == l->nfiles;
	lock_fini(&again);
	if (!same)
		return err_set(e, ERR_CORRUPT, "%s: a text that is not UTF-8", path);
	return file_write(AT_FDCWD, path, b.data, b.len, 0644, e);
}
