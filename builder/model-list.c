/* What sources have. Source: the model hub's API (GET api/models/REPO/tree/REVISION, pages by
 * Link). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "builder/local.h"
#include "builder/model.h"
#include "images/glob.h"
#include "images/tree.h"

enum { PAGES_MAX = 100, PAGE_BYTES = 16 << 20, DEPTH_MAX = 16 };

/* ---- which ---- */

static bool matches(const struct strings *globs, const char *path)
{
	for (size_t i = 0; i < globs->n; i++)
		if (glob_matches(globs->v[i], path))
			return true;
	return false;
}

bool model_wants(const struct manifest_model *m, const char *path)
{
	return (!m->include.n || matches(&m->include, path)) && !matches(&m->exclude, path);
}

int model_listing_add(struct model_listing *l, const struct model_file *f, struct err *e)
{
	struct model_file *grown;

	if (l->n == MODEL_FILES_MAX)
		return err_set(
			e, ERR_UNSUPPORTED, "more files than the limit of %d", MODEL_FILES_MAX);
	if (l->n == l->cap) { /* the old array stays in the arena: few and small */
		l->cap = l->cap ? l->cap * 2 : 64;
		grown = arena_alloc(l->a, l->cap * sizeof(*grown));
		if (l->n)
			memcpy(grown, l->v, l->n * sizeof(*grown));
		l->v = grown;
	}
	l->v[l->n] = *f;
	l->v[l->n++].path = arena_strdup(l->a, f->path);
	return 0;
}

/* ---- beside the manifest ---- */

struct walk {
	struct model_listing *l;
	const struct model_job *j;
	const struct manifest_model *m;
	unsigned depth;
};

static int walk_folder(struct walk *w, const char *below, struct err *e);

static int walk_entry(struct walk *w, const char *path, const struct dirent *x, struct err *e)
{
	auto_free char *full = mem_printf("%s/%s", w->m->source_path, path);
	struct model_file f = {.path = path};

	if (x->d_type == DT_DIR)
		return walk_folder(w, path, e);
	if (!model_wants(w->m, path))
		return 0;
	if (tree_check_path(path, e) < 0 ||
		local_digest(w->j->m->dir, full, NULL, &f.sha256, &f.size, e) < 0)
		return -1;
	return model_listing_add(w->l, &f, e);
}

static int walk_folder(struct walk *w, const char *below, struct err *e)
{
	auto_free char *full = mem_printf("%s%s%s", w->m->source_path, *below ? "/" : "", below);
	int fd = local_open_dir(w->j->m->dir, full, e), rc = 0;
	struct dirent *x;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		sys_close_ref(&fd);
		return fd < 0 ? -1 : err_sys(e, "list %s", full);
	}
	if (w->depth++ == DEPTH_MAX)
		rc = err_set(e, ERR_UNSUPPORTED, "%s: deeper than %d folders", full, DEPTH_MAX);
	while (rc == 0 && (x = readdir(dir))) {
		auto_free char *path = mem_printf("%s%s%s", below, *below ? "/" : "", x->d_name);

		if (!str_eq(x->d_name, ".") && !str_eq(x->d_name, ".."))
			rc = walk_entry(w, path, x, e);
	}
	w->depth--;
	closedir(dir);
	return rc;
}

static int list_local(struct model_listing *l, const struct model_job *j,
	const struct manifest_model *m, struct err *e)
{
	struct walk w = {.l = l, .j = j, .m = m};
	const char *slash = strrchr(m->source_path, '/');
	struct model_file f = {.path = slash ? slash + 1 : m->source_path};
	auto_fd int dir = local_open_dir(j->m->dir, m->source_path, NULL);

	if (dir >= 0)
		return walk_folder(&w, "", e);
	if (local_digest(j->m->dir, m->source_path, NULL, &f.sha256, &f.size, e) < 0)
		return -1;
	return model_listing_add(l, &f, e);
}

/* ---- a model hub ---- */

