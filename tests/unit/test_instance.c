#include "tests/unit/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"
#include "svrun/instance.h"

/* What instances_sweep() of another svrun does with a folder that nobody has locked yet. */
static void sweep_all_the_time(const char *store)
{
	auto_free char *path = mem_printf("%s/instances/a", store);

	for (;;) {
		int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (dir < 0)
			continue;
		if (flock(dir, LOCK_EX | LOCK_NB) == 0) {
			usleep(1000);
			rmdir(path);
			close(dir);
			usleep(1000); /* until another comes */
			continue;
		}
		close(dir);
	}
}

TEST(a_folder_that_a_sweep_took_is_made_again_under_its_name)
{
	char store[] = "/tmp/svrun-instance.XXXXXX";
	pid_t pid;
	int fd;

	assert_non_null(mkdtemp(store));
	fd = sys_open(store, O_RDONLY | O_DIRECTORY, 0);
	assert_true(fd >= 0);
	pid = fork();
	if (pid == 0)
		sweep_all_the_time(store);
	assert_true(pid > 0);
	for (size_t k = 0; k < 300; k++) {
		struct err e = {0};
		struct instance i;

		if (instance_create(&i, fd, store, "a", true, &e) < 0) {
			kill(pid, SIGKILL);
			fail_msg("%zu: %s", k, e.text);
		}
		instance_abort(&i);
	}
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(fd);
	assert_int_equal(sys_remove_tree(AT_FDCWD, store), 0);
}

RUN_TESTS(cmocka_unit_test(a_folder_that_a_sweep_took_is_made_again_under_its_name))
