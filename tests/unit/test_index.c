#include "images/index.h"

#include <zstd.h>

#include "images/index-format.h"
#include "tests/unit/fixture.h"

/* A body that tests can reach into: the document without compression. */
struct document {
	struct buf b;
	uint8_t *section[INDEX_SECTIONS];
	uint32_t count[INDEX_SECTIONS];
};

static void find_sections(struct document *d)
{
	uint8_t *h = (uint8_t *)d->b.data, *p = h + INDEX_HEADER;

	for (size_t s = 0; s < INDEX_SECTIONS; s++) {
		d->count[s] = (uint32_t)index_get(h + INDEX_AT_COUNTS + 4 * s, 4);
		d->section[s] = p;
		p += (size_t)d->count[s] * index_record[s];
	}
}

static void expand(struct document *d, const struct buf *packed)
{
	uint64_t body = index_get((const uint8_t *)packed->data + INDEX_AT_BODY, 8);
	size_t n;

	d->b = BUF_INIT(INDEX_BYTES_MAX);
	assert_int_equal(buf_add(&d->b, packed->data, INDEX_HEADER, NULL), 0);
	assert_int_equal(buf_reserve(&d->b, body, NULL), 0);
	n = ZSTD_decompress(d->b.data + INDEX_HEADER, body, packed->data + INDEX_HEADER,
		packed->len - INDEX_HEADER);
	assert_int_equal(n, body);
	d->b.len += body;
	index_set((uint8_t *)d->b.data + INDEX_AT_ENCODING, INDEX_RAW, 4);
	find_sections(d);
}

static void set_field(
	struct document *d, enum index_section s, uint32_t i, unsigned at, unsigned n, uint64_t v)
{
	for (unsigned k = 0; k < n; k++)
		d->section[s][(size_t)(at + k) * d->count[s] + i] = (uint8_t)(v >> (8 * k));
}

static const struct layer layers[] = {
	{.codec = CODEC_ZSTD,
		.size = 1 << 30,
		.tar_size = 1ull << 33,
		.digest = {{1}},
		.diff_id = {{2}}},
	{.codec = CODEC_NONE,
		.size = 1 << 28,
		.tar_size = 1 << 28,
		.digest = {{3}},
		.diff_id = {{3}}},
};

/* Every chunk lies in the first layer; chunks that the first file shares with others lie twice. */
static void place_chunks(struct tree *t)
{
	uint64_t at = 512;

	for (struct node *n = tree_root(t); n; n = tree_next(n)) {
		n->layer = n->a.type == NODE_DIR ? CHUNK_NO_LAYER : 0;
		for (uint32_t i = 0; i < n->a.nchunks; i++) {
			struct chunk *c = &n->a.chunks[i];

			c->layer = 0;
			c->offset = at;
			c->stored = c->length / 2 + 20;
			at += c->stored;
		}
	}
}

static void encode(struct fixture *f, struct tree *t, struct buf *b)
{
	*b = BUF_INIT(INDEX_BYTES_MAX);
	need(index_encode(t, layers, 2, b, &f->e));
}

static struct tree *decode(struct fixture *f, const struct buf *b)
{
	auto_free struct layer *l = NULL;
	struct tree *t;
	size_t n;

	f->e = (struct err){0};
	t = index_decode(b->data, b->len, &l, &n, &f->e);
	if (t) {
		assert_int_equal(n, 2);
		for (size_t i = 0; i < 2; i++) {
			assert_memory_equal(&l[i].digest, &layers[i].digest, DIGEST_SIZE);
			assert_memory_equal(&l[i].diff_id, &layers[i].diff_id, DIGEST_SIZE);
			assert_int_equal(l[i].size, layers[i].size);
			assert_int_equal(l[i].tar_size, layers[i].tar_size);
			assert_int_equal(l[i].codec, layers[i].codec);
		}
	}
	return t;
}

