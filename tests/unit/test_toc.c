#include "images/toc.h"

#include <stdatomic.h>
#include <sys/stat.h>

#include "base/str.h"
#include "images/toc-frame.h"
#include "images/toc-json.h"
#include "images/toc-plan.h"
#include "images/toc-record.h"
#include "images/toc-table.h"
#include "images/unpack.h"
#include "tests/unit/fixture.h"
#include "tests/unit/toc-blob.h"

/* ---- a download from memory, in place of images/download.c ---- */

struct download {
	const unsigned char *blob;
	uint64_t size;
	atomic_ullong fetched;
};

struct stream {
	struct download *d;
	struct piece *v;
	size_t n, next;
};

struct stream *stream_open(struct download *d, struct piece *v, size_t n, bool ordered)
{
	struct stream *s = mem_alloc(sizeof(*s));

	assert_true(ordered && n > 0);
	*s = (struct stream){.d = d, .v = v, .n = n};
	for (size_t i = 0; i < n; i++) {
		assert_true(v[i].length > 0 && v[i].length <= PIECE_MAX);
		assert_true(v[i].offset + v[i].length <= d->size);
		assert_true(i == 0 || v[i].offset >= v[i - 1].offset + v[i - 1].length);
	}
	return s;
}

int stream_next(struct stream *s, struct piece **p, struct err *e)
{
	(void)e;
	if (s->next == s->n)
		return 0;
	*p = &s->v[s->next++];
	/* a copy of its own, so that a sanitizer sees what is read behind it */
	(*p)->data = mem_dup(s->d->blob + (*p)->offset, (*p)->length);
	atomic_fetch_add(&s->d->fetched, (*p)->length);
	return 1;
}

void stream_release(struct stream *s, struct piece *p)
{
	(void)s;
	free(p->data);
	p->data = NULL;
}

void stream_close(struct stream *s)
{
	for (size_t i = 0; i < s->next; i++)
		free(s->v[i].data);
	free(s);
}

/* ---- a source from memory ---- */

struct memory {
	struct source source;
	const char *p;
	size_t n, step;
};

static int memory_next(struct source *s, const void **data, size_t *n, struct err *e)
{
	struct memory *m = (struct memory *)(void *)s;

	(void)e;
	*data = m->p;
	*n = m->n < m->step ? m->n : m->step;
	m->p += *n;
	m->n -= *n;
	return *n > 0;
}

static struct memory memory_of(const char *text, size_t n, size_t step)
{
	return (struct memory){.source.next = memory_next, .p = text, .n = n, .step = step};
}

/* ---- layers both ways ---- */

static int fetch(struct fixture *f, const struct toc_blob *b, size_t threads, struct entries *out,
	uint64_t *fetched)
{
	struct download d = {.blob = (const unsigned char *)b->blob.data, .size = b->blob.len};
	struct sink *sink = sink_new(f->p, 2, 6 << 20);
	int rc;

	f->e = (struct err){0};
	rc = toc_layer(&b->layer, b->codec, &d, f->p, sink, threads, out, &f->e);
	sink_free(sink);
	if (fetched)
		*fetched = d.fetched;
	return rc;
}

static void unpack(struct fixture *f, const struct toc_blob *b, struct entries *out)
{
	struct memory m = memory_of(b->blob.data, b->blob.len, 65536);
	struct sink *sink = sink_new(f->p, 2, 6 << 20);
	struct unpack u = {
		.name = "layer", .codec = b->codec, .size = b->blob.len, .digest = b->digest};

	need(unpack_layer(&u, &m.source, sink, out, &f->e));
	sink_free(sink);
}

static void compare(struct fixture *f, const struct entries *x, const struct entries *y)
{
	auto_buf struct buf a = BUF_INIT(64 << 20), b = BUF_INIT(64 << 20);

	assert_int_equal(x->n, y->n);
	for (size_t i = 0; i < x->n; i++)
		assert_string_equal(x->v[i].path, y->v[i].path);
	need(entries_encode(x, &a, &f->e));
	need(entries_encode(y, &b, &f->e));
	assert_int_equal(a.len, b.len);
	assert_memory_equal(a.data, b.data, a.len);
}

/* By the table, and as a tar: the same objects and bytes. */
static int present(const struct descriptor *layer, enum codec codec, struct err *e)
{
	struct digest key;

	return toc_key(layer, codec, &key, e);
}

static void both_ways(const struct toc_blob *b, size_t threads)
{
	struct fixture f_, *f = &f_, g_, *g = &g_;
	struct entries x = {0}, y = {0};

	fixture_init(f);
	fixture_init(g);
	need(present(&b->layer, b->codec, &f->e));
	assert_int_equal(present(&b->layer, b->codec, NULL), 1);
	need(fetch(f, b, threads, &x, NULL));
	unpack(g, b, &y);
	compare(f, &x, &y);
	for (size_t i = 0; i < x.n; i++)
		for (uint32_t k = 0; k < x.v[i].a.nchunks; k++) {
			auto_free unsigned char *scratch = mem_alloc(CHUNK_SIZE);

			need(pool_check(f->p, &x.v[i].a.chunks[k], scratch, &f->e));
		}
	entries_fini(&x);
	entries_fini(&y);
	fixture_fini(f);
	fixture_fini(g);
}

