#include "tests/unit/test.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/str.h"
#include "base/sys.h"
#include "builder/deb.h"

/* ---- packages by hand ---- */

struct tar_file {
	const char *path, *text;
	unsigned mode;
};

/* A tar of files, compressed; to be freed. */
static char *make_tar(const struct tar_file *f, size_t n, int filter, size_t *len)
{
	enum { MAX = 1 << 20 };
	char *mem = mem_alloc(MAX);
	struct archive *w = archive_write_new();
	struct archive_entry *en = archive_entry_new();

	assert_int_equal(archive_write_add_filter(w, filter), ARCHIVE_OK);
	archive_write_set_format_gnutar(w);
	assert_int_equal(archive_write_open_memory(w, mem, MAX, len), ARCHIVE_OK);
	for (size_t i = 0; i < n; i++) {
		size_t size = f[i].text ? strlen(f[i].text) : 0;

		archive_entry_clear(en);
		archive_entry_set_pathname(en, f[i].path);
		archive_entry_set_filetype(en, f[i].text ? AE_IFREG : AE_IFDIR);
		archive_entry_set_perm(en, (mode_t)f[i].mode);
		archive_entry_set_size(en, (la_int64_t)size);
		assert_int_equal(archive_write_header(w, en), ARCHIVE_OK);
		assert_int_equal(archive_write_data(w, f[i].text, size), size);
	}
	archive_entry_free(en);
	assert_int_equal(archive_write_free(w), ARCHIVE_OK);
	return mem;
}

static void put_member(struct buf *b, const char *name, const void *p, size_t n)
{
	char h[61];

	snprintf(h, sizeof(h), "%-16s%-12d%-6d%-6d%-8s%-10zu`\n", name, 0, 0, 0, "100644", n);
	buf_put(b, h, 60);
	buf_put(b, p, n);
	if (n & 1)
		buf_put(b, "\n", 1);
}

static const char good_control[] = "Package: tiny\nVersion: 1:2.0-1\nArchitecture: amd64\n"
				   "Multi-Arch: same\nSource: big (3.0)\nDescription: a thing\n"
				   " and more\n .\n of it\n";

struct recipe {
	const char *control, *control_path; /* NULL: the good ones */
	const char *suffix;                 /* of the tars */
	int filter;
	const char *data_path;
};

static void make_deb(struct buf *b, const struct recipe *r)
{
	const struct tar_file control[] = {{"./", NULL, 0755},
		{r->control_path ? r->control_path : "./control",
			r->control ? r->control : good_control, 0644},
		{"./postinst", "#!/bin/sh\nexit 0\n", 0755}, {"./md5sums", "", 0644}};
	const struct tar_file data[] = {{"./", NULL, 0755}, {"./usr/", NULL, 0755},
		{r->data_path ? r->data_path : "./usr/file", "content", 0640}};
	size_t n;
	auto_free char *c = make_tar(control, 4, r->filter, &n);
	char name[32];

	buf_put(b, "!<arch>\n", 8);
	put_member(b, "debian-binary", "2.0\n", 4);
	snprintf(name, sizeof(name), "control.tar%s", r->suffix ? r->suffix : "");
	put_member(b, name, c, n);

	auto_free char *d = make_tar(data, 3, r->filter, &n);

	snprintf(name, sizeof(name), "data.tar%s", r->suffix ? r->suffix : "");
	put_member(b, name, d, n);
}

/* ---- unpacking ---- */

struct fixture {
	char dir[32];
	int fd;
	struct pool *pool;
	struct prune *prune;
	struct deb deb;
	struct err e;
};

static void setup(struct fixture *f)
{
	*f = (struct fixture){.dir = "/tmp/svrun-test-XXXXXX"};
	assert_non_null(mkdtemp(f->dir));
	f->fd = sys_open(f->dir, O_RDONLY | O_DIRECTORY, 0);
	f->pool = pool_open(f->fd, true, &f->e);
	if (!f->pool)
		fail_msg("%s", f->e.text);
}

static void teardown(struct fixture *f)
{
	deb_fini(&f->deb);
	prune_free(f->prune);
	pool_close(f->pool);
	close(f->fd);
	assert_int_equal(sys_remove_tree(AT_FDCWD, f->dir), 0);
}

