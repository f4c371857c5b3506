#include "images/complete.h"

#include <inttypes.h>
#include <string.h>

#include "images/blob-fetch.h"
#include "images/progress.h"
#include "images/rebuild.h"

struct completer {
	struct image *im;
	struct store *s;
	const struct config *config;
	const char *source;
	bool plain_http, insecure;
	struct progress *progress;
	/* the way through the registry */
	bool opened; /* or tried to */
	char *host;
	struct registry *registry;
	struct download *download; /* NULL: there is no source, or it could not be opened ... */
	struct err fault;          /* ... and why */
	/* the way through the pool */
	struct rebuild *rebuild;
};

struct completer *completer_new(struct image *im, struct store *s, const struct config *c,
	const char *source, struct progress *p)
{
	struct completer *x = mem_alloc(sizeof(*x));

	*x = (struct completer){.im = im, .s = s, .config = c, .source = source, .progress = p};
	return x;
}

void completer_reach(struct completer *x, bool plain_http, bool insecure)
{
	x->plain_http = plain_http;
	x->insecure = insecure;
}

void completer_free(struct completer *x)
{
	if (!x)
		return;
	if (x->download)
		download_free(x->download);
	if (x->registry)
		registry_close(x->registry);
	free(x->host);
	rebuild_close(x->rebuild);
	free(x);
}

/* ---- fetching ---- */

static void open_source(struct completer *x)
{
	const char *from = x->source, *slash = from ? strchr(from, '/') : NULL;
	struct registry_options o = {
		.config = x->config, .plain_http = x->plain_http, .insecure = x->insecure};

	if (x->opened || !from)
		return;
	x->opened = true;
	if (!slash) {
		err_set(&x->fault, ERR_CORRUPT, "'%.200s' is no repository", from);
		return;
	}
	x->host = mem_printf("%.*s", (int)(slash - from), from);
	o.host = x->host;
	o.path = slash + 1;
	x->registry = registry_open(&o, &x->fault);
	if (x->registry)
		x->download = download_new(x->registry, &download_defaults, &x->fault);
}

static int fetch_layer(
	struct completer *x, const struct image_layer *l, struct blob_writer *w, struct err *e)
{
	struct digest found;
	int rc;

	if (store_blob_begin(x->s, w, e) < 0)
		return -1;
	rc = blob_fetch_rest(x->download, &l->digest, l->size, w, x->progress, e);
	if (rc == 0) {
		found = store_blob_digest(w);
		rc = digest_check(&l->digest, &found, e, "%s", registry_name(x->registry));
	}
	if (rc < 0)
		store_blob_abort(w);
	return rc;
}

/* ---- all ways ---- */

/* Neither way led anywhere: say both. */
static int neither(
	const struct err *fetched, const struct err *rebuilt, const char *source, struct err *e)
{
	if (!source) {
		err_set(e, ERR_NOT_FOUND,
			"it is not in the store, the image came from no registry, and %s",
			rebuilt->text);
		return err_hint(e, "build, load or pull the image again");
	}
	/* what a person can do something about is the kind that counts */
	err_set(e, fetched->kind, "%.700s; nor can it be made again: %.700s", fetched->text,
		rebuilt->text);
	return err_hint(e, "%s",
		fetched->hint[0] ? fetched->hint : "pull the image again from where it is");
}

int completer_layer(struct completer *x, size_t i, struct blob_writer *w, struct err *e)
{
	struct err fetched, rebuilt = {0};
	char hex[DIGEST_HEX + 1];

	open_source(x);
	fetched = x->fault;
	if (x->download && fetch_layer(x, &x->im->layers[i], w, &fetched) == 0)
		return 0;
	if (!x->rebuild)
		x->rebuild = rebuild_open(x->im, x->s, &rebuilt);
	if (x->rebuild && rebuild_layer(x->rebuild, i, w, x->progress, &rebuilt) == 0)
		return 0;
	neither(&fetched, &rebuilt, x->source, e);
	return err_ctx(e, "layer %zu, %.12s", i, digest_hex(&x->im->layers[i].digest, hex));
}

static int complete_layer(struct completer *x, size_t i, struct err *e)
{
	struct blob_writer w;
	struct digest d;
	int rc;

	if (store_has(x->s, &x->im->layers[i].digest)) /* named twice, perhaps */
		return 0;
	if (completer_layer(x, i, &w, e) < 0)
		return -1;
	rc = store_blob_commit(&w, &d, e);
	store_blob_abort(&w);
	return rc;
}

int image_complete(struct image *im, struct store *s, const struct config *c, const char *source,
	struct progress *p, struct err *e)
{
	struct completer *x;
	uint64_t total = 0;
	int rc = 0;

	for (size_t i = 0; i < im->nlayers; i++)
		total += store_has(s, &im->layers[i].digest) ? 0 : im->layers[i].size;
	if (total == 0)
		return 0;
	x = completer_new(im, s, c, source, p);
	progress_begin(p, "complete", total);
	for (size_t i = 0; rc == 0 && i < im->nlayers; i++)
		rc = complete_layer(x, i, e);
	completer_free(x);
	if (rc == 0)
		progress_end(p);
	return rc;
}
