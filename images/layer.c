#include "images/layer.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "base/progress.h"
#include "base/workers.h"
#include "images/frame.h"
#include "images/tar.h"

/* The tar is made in groups: about GROUP_WEIGHT bytes of consecutive members, or one chunk of a big
 * file. A group is what one thread makes at a time, so that 20,000 small files cost a few hundred
 * hand-overs. A group says where it begins; it ends where the next one does. */
enum {
	GROUP_WEIGHT = CHUNK_SIZE,
	GROUP_ITEMS = 256,
	HEADER_WEIGHT = 1024,
	THREADS_MAX = 16, /* the one that hashes keeps up with no more */
	/* Groups that may wait for the next in order: on a busy machine its thread may not run for
	 * a while. A slot has up to 3 MiB. */
	SLOTS_PER_THREAD = 4,
	SLOTS_MAX = 40,
	RAW_MAX = 16 << 20, /* never reached: GROUP_ITEMS headers of long names, and the data */
};

struct group {
	size_t node;
	uint32_t chunk; /* of the node; 0: its header, too */
	uint64_t at;    /* offset in the tar (aligned layers only) */
};

/* Where a chunk's frame lies in a slot's output. */
struct mark {
	struct chunk *chunk;
	size_t at;
	uint32_t stored;
};

struct slot {
	struct buf raw, out;
	struct mark marks[GROUP_ITEMS];
	size_t nmarks, frame; /* frame: where in raw the open frame begins */
	uint64_t data;        /* bytes of file data */
};

struct writer {
	const struct layer *l;
	int32_t number;
	struct node *const *nodes;
	size_t n;
	struct pool *pool;
	struct progress *progress;
	struct group *groups;
	size_t ngroups, cap;
	struct slot *slots;
	struct encoder **idle; /* encoders that no thread is using */
	size_t nidle;
	pthread_mutex_t lock; /* of idle */
	struct hash tar;
	uint64_t tar_size;
	struct blob_writer blob;
};

/* ---- planning ---- */

static size_t header_weight(const struct node *n)
{
	size_t w = HEADER_WEIGHT;

	for (uint32_t i = 0; i < n->a.nxattrs; i++)
		w += n->a.xattrs[i].len;
	return w;
}

static uint32_t items_of(const struct node *n)
{
	return n->a.nchunks ? n->a.nchunks : 1;
}

static int add_zeros(struct buf *b, size_t n, struct err *e)
{
	static const char zeros[TAR_END];

	return buf_add(b, zeros, n, e);
}

/* What goes before the data of node i: the padding of the member before it, and its header. */
static int add_header(const struct writer *w, struct buf *b, size_t i, uint64_t at, struct err *e)
{
	size_t pad = i > 0 ? tar_padding(w->nodes[i - 1]) : 0;

	if (add_zeros(b, pad, e) < 0)
		return -1;
	if (!tar_has_member(w->nodes[i]))
		return 0;
	return tar_header(
		b, w->nodes[i], at + pad, w->l->codec == CODEC_NONE && w->nodes[i]->a.nchunks, e);
}

/* Put node i into the layer. The object of a hard link must be there before it. */
static int claim(struct writer *w, size_t i, struct err *e)
{
	struct node *n = w->nodes[i];
	char a[TREE_PATH_MAX + 1], b[TREE_PATH_MAX + 1];

	if (n->layer == CHUNK_NO_LAYER)
		n->layer = w->number;
	if (n->link && n->link->layer != w->number)
		return err_set(e, ERR_UNSUPPORTED,
			"hard link '%.200s' and its object '%.200s' are not in one layer",
			node_path(n, a), node_path(n->link, b));
	return 0;
}

