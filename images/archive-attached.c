#include "images/archive-attached.h"

#include <string.h>

#include "base/str.h"
#include "images/image.h"
#include "images/models.h"

enum {
	DEPTH_MAX = 1,        /* an image's proofs have no proofs */
	LOADED_MAX = 1 << 14, /* things and layers in one archive: garbage collection reads all */
};

static const char *annotation(const json_t *descriptor, const char *key)
{
	return json_string_value(json_object_get(json_object_get(descriptor, "annotations"), key));
}

static bool is_index(const json_t *descriptor)
{
	const char *type = json_string_value(json_object_get(descriptor, "mediaType"));

	return type && image_type_is_index(type);
}

/* ---- saving ---- */

static void add_blob(struct archive_attached *a, struct archive_attached_blob b)
{
	mem_grow(&a->v, &a->cap, a->n);
	a->v[a->n++] = b;
}

/* 1; 0: it is not here. */
static int take_blob(struct archive_attached *a, struct store *s, const json_t *o, struct err *e)
{
	struct descriptor d;

	if (descriptor_read(&d, o, e) < 0)
		return -1;
	if (!store_has(s, &d.digest))
		return 0;
	add_blob(a, (struct archive_attached_blob){.digest = d.digest, .size = d.size});
	return 1;
}

/* A manifest, its config, its layers: 1, 0 when something is not here. */
static int take_whole(struct archive_attached *a, struct store *s, const json_t *o, struct err *e)
{
	auto_buf struct buf b = {0};
	auto_json json_t *doc = NULL;
	struct descriptor d;
	const json_t *layer;
	size_t i;
	int rc = take_blob(a, s, o, e);

	if (rc <= 0 || is_index(o))
		return rc;
	if (descriptor_read(&d, o, e) < 0 ||
		store_blob_read(s, &d.digest, ATTACHED_DOCUMENT_MAX, &b, e) < 0)
		return -1;
	doc = json_parse(b.data ? b.data : "", b.len, e);
	if (!doc)
		return -1;
	rc = take_blob(a, s, json_object_get(doc, "config"), e);
	json_array_foreach (json_object_get(doc, "layers"), i, layer)
		rc = rc > 0 ? take_blob(a, s, layer, e) : rc;
	return rc;
}

static int add_list(struct archive_attached *a, struct store *s, const struct digest *subject,
	unsigned depth, struct digest *index, struct err *e);

/* The descriptor for the list; of an index, with what is attached to it. */
static int add_one(struct archive_attached *a, struct store *s, const json_t *o, unsigned depth,
	json_t *list, struct err *e)
{
	json_t *copy = json_deep_copy(o);
	size_t before = a->n;
	char text[DIGEST_TEXT + 1];
	struct descriptor d;
	struct digest index;
	int rc = take_whole(a, s, o, e);

	if (rc == 0) {
		a->left_out++;
		a->n = before;
	}
	if (rc > 0 && is_index(o) && depth < DEPTH_MAX) {
		rc = descriptor_read(&d, o, e) < 0
			     ? -1
			     : add_list(a, s, &d.digest, depth + 1, &index, e);
		if (rc > 0)
			json_object_set_new(copy, "annotations",
				json_pack("{s:s}", ATTACHED_ANNOTATION, digest_text(&index, text)));
		rc = rc < 0 ? -1 : 1;
	}
	if (rc > 0)
		json_array_append(list, copy);
	json_decref(copy);
	return rc;
}

static int add_list(struct archive_attached *a, struct store *s, const struct digest *subject,
	unsigned depth, struct digest *index, struct err *e)
{
	auto_json json_t *all = attached_list(s, subject, e), *list = json_array(), *doc = NULL;
	auto_buf struct buf b = BUF_INIT(2 * ATTACHED_DOCUMENT_MAX);
	const json_t *o;
	size_t i;

	if (!all)
		return -1;
	json_array_foreach (all, i, o)
		if (add_one(a, s, o, depth, list, e) < 0)
			return -1;
	if (json_array_size(list) == 0)
		return 0;
	doc = json_pack("{s:i, s:s, s:O}", "schemaVersion", 2, "mediaType", OCI_INDEX_TYPE,
		"manifests", list);
	json_text(doc, true, &b);
	*index = digest_of(b.data, b.len);
	add_blob(a,
		(struct archive_attached_blob){
			.digest = *index, .size = b.len, .text = arena_strdup(&a->arena, b.data)});
	return 1;
}

int archive_attached_add(struct archive_attached *a, struct store *s, const struct digest *subject,
	struct digest *index, struct err *e)
{
	char hex[DIGEST_HEX + 1];
	int rc = add_list(a, s, subject, 0, index, e);

	return rc < 0 ? err_ctx(e, "what is attached to %.12s", digest_hex(subject, hex)) : rc;
}

void archive_attached_fini(struct archive_attached *a)
{
	arena_fini(&a->arena);
	free(a->v);
	*a = (struct archive_attached){0};
}

