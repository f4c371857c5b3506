#include "images/adopt.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/sys.h"
#include "images/layer-list.h"
#include "images/member.h"
#include "images/mount.h"
#include "images/progress.h"
#include "images/sink.h"
#include "images/toc.h"
#include "images/tree-equal.h"
#include "images/unpack.h"
#include "images/workers.h"

enum {
	SINK_MEMORY = 16 << 20,
	LAYER_THREADS_MAX = 8,  /* each keeps a decoder and some pieces of its blob */
	LIST_WORTH = 1 << 10,   /* smaller layers are sooner fetched again than looked for */
	RECORD_SIZE = 64 << 20, /* layers from this size on are recorded at once */
};

struct work {
	struct adopt *a;
	struct sink *sink;
	struct layer_list *parts; /* by layer */
	struct members_total total;
	struct progress_line **lines;
};

/* ---- lists of layers that are known ---- */

static int find_chunks(struct pool *p, struct entries *l, bool *all, struct err *e)
{
	auto_free struct chunk **v = NULL;
	size_t n = 0, cap = 0;

	for (size_t i = 0; i < l->n; i++)
		for (uint32_t k = 0; k < l->v[i].a.nchunks; k++) {
			mem_grow(&v, &cap, n);
			v[n++] = &l->v[i].a.chunks[k];
		}
	if (n && pool_find_all(p, v, n, e) < 0)
		return -1;
	*all = true;
	for (size_t i = 0; i < n; i++)
		*all = *all && v[i]->block != CHUNK_NO_BLOCK;
	return 0;
}

/* 1: known, and the pool has all of it. */
static int load_list(struct work *w, const struct digest *layer, const char *kind,
	const struct digest *key, struct layer_list *out, struct err *e)
{
	bool all = false;
	int rc = layer_list_load(w->a->s, layer, kind, out, e);

	if (rc > 0 && digest_eq(&out->key, key) &&
		find_chunks(w->a->pool, &out->entries, &all, e) < 0)
		rc = -1;
	if (rc > 0 && all)
		return 1;
	layer_list_fini(out);
	return rc < 0 ? -1 : 0;
}

/* ---- where a layer's bytes come from ---- */

/* Pieces of a download, in order. */
struct source_stream {
	struct source source;
	struct piece *pieces, *out;
	size_t n;
	struct stream *stream;
	struct progress_line *line;
};

static int next_piece(struct source *base, const void **data, size_t *n, struct err *e)
{
	struct source_stream *s = (struct source_stream *)base;
	int rc;

	if (s->out) {
		progress_line_add(s->line, s->out->length);
		stream_release(s->stream, s->out);
	}
	s->out = NULL;
	rc = stream_next(s->stream, &s->out, e);
	if (rc <= 0)
		return rc;
	*data = s->out->data;
	*n = s->out->length;
	return 1;
}

static void open_stream(struct source_stream *s, struct download *d, const struct image_layer *l)
{
	enum { PIECE = PIECE_MAX }; /* each costs a registry about a millisecond */

	s->source.next = next_piece;
	s->n = (size_t)((l->size + PIECE - 1) / PIECE);
	s->pieces = mem_array(s->n, sizeof(*s->pieces));
	for (size_t i = 0; i < s->n; i++) {
		uint64_t at = (uint64_t)i * PIECE, left = l->size - at;

		s->pieces[i] = (struct piece){.blob = &l->digest,
			.blob_size = l->size,
			.offset = at,
			.length = left < PIECE ? (uint32_t)left : PIECE};
	}
	s->stream = stream_open(d, s->pieces, s->n, true);
}

static int unpack_stream(struct work *w, struct unpack *u, const struct image_layer *l,
	struct progress_line *line, struct entries *out, struct err *e)
{
	struct source_stream s = {.line = line};
	int rc;

	open_stream(&s, w->a->download, l);
	rc = unpack_layer(u, &s.source, w->sink, out, e);
	stream_close(s.stream);
	free(s.pieces);
	return rc;
}

/* A file that tells progress what was read of it. */
struct source_blob {
	struct source source;
	struct source_fd file;
	struct progress_line *line;
};

static int next_block(struct source *base, const void **data, size_t *n, struct err *e)
{
	struct source_blob *s = (struct source_blob *)base;
	int rc = source_next(&s->file.source, data, n, e);

	if (rc > 0)
		progress_line_add(s->line, *n);
	return rc;
}