static int plan(struct writer *w, struct err *e)
{
	auto_buf struct buf scratch = BUF_INIT(TAR_HEADER_MAX);
	size_t weight = 0, items = GROUP_ITEMS; /* the first item begins a group */
	uint64_t at = 0;

	for (size_t i = 0; i < w->n; i++) {
		const struct node *n = w->nodes[i];

		if (claim(w, i, e) < 0)
			return -1;
		for (uint32_t k = 0; k < items_of(n); k++) {
			size_t add = (k == 0 ? header_weight(n) : 0) +
				     (k < n->a.nchunks ? n->a.chunks[k].length : 0);

			if (items == GROUP_ITEMS || weight + add > GROUP_WEIGHT) {
				mem_grow(&w->groups, &w->cap, w->ngroups);
				w->groups[w->ngroups++] =
					(struct group){.node = i, .chunk = k, .at = at};
				weight = items = 0;
			}
			weight += add;
			items++;
			scratch.len = 0;
			if (w->l->codec == CODEC_NONE && k == 0 &&
				add_header(w, &scratch, i, at, e) < 0)
				return -1;
			at += scratch.len + (k < n->a.nchunks ? n->a.chunks[k].length : 0);
		}
	}
	if (w->ngroups == 0) { /* an empty layer is the end of a tar alone */
		mem_grow(&w->groups, &w->cap, w->ngroups);
		w->groups[w->ngroups++] = (struct group){0};
	}
	return 0;
}

/* ---- making a group ---- */

static struct encoder *take_encoder(struct writer *w, struct err *e)
{
	struct encoder *x = NULL;

	pthread_mutex_lock(&w->lock);
	if (w->nidle > 0)
		x = w->idle[--w->nidle];
	pthread_mutex_unlock(&w->lock);
	return x ? x : encoder_new(w->l->codec, w->l->level, e);
}

static void give_encoder(struct writer *w, struct encoder *x)
{
	pthread_mutex_lock(&w->lock);
	w->idle[w->nidle++] = x;
	pthread_mutex_unlock(&w->lock);
}

/* Close the open frame: what raw gained since the last one. In a plain tar raw itself is the
 * output. */
static int close_frame(
	struct slot *s, const struct layer *l, struct encoder *x, size_t *len, struct err *e)
{
	size_t n = s->raw.len - s->frame;
	const char *in = s->raw.data + s->frame;

	*len = n;
	s->frame = s->raw.len;
	if (n == 0 || l->codec == CODEC_NONE)
		return 0;
	if (buf_reserve(&s->out, frame_bound(l->codec, n), e) < 0 ||
		encoder_frame(x, in, n, s->out.data + s->out.len, len, e) < 0)
		return -1;
	s->out.len += *len;
	return 0;
}

static int add_chunk(
	struct writer *w, struct slot *s, struct encoder *x, struct chunk *c, struct err *e)
{
	struct buf *out = w->l->codec == CODEC_NONE ? &s->raw : &s->out;
	size_t len, at;

	if (close_frame(s, w->l, x, &len, e) < 0 || buf_reserve(&s->raw, c->length, e) < 0 ||
		pool_check(w->pool, c, s->raw.data + s->raw.len, e) < 0)
		return -1;
	at = out->len;
	s->raw.len += c->length;
	s->data += c->length;
	if (close_frame(s, w->l, x, &len, e) < 0)
		return -1;
	s->marks[s->nmarks++] = (struct mark){.chunk = c, .at = at, .stored = (uint32_t)len};
	return 0;
}

static int fill_slot(struct writer *w, struct slot *s, struct encoder *x, size_t g, struct err *e)
{
	const struct group *from = &w->groups[g], *to = g + 1 < w->ngroups ? from + 1 : NULL;
	size_t i = from->node, len;
	uint32_t k = from->chunk;

	while (to ? i < to->node || k < to->chunk : i < w->n) {
		const struct node *n = w->nodes[i];

		if (k == 0 && add_header(w, &s->raw, i, from->at + s->raw.len, e) < 0)
			return -1;
		if (k < n->a.nchunks && add_chunk(w, s, x, &n->a.chunks[k], e) < 0)
			return -1;
		if (++k >= n->a.nchunks) {
			i++;
			k = 0;
		}
	}
	if (!to && (add_zeros(&s->raw, w->n ? tar_padding(w->nodes[w->n - 1]) : 0, e) < 0 ||
			   add_zeros(&s->raw, TAR_END, e) < 0))
		return -1;
	return close_frame(s, w->l, x, &len, e);
}