int archive_attached_count(struct store *s, const struct digest *subject, struct err *e)
{
	auto_json json_t *list = attached_list(s, subject, e);

	return list ? (int)json_array_size(list) : -1;
}

static const struct archive_attached_blob *find(
	const struct archive_attached *a, const struct digest *d)
{
	size_t i = 0;

	while (!digest_eq(&a->v[i].digest, d)) /* it was added */
		i++;
	return &a->v[i];
}

int archive_attached_tags(const struct archive_attached *a, const struct digest *subject,
	const struct digest *index, json_t *list, struct err *e)
{
	const struct archive_attached_blob *b = find(a, index);
	auto_json json_t *doc = json_parse(b->text, (size_t)b->size, e);
	char text[DIGEST_TEXT + 1], tag[ATTACHED_TAG];
	json_t *o;
	size_t i;

	if (!doc)
		return -1;
	json_array_append_new(
		list, json_pack("{s:s, s:s, s:I, s:{s:s}}", "mediaType", OCI_INDEX_TYPE, "digest",
			      digest_text(index, text), "size", (json_int_t)b->size, "annotations",
			      REF_NAME, attached_tag(subject, "", tag)));
	json_array_foreach (json_object_get(doc, "manifests"), i, o)
		if (annotation(o, REF_NAME))
			json_array_append(list, o);
	return 0;
}

/* ---- loading ---- */

/* "sha256-HEX", "sha256-HEX.sig" */
static bool is_tag(const char *name)
{
	return name && str_starts(name, "sha256-") &&
	       strspn(name + 7, "0123456789abcdef") == DIGEST_HEX &&
	       (!name[7 + DIGEST_HEX] || name[7 + DIGEST_HEX] == '.');
}

bool archive_is_attached(const json_t *descriptor)
{
	return is_tag(annotation(descriptor, REF_NAME)) ||
	       json_is_string(json_object_get(descriptor, "artifactType"));
}

struct loading {
	struct intake *in;
	json_t *there; /* what the store lists already */
	json_t *taken; /* what is to be listed besides */
};

static const json_t *named(const json_t *list, const char *name)
{
	const json_t *o;
	size_t i;

	json_array_foreach (list, i, o) {
		const char *is = annotation(o, REF_NAME);

		if (is && str_eq(is, name))
			return o;
	}
	return NULL;
}

/* Whether the store lists the same thing: what it says of it is not traded for an archive's word.
 */
static bool is_there(const json_t *list, const json_t *descriptor)
{
	const char *digest = json_string_value(json_object_get(descriptor, "digest"));
	const json_t *o;
	size_t i;

	json_array_foreach (list, i, o)
		if (digest && str_eq(json_string_value(json_object_get(o, "digest")), digest))
			return true;
	return false;
}

static json_t *read_document(struct intake *in, const json_t *descriptor, struct err *e)
{
	struct intake_file f;
	struct descriptor d;

	if (descriptor_read(&d, descriptor, e) < 0 || oci_archive_blob(in, &d, &f, e) < 0)
		return NULL;
	return intake_document(in, &f, ATTACHED_DOCUMENT_MAX, e);
}

static int take_blobs(struct intake *in, const json_t *doc, struct err *e)
{
	const json_t *layers = json_object_get(doc, "layers"), *o;
	struct intake_file f;
	struct descriptor d;
	size_t i;

	if (json_array_size(layers) > MODEL_LAYERS_MAX)
		return err_set(e, ERR_CORRUPT, "more than %d layers", MODEL_LAYERS_MAX);
	in->attached += 1 + json_array_size(layers);
	if (in->attached > LOADED_MAX)
		return err_set(e, ERR_CORRUPT,
			"more than %d attached things and layers of them in the archive",
			LOADED_MAX);
	if (descriptor_read(&d, json_object_get(doc, "config"), e) < 0 ||
		oci_archive_blob(in, &d, &f, e) < 0)
		return err_ctx(e, "/config");
	json_array_foreach (layers, i, o)
		if (descriptor_read(&d, o, e) < 0 || oci_archive_blob(in, &d, &f, e) < 0)
			return err_ctx(e, "/layers/%zu", i);
	return 0;
}

/* It says itself what it belongs to; cosign's tag does, too. */
static int check_subject(
	const json_t *doc, const json_t *descriptor, const struct digest *subject, struct err *e)
{
	const char *is = json_string_value(
			   json_object_get(json_object_get(doc, "subject"), "digest")),
		   *tag = annotation(descriptor, REF_NAME),
		   *type = json_string_value(json_object_get(doc, "artifactType"));
	char text[DIGEST_TEXT + 1], want[ATTACHED_TAG];

	/* an artifact of a model may be of several images: the image names it */
	if (!is && type && str_starts(type, "application/vnd.svrun.model."))
		return 0;
	if (is ? str_eq(is, digest_text(subject, text))
	       : tag && str_eq(tag, attached_tag(subject, ".sig", want)))
		return 0;
	return err_set(e, ERR_CORRUPT, "it does not belong to %s", digest_text(subject, text));
}

