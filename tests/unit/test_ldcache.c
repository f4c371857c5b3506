#include "tests/unit/test.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "gpu/ldcache.h"

#define TEMPLATE "/tmp/svrun-ldcache-XXXXXX"

struct fixture {
	char dir[sizeof(TEMPLATE)];
	int root;
	struct root_files files;
	struct err e;
};

static void sh(const struct fixture *f, const char *script)
{
	auto_free char *text =
		mem_printf("set -e; cd %s; PATH=$PATH:/sbin:/usr/sbin; %s", f->dir, script);

	if (system(text) != 0)
		fail_msg("%s", script);
}

/* What a command prints. */
static void output_of(const struct fixture *f, const char *script, char *out, size_t size)
{
	auto_free char *text =
		mem_printf("cd %s; PATH=$PATH:/sbin:/usr/sbin; { %s; } 2>&1", f->dir, script);
	FILE *p = popen(text, "r");
	size_t n;

	assert_non_null(p);
	n = fread(out, 1, size - 1, p);
	out[n] = '\0';
	pclose(p);
}

static void fixture_init(struct fixture *f)
{
	*f = (struct fixture){.dir = TEMPLATE};
	assert_non_null(mkdtemp(f->dir));
	assert_int_equal(chmod(f->dir, 0755), 0);
	f->root = sys_open(f->dir, O_PATH | O_DIRECTORY, 0);
	assert_true(f->root >= 0);
}

static void fixture_fini(struct fixture *f)
{
	sys_close_ref(&f->root);
	umount2(f->dir, MNT_DETACH);
	assert_int_equal(sys_remove_tree(AT_FDCWD, f->dir), 0);
}

static void read_text(const struct fixture *f, const char *path, struct buf *b)
{
	*b = BUF_INIT(LDCACHE_MAX);
	assert_true(root_file_read(f->root, path, b, NULL) >= 0);
	if (!b->data)
		buf_put(b, "", 0);
}

static void text_is(const struct fixture *f, const char *path, const char *wanted)
{
	struct buf b;
	auto_fd int fd = sys_open_in_root(f->root, path, O_PATH, 0);

	if (!wanted) {
		assert_int_equal(fd, -1);
		return;
	}
	read_text(f, path, &b);
	assert_string_equal(b.data ? b.data : "", wanted);
	buf_fini(&b);
}

/* One start with these folders; ends with the folder list that the next one finds. */
static int start_with(struct fixture *f, struct ld_dirs d)
{
	auto_buf struct buf last = BUF_INIT(1 << 20);
	int had = ldcache_last(f->root, &last, &f->e), rc;

	assert_true(had >= 0);
	assert_int_equal(root_files_open(&f->files, f->root, NULL, 0, &f->e), 0);
	rc = ldcache_add_dirs(&f->files, &d, had ? last.data : NULL, &f->e);
	root_files_close(&f->files);
	return rc;
}

static void start(struct fixture *f, const char *dir)
{
	const char *dirs[] = {dir};

	if (start_with(f, (struct ld_dirs){.dirs = {dirs, dir != NULL}}) < 0)
		fail_msg("%s", f->e.text);
}

/* A root with the host's loader and libc, and a library of ours at /opt/gpu. */
static void make_glibc_root(struct fixture *f)
{
	fixture_init(f);
	sh(f, "mkdir -p lib64 usr/lib/x86_64-linux-gnu opt/gpu etc bin;"
	      "cp /lib64/ld-linux-x86-64.so.2 lib64/; cp /bin/true bin/;"
	      "cp /lib/x86_64-linux-gnu/libc.so.6 /lib/x86_64-linux-gnu/libm.so.6 "
	      "usr/lib/x86_64-linux-gnu/; ln -s usr/lib lib;"
	      "echo 'int svrun(void) { return 1; }' >t.c;"
	      "gcc -shared -nostdlib -Wl,-soname,libsvrun.so.1 -o opt/gpu/libsvrun.so.9.8.7 t.c;"
	      "ln -s libsvrun.so.9.8.7 opt/gpu/libsvrun.so.1; rm t.c;"
	      "echo 'include /etc/ld.so.conf.d/*.conf' >etc/ld.so.conf; mkdir etc/ld.so.conf.d");
}