static void compare_attr(const struct attr *a, const struct attr *b)
{
	assert_int_equal(a->type, b->type);
	assert_int_equal(a->mode, b->mode);
	assert_int_equal(a->uid, b->uid);
	assert_int_equal(a->gid, b->gid);
	assert_int_equal(a->mtime, b->mtime);
	assert_int_equal(a->major, b->major);
	assert_int_equal(a->minor, b->minor);
	assert_int_equal(a->size, b->size);
	assert_int_equal(a->nchunks, b->nchunks);
	assert_int_equal(a->nxattrs, b->nxattrs);
	if (a->target || b->target)
		assert_string_equal(a->target, b->target);
	for (uint32_t i = 0; i < a->nxattrs; i++) {
		assert_string_equal(a->xattrs[i].name, b->xattrs[i].name);
		assert_int_equal(a->xattrs[i].len, b->xattrs[i].len);
		assert_memory_equal(a->xattrs[i].value, b->xattrs[i].value, a->xattrs[i].len);
	}
	for (uint32_t i = 0; i < a->nchunks; i++) {
		assert_memory_equal(&a->chunks[i].digest, &b->chunks[i].digest, DIGEST_SIZE);
		assert_int_equal(a->chunks[i].length, b->chunks[i].length);
		assert_int_equal(a->chunks[i].layer, 0);
		assert_int_equal(b->chunks[i].block, CHUNK_NO_BLOCK);
	}
}

static void compare_trees(struct tree *t, struct tree *u)
{
	char a[TREE_PATH_MAX + 1], b[TREE_PATH_MAX + 1];
	struct node *n = tree_root(t), *m = tree_root(u);

	for (; n && m; n = tree_next(n), m = tree_next(m)) {
		assert_string_equal(node_path(n, a), node_path(m, b));
		compare_attr(&n->a, &m->a);
		assert_int_equal(n->layer, m->layer);
		assert_int_equal(n->nlink, m->nlink);
		if (n->link)
			assert_string_equal(node_path(n->link, a), node_path(m->link, b));
	}
	assert_null(n);
	assert_null(m);
}

TEST(a_tree_comes_back_as_it_was)
{
	struct fixture f_, *f = &f_;
	auto_buf struct buf b = {0}, again = {0};
	struct tree *t;

	fixture_init(f);
	sample_tree(f);
	place_chunks(f->t);
	encode(f, f->t, &b);
	t = decode(f, &b);
	if (!t)
		fail_msg("%s", f->e.text);
	compare_trees(f->t, t);
	encode(f, t, &again);
	assert_int_equal(b.len, again.len);
	assert_memory_equal(b.data, again.data, b.len);
	tree_free(t);
	fixture_fini(f);
}

TEST(of_several_places_the_first_counts)
{
	struct fixture f_, *f = &f_;
	auto_buf struct buf b = {0};
	struct node *copy, *first;
	struct tree *t;

	fixture_init(f);
	sample_tree(f);
	place_chunks(f->t);
	tree_find(f->t, "copies/of-size-100")->a.chunks[0].layer = CHUNK_NO_LAYER;
	encode(f, f->t, &b);
	t = decode(f, &b);
	assert_non_null(t);
	copy = tree_find(t, "copies/of-size-100");
	first = tree_find(f->t, "files/size-100");
	assert_int_equal(copy->a.chunks[0].offset, first->a.chunks[0].offset);
	assert_int_equal(copy->a.chunks[0].layer, 0);
	tree_free(t);
	fixture_fini(f);
}

TEST(chunks_may_lie_in_no_layer)
{
	struct fixture f_, *f = &f_;
	auto_buf struct buf b = {0};
	struct tree *t;

	fixture_init(f);
	sample_tree(f);
	encode(f, f->t, &b);
	t = decode(f, &b);
	assert_non_null(t);
	assert_int_equal(tree_find(t, "bin/su")->a.chunks[0].layer, CHUNK_NO_LAYER);
	tree_free(t);
	fixture_fini(f);
}