static int unpack_blob(struct work *w, struct unpack *u, const struct image_layer *l,
	struct progress_line *line, struct entries *out, struct err *e)
{
	struct source_blob s = {.source.next = next_block, .line = line};
	auto_fd int fd = store_blob_open(w->a->s, &l->digest, NULL, e);
	int rc;

	if (fd < 0)
		return -1;
	source_fd_init(&s.file, fd, UINT64_MAX, u->name);
	rc = unpack_layer(u, &s.source, w->sink, out, e);
	source_fd_fini(&s.file);
	return rc;
}

/* ---- one layer ---- */

static int unpack(struct work *w, size_t i, struct layer_list *out, struct err *e)
{
	const struct image_layer *l = &w->a->im->layers[i];
	char name[32];
	struct unpack u = {.name = name,
		.codec = l->codec,
		.size = l->size,
		.digest = l->digest,
		.diff_id = w->a->strict ? &l->diff_id : NULL};
	int rc;

	snprintf(name, sizeof(name), "layer %zu", i);
	rc = w->a->download ? unpack_stream(w, &u, l, w->lines[i], &out->entries, e)
			    : unpack_blob(w, &u, l, w->lines[i], &out->entries, e);
	out->tar_size = u.tar_size;
	return rc;
}

/* 1 when a table may be used, 0, -1. */
static int layer_descriptor(struct work *w, size_t i, struct descriptor *d, struct err *e)
{
	const json_t *layers = json_object_get(w->a->im->manifest, "layers");

	if (!w->a->download || w->a->strict)
		return 0;
	return descriptor_read(d, json_array_get(layers, i), e) < 0 ? -1 : 1;
}

/* Through a table that somebody put into it: 1; 0 when there is none that is of use; -1. */
static int use_toc(struct work *w, size_t i, struct layer_list *out, struct err *e)
{
	const struct image_layer *l = &w->a->im->layers[i];
	struct descriptor d;
	struct err fault = {0};
	int rc;

	rc = layer_descriptor(w, i, &d, e);
	if (rc <= 0)
		return rc;
	rc = toc_key(&d, l->codec, &out->key, &fault);
	if (rc > 0 && toc_layer(&d, l->codec, w->a->download, w->a->pool, w->sink, 0, &out->entries,
			      &fault) < 0) {
		rc = -1;
		layer_list_fini(out);
	}
	if (rc < 0 && fault.kind == ERR_UNSUPPORTED)
		return 0;
	if (rc < 0 && e)
		*e = fault;
	if (rc > 0)
		progress_line_add(w->lines[i], l->size);
	return rc;
}

static int read_layer(struct work *w, size_t i, struct layer_list *out, struct err *e)
{
	const struct image_layer *l = &w->a->im->layers[i];
	const char *kind = LAYER_LIST_TOC;
	int rc = use_toc(w, i, out, e);

	if (rc == 0) {
		kind = LAYER_LIST_WHOLE;
		out->key = l->digest;
		rc = unpack(w, i, out, e);
	}
	if (rc < 0 || sink_wait(w->sink, e) < 0)
		return -1;
	if (l->size >= LIST_WORTH && layer_list_save(w->a->s, &l->digest, kind, out, e) < 0)
		return -1;
	if (l->size >= RECORD_SIZE && pool_commit_soon(w->a->pool, e) < 0)
		return -1;
	progress_line_end(w->lines[i], NULL);
	return 0;
}

/* A list that an earlier pull left, of all of it or by the same table: as load_list(). */
static int load_layer(struct work *w, size_t i, struct layer_list *out, struct err *e)
{
	const struct image_layer *l = &w->a->im->layers[i];
	int rc = load_list(w, &l->digest, LAYER_LIST_WHOLE, &l->digest, out, e);
	struct descriptor d;
	struct digest key;

	if (rc != 0)
		return rc;
	rc = layer_descriptor(w, i, &d, e);
	/* a table that makes no sense is told of where it is used */
	if (rc > 0 && toc_key(&d, l->codec, &key, NULL) <= 0)
		rc = 0;
	return rc > 0 ? load_list(w, &l->digest, LAYER_LIST_TOC, &key, out, e) : rc;
}

static int adopt_layer(void *ctx, size_t i, struct err *e)
{
	struct work *w = ctx;
	const struct image_layer *l = &w->a->im->layers[i];
	/* another pull may be at the same layer: it does the work for both */
	auto_fd int turn = store_work_lock(w->a->s, &l->digest, e);
	int rc = turn < 0 ? -1 : 0;

	if (rc == 0 && !w->a->strict)
		rc = load_layer(w, i, &w->parts[i], e);
	if (rc > 0)
		progress_line_end(w->lines[i], "already here");
	if (rc == 0) {
		w->a->fetched = true;
		rc = read_layer(w, i, &w->parts[i], e);
	}
	if (rc >= 0)
		rc = members_total_add(&w->total, &w->parts[i].entries, e);
	return rc < 0 ? err_ctx(e, "layer %zu", i) : 0;
}

