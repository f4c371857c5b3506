#include "tests/unit/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "runtime/rdt.h"

/* A folder that looks like a mounted resctrl. Only the kernel makes files in a new class, so those
 * that the runtime makes stay empty here. */
static char path[] = "/tmp/svrun-rdt-XXXXXX";
static int root = -1;

static int set_up(void **state)
{
	(void)state;
	strncpy(path, "/tmp/svrun-rdt-XXXXXX", sizeof(path));
	if (!mkdtemp(path))
		return -1;
	root = sys_open(path, O_RDONLY | O_DIRECTORY, 0);
	return root < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	(void)state;
	sys_close_ref(&root);
	return sys_remove_tree(AT_FDCWD, path);
}

static void put(const char *name, const char *text)
{
	assert_int_equal(file_write(root, name, text, strlen(text), 0600, NULL), 0);
}

static void make_class(const char *name, const char *schemata)
{
	char file[128];

	assert_int_equal(sys_mkdirat(root, name, 0755), 0);
	snprintf(file, sizeof(file), "%s/tasks", name);
	put(file, "");
	snprintf(file, sizeof(file), "%s/schemata", name);
	put(file, schemata);
	snprintf(file, sizeof(file), "%s/mon_groups", name);
	assert_int_equal(sys_mkdirat(root, file, 0755), 0);
}

static void expect_file(const char *name, const char *want)
{
	auto_buf struct buf text = BUF_INIT(4096);

	assert_int_equal(file_read(root, name, &text, NULL), 0);
	assert_string_equal(text.len ? text.data : "", want);
}

static void refuse(const struct spec_intel_rdt *r, const char *id, const char *text)
{
	struct err e = {0};

	assert_int_equal(rdt_apply_in(root, r, id, 42, &e), -1);
	assert_string_equal(e.text, text);
}

TEST(a_class_that_is_named_alone_must_be_there)
{
	struct spec_intel_rdt r = {.given = true, .clos = "gold"};

	refuse(&r, "c1", "linux.intelRdt.closID: gold: No such file or directory");
	make_class("gold", "L3:0=ff\n");
	assert_int_equal(rdt_apply_in(root, &r, "c1", 42, NULL), 0);
	expect_file("gold/tasks", "42");
	expect_file("gold/schemata", "L3:0=ff\n");
	/* It is not this container's to remove. */
	assert_int_equal(rdt_remove_in(root, &r, "c1", NULL), 0);
	expect_file("gold/tasks", "42");
}

TEST(a_class_that_is_there_must_have_the_schemata)
{
	struct spec_intel_rdt r = {
		.given = true, .clos = "gold", .l3 = "L3:0=ff;1=f0", .membw = "MB:0=20"};

	make_class("gold", "    MB:0=20;1=100\n    L3:0=ff;1=f0\n");
	refuse(&r, "c1", "linux.intelRdt: class 'gold' is there, without MB:0=20");
	expect_file("gold/tasks", "");
	r.membw = "MB:0=20;1=100";
	assert_int_equal(rdt_apply_in(root, &r, "c1", 42, NULL), 0);
	expect_file("gold/tasks", "42");
}

/* What the kernel would see: the last line written, as its file is no text to append to. */
TEST(the_containers_own_class_gets_its_schemata)
{
	const char *more[] = {"L2:0=f"};
	struct spec_intel_rdt r = {.given = true, .l3 = "L3:0=ff\nMB:0=10", .membw = "MB:0=20"};

	make_class("c1", "");
	assert_int_equal(rdt_apply_in(root, &r, "c1", 42, NULL), 0);
	expect_file("c1/schemata", "MB:0=20\n");
	r.schemata = (struct strings){more, 1};
	assert_int_equal(rdt_apply_in(root, &r, "c1", 43, NULL), 0);
	expect_file("c1/schemata", "L2:0=f\n\n");
	expect_file("c1/tasks", "43");
}

