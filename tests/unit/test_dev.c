#include "tests/unit/test.h"

#include <fcntl.h>
#include <sys/sysmacros.h>

#include "base/str.h"
#include "base/sys.h"
#include "runtime/dev.h"
#include "tests/unit/own-mounts.h"

static const struct spec empty;

static void own(struct own_mounts *o, int top)
{
	*o = (struct own_mounts){0};
	assert_int_equal(own_mounts_add(o, top, NULL), 0);
}

static void fill(int top)
{
	struct own_mounts o;
	struct err e = {0};
	struct stat st;

	own(&o, top);
	for (int i = 0; i < 2; i++) /* what is there already is fine */
		if (dev_fill(top, &empty, &o, -1, &e) < 0)
			fail_msg("%s", e.text);
	assert_int_equal(stat("dev/null", &st), 0);
	assert_true(st.st_rdev == makedev(1, 3) && st.st_mode == (S_IFCHR | 0666));
	assert_int_equal(lstat("dev/stdin", &st), 0);
	assert_true(S_ISLNK(st.st_mode));
}

TEST(every_container_has_some_devices)
{
	with_own_mounts(fill);
}

static void refuse_other(int top)
{
	struct own_mounts o;
	struct err e = {0};

	own(&o, top);
	assert_int_equal(mkdir("dev", 0755), 0);
	put("dev/full", "text", 0644);
	assert_int_equal(dev_fill(top, &empty, &o, -1, &e), -1);
	assert_string_equal(e.text, "device full in the root is something else");
	assert_int_equal(unlink("dev/full"), 0);
	assert_int_equal(mknod("dev/full", S_IFCHR | 0666, makedev(1, 1)), 0); /* /dev/mem */
	e = (struct err){0};
	assert_int_equal(dev_fill(top, &empty, &o, -1, &e), -1);
	assert_string_equal(e.text, "device full in the root is something else");
	assert_int_equal(unlink("dev/full"), 0);
	assert_int_equal(symlink("null", "dev/full"), 0);
	e = (struct err){0};
	assert_int_equal(dev_fill(top, &empty, &o, -1, &e), -1);
	assert_string_equal(e.text, "device full in the root is something else");
	/* And a /dev that leads elsewhere. */
	assert_int_equal(sys_remove_tree(top, "dev"), 0);
	assert_int_equal(mkdir("elsewhere", 0755), 0);
	assert_int_equal(symlink("elsewhere", "dev"), 0);
	e = (struct err){0};
	assert_int_equal(dev_fill(top, &empty, &o, -1, &e), -1);
	assert_string_equal(e.text, "/dev in the root is a link, not a directory");
	assert_int_equal(rmdir("elsewhere"), 0);
}

TEST(what_is_there_must_be_the_device_itself)
{
	with_own_mounts(refuse_other);
}

static void refuse_names(int top)
{
	static const char *const names[] = {"/dev/", "/dev/..", "/dev/.", "/dev/null/x"};
	struct own_mounts o;

	own(&o, top);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct spec_device d = {.path = names[i], .type = S_IFCHR, .major = 1, .minor = 3};
		struct spec s = {.devices = &d, .ndevices = 1};

		if (i == 3)
			put("dev/null", "", 0644);
		assert_int_equal(dev_fill(top, &s, &o, -1, NULL), -1);
	}
}

TEST(a_device_needs_a_name_and_a_folder)
{
	with_own_mounts(refuse_names);
}

/* CVE-2025-52565: nothing but a devpts gives a terminal, and no link leads its console elsewhere.
 */
static void refuse_terminals(int top)
{
	struct own_mounts o;
	struct err e = {0};
	int slave = -1;

	own(&o, top);
	assert_int_equal(mkdir("dev", 0755), 0);
	assert_int_equal(dev_terminal(top, &o, &slave, &e), -1);
	assert_string_equal(e.text, "terminal: /dev/pts: No such file or directory");
	assert_int_equal(mkdir("dev/pts", 0755), 0);
	assert_int_equal(mknod("dev/pts/ptmx", S_IFCHR | 0666, makedev(1, 3)), 0);
	e = (struct err){0};
	assert_int_equal(dev_terminal(top, &o, &slave, &e), -1);
	assert_string_equal(e.text, "terminal: /dev/pts is not a devpts");
	assert_int_equal(sys_mount("d", "dev/pts", "devpts", 0, "newinstance,ptmxmode=0666"), 0);
	put("victim", "text", 0644);
	assert_int_equal(symlink("../victim", "dev/console"), 0);
	e = (struct err){0};
	assert_int_equal(dev_terminal(top, &o, &slave, &e), -1);
	assert_string_equal(
		e.text, "/dev/console: /dev/console in the root is a link, not a directory");
	assert_int_equal(unlink("dev/console"), 0);
	assert_true(dev_terminal(top, &o, &slave, &e) >= 0);
	assert_true(slave >= 0 && isatty(slave));
}

TEST(a_terminal_comes_from_a_devpts)
{
	with_own_mounts(refuse_terminals);
}

RUN_TESTS(cmocka_unit_test(every_container_has_some_devices),
	cmocka_unit_test(what_is_there_must_be_the_device_itself),
	cmocka_unit_test(a_device_needs_a_name_and_a_folder),
	cmocka_unit_test(a_terminal_comes_from_a_devpts))
