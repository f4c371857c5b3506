#include "images/entries.h"

#include "base/str.h"
#include "tests/unit/fixture.h"

/* A tree as one line: "bin>usr/bin usr/ usr/bin/ usr/bin/sh*" in sorted order, "=" is a hard link,
 * "!" an object of layer 1. */
static void describe(struct tree *t, struct buf *b)
{
	char path[TREE_PATH_MAX + 1], object[TREE_PATH_MAX + 1];

	tree_sort(t);
	for (struct node *n = tree_root(t); n; n = tree_next(n)) {
		if (!n->parent)
			continue;
		buf_printf(b, "%s%s", b->len ? " " : "", node_path(n, path));
		if (n->link)
			buf_printf(b, "=%s", node_path(n->link, object));
		else if (n->a.type == NODE_DIR)
			buf_printf(b, "/");
		else if (n->a.type == NODE_SYMLINK)
			buf_printf(b, ">%s", n->a.target);
		if (n->layer == 1)
			buf_printf(b, "!");
	}
}

/* "a/ a/f l>a h=a/f -gone a/-- " : folder, file, symlink, hard link, whiteout, opaque folder. */
static void parse(const char *text, struct entries *l)
{
	auto_free char *copy = mem_strdup(text);
	char *save = NULL;

	for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		struct attr a = {.type = NODE_FILE, .mode = 0644};
		char *mark = strpbrk(w, ">=");
		enum entry_kind kind = ENTRY_PUT;
		struct entry *en;
		size_t n = strlen(w);

		if (mark) {
			a.type = *mark == '>' ? NODE_SYMLINK : NODE_HARDLINK;
			*mark = '\0';
			a.target = arena_strdup(&l->arena, mark + 1);
		} else if (str_eq(w, "--") || str_ends(w, "/--")) {
			kind = ENTRY_OPAQUE;
			w[n > 2 ? n - 3 : 0] = '\0';
		} else if (*w == '-') {
			kind = ENTRY_WHITEOUT;
			w++;
		} else if (str_ends(w, "/")) {
			a.type = NODE_DIR;
			a.mode = 0700;
			w[n - 1] = '\0';
		}
		en = entries_add(l, w);
		en->kind = kind;
		if (kind == ENTRY_PUT)
			en->a = a;
	}
}

static int apply(struct tree *t, const char *text, int32_t layer, struct err *e)
{
	struct entries l = {0};
	int rc;

	parse(text, &l);
	rc = entries_apply(t, &l, layer, e);
	entries_fini(&l);
	return rc;
}

