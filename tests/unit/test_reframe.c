#include "images/reframe.h"

#include <archive.h>
#include <archive_entry.h>

#include "images/decompress.h"
#include "images/tar.h"
#include "tests/unit/fixture.h"

static const struct layer kinds[] = {
	{.id = "plain", .codec = CODEC_NONE},
	{.id = "zstd", .codec = CODEC_ZSTD, .level = 3},
	{.id = "gzip", .codec = CODEC_GZIP, .level = 1},
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* Bytes in memory, in pieces. */
struct pieces {
	struct source source;
	const unsigned char *p;
	size_t left, piece;
};

static int pieces_next(struct source *s, const void **data, size_t *n, struct err *e)
{
	struct pieces *x = (struct pieces *)s;

	(void)e;
	*data = x->p;
	*n = x->left < x->piece ? x->left : x->piece;
	x->p += *n;
	x->left -= *n;
	return *n > 0;
}

static struct pieces pieces_of(const void *p, size_t n, size_t piece)
{
	return (struct pieces){.source.next = pieces_next, .p = p, .left = n, .piece = piece};
}

static void read_blob(struct fixture *f, const struct digest *d, struct buf *b)
{
	b->max = 64 << 20;
	need(store_blob_read(&f->s, d, b->max, b, &f->e));
}

static struct layer write_sample(struct fixture *f, const struct layer *kind)
{
	struct node **v;
	struct layer l = *kind;
	size_t n = 0;

	sample_tree(f);
	v = mem_array(tree_count(f->t), sizeof(struct node *));
	for (struct node *k = tree_root(f->t); k; k = tree_next(k))
		v[n++] = k;
	need(layer_write(&l, 0, v, n, f->p, &f->s, NULL, &f->e));
	free(v);
	return l;
}

static void frame_again(struct fixture *f, const struct layer *from, size_t piece, struct layer *to,
	struct chunk_list *chunks)
{
	auto_buf struct buf blob = {0};
	struct pieces in;
	struct decompress *t;

	read_blob(f, &from->digest, &blob);
	in = pieces_of(blob.data, blob.len, piece);
	t = decompress_new(from->codec, &in.source, from->tar_size, "layer", &f->e);
	assert_non_null(t);
	to->diff_id = from->diff_id;
	need(reframe(to, decompress_source(t), &f->s, chunks, NULL, &f->e));
	decompress_free(t);
}

static void chunks_decode_alone(
	struct fixture *f, const struct layer *l, const struct chunk_list *chunks)
{
	static unsigned char data[CHUNK_SIZE];
	auto_buf struct buf blob = {0};

	read_blob(f, &l->digest, &blob);
	assert_int_equal(blob.len, l->size);
	for (size_t i = 0; i < chunks->n; i++) {
		const struct chunk *c = &chunks->v[i];
		struct digest d;

		assert_true(c->offset + c->stored <= blob.len);
		need(codec_decode(
			l->codec, blob.data + c->offset, c->stored, data, c->length, &f->e));
		d = digest_of(data, c->length);
		assert_memory_equal(&d, &c->digest, sizeof(d));
	}
}

/* The chunks of the tree, in its order, are those of the tar. */
static void chunks_are_the_trees(struct fixture *f, const struct chunk_list *chunks)
{
	size_t i = 0;

	for (struct node *n = tree_root(f->t); n; n = tree_next(n))
		for (uint32_t k = 0; k < n->a.nchunks; k++, i++) {
			assert_true(i < chunks->n);
			assert_memory_equal(
				&n->a.chunks[k].digest, &chunks->v[i].digest, DIGEST_SIZE);
			assert_int_equal(n->a.chunks[k].length, chunks->v[i].length);
		}
	assert_int_equal(i, chunks->n);
}

TEST(every_codec_becomes_every_other_with_the_same_tar)
{
	for (size_t from = 0; from < KINDS; from++)
		for (size_t to = 0; to < KINDS; to++) {
			struct fixture f_, *f = &f_;
			struct chunk_list chunks;
			struct layer a, b = kinds[to];

			fixture_init(f);
			a = write_sample(f, &kinds[from]);
			frame_again(f, &a, from == to ? 1 : 70000, &b, &chunks);
			assert_memory_equal(&a.diff_id, &b.diff_id, sizeof(a.diff_id));
			assert_int_equal(a.tar_size, b.tar_size);
			chunks_decode_alone(f, &b, &chunks);
			chunks_are_the_trees(f, &chunks);
			chunk_list_fini(&chunks);
			fixture_fini(f);
		}
}

TEST(two_framings_of_one_tar_are_equal)
{
	struct fixture f_, *f = &f_;
	struct layer a, b[2] = {kinds[1], kinds[1]};
	struct chunk_list chunks;

	fixture_init(f);
	a = write_sample(f, &kinds[2]);
	for (int i = 0; i < 2; i++) {
		frame_again(f, &a, i ? 333 : 1 << 20, &b[i], &chunks);
		chunk_list_fini(&chunks);
	}
	assert_memory_equal(&b[0].digest, &b[1].digest, DIGEST_SIZE);
	fixture_fini(f);
}

/* ---- tars that others make ---- */

static void make_member(struct archive *a, const char *name, const char *data, size_t n)
{
	struct archive_entry *en = archive_entry_new();

	archive_entry_set_pathname(en, name);
	archive_entry_set_filetype(en, AE_IFREG);
	archive_entry_set_perm(en, 0644);
	archive_entry_set_size(en, (la_int64_t)n);
	assert_int_equal(archive_write_header(a, en), ARCHIVE_OK);
	assert_int_equal(archive_write_data(a, data, n), (la_ssize_t)n);
	archive_entry_free(en);
}

static void make_tar(const char *format, char *out, size_t size, size_t *used)
{
	struct archive *a = archive_write_new();
	char name[191];

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	name[100] = '/'; /* ustar's prefix */
	assert_int_equal(archive_write_set_format_by_name(a, format), ARCHIVE_OK);
	assert_int_equal(archive_write_open_memory(a, out, size, used), ARCHIVE_OK);
	make_member(a, "first", "1234567", 7);
	make_member(a, "empty", "", 0);
	make_member(a, name, "long", 4);
	archive_write_close(a);
	archive_write_free(a);
}

static int frame_tar(struct fixture *f, const void *p, size_t n, struct chunk_list *chunks)
{
	struct pieces in = pieces_of(p, n, 1000);
	struct layer l = {.id = "l", .codec = CODEC_ZSTD, .level = 1, .diff_id = digest_of(p, n)};

	f->e = (struct err){0};
	return reframe(&l, &in.source, &f->s, chunks, NULL, &f->e);
}

TEST(gnu_pax_and_ustar_archives_are_cut_at_their_data)
{
	static const char *const formats[] = {"gnutar", "pax", "ustar"};
	static char tar[1 << 20];
	const struct digest want[] = {digest_of("1234567", 7), digest_of("long", 4)};

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		struct fixture f_, *f = &f_;
		struct chunk_list chunks;
		size_t n;

		fixture_init(f);
		make_tar(formats[i], tar, sizeof(tar), &n);
		memcpy(tar + n, "behind the end", 14); /* is part of the DiffID */
		need(frame_tar(f, tar, n + 14, &chunks));
		assert_int_equal(chunks.n, 2);
		assert_memory_equal(&chunks.v[0].digest, &want[0], DIGEST_SIZE);
		assert_memory_equal(&chunks.v[1].digest, &want[1], DIGEST_SIZE);
		chunk_list_fini(&chunks);
		fixture_fini(f);
	}
}

