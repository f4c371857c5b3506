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
#include "builder/lock-pins.h"

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

	schema_read(&r, &lock_schema, d->root, l);
	lock_check_order(&r, l);
	buf_fini(&r.pointer);
	if (report->total == 0)
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

static int load_path(struct lock *l, const char *path, const char *hint, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(TEXT_MAX);
	auto_fd int fd = sys_open(path, O_RDONLY | O_NONBLOCK, 0);
	struct stat st;

	*l = (struct lock){0};
	if (fd < 0 && errno == ENOENT) {
		err_set(e, ERR_NOT_FOUND, "%s: the inputs are not locked yet", path);
		return err_hint(e, "svrun image lock %s", hint);
	}
	if (fd < 0 || sys_fstat(fd, &st) < 0)
		return err_sys(e, "open %s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_USAGE, "%s: not a regular file", path);
	if (file_read_fd(fd, path, &text, e) < 0)
		return -1;
	return lock_parse(l, path, text.data ? text.data : "", text.len, e);
}

int lock_load(struct lock *l, const char *dir, struct err *e)
{
	auto_free char *path = mem_printf("%s/lock.json", dir);

	return load_path(l, path, dir, e);
}

char *lock_path(const struct manifest *m)
{
	auto_free char *platform = mem_strdup(m->platform ? m->platform : manifest_platform());
	bool foreign = !str_eq(platform, manifest_platform());

	for (char *p = platform; *p; p++)
		if (*p == '/')
			*p = '-';
	return mem_printf("%s/lock%s%s%s%s%s%s.json", m->dir, m->matrix ? "." : "",
		m->matrix ? m->matrix : "", m->mode ? "." : "", m->mode ? m->mode : "",
		foreign ? "." : "", foreign ? platform : "");
}

/* Words of a command that has the choice that m was loaded with: "manifests/ocr --mode cpu". */
static char *command_words(const struct manifest *m)
{
	bool foreign = m->platform && !str_eq(m->platform, manifest_platform());

	return mem_printf("%s%s%s%s%s%s%s", m->dir, m->matrix ? " --matrix " : "",
		m->matrix ? m->matrix : "", m->mode ? " --mode " : "", m->mode ? m->mode : "",
		foreign ? " --platform " : "", foreign ? m->platform : "");
}

int lock_load_of(struct lock *l, const struct manifest *m, struct err *e)
{
	auto_free char *path = lock_path(m), *words = command_words(m);

	return load_path(l, path, words, e);
}

/* ---- does it belong to the manifest? ---- */

/* What may be done with a model changes nothing of what it is. */
static json_t *without_licenses(const json_t *models)
{
	json_t *out = json_array(), *v;
	size_t i;

	json_array_foreach ((json_t *)(uintptr_t)models, i, v) {
		json_t *model = json_copy(v);

		json_object_del(model, "license");
		json_array_append_new(out, model);
	}
	return out;
}

/* The manifest's keys that name inputs. */
struct digest lock_manifest_digest(const struct manifest *m)
{
	static const char *const keys[] = {"apt", "python", "node", "sources"};
	const json_t *models = json_object_get(m->doc.root, "models");
	auto_json json_t *parts = json_object();
	json_t *from = json_array();

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		json_t *v = json_object_get(m->doc.root, keys[i]);

		if (v)
			json_object_set(parts, keys[i], v);
	}
	if (models)
		json_object_set_new(parts, "models", without_licenses(models));
	for (size_t i = 0; i < m->nfiles; i++)
		if (m->files[i].from)
			json_array_append_new(from, json_string(m->files[i].from));
	json_object_set_new(parts, "files", from);
	if (m->base.type != BASE_SCRATCH)
		json_object_set(parts, "base", json_object_get(m->doc.root, "base"));
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
	if (m->python.present && m->python.lock && !pins(l, m->python.lock))
		return m->python.lock;
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

static int check(const struct lock *l, const struct manifest *m, const char *path, struct arena *a,
	struct err *e)
{
	struct digest d = lock_manifest_digest(m);
	const char *platform = m->platform ? m->platform : manifest_platform();
	const char *missing = unpinned(l, m, a);

	if (!str_eq(l->platform, platform))
		return err_set(
			e, ERR_USAGE, "%s is for %s, not for %s", path, l->platform, platform);
	if (!digest_eq(&d, &l->manifest))
		return err_set(e, ERR_USAGE,
			"%s: what names its inputs (base, apt, python, node, sources, models, "
			"files.from) changed since %s was made",
			m->path, path);
	if (m->apt.present != (l->ndebs > 0))
		missing = "the packages that the manifest asks for";
	if (l->base.present != (m->base.type == BASE_OCI))
		missing = "the base image";
	if (!missing)
		missing = lock_pins_differ(l, m, a);
	return missing ? err_set(e, ERR_USAGE, "%s does not pin %s", path, missing) : 0;
}

int lock_check(const struct lock *l, const struct manifest *m, struct err *e)
{
	auto_free char *path = lock_path(m), *words = command_words(m);
	struct arena a = {0};
	int rc = check(l, m, path, &a, e);

	arena_fini(&a);
	return rc < 0 ? err_hint(e, "svrun image lock %s", words) : 0;
}
