#include "images/image.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#include "base/str.h"
#include "base/sys.h"
#include "images/mount-image.h"
#include "images/mount-keep.h"

enum { DOCUMENT_MAX = 8 << 20, LAYERS_MAX = 512 };

/* What the layers' media types mean. */
static const struct {
	const char *type;
	enum codec codec;
} layer_types[] = {
	{"application/vnd.oci.image.layer.v1.tar", CODEC_NONE},
	{"application/vnd.oci.image.layer.v1.tar+gzip", CODEC_GZIP},
	{"application/vnd.oci.image.layer.v1.tar+zstd", CODEC_ZSTD},
	{"application/vnd.docker.image.rootfs.diff.tar", CODEC_NONE},
	{"application/vnd.docker.image.rootfs.diff.tar.gzip", CODEC_GZIP},
	{"application/vnd.docker.image.rootfs.diff.tar.zstd",
		CODEC_ZSTD}, /* not standard, but seen */
	{"application/vnd.docker.image.rootfs.foreign.diff.tar.gzip", CODEC_GZIP},
	{"application/vnd.oci.image.layer.nondistributable.v1.tar", CODEC_NONE},
	{"application/vnd.oci.image.layer.nondistributable.v1.tar+gzip", CODEC_GZIP},
	{"application/vnd.oci.image.layer.nondistributable.v1.tar+zstd", CODEC_ZSTD},
};

/* ---- loading ---- */

static json_t *load_document(
	struct store *s, const struct digest *d, const char *what, uint64_t *size, struct err *e)
{
	auto_buf struct buf b = {0};
	json_t *j;

	if (store_blob_read(s, d, DOCUMENT_MAX, &b, e) < 0)
		return err_ctx(e, "%s", what), NULL;
	*size = b.len;
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
	if (type && !image_type_is_manifest(type))
		return err_set(e, ERR_UNSUPPORTED, "mediaType '%s' is not an image manifest", type);
	if (json_object_get(m, "manifests"))
		return err_set(e, ERR_CORRUPT, "a manifest that is also an index");
	return 0;
}

static int layer_codec(struct image_layer *l, struct err *e)
{
	for (size_t i = 0; i < sizeof(layer_types) / sizeof(layer_types[0]); i++)
		if (str_eq(l->media_type, layer_types[i].type)) {
			l->codec = layer_types[i].codec;
			return 0;
		}
	return err_set(e, ERR_UNSUPPORTED, "mediaType '%.100s' is no layer that svrun reads",
		l->media_type);
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
		struct descriptor d;

		if (descriptor_read(&d, json_array_get(list, i), e) < 0)
			return err_ctx(e, "/layers/%zu", i);
		l->digest = d.digest;
		l->size = d.size;
		l->media_type = d.media_type;
		if (layer_codec(l, e) < 0)
			return err_ctx(e, "/layers/%zu", i);
	}
	return 0;
}

static int load_config(struct image *im, struct store *s, struct err *e)
{
	const json_t *o = json_object_of(im->manifest, "config", e), *rootfs, *ids;
	struct descriptor d;
	uint64_t found;

	if (!o || descriptor_read(&d, o, e) < 0)
		return err_ctx(e, "/config");
	im->config_digest = d.digest;
	if (!str_eq(d.media_type, OCI_CONFIG_TYPE) && !str_eq(d.media_type, DOCKER_CONFIG_TYPE))
		return err_set(e, ERR_UNSUPPORTED,
			"/config: mediaType '%.100s' is not that of a container image",
			d.media_type);
	im->config = load_document(s, &im->config_digest, "image config", &found, e);
	if (!im->config)
		return -1;
	if (found != d.size)
		return err_set(e, ERR_CORRUPT,
			"/config: expected %" PRIu64 " bytes, found %" PRIu64, d.size, found);
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
	if (index_place_parse(&im->index, text, e) < 0)
		return err_ctx(e, "annotation " INDEX_ANNOTATION);
	for (size_t i = 0; i < im->nlayers; i++)
		if (digest_eq(&im->layers[i].digest, &im->index.layer)) {
			im->has_index = im->index.offset <= im->layers[i].size &&
					im->index.length <= im->layers[i].size - im->index.offset;
			return im->has_index
				       ? 0
				       : err_set(e, ERR_CORRUPT,
						 "the index lies beyond the end of its layer");
		}
	/* Tools that compress layers anew keep annotations, and the layer that carried the index is
	 * another blob then: to us the image is one that has none. */
	return 0;
}