/* Bytes that no codec makes smaller; every fourth page of them is zeros when soft. */
static unsigned char *noise(size_t n, uint64_t seed, bool soft)
{
	unsigned char *p = mem_alloc(n + 8);
	uint64_t x = seed * 0x9e3779b97f4a7c15ull + 1;

	for (size_t i = 0; i < n; i += 8) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		if (!soft || (i >> 12) % 4)
			memcpy(p + i, &x, 8);
	}
	return p;
}

/* ---- what others wrote ---- */

static void read_file(const char *path, struct buf *b)
{
	char chunk[65536];
	FILE *file = fopen(path, "rb");
	size_t n;

	assert_non_null(file);
	while ((n = fread(chunk, 1, sizeof(chunk), file)) > 0)
		buf_put(b, chunk, n);
	fclose(file);
}

TEST(layers_of_skopeo_are_the_same_by_their_table)
{
	static const char *const names[] = {"skopeo-1", "skopeo-2"};

	for (size_t i = 0; i < 2; i++) {
		struct toc_blob b = {.codec = CODEC_ZSTD, .blob = BUF_INIT(1 << 20)};
		char path[64];
		json_t *o;

		snprintf(path, sizeof(path), "tests/data/toc/%s", names[i]);
		read_file(path, &b.blob);
		snprintf(path, sizeof(path), "tests/data/toc/%s.json", names[i]);
		o = json_load_file(path, 0, NULL);
		assert_int_equal(descriptor_read(&b.layer, o, NULL), 0);
		b.digest = b.layer.digest;
		both_ways(&b, 2);
		json_decref(o);
		buf_fini(&b.blob);
	}
}

/* ---- what we write from formats.md ---- */

static void fill(struct toc_blob *b, size_t chunk, unsigned flags)
{
	static const size_t sizes[] = {1, 100, 65536, 65537, CHUNK_SIZE - 1, CHUNK_SIZE,
		CHUNK_SIZE + 1, 3 * CHUNK_SIZE + 5, 5000000};
	char name[32];

	toc_blob_object(b, '5', "dir", "dir/", "");
	toc_blob_object(b, '2', "symlink", "dir/link", "../somewhere");
	toc_blob_file(b, "empty", NULL, 0, chunk, flags);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		auto_free unsigned char *p = noise(sizes[i], i + 1, i % 2);

		snprintf(name, sizeof(name), "dir/of-%zu", sizes[i]);
		toc_blob_file(b, name, p, sizes[i], chunk, flags);
	}
	toc_blob_object(b, '1', "hardlink", "hard", "dir/of-100");
	toc_blob_object(b, '0', "reg", "dir/.wh.gone", "");
	toc_blob_object(b, '0', "reg", "sub/.wh..wh..opq", "");
	toc_blob_object(b, '6', "fifo", "pipe", "");
}

TEST(chunks_of_any_length_become_ours)
{
	static const size_t chunks[] = {40000, 65536, 1 << 20, 1234567, 4 << 20, 8 << 20};

	for (size_t i = 0; i < 2 * sizeof(chunks) / sizeof(chunks[0]); i++) {
		struct toc_blob b;

		toc_blob_init(&b, i % 2 ? CODEC_GZIP : CODEC_ZSTD);
		fill(&b, chunks[i / 2], 0);
		toc_blob_end(&b, i % 4 ? "io.github.containers" : "io.containers");
		both_ways(&b, 3);
		toc_blob_fini(&b);
	}
}

TEST(files_whose_chunks_have_no_digest_are_checked_as_a_whole)
{
	struct toc_blob b;

	toc_blob_init(&b, CODEC_ZSTD);
	fill(&b, 300000, TOC_NO_CHUNK_DIGEST);
	toc_blob_end(&b, "io.containers");
	both_ways(&b, 2);
	toc_blob_fini(&b);
}

TEST(members_that_several_files_share_are_decoded_once)
{
	struct toc_blob b;

	toc_blob_init(&b, CODEC_GZIP);
	b.shared = true;
	for (size_t i = 1; i < 60; i++) {
		auto_free unsigned char *p = noise(i * 997, i, false);
		char name[32];

		snprintf(name, sizeof(name), "file-%zu", i);
		toc_blob_file(&b, name, p, i * 997, 4 << 20, 0);
	}
	toc_blob_end(&b, NULL);
	both_ways(&b, 2);
	toc_blob_fini(&b);
}

TEST(zeros_are_not_fetched)
{
	struct fixture f_, *f = &f_;
	auto_free unsigned char *zeros = mem_alloc(9 << 20);
	struct entries out = {0};
	struct toc_blob b;
	uint64_t fetched;

	toc_blob_init(&b, CODEC_ZSTD);
	toc_blob_file(&b, "zeros", zeros, (9 << 20) - 7, 3000000, TOC_ZEROS);
	toc_blob_end(&b, "io.containers");
	both_ways(&b, 2);
	fixture_init(f);
	need(fetch(f, &b, 1, &out, &fetched));
	assert_int_equal(fetched, b.toc_packed);
	entries_fini(&out);
	fixture_fini(f);
	toc_blob_fini(&b);
}

