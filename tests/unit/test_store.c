#include "tests/unit/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "images/store.h"

/* ---- a store in a scratch folder ---- */

struct fixture {
	char dir[32];
	struct store s;
	struct err e;
};

static void open_store(struct fixture *f)
{
	if (store_open(&f->s, f->dir, true, &f->e) < 0)
		fail_msg("%s", f->e.text);
}

static void setup(struct fixture *f)
{
	*f = (struct fixture){.dir = "/tmp/svrun-test-XXXXXX"};
	assert_non_null(mkdtemp(f->dir));
	open_store(f);
}

static void teardown(struct fixture *f)
{
	store_close(&f->s);
	assert_int_equal(sys_remove_tree(AT_FDCWD, f->dir), 0);
}

static struct digest blob(struct fixture *f, const char *text)
{
	struct digest d;

	if (store_blob_put(&f->s, text, strlen(text), &d, &f->e) < 0)
		fail_msg("%s", f->e.text);
	return d;
}

static char *blob_path(const struct digest *d, char out[128])
{
	char hex[DIGEST_HEX + 1];

	snprintf(out, 128, "blobs/sha256/%s", digest_hex(d, hex));
	return out;
}

/* A manifest with one layer and a config that hold `text`. */
static struct digest manifest(struct fixture *f, const char *text, uint64_t *size)
{
	auto_free char *config = mem_printf("config %s", text);
	char c[DIGEST_TEXT + 1], l[DIGEST_TEXT + 1];
	struct digest cd = blob(f, config), ld = blob(f, text);
	auto_free char *m =
		mem_printf("{\"schemaVersion\":2,\"config\":{\"digest\":\"%s\",\"size\":%zu},"
			   "\"layers\":[{\"digest\":\"%s\",\"size\":%zu}]}",
			digest_text(&cd, c), strlen(config), digest_text(&ld, l), strlen(text));

	*size = strlen(m);
	return blob(f, m);
}

static struct digest named(struct fixture *f, const char *name, const char *text)
{
	uint64_t size;
	struct digest d = manifest(f, text, &size);

	if (store_name_set(&f->s, name, &d, size, NULL, &f->e) < 0)
		fail_msg("%s", f->e.text);
	return d;
}

static void put_file(struct fixture *f, const char *path, const char *text)
{
	assert_int_equal(file_write(f->s.fd, path, text, strlen(text), 0644, NULL), 0);
}

static void expect(struct fixture *f, int rc, enum err_kind kind, const char *text)
{
	assert_int_equal(rc, -1);
	if (f->e.kind != kind || !strstr(f->e.text, text))
		fail_msg("'%s' (%s), not '%s'", f->e.text, err_kind_name(f->e.kind), text);
	f->e.kind = ERR_NONE;
}

/* ---- opening ---- */