static void put_sum(char *h)
{
	unsigned sum = 0;

	memset(h + 148, ' ', 8);
	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += (unsigned char)h[i];
	snprintf(h + 148, 8, "%06o", sum);
}

/* A header block, and one block after it. */
static void put_header(char tar[4 * TAR_BLOCK], char type, const char *size)
{
	memset(tar, 0, 4 * TAR_BLOCK);
	memcpy(tar, "name", 4);
	memcpy(tar + 124, size, strlen(size));
	tar[156] = type;
	put_sum(tar);
}

TEST(sizes_of_every_notation_are_read)
{
	struct fixture f_, *f = &f_;
	struct chunk_list chunks;
	char tar[4 * TAR_BLOCK];
	struct digest want;

	fixture_init(f);
	put_header(tar, '0', "");
	memcpy(tar + 124, "\x80\0\0\0\0\0\0\0\0\0\0\5", 12); /* base 256 */
	put_sum(tar);
	memcpy(tar + TAR_BLOCK, "abcde", 5);
	want = digest_of("abcde", 5);
	need(frame_tar(f, tar, sizeof(tar), &chunks));
	assert_int_equal(chunks.n, 1);
	assert_memory_equal(&chunks.v[0].digest, &want, DIGEST_SIZE);
	chunk_list_fini(&chunks);

	put_header(tar, '1', "5"); /* a hard link's size counts for nothing */
	need(frame_tar(f, tar, TAR_BLOCK, &chunks));
	assert_int_equal(chunks.n, 0);
	chunk_list_fini(&chunks);

	put_header(tar, 'x', "12");
	memcpy(tar + TAR_BLOCK, "10 size=600\n", 12); /* says 10, is 12 */
	assert_int_equal(frame_tar(f, tar, sizeof(tar), &chunks), -1);
	assert_int_equal(f->e.kind, ERR_CORRUPT);
	fixture_fini(f);
}

