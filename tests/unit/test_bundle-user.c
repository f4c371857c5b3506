#include "tests/unit/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "svrun/bundle.h"

static const char passwd[] = "# comment\n"
			     "root:x:0:0:root:/root:/bin/sh\n"
			     "\n"
			     "broken line\n"
			     "app:x:1000:1000:App:/home/app:/bin/sh\n"
			     "nohome:x:1001:1002::relative:/bin/sh\n"
			     "wrap:x:4294967296:0::/:/bin/sh\n"
			     "minus:x:-1:0::/:/bin/sh\n"
			     "7:x:70:71::/seven:/bin/sh\n"
			     "last:x:1003:1003::/home/last:/bin/sh";
static const char group[] = "root:x:0:\n"
			    "app:x:1000:\n"
			    "video:x:44:app,other\n"
			    "render:x:105:other,app\n"
			    "apple:x:106:apple\n"
			    "huge:x:99999999999:app\n"
			    "again:x:44:app\n";

static int root = -1;
static char path[] = "/tmp/svrun-passwd-XXXXXX";

static void put(const char *name, const char *text)
{
	int fd = sys_openat(root, name, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_int_equal(sys_write_all(fd, text, strlen(text)), 0);
	close(fd);
}

static int set_up(void **state)
{
	(void)state;
	strncpy(path, "/tmp/svrun-passwd-XXXXXX", sizeof(path));
	if (!mkdtemp(path))
		return -1;
	root = sys_open(path, O_PATH | O_DIRECTORY, 0);
	sys_mkdirat(root, "etc", 0755);
	put("etc/passwd", passwd);
	put("etc/group", group);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(root);
	return sys_remove_tree(AT_FDCWD, path);
}

static const struct {
	const char *user, *want; /* "uid gid groups home" */
} good[] = {
	{"", "0 0 [0] /root"},
	{"root", "0 0 [0] /root"},
	{"0", "0 0 [0] /root"},
	{"app", "1000 1000 [1000 44 105] /home/app"},
	{"1000", "1000 1000 [1000 44 105] /home/app"},
	{"app:", NULL},
	{"app:video", "1000 44 [44] /home/app"},
	{"app:9", "1000 9 [9] /home/app"},
	{":44", "0 44 [44] /root"},
	{"nohome", "1001 1002 [1002] /"},
	{"last", "1003 1003 [1003] /home/last"},
	{"5000", "5000 0 [0] /"},
	{"5000:6000", "5000 6000 [6000] /"},
	{"7", "7 0 [0] /"}, /* digits are an id, also where a user has them for a name */
	{"70", "70 71 [71] /seven"},
	{"2147483647", "2147483647 0 [0] /"},
};

TEST(users_are_found_by_name_and_by_number)
{
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct passwd_ids ids;
		struct err e = {0};
		char text[512];
		int n;

		if (!good[i].want)
			continue;
		if (passwd_resolve(root, good[i].user, &ids, &e) < 0)
			fail_msg("'%s': %s", good[i].user, e.text);
		n = snprintf(text, sizeof(text), "%u %u [", ids.uid, ids.gid);
		for (uint32_t k = 0; k < ids.ngroups; k++)
			n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%u", k ? " " : "",
				ids.groups[k]);
		snprintf(text + n, sizeof(text) - (size_t)n, "] %.100s", ids.home);
		if (!str_eq(text, good[i].want))
			fail_msg("'%s': expected %s, got %s", good[i].user, good[i].want, text);
	}
}

static const struct {
	const char *user;
	enum err_kind kind;
	const char *text;
} bad[] = {
	{"nobody", ERR_NOT_FOUND, "user 'nobody' is not in the image's /etc/passwd"},
	{"app:nogroup", ERR_NOT_FOUND, "group 'nogroup' is not in the image's /etc/group"},
	{"wrap", ERR_NOT_FOUND, "user 'wrap' is not in the image's /etc/passwd"},
	{"minus", ERR_NOT_FOUND, "user 'minus' is not in the image's /etc/passwd"},
	{"1000 ", ERR_NOT_FOUND, "user '1000 ' is not in the image's /etc/passwd"},
	{"0x0", ERR_NOT_FOUND, "user '0x0' is not in the image's /etc/passwd"},
	{"-1", ERR_USAGE, "user '-1': user id '-1': expected 0 to 2147483647"},
	{"+0", ERR_USAGE, "user '+0': user id '+0': expected 0 to 2147483647"},
	{"2147483648", ERR_USAGE,
		"user '2147483648': user id '2147483648': expected 0 to 2147483647"},
	{"4294967296", ERR_USAGE,
		"user '4294967296': user id '4294967296': expected 0 to 2147483647"},
	{"18446744073709551616", ERR_USAGE,
		"user '18446744073709551616': user id '18446744073709551616': expected 0 to "
		"2147483647"},
	{"app:4294967296", ERR_USAGE,
		"user 'app:4294967296': group id '4294967296': expected 0 to 2147483647"},
	{"app:-1", ERR_USAGE, "user 'app:-1': group id '-1': expected 0 to 2147483647"},
	{"app:", ERR_USAGE, "user 'app:': expected USER[:GROUP]"},
	{"app:video:x", ERR_USAGE, "user 'app:video:x': expected USER[:GROUP]"},
};

