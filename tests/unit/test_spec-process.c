#include "tests/unit/spec-make.h"

#include <linux/capability.h>
#include <linux/ioprio.h>
#include <linux/sched.h>
#include <sys/resource.h>

TEST(every_member_is_read)
{
	struct spec s;
	const struct spec_process *p = &s.process;

	accept(&s, "process",
		"{'terminal': true, 'consoleSize': {'height': 24, 'width': 80},"
		"'user': {'uid': 1, 'gid': 2, 'umask': 18, 'additionalGids': [5, 0]},"
		"'rlimits': [{'type': 'RLIMIT_NOFILE', 'soft': 5, 'hard': 9}],"
		"'noNewPrivileges': true, 'oomScoreAdj': -5, 'apparmorProfile': 'prof',"
		"'selinuxLabel': 'u:r:t:s0',"
		"'scheduler': {'policy': 'SCHED_FIFO', 'priority': 10,"
		"  'flags': ['SCHED_FLAG_RESET_ON_FORK', 'SCHED_FLAG_KEEP_PARAMS']},"
		"'ioPriority': {'class': 'IOPRIO_CLASS_BE', 'priority': 4},"
		"'execCPUAffinity': {'initial': '0-3,5', 'final': '7'}}");
	assert_true(p->terminal && p->no_new_privs);
	assert_int_equal(p->rows, 24);
	assert_int_equal(p->columns, 80);
	assert_int_equal(p->user.uid, 1);
	assert_int_equal(p->user.gid, 2);
	assert_int_equal(p->user.umask.v, 022);
	assert_int_equal(p->user.ngroups, 2);
	assert_int_equal(p->user.groups[0], 5);
	assert_int_equal(p->nrlimits, 1);
	assert_int_equal(p->rlimits[0].resource, RLIMIT_NOFILE);
	assert_int_equal(p->rlimits[0].hard, 9);
	assert_int_equal(p->oom_score_adj.v, -5);
	assert_string_equal(p->apparmor, "prof");
	assert_string_equal(p->selinux, "u:r:t:s0");
	assert_true(p->scheduler.given);
	assert_int_equal(p->scheduler.policy, SCHED_FIFO);
	assert_int_equal(p->scheduler.priority, 10);
	assert_int_equal(p->scheduler.flags, SCHED_FLAG_RESET_ON_FORK | SCHED_FLAG_KEEP_PARAMS);
	assert_true(p->io_priority.given);
	assert_int_equal(p->io_priority.class, IOPRIO_CLASS_BE);
	assert_int_equal(p->io_priority.priority, 4);
	assert_string_equal(p->exec_cpus_initial, "0-3,5");
	assert_string_equal(p->exec_cpus_final, "7");
	spec_fini(&s);
}

TEST(what_is_absent_asks_for_nothing)
{
	struct spec s;

	accept(&s, "process",
		"{'user': null, 'apparmorProfile': '', 'selinuxLabel': null,"
		"'execCPUAffinity': {'initial': ''}}");
	assert_int_equal(s.process.user.uid, 0);
	assert_false(s.process.user.umask.set);
	assert_null(s.process.apparmor);
	assert_null(s.process.selinux);
	assert_false(s.process.scheduler.given);
	assert_false(s.process.io_priority.given);
	assert_false(s.process.oom_score_adj.set);
	assert_null(s.process.exec_cpus_initial);
	spec_fini(&s);
}

TEST(the_deadline_scheduler_has_times)
{
	struct spec s;

	accept(&s, "process",
		"{'scheduler': {'policy': 'SCHED_DEADLINE', 'runtime': 10, 'deadline': 20,"
		"'period': 30}}");
	assert_int_equal(s.process.scheduler.policy, SCHED_DEADLINE);
	assert_int_equal(s.process.scheduler.runtime, 10);
	assert_int_equal(s.process.scheduler.deadline, 20);
	assert_int_equal(s.process.scheduler.period, 30);
	spec_fini(&s);
	accept(&s, "process", "{'scheduler': {'policy': 'SCHED_BATCH', 'nice': -20}}");
	assert_int_equal(s.process.scheduler.nice, -20);
	spec_fini(&s);
}

