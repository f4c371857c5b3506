/* Any text as a table of contents: what is accepted lies inside of the blob, in order, and adds up;
 * and it does not matter in what portions the text came. The first byte chooses format and portion.
 */
#include <assert.h>

#include "images/toc-parse.h"
#include "images/toc-plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { DATA_END = 1 << 20 };

struct memory {
	struct source source;
	const uint8_t *p;
	size_t n, step;
};

static int next(struct source *s, const void **data, size_t *n, struct err *e)
{
	struct memory *m = (struct memory *)(void *)s;

	(void)e;
	*data = m->p;
	*n = m->n < m->step ? m->n : m->step;
	m->p += *n;
	m->n -= *n;
	return *n > 0;
}

static void check_file(const struct toc *t, const struct toc_file *f, const struct entries *out)
{
	const struct attr *a = &out->v[f->entry].a;
	uint64_t at = 0;

	assert(f->n > 0 && f->first + f->n <= t->nchunks && f->size == a->size);
	assert(a->nchunks == (f->size + CHUNK_SIZE - 1) / CHUNK_SIZE);
	for (size_t i = 0; i < f->n; i++) {
		const struct toc_chunk *c = &t->chunks[f->first + i];

		assert(c->at == at && c->size > 0 && &t->files[c->file] == f);
		assert(c->has_digest || c->zeros || (f->whole && f->has_digest));
		at += c->size;
	}
	assert(at == f->size);
}

static void check(const struct toc *t, const struct entries *out)
{
	static const struct digest blob;
	struct toc_plan plan;

	for (size_t i = 0; i < t->nfiles; i++)
		check_file(t, &t->files[i], out);
	for (size_t i = 0; i < t->nchunks; i++) {
		const struct toc_chunk *c = &t->chunks[i];

		assert(c->offset < c->end && c->end <= DATA_END);
		assert(i == 0 || c[-1].end <= c->offset ||
			(c[-1].offset == c->offset && c[-1].inner + c[-1].size <= c->inner));
	}
	toc_plan_make(&plan, t, 2);
	for (size_t i = 0; i < plan.n; i++) {
		struct toc_pieces p;

		assert(plan.v[i].n > 0);
		toc_pieces_make(&p, t, &plan.v[i], &blob, DATA_END);
		for (size_t k = 0; k < p.n; k++) {
			assert(p.v[k].length > 0 && p.v[k].length <= PIECE_MAX);
			assert(p.v[k].offset + p.v[k].length <= DATA_END);
			assert(k == 0 || p.v[k - 1].offset + p.v[k - 1].length <= p.v[k].offset);
		}
		toc_pieces_fini(&p);
	}
	toc_plan_fini(&plan);
}

static int parse(const uint8_t *data, size_t size, size_t step, enum codec codec, struct toc *t,
	struct entries *out, struct err *e)
{
	struct memory m = {.source.next = next, .p = data, .n = size, .step = step};
	const struct toc_rules rules = {.name = "table",
		.codec = codec,
		.blob_size = 2 * DATA_END,
		.data_end = DATA_END,
		.max_bytes = 64 << 20};

	return toc_parse(t, &m.source, &rules, out, e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum codec codec = size > 0 && data[0] & 1 ? CODEC_GZIP : CODEC_ZSTD;
	struct entries a = {0}, b = {0};
	struct err e = {0}, f = {0};
	struct toc t, u;
	int rc, again;

	if (size == 0)
		return 0;
	rc = parse(data + 1, size - 1, size, codec, &t, &a, &e);
	again = parse(data + 1, size - 1, 1 + data[0] / 2, codec, &u, &b, &f);
	assert(rc == again && e.kind == f.kind);
	assert(a.n == b.n && t.nchunks == u.nchunks && t.nfiles == u.nfiles && t.bytes == u.bytes);
	if (rc == 0)
		check(&t, &a);
	else
		assert(e.kind == ERR_CORRUPT || e.kind == ERR_UNSUPPORTED);
	toc_fini(&t);
	toc_fini(&u);
	entries_fini(&a);
	entries_fini(&b);
	return 0;
}