static int load(struct image *im, struct store *s, struct err *e)
{
	im->manifest = load_document(s, &im->manifest_digest, "manifest", &im->manifest_size, e);
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

/* A set of digests: the members of a JSON object, in hex. */
static bool has(const json_t *set, const struct digest *d)
{
	char hex[DIGEST_HEX + 1];

	return json_object_get(set, digest_hex(d, hex));
}

static void add(json_t *set, const struct digest *d)
{
	char hex[DIGEST_HEX + 1];

	json_object_set_new(set, digest_hex(d, hex), json_true());
}

static int add_descriptors(json_t *set, const json_t *list, struct err *e)
{
	const json_t *o;
	size_t i;

	json_array_foreach (list, i, o) {
		const char *text = json_str(o, "digest", e);
		struct digest d;

		if (!text || digest_parse(&d, text, e) < 0)
			return -1;
		add(set, &d);
	}
	return 0;
}

/* Add a manifest and what it names. Other tools may have put an index into the store: its manifests
 * and their blobs count as used, too. */
static int add_blobs(
	json_t *set, struct store *s, const struct digest *d, unsigned depth, struct err *e)
{
	enum { DEPTH_MAX = 4 };
	uint64_t size;
	auto_json json_t *m = load_document(s, d, "manifest", &size, e);
	const json_t *nested = json_object_get(m, "manifests"), *o;
	size_t i;

	if (!m)
		return -1;
	add(set, d);
	o = json_object_get(m, "config");
	if (o) {
		auto_json json_t *one = json_pack("[O]", o);

		if (add_descriptors(set, one, e) < 0)
			return -1;
	}
	if (add_descriptors(set, json_object_get(m, "layers"), e) < 0)
		return -1;
	if (depth == DEPTH_MAX)
		return 0;
	json_array_foreach (nested, i, o) {
		const char *text = json_str(o, "digest", e);
		struct digest n;

		if (!text || digest_parse(&n, text, e) < 0)
			return -1;
		/* an index may name platforms that were never copied here */
		if (store_has(s, &n) && add_blobs(set, s, &n, depth + 1, e) < 0)
			return -1;
	}
	return 0;
}

/* Blobs that the manifests of index.json use. NULL when that cannot be told. */
static json_t *used_blobs(struct store *s, struct err *e)
{
	json_t *set = json_object();
	auto_free struct digest *v = NULL;
	char hex[DIGEST_HEX + 1];
	size_t n = 0;

	if (store_manifests(s, &v, &n, e) < 0) {
		json_decref(set);
		return NULL;
	}
	for (size_t i = 0; i < n; i++)
		if (add_blobs(set, s, &v[i], 0, e) < 0) {
			json_decref(set);
			err_ctx(e, "keep all blobs, as image %.12s might use them",
				digest_hex(&v[i], hex));
			err_hint(e, "remove that image first: svrun image rm sha256:%s", hex);
			return NULL;
		}
	return set;
}

/* svrun image mount holds no lock. */
static int claim_kept(struct store *s, const char *hex, struct err *e)
{
	auto_fd int folder = sys_openat(s->fd, "mnt", O_RDONLY | O_DIRECTORY, 0);
	int kept = folder < 0 ? err_sys(e, "open %s/mnt", s->path) : mount_is_kept(folder, hex, e);

	if (kept <= 0)
		return kept;
	err_set(e, ERR_EXISTS, "image %.12s is mounted", hex);
	return err_hint(e, "svrun image unmount %.12s", hex);
}

int image_claim(struct store *s, const struct digest *manifest, struct err *e)
{
	char path[128], hex[DIGEST_HEX + 1];

	snprintf(path, sizeof(path), "mnt/%s.lock", digest_hex(manifest, hex));
	if (sys_mkdirat(s->fd, "mnt", 0700) < 0 && errno != EEXIST)
		return err_sys(e, "create %s/mnt", s->path);

	auto_fd int fd = sys_openat(s->fd, path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);

	if (fd < 0)
		return err_sys(e, "open %s/%s", s->path, path);
	if (sys_flock(fd, LOCK_EX | LOCK_NB) == 0)
		return claim_kept(s, hex, e) < 0 ? -1 : steal_fd(&fd);
	if (errno != EWOULDBLOCK)
		return err_sys(e, "lock %s/%s", s->path, path);
	err_set(e, ERR_EXISTS, "image %.12s is in use by a running instance", hex);
	return err_hint(e, "stop the instance first");
}

int image_delete(struct store *s, const struct digest *manifest, struct err *e)
{
	auto_fd int lock = store_lock(s, e);
	auto_json json_t *used = lock < 0 ? NULL : used_blobs(s, e), *mine = json_object();
	const char *hex;
	json_t *v;

	if (!used)
		return -1;
	if (has(used, manifest)) /* it has got a name again */
		return 0;
	/* of one whose manifest is damaged, only that can go; its other blobs are not known */
	if (add_blobs(mine, s, manifest, 0, NULL) < 0)
		add(mine, manifest);
	json_object_foreach (mine, hex, v) {
		struct digest d;

		if (digest_from_hex(&d, hex) == 0 && !has(used, &d) &&
			store_blob_remove(s, &d, e) < 0)
			return -1;
	}
	return mount_image_remove(s, manifest, e);
}

int image_drop_blobs(struct store *s, const struct digest *v, size_t n, struct err *e)
{
	auto_fd int lock = store_lock(s, e);
	auto_json json_t *used = lock < 0 ? NULL : used_blobs(s, e);

	if (!used)
		return -1;
	for (size_t i = 0; i < n; i++)
		if (!has(used, &v[i]) && store_blob_remove(s, &v[i], e) < 0)
			return -1;
	return 0;
}