/* What the loader of the root, in the root, makes of a library's name. */
static void loader_finds(const struct fixture *f, const char *name, const char *wanted)
{
	char out[8192];
	auto_free char *script = mem_printf(
		"chroot . /lib64/ld-linux-x86-64.so.2 --preload %s --list /bin/true", name);
	auto_free char *line = wanted ? mem_printf("%s => %s (", name, wanted) : NULL;

	output_of(f, script, out, sizeof(out));
	if (line ? !strstr(out, line) : !strstr(out, "cannot be preloaded"))
		fail_msg("%s", out);
}

/* ---- the form ---- */

TEST(what_is_read_and_written_is_what_ldconfig_prints)
{
	static const char *const formats[] = {"new", "compat"};
	struct fixture fixture, *f = &fixture;
	auto_free char *before = mem_alloc(1 << 20), *after = mem_alloc(1 << 20);

	for (size_t i = 0; i < 2; i++) {
		struct buf old, out = BUF_INIT(LDCACHE_MAX);
		struct ldcache c;
		auto_free char *make = NULL;

		fixture_init(f);
		make = mem_printf(
			"mkdir hw; ldconfig -c %s -C cache -f /etc/ld.so.conf -X", formats[i]);
		sh(f, make);
		read_text(f, "/cache", &old);
		assert_int_equal(ldcache_read(&c, old.data, old.len, &f->e), 0);
		assert_true(c.n > 10);
		assert_int_equal(ldcache_write(&c, NULL, 0, &out, &f->e), 0);
		assert_int_equal(file_write(f->root, "written", out.data, out.len, 0644, &f->e), 0);
		output_of(f, "ldconfig -p -C cache", before, 1 << 20);
		output_of(f, "ldconfig -p -C written", after, 1 << 20);
		assert_true(strlen(before) > 500);
		assert_string_equal(strchr(before, '\n'), strchr(after, '\n'));
		ldcache_fini(&c);
		buf_fini(&old);
		buf_fini(&out);
		fixture_fini(f);
	}
}

TEST(entries_for_better_hardware_stay)
{
	struct fixture fixture, *f = &fixture;
	struct buf old, out = BUF_INIT(LDCACHE_MAX);
	const struct ld_entry ours = {"libzz.so.9", "/x/libzz.so.9", 0x303, 0};
	struct ldcache c, again;
	char text[4096];

	make_glibc_root(f);
	sh(f, "mkdir -p opt/gpu/glibc-hwcaps/x86-64-v2;"
	      "cp opt/gpu/libsvrun.so.9.8.7 opt/gpu/glibc-hwcaps/x86-64-v2/libsvrun.so.1;"
	      "echo /opt/gpu >etc/ld.so.conf.d/z.conf; ldconfig -r . -X");
	read_text(f, "/etc/ld.so.cache", &old);
	assert_int_equal(ldcache_read(&c, old.data, old.len, &f->e), 0);
	assert_int_equal(c.nhwcaps, 1);
	assert_int_equal(ldcache_write(&c, &ours, 1, &out, &f->e), 0);
	assert_int_equal(ldcache_read(&again, out.data, out.len, &f->e), 0);
	assert_int_equal(again.n, c.n + 1);
	assert_string_equal(again.v[0].soname, "libzz.so.9"); /* descending */
	assert_string_equal(again.hwcaps[0], "x86-64-v2");
	assert_int_equal(file_write(f->root, "etc/ld.so.cache", out.data, out.len, 0644, &f->e), 0);
	output_of(f, "ldconfig -r . -p", text, sizeof(text));
	assert_non_null(strstr(text, "hwcap: \"x86-64-v2\""));
	loader_finds(f, "libsvrun.so.1", "/opt/gpu/glibc-hwcaps/x86-64-v2/libsvrun.so.1");
	ldcache_fini(&c);
	ldcache_fini(&again);
	buf_fini(&old);
	buf_fini(&out);
	fixture_fini(f);
}