static int load_list(struct intake *in, const json_t *list, const struct digest *subject,
	unsigned depth, struct err *e);

/* The list that an annotation names. */
static int load_annotated(struct intake *in, const char *text, const struct digest *subject,
	unsigned depth, struct err *e)
{
	char name[sizeof("blobs/sha256/") + DIGEST_HEX], hex[DIGEST_HEX + 1];
	auto_json json_t *doc = NULL;
	struct intake_file f;
	struct digest d;

	if (digest_parse(&d, text, e) < 0)
		return err_ctx(e, ATTACHED_ANNOTATION);
	snprintf(name, sizeof(name), "blobs/sha256/%s", digest_hex(&d, hex));
	if (intake_get(in, name, &f, e) < 0)
		return -1;
	if (!digest_eq(&f.digest, &d)) /* a link of that name led elsewhere */
		return digest_check(&d, &f.digest, e, "%s: %s", in->name, name);
	doc = intake_document(in, &f, 2 * ATTACHED_DOCUMENT_MAX, e);
	return doc ? load_list(in, json_object_get(doc, "manifests"), subject, depth, e) : -1;
}

/* The document of an index is kept as it is: the proof that it names the image. */
static int take_index(
	struct loading *l, json_t *o, const struct digest *subject, unsigned depth, struct err *e)
{
	const char *more = annotation(o, ATTACHED_ANNOTATION);
	struct intake_file f;
	struct descriptor d;

	if (depth >= DEPTH_MAX)
		return err_set(e, ERR_CORRUPT, "an index that is attached to an index");
	if (descriptor_read(&d, o, e) < 0 || oci_archive_blob(l->in, &d, &f, e) < 0)
		return -1;
	if (!store_index_names(l->in->s, &d.digest, subject, ATTACHED_DOCUMENT_MAX))
		return err_set(e, ERR_CORRUPT, "it is no index that names the image");
	if (more && load_annotated(l->in, more, &d.digest, depth + 1, e) < 0)
		return -1;
	json_object_del(o, "annotations");
	json_array_append(l->taken, o);
	return 0;
}

static int take_one(struct loading *l, const json_t *descriptor, const struct digest *subject,
	unsigned depth, struct err *e)
{
	const char *tag = annotation(descriptor, REF_NAME);
	auto_json json_t *doc = NULL, *copy = NULL;

	if (is_index(descriptor)) {
		copy = json_deep_copy(descriptor);
		return take_index(l, copy, subject, depth, e);
	}
	doc = read_document(l->in, descriptor, e);
	if (!doc || check_subject(doc, descriptor, subject, e) < 0 || take_blobs(l->in, doc, e) < 0)
		return -1;
	/* signatures that are here are not traded for an archive's */
	if (is_there(l->there, descriptor) || (tag && named(l->there, tag)))
		return 0;
	json_array_append_new(l->taken, json_deep_copy(descriptor));
	return 0;
}

static int load_list(struct intake *in, const json_t *list, const struct digest *subject,
	unsigned depth, struct err *e)
{
	struct loading l = {.in = in};
	const json_t *o;
	size_t i;
	int rc = 0;

	if (!json_is_array(list) || json_array_size(list) > ATTACHED_MAX)
		return err_set(
			e, ERR_CORRUPT, "expected a list of at most %d things", ATTACHED_MAX);
	l.there = attached_list(in->s, subject, e);
	l.taken = json_array();
	if (!l.there)
		rc = -1;
	json_array_foreach (list, i, o) {
		if (rc == 0 && take_one(&l, o, subject, depth, e) < 0)
			rc = err_ctx(e, "attached thing %zu", i);
	}
	if (rc == 0)
		rc = attached_add_all(in->s, subject, l.taken, e);
	json_decref(l.taken);
	json_decref(l.there);
	return rc;
}

int archive_attached_load(struct intake *in, const json_t *list, const json_t *descriptor,
	const struct digest *manifest, struct err *e)
{
	const char *text = annotation(descriptor, ATTACHED_ANNOTATION);
	char tag[ATTACHED_TAG], sig[ATTACHED_TAG];
	const json_t *tagged = named(list, attached_tag(manifest, "", tag)),
		     *signature = named(list, attached_tag(manifest, ".sig", sig));
	auto_json json_t *doc = NULL, *one = NULL;

	if (text)
		return load_annotated(in, text, manifest, 0, e);
	if (tagged) {
		doc = read_document(in, tagged, e);
		if (!doc || load_list(in, json_object_get(doc, "manifests"), manifest, 0, e) < 0)
			return err_ctx(e, "%s", tag);
	}
	if (!signature)
		return 0;
	one = json_pack("[O]", signature);
	return load_list(in, one, manifest, 0, e) < 0 ? err_ctx(e, "%s", sig) : 0;
}