static int unpack(struct fixture *f, const struct buf *b)
{
	auto_fd int fd = memfd_create("deb", MFD_CLOEXEC);

	deb_fini(&f->deb);
	assert_int_equal(sys_pwrite_all(fd, b->data, b->len, 0), 0);
	return deb_unpack(&f->deb, fd, "x.deb", f->prune, f->pool, &f->e);
}

static void refused(const struct buf *b, const char *words)
{
	struct fixture f;

	setup(&f);
	assert_int_equal(unpack(&f, b), -1);
	if (f.e.kind != ERR_CORRUPT || !strstr(f.e.text, words) || !str_starts(f.e.text, "x.deb: "))
		fail_msg("'%s' lacks '%s'", f.e.text, words);
	teardown(&f);
}

TEST(a_package_is_unpacked_whatever_its_compression)
{
	static const struct recipe cases[] = {
		{.suffix = "", .filter = ARCHIVE_FILTER_NONE},
		{.suffix = ".gz", .filter = ARCHIVE_FILTER_GZIP},
		{.suffix = ".xz", .filter = ARCHIVE_FILTER_XZ},
		{.suffix = ".zst", .filter = ARCHIVE_FILTER_ZSTD},
		{.suffix = ".bz2", .filter = ARCHIVE_FILTER_BZIP2},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_buf struct buf b = BUF_INIT(4 << 20);
		struct fixture f;

		make_deb(&b, &cases[i]);
		setup(&f);
		if (unpack(&f, &b) < 0)
			fail_msg("%s", f.e.text);
		assert_string_equal(f.deb.name, "tiny");
		assert_string_equal(f.deb.version, "1:2.0-1");
		assert_string_equal(f.deb.arch, "amd64");
		assert_string_equal(f.deb.multi_arch, "same");
		assert_true(slice_eq(deb_field(&f.deb, "Source"), "big (3.0)"));
		assert_true(slice_eq(
			deb_field(&f.deb, "description"), "a thing\n and more\n .\n of it"));
		assert_null(deb_field(&f.deb, "Depends").p);
		assert_int_equal(f.deb.nfiles, 2);
		assert_int_equal(deb_file(&f.deb, "postinst")->mode, 0755);
		assert_null(deb_file(&f.deb, "control"));
		assert_int_equal(f.deb.data.n, 3);
		assert_string_equal(f.deb.data.v[2].path, "usr/file");
		assert_int_equal(f.deb.data.v[2].a.mode, 0640);
		assert_int_equal(f.deb.data.v[2].a.size, 7);
		teardown(&f);
	}
}

TEST(a_package_cut_anywhere_is_refused)
{
	static const struct recipe r = {.suffix = ".xz", .filter = ARCHIVE_FILTER_XZ};
	auto_buf struct buf b = BUF_INIT(4 << 20);
	struct fixture f;

	make_deb(&b, &r);
	setup(&f);
	for (size_t n = 0; n + 1 < b.len; n += n < 100 ? 1 : 13) {
		struct buf cut = {.data = b.data, .len = n};

		assert_int_equal(unpack(&f, &cut), -1);
		assert_int_equal(f.e.kind, ERR_CORRUPT);
		assert_true(str_starts(f.e.text, "x.deb: "));
	}
	teardown(&f);
}

TEST(flipped_bytes_give_an_error_or_a_package_but_no_crash)
{
	static const struct recipe r = {.suffix = ".xz", .filter = ARCHIVE_FILTER_XZ};
	auto_buf struct buf b = BUF_INIT(4 << 20);
	struct fixture f;

	make_deb(&b, &r);
	setup(&f);
	for (size_t i = 0; i < b.len; i += 7) {
		b.data[i] ^= 0x41;
		if (unpack(&f, &b) < 0)
			assert_true(f.e.text[0]);
		b.data[i] ^= 0x41;
	}
	teardown(&f);
}