TEST(names_are_ordered_as_the_loader_searches)
{
	static const char *const names[] = {"liba.so.10", "liba.so.9", "liba.so.9.1", "liba.so",
		"liba1.so", "libA.so.2", "lib10.so", "lib9.so"};
	/* digits are greater than what is none, and count as numbers */
	static const char *const wanted[] = {"lib10.so", "lib9.so", "liba1.so", "liba.so.10",
		"liba.so.9.1", "liba.so.9", "liba.so", "libA.so.2"};
	struct ld_entry v[8];
	struct ldcache c = {0}, got;
	struct buf out = BUF_INIT(LDCACHE_MAX);

	for (size_t i = 0; i < 8; i++)
		v[i] = (struct ld_entry){names[i], names[i], 0x303, 0};
	assert_int_equal(ldcache_write(&c, v, 8, &out, NULL), 0);
	assert_int_equal(ldcache_read(&got, out.data, out.len, NULL), 0);
	for (size_t i = 0; i < 8; i++)
		assert_string_equal(got.v[i].soname, wanted[i]);
	ldcache_fini(&got);
	buf_fini(&out);
}

TEST(a_cache_may_end_anywhere_and_every_byte_may_be_wrong)
{
	struct fixture fixture, *f = &fixture;
	static const unsigned char values[] = {0x00, 0x01, 0x7f, 0xff};
	struct buf old;
	size_t refused = 0, taken = 0;

	make_glibc_root(f);
	sh(f, "echo /opt/gpu >etc/ld.so.conf.d/z.conf; ldconfig -r . -X");
	read_text(f, "/etc/ld.so.cache", &old);
	for (size_t n = 0; n < old.len; n++) {
		auto_free char *part = mem_alloc(n + 1); /* ends with a NUL of its own */
		struct ldcache c;

		memcpy(part, old.data, n);
		if (ldcache_read(&c, part, n, &f->e) < 0)
			assert_int_equal(f->e.kind, ERR_CORRUPT);
		ldcache_fini(&c);
	}
	for (size_t at = 0; at < old.len; at++)
		for (size_t v = 0; v < sizeof(values); v++) {
			auto_free char *copy = mem_alloc(old.len + 1);
			auto_buf struct buf out = BUF_INIT(LDCACHE_MAX);
			struct ldcache c;

			memcpy(copy, old.data, old.len);
			copy[at] = (char)values[v];
			if (ldcache_read(&c, copy, old.len, NULL) < 0)
				refused++;
			else if (ldcache_write(&c, NULL, 0, &out, NULL) == 0)
				taken++;
			ldcache_fini(&c);
		}
	assert_true(refused > 50 && taken > 50);
	buf_fini(&old);
	fixture_fini(f);
}

/* ---- in a root ---- */

TEST(the_loader_finds_what_was_added_and_no_more_when_it_is_taken_back)
{
	struct fixture fixture, *f = &fixture;
	struct buf first, second;
	char text[4096];

	make_glibc_root(f);
	sh(f, "ldconfig -r . -X");
	read_text(f, "/etc/ld.so.cache", &first);
	loader_finds(f, "libsvrun.so.1", NULL);
	start(f, "/opt/gpu");
	loader_finds(f, "libsvrun.so.1", "/opt/gpu/libsvrun.so.1");
	loader_finds(f, "libm.so.6", "/lib/x86_64-linux-gnu/libm.so.6");
	text_is(f, "/etc/ld.so.conf.d/00-svrun-gpu.conf", "/opt/gpu\n");
	/* an ldconfig inside keeps it */
	sh(f, "ldconfig -r .");
	loader_finds(f, "libsvrun.so.1", "/opt/gpu/libsvrun.so.1");
	/* the same again, then another folder, then none */
	start(f, "/opt/gpu");
	sh(f, "mv opt/gpu opt/new");
	start(f, "/opt/new");
	loader_finds(f, "libsvrun.so.1", "/opt/new/libsvrun.so.1");
	output_of(f, "ldconfig -r . -p", text, sizeof(text));
	assert_null(strstr(text, "/opt/gpu"));
	start(f, NULL);
	loader_finds(f, "libsvrun.so.1", NULL);
	text_is(f, "/etc/ld.so.conf.d/00-svrun-gpu.conf", NULL);
	text_is(f, "/etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n");
	sh(f, "ldconfig -r . -X");
	read_text(f, "/etc/ld.so.cache", &second);
	assert_int_equal(first.len, second.len);
	buf_fini(&first);
	buf_fini(&second);
	fixture_fini(f);
}