/* Large files come with their sha256; for the others only git knows what they are. */
static int add_hub_file(struct model_listing *l, const struct model_job *j,
	const struct manifest_model *m, const json_t *o, const struct input *auth, struct err *e)
{
	const char *path = json_str(o, "path", e), *oid, *url;
	const json_t *lfs = json_object_get(o, "lfs");
	struct model_file f = {.path = path};

	if (!path || tree_check_path(path, e) < 0)
		return -1;
	if (!model_wants(m, path))
		return 0;
	oid = json_string_value(json_object_get(lfs, "oid"));
	if (oid && str_starts(oid, "sha256:"))
		oid += strlen("sha256:");
	if (oid && digest_from_hex(&f.sha256, oid) == 0 &&
		json_u64(lfs, "size", 1ull << 46, &f.size, NULL) == 0)
		return model_listing_add(l, &f, e);
	url = mirror_url(j->mirrors, model_url(l->a, m, path), e);
	if (!url || model_get_file(j->s, path, url, auth, &f, j->p, e) < 0)
		return -1;
	return f.size ? model_listing_add(l, &f, e)
		      : 0; /* an empty file is no input: "size" begins at 1 */
}

static int list_page(struct model_listing *l, const struct model_job *j,
	const struct manifest_model *m, const char *url, const struct input *auth,
	const char **next, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(PAGE_BYTES);
	auto_json json_t *list = NULL;
	const json_t *o;
	size_t i;

	if (model_get(url, auth, &b, l->a, next, e) < 0)
		return -1;
	list = json_parse(b.data ? b.data : "", b.len, e);
	if (!json_is_array(list))
		return list ? err_set(e, ERR_CORRUPT, "the listing is no array") : -1;
	json_array_foreach (list, i, o) {
		const char *type = json_string_value(json_object_get(o, "type"));

		if (type && str_eq(type, "file") && add_hub_file(l, j, m, o, auth, e) < 0)
			return err_ctx(e, "listing: /%zu", i);
	}
	return 0;
}

/* Pages are asked of the address that we know; of theirs only the question counts. */
static int list_hub(struct model_listing *l, const struct model_job *j,
	const struct manifest_model *m, struct err *e)
{
	const char *base = mirror_url(j->mirrors,
		arena_printf(
			l->a, "mirror:huggingface/api/models/%s/tree/%s", m->repo, m->revision),
		e);
	const char *url = base ? arena_printf(l->a, "%s?recursive=true", base) : NULL, *next;
	struct input auth = {.url = base};

	if (!base || model_authorize(&auth, m->secret, false, j->secrets, j->nsecrets, l->a, e) < 0)
		return -1;
	for (unsigned page = 0; url; page++) {
		if (page == PAGES_MAX)
			return err_set(
				e, ERR_UNSUPPORTED, "a listing of more than %d pages", PAGES_MAX);
		if (list_page(l, j, m, url, &auth, &next, e) < 0)
			return -1;
		next = next ? strchr(next, '?') : NULL;
		url = next ? arena_printf(l->a, "%s%s", base, next) : NULL;
	}
	return 0;
}

/* ---- one file by its address ---- */

static int list_one(struct model_listing *l, const struct model_job *j,
	const struct manifest_model *m, struct err *e)
{
	const char *slash = strrchr(m->source_url, '/');
	struct model_file f = {.path = slash ? slash + 1 : ""};
	const char *url;
	struct input auth = {0};

	if (m->include.n || m->exclude.n || !*f.path) {
		err_set(e, ERR_USAGE, "a source of type %s cannot be listed",
			m->source == MODEL_S3 ? "s3" : "https");
		return err_hint(e, "name its files: \"files\": [{path, sha256, size}]");
	}
	url = auth.url = mirror_url(j->mirrors, m->source_url, e);
	if (!url || tree_check_path(f.path, e) < 0 ||
		model_authorize(&auth, m->secret, m->source == MODEL_S3, j->secrets, j->nsecrets,
			l->a, e) < 0 ||
		model_get_file(j->s, m->id, url, &auth, &f, j->p, e) < 0)
		return -1;
	return model_listing_add(l, &f, e);
}

int model_list(struct model_listing *l, const struct model_job *j, const struct manifest_model *m,
	struct err *e)
{
	static int (*const how[])(struct model_listing *, const struct model_job *,
		const struct manifest_model *, struct err *) = {
		[MODEL_FILE] = list_local,
		[MODEL_HTTPS] = list_one,
		[MODEL_HF] = list_hub,
		[MODEL_S3] = list_one,
		[MODEL_OCI] = model_registry_list,
	};

	if (how[m->source](l, j, m, e) < 0)
		return -1;
	if (l->n == 0)
		return err_set(e, ERR_NOT_FOUND, "source: no file that include and exclude leave");
	return 0;
}
