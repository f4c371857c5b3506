/* A model as an OCI artifact: small files in one tar, each big one a layer as it is. The same files
 * give the same bytes. */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/sys.h"
#include "builder/model.h"
#include "images/publish.h"

enum {
	BUNDLED = 1 << 20, /* files smaller than this are bundled */
	COPY = 1 << 20,
	TAR_ROUND =
		512, /* no padding of the whole to 10 KiB: the registry sees bytes, not a tape */
};

struct artifact {
	const struct model_job *j;
	const struct manifest_model *m;
	const struct model_file *files; /* sorted by path */
	size_t n;
	json_t *layers;
};

/* ---- a big file ---- */

static int copy_blob(int fd, const char *name, struct blob_writer *w, struct err *e)
{
	auto_free unsigned char *buf = mem_alloc(COPY);
	ssize_t n;

	while ((n = sys_read(fd, buf, COPY)) > 0)
		if (store_blob_add(w, buf, (size_t)n, e) < 0)
			return -1;
	return n < 0 ? err_sys(e, "read %s", name) : 0;
}

static int open_file(const struct artifact *x, const struct model_file *f, struct err *e)
{
	struct stat st;
	auto_fd int fd = model_open(x->j, x->m, f, e);

	if (fd < 0)
		return -1;
	if (sys_fstat(fd, &st) < 0)
		return err_sys(e, "%s", f->path);
	if ((uint64_t)st.st_size != f->size)
		return err_set(e, ERR_CORRUPT, "%s: expected %" PRIu64 " bytes, found %jd", f->path,
			f->size, (intmax_t)st.st_size);
	return steal_fd(&fd);
}

static int put_file(struct artifact *x, const struct model_file *f, struct err *e)
{
	struct blob_writer w;
	struct digest d;
	auto_fd int fd = open_file(x, f, e);
	int rc;

	if (fd < 0)
		return -1;
	if (store_has(x->j->s, &f->sha256))
		return 0;
	if (store_blob_begin(x->j->s, &w, e) < 0)
		return -1;
	rc = copy_blob(fd, f->path, &w, e);
	d = store_blob_digest(&w);
	if (rc == 0)
		rc = digest_check(&f->sha256, &d, e, "%s", f->path);
	if (rc == 0)
		rc = store_blob_commit(&w, &d, e);
	store_blob_abort(&w);
	return rc;
}

static int add_file(struct artifact *x, const struct model_file *f, struct err *e)
{
	json_t *o;

	if (put_file(x, f, e) < 0)
		return -1;
	o = publish_descriptor(MODEL_FILE_TYPE, &f->sha256, f->size);
	json_object_set_new(o, "annotations", json_pack("{s:s}", MODEL_TITLE, f->path));
	json_array_append_new(x->layers, o);
	return 0;
}

/* ---- the bundle ---- */

struct bundle {
	struct blob_writer w;
	struct err *e;
};

static ssize_t on_write(struct archive *a, void *ctx, const void *p, size_t n)
{
	struct bundle *b = ctx;

	if (store_blob_add(&b->w, p, n, b->e) == 0)
		return (ssize_t)n;
	archive_set_error(a, EIO, "the blob could not be written");
	return -1;
}

static int bundle_file(
	struct artifact *x, struct archive *a, const struct model_file *f, struct err *e)
{
	auto_free unsigned char *buf = mem_alloc(BUNDLED);
	auto_fd int fd = open_file(x, f, e);
	struct archive_entry *en;
	struct digest d;
	int rc;

	if (fd < 0)
		return -1;
	if (f->size && sys_pread_all(fd, buf, (size_t)f->size, 0) < 0)
		return err_sys(e, "read %s", f->path);
	d = digest_of(buf, (size_t)f->size);
	if (digest_check(&f->sha256, &d, e, "%s", f->path) < 0)
		return -1;
	en = archive_entry_new();
	archive_entry_set_pathname(en, f->path);
	archive_entry_set_filetype(en, AE_IFREG);
	archive_entry_set_perm(en, 0444);
	archive_entry_set_size(en, (int64_t)f->size);
	archive_entry_set_mtime(en, 0, 0);
	rc = archive_write_header(a, en);
	archive_entry_free(en);
	if (rc != ARCHIVE_OK || archive_write_data(a, buf, (size_t)f->size) < 0)
		return err_set(e, ERR_SYSTEM, "%s: %s", f->path, archive_error_string(a));
	return 0;
}

static bool is_small(const struct model_file *f)
{
	return f->size < BUNDLED;
}