TEST(large_files_are_cut_into_lanes_wherever_chunks_lie)
{
	static const size_t chunks[] = {100000, 1 << 20, 5 << 20};
	auto_free unsigned char *p = noise(40 << 20, 9, false);

	for (size_t i = 0; i < 3; i++) {
		struct toc_blob b;

		toc_blob_init(&b, i == 1 ? CODEC_GZIP : CODEC_ZSTD);
		toc_blob_file(&b, "before", p, 5, chunks[i], 0);
		toc_blob_file(&b, "model", p, (40 << 20) - 333, chunks[i], 0);
		toc_blob_file(&b, "after", p, 50, chunks[i], 0);
		toc_blob_end(&b, "io.containers");
		both_ways(&b, 3);
		toc_blob_fini(&b);
	}
}

/* ---- the plan ---- */

/* One file in chunks of 100,000 bytes that take as much: where lanes meet, the chunk across is in
 * both, and together they are everything. */
TEST(lanes_meet_where_our_chunks_begin)
{
	enum { N = 1000, SIZE = 100000 };
	struct toc_file file = {.n = N, .size = (uint64_t)N * SIZE};
	auto_free struct toc_chunk *v = mem_array(N, sizeof(*v));
	struct toc t = {.chunks = v, .files = &file, .nchunks = N, .nfiles = 1};
	struct toc_plan plan;

	for (size_t i = 0; i < N; i++)
		v[i] = (struct toc_chunk){.offset = 1 + i * SIZE,
			.end = 1 + (i + 1) * SIZE,
			.at = i * SIZE,
			.size = SIZE};
	toc_plan_make(&plan, &t, 2);
	assert_true(plan.n >= 8 && plan.n <= 12);
	for (size_t i = 0; i < plan.n; i++) {
		const struct toc_lane *l = &plan.v[i];
		const struct toc_chunk *last = &v[l->first + l->n - 1];

		assert_int_equal(l->from, i ? plan.v[i - 1].to : 0);
		assert_true(i + 1 == plan.n ? l->to == file.size : l->to % CHUNK_SIZE == 0);
		assert_true(v[l->first].at <= l->from && l->from < v[l->first].at + SIZE);
		assert_true(last->at < l->to && l->to <= last->at + SIZE);
	}
	toc_plan_fini(&plan);
	file.whole = true;
	toc_plan_make(&plan, &t, 2);
	assert_int_equal(plan.n, 1);
	toc_plan_fini(&plan);
}

TEST(neighbours_are_fetched_together)
{
	struct toc_file file = {.n = 5};
	struct toc_chunk v[] = {{.offset = 100, .end = 200}, {.offset = 300, .end = 400},
		{.offset = 400 + TOC_GAP, .end = 500 + TOC_GAP},
		{.offset = 1 << 20, .end = (1 << 20) + 2 * PIECE_MAX + 10},
		{.offset = (1 << 20) + 2 * PIECE_MAX + 10, .end = (1 << 20) + 2 * PIECE_MAX + 20}};
	static const uint64_t want[][2] = {{100, 400}, {400 + TOC_GAP, 500 + TOC_GAP},
		{1 << 20, (1 << 20) + PIECE_MAX},
		{(1 << 20) + PIECE_MAX, (1 << 20) + 2 * PIECE_MAX},
		{(1 << 20) + 2 * PIECE_MAX, (1 << 20) + 2 * PIECE_MAX + 20}};
	const struct toc t = {.chunks = v, .files = &file, .nchunks = 5, .nfiles = 1};
	const struct toc_lane lane = {.n = 5};
	struct toc_pieces p;

	toc_pieces_make(&p, &t, &lane, NULL, 1 << 30);
	assert_int_equal(p.n, 5);
	for (size_t i = 0; i < p.n; i++) {
		assert_int_equal(p.v[i].offset, want[i][0]);
		assert_int_equal(p.v[i].offset + p.v[i].length, want[i][1]);
	}
	toc_pieces_fini(&p);
}

TEST(what_the_pool_has_is_not_fetched)
{
	struct fixture f_, *f = &f_;
	struct entries out = {0}, again = {0};
	struct toc_blob a, b;
	uint64_t first, second;

	fixture_init(f);
	for (unsigned i = 0; i < 2; i++) {
		struct toc_blob *x = i ? &b : &a;

		toc_blob_init(x, CODEC_ZSTD);
		for (unsigned k = 0; k < 40; k++) {
			auto_free unsigned char *p = noise(60000, k == 7 ? 1000 + i : k, false);
			char name[32];

			snprintf(name, sizeof(name), "file-%u", k);
			toc_blob_file(x, name, p, 60000, 1 << 20, 0);
		}
		toc_blob_end(x, "io.containers");
	}
	need(fetch(f, &a, 2, &out, &first));
	need(pool_commit(f->p, &f->e));
	need(fetch(f, &b, 2, &again, &second));
	assert_true(first > 40 * 60000);
	assert_true(second < 60000 + 1000 + b.toc_packed);
	entries_fini(&out);
	entries_fini(&again);
	toc_blob_fini(&a);
	toc_blob_fini(&b);
	fixture_fini(f);
}

