#include "tests/unit/test.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "runtime/caps.h"

TEST(names_and_numbers_agree_with_the_kernels_header)
{
	assert_int_equal(caps_number("CAP_CHOWN"), CAP_CHOWN);
	assert_int_equal(caps_number("CAP_MKNOD"), CAP_MKNOD);
	assert_int_equal(caps_number("CAP_BPF"), CAP_BPF);
	assert_int_equal(caps_number("CAP_CHECKPOINT_RESTORE"), CAP_CHECKPOINT_RESTORE);
	assert_int_equal(caps_number("CAP_LAST"), -1);
	assert_int_equal(caps_number("CHOWN"), -1);
	assert_int_equal(caps_number("cap_chown"), -1);
	for (int i = 0; i <= CAP_LAST_CAP; i++)
		assert_int_equal(caps_number(caps_name(i)), i);
	assert_null(caps_name(CAP_LAST_CAP + 1));
	assert_null(caps_name(-1));
}

/* In a child: what /proc says about it afterwards. */
static int lines(const char *want)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[128];
	int found = 0;

	while (f && fgets(line, sizeof(line), f))
		if (str_starts(line, want))
			found = 1;
	if (f)
		fclose(f);
	return found;
}

static int apply(void)
{
	struct caps c = {.bounding = 0x21,
		.permitted = 0x21,
		.effective = 0x1,
		.inheritable = 0x20,
		.ambient = 0x20};
	struct err e = {0};

	if (caps_apply_bounding(&c, &e) < 0 || caps_apply(&c, &e) < 0) {
		fputs(e.text, stderr);
		return 1;
	}
	return lines("CapBnd:\t0000000000000021") && lines("CapPrm:\t0000000000000021") &&
			       lines("CapEff:\t0000000000000001") &&
			       lines("CapInh:\t0000000000000020") &&
			       lines("CapAmb:\t0000000000000020")
		       ? 0
		       : 2;
}

TEST(the_sets_become_exactly_those_asked_for)
{
	int status;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	pid = fork();
	if (pid == 0)
		_exit(apply());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

RUN_TESTS(cmocka_unit_test(names_and_numbers_agree_with_the_kernels_header),
	cmocka_unit_test(the_sets_become_exactly_those_asked_for))