TEST(ours_comes_before_the_image_s_own_library_of_that_name)
{
	struct fixture fixture, *f = &fixture;

	make_glibc_root(f);
	sh(f, "mkdir opt/old; cp opt/gpu/libsvrun.so.9.8.7 opt/old/libsvrun.so.1;"
	      "echo /opt/old >etc/ld.so.conf.d/old.conf; ldconfig -r . -X");
	loader_finds(f, "libsvrun.so.1", "/opt/old/libsvrun.so.1");
	start(f, "/opt/gpu");
	loader_finds(f, "libsvrun.so.1", "/opt/gpu/libsvrun.so.1");
	start(f, NULL);
	loader_finds(f, "libsvrun.so.1", "/opt/old/libsvrun.so.1");
	fixture_fini(f);
}

TEST(an_image_without_etc_gets_one)
{
	struct fixture fixture, *f = &fixture;

	make_glibc_root(f);
	sh(f, "rm -r etc");
	start(f, "/opt/gpu");
	loader_finds(f, "libsvrun.so.1", "/opt/gpu/libsvrun.so.1");
	sh(f, "ldconfig -r . -X");
	loader_finds(f, "libsvrun.so.1", "/opt/gpu/libsvrun.so.1");
	start(f, NULL);
	text_is(f, "/etc/ld.so.conf", NULL);
	fixture_fini(f);
}

TEST(links_of_the_image_stay_in_the_image)
{
	struct fixture fixture, *f = &fixture, outside;

	fixture_init(&outside);
	make_glibc_root(f);
	sh(f, "rm -r etc; mkdir -p private/etc; ln -s /private/etc etc");
	start(f, "/opt/gpu");
	text_is(f, "/private/etc/ld.so.conf.d/00-svrun-gpu.conf", "/opt/gpu\n");
	loader_finds(f, "libsvrun.so.1", "/opt/gpu/libsvrun.so.1");
	start(f, NULL);
	/* to the host, by an absolute link and by many ".." */
	for (int up = 0; up < 2; up++) {
		char script[512];

		snprintf(script, sizeof(script), "rm -rf etc; ln -s %s%s etc",
			up ? "../../../../../../.." : "", outside.dir);
		sh(f, script);
		start(f, "/opt/gpu");
		text_is(&outside, "/ld.so.cache", NULL);
		text_is(&outside, "/ld.so.conf.d", NULL);
	}
	/* the files themselves as links to files of the host: replaced, not followed */
	sh(&outside, "echo precious >cache; echo precious >conf");
	sh(f, "rm -rf etc; mkdir -p etc/ld.so.conf.d");
	for (int i = 0; i < 2; i++) {
		char script[512];

		snprintf(script, sizeof(script), "ln -sf %s/%s etc/%s", outside.dir,
			i ? "cache" : "conf", i ? "ld.so.cache" : "ld.so.conf.d/00-svrun-gpu.conf");
		sh(f, script);
	}
	start(f, "/opt/gpu");
	text_is(&outside, "/cache", "precious\n");
	text_is(&outside, "/conf", "precious\n");
	loader_finds(f, "libsvrun.so.1", "/opt/gpu/libsvrun.so.1");
	fixture_fini(f);
	fixture_fini(&outside);
}

TEST(a_damaged_cache_is_made_anew)
{
	static const char *const damages[] = {"echo nonsense >etc/ld.so.cache",
		": >etc/ld.so.cache", "head -c 100 etc/ld.so.cache >x; mv x etc/ld.so.cache",
		"rm -f etc/ld.so.cache; mkfifo etc/ld.so.cache",
		"rm -f etc/ld.so.cache; mknod etc/ld.so.cache c 1 5"};

	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		struct fixture fixture, *f = &fixture;

		make_glibc_root(f);
		sh(f, "ldconfig -r . -X");
		sh(f, damages[i]);
		start(f, "/opt/gpu");
		loader_finds(f, "libsvrun.so.1", "/opt/gpu/libsvrun.so.1");
		fixture_fini(f);
	}
}

TEST(what_is_no_library_is_no_entry)
{
	struct fixture fixture, *f = &fixture;
	char text[4096];

	make_glibc_root(f);
	sh(f, "cd opt/gpu; echo text >libtext.so.1; mkfifo libpipe.so.1; mkdir libdir.so.1;"
	      "ln -s nowhere libnowhere.so.1; ln -s libloop.so.1 libloop.so.1;"
	      "head -c 300 libsvrun.so.1 >libshort.so.1; mknod libzero.so.1 c 1 5;"
	      "ln -s /etc/hostname liblink.so.1");
	start(f, "/opt/gpu");
	output_of(f, "ldconfig -r . -p", text, sizeof(text));
	assert_non_null(strstr(text, "1 libs found"));
	fixture_fini(f);
}