/* ---- data that are not what the table says ---- */

/* Replace text in the table, and so that its own digest is right again. */
static void refuse_layer(enum codec codec, const char *from, const char *to, unsigned flags,
	enum err_kind kind, const char *text)
{
	struct fixture f_, *f = &f_;
	auto_free unsigned char *p = noise(3000000, 1, false);
	struct entries out = {0};
	struct toc_blob b;
	char *at;

	fixture_init(f);
	toc_blob_init(&b, codec);
	toc_blob_file(&b, "a", p, 1000, 400000, 0);
	toc_blob_file(&b, "b", p, 2000, 400000, flags);
	toc_blob_file(&b, "c", p, 1000000, 400000, flags);
	at = from ? strstr(b.json.data, from) : NULL;
	if (from) {
		assert_non_null(at);
		assert_int_equal(strlen(from), strlen(to));
		memcpy(at, to, strlen(to));
	}
	toc_blob_end(&b, "io.containers");
	assert_int_equal(fetch(f, &b, 2, &out, NULL), -1);
	if (f->e.kind != kind || !strstr(f->e.text, text))
		fail_msg("expected '%s', got '%s'", text, f->e.text);
	entries_fini(&out);
	toc_blob_fini(&b);
	fixture_fini(f);
}

TEST(wrong_data_are_refused)
{
	const enum codec codecs[] = {CODEC_ZSTD, CODEC_GZIP};

	for (size_t i = 0; i < 2; i++) {
		refuse_layer(
			codecs[i], NULL, NULL, TOC_WRONG_DIGEST, ERR_CORRUPT, "expected sha256:");
		refuse_layer(codecs[i], NULL, NULL, TOC_NO_CHUNK_DIGEST | TOC_NO_DIGEST,
			ERR_UNSUPPORTED, "neither it nor its chunks have a digest");
		refuse_layer(codecs[i], "\"chunkSize\":400000", "\"chunkSize\":400001", 0,
			ERR_CORRUPT, "chunk 0 does not continue");
	}
	refuse_layer(CODEC_ZSTD, "\"size\":2000,", "\"size\":1999,", 0, ERR_CORRUPT,
		"unpacks to more than the table says");
	refuse_layer(CODEC_ZSTD, "\"size\":2000,", "\"size\":2001,", 0, ERR_CORRUPT,
		"unpacks to less than the table says");
	refuse_layer(
		CODEC_GZIP, "\"size\":2000,", "\"size\":1999,", 0, ERR_CORRUPT, "expected sha256:");
	refuse_layer(CODEC_GZIP, "\"size\":1000,", "\"size\":9999,", 0, ERR_CORRUPT, "ends early");
	refuse_layer(CODEC_ZSTD, "\"digest\":\"sha256:", "\"digest\":\"sha512:", 0, ERR_CORRUPT,
		"sha512");
}

TEST(a_table_with_another_digest_is_refused)
{
	for (unsigned i = 0; i < 2; i++) {
		struct fixture f_, *f = &f_;
		struct entries out = {0};
		struct toc_blob b;

		fixture_init(f);
		toc_blob_init(&b, i ? CODEC_GZIP : CODEC_ZSTD);
		toc_blob_object(&b, '5', "dir", "dir", "");
		toc_blob_end(&b, "io.containers");
		json_decref(b.annotations);
		b.toc_digest.b[5] ^= 1;
		toc_blob_annotate(&b, "io.containers");
		b.layer.annotations = b.annotations;
		assert_int_equal(fetch(f, &b, 1, &out, NULL), -1);
		assert_int_equal(f->e.kind, ERR_CORRUPT);
		assert_non_null(strstr(f->e.text, "table of contents: expected sha256:"));
		entries_fini(&out);
		toc_blob_fini(&b);
		fixture_fini(f);
	}
}

/* Flip each byte of a small layer's data: never accepted, never a crash. */
TEST(flipped_bytes_are_refused)
{
	for (unsigned i = 0; i < 2; i++) {
		struct fixture f_, *f = &f_;
		auto_free unsigned char *p = noise(300, 1, false);
		struct toc_blob b;

		fixture_init(f);
		toc_blob_init(&b, i ? CODEC_GZIP : CODEC_ZSTD);
		toc_blob_file(&b, "a", p, 300, 100, 0);
		toc_blob_end(&b, "io.containers");
		for (size_t at = 0; at < b.toc_offset; at += 3) {
			struct entries out = {0};

			b.blob.data[at] ^= 4;
			if (fetch(f, &b, 1, &out, NULL) < 0)
				assert_int_equal(f->e.kind, ERR_CORRUPT);
			else
				assert_true(out.n >= 1); /* what no chunk needs */
			b.blob.data[at] ^= 4;
			entries_fini(&out);
		}
		toc_blob_fini(&b);
		fixture_fini(f);
	}
}

