#include "tests/unit/test.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/magic.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "runtime/idmap.h"

enum { NOBODY = 65534 };

#define MAPS(...)                                                                                  \
	((struct spec_idmaps){(struct spec_idmap[]){__VA_ARGS__},                                  \
		sizeof((struct spec_idmap[]){__VA_ARGS__}) / sizeof(struct spec_idmap)})

static const struct spec_idmaps none = {NULL, 0};

TEST(an_id_inside_means_one_outside)
{
	struct spec_idmaps m = MAPS({0, 1000, 1}, {1, 100000, 65535}, {4294967290, 5, 5});
	static const struct {
		uint32_t id;
		int64_t host;
	} cases[] = {{0, 1000}, {1, 100000}, {65535, 165534}, {65536, -1}, {4294967290, 5},
		{4294967294, 9}, {4294967295, -1}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(idmap_host(&m, cases[i].id), cases[i].host);
	assert_int_equal(idmap_host(&none, 77), 77);
}

TEST(a_map_that_the_kernel_cannot_read_is_refused)
{
	struct spec_idmap many[SPEC_IDMAPS_MAX];
	struct spec_idmaps m = {many, SPEC_IDMAPS_MAX};
	struct err e = {0};

	if (geteuid() != 0) /* others do not write it themselves */
		skip();
	for (uint32_t i = 0; i < SPEC_IDMAPS_MAX; i++)
		many[i] = (struct spec_idmap){1000000000 + i, 2000000 + i, 1};
	assert_int_equal(idmap_write(getpid(), &m, &m, &e), -1);
	assert_string_equal(e.text, "uid map: longer than the kernel takes (7140 bytes)");
}

/* A process in a new user namespace, which waits. */
static pid_t start_waiter(void)
{
	struct clone_args a = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
	pid_t pid = (pid_t)syscall(SYS_clone3, &a, sizeof(a));

	if (pid == 0)
		for (;;)
			pause();
	assert_true(pid > 0);
	return pid;
}

static void stop_waiter(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void has(pid_t pid, const char *file, const char *want)
{
	auto_buf struct buf text = BUF_INIT(4096);
	char path[64], flat[4096] = "";
	size_t n = 0;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	assert_int_equal(file_read(AT_FDCWD, path, &text, NULL), 0);
	for (const char *p = text.data; *p; p++)
		if ((*p != ' ' && *p != '\n') || (n && flat[n - 1] != ' '))
			flat[n++] = *p == '\n' ? ' ' : *p;
	flat[n ? n - 1 : 0] = '\0';
	assert_string_equal(flat, want);
}

TEST(root_writes_all_ranges)
{
	struct spec_idmaps uids = MAPS({0, 1000, 1}, {1, 100000, 65535});
	struct spec_idmaps gids = MAPS({0, 100000, 65536});
	struct err e = {0};
	pid_t pid;

	if (geteuid() != 0)
		skip();
	pid = start_waiter();
	if (idmap_write(pid, &uids, &gids, &e) < 0)
		fail_msg("%s", e.text);
	has(pid, "uid_map", "0 1000 1 1 100000 65535");
	has(pid, "gid_map", "0 100000 65536");
	has(pid, "setgroups", "allow");
	stop_waiter(pid);
}

TEST(a_namespace_for_a_mount_needs_no_process)
{
	struct spec_idmaps m = MAPS({0, 100000, 65536});
	struct err e = {0};
	struct statfs fs;
	int fd;

	if (geteuid() != 0)
		skip();
	fd = idmap_namespace(&m, &m, &e);
	if (fd < 0)
		fail_msg("%s", e.text);
	assert_int_equal(fstatfs(fd, &fs), 0);
	assert_true(fs.f_type == NSFS_MAGIC);
	assert_int_equal(waitpid(-1, NULL, __WALL | WNOHANG), -1); /* no child is left */
	close(fd);
	m = MAPS({0, 1, 2}, {1, 5, 2});
	assert_int_equal(idmap_namespace(&m, &m, &e), -1);
	assert_int_equal(waitpid(-1, NULL, __WALL | WNOHANG), -1);
}

/* As nobody, to whom /etc/subuid and /etc/subgid of a mount namespace of our own grant 1000 ids.
 * The child asserts; it ends with 77 when it got to the end. */
static void as_nobody(void (*fn)(void))
{
	static const char *const files[] = {"/etc/subuid", "/etc/subgid"};
	char path[] = "/tmp/svrun-subids-XXXXXX";
	static const char text[] = "nobody:200000:1000\n";
	int status, fd;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	fd = mkstemp(path);
	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	assert_int_equal(fchmod(fd, 0644), 0);
	close(fd);
	pid = fork();
	if (pid == 0) {
		assert_int_equal(unshare(CLONE_NEWNS), 0);
		assert_int_equal(sys_mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
		for (int i = 0; i < 2; i++)
			assert_int_equal(sys_mount(path, files[i], NULL, MS_BIND, NULL), 0);
		assert_int_equal(setgroups(0, NULL), 0);
		assert_int_equal(setresgid(NOBODY, NOBODY, NOBODY), 0);
		assert_int_equal(setresuid(NOBODY, NOBODY, NOBODY), 0);
		assert_int_equal(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), 0);
		fn();
		_exit(77);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	unlink(path);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 77);
}

static void map_own_id(void)
{
	pid_t pid = start_waiter();
	struct err e = {0};

	if (idmap_write(pid, &none, &none, &e) < 0)
		fail_msg("%s", e.text);
	has(pid, "uid_map", "0 65534 1");
	has(pid, "gid_map", "0 65534 1");
	has(pid, "setgroups", "deny");
	stop_waiter(pid);
}

TEST(without_root_the_own_id_can_be_mapped)
{
	as_nobody(map_own_id);
}

static void map_granted(void)
{
	struct spec_idmaps m = MAPS({0, NOBODY, 1}, {1, 200000, 1000});
	pid_t pid = start_waiter();
	struct err e = {0};

	if (idmap_write(pid, &m, &m, &e) < 0)
		fail_msg("%s", e.text);
	has(pid, "uid_map", "0 65534 1 1 200000 1000");
	has(pid, "gid_map", "0 65534 1 1 200000 1000");
	has(pid, "setgroups", "allow");
	stop_waiter(pid);
}

TEST(without_root_granted_ranges_are_mapped_by_helpers)
{
	if (access("/usr/bin/newuidmap", X_OK) < 0)
		skip();
	as_nobody(map_granted);
}

static void map_too_much(void)
{
	struct spec_idmaps m = MAPS({0, NOBODY, 1}, {1, 200000, 1001});
	pid_t pid = start_waiter();
	struct err e = {0};

	assert_int_equal(idmap_write(pid, &m, &m, &e), -1);
	assert_int_equal(e.kind, ERR_DENIED);
	assert_non_null(strstr(e.text, "[200000-201001)"));
	assert_string_equal(e.hint, "grant the range in /etc/subuid");
	stop_waiter(pid);
}

TEST(a_range_that_is_not_granted_is_named)
{
	if (access("/usr/bin/newuidmap", X_OK) < 0)
		skip();
	as_nobody(map_too_much);
}

static void map_from_inside(void)
{
	struct spec_idmaps own = MAPS({0, NOBODY, 1}), fine = MAPS({0, 0, 1}),
			   more = MAPS({0, 0, 1}, {1, 7, 3});
	struct err e = {0};
	pid_t outer = getpid(), pid = fork();

	if (pid == 0) { /* maps the parent, which cannot do it itself */
		while (kill(outer, 0) == 0 && access("/proc/self/uid_map", F_OK) == 0) {
			if (idmap_write(outer, &own, &own, NULL) == 0)
				_exit(0);
			usleep(1000);
		}
		_exit(1);
	}
	assert_int_equal(unshare(CLONE_NEWUSER), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(geteuid(), 0);
	pid = start_waiter();
	assert_int_equal(idmap_write(pid, &more, &more, &e), -1);
	assert_int_equal(e.kind, ERR_DENIED);
	assert_string_equal(e.text, "uid map: range 1:7:3 has ids that are not ours to give");
	stop_waiter(pid);
	pid = start_waiter();
	if (idmap_write(pid, &fine, &fine, &e) < 0)
		fail_msg("%s", e.text);
	stop_waiter(pid);
}

TEST(root_of_a_user_namespace_gives_what_it_has)
{
	as_nobody(map_from_inside);
}

RUN_TESTS(cmocka_unit_test(an_id_inside_means_one_outside),
	cmocka_unit_test(a_map_that_the_kernel_cannot_read_is_refused),
	cmocka_unit_test(root_writes_all_ranges),
	cmocka_unit_test(a_namespace_for_a_mount_needs_no_process),
	cmocka_unit_test(without_root_the_own_id_can_be_mapped),
	cmocka_unit_test(without_root_granted_ranges_are_mapped_by_helpers),
	cmocka_unit_test(a_range_that_is_not_granted_is_named),
	cmocka_unit_test(root_of_a_user_namespace_gives_what_it_has))
