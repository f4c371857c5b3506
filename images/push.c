#include "images/push.h"

#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "base/sys.h"
#include "images/models-move.h"
#include "images/progress.h"
#include "images/push-blobs.h"
#include "images/referrers.h"

enum { MANIFEST_MAX = 8 << 20, DEPTH_MAX = 4, NESTED_MAX = 1024 };

/* What is meant by a name in the store. */
struct found {
	struct digest manifest; /* of an image, or of an index */
	char *name;             /* the one it was found by, or one that has a host; or NULL */
	char *source;           /* or NULL */
	char *neighbour; /* "host/path" of another name that it has, on the target's host; or NULL
			  */
};

static void found_fini(struct found *f)
{
	free(f->name);
	free(f->source);
}

/* ---- what ---- */

/* The digest that ref says, when it says one. */
static bool digest_in(const char *ref, struct digest *d)
{
	const char *at = strchr(ref, '@');

	return digest_parse(d, at ? at + 1 : ref, NULL) == 0;
}

static void keep(char **to, const char *text)
{
	if (!*to && text)
		*to = mem_strdup(text);
}

/* What the names say of an image, beside the one that was asked for. */
static void look_around(struct found *f, const struct store_name *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!digest_eq(&v[i].manifest, &f->manifest))
			continue;
		keep(&f->source, v[i].source);
		if (reference_has_host(v[i].name))
			keep(&f->name, v[i].name);
	}
}

static int find(struct found *f, struct store *s, const char *ref, bool index, struct err *e)
{
	struct store_name *v;
	size_t n, at;
	int rc;

	*f = (struct found){0};
	/* of an index, this machine's image, and what to say when there is nothing at all */
	if (store_resolve(s, ref, &f->manifest, e) < 0 || store_names(s, &v, &n, e) < 0)
		return -1;
	rc = str_starts(ref, "sha256:") ? 0 : store_name_find(v, n, ref, &at, NULL);
	if (rc > 0) {
		if (index)
			f->manifest = v[at].manifest;
		f->name = mem_strdup(v[at].name);
		keep(&f->source, v[at].source);
	} else if (index) {
		digest_in(ref, &f->manifest);
	}
	look_around(f, v, n);
	store_names_free(v, n);
	return 0;
}

/* ---- where to ---- */

static int aim(struct reference *to, const struct found *f, const char *ref, struct err *e)
{
	if (!ref && (!f->name || !reference_has_host(f->name))) {
		err_set(e, ERR_USAGE,
			"no registry is named: the image's name, '%.200s', has no host",
			f->name ? f->name : "");
		return err_hint(e, "say where to: svrun image push IMAGE HOST[:PORT]/NAME[:TAG]");
	}
	return reference_parse(to, ref ? ref : f->name, e);
}

static bool is_on(const char *repository, const char *host)
{
	size_t n = strlen(host);

	return repository && strncmp(repository, host, n) == 0 && repository[n] == '/';
}

/* Another repository on the target's host that may have the image's blobs; to free(), or NULL. */
static char *neighbour_of(struct store *s, const struct reference *to, const struct found *f)
{
	size_t n;
	struct store_name *v;
	char *path = NULL;

	if (is_on(f->source, to->host) && !str_eq(strchr(f->source, '/') + 1, to->path))
		return mem_strdup(strchr(f->source, '/') + 1);
	if (store_names(s, &v, &n, NULL) < 0)
		return NULL;
	for (size_t i = 0; !path && i < n; i++) {
		struct reference r;

		if (digest_eq(&v[i].manifest, &f->manifest) && reference_has_host(v[i].name) &&
			reference_parse(&r, v[i].name, NULL) == 0 && str_eq(r.host, to->host) &&
			!str_eq(r.path, to->path))
			path = mem_strdup(r.path);
	}
	store_names_free(v, n);
	return path;
}

/* ---- documents ---- */

/* Its media type; what other tools left out is told from what is in it. */
static const char *type_of(const json_t *m)
{
	const char *type = json_string_value(json_object_get(m, "mediaType"));

	if (type)
		return type;
	return json_object_get(m, "manifests") ? OCI_INDEX_TYPE : OCI_MANIFEST_TYPE;
}

static int put(struct push_target *t, const char *target, const struct digest *d, const json_t *m,
	const struct buf *b, struct err *e)
{
	auto_buf struct buf there = BUF_INIT(REGISTRY_MANIFEST_MAX);
	char type[REGISTRY_TYPE];
	struct digest found;

	/* nothing was new so far: is this? */
	if (t->result->sent + t->result->mounted == 0 && t->result->present &&
		registry_has_manifest(t->r, target, NULL) > 0 &&
		registry_manifest(t->r, target, &there, type, &found, NULL) == 0 &&
		digest_eq(&found, d))
		return 0;
	t->result->present = false;
	return registry_put_manifest(t->r, target, type_of(m), b->data, b->len, e);
}

static int push_document(struct push_target *t, const char *target, const struct digest *d,
	unsigned depth, struct err *e);

static int push_nested(struct push_target *t, const json_t *o, unsigned depth, struct err *e)
{
	struct descriptor d;
	char text[DIGEST_TEXT + 1];
	int rc;

	if (descriptor_read(&d, o, e) < 0)
		return -1;
	digest_text(&d.digest, text);
	if (store_has(t->s, &d.digest))
		return push_document(t, text, &d.digest, depth + 1, e);
	rc = registry_has_manifest(t->r, text, e);
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	err_set(e, ERR_NOT_FOUND, "its manifest %s is neither in the store nor in the registry",
		text);
	return err_hint(e, "svrun image pull --all-platforms fetches all images of an index");
}

