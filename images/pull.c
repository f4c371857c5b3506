#include "images/pull.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/sys.h"
#include "images/adopt.h"
#include "images/models-move.h"
#include "images/models.h"
#include "images/mount-image.h"
#include "images/progress.h"
#include "images/pull-own.h"
#include "images/pull-policy.h"
#include "images/registry.h"
#include "images/workers.h"

enum { CANDIDATES_MAX = 16, CONFIG_BYTES_MAX = 8 << 20 };

/* One reference being pulled. */
struct pull {
	struct store *s;
	const struct config *config;
	const struct pull_options *o;
	struct progress *progress;
	struct pull_result *result;
	bool chosen; /* from an index, which says what it is for */
	struct reference ref;
	struct registry *registry;
	struct download *download; /* made when there is something to fetch */
	struct pool *pool;
	int hold; /* while there is no pool: what was found here stays until it has its name */
	struct pull_policy policy;
	const struct document *index; /* that the image was chosen from; or NULL */
};

/* A manifest or index as the registry gave it. */
struct document {
	struct buf text;
	char type[REGISTRY_TYPE];
	struct digest digest;
	json_t *json;
};

static void document_fini(struct document *d)
{
	buf_fini(&d->text);
	json_decref(d->json);
	*d = (struct document){0};
}

static int document_get(struct pull *p, struct document *d, const char *target, struct err *e)
{
	*d = (struct document){.text.max = REGISTRY_MANIFEST_MAX};
	if (registry_manifest(p->registry, target, &d->text, d->type, &d->digest, e) < 0)
		return -1;
	d->json = json_parse(d->text.data, d->text.len, e);
	return d->json ? 0 : err_ctx(e, "%s: manifest %s", registry_name(p->registry), target);
}

static int document_keep(struct pull *p, const struct document *d, struct err *e)
{
	struct digest digest;

	return store_blob_put(p->s, d->text.data, d->text.len, &digest, e);
}

/* ---- the small blobs: config, and the layer that has the index ---- */

struct small_blobs {
	struct pull *p;
	struct descriptor v[2];
	size_t n;
};

/* A blob that is here came with another image, whose manifest may have told its size better. */
static int check_size(struct store *s, const struct descriptor *d, struct err *e)
{
	char text[DIGEST_TEXT + 1];
	uint64_t size;
	auto_fd int fd = store_blob_open(s, &d->digest, &size, e);

	if (fd < 0)
		return -1;
	if (size != d->size)
		return err_set(e, ERR_CORRUPT, "%s: expected %" PRIu64 " bytes, found %" PRIu64,
			digest_text(&d->digest, text), d->size, size);
	return 0;
}

static int fetch_small(void *ctx, size_t i, struct err *e)
{
	struct small_blobs *b = ctx;
	const struct descriptor *d = &b->v[i];
	auto_buf struct buf data = BUF_INIT(INDEX_BYTES_MAX);
	struct digest digest;

	if (store_has(b->p->s, &d->digest))
		return check_size(b->p->s, d, e);
	if (registry_blob(b->p->registry, &d->digest, d->size, &data, e) < 0)
		return -1;
	return store_blob_put(b->p->s, data.data, data.len, &digest, e);
}

/* The descriptor of the layer that carries the index. 1, 0 when there is none, -1. */
static int find_index_layer(const json_t *manifest, struct descriptor *d, struct err *e)
{
	const char *text = json_string_value(
		json_object_get(json_object_get(manifest, "annotations"), INDEX_ANNOTATION));
	const json_t *o;
	struct index_place place;
	size_t i;

	if (!text)
		return 0;
	if (index_place_parse(&place, text, e) < 0)
		return err_ctx(e, "annotation " INDEX_ANNOTATION);
	json_array_foreach (json_object_get(manifest, "layers"), i, o) {
		if (descriptor_read(d, o, e) < 0)
			return err_ctx(e, "/layers/%zu", i);
		if (digest_eq(&d->digest, &place.layer))
			return 1;
	}
	return 0;
}

static int fetch_documents(struct pull *p, const struct document *m, struct err *e)
{
	struct small_blobs b = {.p = p, .n = 1};
	const json_t *config = json_object_of(m->json, "config", e);
	int rc = config ? descriptor_read(&b.v[0], config, e) : -1;

	if (rc == 0 && b.v[0].size > CONFIG_BYTES_MAX)
		rc = err_set(e, ERR_CORRUPT, "/config: larger than the limit of %d bytes",
			CONFIG_BYTES_MAX);
	if (rc == 0)
		rc = find_index_layer(m->json, &b.v[1], e);
	if (rc > 0) {
		b.n = 2;
		if (b.v[1].size > INDEX_BYTES_MAX)
			rc = err_set(e, ERR_CORRUPT,
				"the index layer is larger than the limit of %d bytes",
				INDEX_BYTES_MAX);
	}
	if (rc < 0)
		return err_ctx(e, "manifest");
	return workers_each(b.n, b.n, fetch_small, &b, e);
}

