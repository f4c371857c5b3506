#include "images/toc-plan.h"

/* ---- lanes ---- */

static bool is_fetched(const struct toc_chunk *c)
{
	return !c->known && !c->zeros;
}

/* What a chunk takes: zeros are not fetched, but hashed as others are. */
static uint64_t cost(const struct toc_chunk *c)
{
	return c->known ? 0 : c->zeros ? c->size / 4 : c->end - c->offset;
}

static void add_lane(struct toc_plan *p, struct toc_lane lane)
{
	mem_grow(&p->v, &p->cap, p->n);
	p->v[p->n++] = lane;
}

struct cutter {
	const struct toc *t;
	struct toc_lane lane; /* the one that grows */
	uint64_t bytes;       /* of it */
	size_t next;          /* where the next one would begin, ... */
	uint64_t from;        /* ... and from where in its file */
	/* This place was no good: looking for it again would take quadratic time where chunks are
	 * tiny. */
	uint64_t tried_at;
	uint32_t tried_file;
};

/* Is there a cut at or before chunk i, in the middle of its file? */
static bool find_cut(struct cutter *x, size_t i, const struct toc_file *f)
{
	const struct toc_chunk *v = x->t->chunks;
	size_t least = f->first > x->lane.first ? f->first : x->lane.first;

	for (x->next = i; x->next > least && v[x->next].at > x->from;)
		x->next--;
	/* not back to where this lane began, and not at the price of decoding much twice */
	return x->next > x->lane.first && v[x->next].at <= x->from &&
	       (v[x->next].at == x->from || v[x->next].size <= CHUNK_SIZE);
}

static bool may_cut(struct cutter *x, size_t i)
{
	const struct toc_chunk *c = &x->t->chunks[i];
	const struct toc_file *f = &x->t->files[c->file];

	x->next = i;
	x->from = 0;
	if (f->first == i)
		return true;
	x->from = c->at - c->at % CHUNK_SIZE;
	if (f->whole || x->from == 0 ||
		(x->from == x->tried_at && c->file == x->tried_file && c->at != x->from))
		return false;
	x->tried_at = x->from;
	x->tried_file = c->file;
	return find_cut(x, i, f);
}

/* The chunk across the cut belongs to both. */
static void cut(struct cutter *x, struct toc_plan *p, size_t i)
{
	const struct toc_chunk *v = x->t->chunks;
	size_t last = v[x->next].at == x->from ? x->next - 1 : x->next;

	x->lane.n = last + 1 - x->lane.first;
	x->lane.to = x->from > 0 ? x->from : x->t->files[v[last].file].size;
	add_lane(p, x->lane);
	x->lane = (struct toc_lane){.first = x->next, .from = x->from};
	x->bytes = 0;
	for (size_t k = x->next; k < i; k++)
		x->bytes += cost(&v[k]);
}

static uint64_t lane_bytes(const struct toc *t, size_t threads)
{
	uint64_t all = 0;

	for (size_t i = 0; i < t->nchunks; i++)
		all += cost(&t->chunks[i]);
	all /= 4 * (threads ? threads : 1);
	return all < TOC_LANE_MIN ? TOC_LANE_MIN : all > TOC_LANE_MAX ? TOC_LANE_MAX : all;
}

void toc_plan_make(struct toc_plan *p, const struct toc *t, size_t threads)
{
	uint64_t most = lane_bytes(t, threads);
	struct cutter x = {.t = t, .tried_file = UINT32_MAX};

	*p = (struct toc_plan){0};
	for (size_t i = 0; i < t->nchunks; i++) {
		if (x.bytes >= most && may_cut(&x, i))
			cut(&x, p, i);
		x.bytes += cost(&t->chunks[i]);
	}
	if (t->nchunks == 0)
		return;
	x.lane.n = t->nchunks - x.lane.first;
	x.lane.to = t->files[t->chunks[t->nchunks - 1].file].size;
	add_lane(p, x.lane);
}

void toc_plan_fini(struct toc_plan *p)
{
	free(p->v);
	*p = (struct toc_plan){0};
}

/* ---- pieces ---- */

static void add_piece(struct toc_pieces *p, const struct piece *like, uint64_t offset, uint64_t end)
{
	mem_grow(&p->v, &p->cap, p->n);
	p->v[p->n] = *like;
	p->v[p->n].offset = offset;
	p->v[p->n++].length = (uint32_t)(end - offset);
}

void toc_pieces_make(struct toc_pieces *p, const struct toc *t, const struct toc_lane *lane,
	const struct digest *blob, uint64_t blob_size)
{
	const struct piece like = {.blob = blob, .blob_size = blob_size};
	uint64_t begin = 0, end = 0;

	*p = (struct toc_pieces){0};
	for (size_t i = lane->first; i < lane->first + lane->n; i++) {
		const struct toc_chunk *c = &t->chunks[i];

		/* of an eStargz frame the first chunk has fetched all */
		if (!is_fetched(c) || c->end <= end)
			continue;
		if (end > 0 && c->offset - end < TOC_GAP && c->end - begin <= PIECE_MAX) {
			end = c->end;
			continue;
		}
		if (end > begin)
			add_piece(p, &like, begin, end);
		for (begin = c->offset, end = c->end; end - begin > PIECE_MAX; begin += PIECE_MAX)
			add_piece(p, &like, begin, begin + PIECE_MAX);
	}
	if (end > begin)
		add_piece(p, &like, begin, end);
}

void toc_pieces_fini(struct toc_pieces *p)
{
	free(p->v);
	*p = (struct toc_pieces){0};
}