/* ---- all of them ---- */

static void begin_lines(struct work *w)
{
	const struct image *im = w->a->im;
	uint64_t total = 0;

	for (size_t i = 0; i < im->nlayers; i++)
		total += im->layers[i].size;
	progress_begin(w->a->progress, w->a->download ? "pull" : "load", total);
	for (size_t i = 0; i < im->nlayers; i++) {
		char hex[DIGEST_HEX + 1];

		digest_hex(&im->layers[i].digest, hex);
		hex[12] = '\0';
		w->lines[i] = progress_line(w->a->progress, hex, im->layers[i].size);
	}
}

static struct tree *merge(struct work *w, struct err *e)
{
	struct tree *t = tree_new();

	for (size_t i = 0; i < w->a->im->nlayers; i++)
		if (entries_apply(t, &w->parts[i].entries, (int32_t)i, e) < 0) {
			tree_free(t);
			err_ctx(e, "layer %zu", i);
			return NULL;
		}
	tree_sort(t);
	return t;
}

static int keep_index(struct work *w, struct tree *t, struct err *e)
{
	const struct image *im = w->a->im;
	auto_buf struct buf b = BUF_INIT(INDEX_BYTES_MAX);
	auto_free struct layer *layers = mem_array(im->nlayers, sizeof(*layers));

	for (size_t i = 0; i < im->nlayers; i++)
		layers[i] = (struct layer){.codec = im->layers[i].codec,
			.digest = im->layers[i].digest,
			.diff_id = im->layers[i].diff_id,
			.size = im->layers[i].size,
			.tar_size = w->parts[i].tar_size};
	if (index_encode(t, layers, im->nlayers, &b, e) < 0)
		return -1;
	return image_index_put(w->a->s, &im->manifest_digest, b.data, b.len, e);
}

/* Its own index must say what its layers say. */
static int check_index(struct work *w, struct tree *t, struct err *e)
{
	struct tree *said = image_tree(w->a->im, w->a->s, NULL, NULL, e);
	int rc;

	if (!said)
		return -1;
	rc = tree_equal(t, said, e);
	tree_free(said);
	return rc < 0 ? err_ctx(e, "the image's index is not what its layers are") : 0;
}

static int finish(struct work *w, struct err *e)
{
	struct tree *t;
	int rc;

	if (sink_wait(w->sink, e) < 0)
		return -1;
	t = merge(w, e);
	if (!t)
		return -1;
	rc = w->a->im->has_index ? check_index(w, t, e) : keep_index(w, t, e);
	if (rc == 0)
		rc = pool_commit_soon(w->a->pool, e);
	if (rc == 0)
		rc = mount_prepare(w->a->s, &w->a->im->manifest_digest, t, e);
	tree_free(t);
	return rc;
}

int adopt_image(struct adopt *a, struct err *e)
{
	size_t n = a->im->nlayers, threads = workers_cores();
	struct work w = {.a = a};
	uint64_t blob_sizes = 0;
	int rc;

	if (threads > LAYER_THREADS_MAX)
		threads = LAYER_THREADS_MAX;
	w.sink = sink_new(a->pool, 0, SINK_MEMORY);
	w.parts = mem_array(n, sizeof(*w.parts));
	w.lines = mem_array(n, sizeof(struct progress_line *));
	for (size_t i = 0; i < n; i++)
		blob_sizes += a->im->layers[i].size;
	members_total_init(&w.total, blob_sizes);
	begin_lines(&w);
	rc = workers_each(n, threads, adopt_layer, &w, e);
	if (rc == 0)
		rc = finish(&w, e);
	progress_end(a->progress);
	sink_free(w.sink);
	members_total_fini(&w.total);
	for (size_t i = 0; i < n; i++)
		layer_list_fini(&w.parts[i]);
	free(w.parts);
	free(w.lines);
	return rc;
}

int image_adopt(
	struct image *im, struct store *s, struct pool *p, struct progress *pr, struct err *e)
{
	struct adopt a = {.im = im, .s = s, .pool = p, .strict = true, .progress = pr};

	return adopt_image(&a, e);
}