TEST(what_is_no_user_is_an_error_and_never_root)
{
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct passwd_ids ids;
		struct err e = {0};

		if (passwd_resolve(root, bad[i].user, &ids, &e) == 0)
			fail_msg("'%s' is %u", bad[i].user, ids.uid);
		assert_int_equal(e.kind, bad[i].kind);
		assert_string_equal(e.text, bad[i].text);
	}
}

TEST(links_of_the_image_stay_in_the_image)
{
	struct passwd_ids ids;

	/* The host has a user of that name; the image has not. */
	assert_int_equal(sys_unlinkat(root, "etc/passwd", 0), 0);
	assert_int_equal(sys_symlinkat("/etc/shadow-of-the-host", root, "etc/passwd"), 0);
	assert_int_equal(passwd_resolve(root, "daemon", &ids, NULL), -1);
	assert_int_equal(sys_unlinkat(root, "etc/passwd", 0), 0);
	assert_int_equal(sys_symlinkat("../../../../etc/passwd", root, "etc/passwd"), 0);
	assert_int_equal(passwd_resolve(root, "daemon", &ids, NULL), -1);
}

TEST(what_is_not_a_plain_file_of_sane_size_is_an_error)
{
	struct passwd_ids ids;
	struct err e = {0};
	int fd;

	assert_int_equal(sys_unlinkat(root, "etc/passwd", 0), 0);
	assert_int_equal(mkfifoat(root, "etc/passwd", 0644), 0);
	assert_int_equal(passwd_resolve(root, "app", &ids, &e), -1);
	assert_string_equal(e.text, "/etc/passwd of the image is not a file");
	assert_int_equal(sys_unlinkat(root, "etc/passwd", 0), 0);
	fd = sys_openat(root, "etc/passwd", O_CREAT | O_WRONLY, 0644);
	assert_int_equal(sys_ftruncate(fd, (off_t)1 << 40), 0);
	close(fd);
	assert_int_equal(passwd_resolve(root, "app", &ids, &e), -1);
	assert_int_equal(e.kind, ERR_CORRUPT);
}

TEST(an_image_without_the_files_has_numbers)
{
	struct passwd_ids ids;

	assert_int_equal(sys_remove_tree(root, "etc"), 0);
	assert_int_equal(passwd_resolve(root, "12:13", &ids, NULL), 0);
	assert_int_equal(ids.uid, 12);
	assert_int_equal(ids.gid, 13);
	assert_int_equal(passwd_resolve(root, "", &ids, NULL), 0);
	assert_int_equal(ids.uid, 0);
	assert_int_equal(passwd_resolve(root, "app", &ids, NULL), -1);
}

static void expect_home(uint32_t uid, const char *want)
{
	char home[PASSWD_HOME_MAX];

	passwd_home(root, uid, home);
	assert_string_equal(home, want);
}

TEST(a_home_is_of_a_number_and_never_of_a_name)
{
	expect_home(0, "/root");
	expect_home(1000, "/home/app");
	expect_home(1003, "/home/last");
	expect_home(7, "/"); /* no uid, a name */
	expect_home(70, "/seven");
	expect_home(1001, "/"); /* not absolute */
	expect_home(4242, "/");
}

TEST(an_unreadable_file_has_no_homes)
{
	assert_int_equal(sys_unlinkat(root, "etc/passwd", 0), 0);
	expect_home(0, "/");
	assert_int_equal(mkfifoat(root, "etc/passwd", 0644), 0);
	expect_home(0, "/");
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
RUN_TESTS(UNIT(a_home_is_of_a_number_and_never_of_a_name), UNIT(an_unreadable_file_has_no_homes),
	UNIT(users_are_found_by_name_and_by_number),
	UNIT(what_is_no_user_is_an_error_and_never_root),
	UNIT(links_of_the_image_stay_in_the_image),
	UNIT(what_is_not_a_plain_file_of_sane_size_is_an_error),
	UNIT(an_image_without_the_files_has_numbers))
