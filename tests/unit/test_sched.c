#include "tests/unit/test.h"

#include <linux/ioprio.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "runtime/sched.h"

#define EXPECT(n, x)                                                                               \
	do {                                                                                       \
		if (!(x))                                                                          \
			return n;                                                                  \
	} while (0)

static void in_child(int (*fn)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(fn());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

TEST(what_is_no_list_of_cpus_is_refused)
{
	static const char *const cases[] = {"", "x", "1-", "-1", "1,", ",1", "3-1", "1--2", " 1",
		"1 ", "8192", "99999999999999999999", "1;2", "0x1", "1-2-3", "+1"};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err e = {0};

		if (sched_affinity(cases[i], &e) == 0)
			fail_msg("'%s' was taken", cases[i]);
		assert_int_equal(e.kind, ERR_USAGE);
	}
}

static int pin(void)
{
	unsigned cpu = 99;
	cpu_set_t set, before;
	size_t last = 0;
	char list[64];

	EXPECT(1, sched_affinity(NULL, NULL) == 0 &&
			  sched_getaffinity(0, sizeof(before), &before) == 0);
	for (size_t i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &before))
			last = i;
	snprintf(list, sizeof(list), "%zu,%zu-8191", last, last);
	/* CPUs of the list that are not there are left out. */
	EXPECT(2, sched_affinity(list, NULL) == 0);
	EXPECT(3, sched_getaffinity(0, sizeof(set), &set) == 0);
	EXPECT(4, CPU_COUNT(&set) == 1 && CPU_ISSET(last, &set));
	EXPECT(5, syscall(SYS_getcpu, &cpu, NULL, NULL) == 0 && cpu == (unsigned)last);
	return 0;
}

TEST(a_process_is_pinned)
{
	in_child(pin);
}

static int no_such_cpu(void)
{
	struct err e = {0};

	EXPECT(1, sched_affinity("8191", &e) < 0);
	EXPECT(2, str_eq(e.text, "CPU affinity 8191: Invalid argument"));
	EXPECT(3, str_eq(e.hint, "none of them is online and in the cgroup's cpuset"));
	return 0;
}

TEST(cpus_that_are_not_there_are_an_error)
{
	in_child(no_such_cpu);
}

static int apply_all(void)
{
	struct spec s = {.personality = {true, PER_LINUX32},
		.memory_policy = {.given = true, .mode = MPOL_BIND, .nodes = "0"}};
	struct spec_process p = {.scheduler = {.given = true, .policy = SCHED_BATCH, .nice = 5},
		.io_priority = {.given = true, .class = IOPRIO_CLASS_IDLE, .priority = 0}};
	struct utsname name;
	unsigned long nodes[128] = {0};
	int mode = -1;

	EXPECT(1, sched_apply(&s, &p, NULL) == 0);
	EXPECT(2, sched_getscheduler(0) == SCHED_BATCH && getpriority(PRIO_PROCESS, 0) == 5);
	EXPECT(3, IOPRIO_PRIO_CLASS(syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0)) ==
			  IOPRIO_CLASS_IDLE);
	EXPECT(4, uname(&name) == 0 && !str_eq(name.machine, "x86_64"));
	if (syscall(SYS_get_mempolicy, &mode, nodes, 8 * sizeof(nodes), NULL, 0) == 0)
		EXPECT(5, mode == MPOL_BIND && nodes[0] == 1);
	return 0;
}

TEST(all_that_is_asked_for_is_set)
{
	if (access("/sys/devices/system/node/node0", F_OK) < 0)
		skip();
	in_child(apply_all);
}

static int real_time(void)
{
	struct spec s = {.has_seccomp = false};
	struct spec_process p = {
		.scheduler = {.given = true, .policy = SCHED_FIFO, .priority = 10}};
	struct err e = {0};
	struct sched_param got;

	/* A cgroup may have no real-time budget: then it is an error, and not silence. */
	if (sched_apply(&s, &p, &e) < 0)
		return str_starts(e.text, "process.scheduler: ") ? 0 : 1;
	EXPECT(2, sched_getscheduler(0) == SCHED_FIFO);
	EXPECT(3, sched_getparam(0, &got) == 0 && got.sched_priority == 10);
	return 0;
}

TEST(a_real_time_policy_is_set_or_is_an_error)
{
	in_child(real_time);
}

static int wrong(void)
{
	struct spec s = {.has_seccomp = false};
	struct spec_process p = {.io_priority = {.given = true, .class = 7, .priority = 0}};
	struct err e = {0};

	EXPECT(1, sched_apply(&s, &p, &e) < 0);
	EXPECT(2, str_eq(e.text, "process.ioPriority: Invalid argument"));
	p.io_priority.given = false;
	s.memory_policy = (struct spec_memory_policy){true, MPOL_BIND, 0, "8191"};
	EXPECT(3, sched_apply(&s, &p, &e) < 0);
	EXPECT(4, str_starts(e.text, "linux.memoryPolicy: "));
	return 0;
}

TEST(errors_name_the_field)
{
	in_child(wrong);
}

TEST(nothing_is_done_when_nothing_is_asked_for)
{
	struct spec s = {.has_seccomp = false};
	struct spec_process p = {.given = true};

	assert_int_equal(sched_apply(&s, &p, NULL), 0);
}

RUN_TESTS(cmocka_unit_test(what_is_no_list_of_cpus_is_refused),
	cmocka_unit_test(a_process_is_pinned),
	cmocka_unit_test(cpus_that_are_not_there_are_an_error),
	cmocka_unit_test(all_that_is_asked_for_is_set),
	cmocka_unit_test(a_real_time_policy_is_set_or_is_an_error),
	cmocka_unit_test(errors_name_the_field),
	cmocka_unit_test(nothing_is_done_when_nothing_is_asked_for))