TEST(an_extended_header_says_the_size)
{
	struct fixture f_, *f = &f_;
	struct chunk_list chunks;
	char tar[8 * TAR_BLOCK] = {0};

	fixture_init(f);
	put_header(tar, 'x', "14");
	memcpy(tar + TAR_BLOCK, "12 size=600\n", 12);
	put_header(tar + 2 * TAR_BLOCK, '0', "0");
	need(frame_tar(f, tar, sizeof(tar), &chunks));
	assert_int_equal(chunks.n, 1);
	assert_int_equal(chunks.v[0].length, 600);
	chunk_list_fini(&chunks);
	fixture_fini(f);
}

TEST(what_is_no_tar_is_refused_and_leaves_no_blob)
{
	static const struct {
		char type;
		const char *size;
		size_t length, spoil;
		enum err_kind kind;
		const char *text;
	} cases[] = {
		{'0', "2000", 2 * TAR_BLOCK, 0, ERR_CORRUPT, "l: "},
		{'0', "0", TAR_BLOCK, 5, ERR_CORRUPT, "byte 0"},
		{'0', "9z", TAR_BLOCK, 0, ERR_CORRUPT, "byte 0"},
		{'S', "0", TAR_BLOCK, 0, ERR_UNSUPPORTED, "sparse"},
		{'x', "77777777", TAR_BLOCK, 0, ERR_CORRUPT, "extended"},
		{'0', "0", 0, 0, ERR_UNSUPPORTED, "without the end of a tar"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f_, *f = &f_;
		struct chunk_list chunks;
		char tar[4 * TAR_BLOCK];

		fixture_init(f);
		put_header(tar, cases[i].type, cases[i].size);
		if (cases[i].spoil)
			tar[cases[i].spoil] ^= 1;
		assert_int_equal(frame_tar(f, tar, cases[i].length, &chunks), -1);
		assert_int_equal(f->e.kind, cases[i].kind);
		if (!strstr(f->e.text, cases[i].text))
			fail_msg("%zu: %s", i, f->e.text);
		assert_null(chunks.v);
		fixture_fini(f);
	}
}

TEST(another_tar_than_the_diff_id_is_refused_and_leaves_no_blob)
{
	struct fixture f_, *f = &f_;
	char tar[TAR_END] = {0};
	struct pieces in = pieces_of(tar, sizeof(tar), 100);
	struct layer l = {.codec = CODEC_NONE};
	struct chunk_list chunks;
	struct digest blob = digest_of(tar, sizeof(tar));

	fixture_init(f);
	assert_int_equal(reframe(&l, &in.source, &f->s, &chunks, NULL, &f->e), -1);
	assert_int_equal(f->e.kind, ERR_CORRUPT);
	assert_non_null(strstr(f->e.text, "DiffID"));
	assert_false(store_has(&f->s, &blob));
	fixture_fini(f);
}

/* ---- decoding ---- */

TEST(damaged_and_oversized_blobs_are_refused)
{
	for (size_t k = 1; k < KINDS; k++)
		for (int how = 0; how < 3; how++) {
			struct fixture f_, *f = &f_;
			auto_buf struct buf blob = {0};
			struct decompress *t;
			struct pieces in;
			struct layer a;
			const void *p;
			size_t n;
			int rc;

			fixture_init(f);
			a = write_sample(f, &kinds[k]);
			read_blob(f, &a.digest, &blob);
			in = pieces_of(blob.data, how == 0 ? blob.len - 3 : blob.len, 5000);
			if (how == 1)
				memset(blob.data + blob.len / 2, 0x55, 64);
			t = decompress_new(a.codec, &in.source,
				how == 2 ? a.tar_size - 1 : a.tar_size, "layer 7", &f->e);
			while ((rc = source_next(decompress_source(t), &p, &n, &f->e)) > 0)
				;
			assert_int_equal(rc, -1);
			assert_int_equal(f->e.kind, ERR_CORRUPT);
			assert_non_null(strstr(f->e.text, "layer 7"));
			decompress_free(t);
			fixture_fini(f);
		}
}

RUN_TESTS(cmocka_unit_test(every_codec_becomes_every_other_with_the_same_tar),
	cmocka_unit_test(two_framings_of_one_tar_are_equal),
	cmocka_unit_test(gnu_pax_and_ustar_archives_are_cut_at_their_data),
	cmocka_unit_test(sizes_of_every_notation_are_read),
	cmocka_unit_test(an_extended_header_says_the_size),
	cmocka_unit_test(what_is_no_tar_is_refused_and_leaves_no_blob),
	cmocka_unit_test(another_tar_than_the_diff_id_is_refused_and_leaves_no_blob),
	cmocka_unit_test(damaged_and_oversized_blobs_are_refused))
