#include "images/complete.h"

#include <inttypes.h>
#include <string.h>

#include "base/progress.h"
#include "base/str.h"
#include "images/download.h"
#include "images/rebuild.h"

/* ---- fetching ---- */

struct fetch {
	struct store *s;
	char *host;
	struct registry *r;
	struct download *d; /* NULL: there is no source, or it could not be opened */
	struct err opening; /* why */
	struct progress *progress;
};

static void fetch_open(struct fetch *f, const struct config *c, const char *source)
{
	const char *slash = strchr(source, '/');
	struct registry_options o = {.config = c};

	if (!slash) {
		err_set(&f->opening, ERR_CORRUPT, "'%.200s' is no repository", source);
		return;
	}
	f->host = mem_printf("%.*s", (int)(slash - source), source);
	o.host = f->host;
	o.path = slash + 1;
	f->r = registry_open(&o, &f->opening);
	f->d = f->r ? download_new(f->r, &download_defaults, &f->opening) : NULL;
}

static void fetch_close(struct fetch *f)
{
	if (f->d)
		download_free(f->d);
	if (f->r)
		registry_close(f->r);
	free(f->host);
}

static struct piece *cut(const struct image_layer *l, size_t *n)
{
	struct piece *v;

	*n = (size_t)((l->size + PIECE_MAX - 1) / PIECE_MAX);
	v = mem_array(*n, sizeof(*v));
	for (size_t i = 0; i < *n; i++) {
		uint64_t at = (uint64_t)i * PIECE_MAX;

		v[i].blob = &l->digest;
		v[i].blob_size = l->size;
		v[i].offset = at;
		v[i].length = l->size - at < PIECE_MAX ? (uint32_t)(l->size - at) : PIECE_MAX;
	}
	return v;
}

static int copy_pieces(struct fetch *f, struct stream *in, struct blob_writer *w, struct err *e)
{
	struct piece *p;
	int rc;

	while ((rc = stream_next(in, &p, e)) > 0) {
		uint32_t n = p->length;

		rc = store_blob_add(w, p->data, n, e);
		stream_release(in, p);
		if (rc < 0)
			return -1;
		progress_add(f->progress, n);
	}
	return rc;
}

/* The blob as it arrives, under its name only when it is what its digest says. */
static int fetch_layer(struct fetch *f, const struct image_layer *l, struct err *e)
{
	struct blob_writer w;
	struct digest found;
	struct hash h;
	struct piece *v;
	struct stream *in;
	size_t n;
	int rc;

	if (store_blob_begin(f->s, &w, e) < 0)
		return -1;
	v = cut(l, &n);
	in = stream_open(f->d, v, n, true);
	rc = copy_pieces(f, in, &w, e);
	stream_close(in);
	free(v);
	if (rc == 0) {
		h = w.hash;
		found = hash_digest(&h);
		rc = digest_check(&l->digest, &found, e, "%s", registry_name(f->r));
	}
	if (rc == 0)
		rc = store_blob_commit(&w, &found, e);
	store_blob_abort(&w);
	return rc;
}

/* ---- all ways ---- */

/* Neither way led anywhere: say both. */
static int neither(
	const struct err *fetched, const struct err *rebuilt, const char *source, struct err *e)
{
	/* what a person can do something about is the kind that counts */
	enum err_kind kind = source ? fetched->kind : ERR_NOT_FOUND;

	if (!source)
		err_set(e, kind, "it is not in the store, the image came from no registry, and %s",
			rebuilt->text);
	else
		err_set(e, kind, "%s; nor can it be made again: %s", fetched->text, rebuilt->text);
	if (source && fetched->hint[0])
		return err_hint(e, "%s", fetched->hint);
	return err_hint(e, "pull the image again from where it is");
}

static int complete_layer(struct image *im, size_t i, struct fetch *f, struct rebuild **b,
	const char *source, struct err *e)
{
	struct err fetched = f->opening, rebuilt = {0};

	if (f->d && fetch_layer(f, &im->layers[i], &fetched) == 0)
		return 0;
	if (!*b)
		*b = rebuild_open(im, f->s, &rebuilt);
	if (*b && rebuild_layer(*b, i, f->progress, &rebuilt) == 0)
		return 0;
	return neither(&fetched, &rebuilt, source, e);
}

static uint64_t total_of(const struct image *im, const bool *which)
{
	uint64_t n = 0;

	for (size_t i = 0; i < im->nlayers; i++)
		n += which[i] ? im->layers[i].size : 0;
	return n;
}

int image_complete_some(struct image *im, struct store *s, const struct config *c,
	const char *source, bool *which, struct progress *p, struct err *e)
{
	struct fetch f = {.s = s, .progress = p};
	struct rebuild *b = NULL;
	uint64_t total;
	int rc = 0;

	for (size_t i = 0; i < im->nlayers; i++)
		which[i] = which[i] && !store_has(s, &im->layers[i].digest);
	total = total_of(im, which);
	if (total == 0)
		return 0;
	progress_begin(p, "complete", total);
	if (source)
		fetch_open(&f, c, source);
	for (size_t i = 0; rc == 0 && i < im->nlayers; i++)
		if (which[i] && !store_has(s, &im->layers[i].digest) &&
			complete_layer(im, i, &f, &b, source, e) < 0) {
			char hex[DIGEST_HEX + 1];

			rc = err_ctx(
				e, "layer %zu, %.12s", i, digest_hex(&im->layers[i].digest, hex));
		}
	rebuild_close(b);
	fetch_close(&f);
	if (rc == 0)
		progress_end(p);
	return rc;
}

int image_complete(struct image *im, struct store *s, const struct config *c, const char *source,
	struct progress *p, struct err *e)
{
	auto_free bool *which = mem_array(im->nlayers, sizeof(*which));

	for (size_t i = 0; i < im->nlayers; i++)
		which[i] = true;
	return image_complete_some(im, s, c, source, which, p, e);
}