TEST(members_out_of_order_are_refused)
{
	auto_buf struct buf none = BUF_INIT(1 << 20), order = BUF_INIT(1 << 20),
			    format = BUF_INIT(1 << 20), many = BUF_INIT(1 << 20);

	buf_put(&none, "PK\3\4 this is a zip", 18);
	refused(&none, "no Debian package");
	buf_put(&order, "!<arch>\n", 8);
	put_member(&order, "debian-binary", "2.0\n", 4);
	put_member(&order, "data.tar", "", 0);
	refused(&order, "member 'data.tar' where control.tar should be");
	buf_put(&format, "!<arch>\n", 8);
	put_member(&format, "debian-binary", "3.0\n", 4);
	put_member(&format, "control.tar", "", 0);
	put_member(&format, "data.tar", "", 0);
	refused(&format, "not a package of format 2");
	buf_put(&many, "!<arch>\n", 8);
	for (int i = 0; i < 20; i++)
		put_member(&many, "_x", "", 0);
	refused(&many, "more than 16 members");
}

TEST(a_bad_control_file_is_refused)
{
	static const struct {
		const char *path, *text, *words;
	} cases[] = {
		{NULL, "Version: 1\nArchitecture: all\n", "bad package name ''"},
		{NULL, "Package: ../x\nVersion: 1\nArchitecture: all\n", "bad package name '../x'"},
		{NULL, "Package: x\nArchitecture: all\n", "bad version ''"},
		{NULL, "Package: x\nVersion: 1 2\nArchitecture: all\n", "bad version '1 2'"},
		{NULL, "Package: x\nVersion: 1\nArchitecture: a/b\n", "bad architecture 'a/b'"},
		{NULL, "Package: x\nVersion: 1\nArchitecture: all\nStatus: x\n",
			"a field that only an installed package has"},
		{NULL, "Package: x\nVersion: 1\nArchitecture: all\n\nPackage: y\n",
			"not one stanza"},
		{NULL, "Package: x\nno field here\n", "line 'no field here' has no field name"},
		{NULL, "", "not one stanza"},
		{"./other", "Package: x\n", "no control file"},
		{"./sub/control", "Package: x\n", "'./sub/control' is no control file"},
		{"../control", "Package: x\n", "'../control' is no control file"},
		{"./postinst", "x", "'postinst' is there twice"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_buf struct buf b = BUF_INIT(4 << 20);

		make_deb(&b, &(struct recipe){.control = cases[i].text,
				     .control_path = cases[i].path,
				     .filter = ARCHIVE_FILTER_NONE});
		refused(&b, cases[i].words);
	}
}

TEST(hostile_data_members_are_refused)
{
	auto_buf struct buf b = BUF_INIT(4 << 20);

	make_deb(&b, &(struct recipe){
			     .data_path = "./usr/../../etc/passwd", .filter = ARCHIVE_FILTER_NONE});
	refused(&b, "member './usr/../../etc/passwd'");
}

TEST(data_of_pruned_files_are_not_kept)
{
	static const char *const doc[] = {"doc"};
	const char *names[] = {doc[0]};
	const struct strings what = {.v = names, .n = 1};
	auto_buf struct buf b = BUF_INIT(4 << 20);
	struct fixture f;

	make_deb(&b, &(struct recipe){.data_path = "./usr/share/doc/tiny/README",
			     .filter = ARCHIVE_FILTER_NONE});
	setup(&f);
	f.prune = prune_new(&what, &f.e);
	assert_non_null(f.prune);
	if (unpack(&f, &b) < 0)
		fail_msg("%s", f.e.text);
	assert_int_equal(f.deb.data.n, 3);
	assert_true(f.deb.data.v[2].pruned);
	assert_int_equal(f.deb.data.v[2].a.nchunks, 0);
	assert_false(f.deb.data.v[1].pruned);
	teardown(&f);
}

RUN_TESTS(cmocka_unit_test(a_package_is_unpacked_whatever_its_compression),
	cmocka_unit_test(a_package_cut_anywhere_is_refused),
	cmocka_unit_test(flipped_bytes_give_an_error_or_a_package_but_no_crash),
	cmocka_unit_test(members_out_of_order_are_refused),
	cmocka_unit_test(a_bad_control_file_is_refused),
	cmocka_unit_test(hostile_data_members_are_refused),
	cmocka_unit_test(data_of_pruned_files_are_not_kept))