TEST(what_is_mounted_in_a_system_folder_is_added_alone)
{
	struct fixture fixture, *f = &fixture;
	char text[8192];

	make_glibc_root(f);
	sh(f, "ldconfig -r . -X;"
	      ": >usr/lib/x86_64-linux-gnu/libsvrun.so.9.8.7;"
	      "mount --bind opt/gpu/libsvrun.so.9.8.7 usr/lib/x86_64-linux-gnu/libsvrun.so.9.8.7");
	start(f, "/lib/x86_64-linux-gnu");
	loader_finds(f, "libsvrun.so.1", "/lib/x86_64-linux-gnu/libsvrun.so.9.8.7");
	text_is(f, "/etc/ld.so.conf.d/00-svrun-gpu.conf",
		"# library /lib/x86_64-linux-gnu/libsvrun.so.9.8.7\n");
	/* the same by the folder's other name */
	start(f, "/usr/lib/x86_64-linux-gnu");
	loader_finds(f, "libsvrun.so.1", "/usr/lib/x86_64-linux-gnu/libsvrun.so.9.8.7");
	text_is(f, "/etc/ld.so.conf.d/00-svrun-gpu.conf",
		"# library /usr/lib/x86_64-linux-gnu/libsvrun.so.9.8.7\n");
	start(f, NULL);
	output_of(f, "ldconfig -r . -p", text, sizeof(text));
	assert_null(strstr(text, "libsvrun"));
	assert_non_null(strstr(text, "libm.so.6"));
	sh(f, "umount usr/lib/x86_64-linux-gnu/libsvrun.so.9.8.7");
	fixture_fini(f);
}

TEST(a_volume_is_not_written_to)
{
	struct fixture fixture, *f = &fixture, outside;
	char script[512];

	fixture_init(&outside);
	make_glibc_root(f);
	sh(f, "ldconfig -r . -X");
	snprintf(script, sizeof(script), "cp -a etc/. %s/; mount --bind %s etc", outside.dir,
		outside.dir);
	sh(f, script);
	start(f, "/opt/gpu");
	loader_finds(f, "libsvrun.so.1", "/opt/gpu/libsvrun.so.1"); /* bound over the volume's */
	text_is(&outside, "/ld.so.conf.d/00-svrun-gpu.conf", NULL);
	sh(f, "umount etc/ld.so.cache; umount etc");
	fixture_fini(f);
	sh(&outside, "! grep -q svrun ld.so.cache");
	fixture_fini(&outside);
}

TEST(on_a_read_only_root_the_cache_is_bound_over)
{
	struct fixture fixture, *f = &fixture;

	make_glibc_root(f);
	sh(f, "ldconfig -r . -X; mount --bind . .; mount -o remount,bind,ro .");
	sys_close_ref(&f->root);
	f->root = sys_open(f->dir, O_PATH | O_DIRECTORY, 0);
	start(f, "/opt/gpu");
	loader_finds(f, "libsvrun.so.1", "/opt/gpu/libsvrun.so.1");
	/* nothing of ours stays on the root but that one bind */
	sh(f, "[ $(grep -c \" $PWD\" /proc/self/mountinfo) = 2 ]");
	sh(f, "umount etc/ld.so.cache; umount -l .");
	sh(f, "! grep -q svrun etc/ld.so.cache");
	fixture_fini(f);
}

TEST(nothing_to_bind_on_is_no_error)
{
	struct fixture fixture, *f = &fixture;

	make_glibc_root(f);
	sh(f, "mount --bind . .; mount -o remount,bind,ro .");
	sys_close_ref(&f->root);
	f->root = sys_open(f->dir, O_PATH | O_DIRECTORY, 0);
	start(f, "/opt/gpu");
	sh(f, "umount -l .");
	fixture_fini(f);
}

