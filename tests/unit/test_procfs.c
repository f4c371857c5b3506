#include "tests/unit/test.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "runtime/procfs.h"

static void refuse(int proc, const char *name, bool network, enum err_kind kind, const char *text)
{
	struct spec_sysctl c = {name, "1"};
	struct spec s = {.sysctls = &c, .nsysctls = 1, .namespaces = {[NS_NETWORK] = network}};
	struct err e = {0};

	assert_int_equal(procfs_sysctls(proc, &s, &e), -1);
	assert_int_equal(e.kind, kind);
	assert_string_equal(e.text, text);
}

TEST(only_sysctls_of_new_namespaces_can_be_set)
{
	int proc = sys_open("/proc", O_PATH | O_DIRECTORY, 0);

	refuse(proc, "kernel.core_pattern", true, ERR_DENIED,
		"sysctl kernel.core_pattern would change the host");
	refuse(proc, "vm.overcommit_memory", true, ERR_DENIED,
		"sysctl vm.overcommit_memory would change the host");
	refuse(proc, "net.ipv4.ip_forward", false, ERR_DENIED,
		"sysctl net.ipv4.ip_forward would change the host");
	refuse(proc, "kernel.shmmax", true, ERR_DENIED,
		"sysctl kernel.shmmax would change the host");
	refuse(proc, "net/../kernel/core_pattern", true, ERR_USAGE,
		"sysctl 'net/../kernel/core_pattern'");
	refuse(proc, "net.nothing.like.that", true, ERR_NOT_FOUND,
		"sysctl net.nothing.like.that: open sys/net/nothing/like/that: No such file or "
		"directory");
	close(proc);
}

TEST(what_is_not_on_a_procfs_is_not_written_to)
{
	char path[] = "/tmp/svrun-procfs-XXXXXX";
	struct err e = {0};
	int dir, fd;

	assert_non_null(mkdtemp(path));
	dir = sys_open(path, O_PATH | O_DIRECTORY, 0);
	fd = sys_openat(dir, "file", O_CREAT | O_WRONLY, 0644);
	assert_int_equal(procfs_write(dir, "file", "x", &e), -1);
	assert_string_equal(e.text, "file is not on a procfs");
	assert_int_equal(lseek(fd, 0, SEEK_END), 0);
	assert_int_equal(procfs_write(-1, "file", "x", &e), -1);
	assert_int_equal(e.kind, ERR_UNSUPPORTED);
	close(fd);
	close(dir);
	assert_int_equal(sys_remove_tree(AT_FDCWD, path), 0);
}

TEST(links_out_of_the_procfs_are_not_followed)
{
	int proc = sys_open("/proc", O_PATH | O_DIRECTORY, 0);
	struct err e = {0};

	assert_int_equal(procfs_write(proc, "self/cwd/x", "x", &e), -1);
	assert_int_equal(procfs_write(proc, "../etc/x", "x", &e), -1);
	close(proc);
}

RUN_TESTS(cmocka_unit_test(only_sysctls_of_new_namespaces_can_be_set),
	cmocka_unit_test(what_is_not_on_a_procfs_is_not_written_to),
	cmocka_unit_test(links_out_of_the_procfs_are_not_followed))