TEST(capabilities_have_five_sets_and_those_not_known_are_left_out)
{
	struct spec s;

	accept(&s, "process",
		"{'capabilities': {'bounding': ['CAP_KILL', 'CAP_FLY'], 'permitted': ['CAP_CHOWN'],"
		"'effective': ['CAP_SETUID', 'cap_kill'], 'inheritable': [], 'ambient': "
		"['CAP_BPF']}}");
	assert_int_equal(s.process.caps.bounding, UINT64_C(1) << CAP_KILL);
	assert_int_equal(s.process.caps.permitted, UINT64_C(1) << CAP_CHOWN);
	assert_int_equal(s.process.caps.effective, UINT64_C(1) << CAP_SETUID);
	assert_int_equal(s.process.caps.inheritable, 0);
	assert_int_equal(s.process.caps.ambient, UINT64_C(1) << CAP_BPF);
	spec_fini(&s);
}

TEST(ids_are_unsigned_numbers_of_32_bits_below_the_one_that_means_no_change)
{
	static const struct refusal cases[] = {
		{"process", "{'user': {'uid': -1, 'gid': 0}}", ERR_CORRUPT,
			"/process/user/uid: expected a non-negative integer"},
		{"process", "{'user': {'uid': 4294967296, 'gid': 0}}", ERR_CORRUPT,
			"/process/user/uid: 4294967296 is greater than 4294967295"},
		{"process", "{'user': {'uid': 0, 'gid': 4294967295}}", ERR_CORRUPT,
			"/process/user: uid and gid must be less than 4294967295"},
		{"process", "{'user': {'uid': '0', 'gid': 0}}", ERR_CORRUPT,
			"/process/user/uid: expected a non-negative integer"},
		{"process", "{'user': {'uid': 0.5, 'gid': 0}}", ERR_CORRUPT,
			"/process/user/uid: expected a non-negative integer"},
		{"process", "{'user': {'uid': 0, 'gid': 0, 'additionalGids': [1, 4294967295]}}",
			ERR_CORRUPT, "/process/user/additionalGids/1: expected a group id"},
		{"process", "{'user': {'umask': 512}}", ERR_CORRUPT,
			"/process/user/umask: 512 is greater than 511"},
	};

	REFUSE_ALL(cases);
}

TEST(errors_name_the_place)
{
#define LIMIT(t, s, h) "{'type': '" t "', 'soft': " s ", 'hard': " h "}"
	static const struct refusal cases[] = {
		{"process", "{'args': []}", ERR_CORRUPT, "/process/args: empty"},
		{"process", "{'args': null}", ERR_CORRUPT, "/process: missing key 'args'"},
		{"process", "{'cwd': null}", ERR_CORRUPT, "/process: missing key 'cwd'"},
		{"process", "{'args': ['a', 1]}", ERR_CORRUPT,
			"/process/args/1: expected a string"},
		{"process", "{'args': 'a'}", ERR_CORRUPT,
			"/process/args: expected an array of strings"},
		{"process", "{'cwd': 'work'}", ERR_CORRUPT,
			"/process/cwd: expected an absolute path, got 'work'"},
		{"process", "{'cwd': ''}", ERR_CORRUPT,
			"/process/cwd: expected an absolute path, got ''"},
		{"process", "{'env': ['A=1', 'B']}", ERR_CORRUPT,
			"/process: env/1: expected NAME=VALUE"},
		{"process", "{'env': ['=1']}", ERR_CORRUPT, "/process: env/0: expected NAME=VALUE"},
		{"process", "{'terminal': 1}", ERR_CORRUPT,
			"/process/terminal: expected true or false"},
		{"process", "{'consoleSize': {'height': 65536, 'width': 1}}", ERR_CORRUPT,
			"/process/consoleSize/height: 65536 is greater than 65535"},
		{"process", "{'capabilities': ['CAP_KILL']}", ERR_CORRUPT,
			"/process/capabilities: expected an object"},
		{"process", "{'capabilities': {'bounding': 'CAP_KILL'}}", ERR_CORRUPT,
			"/process/capabilities/bounding: expected an array"},
		{"process", "{'capabilities': {'ambient': [7]}}", ERR_CORRUPT,
			"/process/capabilities/ambient/0: expected a string"},
		{"process", "{'oomScoreAdj': 1001}", ERR_CORRUPT,
			"/process/oomScoreAdj: expected -1000 to 1000"},
		{"process", "{'rlimits': [" LIMIT("RLIMIT_CORE", "2", "1") "]}", ERR_CORRUPT,
			"/process/rlimits/0: soft limit is greater than the hard limit"},
		{"process", "{'rlimits': [" LIMIT("RLIMIT_X", "1", "1") "]}", ERR_CORRUPT,
			"/process/rlimits/0: unknown rlimit 'RLIMIT_X'"},
		{"process", "{'rlimits': [" LIMIT("RLIMIT_AS", "1", "-1") "]}", ERR_CORRUPT,
			"/process/rlimits/0/hard: expected a non-negative integer"},
		{"process",
			"{'rlimits': [" LIMIT("RLIMIT_CORE", "1", "1") "," LIMIT(
				"RLIMIT_CORE", "1", "1") "]}",
			ERR_CORRUPT, "/process/rlimits: RLIMIT_CORE is there twice"},
	};

	REFUSE_ALL(cases);
}