static int write_bundle(struct artifact *x, struct bundle *b, struct err *e)
{
	struct archive *a = archive_write_new();
	int rc = 0;

	if (!a)
		return err_set(e, ERR_SYSTEM, "out of memory");
	archive_write_set_format_pax_restricted(a);
	archive_write_set_bytes_per_block(a, 0);
	archive_write_set_bytes_in_last_block(a, TAR_ROUND);
	if (archive_write_open(a, b, NULL, on_write, NULL) != ARCHIVE_OK)
		rc = err_set(e, ERR_SYSTEM, "%s", archive_error_string(a));
	for (size_t i = 0; rc == 0 && i < x->n; i++)
		if (is_small(&x->files[i]))
			rc = bundle_file(x, a, &x->files[i], e);
	if (rc == 0 && archive_write_close(a) != ARCHIVE_OK)
		rc = err_set(e, ERR_SYSTEM, "%s", archive_error_string(a));
	archive_write_free(a);
	return rc;
}

static int add_bundle(struct artifact *x, struct err *e)
{
	struct bundle b = {.e = e};
	struct digest d;
	bool any = false;
	int rc;

	for (size_t i = 0; i < x->n; i++)
		any = any || is_small(&x->files[i]);
	if (!any)
		return 0;
	if (store_blob_begin(x->j->s, &b.w, e) < 0)
		return -1;
	rc = write_bundle(x, &b, e);
	if (rc == 0)
		rc = store_blob_commit(&b.w, &d, e);
	if (rc == 0)
		json_array_append_new(
			x->layers, publish_descriptor(MODEL_BUNDLE_TYPE, &d, b.w.size));
	store_blob_abort(&b.w);
	return rc;
}

/* ---- the documents ---- */

static json_t *config_of(const struct artifact *x, const struct digest *set)
{
	static const char *const formats[] = {"other", "safetensors", "gguf", "onnx", "ckpt"};
	json_t *files = json_array(), *o;
	char hex[DIGEST_HEX + 1], text[DIGEST_TEXT + 1];

	for (size_t i = 0; i < x->n; i++)
		json_array_append_new(files, json_pack("{s:s, s:s, s:I}", "path", x->files[i].path,
						     "sha256", digest_hex(&x->files[i].sha256, hex),
						     "size", (json_int_t)x->files[i].size));
	o = json_pack("{s:s, s:s, s:s, s:o}", "schema", "svrun.model/1", "format",
		formats[x->m->format], "setDigest", digest_text(set, text), "files", files);
	return o;
}

static struct digest set_of(const struct artifact *x)
{
	auto_free struct models_file *v = mem_array(x->n, sizeof(*v));

	for (size_t i = 0; i < x->n; i++)
		v[i] = (struct models_file){.path = x->files[i].path, .sha256 = x->files[i].sha256};
	return models_set(v, x->n);
}

static int put_manifest(struct artifact *x, struct digest *manifest, struct err *e)
{
	struct digest set = set_of(x), config;
	auto_json json_t *doc = config_of(x, &set), *m = NULL;
	char text[DIGEST_TEXT + 1];
	uint64_t size;

	if (publish_document(x->j->s, doc, &config, &size, e) < 0)
		return -1;
	m = json_pack("{s:i, s:s, s:s, s:o, s:O, s:{s:s}}", "schemaVersion", 2, "mediaType",
		OCI_MANIFEST_TYPE, "artifactType", MODEL_TYPE, "config",
		publish_descriptor(MODEL_CONFIG_TYPE, &config, size), "layers", x->layers,
		"annotations", "run.svrun.model.set", digest_text(&set, text));
	return publish_document(x->j->s, m, manifest, &size, e);
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct model_file *)a)->path, ((const struct model_file *)b)->path);
}

int model_artifact(const struct model_job *j, const struct manifest_model *m,
	struct digest *manifest, struct err *e)
{
	struct artifact x = {.j = j, .m = m};
	const struct model_file *files = model_files(j->l, m, &x.n);
	auto_free struct model_file *sorted = mem_dup(files, x.n * sizeof(*files));
	auto_json json_t *layers = json_array();
	size_t big = 0;
	int rc;

	qsort(sorted, x.n, sizeof(*sorted), by_path);
	x.files = sorted;
	x.layers = layers;
	rc = add_bundle(&x, e);
	for (size_t i = 0; rc == 0 && i < x.n; i++)
		if (!is_small(&sorted[i])) {
			if (++big >= MODEL_LAYERS_MAX)
				return err_set(e, ERR_UNSUPPORTED, "more than %d big files",
					MODEL_LAYERS_MAX - 1);
			rc = add_file(&x, &sorted[i], e);
		}
	return rc < 0 ? -1 : put_manifest(&x, manifest, e);
}