TEST(a_folder_in_the_caches_place_is_called_one)
{
	struct fixture fixture, *f = &fixture;
	char said[4096];
	auto_free char *log = NULL;
	auto_fd int before = dup(2), file = -1;

	make_glibc_root(f);
	sh(f, "rm -f etc/ld.so.cache; mkdir etc/ld.so.cache");
	log = mem_printf("%s/said", f->dir);
	file = sys_open(log, O_WRONLY | O_CREAT, 0600);
	assert_true(file >= 0 && dup2(file, 2) == 2);
	start(f, "/opt/gpu");
	assert_int_equal(dup2(before, 2), 2);
	output_of(f, "cat said", said, sizeof(said));
	if (!strstr(said, "/etc/ld.so.cache is a folder in the container"))
		fail_msg("%s", said);
	fixture_fini(f);
}

/* ---- musl ---- */

TEST(musl_gets_its_path_file)
{
	struct fixture fixture, *f = &fixture;

	fixture_init(f);
	sh(f, "mkdir -p lib etc opt/gpu; : >lib/ld-musl-x86_64.so.1");
	start(f, "/opt/gpu");
	text_is(f, "/etc/ld-musl-x86_64.path", "/opt/gpu\n/lib\n/usr/local/lib\n/usr/lib\n");
	text_is(f, "/etc/ld.so.cache", NULL);
	text_is(f, "/etc/ld.so.conf", NULL);
	start(f, "/opt/gpu");
	text_is(f, "/etc/ld-musl-x86_64.path", "/opt/gpu\n/lib\n/usr/local/lib\n/usr/lib\n");
	start(f, "/opt/new");
	text_is(f, "/etc/ld-musl-x86_64.path", "/opt/new\n/lib\n/usr/local/lib\n/usr/lib\n");
	start(f, NULL);
	text_is(f, "/etc/ld-musl-x86_64.path", NULL);
	sh(f, "printf /a:/b >etc/ld-musl-x86_64.path");
	start(f, "/opt/gpu");
	text_is(f, "/etc/ld-musl-x86_64.path", "/opt/gpu\n/a\n/b\n");
	start(f, NULL);
	text_is(f, "/etc/ld-musl-x86_64.path", "/a\n/b\n");
	fixture_fini(f);
}

TEST(an_image_with_both_gets_both)
{
	struct fixture fixture, *f = &fixture;

	make_glibc_root(f);
	sh(f, "ldconfig -r . -X; : >lib/ld-musl-x86_64.so.1");
	start(f, "/opt/gpu");
	loader_finds(f, "libsvrun.so.1", "/opt/gpu/libsvrun.so.1");
	text_is(f, "/etc/ld-musl-x86_64.path", "/opt/gpu\n/lib\n/usr/local/lib\n/usr/lib\n");
	fixture_fini(f);
}

/* Mounts of these tests are nobody else's. */
static int alone(void **state __attribute__((unused)))
{
	if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0)
		return 0;
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

int main(void)
{
	const struct CMUnitTest any[] = {
		cmocka_unit_test(what_is_read_and_written_is_what_ldconfig_prints),
		cmocka_unit_test(names_are_ordered_as_the_loader_searches),
		cmocka_unit_test(a_folder_in_the_caches_place_is_called_one),
		cmocka_unit_test(musl_gets_its_path_file),
	};
	const struct CMUnitTest root[] = {
		cmocka_unit_test(entries_for_better_hardware_stay),
		cmocka_unit_test(a_cache_may_end_anywhere_and_every_byte_may_be_wrong),
		cmocka_unit_test(the_loader_finds_what_was_added_and_no_more_when_it_is_taken_back),
		cmocka_unit_test(ours_comes_before_the_image_s_own_library_of_that_name),
		cmocka_unit_test(an_image_without_etc_gets_one),
		cmocka_unit_test(links_of_the_image_stay_in_the_image),
		cmocka_unit_test(a_damaged_cache_is_made_anew),
		cmocka_unit_test(what_is_no_library_is_no_entry),
		cmocka_unit_test(what_is_mounted_in_a_system_folder_is_added_alone),
		cmocka_unit_test(a_volume_is_not_written_to),
		cmocka_unit_test(on_a_read_only_root_the_cache_is_bound_over),
		cmocka_unit_test(nothing_to_bind_on_is_no_error),
		cmocka_unit_test(an_image_with_both_gets_both),
	};
	int rc = cmocka_run_group_tests(any, NULL, NULL);

	if (geteuid() != 0) {
		print_message("[  SKIPPED ] the tests in roots need root\n");
		return rc;
	}
	return rc ? rc : cmocka_run_group_tests(root, alone, NULL);
}
