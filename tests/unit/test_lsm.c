#include "tests/unit/test.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "runtime/lsm.h"
#include "runtime/procfs.h"

static void refuse(const struct spec_process *p, const char *text)
{
	struct err e = {0};

	assert_int_equal(lsm_check(p, &e), -1);
	assert_int_equal(e.kind, ERR_UNSUPPORTED);
	assert_string_equal(e.text, text);
}

TEST(a_host_without_the_module_is_an_error_that_names_the_field)
{
	if (!lsm_has_apparmor())
		refuse(&(struct spec_process){.apparmor = "svrun"},
			"process.apparmorProfile: this host does not run AppArmor");
	if (!lsm_has_selinux())
		refuse(&(struct spec_process){.selinux = "system_u:system_r:container_t:s0"},
			"process.selinuxLabel: this host does not run SELinux");
}

TEST(the_child_finds_out_by_itself_too)
{
	struct spec_process p = {.apparmor = "svrun"};
	auto_fd int proc = procfs_open(NULL);
	struct err e = {0};

	if (lsm_has_apparmor())
		skip();
	assert_int_equal(lsm_apply(&p, proc, &e), -1);
	assert_string_equal(e.text, "process.apparmorProfile: this host does not run AppArmor");
}

TEST(nothing_is_asked_for_with_nothing)
{
	static const struct spec_process none = {.given = true},
					 empty = {.apparmor = "", .selinux = ""};

	assert_int_equal(lsm_check(&none, NULL), 0);
	assert_int_equal(lsm_apply(&none, -1, NULL), 0);
	assert_int_equal(lsm_check(&empty, NULL), 0);
	assert_int_equal(lsm_apply(&empty, -1, NULL), 0);
}

/* Without AppArmor a process is what this would make it. */
TEST(unconfined_is_always_to_be_had)
{
	struct spec_process p = {.apparmor = "unconfined"};
	auto_fd int proc = procfs_open(NULL);

	assert_int_equal(lsm_check(&p, NULL), 0);
	if (!lsm_has_apparmor())
		assert_int_equal(lsm_apply(&p, proc, NULL), 0);
}

static int exec_with(const char *profile)
{
	struct spec_process p = {.apparmor = profile};
	auto_fd int proc = procfs_open(NULL);

	if (lsm_apply(&p, proc, NULL) < 0)
		return 99;
	execl("/bin/sh", "sh", "-c", "test \"$(cat /proc/self/attr/current)\" = unconfined", NULL);
	return 98;
}

TEST(apparmor_takes_the_profile_at_exec)
{
	int status;
	pid_t pid;

	if (!lsm_has_apparmor())
		skip();
	pid = fork();
	if (pid == 0)
		_exit(exec_with("unconfined"));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

TEST(a_profile_that_is_not_loaded_is_an_error)
{
	struct spec_process p = {.apparmor = "svrun-no-such-profile"};
	auto_fd int proc = procfs_open(NULL);
	struct err e = {0};

	if (!lsm_has_apparmor())
		skip();
	assert_int_equal(lsm_apply(&p, proc, &e), -1);
	assert_int_equal(e.kind, ERR_NOT_FOUND);
	assert_true(str_starts(e.text, "process.apparmorProfile: write"));
	assert_string_equal(e.hint, "apparmor_parser loads profiles");
}

RUN_TESTS(cmocka_unit_test(a_host_without_the_module_is_an_error_that_names_the_field),
	cmocka_unit_test(the_child_finds_out_by_itself_too),
	cmocka_unit_test(nothing_is_asked_for_with_nothing),
	cmocka_unit_test(unconfined_is_always_to_be_had),
	cmocka_unit_test(apparmor_takes_the_profile_at_exec),
	cmocka_unit_test(a_profile_that_is_not_loaded_is_an_error))