/* ---- what a reader must refuse ---- */

static void refuse(struct fixture *f, const struct buf *b, const char *text)
{
	struct tree *t = decode(f, b);

	if (t)
		fail_msg("accepted: %s", text);
	if (f->e.kind != ERR_CORRUPT || !strstr(f->e.text, text))
		fail_msg("'%s' lacks '%s'", f->e.text, text);
}

static uint32_t number_of(struct fixture *f, const char *path)
{
	return (uint32_t)tree_find(f->t, path)->scratch;
}

TEST(altered_records_are_refused_by_name)
{
	struct fixture f_, *f = &f_;
	auto_buf struct buf packed = {0};

	fixture_init(f);
	sample_tree(f);
	place_chunks(f->t);
	encode(f, f->t, &packed); /* and numbers are in scratch now */

	const struct {
		enum index_section s;
		uint32_t i;
		unsigned at, n;
		uint64_t v;
		const char *text;
	} cases[] = {
		{INDEX_LAYERS, 0, 80, 4, 3, "codec 3"}, {INDEX_LAYERS, 0, 84, 4, 1, "codec"},
		{INDEX_LAYERS, 0, 64, 8, UINT64_MAX, "layer 0: its size"},
		{INDEX_LAYERS, 0, 64, 8, 600, "not within layer 0"},
		{INDEX_CHUNKS, 1, 40, 4, 0, "chunk 1: a length of 0"},
		{INDEX_CHUNKS, 1, 40, 4, CHUNK_SIZE + 1, "a length of 1048577"},
		{INDEX_CHUNKS, 1, 44, 4, 0, "0 stored bytes"},
		{INDEX_CHUNKS, 1, 44, 4, UINT32_MAX, "stored bytes"},
		{INDEX_CHUNKS, 1, 32, 8, UINT64_MAX - 3, "not within"},
		{INDEX_CHUNKS, 1, 48, 4, 2, "chunk 1: layer 2"},
		{INDEX_CHUNKS, 1, 48, 4, 1,
			"stored bytes"}, /* plain layers store chunks as they are */
		{INDEX_CHUNKS, 1, 48, 4, INDEX_NONE, "a place in no layer"},
		{INDEX_NODES, 0, 4, 1, NODE_FILE, "node 0: type"},
		{INDEX_NODES, 3, 4, 1, 0, "type 0"},
		{INDEX_NODES, 3, 4, 1, NODE_BLOCK + 1, "type 8"},
		{INDEX_NODES, 3, 0, 4, 3, "its parent 3"},
		{INDEX_NODES, 3, 0, 4, UINT32_MAX, "its parent"},
		{INDEX_NODES, 3, 6, 2, 010000, "mode"}, {INDEX_NODES, 3, 32, 4, 2, "layer 2"},
		{INDEX_NODES, number_of(f, "bin/su"), 5, 1, 65, "65 extended attributes"},
		{INDEX_NODES, number_of(f, "bin/su"), 5, 1, 64, "more extended attributes"},
		{INDEX_NODES, number_of(f, "bin/su"), 24, 8, 4999, "no such chunk of 4999"},
		{INDEX_NODES, number_of(f, "bin/su"), 24, 8, UINT64_MAX, "need more chunks"},
		{INDEX_NODES, number_of(f, "bin"), 24, 8, 1, "a number that its type"},
		{INDEX_NODES, number_of(f, "dev/null"), 24, 8, 4096ull << 32, "device number"},
		{INDEX_NODES, number_of(f, "links/hard-1"), 24, 8, 0, "no object before it"},
		{INDEX_NODES, number_of(f, "links/hard-1"), 24, 8, 1 << 20, "no object before it"},
		{INDEX_NODES, number_of(f, "links/hard-1"), 8, 4, 1, "attributes of its own"},
		{INDEX_STRINGS, 1, 0, 1, 'z', "not sorted"}, /* "aa" */
		{INDEX_STRINGS, 1, 0, 1, '/', "has a slash"},
		{INDEX_STRINGS, 1, 0, 1, 0, "empty component"},
		{INDEX_REFS, 2, 0, 4, UINT32_MAX, "no such chunk"},
		{INDEX_XATTRS, 0, 0, 4, 1 << 30, "an extended attribute of"},
		{INDEX_STRINGS, 0, 0, 1, 'x', "type"}, /* the root's name */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct document d;

		expand(&d, &packed);
		set_field(&d, cases[i].s, cases[i].i, cases[i].at, cases[i].n, cases[i].v);
		refuse(f, &d.b, cases[i].text);
		buf_fini(&d.b);
	}
	fixture_fini(f);
}

