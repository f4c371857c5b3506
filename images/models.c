#include "images/models.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "images/attached.h"

const char *const models_deliveries[4] = {"layer", "artifact", "runtime", "volume"};

enum { TEXT_MAX = 4 << 20 };
static const uint64_t file_max = 1ull << 46;

/* ---- reading ---- */

static int read_digest(const json_t *o, const char *key, struct digest *d, struct err *e)
{
	const char *text = json_str(o, key, e);

	return text && digest_parse(d, text, e) == 0 ? 0 : err_ctx(e, "%s", key);
}

static const char *text_of(struct arena *a, const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? arena_strdup(a, s) : NULL;
}

static int read_file(struct arena *a, const json_t *o, struct models_file *f, struct err *e)
{
	const char *path = json_str(o, "path", e), *hex = path ? json_str(o, "sha256", e) : NULL;

	if (!hex || tree_check_path(path, e) < 0)
		return -1;
	if (!*path || digest_from_hex(&f->sha256, hex) < 0)
		return err_set(e, ERR_CORRUPT, "sha256: expected 64 lower-case hex digits");
	f->path = arena_strdup(a, path);
	f->url = text_of(a, o, "url");
	return json_u64(o, "size", file_max, &f->size, e);
}

int models_read_files(
	struct arena *a, const json_t *list, struct models_file **v, size_t *n, struct err *e)
{
	size_t count = json_array_size(list);

	if (!json_is_array(list) || count > MODEL_FILES_MAX)
		return err_set(e, ERR_CORRUPT, "files: expected at most %d", MODEL_FILES_MAX);
	*v = arena_alloc(a, count * sizeof(**v));
	for (*n = 0; *n < count; ++*n)
		if (read_file(a, json_array_get(list, *n), &(*v)[*n], e) < 0)
			return err_ctx(e, "files/%zu", *n);
	return 0;
}

static int read_links(struct arena *a, const json_t *o, struct models_entry *x, struct err *e)
{
	const char *path;
	json_t *v;

	x->links = arena_alloc(a, json_object_size(o) * sizeof(*x->links));
	json_object_foreach ((json_t *)(uintptr_t)o, path, v) {
		const char *target = json_string_value(v);

		if (!target || !*path || tree_check_path(path, e) < 0 ||
			x->nlinks == MODEL_FILES_MAX)
			return err_set(e, ERR_CORRUPT, "links: '%.100s'", path);
		x->links[x->nlinks++] =
			(struct models_link){arena_strdup(a, path), arena_strdup(a, target)};
	}
	return 0;
}

static int read_license(struct arena *a, const json_t *o, struct models_entry *x, struct err *e)
{
	const char *acceptance = json_string_value(json_object_get(o, "acceptance"));
	const char *passing = json_string_value(json_object_get(o, "redistribute"));

	x->license = text_of(a, o, "id");
	x->accept = acceptance && !str_eq(acceptance, "none");
	x->keep = passing && str_eq(passing, "no");
	return json_bool_opt(o, "gated", false, &x->gated, e);
}

static int read_delivery(const json_t *o, struct models_entry *x, struct err *e)
{
	const char *text = json_str(o, "delivery", e);

	if (!text)
		return -1;
	for (unsigned i = 0; i < 4; i++)
		if (str_eq(text, models_deliveries[i])) {
			x->delivery = (enum models_delivery)i;
			return 0;
		}
	return err_set(e, ERR_UNSUPPORTED, "delivery: '%.40s' is unknown", text);
}

/* Nothing of an image may be mounted over what the runtime and the kernel have there. */
static bool is_special(const char *target)
{
	static const char *const folders[] = {"/proc", "/sys", "/dev"};

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		size_t n = strlen(folders[i]);

		if (strncmp(target, folders[i], n) == 0 && (!target[n] || target[n] == '/'))
			return true;
	}
	return false;
}

static int read_names(struct arena *a, const json_t *o, struct models_entry *x, struct err *e)
{
	const char *id = json_str(o, "id", e), *target = id ? json_str(o, "target", e) : NULL;

	if (!target)
		return -1;
	if (target[0] != '/' || !target[1] || tree_check_path(target + 1, e) < 0)
		return err_set(e, ERR_CORRUPT, "target: '%.100s' is no path in an image", target);
	if (is_special(target))
		return err_set(e, ERR_CORRUPT, "target: '%.100s' is the kernel's", target);
	x->id = arena_strdup(a, id);
	x->target = arena_strdup(a, target);
	x->secret = text_of(a, o, "secret");
	return 0;
}

static int read_entry(struct arena *a, const json_t *o, struct models_entry *x, struct err *e)
{
	const json_t *files = json_object_get(o, "files");

	if (read_names(a, o, x, e) < 0 || read_delivery(o, x, e) < 0 ||
		json_bool_opt(o, "optional", false, &x->optional, e) < 0 ||
		json_bool_opt(o, "s3", false, &x->s3, e) < 0 ||
		json_bool_opt(o, "allowPickle", false, &x->allow_pickle, e) < 0 ||
		read_license(a, json_object_get(o, "license"), x, e) < 0 ||
		read_links(a, json_object_get(o, "links"), x, e) < 0 ||
		(files && models_read_files(a, files, &x->files, &x->nfiles, e) < 0))
		return -1;
	if (x->delivery == MODELS_ARTIFACT && read_digest(o, "artifact", &x->artifact, e) < 0)
		return -1;
	x->set = models_set(x->files, x->nfiles);
	return 0;
}