TEST(a_new_store_is_an_oci_layout_that_only_its_owner_may_enter)
{
	struct fixture f;
	struct stat st;
	auto_buf struct buf b = BUF_INIT(4096);

	setup(&f);
	assert_int_equal(sys_fstat(f.s.fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(file_read(f.s.fd, "oci-layout", &b, NULL), 0);
	assert_string_equal(b.data, "{\"imageLayoutVersion\":\"1.0.0\"}");
	assert_int_equal(sys_fstatat(f.s.fd, "blobs/sha256", &st, 0), 0);
	store_close(&f.s);
	open_store(&f); /* again */
	teardown(&f);
}

TEST(a_store_is_made_with_its_missing_folders)
{
	struct fixture f;
	struct store s;
	auto_free char *path = NULL;

	setup(&f);
	path = mem_printf("%s/a/b/c", f.dir);
	expect(&f, store_open(&s, path, false, &f.e), ERR_NOT_FOUND, "open the store");
	assert_int_equal(store_open(&s, path, true, NULL), 0);
	store_close(&s);
	assert_int_equal(store_open(&s, path, false, NULL), 0);
	store_close(&s);
	teardown(&f);
}

TEST(a_folder_with_something_else_in_it_is_left_alone)
{
	struct fixture f;
	struct store s;
	struct stat st;
	auto_free char *path = NULL;

	setup(&f);
	path = mem_printf("%s/home", f.dir);
	assert_int_equal(sys_mkdirat(f.s.fd, "home", 0755), 0);
	put_file(&f, "home/letter", "dear");
	expect(&f, store_open(&s, path, true, &f.e), ERR_EXISTS,
		"is neither empty nor a store: it holds letter");
	assert_int_equal(sys_fstatat(f.s.fd, "home", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	expect(&f, store_open(&s, path, false, &f.e), ERR_NOT_FOUND, "is no store");
	teardown(&f);
}

TEST(a_layout_of_another_tool_is_closed_to_other_users)
{
	struct fixture f;
	struct stat st;

	setup(&f);
	store_close(&f.s);
	assert_int_equal(chmod(f.dir, 0755), 0);
	open_store(&f);
	assert_int_equal(sys_fstat(f.s.fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	teardown(&f);
}

TEST(processes_that_make_a_store_at_the_same_time_all_have_it)
{
	enum { PROCESSES = 8, TIMES = 20 };
	struct fixture f;

	setup(&f);
	for (int i = 0; i < TIMES; i++) {
		int status;

		assert_int_equal(sys_remove_tree(f.s.fd, "new"), 0);
		for (int p = 0; p < PROCESSES; p++)
			if (fork() == 0) {
				auto_free char *path = mem_printf("%s/new", f.dir);
				struct store s;

				if (store_open(&s, path, true, &f.e) < 0)
					fail_msg("%s", f.e.text);
				_exit(0);
			}
		for (int p = 0; p < PROCESSES; p++) {
			wait(&status);
			assert_int_equal(status, 0);
		}
	}
	teardown(&f);
}

TEST(a_layout_of_another_version_is_refused)
{
	static const struct {
		const char *text, *say;
	} cases[] = {
		{"{\"imageLayoutVersion\":\"2.0.0\"}", "expected imageLayoutVersion 1.0.0, found "
						       "'2.0.0'"},
		{"{}", "missing key 'imageLayoutVersion'"},
		{"", "oci-layout"},
		{"[]", "oci-layout"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f;
		struct store s;

		setup(&f);
		put_file(&f, "oci-layout", cases[i].text);
		expect(&f, store_open(&s, f.dir, true, &f.e), ERR_CORRUPT, cases[i].say);
		teardown(&f);
	}
}

/* ---- blobs ---- */

TEST(a_blob_is_read_back_and_checked)
{
	struct fixture f;
	struct digest d, none = digest_of("none", 4);
	char path[128], text[DIGEST_TEXT + 1];
	auto_buf struct buf b = {0};

	setup(&f);
	d = blob(&f, "hello");
	assert_true(store_has(&f.s, &d));
	assert_false(store_has(&f.s, &none));
	assert_int_equal(store_blob_read(&f.s, &d, 5, &b, NULL), 0);
	assert_string_equal(b.data, "hello");
	expect(&f, store_blob_read(&f.s, &d, 4, &b, &f.e), ERR_CORRUPT, "limit of 4 bytes");
	expect(&f, store_blob_read(&f.s, &none, 4, &b, &f.e), ERR_NOT_FOUND,
		digest_text(&none, text));
	put_file(&f, blob_path(&d, path), "jello");
	expect(&f, store_blob_read(&f.s, &d, 5, &b, &f.e), ERR_CORRUPT, "expected sha256:2cf24dba");
	assert_non_null(strstr(f.e.text, "found sha256:"));
	assert_non_null(strstr(f.e.text, path));
	teardown(&f);
}

TEST(a_blob_written_again_heals_one_that_is_damaged)
{
	static const char *const damage[] = {"hell", "jello", "hello, world", ""};
	struct fixture f;
	struct digest d;
	char path[128];
	auto_buf struct buf b = {0};

	setup(&f);
	for (size_t i = 0; i < 4; i++) {
		d = blob(&f, "hello");
		put_file(&f, blob_path(&d, path), damage[i]);
		d = blob(&f, "hello");
		assert_int_equal(store_blob_read(&f.s, &d, 64, &b, NULL), 0);
	}
	teardown(&f);
}

static unsigned count_blobs(struct fixture *f)
{
	int fd = sys_openat(f->s.fd, "blobs/sha256", O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fdopendir(fd);
	unsigned n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2; /* "." and ".." */
}

TEST(a_blob_that_was_not_finished_leaves_nothing)
{
	struct fixture f;
	struct blob_writer w;

	setup(&f);
	assert_int_equal(store_blob_begin(&f.s, &w, NULL), 0);
	assert_int_equal(store_blob_add(&w, "hello", 5, NULL), 0);
	store_blob_abort(&w);
	store_blob_abort(&w);
	assert_int_equal(count_blobs(&f), 0);
	if (fork() == 0) {
		if (store_blob_begin(&f.s, &w, NULL) == 0 &&
			store_blob_add(&w, "hello", 5, NULL) == 0)
			raise(SIGKILL);
		_exit(0);
	}
	wait(NULL);
	assert_int_equal(count_blobs(&f), 0);
	teardown(&f);
}

/* ---- names ---- */

#define DIGEST "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

TEST(names_are_parsed_by_the_grammar_of_the_distribution_spec)
{
	static const struct {
		const char *ref, *canonical; /* NULL: malformed */
	} cases[] = {
		{"ocr", "ocr"},
		{"ocr:latest", "ocr"},
		{"ocr:1.2.0", "ocr:1.2.0"},
		{"ocr:1.2.0_git-AB", "ocr:1.2.0_git-AB"},
		{"a/b-c/d__e.f", "a/b-c/d__e.f"},
		{"a--b", "a--b"},
		{"example.org/x/y:t", "example.org/x/y:t"},
		{"", NULL},
		{"/", NULL},
		{"a/", NULL},
		{"a//b", NULL},
		{"-a", NULL},
		{"a-", NULL},
		{"a..b", NULL},
		{"a___b", NULL},
		{"a._b", NULL},
		{"A", NULL},
		{"../x", NULL},
		{"a:", NULL},
		{"a:.x", NULL},
		{"a:-x", NULL},
		{"a:b:c", NULL},
		{"a:b/c", NULL},
		{"a b", NULL},
		{"a\n", NULL},
		{"a@b", NULL},
		{"127.0.0.1:5000/team/app:1.0", "127.0.0.1:5000/team/app:1.0"},
		{"Registry.Example/app:latest", "registry.example/app"},
		{"registry.example/App", NULL},
		{"registry.example:0/app", NULL},
		{"registry.example/app@" DIGEST, "registry.example/app@" DIGEST},
		{"app:1@" DIGEST, "app:1@" DIGEST},
		{"app@sha256:12", NULL},
		{"\xc3\xa4", NULL},
	};
	char out[STORE_NAME], tag[300];
	struct err e;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int rc = store_name_parse(cases[i].ref, out, &e);

		if (rc != (cases[i].canonical ? 0 : -1))
			fail_msg("'%s': %d", cases[i].ref, rc);
		if (rc == 0)
			assert_string_equal(out, cases[i].canonical);
		else
			assert_int_equal(e.kind, ERR_USAGE);
	}
	memset(tag, 't', sizeof(tag));
	memcpy(tag, "a:", 2);
	tag[2 + 128] = '\0';
	assert_int_equal(store_name_parse(tag, out, NULL), 0);
	memcpy(tag + 2 + 128, "t", 2);
	assert_int_equal(store_name_parse(tag, out, NULL), -1);
	memset(tag, 'n', sizeof(tag));
	tag[256] = '\0';
	assert_int_equal(store_name_parse(tag, out, NULL), -1);
	tag[255] = '\0';
	assert_int_equal(store_name_parse(tag, out, NULL), 0);
}

TEST(names_are_listed_in_order_and_found_in_every_form)
{
	struct fixture f;
	struct digest ocr, old, found;
	struct store_name *v;
	size_t n;
	char hex[DIGEST_HEX + 1], text[DIGEST_TEXT + 1], ref[128];

	setup(&f);
	old = named(&f, "ocr:1.0.0", "old");
	ocr = named(&f, "ocr:1.2.0", "new");
	named(&f, "ocr:latest", "old");
	named(&f, "ocr", "new");
	named(&f, "abcdef", "other");
	assert_int_equal(store_names(&f.s, &v, &n, NULL), 0);
	assert_int_equal(n, 4);
	assert_string_equal(v[0].name, "abcdef");
	assert_string_equal(v[1].name, "ocr");
	assert_string_equal(v[2].name, "ocr:1.0.0");
	assert_string_equal(v[3].name, "ocr:1.2.0");
	assert_true(digest_eq(&v[1].manifest, &ocr));
	store_names_free(v, n);

	digest_hex(&ocr, hex);
	digest_text(&ocr, text);
	snprintf(ref, sizeof(ref), "ocr@%s", text);
	{
		const struct {
			const char *ref;
			const struct digest *d;
		} cases[] = {{"ocr", &ocr}, {"ocr:latest", &ocr}, {"ocr:1.2.0", &ocr},
			{"ocr:1.0.0", &old}, {text, &ocr}, {hex, &ocr}, {ref, &ocr}};

		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			if (store_resolve(&f.s, cases[i].ref, &found, &f.e) < 0)
				fail_msg("%s", f.e.text);
			assert_true(digest_eq(&found, cases[i].d));
		}
	}
	hex[6] = '\0';
	assert_int_equal(store_resolve(&f.s, hex, &found, NULL), 0);
	assert_true(digest_eq(&found, &ocr));
	hex[5] = '\0'; /* too short for a digest, so it is a name */
	expect(&f, store_resolve(&f.s, hex, &found, &f.e), ERR_NOT_FOUND, "no image");
	assert_int_equal(
		store_resolve(&f.s, "abcdef", &found, NULL), 0); /* a name before a digest */
	teardown(&f);
}

TEST(what_is_not_found_is_explained)
{
	struct fixture f;
	struct digest d;

	setup(&f);
	expect(&f, store_resolve(&f.s, "ocr", &d, &f.e), ERR_NOT_FOUND, "no image 'ocr'");
	assert_non_null(strstr(f.e.hint, "empty"));
	named(&f, "tesseract", "x");
	named(&f, "pytorch-cpu:1", "x");
	f.e = (struct err){0};
	expect(&f, store_resolve(&f.s, "teseract", &d, &f.e), ERR_NOT_FOUND, "no image");
	assert_string_equal(f.e.hint, "did you mean 'tesseract'?");
	f.e = (struct err){0};
	expect(&f, store_resolve(&f.s, "llama", &d, &f.e), ERR_NOT_FOUND, "no image");
	assert_string_equal(f.e.hint, "there are: pytorch-cpu:1, tesseract");
	expect(&f, store_resolve(&f.s, "sha256:abc", &d, &f.e), ERR_USAGE, "sha256:");
	expect(&f, store_resolve(&f.s, "Not A Name", &d, &f.e), ERR_USAGE, "not an image name");
	expect(&f, store_name_remove(&f.s, "nosuch", &f.e), ERR_NOT_FOUND, "no image 'nosuch'");
	teardown(&f);
}

TEST(the_last_parts_of_a_name_find_the_only_image_that_has_them)
{
	static const struct {
		const char *ref;
		const char *text; /* of the image; NULL: an error */
		enum err_kind kind;
		const char *say, *hint;
	} cases[] = {
		{"registry.example/team/app:1.0", "one", 0, "", ""},
		{"team/app:1.0", "one", 0, "", ""},
		{"app:1.0", "one", 0, "", ""},
		{"app", "latest", 0, "", ""},
		{"app:latest", "latest", 0, "", ""},
		{"both", "both", 0, "", ""},
		{"exact", "short", 0, "", ""},
		{"pp:1.0", NULL, ERR_NOT_FOUND, "no image", ""},
		{"am/app:1.0", NULL, ERR_NOT_FOUND, "no image", ""},
		{"two", NULL, ERR_USAGE, "'two' may mean 2 images",
			"write one of: a.example/x/two, b.example/two"},
		{"b.example/two", "two", 0, "", ""},
		{"example/two", NULL, ERR_NOT_FOUND, "no image", ""},
		{"other.example/app:1.0", NULL, ERR_NOT_FOUND, "no image", ""},
		{"abcdef", "hex", 0, "", ""},
	};
	struct fixture f;

	setup(&f);
	named(&f, "registry.example/team/app:1.0", "one");
	named(&f, "registry.example/team/app", "latest");
	named(&f, "a.example/x/two", "another");
	named(&f, "b.example/two", "two");
	named(&f, "a.example/both", "both");
	named(&f, "b.example/both", "both");
	named(&f, "registry.example/exact", "long");
	named(&f, "exact", "short");
	named(&f, "registry.example/abcdef", "hex");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct digest d, want;
		uint64_t size;

		f.e = (struct err){0};
		if (!cases[i].text) {
			expect(&f, store_resolve(&f.s, cases[i].ref, &d, &f.e), cases[i].kind,
				cases[i].say);
			if (!strstr(f.e.hint, cases[i].hint))
				fail_msg("%s: %s", cases[i].ref, f.e.hint);
			continue;
		}
		if (store_resolve(&f.s, cases[i].ref, &d, &f.e) < 0)
			fail_msg("%s: %s", cases[i].ref, f.e.text);
		want = manifest(&f, cases[i].text, &size);
		if (!digest_eq(&d, &want))
			fail_msg("%s", cases[i].ref);
	}
	teardown(&f);
}

TEST(a_name_with_a_digest_is_found_by_name_and_by_digest)
{
	struct fixture f;
	struct digest d, found;
	char text[DIGEST_TEXT + 1];
	auto_free char *ref = NULL;

	setup(&f);
	d = named(&f, "registry.example/app@" DIGEST, "x"); /* an index of that digest went */
	assert_int_equal(store_resolve(&f.s, "registry.example/app@" DIGEST, &found, NULL), 0);
	assert_true(digest_eq(&found, &d));
	ref = mem_printf("nobody.example/any:1@%s", digest_text(&d, text));
	assert_int_equal(store_resolve(&f.s, ref, &found, NULL), 0);
	assert_true(digest_eq(&found, &d));
	expect(&f, store_resolve(&f.s, "other@" DIGEST, &found, &f.e), ERR_NOT_FOUND, "no image");
	expect(&f, store_resolve(&f.s, "other@sha256:1", &found, &f.e), ERR_USAGE, "digest");
	teardown(&f);
}

/* An index of images, of which only one is in the store. */
static struct digest index_of(
	struct fixture *f, const struct digest *v, const char *const *arch, size_t n)
{
	auto_buf struct buf b = BUF_INIT(1 << 16);
	char text[DIGEST_TEXT + 1];

	buf_printf(&b, "{\"schemaVersion\":2,\"mediaType\":\"%s\",\"manifests\":[", OCI_INDEX_TYPE);
	for (size_t i = 0; i < n; i++)
		buf_printf(&b,
			"%s{\"mediaType\":\"%s\",\"digest\":\"%s\",\"size\":7,\"platform\":"
			"{\"os\":\"linux\",\"architecture\":\"%s\"}}",
			i ? "," : "", OCI_MANIFEST_TYPE, digest_text(&v[i], text), arch[i]);
	buf_printf(&b, "]}");
	return blob(f, b.data);
}

TEST(of_an_index_the_image_for_this_machine_is_meant)
{
	static const char *const here[] = {"s390x", "amd64", "arm64"}, *const elsewhere[] = {
									       "s390x", "mips",
									       "riscv64"};
	struct fixture f;
	struct digest v[3], d, found;
	char text[DIGEST_TEXT + 1];
	uint64_t size;

	setup(&f);
	v[0] = digest_of("elsewhere", 9);
	v[1] = v[2] = manifest(&f, "x", &size);
	d = index_of(&f, v, here, 3);
	if (store_resolve(&f.s, digest_text(&d, text), &found, &f.e) < 0)
		fail_msg("%s", f.e.text);
	assert_true(digest_eq(&found, &v[1]));
	d = index_of(&f, v, elsewhere, 3);
	expect(&f, store_resolve(&f.s, digest_text(&d, text), &found, &f.e), ERR_NOT_FOUND,
		"no image for the platform");
	v[1] = v[2] = v[0];
	d = index_of(&f, v, here, 3);
	expect(&f, store_resolve(&f.s, digest_text(&d, text), &found, &f.e), ERR_NOT_FOUND,
		"the image for this machine");
	d = blob(&f, "{\"manifests\":[");
	expect(&f, store_resolve(&f.s, digest_text(&d, text), &found, &f.e), ERR_CORRUPT, text);
	d = blob(&f, "{\"layers\":[],\"manifests\":[]}");
	expect(&f, store_resolve(&f.s, digest_text(&d, text), &found, &f.e), ERR_CORRUPT,
		"also a manifest");
	teardown(&f);
}

TEST(a_removed_name_is_gone_and_the_others_stay)
{
	struct fixture f;
	struct store_name *v;
	size_t n;

	setup(&f);
	named(&f, "a", "x");
	named(&f, "b", "x");
	assert_int_equal(store_name_remove(&f.s, "a:latest", NULL), 0);
	assert_int_equal(store_names(&f.s, &v, &n, NULL), 0);
	assert_int_equal(n, 1);
	assert_string_equal(v[0].name, "b");
	store_names_free(v, n);
	teardown(&f);
}

TEST(nothing_incomplete_gets_a_name)
{
	struct fixture f;
	struct digest d, layer = digest_of("x", 1), config = digest_of("config x", 8);
	uint64_t size;

	setup(&f);
	d = digest_of("nothing", 7);
	expect(&f, store_name_set(&f.s, "a", &d, 7, NULL, &f.e), ERR_NOT_FOUND, "blob sha256:");
	d = manifest(&f, "x", &size);
	expect(&f, store_name_set(&f.s, "a", &d, size + 1, NULL, &f.e), ERR_CORRUPT,
		"manifest: expected");
	assert_int_equal(store_blob_remove(&f.s, &layer, NULL), 0);
	expect(&f, store_name_set(&f.s, "a", &d, size, NULL, &f.e), ERR_NOT_FOUND, "2d711642b726");
	d = manifest(&f, "x", &size);
	assert_int_equal(store_blob_remove(&f.s, &config, NULL), 0);
	expect(&f, store_name_set(&f.s, "a", &d, size, NULL, &f.e), ERR_NOT_FOUND, "blob sha256:");
	expect(&f, store_name_set(&f.s, "A", &d, size, NULL, &f.e), ERR_USAGE, "not an image name");
	teardown(&f);
}

TEST(what_other_tools_wrote_into_the_index_stays)
{
	struct fixture f;
	struct digest *all;
	struct store_name *v;
	size_t n;
	char text[DIGEST_TEXT + 1];
	struct digest d = digest_of("foreign", 7);
	auto_free char *index =
		mem_printf("{\"schemaVersion\":2,\"annotations\":{\"their\":\"own\"},"
			   "\"manifests\":[{\"mediaType\":\"x\",\"digest\":\"%s\","
			   "\"size\":7,\"platform\":{\"os\":\"linux\"}}]}",
			digest_text(&d, text));
	auto_buf struct buf b = BUF_INIT(1 << 16);

	setup(&f);
	put_file(&f, "index.json", index);
	named(&f, "a", "x");
	assert_int_equal(store_names(&f.s, &v, &n, NULL), 0);
	assert_int_equal(n, 1);
	store_names_free(v, n);
	assert_int_equal(store_manifests(&f.s, &all, &n, NULL), 0);
	assert_int_equal(n, 2);
	assert_true(digest_eq(&all[0], &d));
	free(all);
	assert_int_equal(file_read(f.s.fd, "index.json", &b, NULL), 0);
	assert_non_null(strstr(b.data, "\"their\": \"own\""));
	assert_non_null(strstr(b.data, "\"os\": \"linux\""));
	teardown(&f);
}

TEST(a_damaged_index_is_named)
{
	static const char *const cases[] = {"", "{", "[]", "{\"manifests\":{}}",
		"{\"manifests\":[{\"annotations\":{\"org.opencontainers.image.ref.name\":\"a\"}}]}",
		("{\"manifests\":[{\"digest\":\"sha256:0\",\"size\":1,\"annotations\":"
		 "{\"org.opencontainers.image.ref.name\":\"a\"}}]}")};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f;
		struct store_name *v;
		size_t n;

		setup(&f);
		put_file(&f, "index.json", cases[i]);
		expect(&f, store_names(&f.s, &v, &n, &f.e), ERR_CORRUPT, "index.json");
		teardown(&f);
	}
}

TEST(processes_that_give_names_at_the_same_time_lose_none)
{
	enum { PROCESSES = 6, NAMES = 10 };
	struct fixture f;
	struct store_name *v;
	size_t n;
	int status;

	setup(&f);
	for (int p = 0; p < PROCESSES; p++)
		if (fork() == 0) {
			for (int i = 0; i < NAMES; i++) {
				char name[32];

				snprintf(name, sizeof(name), "p%d-n%d", p, i);
				named(&f, name, "x");
			}
			_exit(0);
		}
	for (int p = 0; p < PROCESSES; p++) {
		wait(&status);
		assert_int_equal(status, 0);
	}
	assert_int_equal(store_names(&f.s, &v, &n, NULL), 0);
	assert_int_equal(n, PROCESSES * NAMES);
	store_names_free(v, n);
	teardown(&f);
}

RUN_TESTS(cmocka_unit_test(a_new_store_is_an_oci_layout_that_only_its_owner_may_enter),
	cmocka_unit_test(a_store_is_made_with_its_missing_folders),
	cmocka_unit_test(a_folder_with_something_else_in_it_is_left_alone),
	cmocka_unit_test(a_layout_of_another_tool_is_closed_to_other_users),
	cmocka_unit_test(processes_that_make_a_store_at_the_same_time_all_have_it),
	cmocka_unit_test(a_layout_of_another_version_is_refused),
	cmocka_unit_test(a_blob_is_read_back_and_checked),
	cmocka_unit_test(a_blob_written_again_heals_one_that_is_damaged),
	cmocka_unit_test(a_blob_that_was_not_finished_leaves_nothing),
	cmocka_unit_test(names_are_parsed_by_the_grammar_of_the_distribution_spec),
	cmocka_unit_test(names_are_listed_in_order_and_found_in_every_form),
	cmocka_unit_test(what_is_not_found_is_explained),
	cmocka_unit_test(the_last_parts_of_a_name_find_the_only_image_that_has_them),
	cmocka_unit_test(a_name_with_a_digest_is_found_by_name_and_by_digest),
	cmocka_unit_test(of_an_index_the_image_for_this_machine_is_meant),
	cmocka_unit_test(a_removed_name_is_gone_and_the_others_stay),
	cmocka_unit_test(nothing_incomplete_gets_a_name),
	cmocka_unit_test(what_other_tools_wrote_into_the_index_stays),
	cmocka_unit_test(a_damaged_index_is_named),
	cmocka_unit_test(processes_that_give_names_at_the_same_time_lose_none))
