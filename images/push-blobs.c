#include "images/push-blobs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/sys.h"
#include "images/progress.h"
#include "images/workers.h"

enum {
	ASKERS = 8,  /* threads that wait for answers */
	SENDERS = 4, /* uploads at a time */
	BLOBS_MAX = 1024,
};

enum item_state { ITEM_NEEDED, ITEM_THERE, ITEM_MOUNTED, ITEM_SKIPPED };

struct item {
	struct descriptor d;
	size_t layer; /* its number in the manifest; SIZE_MAX: the config */
	enum item_state state;
};

struct batch {
	struct push_target *t;
	struct item *v;
	size_t n;
};

/* ---- which ---- */

/* Types of layers that may not be distributed: engines fetch them from the descriptor's urls. */
static bool may_be_sent(const char *type)
{
	return !strstr(type, ".nondistributable.") && !strstr(type, ".foreign.");
}

static int add(struct batch *b, const json_t *o, size_t layer, struct err *e)
{
	struct item *x = &b->v[b->n];

	if (descriptor_read(&x->d, o, e) < 0)
		return -1;
	for (size_t i = 0; i < b->n; i++) /* the same layer twice is sent once */
		if (digest_eq(&b->v[i].d.digest, &x->d.digest))
			return 0;
	x->layer = layer;
	x->state = may_be_sent(x->d.media_type) ? ITEM_NEEDED : ITEM_SKIPPED;
	b->n++;
	return 0;
}

static int list(struct batch *b, const json_t *m, struct err *e)
{
	const json_t *config = json_object_of(m, "config", e),
		     *layers = config ? json_array_of(m, "layers", e) : NULL, *o;
	size_t i;

	if (!layers)
		return -1;
	if (json_array_size(layers) > BLOBS_MAX)
		return err_set(e, ERR_CORRUPT, "%zu layers, more than the limit of %d",
			json_array_size(layers), BLOBS_MAX);
	b->v = mem_array(json_array_size(layers) + 1, sizeof(*b->v));
	if (add(b, config, SIZE_MAX, e) < 0)
		return err_ctx(e, "/config");
	json_array_foreach (layers, i, o)
		if (add(b, o, i, e) < 0)
			return err_ctx(e, "/layers/%zu", i);
	return 0;
}

/* ---- what the registry has ---- */

static int ask(void *ctx, size_t i, struct err *e)
{
	struct batch *b = ctx;
	struct item *x = &b->v[i];
	int rc;

	if (x->state == ITEM_SKIPPED)
		return 0;
	rc = registry_has_blob(b->t->r, &x->d.digest, e);
	if (rc > 0)
		x->state = ITEM_THERE;
	if (rc != 0 || !b->t->can_mount)
		return rc < 0 ? -1 : 0;
	rc = registry_mount_blob(b->t->r, &x->d.digest, e);
	if (rc > 0)
		x->state = ITEM_MOUNTED;
	return rc < 0 ? -1 : 0;
}

static void count(struct batch *b)
{
	struct push_result *r = b->t->result;

	for (size_t i = 0; i < b->n; i++) {
		enum item_state state = b->v[i].state;

		r->there += state == ITEM_THERE;
		r->mounted += state == ITEM_MOUNTED;
		r->skipped += state == ITEM_SKIPPED;
		r->sent += state == ITEM_NEEDED;
		r->bytes += state == ITEM_NEEDED ? b->v[i].d.size : 0;
	}
}

/* ---- sending ---- */

/* Big ones first: the last to end should not be one that began last. */
static int bigger(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return x->d.size < y->d.size ? 1 : x->d.size > y->d.size ? -1 : 0;
}

static int send_fd(struct batch *b, const struct item *x, int fd, uint64_t size, struct err *e)
{
	char hex[DIGEST_HEX + 1];

	if (size != x->d.size)
		return err_set(e, ERR_CORRUPT,
			"blob %.12s: expected %" PRIu64 " bytes, found %" PRIu64,
			digest_hex(&x->d.digest, hex), x->d.size, size);
	return registry_upload(b->t->r, &x->d.digest, fd, size, b->t->progress, e);
}

static bool is_local(const struct batch *b, const struct item *x)
{
	return x->layer == SIZE_MAX || store_has(b->t->s, &x->d.digest);
}

static int send_local(void *ctx, size_t i, struct err *e)
{
	struct batch *b = ctx;
	const struct item *x = &b->v[i];
	uint64_t size;

	if (x->state != ITEM_NEEDED || !is_local(b, x))
		return 0;

	auto_fd int fd = store_blob_open(b->t->s, &x->d.digest, &size, e);

	return fd < 0 ? -1 : send_fd(b, x, fd, size, e);
}

/* One at a time: two would want twice the room on the disk. */
static int send_absent(struct batch *b, struct completer *c, const struct item *x, struct err *e)
{
	struct blob_writer w;
	int rc;

	if (completer_layer(c, x->layer, &w, e) < 0)
		return -1;
	rc = send_fd(b, x, w.fd, w.size, e);
	store_blob_abort(&w);
	return rc;
}

static int send_all_absent(
	struct batch *b, const bool *absent, const struct digest *manifest, struct err *e)
{
	struct push_target *t = b->t;
	struct completer *c;
	struct image im;
	int rc;

	if (image_load(&im, t->s, manifest, e) < 0)
		return -1;
	c = completer_new(&im, t->s, t->config, t->source, NULL);
	completer_reach(c, t->plain_http, t->insecure);
	rc = 0;
	for (size_t i = 0; rc == 0 && i < b->n; i++)
		if (absent[i])
			rc = send_absent(b, c, &b->v[i], e);
	completer_free(c);
	image_fini(&im);
	return rc;
}

static int send_all(struct batch *b, const struct digest *manifest, struct err *e)
{
	auto_free bool *absent = mem_array(b->n, sizeof(*absent));
	uint64_t total = 0;
	bool any = false;
	int rc;

	qsort(b->v, b->n, sizeof(*b->v), bigger);
	for (size_t i = 0; i < b->n; i++) {
		if (b->v[i].state != ITEM_NEEDED)
			continue;
		total += b->v[i].d.size;
		absent[i] = !is_local(b, &b->v[i]);
		any = any || absent[i];
	}
	if (total == 0)
		return 0;
	progress_begin(b->t->progress, "push", total);
	rc = workers_each(b->n, SENDERS, send_local, b, e);
	if (rc == 0 && any)
		rc = send_all_absent(b, absent, manifest, e);
	if (rc == 0)
		progress_end(b->t->progress);
	return rc;
}

int push_blobs(
	struct push_target *t, const struct digest *manifest, const json_t *document, struct err *e)
{
	struct batch b = {.t = t};
	int rc = list(&b, document, e);

	if (rc == 0)
		rc = workers_each(b.n, ASKERS, ask, &b, e);
	if (rc == 0)
		rc = send_all(&b, manifest, e);
	if (rc == 0)
		count(&b);
	free(b.v);
	return rc;
}