TEST(a_class_that_was_made_in_vain_goes_again)
{
	struct spec_intel_rdt r = {.given = true};

	refuse(&r, "c1", "linux.intelRdt: tasks: No such file or directory");
	assert_int_equal(faccessat(root, "c1", F_OK, 0), -1);
	r = (struct spec_intel_rdt){.given = true, .clos = "gold", .l3 = "L3:0=ff"};
	refuse(&r, "c1", "linux.intelRdt: schemata: No such file or directory");
	assert_int_equal(faccessat(root, "gold", F_OK, 0), -1);
}

TEST(a_container_is_watched_in_a_group_of_its_name)
{
	struct spec_intel_rdt r = {.given = true, .clos = "gold", .monitoring = true};

	make_class("gold", "");
	assert_int_equal(sys_mkdirat(root, "gold/mon_groups/c1", 0755), 0);
	put("gold/mon_groups/c1/tasks", "");
	assert_int_equal(rdt_apply_in(root, &r, "c1", 42, NULL), 0);
	expect_file("gold/mon_groups/c1/tasks", "42");
	assert_int_equal(sys_unlinkat(root, "gold/mon_groups/c1/tasks", 0), 0);
	assert_int_equal(rdt_remove_in(root, &r, "c1", NULL), 0);
	assert_int_equal(faccessat(root, "gold/mon_groups/c1", F_OK, 0), -1);
	expect_file("gold/tasks", "42");
	assert_int_equal(rdt_remove_in(root, &r, "c1", NULL), 0); /* once more */
}

TEST(a_name_that_is_no_class_is_refused)
{
	static const char *const names[] = {
		"", "..", ".", "a/b", "../x", "info", "mon_groups", "mon_data", "/etc"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct spec_intel_rdt r = {.given = true, .clos = names[i]};
		char text[128];

		snprintf(text, sizeof(text), "linux.intelRdt.closID: '%s'", names[i]);
		refuse(&r, "c1", text);
	}
}

TEST(what_the_kernel_says_is_told)
{
	struct spec_intel_rdt r = {.given = true, .clos = "gold"};
	struct err e = {0};

	/* Nothing can be written to it. */
	make_class("gold", "");
	assert_int_equal(sys_unlinkat(root, "gold/tasks", 0), 0);
	assert_int_equal(mknodat(root, "gold/tasks", S_IFCHR | 0600, 0x107), 0); /* full */
	assert_int_equal(sys_mkdirat(root, "info", 0755), 0);
	put("info/last_cmd_status", "No such task\n");
	assert_int_equal(rdt_apply_in(root, &r, "c1", 42, &e), -1);
	assert_string_equal(e.text, "linux.intelRdt: tasks: No space left on device");
	assert_string_equal(e.hint, "the kernel says: No such task");
}

TEST(a_host_without_it_is_an_error_that_names_the_field)
{
	struct spec s = {.rdt = {.given = true}};
	struct err e = {0};

	if (access("/sys/fs/resctrl/info", F_OK) == 0)
		skip();
	assert_int_equal(rdt_apply(&s, "c1", 42, &e), -1);
	assert_int_equal(e.kind, ERR_UNSUPPORTED);
	assert_string_equal(e.text, "linux.intelRdt: no resctrl at /sys/fs/resctrl");
	assert_int_equal(rdt_remove(&s, "c1", NULL), 0);
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
RUN_TESTS(UNIT(a_class_that_is_named_alone_must_be_there),
	UNIT(a_class_that_is_there_must_have_the_schemata),
	UNIT(the_containers_own_class_gets_its_schemata),
	UNIT(a_class_that_was_made_in_vain_goes_again),
	UNIT(a_container_is_watched_in_a_group_of_its_name),
	UNIT(a_name_that_is_no_class_is_refused), UNIT(what_the_kernel_says_is_told),
	UNIT(a_host_without_it_is_an_error_that_names_the_field))
