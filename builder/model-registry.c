/* Artifacts of models in registries, as sources. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/sys.h"
#include "builder/model-place.h"
#include "builder/partial.h"
#include "images/models-move.h"
#include "images/pool.h"

enum { DOCUMENT_MAX = 8 << 20 };

static json_t *read_document(struct store *s, const struct digest *d, struct err *e)
{
	auto_buf struct buf b = {0};

	if (store_blob_read(s, d, DOCUMENT_MAX, &b, e) < 0)
		return NULL;
	return json_parse(b.data ? b.data : "", b.len, e);
}

/* What the artifact's own config says that it has. */
static int read_files(struct arena *a, struct store *s, const struct digest *artifact,
	struct models_file **v, size_t *n, struct err *e)
{
	auto_json json_t *doc = read_document(s, artifact, e), *config = NULL;
	const char *type = json_string_value(json_object_get(doc, "artifactType"));
	struct descriptor d;

	if (!doc)
		return -1;
	if (!type || !str_eq(type, MODEL_TYPE))
		return err_set(e, ERR_UNSUPPORTED, "it is no model: its artifactType is '%.100s'",
			type ? type : "");
	if (descriptor_read(&d, json_object_get(doc, "config"), e) < 0)
		return err_ctx(e, "/config");
	config = read_document(s, &d.digest, e);
	return config ? models_read_files(a, json_object_get(config, "files"), v, n, e) : -1;
}

int model_registry_list(struct model_listing *l, const struct model_job *j,
	const struct manifest_model *m, struct err *e)
{
	auto_fd int hold = pool_hold(j->s->fd, e);
	struct models_file *v;
	struct digest artifact;
	size_t n;

	if (hold < 0 ||
		models_fetch(j->s, j->mirrors->config, m->source_url, &artifact, j->p, e) < 0 ||
		read_files(l->a, j->s, &artifact, &v, &n, e) < 0)
		return err_ctx(e, "source/url: %s", m->source_url);
	for (size_t i = 0; i < n; i++) {
		const struct model_file f = {v[i].path, v[i].sha256, v[i].size};

		if (model_wants(m, f.path) && model_listing_add(l, &f, e) < 0)
			return -1;
	}
	return 0;
}

/* A placed file under its digest in the cache. */
static int keep(struct store *s, const char *folder, const struct model_file *f, struct err *e)
{
	auto_free char *from = mem_printf("%s/%s", folder, f->path);
	struct input in = {.kind = HASH_SHA256};
	char to[CACHE_NAME];

	memcpy(in.digest, f->sha256.b, DIGEST_SIZE);
	if (sys_linkat(s->fd, from, s->fd, cache_name(&in, to), 0) < 0 && errno != EEXIST)
		return err_sys(e, "link %s to %s/%s", f->path, s->path, to);
	return 0;
}

static int place(const struct model_job *j, const struct manifest_model *m,
	const struct digest *artifact, const struct model_file *v, size_t n, struct err *e)
{
	const struct model_place p = {.s = j->s, .mirrors = j->mirrors, .p = j->p};
	struct models_entry x = {.id = m->id, .delivery = MODELS_ARTIFACT, .artifact = *artifact};
	struct arena a = {0};
	char folder[MODELS_PATH];
	int rc = read_files(&a, j->s, artifact, &x.files, &x.nfiles, e);

	if (rc == 0)
		rc = model_place(&p, &x, e);
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = keep(j->s, models_path(&x, folder), &v[i], e);
	arena_fini(&a);
	return rc;
}

int model_registry_fetch(const struct model_job *j, const struct manifest_model *m,
	const struct model_file *v, size_t n, struct err *e)
{
	auto_fd int hold = pool_hold(j->s->fd, e);
	struct digest artifact;

	if (hold < 0 || partial_prepare(j->s, e) < 0 ||
		models_fetch(j->s, j->mirrors->config, m->source_url, &artifact, j->p, e) < 0 ||
		place(j, m, &artifact, v, n, e) < 0)
		return err_ctx(e, "source/url: %s", m->source_url);
	return 0;
}