static int make_group(void *ctx, size_t g, size_t slot, struct err *e)
{
	struct writer *w = ctx;
	struct slot *s = &w->slots[slot];
	struct encoder *x = take_encoder(w, e);
	int rc;

	if (!x)
		return -1;
	s->raw.len = s->out.len = s->nmarks = s->frame = 0;
	s->data = 0;
	rc = fill_slot(w, s, x, g, e);
	give_encoder(w, x);
	return rc;
}

/* ---- taking it ---- */

static int take_group(void *ctx, size_t g, size_t slot, struct err *e)
{
	struct writer *w = ctx;
	struct slot *s = &w->slots[slot];
	const struct buf *out = w->l->codec == CODEC_NONE ? &s->raw : &s->out;

	(void)g;
	for (size_t i = 0; i < s->nmarks; i++) {
		struct chunk *c = s->marks[i].chunk;

		if (c->layer != CHUNK_NO_LAYER)
			continue;
		c->layer = w->number;
		c->stored = s->marks[i].stored;
		c->offset = w->blob.size + s->marks[i].at;
	}
	if (w->l->codec != CODEC_NONE) /* a plain tar is its own blob: one digest for both */
		hash_add(&w->tar, s->raw.data, s->raw.len);
	w->tar_size += s->raw.len;
	if (store_blob_add(&w->blob, out->data, out->len, e) < 0)
		return -1;
	progress_add(w->progress, s->data);
	return 0;
}

static int run(struct writer *w, struct err *e)
{
	size_t cores = workers_cores(), threads = cores < THREADS_MAX ? cores : THREADS_MAX;
	size_t slots =
		SLOTS_PER_THREAD * threads < SLOTS_MAX ? SLOTS_PER_THREAD * threads : SLOTS_MAX;
	struct workers_pipe pipe = {.n = w->ngroups,
		.threads = threads,
		.slots = slots,
		.make = make_group,
		.take = take_group,
		.ctx = w};
	int rc;

	w->slots = mem_array(slots, sizeof(*w->slots));
	w->idle = mem_array(threads, sizeof(struct encoder *));
	for (size_t i = 0; i < slots; i++)
		w->slots[i].raw.max = w->slots[i].out.max = RAW_MAX;
	rc = workers_ordered(&pipe, e);
	for (size_t i = 0; i < slots; i++) {
		buf_fini(&w->slots[i].raw);
		buf_fini(&w->slots[i].out);
	}
	while (w->nidle > 0)
		encoder_free(w->idle[--w->nidle]);
	free(w->idle);
	free(w->slots);
	return rc;
}

int layer_write(struct layer *l, int32_t number, struct node *const *nodes, size_t n,
	struct pool *p, struct store *s, struct progress *pr, struct err *e)
{
	struct writer w = {.l = l,
		.number = number,
		.nodes = nodes,
		.n = n,
		.pool = p,
		.progress = pr,
		.lock = PTHREAD_MUTEX_INITIALIZER};
	int rc = -1;

	hash_init(&w.tar, HASH_SHA256);
	if (plan(&w, e) == 0 && store_blob_begin(s, &w.blob, e) == 0) {
		rc = run(&w, e);
		if (rc == 0)
			rc = store_blob_commit(&w.blob, &l->digest, e);
		store_blob_abort(&w.blob);
	}
	free(w.groups);
	if (rc < 0)
		return -1;
	l->diff_id = l->codec == CODEC_NONE ? l->digest : hash_digest(&w.tar);
	l->size = w.blob.size;
	l->tar_size = w.tar_size;
	return 0;
}