TEST(altered_headers_are_refused)
{
	static const struct {
		unsigned at, n;
		uint64_t v;
		enum err_kind kind;
		const char *text;
	} cases[] = {
		{0, 1, 'S', ERR_CORRUPT, "not an image index"},
		{INDEX_AT_VERSION, 4, 2, ERR_UNSUPPORTED, "version 2"},
		{INDEX_AT_ENCODING, 4, 2, ERR_CORRUPT, "encoding"},
		{INDEX_AT_ZERO, 8, 1, ERR_CORRUPT, "encoding"},
		{INDEX_AT_COUNTS, 4, 513, ERR_CORRUPT, "limit is 512"},
		{INDEX_AT_COUNTS + 4 * INDEX_NODES, 4, TREE_NODES_MAX + 1, ERR_CORRUPT,
			"the limit is"},
		{INDEX_AT_COUNTS + 4 * INDEX_REFS, 4, INDEX_REFS_MAX + 1, ERR_CORRUPT,
			"the limit is 4194304"},
		{INDEX_AT_COUNTS + 4 * INDEX_NODES, 4, 5, ERR_CORRUPT, "add up to"},
		{INDEX_AT_BODY, 8, UINT64_MAX, ERR_CORRUPT, "add up to"},
		{INDEX_HEADER, 4, 0, ERR_CORRUPT, "not one zstd frame"},
	};
	struct fixture f_, *f = &f_;
	auto_buf struct buf b = {0};
	char saved[8];

	fixture_init(f);
	sample_tree(f);
	encode(f, f->t, &b);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memcpy(saved, b.data + cases[i].at, 8);
		index_set((uint8_t *)b.data + cases[i].at, cases[i].v, cases[i].n);
		assert_null(decode(f, &b));
		assert_int_equal(f->e.kind, cases[i].kind);
		if (!strstr(f->e.text, cases[i].text))
			fail_msg("'%s' lacks '%s'", f->e.text, cases[i].text);
		memcpy(b.data + cases[i].at, saved, 8);
	}
	fixture_fini(f);
}

TEST(every_cut_is_refused)
{
	struct fixture f_, *f = &f_;
	auto_buf struct buf b = {0};
	struct document d;
	size_t full;

	fixture_init(f);
	sample_tree(f);
	encode(f, f->t, &b);
	full = b.len;
	for (b.len = 0; b.len < full; b.len += b.len < 200 ? 1 : 97)
		assert_null(decode(f, &b));
	b.len = full;
	assert_int_equal(buf_add(&b, "x", 1, NULL), 0);
	assert_null(decode(f, &b));
	b.len = full;
	expand(&d, &b);
	for (full = d.b.len, d.b.len = 0; d.b.len < full; d.b.len += 997)
		assert_null(decode(f, &d.b));
	d.b.len = full;
	tree_free(decode(f, &d.b));
	assert_int_equal(f->e.kind, ERR_NONE);
	buf_fini(&d.b);
	fixture_fini(f);
}