static int push_index(struct push_target *t, const json_t *m, unsigned depth, struct err *e)
{
	const json_t *list = json_array_of(m, "manifests", e), *o;
	size_t i;

	if (!list)
		return -1;
	if (depth >= DEPTH_MAX || json_array_size(list) > NESTED_MAX)
		return err_set(e, ERR_CORRUPT, "more than %d images, or nested deeper than %d",
			NESTED_MAX, DEPTH_MAX);
	json_array_foreach (list, i, o)
		if (push_nested(t, o, depth, e) < 0)
			return err_ctx(e, "/manifests/%zu", i);
	return 0;
}

/* Everything that a document names, then itself, then what is attached to it. */
static int push_document(struct push_target *t, const char *target, const struct digest *d,
	unsigned depth, struct err *e)
{
	auto_buf struct buf b = {0};
	auto_json json_t *m = NULL;
	char hex[DIGEST_HEX + 1];
	int rc;

	if (store_blob_read(t->s, d, MANIFEST_MAX, &b, e) < 0)
		return -1;
	m = json_parse(b.data, b.len, e);
	if (!m)
		return err_ctx(e, "manifest %.12s", digest_hex(d, hex));
	if (json_object_get(m, "manifests"))
		rc = push_index(t, m, depth, e);
	else
		rc = models_push(t, t->host, m, e) < 0 ? -1 : push_blobs(t, d, m, e);
	if (rc < 0 || put(t, target, d, m, &b, e) < 0)
		return -1;
	return referrers_push(t, d, e);
}

static int push_to(struct push_target *t, const struct reference *to, const char *neighbour,
	const struct push_options *o, const struct digest *d, struct err *e)
{
	struct registry_options options = {.config = t->config,
		.host = to->host,
		.path = to->path,
		.push = true,
		.mount_from = neighbour,
		.plain_http = o->plain_http,
		.insecure = o->insecure};
	char target[DIGEST_TEXT + 1];
	int rc;

	t->r = registry_open(&options, e);
	if (!t->r)
		return -1;
	t->can_mount = neighbour != NULL;
	t->host = to->host;
	t->o = o;
	t->result->manifest = *d;
	t->result->present = true;
	rc = push_document(t, reference_target(to, target), d, 0, e);
	registry_close(t->r);
	reference_text(to, t->result->ref);
	return rc;
}

/* ---- in another compression ---- */

/* Unless somebody uses it: then it had a name before, or has got one. */
static int forget(struct store *s, const struct digest *d, struct err *e)
{
	struct err fault = {0};
	auto_fd int claim = image_claim(s, d, &fault);

	if (claim >= 0)
		return image_delete(s, d, e);
	if (fault.kind == ERR_EXISTS)
		return 0;
	if (e)
		*e = fault;
	return -1;
}

static int convert_and_push(struct push_target *t, const struct digest *d,
	const struct reference *to, const char *neighbour, const struct push_options *o,
	struct err *e)
{
	struct convert_options how = *o->convert;
	struct converted made;
	struct image im;
	int rc;

	if (image_load(&im, t->s, d, e) < 0)
		return -1;
	how.plain_http = t->plain_http;
	how.insecure = t->insecure;
	rc = image_convert(&im, t->s, t->config, t->source, &how, &made, t->progress, e);
	image_fini(&im);
	if (rc < 0)
		return -1;
	rc = push_to(t, to, neighbour, o, &made.manifest, e);
	sys_close_ref(&made.hold); /* another push may have made the same: who is last deletes it */
	if (forget(t->s, &made.manifest, rc < 0 ? NULL : e) < 0)
		rc = -1;
	return rc;
}

/* ---- all of it ---- */

static int push_found(
	struct push_target *t, const struct found *f, const struct push_options *o, struct err *e)
{
	auto_free char *neighbour = NULL;
	struct reference to;
	char text[DIGEST_TEXT + 1];

	if (aim(&to, f, o->ref, e) < 0)
		return -1;
	if (to.has_digest && (o->convert || !digest_eq(&to.digest, &f->manifest)))
		return err_set(e, ERR_USAGE,
			o->convert ? "%.300s: what a conversion makes has a digest of its own"
				   : "%.300s: the image's digest is %s",
			o->ref ? o->ref : f->name, digest_text(&f->manifest, text));
	if (is_on(f->source, to.host)) { /* what is said of the one host holds there, too */
		t->plain_http = o->plain_http;
		t->insecure = o->insecure;
	}
	neighbour = neighbour_of(t->s, &to, f);
	return o->convert ? convert_and_push(t, &f->manifest, &to, neighbour, o, e)
			  : push_to(t, &to, neighbour, o, &f->manifest, e);
}

int image_push(struct store *s, const struct config *c, const char *ref,
	const struct push_options *o, struct progress *p, struct push_result *r, struct err *e)
{
	struct push_target t = {.s = s, .config = c, .progress = p, .result = r};
	struct found f;
	int rc;

	*r = (struct push_result){0};
	if (o->convert && o->all_platforms)
		return err_set(
			e, ERR_USAGE, "one image at a time can be pushed in another compression");
	if (find(&f, s, ref, o->all_platforms, e) < 0)
		return -1;
	t.source = f.source;
	rc = push_found(&t, &f, o, e);
	found_fini(&f);
	return rc;
}
