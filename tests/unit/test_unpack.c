#include "images/unpack.h"

#include <unistd.h>

#include "base/str.h"
#include "tests/unit/fixture.h"
#include "tests/unit/tar-make.h"

enum { MAX = 256 << 20 };
static const enum codec codecs[] = {CODEC_NONE, CODEC_GZIP, CODEC_ZSTD};

struct layered {
	struct fixture fx;
	struct sink *sink;
	struct entries l;
	struct unpack u;
	struct err e;
};

static void layered_init(struct layered *x)
{
	*x = (struct layered){0};
	fixture_init(&x->fx);
	x->sink = sink_new(x->fx.p, 2, 4 << 20);
}

static void layered_fini(struct layered *x)
{
	sink_free(x->sink);
	entries_fini(&x->l);
	fixture_fini(&x->fx);
}

static int unpack_blob(struct layered *x, enum codec c, const struct buf *blob, size_t step,
	const struct digest *diff_id)
{
	struct mem_source m;
	int rc;

	entries_fini(&x->l);
	x->e = (struct err){0};
	x->u = (struct unpack){.name = "layer 3",
		.codec = c,
		.size = blob->len,
		.digest = digest_of(blob->data, blob->len),
		.diff_id = diff_id};
	mem_source_init(&m, blob->data, blob->len, step);
	rc = unpack_layer(&x->u, &m.source, x->sink, &x->l, &x->e);
	mem_source_fini(&m);
	return rc;
}

static void must_unpack(struct layered *x, const struct buf *tar)
{
	if (unpack_blob(x, CODEC_NONE, tar, 0, NULL) < 0)
		fail_msg("%s", x->e.text);
}

/* "put:path del:path hide:path ..." */
static void describe(const struct entries *l, struct buf *b)
{
	static const char *const kinds[] = {"put", "del", "hide"};

	for (size_t i = 0; i < l->n; i++)
		buf_printf(b, "%s%s:%s", i ? " " : "", kinds[l->v[i].kind], l->v[i].path);
}

/* A tar in which everything is, files of each size among it. */
static uint64_t sizes[] = {0, 1, 511, 512, 513, SINK_SMALL, SINK_SMALL + 1, 300000, CHUNK_SIZE,
	CHUNK_SIZE + 1, 2 * CHUNK_SIZE + SINK_SMALL, 3 * CHUNK_SIZE - 1};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static void make_sizes(struct buf *b, unsigned more)
{
	unsigned char *data = mem_alloc(4 << 20);
	char name[32];

	make_dir(b, "./");
	for (uint32_t i = 0; i < SIZES; i++) {
		for (uint64_t k = 0; k < sizes[i]; k++)
			data[k] = data_at(k, i);
		snprintf(name, sizeof(name), "./f-%u", i);
		make_head(b, &(struct head){.name = name, .size = sizes[i], .mode = 0640});
		make_data(b, data, sizes[i]);
	}
	for (unsigned i = 0; i < more; i++) {
		snprintf(name, sizeof(name), "many/%u", i);
		make_file(b, name, name);
	}
	make_end(b);
	buf_put(b, "and more", 8);
	free(data);
}

static void check_sizes(struct layered *x, unsigned more)
{
	struct fixture *f = &x->fx;
	unsigned char *data = mem_alloc(CHUNK_SIZE);

	assert_int_equal(x->l.n, SIZES + 1 + more);
	for (uint32_t i = 0; i < SIZES + more; i++) {
		const struct entry *en = &x->l.v[1 + i];
		uint64_t at = 0;

		if (i < SIZES)
			assert_int_equal(en->a.size, sizes[i]);
		assert_int_equal(en->a.nchunks, (en->a.size + CHUNK_SIZE - 1) / CHUNK_SIZE);
		for (uint32_t k = 0; k < en->a.nchunks; k++) {
			const struct chunk *c = &en->a.chunks[k];
			struct digest d;

			need(pool_read(f->p, c, data, &f->e));
			d = digest_of(data, c->length);
			assert_true(digest_eq(&d, &c->digest));
			for (uint32_t j = 0; i < SIZES && j < c->length; j += 13)
				assert_int_equal(data[j], data_at(at + j, i));
			if (i >= SIZES)
				assert_memory_equal(data, en->path, c->length);
			assert_int_equal(c->layer, CHUNK_NO_LAYER);
			at += c->length;
		}
		assert_int_equal(at, en->a.size);
	}
	free(data);
}