/* A body that would cost more than its payload pays for. */
TEST(a_bomb_is_refused_before_it_is_inflated)
{
	struct fixture f_, *f = &f_;
	auto_buf struct buf b = BUF_INIT(1 << 20);
	uint8_t h[INDEX_HEADER] = INDEX_MAGIC;
	size_t body = 64 << 20, n;
	auto_free char *zeros = mem_alloc(body);

	fixture_init(f);
	index_set(h + INDEX_AT_VERSION, INDEX_VERSION, 4);
	index_set(h + INDEX_AT_ENCODING, INDEX_ZSTD, 4);
	index_set(h + INDEX_AT_COUNTS + 4 * INDEX_STRINGS, body, 4);
	index_set(h + INDEX_AT_BODY, body, 8);
	assert_int_equal(buf_add(&b, h, sizeof(h), NULL), 0);
	assert_int_equal(buf_reserve(&b, 100000, NULL), 0);
	n = ZSTD_compress(b.data + b.len, 100000, zeros, body, 1);
	assert_false(ZSTD_isError(n));
	b.len += n;
	refuse(f, &b, "compressed ones");
	fixture_fini(f);
}

/* The encoder must not write what the decoder calls a bomb. */
TEST(a_tree_that_compresses_too_well_is_written_raw)
{
	struct fixture f_, *f = &f_;
	auto_buf struct buf b = {0};
	struct tree *t;
	char path[64];

	fixture_init(f);
	for (unsigned i = 0; i < 20000; i++) {
		snprintf(path, sizeof(path), "d/file-with-a-long-name-%08u", i);
		put_node(f, path, &(struct attr){.type = NODE_FILE, .mode = 0644});
	}
	tree_sort(f->t);
	encode(f, f->t, &b);
	t = decode(f, &b);
	assert_non_null(t);
	compare_trees(f->t, t);
	tree_free(t);
	fixture_fini(f);
}

/* ---- the layer that carries it ---- */

TEST(the_index_layer_is_an_empty_tar_of_constant_diff_id)
{
	static const char empty[1024];
	struct digest diff_id = digest_of(empty, sizeof(empty));
	struct fixture f_, *f = &f_;
	struct index_place place, parsed;
	struct layer l;
	char text[256], blob[2048];
	char out[2048];
	uint64_t size;
	int fd;

	fixture_init(f);
	need(index_layer_write(&f->s, CODEC_ZSTD, "payload", 7, &l, &place, &f->e));
	assert_memory_equal(&l.diff_id, &diff_id, sizeof(diff_id));
	assert_int_equal(l.tar_size, 1024);
	need(fd = store_blob_open(&f->s, &l.digest, &size, &f->e));
	assert_int_equal(size, l.size);
	assert_int_equal(read(fd, blob, sizeof(blob)), size);
	close(fd);
	assert_int_equal(ZSTD_decompress(out, sizeof(out), blob, size), 1024);
	assert_memory_equal(out, empty, 1024);
	assert_memory_equal(blob + place.offset, "payload", 7);
	assert_int_equal(place.offset + place.length, size);

	assert_true(index_place_format(&place, text) < 256);
	need(index_place_parse(&parsed, text, &f->e));
	assert_memory_equal(&parsed.layer, &place.layer, DIGEST_SIZE);
	assert_memory_equal(&parsed.digest, &place.digest, DIGEST_SIZE);
	assert_int_equal(parsed.offset, place.offset);
	assert_int_equal(parsed.length, place.length);
	fixture_fini(f);
}

