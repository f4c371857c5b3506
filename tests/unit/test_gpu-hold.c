#include "tests/unit/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"
#include "svrun/gpu-hold.h"

/* A host whose GPU is the null device: one that opens. */
struct fake {
	char dir[32];
	char *run;
	struct gpu_host host;
	struct gpu_node node;
	struct gpu_device gpu;
};

static void make(struct fake *f, unsigned minor)
{
	auto_free char *dev = NULL, *path = NULL;

	if (geteuid() != 0)
		skip();
	snprintf(f->dir, sizeof(f->dir), "/tmp/svrun-hold.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	dev = mem_printf("%s/dev", f->dir);
	path = mem_printf("%s/nvidia0", dev);
	assert_int_equal(sys_mkdirat(AT_FDCWD, dev, 0755), 0);
	assert_int_equal(mknod(path, S_IFCHR | 0666, makedev(1, minor)), 0);
	f->run = mem_printf("%s/run", f->dir);
	f->host = (struct gpu_host){.proc = -1,
		.sys = -1,
		.dev = sys_open(dev, O_PATH | O_DIRECTORY, 0),
		.root = -1,
		.prefix = f->dir,
		.run = f->run};
	f->node = (struct gpu_node){.path = "/dev/nvidia0", .major = 1, .minor = 3, .exists = true};
	f->gpu = (struct gpu_device){.bus = "0000:65:00.0", .nodes = {&f->node, 1}};
}

static void unmake(struct fake *f)
{
	sys_close_ref(&f->host.dev);
	assert_int_equal(sys_remove_tree(AT_FDCWD, f->dir), 0);
	free(f->run);
}

TEST(a_gpu_is_held_once)
{
	struct fake f;
	struct err e = {0};
	int node, lock, node2, lock2;
	auto_free char *says =
		mem_printf("GPU 0 (0000:65:00.0) is held by process %d", (int)getpid());

	make(&f, 3);
	assert_false(gpu_hold_is(&f.host, &f.gpu));
	assert_int_equal(gpu_hold(&f.host, &f.gpu, &node, &lock, &e), 0);
	assert_true(gpu_hold_is(&f.host, &f.gpu));
	assert_int_equal(fcntl(node, F_GETFD), FD_CLOEXEC);
	assert_int_equal(gpu_hold(&f.host, &f.gpu, &node2, &lock2, &e), -1);
	assert_int_equal(e.kind, ERR_EXISTS);
	assert_string_equal(e.text, says);
	sys_close_ref(&node);
	sys_close_ref(&lock);
	assert_false(gpu_hold_is(&f.host, &f.gpu));
	assert_int_equal(gpu_hold(&f.host, &f.gpu, &node, &lock, &e), 0);
	sys_close_ref(&node);
	sys_close_ref(&lock);
	unmake(&f);
}

/* Nothing but the GPU's own node is opened: opening another device may do something. */
TEST(another_device_in_the_nodes_place_is_refused)
{
	struct fake f;
	struct err e = {0};
	int node, lock;

	make(&f, 5);
	assert_int_equal(gpu_hold(&f.host, &f.gpu, &node, &lock, &e), -1);
	assert_int_equal(e.kind, ERR_DENIED);
	assert_non_null(strstr(e.text, "/dev/nvidia0 is not the character device 1:3"));
	assert_false(gpu_hold_is(&f.host, &f.gpu));
	unmake(&f);
}

TEST(the_manager_is_told_by_path_and_by_abstract_name)
{
	const char *const names[] = {"/tmp/svrun-notify-test.sock", "@svrun-notify-test"};
	struct err e = {0};

	unsetenv("NOTIFY_SOCKET");
	assert_int_equal(notify_manager("READY=1", &e), 0);
	for (size_t i = 0; i < 2; i++) {
		struct sockaddr_un at = {.sun_family = AF_UNIX};
		auto_fd int s = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		char text[32] = "";

		unlink(names[0]);
		memcpy(at.sun_path, names[i], strlen(names[i]));
		if (i == 1)
			at.sun_path[0] = '\0';
		assert_int_equal(bind(s, (struct sockaddr *)&at,
					 (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
						     strlen(names[i]))),
			0);
		setenv("NOTIFY_SOCKET", names[i], 1);
		assert_int_equal(notify_manager("READY=1", &e), 0);
		assert_int_equal(recv(s, text, sizeof(text) - 1, MSG_DONTWAIT), 7);
		assert_string_equal(text, "READY=1");
	}
	unlink(names[0]);
	setenv("NOTIFY_SOCKET", "no/path", 1);
	assert_int_equal(notify_manager("READY=1", &e), -1);
	assert_int_equal(e.kind, ERR_USAGE);
}

RUN_TESTS(cmocka_unit_test(a_gpu_is_held_once),
	cmocka_unit_test(another_device_in_the_nodes_place_is_refused),
	cmocka_unit_test(the_manager_is_told_by_path_and_by_abstract_name))