TEST(file_data_are_in_the_pool_whatever_the_codec_and_the_pieces)
{
	static const size_t steps[] = {1000, 65536, 0};
	auto_buf struct buf tar = BUF_INIT(MAX);
	struct digest diff_id, wrong = {{1}};

	make_sizes(&tar, 1000);
	diff_id = digest_of(tar.data, tar.len);
	for (size_t i = 0; i < 9; i++) {
		auto_buf struct buf blob = BUF_INIT(MAX);
		struct layered x;

		layered_init(&x);
		make_packed(codecs[i % 3], tar.data, tar.len, &blob);
		if (unpack_blob(&x, codecs[i % 3], &blob, steps[i / 3], i % 2 ? &diff_id : NULL) <
			0)
			fail_msg("%s", x.e.text);
		check_sizes(&x, 1000);
		assert_int_equal(x.u.tar_size, tar.len);
		if (i % 2 || i % 3 == 0)
			assert_true(digest_eq(&x.u.tar_digest, &diff_id));
		assert_int_equal(unpack_blob(&x, codecs[i % 3], &blob, steps[i / 3], &wrong), -1);
		assert_non_null(strstr(x.e.text, "layer 3: DiffID: expected sha256:0100"));
		layered_fini(&x);
	}
}

TEST(attributes_are_kept)
{
	static const char caps[] = "\1\0\0\2\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0";
	auto_buf struct buf b = BUF_INIT(MAX), r = BUF_INIT(MAX);
	struct layered x;
	const struct attr *a;

	make_record(&r, "SCHILY.xattr.security.capability", caps, 20);
	make_record(&r, "SCHILY.xattr.user.empty", "", 0);
	make_record(&r, "SCHILY.xattr.system.nfs4_acl", "left out", 8);
	make_record(&r, "SCHILY.xattr.trusted.overlay.opaque", "y", 1);
	make_record(&r, "SCHILY.xattr.user.overlay.whiteout", "y", 1);
	make_record(&r, "mtime", "-1.5", 4);
	make_record(&r, "uid", "4000000000", 10);
	make_extended(&b, 'x', r.data, r.len);
	make_head(&b, &(struct head){.name = "su", .mode = 0104755, .gid = 42});
	make_head(&b,
		&(struct head){.name = "null", .type = '3', .mode = 0666, .major = 1, .minor = 3});
	make_head(&b, &(struct head){.name = "disk", .type = '4', .major = 259, .minor = 70000});
	make_head(&b, &(struct head){.name = "pipe", .type = '6', .mode = 0600});
	make_link(&b, "soft", '2', "/a//b/../c/");
	make_link(&b, "/hard", '1', "/./su");
	make_dir(&b, "/");
	layered_init(&x);
	must_unpack(&x, &b);
	assert_int_equal(x.l.n, 7);
	a = &x.l.v[0].a;
	assert_int_equal(a->type, NODE_FILE);
	assert_int_equal(a->mode, 04755);
	assert_int_equal(a->uid, 4000000000u);
	assert_int_equal(a->gid, 42);
	assert_int_equal(a->mtime, -2);
	assert_int_equal(a->nxattrs, 2);
	assert_string_equal(a->xattrs[0].name, "security.capability");
	assert_memory_equal(a->xattrs[0].value, caps, 20);
	assert_string_equal(a->xattrs[1].name, "user.empty");
	assert_int_equal(a->xattrs[1].len, 0);
	a = &x.l.v[1].a;
	assert_true(a->type == NODE_CHAR && a->major == 1 && a->minor == 3 && a->mode == 0666);
	a = &x.l.v[2].a;
	assert_true(a->type == NODE_BLOCK && a->major == 259 && a->minor == 70000);
	assert_int_equal(x.l.v[3].a.type, NODE_FIFO);
	a = &x.l.v[4].a;
	assert_true(a->type == NODE_SYMLINK && a->mode == 0777);
	assert_string_equal(a->target, "/a//b/../c/");
	assert_string_equal(x.l.v[5].path, "hard");
	assert_string_equal(x.l.v[5].a.target, "su");
	assert_string_equal(x.l.v[6].path, "");
	assert_int_equal(entries_apply(x.fx.t, &x.l, 0, &x.e), 0);
	assert_int_equal(tree_find(x.fx.t, "su")->nlink, 2);
	layered_fini(&x);
}

