#include "images/attached.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"

static void path_of(const struct digest *subject, char out[16 + DIGEST_HEX])
{
	char hex[DIGEST_HEX + 1];

	snprintf(out, 16 + DIGEST_HEX, "attached/%s", digest_hex(subject, hex));
}

char *attached_tag(const struct digest *d, const char *suffix, char out[ATTACHED_TAG])
{
	char hex[DIGEST_HEX + 1];

	snprintf(out, ATTACHED_TAG, "sha256-%s%s", digest_hex(d, hex), suffix);
	return out;
}

/* ---- the list ---- */

static const char *text_in(const json_t *descriptor, const char *key)
{
	return json_string_value(json_object_get(descriptor, key));
}

static const char *annotation_of(const json_t *descriptor, const char *key)
{
	return key ? json_string_value(
			     json_object_get(json_object_get(descriptor, "annotations"), key))
		   : NULL;
}

json_t *attached_list(struct store *s, const struct digest *subject, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(ATTACHED_DOCUMENT_MAX);
	auto_json json_t *doc = NULL;
	struct descriptor d;
	char path[16 + DIGEST_HEX];
	json_t *list, *o;
	size_t i;

	path_of(subject, path);
	if (faccessat(s->fd, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? json_array()
				       : (err_sys(e, "open %s/%s", s->path, path), NULL);
	if (file_read(s->fd, path, &b, e) < 0)
		return NULL;
	doc = json_parse(b.data ? b.data : "", b.len, e);
	list = doc ? json_array_of(doc, "manifests", e) : NULL;
	if (list && json_array_size(list) > ATTACHED_MAX) {
		err_set(e, ERR_CORRUPT, "more than %d entries", ATTACHED_MAX);
		list = NULL;
	}
	json_array_foreach (list, i, o)
		if (descriptor_read(&d, o, e) < 0) {
			list = NULL;
			break;
		}
	if (!list)
		err_ctx(e, "%s/%s", s->path, path);
	return json_incref(list);
}

/* As the list is sorted: by its artifactType, then by digest. */
static int compare(const json_t *a, const json_t *b)
{
	const char *x = text_in(a, "artifactType"), *y = text_in(b, "artifactType");
	int rc = strcmp(x ? x : "", y ? y : "");

	return rc ? rc : strcmp(text_in(a, "digest"), text_in(b, "digest"));
}

static void insert(json_t *list, const json_t *descriptor)
{
	size_t i = 0;

	while (i < json_array_size(list) && compare(json_array_get(list, i), descriptor) < 0)
		i++;
	json_array_insert_new(list, i, json_deep_copy(descriptor));
}

static bool same_text(const char *a, const char *b)
{
	return a && b && str_eq(a, b);
}

/* Does the listed one make room for the new one? */
static bool replaces(const json_t *new, const json_t *old, const char *once)
{
	if (same_text(text_in(new, "digest"), text_in(old, "digest")) ||
		same_text(annotation_of(new, REF_NAME), annotation_of(old, REF_NAME)))
		return true;
	return once && same_text(text_in(new, "artifactType"), text_in(old, "artifactType")) &&
	       (!*once || same_text(annotation_of(new, once), annotation_of(old, once)));
}

static int save(struct store *s, const struct digest *subject, json_t *list, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(ATTACHED_DOCUMENT_MAX);
	auto_json json_t *doc = json_pack("{s:i, s:s, s:O}", "schemaVersion", 2, "mediaType",
		OCI_INDEX_TYPE, "manifests", list);
	char path[16 + DIGEST_HEX];

	path_of(subject, path);
	if (json_text_bounded(doc, &b, e) < 0)
		return err_ctx(e, "%s/%s", s->path, path);
	if (sys_mkdirat(s->fd, "attached", 0700) < 0 && errno != EEXIST)
		return err_sys(e, "create %s/attached", s->path);
	return file_write(s->fd, path, b.data, b.len, 0600, e);
}

/* once: "" for any of the artifactType, NULL for none. */
static int put_in_list(json_t *list, const json_t *descriptor, const char *once, struct err *e)
{
	for (size_t i = json_array_size(list); i > 0; i--)
		if (replaces(descriptor, json_array_get(list, i - 1), once))
			json_array_remove(list, i - 1);
	if (json_array_size(list) >= ATTACHED_MAX)
		return err_set(
			e, ERR_USAGE, "more than %d things attached to one manifest", ATTACHED_MAX);
	insert(list, descriptor);
	return 0;
}

static int list_all(struct store *s, const struct digest *subject, const json_t *descriptors,
	const char *once, struct err *e)
{
	auto_fd int lock = store_lock(s, e);
	auto_json json_t *list = lock < 0 ? NULL : attached_list(s, subject, e);
	const json_t *o;
	size_t i;

	if (!list)
		return -1;
	json_array_foreach (descriptors, i, o)
		if (put_in_list(list, o, once, e) < 0)
			return -1;
	return save(s, subject, list, e);
}

int attached_add_all(
	struct store *s, const struct digest *subject, const json_t *descriptors, struct err *e)
{
	auto_json json_t *copies = json_deep_copy(descriptors);
	char tag[ATTACHED_TAG];
	struct descriptor d;
	json_t *o;
	size_t i;

	attached_tag(subject, ".sig", tag);
	json_array_foreach (copies, i, o) {
		const char *name = annotation_of(o, REF_NAME);

		if (descriptor_read(&d, o, e) < 0)
			return -1;
		if (name && !str_eq(name, tag))
			json_object_del(json_object_get(o, "annotations"), REF_NAME);
	}
	return json_array_size(copies) ? list_all(s, subject, copies, NULL, e) : 0;
}

int attached_add(
	struct store *s, const struct digest *subject, const json_t *descriptor, struct err *e)
{
	auto_json json_t *one = json_pack("[O]", descriptor);

	return attached_add_all(s, subject, one, e);
}

static int blob_in(const json_t *o, int (*fn)(void *ctx, const struct digest *d, struct err *e),
	void *ctx, struct err *e)
{
	struct descriptor d;

	return descriptor_read(&d, o, NULL) < 0 ? 0 : fn(ctx, &d.digest, e);
}

static int blobs_of(struct store *s, const struct digest *manifest,
	int (*fn)(void *ctx, const struct digest *d, struct err *e), void *ctx, struct err *e)
{
	auto_buf struct buf b = {0};
	auto_json json_t *doc = NULL;
	const json_t *o;
	size_t i;

	if (store_blob_read(s, manifest, ATTACHED_DOCUMENT_MAX, &b, NULL) < 0)
		return 0;
	doc = json_parse(b.data ? b.data : "", b.len, NULL);
	if (blob_in(json_object_get(doc, "config"), fn, ctx, e) < 0)
		return -1;
	json_array_foreach (json_object_get(doc, "layers"), i, o)
		if (blob_in(o, fn, ctx, e) < 0)
			return -1;
	return fn(ctx, manifest, e);
}

int attached_blobs(struct store *s, const struct digest *subject,
	int (*fn)(void *ctx, const struct digest *d, struct err *e), void *ctx, struct err *e)
{
	auto_json json_t *list = attached_list(s, subject, e);
	struct descriptor d;
	const json_t *o;
	size_t i;

	if (!list)
		return -1;
	json_array_foreach (list, i, o)
		if (descriptor_read(&d, o, e) < 0 || blobs_of(s, &d.digest, fn, ctx, e) < 0)
			return -1;
	return 0;
}

int attached_remove(struct store *s, const struct digest *subject, struct err *e)
{
	char path[16 + DIGEST_HEX];

	path_of(subject, path);
	if (sys_unlinkat(s->fd, path, 0) < 0 && errno != ENOENT)
		return err_sys(e, "remove %s/%s", s->path, path);
	return 0;
}

/* ---- artifacts ---- */

static json_t *describe(const char *type, const struct digest *d, uint64_t size)
{
	char text[DIGEST_TEXT + 1];

	return json_pack("{s:s, s:s, s:I}", "mediaType", type, "digest", digest_text(d, text),
		"size", (json_int_t)size);
}

/* The descriptor of something in blobs/. */
static json_t *describe_blob(
	struct store *s, const char *type, const struct digest *d, struct err *e)
{
	uint64_t size;
	auto_fd int fd = store_blob_open(s, d, &size, e);

	return fd < 0 ? NULL : describe(type, d, size);
}

/* Of an index, its type; the store keeps no types. */
static json_t *describe_subject(struct store *s, const struct digest *subject, struct err *e)
{
	auto_buf struct buf b = {0};
	auto_json json_t *doc = NULL;
	const char *type;

	if (store_blob_read(s, subject, 8 << 20, &b, e) < 0)
		return NULL;
	doc = json_parse(b.data ? b.data : "", b.len, e);
	if (!doc)
		return NULL;
	type = text_in(doc, "mediaType");
	if (!type)
		type = json_object_get(doc, "manifests") ? OCI_INDEX_TYPE : OCI_MANIFEST_TYPE;
	return describe(type, subject, b.len);
}

static json_t *artifact(
	struct store *s, const struct digest *subject, const struct attachment *a, struct err *e)
{
	struct digest config, blob;
	json_t *of, *layer, *doc;

	if (store_blob_put(s, "{}", 2, &config, e) < 0 ||
		store_blob_put(s, a->data, a->n, &blob, e) < 0)
		return NULL;
	of = describe_subject(s, subject, e);
	if (!of)
		return NULL;
	layer = describe(a->type, &blob, a->n);
	if (a->title)
		json_object_set_new(layer, "annotations",
			json_pack("{s:s}", "org.opencontainers.image.title", a->title));
	doc = json_pack("{s:i, s:s, s:s, s:o, s:[o], s:o}", "schemaVersion", 2, "mediaType",
		OCI_MANIFEST_TYPE, "artifactType", a->type, "config",
		describe(EMPTY_TYPE, &config, 2), "layers", layer, "subject", of);
	if (a->annotations)
		json_object_set(doc, "annotations", a->annotations);
	return doc;
}

int attached_put(struct store *s, const struct digest *subject, const struct attachment *a,
	const char *once, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(ATTACHED_DOCUMENT_MAX);
	auto_json json_t *doc = artifact(s, subject, a, e), *descriptor = NULL, *one = NULL;
	struct digest d;

	if (!doc)
		return -1;
	json_text(doc, true, &b);
	if (store_blob_put(s, b.data, b.len, &d, e) < 0)
		return -1;
	descriptor = describe_blob(s, OCI_MANIFEST_TYPE, &d, e);
	if (!descriptor)
		return -1;
	json_object_set_new(descriptor, "artifactType", json_string(a->type));
	if (a->annotations)
		json_object_set(descriptor, "annotations", a->annotations);
	one = json_pack("[O]", descriptor);
	return list_all(s, subject, one, once ? once : "", e);
}

static int only_blob(struct store *s, const json_t *descriptor, struct buf *b, struct err *e)
{
	auto_buf struct buf text = {0};
	auto_json json_t *doc = NULL;
	struct descriptor d;

	if (descriptor_read(&d, descriptor, e) < 0 ||
		store_blob_read(s, &d.digest, ATTACHED_DOCUMENT_MAX, &text, e) < 0)
		return -1;
	doc = json_parse(text.data ? text.data : "", text.len, e);
	if (!doc || descriptor_read(&d, json_array_get(json_object_get(doc, "layers"), 0), e) < 0)
		return -1;
	return store_blob_read(s, &d.digest, ATTACHED_BLOB_MAX, b, e) < 0 ? -1 : 1;
}

int attached_blob(struct store *s, const struct digest *subject, const char *type,
	const char *annotation, const char *value, struct buf *b, struct err *e)
{
	auto_json json_t *list = attached_list(s, subject, e);
	const json_t *o;
	size_t i;

	if (!list)
		return -1;
	json_array_foreach (list, i, o)
		if (same_text(text_in(o, "artifactType"), type) &&
			(!annotation || same_text(annotation_of(o, annotation), value)))
			return only_blob(s, o, b, e);
	return 0;
}