/* ---- annotations and footers ---- */

TEST(annotations_are_taken_only_when_they_make_sense)
{
	static const char good[] =
		"sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
	static const struct {
		const char *digest, *position;
		int present;
	} cases[] = {
		{good, "100:50:60:1", 1},
		{good, "8:992:60:1", 1},
		{good, "8:993:60:1", 0},
		{good, "7:5:60:1", 0},
		{good, "1000:1:60:1", 0},
		{good, "9223372036854775807:9223372036854775807:60:1", 0},
		{good, "100:50:60:2", 0},
		{good, "100:50:60", 0},
		{good, "100:50:60:1:", 0},
		{good, "100:50:60:1 ", 0},
		{good, "100:50:-60:1", 0},
		{good, ":50:60:1", 0},
		{good, "", 0},
		{good, "100:0:60:1", 0},
		{good, "100:50:0:1", 0},
		{good, "100:50:157286400:1", 1},
		{good, "100:50:157286401:1", 0},
		{"sha256:0", "100:50:60:1", 0},
		{"", "100:50:60:1", 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *a = json_pack("{s:s, s:s}", "io.containers.zstd-chunked.manifest-checksum",
			cases[i].digest, "io.containers.zstd-chunked.manifest-position",
			cases[i].position);
		struct descriptor layer = {.size = 1000, .annotations = a};

		if (present(&layer, CODEC_ZSTD, NULL) != cases[i].present)
			fail_msg("case %zu", i);
		assert_int_equal(present(&layer, CODEC_GZIP, NULL), 0);
		assert_int_equal(present(&layer, CODEC_NONE, NULL), 0);
		json_decref(a);
	}
}

TEST(annotations_that_are_no_strings_are_refused)
{
	json_t *a = json_pack("{s:i}", "io.containers.zstd-chunked.manifest-checksum", 1);
	struct descriptor layer = {.size = 1000, .annotations = a};
	struct err e = {0};

	assert_int_equal(present(&layer, CODEC_ZSTD, &e), -1);
	assert_int_equal(e.kind, ERR_CORRUPT);
	layer.annotations = NULL;
	assert_int_equal(present(&layer, CODEC_ZSTD, &e), 0);
	json_decref(a);
}

TEST(lists_are_kept_by_layer_and_table_together)
{
	struct digest keys[3];
	struct toc_blob b;

	toc_blob_init(&b, CODEC_ZSTD);
	toc_blob_end(&b, "io.containers");
	assert_int_equal(toc_key(&b.layer, CODEC_ZSTD, &keys[0], NULL), 1);
	assert_false(digest_eq(&keys[0], &b.layer.digest));
	json_decref(b.annotations);
	b.toc_digest.b[0] ^= 1;
	toc_blob_annotate(&b, "io.containers");
	b.layer.annotations = b.annotations;
	assert_int_equal(toc_key(&b.layer, CODEC_ZSTD, &keys[1], NULL), 1);
	b.layer.digest.b[0] ^= 1;
	assert_int_equal(toc_key(&b.layer, CODEC_ZSTD, &keys[2], NULL), 1);
	assert_int_equal(toc_key(&b.layer, CODEC_GZIP, &keys[2], NULL), 0);
	for (size_t i = 0; i < 2; i++)
		assert_false(digest_eq(&keys[i], &keys[i + 1]));
	toc_blob_fini(&b);
}

TEST(footers_are_exact)
{
	unsigned char good[TOC_STARGZ_FOOTER] =
		"\x1f\x8b\x08\x04\0\0\0\0\0\xff\x1a\0SG\x16\0"
		"0000000000000100STARGZ\x01\0\0\xff\xff\0\0\0\0\0\0\0";
	uint64_t at;

	assert_int_equal(toc_stargz_footer(good, 1000, &at, NULL), 0);
	assert_int_equal(at, 256);
	assert_int_equal(toc_stargz_footer(good, 256 + TOC_STARGZ_FOOTER, &at, NULL), -1);
	for (size_t i = 0; i < sizeof(good); i++) {
		struct err e = {0};

		good[i] ^= 0x80;
		assert_int_equal(toc_stargz_footer(good, 1000, &at, &e), -1);
		assert_int_equal(e.kind, ERR_UNSUPPORTED);
		good[i] ^= 0x80;
	}
}

/* ---- tables ---- */

#define DIGEST "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define TABLE(entries) "{\"version\":1,\"entries\":[" entries "]}"
#define FILE_AT(name, offset)                                                                      \
	"{\"type\":\"reg\",\"name\":\"" name "\",\"size\":10,\"offset\":" offset                   \
	",\"digest\":\"" DIGEST "\"}"

static int parse(const char *text, size_t n, size_t step, enum codec codec, struct toc *t,
	struct entries *out, struct err *e)
{
	struct memory m = memory_of(text, n, step);
	const struct toc_rules rules = {.name = "table",
		.codec = codec,
		.blob_size = 10000,
		.data_end = 9000,
		.max_bytes = 1 << 30};

	return toc_parse(t, &m.source, &rules, out, e);
}

TEST(names_of_fields_have_any_case)
{
	static const char text[] =
		"{\"VERSION\": 1, \"extra\": {\"a\": [1, -2.5e3, true, null, \"x\\u00e9\", {}]},"
		" \"Entries\" : [ {\"Type\":\"reg\",\"NAME\":\"./a//b\",\"Size\":1500000,"
		"\"MODE\":33261,\"uid\":5,\"Gid\":6,\"modTIME\":\"2024-02-29T12:00:00.75+01:00\","
		"\"OFFSET\":100,\"endOFFSET\":900,\"chunkSIZE\":1000000,\"CHUNKDIGEST\":\"" DIGEST
		"\",\"XATTRS\":{\"user.z\":\"AAE=\",\"user.a\":\"\"},\"digest\":null},"
		"{\"type\":\"chunk\",\"name\":\"./a//b\",\"offset\":500,\"chunkOffset\":1000000,"
		"\"chunkSize\":500000,\"chunkDigest\":\"" DIGEST "\"}]}";

	for (size_t step = 1; step < 80; step += 13) {
		struct entries out = {0};
		struct err e = {0};
		struct toc t;

		if (parse(text, sizeof(text) - 1, step, CODEC_ZSTD, &t, &out, &e) < 0)
			fail_msg("%s", e.text);
		assert_int_equal(out.n, 1);
		assert_string_equal(out.v[0].path, "a/b");
		assert_int_equal(out.v[0].a.mode, 0755);
		assert_int_equal(out.v[0].a.uid, 5);
		assert_int_equal(out.v[0].a.gid, 6);
		assert_int_equal(out.v[0].a.mtime, 1709204400);
		assert_int_equal(out.v[0].a.nxattrs, 2);
		assert_string_equal(out.v[0].a.xattrs[1].name, "user.z");
		assert_memory_equal(out.v[0].a.xattrs[1].value, "\0\1", 2);
		assert_int_equal(out.v[0].a.nchunks, 2);
		assert_int_equal(out.v[0].a.chunks[1].length, 1500000 - CHUNK_SIZE);
		assert_int_equal(t.nchunks, 2);
		assert_int_equal(t.chunks[0].end, 500);
		assert_int_equal(t.chunks[1].end, 900);
		toc_fini(&t);
		entries_fini(&out);
	}
}

TEST(hostile_tables_are_refused)
{
	static const struct {
		const char *json;
		enum err_kind kind;
		const char *text;
	} cases[] = {
		{"", ERR_CORRUPT, "ends here"},
		{"[]", ERR_CORRUPT, "expected an object"},
		{"{}", ERR_CORRUPT, "without a version"},
		{"{\"version\":1}", ERR_CORRUPT, "without a version, or entries"},
		{"{\"version\":2,\"entries\":[]}", ERR_UNSUPPORTED, "version 2"},
		{"{\"version\":1,\"Version\":1,\"entries\":[]}", ERR_CORRUPT, "Version twice"},
		{TABLE("") " ", ERR_CORRUPT, "something follows the closing brace"},
		{TABLE("") "{}", ERR_CORRUPT, "something follows the closing brace"},
		{TABLE("{}"), ERR_CORRUPT, "without a name"},
		{TABLE("{\"name\":\"a\"}"), ERR_UNSUPPORTED, "type"},
		{TABLE("{\"type\":\"socket\",\"name\":\"a\"}"), ERR_UNSUPPORTED, "type"},
		{TABLE("{\"type\":\"dir\",\"name\":\"a\",\"Name\":\"b\"}"), ERR_CORRUPT,
			"name twice"},
		{TABLE("{\"type\":\"dir\",\"name\":\"a\",\"lin\xe2\x84\xaaName\":\"b\"}"),
			ERR_CORRUPT, "not ASCII"},
		{TABLE("{\"type\":\"dir\",\"name\":\"../a\"}"), ERR_CORRUPT, "'..'"},
		{TABLE("{\"type\":\"dir\",\"name\":\"a/.wh.b/c\"}"), ERR_CORRUPT, ".wh."},
		{TABLE("{\"type\":\"reg\",\"name\":\"a/.wh.\"}"), ERR_CORRUPT, "empty component"},
		{TABLE("{\"type\":\"reg\",\"name\":\"a/.wh...\"}"), ERR_CORRUPT, "'..'"},
		{TABLE("{\"type\":\"hardlink\",\"name\":\"a\",\"linkName\":\"../../etc\"}"),
			ERR_CORRUPT, "'..'"},
		{TABLE("{\"type\":\"symlink\",\"name\":\"a\"}"), ERR_CORRUPT, "target is empty"},
		{TABLE("{\"type\":\"dir\",\"name\":\"a\\u0000b\"}"), ERR_CORRUPT, "NUL"},
		{TABLE("{\"type\":\"dir\",\"name\":\"a\xff\"}"), ERR_CORRUPT, "not UTF-8"},
		{TABLE("{\"type\":\"dir\",\"name\":\"\\ud800\"}"), ERR_CORRUPT, "half of a"},
		{TABLE("{\"type\":\"dir\",\"name\":\"a\\ufffd\"}"), ERR_UNSUPPORTED, "was lost"},
		{TABLE("{\"type\":\"dir\",\"name\":\"a\nb\"}"), ERR_CORRUPT, "control character"},
		{TABLE("{\"type\":\"dir\",\"name\":\"a\"},"), ERR_CORRUPT, "expected an object"},
		{TABLE("{\"type\":\"dir\",\"name\":\"a\",\"mode\":-1}"), ERR_CORRUPT,
			"whole number"},
		{TABLE("{\"type\":\"dir\",\"name\":\"a\",\"uid\":4294967296}"), ERR_CORRUPT,
			"above the limit"},
		{TABLE("{\"type\":\"dir\",\"name\":\"a\",\"uid\":01}"), ERR_CORRUPT,
			"begins with 0"},
		{TABLE("{\"type\":\"dir\",\"name\":\"a\",\"uid\":1.5}"), ERR_CORRUPT,
			"whole number"},
		{TABLE("{\"type\":\"dir\",\"name\":\"a\",\"uid\":\"1\"}"), ERR_CORRUPT,
			"whole number"},
		{TABLE("{\"type\":\"dir\",\"name\":\"a\",\"modtime\":\"yesterday\"}"), ERR_CORRUPT,
			"no time"},
		{TABLE("{\"type\":\"dir\",\"name\":\"a\",\"xattrs\":{\"user.a\":\"*\"}}"),
			ERR_CORRUPT, "not base64"},
		{TABLE("{\"type\":\"dir\",\"name\":\"a\",\"xattrs\":{\"user.a\":\"\",\"user.a\":"
		       "\"\"}}"),
			ERR_CORRUPT, "twice"},
		{TABLE("{\"type\":\"dir\",\"name\":\"a\"},{\"type\":\"fifo\",\"name\":\"a/\"}"),
			ERR_UNSUPPORTED, "twice"},
		{TABLE("{\"type\":\"chunk\",\"name\":\"a\",\"offset\":5}"), ERR_CORRUPT,
			"does not follow its file"},
		{TABLE(FILE_AT("a", "100") ",{\"type\":\"chunk\",\"name\":\"b\",\"offset\":200}"),
			ERR_CORRUPT, "does not follow its file"},
		{TABLE(FILE_AT("a", "0")), ERR_CORRUPT, "outside of the layer"},
		{TABLE(FILE_AT("a", "9000")), ERR_CORRUPT, "outside of the layer"},
		{TABLE(FILE_AT("a", "9223372036854775807")), ERR_CORRUPT, "outside of the layer"},
		{TABLE(FILE_AT("a", "9223372036854775808")), ERR_CORRUPT, "above the limit"},
		{TABLE(FILE_AT("a", "200") "," FILE_AT("b", "100")), ERR_CORRUPT, "lie before"},
		{TABLE(FILE_AT("a", "200") "," FILE_AT("b", "200")), ERR_CORRUPT, "overlap"},
		{TABLE("{\"type\":\"reg\",\"name\":\"a\",\"size\":10,\"offset\":100,"
		       "\"endOffset\":300,\"digest\":\"" DIGEST "\"}," FILE_AT("b", "200")),
			ERR_CORRUPT, "end at 300, outside of 100 to 200"},
		{TABLE("{\"type\":\"reg\",\"name\":\"a\",\"size\":10,\"offset\":100,"
		       "\"endOffset\":100,\"digest\":\"" DIGEST "\"}"),
			ERR_CORRUPT, "end at 100"},
		{TABLE("{\"type\":\"reg\",\"name\":\"a\",\"size\":4294967296,\"offset\":100,"
		       "\"digest\":\"" DIGEST "\"}"),
			ERR_CORRUPT, "more than the limit"},
		{TABLE("{\"type\":\"reg\",\"name\":\"a\",\"size\":10,\"offset\":100,"
		       "\"innerOffset\":1,\"digest\":\"" DIGEST "\"}"),
			ERR_CORRUPT, "outside of their frame"},
		{TABLE("{\"type\":\"reg\",\"name\":\"a\",\"size\":10,\"offset\":100,"
		       "\"chunkOffset\":1,\"digest\":\"" DIGEST "\"}"),
			ERR_CORRUPT, "chunk 0 does not continue"},
		{TABLE("{\"type\":\"reg\",\"name\":\"a\",\"size\":10,\"offset\":100,"
		       "\"chunkSize\":9,\"digest\":\"" DIGEST "\"}"),
			ERR_CORRUPT, "chunk 0 does not continue"},
		{TABLE("{\"type\":\"reg\",\"name\":\"a\",\"size\":10,\"offset\":100,"
		       "\"chunkSize\":10,\"digest\":\"" DIGEST "\"},{\"type\":\"chunk\",\"name\":"
		       "\"a\",\"offset\":200,\"chunkOffset\":10}"),
			ERR_CORRUPT, "chunk 1 does not continue"},
		{TABLE("{\"type\":\"reg\",\"name\":\"a\",\"size\":10,\"offset\":100}"),
			ERR_UNSUPPORTED, "neither it nor its chunks"},
		{TABLE("{\"type\":\"reg\",\"name\":\"a\",\"size\":10,\"offset\":100,"
		       "\"digest\":\"" DIGEST "\",\"chunkType\":\"noise\"}"),
			ERR_UNSUPPORTED, "unknown chunkType"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct entries out = {0};
		struct err e = {0};
		struct toc t;
		int rc = parse(cases[i].json, strlen(cases[i].json), 7, CODEC_ZSTD, &t, &out, &e);

		if (rc == 0 || e.kind != cases[i].kind || !strstr(e.text, cases[i].text))
			fail_msg("%s: expected '%s', got '%s'", cases[i].json, cases[i].text,
				rc ? e.text : "nothing");
		toc_fini(&t);
		entries_fini(&out);
	}
}

TEST(a_table_cut_anywhere_is_refused)
{
	static const char text[] =
		TABLE(FILE_AT("a", "100") ",{\"type\":\"dir\",\"name\":\"\\u00e9\","
					  "\"x\":[{\"y\":[1,2]}]}");

	for (size_t n = 0; n < sizeof(text) - 1; n++) {
		struct entries out = {0};
		struct toc t;

		assert_int_equal(parse(text, n, 1000, CODEC_ZSTD, &t, &out, NULL), -1);
		toc_fini(&t);
		entries_fini(&out);
	}
}

TEST(nesting_is_limited)
{
	auto_buf struct buf b = BUF_INIT(1 << 20);
	struct entries out = {0};
	struct err e = {0};
	struct toc t;

	buf_printf(&b, "{\"version\":1,\"x\":");
	for (unsigned i = 0; i < 100000; i++)
		buf_printf(&b, "[");
	assert_int_equal(parse(b.data, b.len, 4096, CODEC_ZSTD, &t, &out, &e), -1);
	assert_non_null(strstr(e.text, "nested deeper"));
	toc_fini(&t);
}

TEST(times_are_read_as_rfc_3339_has_them)
{
	static const struct {
		const char *text;
		int rc;
		int64_t t;
	} cases[] = {
		{"1970-01-01T00:00:00Z", 0, 0},
		{"0001-01-01T00:00:00Z", 0, 0},
		{"1969-12-31T23:59:59Z", 0, -1},
		{"2026-01-01T00:00:00.999999999Z", 0, 1767225600},
		{"2026-01-01T01:30:00+01:30", 0, 1767225600},
		{"2025-12-31T16:00:00-08:00", 0, 1767225600},
		{"2026-01-01T00:00:00", -1, 0},
		{"2026-13-01T00:00:00Z", -1, 0},
		{"2026-01-01T00:00:00.Z", -1, 0},
		{"2026-01-01T00:00:00+1:00", -1, 0},
		{"2026-01-01 00:00:00Z", -1, 0},
		{"2026-01-01T00:00:00Zx", -1, 0},
		{"", -1, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t t = 0;

		assert_int_equal(toc_time(cases[i].text, &t), cases[i].rc);
		if (cases[i].rc == 0)
			assert_int_equal(t, cases[i].t);
	}
}

RUN_TESTS(cmocka_unit_test(layers_of_skopeo_are_the_same_by_their_table),
	cmocka_unit_test(chunks_of_any_length_become_ours),
	cmocka_unit_test(files_whose_chunks_have_no_digest_are_checked_as_a_whole),
	cmocka_unit_test(members_that_several_files_share_are_decoded_once),
	cmocka_unit_test(zeros_are_not_fetched),
	cmocka_unit_test(large_files_are_cut_into_lanes_wherever_chunks_lie),
	cmocka_unit_test(lanes_meet_where_our_chunks_begin),
	cmocka_unit_test(neighbours_are_fetched_together),
	cmocka_unit_test(what_the_pool_has_is_not_fetched),
	cmocka_unit_test(wrong_data_are_refused),
	cmocka_unit_test(a_table_with_another_digest_is_refused),
	cmocka_unit_test(flipped_bytes_are_refused),
	cmocka_unit_test(annotations_are_taken_only_when_they_make_sense),
	cmocka_unit_test(annotations_that_are_no_strings_are_refused),
	cmocka_unit_test(lists_are_kept_by_layer_and_table_together),
	cmocka_unit_test(footers_are_exact), cmocka_unit_test(names_of_fields_have_any_case),
	cmocka_unit_test(hostile_tables_are_refused),
	cmocka_unit_test(a_table_cut_anywhere_is_refused), cmocka_unit_test(nesting_is_limited),
	cmocka_unit_test(times_are_read_as_rfc_3339_has_them))