TEST(names_are_cleaned_and_whiteouts_are_told_apart)
{
	static const struct {
		const char *name, *list; /* "" : nothing */
	} cases[] = {
		{"a", "put:a"},
		{"./a", "put:a"},
		{"/a", "put:a"},
		{"///a//./b/", "put:a/b"},
		{"a\xff\x01", "put:a\xff\x01"},
		{"...", "put:..."},
		{"..a/b..", "put:..a/b.."},
		{"a.wh.b", "put:a.wh.b"},
		{".wh.a", "del:a"},
		{"/./.wh.a/", "del:a"},
		{"a/b/.wh.c", "del:a/b/c"},
		{".wh..a", "del:.a"},
		{".wh....", "del:..."},
		{".wh..wh..opq", "hide:"},
		{"./.wh..wh..opq", "hide:"},
		{"a/b/.wh..wh..opq", "hide:a/b"},
		{".wh..wh.plnk", ""},
		{".wh..wh.plnk/1.2", ""},
		{".wh..wh.plnk/.wh..wh..opq", ""},
		{"a/.wh..wh.aufs", ""},
		{".wh..wh.", ""},
		{".wh..wh..opq2", ""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_buf struct buf b = BUF_INIT(MAX), got = BUF_INIT(MAX);
		struct layered x;

		layered_init(&x);
		make_file(&b, cases[i].name, "data, even of a whiteout");
		make_link(&b, "z", '2', "x");
		must_unpack(&x, &b);
		describe(&x.l, &got);
		if (strncmp(got.data, cases[i].list, strlen(cases[i].list)) != 0 ||
			!str_eq(got.data + strlen(cases[i].list) + (*cases[i].list ? 1 : 0),
				"put:z"))
			fail_msg("%s: %s", cases[i].name, got.data);
		layered_fini(&x);
	}
}

TEST(whiteouts_of_any_type_count)
{
	static const char types[] = "0123456A";

	for (const char *t = types; *t; t++) {
		auto_buf struct buf b = BUF_INIT(MAX), got = BUF_INIT(MAX);
		struct layered x;

		layered_init(&x);
		make_head(
			&b, &(struct head){.name = "d/.wh.a", .type = *t, .link = ".wh..wh.aufs"});
		must_unpack(&x, &b);
		describe(&x.l, &got);
		assert_string_equal(got.data, "del:d/a");
		layered_fini(&x);
	}
}

static void refused(const struct buf *tar, enum err_kind kind, const char *text)
{
	struct layered x;

	layered_init(&x);
	assert_int_equal(unpack_blob(&x, CODEC_NONE, tar, 700, NULL), -1);
	if (x.e.kind != kind || !strstr(x.e.text, text) || !str_starts(x.e.text, "layer 3: "))
		fail_msg("%d, '%s', not '%s'", x.e.kind, x.e.text, text);
	layered_fini(&x);
}

TEST(members_that_make_no_sense_are_refused)
{
	static const struct {
		struct head h;
		enum err_kind kind;
		const char *error;
	} cases[] = {
		{{.name = "../a"}, ERR_CORRUPT, "'../a' at byte 512: path '../a': component '..'"},
		{{.name = "a/../b"}, ERR_CORRUPT, "component '..'"},
		{{.name = "/.."}, ERR_CORRUPT, "component '..'"},
		{{.name = "a/../.wh.b"}, ERR_CORRUPT, "component '..'"},
		{{.name = "../.wh..wh..opq"}, ERR_CORRUPT, "component '..'"},
		{{.name = ".wh."}, ERR_CORRUPT, "'.wh.' at byte 512: a whiteout: empty"},
		{{.name = "a/.wh."}, ERR_CORRUPT, "a whiteout: empty component"},
		{{.name = ".wh.."}, ERR_CORRUPT, "a whiteout: component '.'"},
		{{.name = "a/.wh..."}, ERR_CORRUPT, "a whiteout: component '..'"},
		{{.name = ".wh.a/b"}, ERR_CORRUPT, "names that begin with .wh."},
		{{.name = "a", .type = 'A'}, ERR_UNSUPPORTED, "its type is 65"},
		{{.name = "a", .type = 'V'}, ERR_UNSUPPORTED, "its type is 86"},
		{{.name = "a", .type = 'X'}, ERR_UNSUPPORTED, "its type is 88"},
		{{.name = "a", .type = '\xff'}, ERR_UNSUPPORTED, "its type is 255"},
		{{.name = "a", .type = 'S'}, ERR_UNSUPPORTED, "sparse"},
		{{.name = "a", .type = '2'}, ERR_CORRUPT, "the link's target is empty"},
		{{.name = "a", .type = '1'}, ERR_CORRUPT, "the link's target is empty"},
		{{.name = "a", .type = '1', .link = "/"}, ERR_CORRUPT, "target is empty"},
		{{.name = "a", .type = '1', .link = "../b"}, ERR_CORRUPT, "hard link: path '../b'"},
		{{.name = "a", .type = '1', .link = ".wh..wh.plnk/1"}, ERR_CORRUPT,
			"names that begin with .wh."},
		{{.name = "./"}, ERR_CORRUPT, "it is the root, but no folder"},
		{{.name = "/", .type = '2', .link = "a"}, ERR_CORRUPT, "it is the root"},
		{{.name = "a", .type = '3', .major = 4096}, ERR_CORRUPT, "device number 4096:0"},
		{{.name = "a", .type = '4', .minor = 1 << 20}, ERR_CORRUPT,
			"device number 0:1048576"},
		{{.name = "a", .size = (uint64_t)1 << 31}, ERR_CORRUPT,
			"'a' of 2147483648 bytes: the layer would unpack to more than the limit"},
		{{.name = "a", .size = 100}, ERR_CORRUPT, "the tar ends in the middle of 'a'"},
		{{.name = "a\033[2J\n", .type = 'A'}, ERR_UNSUPPORTED, "'a?[2J?' at"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_buf struct buf b = BUF_INIT(MAX);

		make_file(&b, "ok", "");
		make_head(&b, &cases[i].h);
		refused(&b, cases[i].kind, cases[i].error);
	}
}

/* components of `each` bytes that add up to n */
static char *long_path(size_t each, size_t n)
{
	char *p = mem_alloc(n + 1);

	memset(p, 'n', n);
	for (size_t i = each; i < n; i += each + 1)
		p[i] = '/';
	return p;
}

TEST(names_have_their_limits)
{
	static const struct {
		size_t each, n;
		const char *error;
	} cases[] = {
		{255, 255, NULL},
		{256, 256, "a component is longer than 255 bytes"},
		{255, 4095, NULL},
		{254, 4096, "longer than 4095 bytes"},
		{200, 500000, "longer than 4095 bytes"},
		{1, 511, NULL},
		{1, 513, "more than 256 components"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_free char *path = long_path(cases[i].each, cases[i].n);
		struct layered x;

		for (int k = 0; k < 4; k++) { /* PAX and GNU; name and hard link's target */
			auto_buf struct buf b = BUF_INIT(MAX);
			const char *key = k % 2 ? "linkpath" : "path";

			if (k < 2)
				make_x(&b, key, path);
			else
				make_extended(&b, k % 2 ? 'K' : 'L', path, cases[i].n + 1);
			make_link(&b, "a", k % 2 ? '1' : '2', "x");
			if (cases[i].error) {
				refused(&b, ERR_CORRUPT, cases[i].error);
				continue;
			}
			layered_init(&x);
			must_unpack(&x, &b);
			assert_string_equal(k % 2 ? x.l.v[0].a.target : x.l.v[0].path, path);
			layered_fini(&x);
		}
	}
}

TEST(symbolic_links_may_lead_anywhere_in_4095_bytes)
{
	auto_free char *target = mem_alloc(4097);
	auto_buf struct buf b = BUF_INIT(MAX), c = BUF_INIT(MAX);
	struct layered x;

	memset(target, '/', 4096);
	make_x(&c, "linkpath", target);
	make_link(&c, "a", '2', "x");
	refused(&c, ERR_CORRUPT, "the link's target is empty or longer than 4095 bytes");
	target[4095] = '\0';
	make_x(&b, "linkpath", target);
	make_link(&b, "a", '2', "x");
	layered_init(&x);
	must_unpack(&x, &b);
	assert_string_equal(x.l.v[0].a.target, target);
	layered_fini(&x);
}

TEST(extended_attributes_have_their_limits)
{
	static char value[TREE_XATTR_VALUE_MAX + 1];
	auto_buf struct buf b = BUF_INIT(MAX), c = BUF_INIT(MAX), d = BUF_INIT(MAX),
			    r = BUF_INIT(MAX);
	char key[64];

	memset(value, 'v', sizeof(value));
	make_record(&r, "SCHILY.xattr.user.a", value, sizeof(value));
	make_extended(&b, 'x', r.data, r.len);
	make_file(&b, "f", "");
	refused(&b, ERR_CORRUPT, "'f' at byte 0: extended attribute 'user.a': longer than 65535");
	r.len = 0;
	for (unsigned i = 0; i < 65; i++) {
		snprintf(key, sizeof(key), "SCHILY.xattr.user.%u", i);
		make_record(&r, key, "v", 1);
	}
	make_extended(&c, 'x', r.data, r.len);
	make_file(&c, "f", "");
	refused(&c, ERR_CORRUPT, "65 extended attributes, the limit is 64");
	r.len = 0;
	for (unsigned i = 0; i < 3; i++) {
		snprintf(key, sizeof(key), "SCHILY.xattr.user.%u", i);
		make_record(&r, key, value, 50000);
	}
	make_extended(&d, 'x', r.data, r.len);
	make_file(&d, "f", "");
	refused(&d, ERR_CORRUPT, "bytes of extended attributes, the limit is 131072");
}

TEST(all_names_together_have_a_limit)
{
	auto_buf struct buf b = BUF_INIT(MAX), blob = BUF_INIT(MAX), r = BUF_INIT(MAX);
	auto_free char *path = long_path(255, 4000);
	struct layered x;

	make_record(&r, "path", path, 4000);
	make_record(&r, "linkpath", path, 4000);
	for (unsigned i = 0; i < 12000; i++) {
		make_extended(&b, 'x', r.data, r.len);
		make_link(&b, "a", '2', "b");
	}
	make_packed(CODEC_ZSTD, b.data, b.len, &blob);
	layered_init(&x);
	assert_int_equal(unpack_blob(&x, CODEC_ZSTD, &blob, 0, NULL), -1);
	assert_non_null(strstr(x.e.text, "all names and attributes are longer than the limit of"));
	layered_fini(&x);
}

TEST(so_many_members_are_too_many)
{
	auto_buf struct buf b = BUF_INIT(MAX), blob = BUF_INIT(MAX);
	struct layered x;
	size_t n = 1000000;

	/* the same megabyte of headers again and again, in frames of their own */
	for (unsigned i = 0; i < 2000; i++)
		make_head(&b, &(struct head){.name = "a", .type = '6'});
	for (size_t i = 0; i < n + 60000; i += 2000)
		make_packed(CODEC_ZSTD, b.data, b.len, &blob);
	layered_init(&x);
	assert_int_equal(unpack_blob(&x, CODEC_ZSTD, &blob, 0, NULL), -1);
	assert_non_null(strstr(x.e.text, "it is one too many: the limit is 10"));
	layered_fini(&x);
}

TEST(bombs_end_at_the_limit)
{
	static unsigned char zeros[32 << 20];
	struct layered x;

	for (size_t i = 1; i < 3; i++) {
		auto_buf struct buf blob = BUF_INIT(MAX), frame = BUF_INIT(MAX);
		uint64_t size = 0, most;

		/* ratio of deflate: 1,032 at most; of zstd: far more */
		make_packed(codecs[i], zeros, sizeof(zeros), &frame);
		while (size <= unpack_limit(blob.len)) {
			buf_put(&blob, frame.data, frame.len);
			size += sizeof(zeros);
		}
		most = unpack_limit(blob.len);
		layered_init(&x);
		assert_int_equal(unpack_blob(&x, codecs[i], &blob, 0, NULL), -1);
		assert_int_equal(x.e.kind, ERR_CORRUPT);
		if (!strstr(x.e.text, "layer 3: unpacks to more than the limit of"))
			fail_msg("%s", x.e.text);
		assert_true(most < (uint64_t)2 << 30);
		layered_fini(&x);
	}
}

TEST(the_limit_grows_with_the_blob)
{
	assert_int_equal(unpack_limit(0), (uint64_t)1 << 30);
	assert_int_equal(unpack_limit(1000), ((uint64_t)1 << 30) + 256000);
	assert_int_equal(unpack_limit((uint64_t)4 << 30), (uint64_t)1 << 40);
	assert_int_equal(unpack_limit(UINT64_MAX), (uint64_t)1 << 40);
}

TEST(a_blob_that_is_not_the_one_that_was_asked_for)
{
	auto_buf struct buf tar = BUF_INIT(MAX);
	struct digest other = {{0xab}};

	make_sizes(&tar, 10);
	for (size_t i = 0; i < 3; i++) {
		auto_buf struct buf blob = BUF_INIT(MAX);
		struct layered x;
		static const struct {
			int64_t size;
			const char *error;
		} cases[] = {
			{0, "layer 3: expected sha256:ab"},
			{1, "layer 3: expected "},
			{-1, "layer 3: more than the "},
		};

		make_packed(codecs[i], tar.data, tar.len, &blob);
		layered_init(&x);
		for (size_t k = 0; k < 3; k++) {
			struct mem_source m;

			entries_fini(&x.l);
			x.e = (struct err){0};
			x.u = (struct unpack){.name = "layer 3",
				.codec = codecs[i],
				.size = (uint64_t)((int64_t)blob.len + cases[k].size),
				.digest = other};
			mem_source_init(&m, blob.data, blob.len, 5000);
			assert_int_equal(unpack_layer(&x.u, &m.source, x.sink, &x.l, &x.e), -1);
			assert_int_equal(x.e.kind, ERR_CORRUPT);
			if (!str_starts(x.e.text, cases[k].error))
				fail_msg("%s", x.e.text);
			mem_source_fini(&m);
		}
		layered_fini(&x);
	}
}

/* What is inside is nonsense because the blob is damaged: the digest says more. */
TEST(a_damaged_blob_is_told_as_such)
{
	auto_buf struct buf tar = BUF_INIT(MAX), blob = BUF_INIT(MAX);
	struct layered x;
	struct mem_source m;

	make_sizes(&tar, 10);
	make_packed(CODEC_GZIP, tar.data, tar.len, &blob);
	layered_init(&x);
	x.u = (struct unpack){.name = "layer 3",
		.codec = CODEC_GZIP,
		.size = blob.len,
		.digest = digest_of(blob.data, blob.len)};
	blob.data[blob.len / 2] ^= 0x55;
	mem_source_init(&m, blob.data, blob.len, 3000);
	assert_int_equal(unpack_layer(&x.u, &m.source, x.sink, &x.l, &x.e), -1);
	assert_true(str_starts(x.e.text, "layer 3: expected sha256:"));
	mem_source_fini(&m);
	layered_fini(&x);
}

static int broken_next(struct source *s, const void **data, size_t *n, struct err *e)
{
	(void)s, (void)data, (void)n;
	return err_set(e, ERR_NETWORK, "the line went dead");
}

TEST(an_error_of_the_source_is_the_error)
{
	struct source s = {.next = broken_next};

	for (size_t i = 0; i < 3; i++) {
		struct layered x;

		layered_init(&x);
		x.u = (struct unpack){.name = "layer 3", .codec = codecs[i], .size = 100};
		assert_int_equal(unpack_layer(&x.u, &s, x.sink, &x.l, &x.e), -1);
		assert_int_equal(x.e.kind, ERR_NETWORK);
		assert_string_equal(x.e.text, "the line went dead");
		layered_fini(&x);
	}
}

RUN_TESTS(cmocka_unit_test(file_data_are_in_the_pool_whatever_the_codec_and_the_pieces),
	cmocka_unit_test(attributes_are_kept),
	cmocka_unit_test(names_are_cleaned_and_whiteouts_are_told_apart),
	cmocka_unit_test(whiteouts_of_any_type_count),
	cmocka_unit_test(members_that_make_no_sense_are_refused),
	cmocka_unit_test(names_have_their_limits),
	cmocka_unit_test(symbolic_links_may_lead_anywhere_in_4095_bytes),
	cmocka_unit_test(extended_attributes_have_their_limits),
	cmocka_unit_test(all_names_together_have_a_limit),
	cmocka_unit_test(so_many_members_are_too_many), cmocka_unit_test(bombs_end_at_the_limit),
	cmocka_unit_test(the_limit_grows_with_the_blob),
	cmocka_unit_test(a_blob_that_is_not_the_one_that_was_asked_for),
	cmocka_unit_test(a_damaged_blob_is_told_as_such),
	cmocka_unit_test(an_error_of_the_source_is_the_error))
