#include "images/toc.h"

#include "images/toc-lane.h"
#include "images/toc-table.h"
#include "images/workers.h"

enum { THREADS_MAX = 8 }; /* each takes memory, and a connection's worth of pieces */

/* 0: one a core. */
static size_t lane_threads(size_t threads)
{
	threads = threads ? threads : workers_cores();
	return threads < THREADS_MAX ? threads : THREADS_MAX;
}

int toc_key(const struct descriptor *layer, enum codec codec, struct digest *key, struct err *e)
{
	static const char salt[] = "svrun: a layer by its table";
	struct toc_place p;
	struct hash h;
	int rc = toc_place_find(layer, codec, &p, e);

	if (rc <= 0)
		return rc;
	hash_init(&h, HASH_SHA256);
	hash_add(&h, salt, sizeof(salt));
	hash_add(&h, layer->digest.b, DIGEST_SIZE);
	hash_add(&h, p.digest.b, DIGEST_SIZE);
	*key = hash_digest(&h);
	return 1;
}

/* Chunks that are exactly ours, which those of most files are, need not be fetched when the pool
 * has them. */
static int find_known(struct toc *t, struct pool *pool, struct entries *out, struct err *e)
{
	auto_free struct chunk **v = mem_array(t->nchunks + 1, sizeof(*v));
	auto_free struct toc_chunk **from = mem_array(t->nchunks + 1, sizeof(*from));
	size_t n = 0;
	uint32_t k;

	for (size_t i = 0; i < t->nchunks; i++) {
		struct toc_chunk *c = &t->chunks[i];

		if (!c->has_digest || t->files[c->file].whole || !toc_chunk_is_ours(t, c, &k))
			continue;
		v[n] = &out->v[t->files[c->file].entry].a.chunks[k];
		v[n]->digest = c->digest;
		from[n++] = c;
	}
	if (pool_find_all(pool, v, n, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		from[i]->known = v[i]->block != CHUNK_NO_BLOCK;
	return 0;
}

struct lanes {
	const struct toc_plan *plan;
	struct toc_work work; /* but for the lane */
};

static int fetch_lane(void *ctx, size_t i, struct err *e)
{
	const struct lanes *x = ctx;
	struct toc_work w = x->work;

	w.lane = &x->plan->v[i];
	return toc_lane_fetch(&w, e);
}

static int fetch_data(
	struct toc *t, const struct toc_work *w, struct pool *pool, size_t threads, struct err *e)
{
	struct toc_plan plan;
	struct lanes x = {.plan = &plan, .work = *w};
	int rc;

	if (find_known(t, pool, w->out, e) < 0)
		return -1;
	toc_plan_make(&plan, t, threads);
	rc = workers_each(plan.n, threads, fetch_lane, &x, e);
	toc_plan_fini(&plan);
	return rc;
}

int toc_layer(const struct descriptor *layer, enum codec codec, struct download *d,
	struct pool *pool, struct sink *sink, size_t threads, struct entries *out, struct err *e)
{
	struct toc toc = {0};
	const struct toc_work w = {
		.t = &toc, .codec = codec, .layer = layer, .d = d, .sink = sink, .out = out};
	struct toc_place place;
	struct err first = {0};
	int rc = toc_place_find(layer, codec, &place, &first);

	if (rc == 0)
		rc = err_set(&first, ERR_UNSUPPORTED, "the layer has no table of contents");
	if (rc > 0)
		rc = toc_table_fetch(&toc, layer, codec, &place, d, sink, out, &first);
	if (rc == 0)
		rc = fetch_data(&toc, &w, pool, lane_threads(threads), &first);
	/* the sink's threads write into the list: nobody may free it before */
	if (sink_wait(sink, rc < 0 ? NULL : &first) < 0)
		rc = -1;
	toc_fini(&toc);
	if (rc < 0 && e)
		*e = first;
	return rc;
}