TEST(layers_are_laid_over_each_other)
{
	static const struct {
		const char *below, *layer, *result;
	} cases[] = {
		/* objects */
		{"a", "a", "a!"},
		{"a/ a/x", "a/", "a/! a/x"},
		{"a/ a/x", "a", "a!"},
		{"a/ a/x", "a>b", "a>b!"},
		{"a", "a/", "a/!"},
		{"a>b b/ b/x", "a/", "a/! b/ b/x"},
		{"a>b b/ b/x", "a", "a! b/ b/x"},
		{"", "a/b/c", "a/ a/b/ a/b/c!"},
		{"", "a a", "a!"},
		{"", "a a/ a/b a", "a!"},
		{"", "a/ a/b/ a/b/c a", "a!"},
		/* folders that are links */
		{"usr/ usr/bin/ bin>usr/bin", "bin/sh", "bin>usr/bin usr/ usr/bin/ usr/bin/sh!"},
		{"usr/ usr/bin/ bin>/usr/bin", "bin/sh", "bin>/usr/bin usr/ usr/bin/ usr/bin/sh!"},
		{"a/ a/l>../../../b", "a/l/x", "a/ a/l>../../../b b/ b/x!"},
		{"bin>usr/bin usr/ usr/bin/ usr/bin/sh", "bin/ bin/ls",
			"bin/! bin/ls! usr/ usr/bin/ usr/bin/sh"},
		{"usr/ usr/bin/ bin>usr/bin usr/bin/d/ usr/bin/d/x", "bin/d",
			"bin>usr/bin usr/ usr/bin/ usr/bin/d!"},
		/* hard links */
		{"a", "b=a", "a b=a!"},
		{"", "a b=a", "a! b=a!"},
		{"a b=a", "a", "a! b"},
		{"a b=a", "-a", "b"},
		{"usr/ usr/x bin>usr", "y=bin/x", "bin>usr usr/ usr/x y=usr/x!"},
		{"a d/ d/x", "d=a", "a d=a!"},
		{"a", "a=a", "a!"},
		/* whiteouts */
		{"a b", "-a", "b"},
		{"a/ a/b a/c", "-a", ""},
		{"a/ a/b a/c", "-a/b", "a/ a/c"},
		{"a", "-b -c/d -a/x", "a"},
		{"a/ a/x a/y", "-a a/ a/z", "a/! a/z!"},
		{"a/ a/x a/y", "a/ a/z -a", "a/! a/z!"},
		{"a", "a -a", "a!"},
		{"", "a -a", "a!"},
		{"a/ a/b/ a/b/c", "-a/b/c -a/b -a", ""},
		{"a/ a/b/ a/b/c", "-a -a/b -a/b/c", ""},
		{"a", "-a -a", ""},
		{"a>b b/ b/x", "-a", "b/ b/x"},
		{"a>b b/ b/x b/y", "-a/x", "a>b b/ b/y"},
		{"a>b b/ b/x", "-a/x -a", "b/"},
		{"a>b b/ b/x", "-a -a/x", "b/"},
		{"a>b b/ b/x", "a/ -a/x", "a/! b/ b/x"},
		{"a>b b/ b/c/ b/c/x", "a/ -a/c/x", "a/! b/ b/c/ b/c/x"},
		{"a>b b/ b/c/ b/c/x", "-a/c/x", "a>b b/ b/c/"},
		/* opaque folders */
		{"a/ a/x a/y b", "a/ a/--", "a/! b"},
		{"a/ a/x a/y b", "a/z a/--", "a/ a/z! b"},
		{"a/ a/x a/y b", "a/-- a/z", "a/ a/z! b"},
		{"a/ a/x b", "--", ""},
		{"a/ a/x b", "-- b", "b!"},
		{"a/ a/b/ a/b/c", "a/b/-- a/--", "a/"},
		{"a/ a/b/ a/b/c", "a/-- a/b/--", "a/"},
		{"a/ a/b/ a/b/c", "-a a/b/--", ""},
		{"a", "a/--", "a"},
		{"", "a/--", ""},
		{"a>b b/ b/x", "a/--", "a>b b/"},
		{"a>b b/ b/x", "a/ a/--", "a/! b/ b/x"},
		{"a>b b/ b/x", "a/-- a/", "a/! b/ b/x"},
		{"a/ a/x", "-a/x a/--", "a/"},
		{"a/ a/x", "a/-- -a/x -a", ""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_buf struct buf b = BUF_INIT(10000);
		struct tree *t = tree_new();
		struct err e = {0};

		if (apply(t, cases[i].below, 0, &e) < 0 || apply(t, cases[i].layer, 1, &e) < 0)
			fail_msg("[%s] + [%s]: %s", cases[i].below, cases[i].layer, e.text);
		describe(t, &b);
		if (!str_eq(b.len ? b.data : "", cases[i].result))
			fail_msg("[%s] + [%s]: '%s', not '%s'", cases[i].below, cases[i].layer,
				b.data, cases[i].result);
		tree_free(t);
	}
}

TEST(what_cannot_be_is_refused)
{
	static const struct {
		const char *below, *layer, *error;
	} cases[] = {
		{"a", "b=c", "hard link to 'c', which does not exist"},
		{"", "b=a a", "hard link to 'a', which does not exist"},
		{"a", "-a b=a", "hard link to 'a', which does not exist"},
		{"a/ a/x", "a/-- b=a/x", "hard link to 'a/x', which does not exist"},
		{"a/", "b=a", "hard link to 'a', which is a folder"},
		{"d/ d/x", "d=d/x", "hard link to 'd/x', which does not exist"},
		{"a", "a/b", "'a' is needed as a folder, but is none"},
		{"a>a", "a/b", "more than 40 links"},
		{"a>b b>a", "a/b/c", "more than 40 links"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tree *t = tree_new();
		struct err e = {0};

		assert_int_equal(apply(t, cases[i].below, 0, &e), 0);
		assert_int_equal(apply(t, cases[i].layer, 1, &e), -1);
		assert_int_equal(e.kind, ERR_CORRUPT);
		if (!strstr(e.text, cases[i].error))
			fail_msg("[%s] + [%s]: %s", cases[i].below, cases[i].layer, e.text);
		tree_free(t);
	}
}

TEST(a_file_in_place_of_the_root_is_refused)
{
	struct entries l = {0};
	struct tree *t = tree_new();
	struct err e = {0};

	entries_add(&l, "")->a = (struct attr){.type = NODE_FIFO};
	assert_int_equal(entries_apply(t, &l, 0, &e), -1);
	assert_int_equal(e.kind, ERR_CORRUPT);
	entries_fini(&l);
	tree_free(t);
}

TEST(folders_nobody_names_are_roots_and_pruned_entries_are_not_put)
{
	struct entries l = {0};
	struct tree *t = tree_new();
	struct err e = {0};
	struct entry *en = entries_add(&l, "a/b/c");
	struct node *n;

	en->a = (struct attr){.type = NODE_FIFO, .mode = 0600, .uid = 7, .mtime = 9};
	en = entries_add(&l, "pruned");
	en->a = (struct attr){.type = NODE_FIFO};
	en->pruned = true;
	assert_int_equal(entries_apply(t, &l, 3, &e), 0);
	n = tree_find(t, "a/b");
	assert_int_equal(n->a.mode, 0755);
	assert_int_equal(n->a.uid, 0);
	assert_int_equal(n->layer, CHUNK_NO_LAYER);
	assert_int_equal(tree_find(t, "a/b/c")->layer, 3);
	assert_null(tree_find(t, "pruned"));
	entries_fini(&l);
	tree_free(t);
}

/* Many whiteouts and links that they go through: not a product of both. */
TEST(a_hundred_thousand_of_each_are_no_trouble)
{
	enum { N = 100000 };
	struct entries below = {0}, above = {0};
	struct tree *t = tree_new();
	struct err e = {0};
	char path[64];

	entries_add(&below, "l")->a = (struct attr){.type = NODE_SYMLINK, .target = "d"};
	for (unsigned i = 0; i < N; i++) {
		snprintf(path, sizeof(path), "d/%u", i);
		entries_add(&below, path)->a = (struct attr){.type = NODE_FIFO};
		snprintf(path, sizeof(path), "l/%u", i);
		entries_add(&above, path)->kind = ENTRY_WHITEOUT;
		snprintf(path, sizeof(path), "n/%u", i);
		entries_add(&above, path)->a = (struct attr){.type = NODE_DIR};
	}
	assert_int_equal(entries_apply(t, &below, 0, &e), 0);
	assert_int_equal(tree_count(t), N + 3);
	assert_int_equal(entries_apply(t, &above, 1, &e), 0);
	assert_int_equal(tree_count(t), N + 4);
	assert_null(tree_find(t, "d")->child);
	entries_fini(&below);
	entries_fini(&above);
	tree_free(t);
}

/* ---- as bytes ---- */

static void add_node(struct entries *l, const struct node *n)
{
	char path[TREE_PATH_MAX + 1];
	struct entry *en = entries_add(l, node_path(n, path));

	en->a = n->a;
	if (n->link)
		en->a.target = arena_strdup(&l->arena, node_path(n->link, path));
}

static void same_attr(const struct attr *a, const struct attr *b)
{
	assert_int_equal(a->type, b->type);
	assert_int_equal(a->mode, b->mode);
	assert_int_equal(a->uid, b->uid);
	assert_int_equal(a->gid, b->gid);
	assert_int_equal(a->mtime, b->mtime);
	assert_int_equal(!a->target, !b->target);
	if (a->target)
		assert_string_equal(a->target, b->target);
	assert_int_equal(a->major, b->major);
	assert_int_equal(a->minor, b->minor);
	assert_int_equal(a->size, b->size);
	assert_int_equal(a->nchunks, b->nchunks);
	for (uint32_t i = 0; i < a->nchunks; i++) {
		assert_true(digest_eq(&a->chunks[i].digest, &b->chunks[i].digest));
		assert_int_equal(a->chunks[i].length, b->chunks[i].length);
		assert_int_equal(b->chunks[i].block, CHUNK_NO_BLOCK);
		assert_int_equal(b->chunks[i].layer, CHUNK_NO_LAYER);
	}
	assert_int_equal(a->nxattrs, b->nxattrs);
	for (uint32_t i = 0; i < a->nxattrs; i++) {
		assert_string_equal(a->xattrs[i].name, b->xattrs[i].name);
		assert_int_equal(a->xattrs[i].len, b->xattrs[i].len);
		assert_memory_equal(a->xattrs[i].value, b->xattrs[i].value, a->xattrs[i].len);
	}
}

static void sample_list(struct fixture *f, struct entries *l)
{
	sample_tree(f);
	for (struct node *n = tree_root(f->t); n; n = tree_next(n))
		add_node(l, n);
	entries_add(l, "a/gone")->kind = ENTRY_WHITEOUT;
	entries_add(l, "a")->kind = ENTRY_OPAQUE;
	entries_add(l, "")->kind = ENTRY_OPAQUE;
	l->v[3].pruned = true;
	l->v[2].a.mtime = INT64_MIN;
	l->v[4].a.mtime = INT64_MAX;
}

TEST(a_list_is_read_back_as_it_was)
{
	struct fixture fx, *f = &fx;
	struct entries l = {0}, back;
	auto_buf struct buf b = BUF_INIT(16 << 20), again = BUF_INIT(16 << 20);

	fixture_init(f);
	sample_list(f, &l);
	need(entries_encode(&l, &b, &f->e));
	need(entries_decode(&back, b.data, b.len, &f->e));
	assert_int_equal(back.n, l.n);
	for (size_t i = 0; i < l.n; i++) {
		assert_string_equal(back.v[i].path, l.v[i].path);
		assert_int_equal(back.v[i].kind, l.v[i].kind);
		assert_int_equal(back.v[i].pruned, l.v[i].pruned);
		same_attr(&l.v[i].a, &back.v[i].a);
	}
	need(entries_encode(&back, &again, &f->e));
	assert_int_equal(b.len, again.len);
	assert_memory_equal(b.data, again.data, b.len);
	entries_fini(&back);
	entries_fini(&l);
	fixture_fini(f);
}

TEST(an_empty_list_and_a_dull_one)
{
	auto_buf struct buf b = BUF_INIT(64 << 20);
	struct entries l = {0}, back;
	struct err e = {0};

	assert_int_equal(entries_encode(&l, &b, &e), 0);
	assert_int_equal(entries_decode(&back, b.data, b.len, &e), 0);
	assert_int_equal(back.n, 0);
	entries_fini(&back);
	for (unsigned i = 0; i < 100000; i++)
		entries_add(&l, "always/the/same")->kind = ENTRY_WHITEOUT;
	b.len = 0;
	assert_int_equal(entries_encode(&l, &b, &e), 0);
	assert_true(b.len > 1000000); /* plain: memory is what the bytes pay for */
	if (entries_decode(&back, b.data, b.len, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(back.n, 100000);
	entries_fini(&back);
	entries_fini(&l);
	b.max = 100;
	b.len = 90;
	assert_int_equal(entries_encode(&back, &b, &e), -1);
	assert_int_equal(e.kind, ERR_CORRUPT);
}

TEST(every_changed_or_missing_byte_is_noticed)
{
	auto_buf struct buf b = BUF_INIT(16 << 20);
	struct entries l = {0}, back;
	struct err e = {0};

	parse("a/ a/f l>a h=a/f -gone a/--", &l);
	assert_int_equal(entries_encode(&l, &b, &e), 0);
	for (size_t i = 0; i < b.len; i++) {
		b.data[i] ^= 0x10;
		if (entries_decode(&back, b.data, b.len, &e) == 0) {
			/* zstd has a byte or two that mean the same either way */
			assert_true(i >= 64);
			assert_int_equal(back.n, l.n);
			entries_fini(&back);
		} else {
			assert_null(back.v);
			assert_int_equal(back.n, 0);
		}
		b.data[i] ^= 0x10;
	}
	for (size_t n = 0; n < b.len; n++)
		assert_int_equal(entries_decode(&back, b.data, n, &e), -1);
	buf_put(&b, "", 1);
	assert_int_equal(entries_decode(&back, b.data, b.len, &e), -1);
	entries_fini(&l);
}

/* A list with this plain body, and so many entries. */
static int decode_body(const void *body, size_t n, uint64_t count, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(1 << 20);
	struct digest d = digest_of(body, n);
	struct entries back;
	uint64_t head[4] = {0, 1, n, count};
	int rc;

	memcpy(head, "svrunlst", 8);
	buf_put(&b, head, sizeof(head));
	buf_put(&b, d.b, DIGEST_SIZE);
	buf_put(&b, body, n);
	rc = entries_decode(&back, b.data, b.len, e);
	entries_fini(&back);
	return rc;
}

TEST(bodies_that_make_no_sense_are_refused)
{
	/* type | kind << 3 | pruned << 5, path, mode uid gid mtime, of the type, xattrs */
	static const struct {
		const char *body;
		size_t n;
		uint64_t count;
		const char *error; /* NULL: fine */
	} cases[] = {
		{"", 0, 0, NULL},
		{"\5\1a\0\0\0\0\0", 8, 1, NULL},
		{"\5\1a\0\0\0\0\0", 8, 0, "bytes behind"},
		{"\5\1a\0\0\0\0\0", 8, 2, "entry 1: it ends early"},
		{"\5\1a\0\0\0\0\0", 8, 1 << 25, "too many entries"},
		{"\5\1a\0\0\0\0", 7, 1, "ends early"},
		{"\5\x9a\1a\0\0\0\0\0", 9, 1, "ends early"},
		{"\5\3a\0b\0\0\0\0\0", 10, 1, "a NUL in a text"},
		{"\5\4a//b\0\0\0\0\0", 11, 1, "empty component"},
		{"\5\2..\0\0\0\0\0", 9, 1, "component '..'"},
		{"\5\1a\x80\0\0\0\0\0", 9, 1, "ends early, or is too long"},
		{"\5\1a\x80\x40\0\0\0\0", 9, 1, "beyond its limit"},
		{"\5\1a\0\x80\x80\x80\x80\x10\0\0\0", 12, 1, "beyond its limit"},
		{"\5\1a\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\0", 17, 1, NULL},
		{"\5\1a\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\2\0", 17, 1, "too long"},
		{"\0\1a\0\0\0\0\0", 8, 1, "unknown kind"},
		{"\x0e\1a", 3, 1, "unknown kind"},
		{"\x08\1a", 3, 1, NULL},
		{"\x18\1a", 3, 1, "unknown kind"},
		{"\x48\1a", 3, 1, "unknown kind"},
		{"\x08\0", 2, 1, "the root is a folder"},
		{"\x10\0", 2, 1, NULL},
		{"\5\0\0\0\0\0\0", 7, 1, "the root is a folder"},
		{"\2\1a\0\0\0\0\0\0", 9, 1, NULL},
		{"\2\1a\0\0\0\0\1\0", 9, 1, "fewer chunks"},
		{"\2\1a\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\x7f\0", 17, 1, "fewer chunks"},
		{"\3\1a\0\0\0\0\0\0", 9, 1, "the link's target is empty"},
		{"\7\1a\0\0\0\0\xff\x1f\0\0", 11, 1, NULL},
		{"\7\1a\0\0\0\0\x80\x20\0\0", 11, 1, "device number"},
		{"\5\1a\0\0\0\0\1\6user.a\0", 16, 1, NULL},
		{"\5\1a\0\0\0\0\1\5wrong\0", 15, 1, "'wrong': not user.*"},
		{"\5\1a\0\0\0\0\2\6user.b\0\6user.a\0", 24, 1, "twice, or not sorted"},
		{"\5\1a\0\0\0\0\101", 8, 1, "beyond its limit"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err e = {0};
		int rc = decode_body(cases[i].body, cases[i].n, cases[i].count, &e);

		if (rc != (cases[i].error ? -1 : 0) ||
			(cases[i].error && !strstr(e.text, cases[i].error)))
			fail_msg("%zu: %d, '%s', not '%s'", i, rc, e.text, cases[i].error);
		assert_int_equal(e.kind, rc < 0 ? ERR_CORRUPT : ERR_NONE);
	}
}

RUN_TESTS(cmocka_unit_test(layers_are_laid_over_each_other),
	cmocka_unit_test(what_cannot_be_is_refused),
	cmocka_unit_test(a_file_in_place_of_the_root_is_refused),
	cmocka_unit_test(folders_nobody_names_are_roots_and_pruned_entries_are_not_put),
	cmocka_unit_test(a_hundred_thousand_of_each_are_no_trouble),
	cmocka_unit_test(a_list_is_read_back_as_it_was),
	cmocka_unit_test(an_empty_list_and_a_dull_one),
	cmocka_unit_test(every_changed_or_missing_byte_is_noticed),
	cmocka_unit_test(bodies_that_make_no_sense_are_refused))
