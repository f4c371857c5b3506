/* The order of things. With ROOT/pool/users alone (nobody writes to the pool, or has blobs without
 * a name) and ROOT/lock (no name changes):
 *
 *   mark      from index.json, and images that are mounted
 *   sweep     blobs, indexes, lists: from here on, an image without a mark cannot be read, so that
 *             nobody can start to make its metadata image
 *   look      is an image without a mark mounted now? It was started in the meantime: stop here
 *   sweep     metadata images, each under a claim, so that nobody can mount it from here on
 *   sweep     chunks: what has none of the above cannot refer to them
 *
 * Whoever mounts takes a share of mnt/HEX.lock before it reads anything (mount.c), which is what
 * `look` finds and a claim excludes. */
#include "images/gc.h"

#include "base/sys.h"
#include "images/gc-private.h"
#include "images/pool-sweep.h"
#include "images/progress.h"
#include "images/reach.h"

/* ---- marking ---- */

static int mark_chunk(void *ctx, const struct node *n, struct chunk *c, struct err *e)
{
	struct gc *g = ctx;

	(void)n;
	(void)e;
	digest_map_add(&g->chunks, &c->digest);
	return 0;
}

static int mark_chunks(void *ctx, struct image *im, struct err *e)
{
	struct gc *g = ctx;

	return reach_chunks(g->s, im, mark_chunk, g, e);
}

static int mark(void *ctx, const struct digest *manifest, struct err *e)
{
	struct gc *g = ctx;
	char hex[DIGEST_HEX + 1];

	g->r->kept_images++;
	if (reach_blobs(g->s, manifest, &g->images, e) == 0 &&
		reach_images(g->s, manifest, mark_chunks, g, e) == 0)
		return 0;
	err_ctx(e, "nothing was removed, as it cannot be told what image %.12s needs",
		digest_hex(manifest, hex));
	return err_hint(e, "svrun image fsck says more; or: svrun image rm sha256:%s", hex);
}

/* ---- images that are mounted ---- */

/* A lock that can be had is nobody's. It is tried only for images that are going to be removed: a
 * moment later an instance could not start. */
static int check_started(
	void *ctx, int dirfd, const char *name, const struct digest *d, struct err *e)
{
	struct gc *g = ctx;
	char hex[DIGEST_HEX + 1];
	int used;

	(void)dirfd;
	(void)name;
	if (digest_map_find(&g->images, d))
		return 0;
	used = image_in_use(g->s, d, e);
	if (used <= 0)
		return used;
	err_set(e, ERR_EXISTS, "image %.12s was started while it was being removed",
		digest_hex(d, hex));
	return err_hint(e, "run svrun image gc again when it has ended");
}

/* ---- all of it ---- */

static bool is_marked(void *ctx, const struct digest *d)
{
	struct gc *g = ctx;

	return digest_map_find(&g->chunks, d);
}

static int sweep_pool(struct gc *g, struct pool *pool, struct err *e)
{
	struct pool_sweep w = {.keep = is_marked, .ctx = g, .dry = g->dry};

	if (!pool)
		return 0;
	if (pool_sweep(pool, &w, e) < 0)
		return -1;
	g->r->chunks = w.chunks;
	g->r->pool_bytes = w.bytes;
	return 0;
}

static int collect(struct gc *g, struct pool *pool, struct progress *p, struct err *e)
{
	auto_fd int lock = store_lock(g->s, e);

	if (lock < 0)
		return -1;
	progress_begin(p, "mark", 0);
	if (reach_roots(g->s, mark, g, e) < 0)
		return -1;
	progress_begin(p, "sweep", 0);
	if (gc_documents(g, e) < 0 ||
		(!g->dry && reach_files(g->s, "mnt", ".lock", check_started, g, e) < 0) ||
		gc_metadata(g, e) < 0)
		return -1;
	sys_close_ref(&lock); /* names may change: what they could name stays */
	return sweep_pool(g, pool, e);
}

/* To look, reading is enough; and there may be no pool at all. */
static int open_pool(struct gc *g, struct pool **pool, struct err *e)
{
	uint8_t id[POOL_IDENTITY];
	int there = pool_identity(g->s->fd, id, e);

	*pool = NULL;
	if (there < 0 || (!there && g->dry))
		return there;
	*pool = g->dry ? pool_open(g->s->fd, false, e) : pool_open_alone(g->s->fd, e);
	if (!*pool)
		return -1;
	/* ranges of blocks that are not synced must not be freed and used anew */
	if (!g->dry && pool_settle(*pool, e) < 0) {
		pool_close(*pool);
		return -1;
	}
	return 0;
}

int gc_run(struct store *s, bool dry, struct gc_report *r, struct progress *p, struct err *e)
{
	struct gc g = {.s = s, .dry = dry, .r = r};
	struct pool *pool;
	int rc;

	*r = (struct gc_report){0};
	if (open_pool(&g, &pool, e) < 0)
		return -1;
	rc = collect(&g, pool, p, e);
	progress_end(p);
	pool_close(pool);
	digest_map_fini(&g.images);
	digest_map_fini(&g.chunks);
	return rc;
}