TEST(a_place_reads_back_or_says_what_is_wrong)
{
	struct fixture f_, *f = &f_;
	auto_buf struct buf b = BUF_INIT(100);
	struct index_place place, bad;
	struct layer l;

	fixture_init(f);
	need(index_layer_write(&f->s, CODEC_ZSTD, "payload", 7, &l, &place, &f->e));
	need(index_read(&f->s, &place, &b, &f->e));
	assert_int_equal(b.len, 7);
	assert_memory_equal(b.data, "payload", 7);
	b.len = 0;
	bad = place;
	bad.digest.b[0] ^= 1;
	assert_int_equal(index_read(&f->s, &bad, &b, &f->e), -1);
	assert_int_equal(f->e.kind, ERR_CORRUPT);
	assert_non_null(strstr(f->e.text, "expected sha256:"));
	bad = place;
	bad.length++;
	assert_int_equal(index_read(&f->s, &bad, &b, &f->e), -1);
	assert_non_null(strstr(f->e.text, "ends at byte"));
	bad = place;
	bad.offset = INT64_MAX;
	assert_int_equal(index_read(&f->s, &bad, &b, &f->e), -1);
	assert_non_null(strstr(f->e.text, "ends at byte"));
	bad = place;
	bad.layer.b[0] ^= 1;
	f->e = (struct err){0};
	assert_int_equal(index_read(&f->s, &bad, &b, &f->e), -1);
	assert_int_equal(f->e.kind, ERR_NOT_FOUND);
	fixture_fini(f);
}

TEST(gzip_members_carry_a_long_payload)
{
	enum { LENGTH = 200000 };
	struct fixture f_, *f = &f_;
	auto_buf struct buf b = BUF_INIT(INDEX_BYTES_MAX);
	auto_free unsigned char *payload = mem_alloc(LENGTH);
	struct index_place place;
	struct layer l;

	fixture_init(f);
	for (uint64_t i = 0; i < LENGTH; i++)
		payload[i] = data_at(i, 9);
	need(index_layer_write(&f->s, CODEC_GZIP, payload, LENGTH, &l, &place, &f->e));
	need(index_read(&f->s, &place, &b, &f->e));
	assert_int_equal(b.len, LENGTH);
	assert_memory_equal(b.data, payload, LENGTH);
	fixture_fini(f);
}

TEST(malformed_places_are_refused)
{
#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	static const char *const cases[] = {
		"",
		"1:",
		"2:sha256:" HEX ":1:2:" HEX,
		"1:" HEX ":1:2:" HEX,
		"1:sha256:" HEX ":1:2:" HEX "0",
		"1:sha256:" HEX ":1:2",
		"1:sha256:" HEX ":1:0:" HEX,
		"1:sha256:" HEX ":-1:2:" HEX,
		"1:sha256:" HEX ":1:536870913:" HEX,
		"1:sha256:" HEX ":9223372036854775808:2:" HEX,
		"1:sha256:" HEX "::2:" HEX,
		"1:sha256:" HEX ":1:2:sha256:" HEX,
		"1:sha512:" HEX ":1:2:" HEX,
	};
	struct index_place p;
	struct err e;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		e = (struct err){0};
		if (index_place_parse(&p, cases[i], &e) == 0)
			fail_msg("accepted: %s", cases[i]);
		assert_int_equal(e.kind, ERR_CORRUPT);
	}
	assert_int_equal(index_place_parse(&p, "1:sha256:" HEX ":1:2:" HEX, &e), 0);
}

RUN_TESTS(cmocka_unit_test(a_tree_comes_back_as_it_was),
	cmocka_unit_test(of_several_places_the_first_counts),
	cmocka_unit_test(chunks_may_lie_in_no_layer),
	cmocka_unit_test(altered_records_are_refused_by_name),
	cmocka_unit_test(altered_headers_are_refused), cmocka_unit_test(every_cut_is_refused),
	cmocka_unit_test(a_bomb_is_refused_before_it_is_inflated),
	cmocka_unit_test(a_tree_that_compresses_too_well_is_written_raw),
	cmocka_unit_test(the_index_layer_is_an_empty_tar_of_constant_diff_id),
	cmocka_unit_test(a_place_reads_back_or_says_what_is_wrong),
	cmocka_unit_test(gzip_members_carry_a_long_payload),
	cmocka_unit_test(malformed_places_are_refused))