/* ---- one image ---- */

/* Is the image here, whole? It has a name, and what has one is complete; its metadata image was the
 * last thing to be made. */
static int is_here(struct pull *p, const struct digest *manifest, struct err *e)
{
	auto_free struct digest *v = NULL;
	size_t n = 0;
	int doubtful = pool_doubtful(p->s->fd, e);

	if (doubtful != 0 || p->o->strict)
		return doubtful < 0 ? -1 : 0;
	if (!p->pool && p->hold < 0 && (p->hold = pool_hold(p->s->fd, e)) < 0)
		return -1;
	if (store_manifests(p->s, &v, &n, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		if (digest_eq(&v[i], manifest))
			return mount_image_ready(p->s, manifest, e);
	return 0;
}

static int open_tools(struct pull *p, struct err *e)
{
	sys_close_ref(&p->hold); /* opening the pool may have to wait until nobody holds it */
	if (!p->pool)
		p->pool = pool_open(p->s->fd, true, e);
	if (p->pool && !p->download)
		p->download = download_new(p->registry, &download_defaults, e);
	return p->pool && p->download ? 0 : -1;
}

/* An index was chosen from; an image alone may be for another machine. That is an error only when a
 * platform was asked for: looking inside, and pushing it on, work everywhere. */
static int check_platform(struct pull *p, const struct image *im, struct err *e)
{
	struct err fault = {0};

	if (p->chosen || image_check_platform(im->config, p->o->platform, &fault) == 0)
		return 0;
	if (!p->o->platform) {
		warn("%s: %s", registry_name(p->registry), fault.text);
		return 0;
	}
	if (e)
		*e = fault;
	return -1;
}

/* The image is here already. */
static int check_present(struct pull *p, const struct digest *manifest, struct err *e)
{
	struct image im;
	int rc;

	if (image_load(&im, p->s, manifest, e) < 0)
		return -1;
	rc = check_platform(p, &im, e);
	image_fini(&im);
	return rc;
}

static int fetch_layers(struct pull *p, const struct digest *manifest, struct err *e)
{
	struct image im;
	bool fetched = false;
	int rc;

	if (image_load(&im, p->s, manifest, e) < 0)
		return -1;
	if (check_platform(p, &im, e) < 0) {
		image_fini(&im);
		return -1;
	}
	rc = im.has_index && !p->o->strict
		     ? pull_own(&im, p->s, p->pool, p->download, p->progress, &fetched, e)
		     : 1;
	if (rc > 0) {
		struct adopt a = {.im = &im,
			.s = p->s,
			.pool = p->pool,
			.download = p->download,
			.strict = p->o->strict,
			.progress = p->progress};

		rc = adopt_image(&a, e);
		fetched = a.fetched;
	}
	if (fetched)
		p->result->present = false;
	image_fini(&im);
	return rc;
}

/* The models that are artifacts of their own come with the image. */
static int fetch_models(struct pull *p, const struct document *m, struct err *e)
{
	bool fetched = false;
	int missing = models_missing(p->s, m->json, e);

	if (missing < 0 || (missing > 0 && open_tools(p, e) < 0) ||
		(missing > 0 && models_pull(p->registry, p->download, p->s, m->json, p->progress,
					&fetched, e) < 0))
		return -1;
	if (fetched)
		p->result->present = false;
	return models_attach(p->s, &m->digest, e);
}

/* What is not wanted comes no further than its manifest. */
static int obey_policy(struct pull *p, const struct document *m, struct err *e)
{
	return pull_policy_check(
		&p->policy, p->registry, p->s, &m->digest, p->index ? &p->index->text : NULL, e);
}

static int pull_manifest(struct pull *p, const struct document *m, struct err *e)
{
	auto_fd int turn = -1;
	int rc;

	if (!image_type_is_manifest(m->type))
		return err_set(e, ERR_UNSUPPORTED, "'%.100s' is no image manifest", m->type);
	/* another process may be pulling the same image: it does the work for both */
	turn = store_work_lock(p->s, &m->digest, e);
	rc = turn < 0 ? -1 : is_here(p, &m->digest, e);
	if (rc < 0)
		return -1;
	if (rc > 0) {
		if (obey_policy(p, m, e) < 0 || check_present(p, &m->digest, e) < 0)
			return -1;
		return fetch_models(p, m, e);
	}
	if (open_tools(p, e) < 0 || obey_policy(p, m, e) < 0 || document_keep(p, m, e) < 0 ||
		fetch_documents(p, m, e) < 0 || fetch_layers(p, &m->digest, e) < 0)
		return -1;
	return fetch_models(p, m, e);
}

/* ---- an index ---- */

static int pull_platform(
	struct pull *p, const struct descriptor *d, struct document *m, struct err *e)
{
	char text[DIGEST_TEXT + 1];

	p->chosen = true;
	if (document_get(p, m, digest_text(&d->digest, text), e) < 0)
		return -1;
	return pull_manifest(p, m, e);
}

static bool is_image(const json_t *o)
{
	const char *type = json_string_value(json_object_get(o, "mediaType"));
	const char *os = json_string_value(json_object_get(json_object_get(o, "platform"), "os"));

	/* attestations and the like pretend to be for a platform called unknown */
	return type && image_type_is_manifest(type) && !(os && str_eq(os, "unknown"));
}

static int pull_all(struct pull *p, const struct document *index, struct err *e)
{
	const json_t *list = json_array_of(index->json, "manifests", e), *o;
	size_t i;

	if (!list)
		return -1;
	json_array_foreach (list, i, o) {
		struct document m = {0};
		struct descriptor d;
		int rc;

		if (!is_image(o))
			continue;
		rc = descriptor_read(&d, o, e) < 0 ? -1 : pull_platform(p, &d, &m, e);
		document_fini(&m);
		if (rc < 0)
			return err_ctx(e, "/manifests/%zu", i);
	}
	return document_keep(p, index, e);
}

/* Pull what the reference leads to; *top is what gets the name. */
static int pull_target(struct pull *p, struct document *top, struct err *e)
{
	char target[DIGEST_TEXT + 1];
	struct document m = {0};
	struct descriptor d;

	if (document_get(p, top, reference_target(&p->ref, target), e) < 0)
		return -1;
	if (!image_type_is_index(top->type))
		return pull_manifest(p, top, e);
	p->index = top;
	if (p->o->all_platforms)
		return pull_all(p, top, e);
	if (image_choose(top->json, p->o->platform, &d, e) < 0)
		return -1;
	if (pull_platform(p, &d, &m, e) < 0) {
		document_fini(&m);
		return -1;
	}
	document_fini(top);
	*top = m;
	return 0;
}

/* ---- the whole ---- */

static int set_name(struct pull *p, const struct document *top, struct err *e)
{
	struct reference r = p->ref;

	if (r.has_digest) /* nobody vouched for the tag beside it */
		r.tag[0] = '\0';
	reference_text(&r, p->result->name);
	p->result->manifest = top->digest;
	return store_name_set(
		p->s, p->result->name, &top->digest, top->text.len, registry_name(p->registry), e);
}

static int pull_reference(struct pull *p, struct err *e)
{
	struct registry_options ro = {.config = p->config,
		.host = p->ref.host,
		.path = p->ref.path,
		.plain_http = p->o->plain_http,
		.insecure = p->o->insecure};
	struct document top = {0};
	int rc = -1;

	p->registry = registry_open(&ro, e);
	if (!p->registry)
		return -1;
	if (pull_policy_open(&p->policy, p->config, registry_name(p->registry), e) < 0) {
		registry_close(p->registry);
		return -1;
	}
	p->result->present = true;
	rc = pull_target(p, &top, e);
	if (rc == 0)
		rc = set_name(p, &top, e);
	document_fini(&top);
	if (p->download)
		p->result->received = download_received(p->download);
	download_free(p->download);
	pool_close(p->pool); /* after the name: garbage collection waits for this */
	sys_close_ref(&p->hold);
	pull_policy_close(&p->policy);
	registry_close(p->registry);
	p->download = NULL;
	p->pool = NULL;
	return rc;
}

int image_pull(struct store *s, const struct config *c, const char *ref,
	const struct pull_options *o, struct progress *pr, struct pull_result *r, struct err *e)
{
	struct reference v[CANDIDATES_MAX];
	size_t n;

	if (reference_expand(c, ref, v, CANDIDATES_MAX, &n, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		struct pull p = {.s = s,
			.config = c,
			.o = o,
			.progress = pr,
			.result = r,
			.ref = v[i],
			.hold = -1};
		struct err fault = {0};

		*r = (struct pull_result){0};
		if (pull_reference(&p, &fault) == 0)
			return 0;
		if (fault.kind == ERR_NOT_FOUND && i + 1 < n)
			continue;
		if (e)
			*e = fault;
		break;
	}
	return err_ctx(e, "pull %s", ref);
}