TEST(what_the_schedulers_cannot_do_is_refused)
{
#define SCHED(p, rest) "{'scheduler': {'policy': 'SCHED_" p "'" rest "}}"
	static const struct refusal cases[] = {
		{"process", "{'scheduler': {}}", ERR_CORRUPT,
			"/process/scheduler: missing key 'policy'"},
		{"process", SCHED("ISO", ""), ERR_UNSUPPORTED,
			"/process/scheduler/policy: unknown value 'SCHED_ISO'"},
		{"process", SCHED("OTHER", ",'flags': ['X']"), ERR_UNSUPPORTED,
			"/process/scheduler/flags/0: unknown value 'X'"},
		{"process", SCHED("OTHER", ",'nice': 20"), ERR_CORRUPT,
			"/process/scheduler/nice: expected -20 to 19"},
		{"process", SCHED("OTHER", ",'priority': 5"), ERR_CORRUPT,
			"/process/scheduler: priority is for SCHED_FIFO and SCHED_RR only"},
		{"process", SCHED("RR", ""), ERR_CORRUPT,
			"/process/scheduler: priority: expected 1 to 99"},
		{"process", SCHED("RR", ",'priority': 100"), ERR_CORRUPT,
			"/process/scheduler/priority: 100 is greater than 99"},
		{"process", SCHED("IDLE", ",'period': 100"), ERR_CORRUPT,
			"/process/scheduler: runtime, deadline and period are for SCHED_DEADLINE "
			"only"},
		{"process", SCHED("DEADLINE", ",'runtime': 9, 'deadline': 8"), ERR_CORRUPT,
			"/process/scheduler: expected 0 < runtime <= deadline <= period"},
		{"process", "{'ioPriority': {'class': 'IOPRIO_CLASS_NONE'}}", ERR_UNSUPPORTED,
			"/process/ioPriority/class: unknown value 'IOPRIO_CLASS_NONE'"},
		{"process", "{'ioPriority': {'class': 'IOPRIO_CLASS_RT', 'priority': 8}}",
			ERR_CORRUPT, "/process/ioPriority/priority: 8 is greater than 7"},
		{"process", "{'execCPUAffinity': {'initial': '0-'}}", ERR_CORRUPT,
			"/process/execCPUAffinity/initial: expected a list such as 0-3,5, got "
			"'0-'"},
		{"process", "{'execCPUAffinity': {'final': '3-1'}}", ERR_CORRUPT,
			"/process/execCPUAffinity/final: expected a list such as 0-3,5, got '3-1'"},
		{"process", "{'execCPUAffinity': {'final': '1,'}}", ERR_CORRUPT,
			"/process/execCPUAffinity/final: expected a list such as 0-3,5, got '1,'"},
		{"process", "{'execCPUAffinity': {'final': '99999999999999999999'}}", ERR_CORRUPT,
			"/process/execCPUAffinity/final: expected a list such as 0-3,5, got "
			"'99999999999999999999'"},
	};

	REFUSE_ALL(cases);
}

RUN_TESTS(cmocka_unit_test(every_member_is_read), cmocka_unit_test(what_is_absent_asks_for_nothing),
	cmocka_unit_test(the_deadline_scheduler_has_times),
	cmocka_unit_test(capabilities_have_five_sets_and_those_not_known_are_left_out),
	cmocka_unit_test(ids_are_unsigned_numbers_of_32_bits_below_the_one_that_means_no_change),
	cmocka_unit_test(errors_name_the_place),
	cmocka_unit_test(what_the_schedulers_cannot_do_is_refused))
