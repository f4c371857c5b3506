#include "images/image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#include "base/str.h"
#include "base/sys.h"

enum { DOCUMENT_MAX = 8 << 20, LAYERS_MAX = 512 };

#define MANIFEST_TYPE "application/vnd.oci.image.manifest.v1+json"

/* ---- loading ---- */

static json_t *load_document(
	struct store *s, const struct digest *d, const char *what, struct err *e)
{
	auto_buf struct buf b = {0};
	json_t *j;

	if (store_blob_read(s, d, DOCUMENT_MAX, &b, e) < 0)
		return err_ctx(e, "%s", what), NULL;
	j = json_parse(b.data ? b.data : "", b.len, e);
	if (!j)
		err_ctx(e, "%s", what);
	return j;
}

/* CVE-2021-41190: one document must not be valid both as a manifest and as an index. */
static int check_manifest(const json_t *m, struct err *e)
{
	uint64_t version;
	const char *type;

	if (json_u64(m, "schemaVersion", 2, &version, e) < 0 ||
		json_str_opt(m, "mediaType", &type, e) < 0)
		return -1;
	if (version != 2)
		return err_set(e, ERR_CORRUPT, "schemaVersion is not 2");
	if (type && !str_eq(type, MANIFEST_TYPE))
		return err_set(e, ERR_UNSUPPORTED, "mediaType '%s' is not an image manifest", type);
	if (json_object_get(m, "manifests"))
		return err_set(e, ERR_CORRUPT, "a manifest that is also an index");
	return 0;
}

static int descriptor(
	const json_t *o, struct digest *d, uint64_t *size, const char **type, struct err *e)
{
	const char *text = json_str(o, "digest", e);

	*type = text ? json_str(o, "mediaType", e) : NULL;
	return *type && digest_parse(d, text, e) == 0 &&
			       json_u64(o, "size", INT64_MAX, size, e) == 0
		       ? 0
		       : -1;
}

static int load_layers(struct image *im, struct err *e)
{
	const json_t *list = json_array_of(im->manifest, "layers", e);

	if (!list)
		return -1;
	im->nlayers = json_array_size(list);
	if (im->nlayers > LAYERS_MAX)
		return err_set(e, ERR_CORRUPT, "%zu layers, more than the limit of %d", im->nlayers,
			LAYERS_MAX);
	im->layers = mem_array(im->nlayers, sizeof(*im->layers));
	for (size_t i = 0; i < im->nlayers; i++) {
		struct image_layer *l = &im->layers[i];

		if (descriptor(json_array_get(list, i), &l->digest, &l->size, &l->media_type, e) <
			0)
			return err_ctx(e, "/layers/%zu", i);
	}
	return 0;
}

static int load_config(struct image *im, struct store *s, struct err *e)
{
	const json_t *o = json_object_of(im->manifest, "config", e), *rootfs, *ids;
	uint64_t size;
	const char *type;

	if (!o || descriptor(o, &im->config_digest, &size, &type, e) < 0)
		return err_ctx(e, "/config");
	im->config = load_document(s, &im->config_digest, "image config", e);
	if (!im->config)
		return -1;
	rootfs = json_object_of(im->config, "rootfs", e);
	ids = rootfs ? json_array_of(rootfs, "diff_ids", e) : NULL;
	if (!ids)
		return err_ctx(e, "image config");
	if (json_array_size(ids) != im->nlayers)
		return err_set(e, ERR_CORRUPT, "%zu layers, but %zu diff_ids", im->nlayers,
			json_array_size(ids));
	for (size_t i = 0; i < im->nlayers; i++) {
		const char *text = json_string_value(json_array_get(ids, i));

		if (digest_parse(&im->layers[i].diff_id, text ? text : "", e) < 0)
			return err_ctx(e, "image config: /rootfs/diff_ids/%zu", i);
	}
	return 0;
}

static int load_index_place(struct image *im, struct err *e)
{
	const char *text = json_string_value(
		json_object_get(json_object_get(im->manifest, "annotations"), INDEX_ANNOTATION));

	if (!text)
		return 0;
	im->has_index = true;
	if (index_place_parse(&im->index, text, e) < 0)
		return err_ctx(e, "annotation " INDEX_ANNOTATION);
	for (size_t i = 0; i < im->nlayers; i++)
		if (digest_eq(&im->layers[i].digest, &im->index.layer)) {
			if (im->index.offset <= im->layers[i].size &&
				im->index.length <= im->layers[i].size - im->index.offset)
				return 0;
			return err_set(
				e, ERR_CORRUPT, "the index lies beyond the end of its layer");
		}
	return err_set(
		e, ERR_CORRUPT, "annotation " INDEX_ANNOTATION " names no layer of the image");
}