int models_read(struct models *out, const json_t *manifest, struct err *e)
{
	const char *text = json_string_value(
		json_object_get(json_object_get(manifest, "annotations"), MODELS_ANNOTATION));
	auto_json json_t *list = NULL;

	*out = (struct models){0};
	if (!text)
		return 0;
	list = strlen(text) > TEXT_MAX ? NULL : json_parse(text, strlen(text), e);
	if (!json_is_array(list) || json_array_size(list) > MODELS_MAX)
		return err_set(e, ERR_CORRUPT,
			"annotation " MODELS_ANNOTATION ": expected an array of at most %d models",
			MODELS_MAX);
	out->v = arena_alloc(&out->arena, json_array_size(list) * sizeof(*out->v));
	for (; out->n < json_array_size(list); out->n++)
		if (read_entry(&out->arena, json_array_get(list, out->n), &out->v[out->n], e) < 0) {
			err_ctx(e, "annotation " MODELS_ANNOTATION ": /%zu", out->n);
			models_fini(out);
			return -1;
		}
	return 0;
}

void models_fini(struct models *m)
{
	arena_fini(&m->arena);
	*m = (struct models){0};
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

struct digest models_set(const struct models_file *v, size_t n)
{
	auto_free char **lines = mem_array(n + 1, sizeof(*lines));
	char hex[DIGEST_HEX + 1];
	struct hash h;

	hash_init(&h, HASH_SHA256);
	for (size_t i = 0; i < n; i++)
		lines[i] = mem_printf("%s  %s\n", digest_hex(&v[i].sha256, hex), v[i].path);
	qsort(lines, n, sizeof(*lines), by_text);
	for (size_t i = 0; i < n; i++) {
		hash_add(&h, lines[i], strlen(lines[i]));
		free(lines[i]);
	}
	return hash_digest(&h);
}

/* ---- licences ---- */

int models_check_accepted(const struct models *m, const char *const *accepted, size_t n,
	unsigned deliveries, struct err *e)
{
	for (size_t i = 0; i < m->n; i++) {
		const struct models_entry *x = &m->v[i];
		const char *id = x->license ? x->license : x->id;
		bool found = !x->accept || !(deliveries & 1u << x->delivery);

		for (size_t k = 0; k < n && !found; k++)
			found = str_eq(accepted[k], id);
		if (found)
			continue;
		err_set(e, ERR_DENIED, "the licence '%s' of the model %s must be accepted", id,
			x->id);
		return err_hint(e, "read it, then: --accept-license %s", id);
	}
	return 0;
}

/* ---- places ---- */

char *models_path(const struct models_entry *x, char out[MODELS_PATH])
{
	char hex[DIGEST_HEX + 1];

	if (x->delivery != MODELS_ARTIFACT && x->delivery != MODELS_RUNTIME)
		return NULL;
	snprintf(out, MODELS_PATH, "models/%s",
		digest_hex(x->delivery == MODELS_ARTIFACT ? &x->artifact : &x->set, hex));
	return out;
}

char *models_mark(const struct models_entry *x, char out[sizeof(MODELS_MARK) + DIGEST_HEX])
{
	char hex[DIGEST_HEX + 1];

	snprintf(out, sizeof(MODELS_MARK) + DIGEST_HEX, MODELS_MARK "%s", digest_hex(&x->set, hex));
	return out;
}

bool models_are_placed(struct store *s, const struct models_entry *x)
{
	char path[MODELS_PATH];

	return models_path(x, path) && faccessat(s->fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int attach(
	struct store *s, const struct digest *image, const struct digest *artifact, struct err *e)
{
	char text[DIGEST_TEXT + 1];
	auto_json json_t *descriptor = NULL;
	uint64_t size;
	auto_fd int fd = store_blob_open(s, artifact, &size, e);

	if (fd < 0)
		return -1;
	descriptor = json_pack("{s:s, s:s, s:s, s:I}", "mediaType", OCI_MANIFEST_TYPE,
		"artifactType", MODEL_TYPE, "digest", digest_text(artifact, text), "size",
		(json_int_t)size);
	return attached_add(s, image, descriptor, e);
}

int models_attach(struct store *s, const struct digest *manifest, struct err *e)
{
	struct image im;
	struct models m = {0};
	int rc;

	if (image_load(&im, s, manifest, e) < 0)
		return -1;
	rc = models_read(&m, im.manifest, e);
	for (size_t i = 0; rc == 0 && i < m.n; i++)
		if (m.v[i].delivery == MODELS_ARTIFACT)
			rc = attach(s, manifest, &m.v[i].artifact, e);
	models_fini(&m);
	image_fini(&im);
	return rc;
}
