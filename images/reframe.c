#include "images/reframe.h"

#include <string.h>

#include "base/mem.h"
#include "images/framer.h"
#include "images/tar-read.h"

struct reframer {
	struct tar_reader *tar;
	uint64_t left; /* of the member's data */
	bool ended;    /* no more members */
	bool done;     /* no more bytes */
	const char *p; /* of a span that is not used up */
	size_t n;
	struct chunk_list *chunks;
};

void chunk_list_fini(struct chunk_list *l)
{
	free(l->v);
	*l = (struct chunk_list){0};
}

/* The padding of the member before it, and a member's headers. */
static int next_member(struct reframer *r, struct framer_group *g, struct err *e)
{
	const struct tar_member *m;
	int rc = tar_reader_next(r->tar, &m, e);

	r->ended = rc == 0;
	if (rc <= 0)
		return rc;
	r->left = m->size;
	return buf_add(&g->raw, m->raw, (size_t)(m->data_at - m->raw_at), e);
}

/* One chunk of file data. */
static int next_data(struct reframer *r, struct framer_group *g, struct err *e)
{
	uint32_t length = r->left < CHUNK_SIZE ? (uint32_t)r->left : CHUNK_SIZE;

	if (buf_reserve(&g->raw, length, e) < 0)
		return -1;
	for (uint32_t done = 0; done < length;) {
		size_t k = length - done < r->n ? length - done : r->n;
		const void *p;
		int rc;

		if (k > 0) {
			memcpy(g->raw.data + g->raw.len, r->p, k);
			g->raw.len += k;
			r->p += k;
			r->n -= k;
			done += (uint32_t)k;
			continue;
		}
		rc = tar_reader_data(r->tar, &p, &r->n, e);
		if (rc <= 0)
			return rc < 0 ? -1 : err_set(e, ERR_CORRUPT, "a member's data end early");
		r->p = p;
	}
	framer_mark(g, length, NULL);
	r->left -= length;
	return 0;
}

/* What stands behind the last member: it is part of the DiffID. */
static int next_rest(struct reframer *r, struct framer_group *g, struct err *e)
{
	const void *p;
	size_t n;
	int rc = tar_reader_rest(r->tar, &p, &n, e);

	r->done = rc == 0;
	return rc <= 0 ? rc : buf_add(&g->raw, p, n, e);
}

/* Is the group done, or does the next chunk go into another one? */
static bool is_full(const struct reframer *r, const struct framer_group *g)
{
	uint64_t next = r->left < CHUNK_SIZE ? r->left : CHUNK_SIZE;

	return g->nmarks == FRAMER_MARKS || g->raw.len >= FRAMER_WEIGHT ||
	       (g->raw.len > 0 && g->raw.len + next > FRAMER_WEIGHT);
}

static int fill(void *ctx, size_t group, struct framer_group *g, struct err *e)
{
	struct reframer *r = ctx;
	int rc = 0;

	while (rc == 0 && !r->done && !is_full(r, g)) {
		if (r->left)
			rc = next_data(r, g, e);
		else if (!r->ended)
			rc = next_member(r, g, e);
		else
			rc = next_rest(r, g, e);
	}
	if (rc < 0)
		return -1;
	if (g->raw.len == 0 && group == 0) /* no codec has a frame of nothing */
		return err_set(e, ERR_UNSUPPORTED, "a layer without the end of a tar");
	return g->raw.len == 0;
}

static void placed(void *ctx, const struct framer_mark *m)
{
	struct chunk_list *l = ((struct reframer *)ctx)->chunks;

	mem_grow(&l->v, &l->cap, l->n);
	l->v[l->n++] = (struct chunk){.digest = m->digest,
		.length = m->length,
		.block = CHUNK_NO_BLOCK,
		.layer = CHUNK_NO_LAYER,
		.stored = m->stored,
		.offset = m->offset};
}

static int write_blob(struct framer *f, struct layer *l, struct store *s, struct err *e)
{
	struct blob_writer w;
	int rc;

	if (store_blob_begin(s, &w, e) < 0)
		return -1;
	rc = framer_run(f, &w, e);
	if (rc == 0)
		rc = digest_check(&l->diff_id, &f->diff_id, e, "%s: DiffID", l->id);
	l->size = w.size;
	if (rc == 0)
		rc = store_blob_commit(&w, &l->digest, e);
	store_blob_abort(&w);
	return rc;
}

int reframe(struct layer *l, struct source *tar, struct store *s, struct chunk_list *chunks,
	struct progress *p, struct err *e)
{
	struct reframer r = {.tar = tar_reader_new(tar, l->id), .chunks = chunks};
	struct framer f = {.codec = l->codec,
		.level = l->level,
		.n = SIZE_MAX,
		.serial = true,
		.hash = true,
		.fill = fill,
		.placed = placed,
		.ctx = &r,
		.progress = p};
	int rc;

	*chunks = (struct chunk_list){0};
	rc = write_blob(&f, l, s, e);
	tar_reader_free(r.tar);
	l->tar_size = f.tar_size;
	if (rc < 0)
		chunk_list_fini(chunks);
	return rc;
}