static int load(struct image *im, struct store *s, struct err *e)
{
	auto_fd int fd = store_blob_open(s, &im->manifest_digest, &im->manifest_size, e);

	if (fd < 0)
		return -1;
	im->manifest = load_document(s, &im->manifest_digest, "manifest", e);
	if (!im->manifest)
		return -1;
	if (check_manifest(im->manifest, e) < 0 || load_layers(im, e) < 0)
		return err_ctx(e, "manifest");
	return load_config(im, s, e) < 0 ? -1 : load_index_place(im, e);
}

int image_load(struct image *im, struct store *s, const struct digest *manifest, struct err *e)
{
	char hex[DIGEST_HEX + 1];

	*im = (struct image){.manifest_digest = *manifest};
	if (load(im, s, e) == 0)
		return 0;
	image_fini(im);
	return err_ctx(e, "image %.12s", digest_hex(manifest, hex));
}

void image_fini(struct image *im)
{
	json_decref(im->manifest);
	json_decref(im->config);
	free(im->layers);
	*im = (struct image){0};
}

/* ---- deleting ---- */

/* Blobs of all named images but `gone`, as a JSON object used as a set of hex digests. */
static json_t *used_blobs(struct store *s, const struct digest *gone, struct err *e)
{
	json_t *set = json_object();
	struct store_name *v;
	size_t n;

	if (store_names(s, &v, &n, e) < 0) {
		json_decref(set);
		return NULL;
	}
	for (size_t i = 0; i < n; i++) {
		char hex[DIGEST_HEX + 1];
		struct image im;

		if (digest_eq(&v[i].manifest, gone) || image_load(&im, s, &v[i].manifest, NULL) < 0)
			continue;
		json_object_set_new(set, digest_hex(&im.manifest_digest, hex), json_true());
		json_object_set_new(set, digest_hex(&im.config_digest, hex), json_true());
		for (size_t k = 0; k < im.nlayers; k++)
			json_object_set_new(
				set, digest_hex(&im.layers[k].digest, hex), json_true());
		image_fini(&im);
	}
	store_names_free(v, n);
	return set;
}

static int drop_blob(struct store *s, const json_t *used, const struct digest *d, struct err *e)
{
	char path[128], hex[DIGEST_HEX + 1];

	if (json_object_get(used, digest_hex(d, hex)))
		return 0;
	snprintf(path, sizeof(path), "blobs/sha256/%s", hex);
	return sys_unlinkat(s->fd, path, 0) < 0 && errno != ENOENT
		       ? err_sys(e, "remove %s/%s", s->path, path)
		       : 0;
}

/* Mounted and held by an instance? */
int image_in_use(struct store *s, const struct digest *manifest, struct err *e)
{
	char path[128], hex[DIGEST_HEX + 1];

	snprintf(path, sizeof(path), "mnt/%s.lock", digest_hex(manifest, hex));

	auto_fd int fd = sys_openat(s->fd, path, O_RDONLY, 0);

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, "open %s/%s", s->path, path);
	if (sys_flock(fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	err_set(e, ERR_EXISTS, "image %.12s is in use by a running instance", hex);
	return err_hint(e, "stop the instance first");
}

int image_delete(struct store *s, const struct digest *manifest, struct err *e)
{
	char path[128], hex[DIGEST_HEX + 1];
	struct image im;
	int rc = 0;

	if (image_in_use(s, manifest, e) < 0)
		return -1;

	auto_json json_t *used = used_blobs(s, manifest, e);

	if (!used)
		return -1;
	if (image_load(&im, s, manifest, NULL) == 0) { /* a damaged one can be removed too */
		for (size_t i = 0; i < im.nlayers && rc == 0; i++)
			rc = drop_blob(s, used, &im.layers[i].digest, e);
		if (rc == 0)
			rc = drop_blob(s, used, &im.config_digest, e);
		image_fini(&im);
	}
	snprintf(path, sizeof(path), "erofs/%s.img", digest_hex(manifest, hex));
	if (rc == 0 && sys_unlinkat(s->fd, path, 0) < 0 && errno != ENOENT)
		rc = err_sys(e, "remove %s/%s", s->path, path);
	return rc == 0 ? drop_blob(s, used, manifest, e) : -1;
}
