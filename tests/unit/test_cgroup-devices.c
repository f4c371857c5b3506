#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/magic.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/sys.h"
#include "runtime/cgroup-file.h"

struct ask {
	char type;
	unsigned access, major, minor;
};

/* The few eBPF instructions that the program has, as the kernel runs them. */
static bool run(const struct bpf_insn *v, size_t n, const struct ask *a)
{
	uint64_t r[11] = {0};
	struct bpf_cgroup_dev_ctx ctx = {.major = a->major,
		.minor = a->minor,
		.access_type = a->access << 16 |
			       (a->type == 'b' ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR)};

	for (size_t pc = 0; pc < n; pc++) {
		const struct bpf_insn *i = &v[pc];
		uint64_t *d = &r[i->dst_reg], imm = (uint32_t)i->imm;

		switch (i->code) {
		case BPF_LDX | BPF_W | BPF_MEM:
			*d = *(const uint32_t *)(const void *)((const char *)&ctx + i->off);
			break;
		case BPF_ALU64 | BPF_MOV | BPF_X:
			*d = r[i->src_reg];
			break;
		case BPF_ALU64 | BPF_MOV | BPF_K:
			*d = imm;
			break;
		case BPF_ALU64 | BPF_LSH | BPF_K:
			*d <<= imm;
			break;
		case BPF_ALU64 | BPF_OR | BPF_X:
			*d |= r[i->src_reg];
			break;
		case BPF_LD | BPF_DW | BPF_IMM:
			*d = (uint64_t)(uint32_t)v[++pc].imm << 32 | imm;
			break;
		case BPF_JMP | BPF_JNE | BPF_X:
			pc += *d != r[i->src_reg] ? (size_t)i->off : 0;
			break;
		case BPF_ALU | BPF_RSH | BPF_K:
			*d = (uint32_t)*d >> imm;
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			*d = (uint32_t)*d & imm;
			break;
		case BPF_JMP32 | BPF_JNE | BPF_K:
			pc += (uint32_t)*d != imm ? (size_t)i->off : 0;
			break;
		case BPF_JMP32 | BPF_JEQ | BPF_K:
			pc += (uint32_t)*d == imm ? (size_t)i->off : 0;
			break;
		case BPF_JMP | BPF_EXIT:
			return r[0] == 1;
		default:
			fail_msg("instruction %zu: code %#x", pc, i->code);
		}
	}
	fail_msg("ran off the end");
	return false;
}

#define ALL (DEVICE_READ | DEVICE_WRITE | DEVICE_MKNOD)
#define N(v_)                                                                                      \
	{                                                                                          \
		.set = true, .v = (v_)                                                             \
	}

static const struct {
	struct ask ask;
	bool want;
} defaults[] = {
	{{'c', DEVICE_READ | DEVICE_WRITE, 1, 3}, true},
	{{'c', DEVICE_READ, 1, 9}, true},
	{{'c', DEVICE_READ, 136, 17}, true},
	{{'c', DEVICE_READ, 5, 2}, true},
	{{'c', DEVICE_READ, 5, 1}, false},    /* the host's console */
	{{'c', DEVICE_READ, 1, 1}, false},    /* mem */
	{{'c', DEVICE_WRITE, 1, 11}, false},  /* kmsg */
	{{'c', DEVICE_READ, 10, 229}, false}, /* fuse */
	{{'b', DEVICE_READ, 1, 3}, false},
	{{'b', DEVICE_READ, 254, 0}, false},
	{{'b', DEVICE_MKNOD, 254, 0}, true},
	{{'c', DEVICE_MKNOD, 1, 1}, true},
	{{'c', DEVICE_MKNOD | DEVICE_READ, 1, 1}, false},
};

TEST(a_container_gets_the_standard_devices_and_no_others)
{
	struct spec_resources none = {0};
	struct bpf_insn *v;
	size_t n;

	cgroup_devices_program(&none, &v, &n);
	for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++)
		if (run(v, n, &defaults[i].ask) != defaults[i].want)
			fail_msg("case %zu", i);
	free(v);
}

TEST(rules_apply_in_their_order)
{
	struct spec_device_rule rules[] = {
		{.allow = true, .type = 'a', .access = ALL},
		{.allow = false, .type = 'c', .major = N(10), .access = DEVICE_WRITE},
		{.allow = true, .type = 'c', .major = N(10), .minor = N(1), .access = DEVICE_WRITE},
		{.allow = true, .type = 'c', .major = N(4106), .minor = N(3), .access = ALL},
		{.allow = true, .type = 'c', .major = N(9), .minor = N(11534339), .access = ALL},
		{.allow = true, .type = 'c', .minor = N(77), .access = ALL},
		{.allow = true, .type = 'c', .major = N(4095), .minor = N(1048575), .access = ALL},
	};
	struct spec_resources r = {.devices = rules, .ndevices = sizeof(rules) / sizeof(rules[0])};
	static const struct {
		struct ask ask;
		bool want;
	} cases[] = {
		{{'b', DEVICE_READ, 8, 0}, true},
		{{'c', DEVICE_READ, 10, 5}, true},
		{{'c', DEVICE_WRITE, 10, 5}, false},
		{{'c', DEVICE_READ | DEVICE_WRITE, 10, 5}, false},
		{{'c', DEVICE_WRITE, 10, 1}, true},
		{{'c', DEVICE_WRITE, 10, 77}, true},
		/* More than the last rule grants: the one before decides. */
		{{'c', DEVICE_READ | DEVICE_WRITE, 10, 1}, false},
		{{'c', ALL, 4095, 1048575}, true},
		/* A number that no device has is not another device's. */
		{{'c', DEVICE_WRITE, 10, 3}, false},
	};
	struct bpf_insn *v;
	size_t n;

	cgroup_devices_program(&r, &v, &n);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (run(v, n, &cases[i].ask) != cases[i].want)
			fail_msg("case %zu", i);
	free(v);
}

/* As config.json has them, down to what each version of cgroups does. */
static void read_rules(struct spec_resources *r, struct arena *mem, json_t **json)
{
	static const char text[] =
		"{\"devices\": [{\"allow\": true, \"access\": \"r\", \"major\": 10, "
		"\"minor\": 229}, {\"allow\": true, \"type\": \"a\", \"major\": 7}]}";
	struct err e = {0};

	*json = json_parse(text, strlen(text), &e);
	assert_non_null(*json);
	*r = (struct spec_resources){0};
	if (spec_read_resources(r, *json, "c", mem, &e) < 0)
		fail_msg("%s", e.text);
}

TEST(a_rule_for_both_types_with_numbers_opens_these_devices_only)
{
	static const struct {
		struct ask ask;
		bool want;
	} cases[] = {
		{{'c', DEVICE_READ, 10, 229}, true},
		{{'b', DEVICE_READ, 10, 229}, true},
		{{'c', DEVICE_WRITE, 10, 229}, false},
		{{'c', DEVICE_READ, 10, 228}, false},
		{{'c', DEVICE_READ, 1, 1}, false},
		{{'b', ALL, 7, 3}, true},
		{{'c', ALL, 7, 0}, true},
		{{'b', DEVICE_READ, 8, 0}, false},
	};
	struct arena mem = {0};
	struct spec_resources r;
	struct bpf_insn *v;
	json_t *json;
	size_t n;

	read_rules(&r, &mem, &json);
	cgroup_devices_program(&r, &v, &n);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (run(v, n, &cases[i].ask) != cases[i].want)
			fail_msg("case %zu", i);
	free(v);
	json_decref(json);
	arena_fini(&mem);
}

/* What version 1 is told, in the order of the lines in one file. */
TEST(version_1_gets_one_line_for_each_type)
{
	static const char *const want[] = {"b 10:229 r", "c 10:229 r", "b 7:* rwm", "c 7:* rwm"};
	char path[] = "/tmp/svrun-devices-XXXXXX", told[1024] = {0};
	struct arena mem = {0};
	struct spec_resources r;
	struct err e = {0};
	const char *at = told;
	json_t *json;
	int dir, fd;

	assert_non_null(mkdtemp(path));
	dir = sys_open(path, O_RDONLY | O_DIRECTORY, 0);
	close(sys_openat(dir, "devices.deny", O_WRONLY | O_CREAT, 0600));
	fd = sys_openat(dir, "devices.allow", O_RDWR | O_CREAT, 0600);
	read_rules(&r, &mem, &json);
	if (cgroup_devices_write(dir, &r, &e) < 0)
		fail_msg("%s", e.text);
	assert_true(pread(fd, told, sizeof(told) - 1, 0) > 0);
	assert_null(strchr(told, 'a'));
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		at = strstr(at, want[i]);
		if (!at)
			fail_msg("%s: not in %s", want[i], told);
	}
	assert_int_equal(sys_remove_tree(AT_FDCWD, path), 0);
	json_decref(json);
	arena_fini(&mem);
	close(fd);
	close(dir);
}

/* ---- in the kernel, where there is a version 2 hierarchy ---- */

static int open_v2(void)
{
	static const char *const places[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};

	for (size_t i = 0; i < 2; i++) {
		struct statfs fs;

		if (statfs(places[i], &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC)
			return sys_open(places[i], O_PATH | O_DIRECTORY, 0);
	}
	return -1;
}

static int in_cgroup(void)
{
	int null = open("/dev/null", O_RDWR), kmsg = open("/dev/kmsg", O_RDONLY);

	if (null < 0)
		return 1;
	return kmsg >= 0 ? 2 : errno == EPERM ? 0 : 3;
}

TEST(the_kernel_takes_the_program_and_a_process_cloned_into_the_cgroup_obeys_it)
{
	int root = geteuid() == 0 ? open_v2() : -1, dir, status;
	struct spec_resources none = {0};
	struct clone_args a = {.flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD};
	struct err e = {0};
	char name[64];
	pid_t pid;

	if (root < 0)
		skip();
	snprintf(name, sizeof(name), "svrun-test-%d", (int)getpid());
	assert_int_equal(sys_mkdirat(root, name, 0755), 0);
	dir = sys_openat(root, name, O_PATH | O_DIRECTORY, 0);
	if (cgroup_devices_attach(dir, &none, &e) < 0)
		fail_msg("%s", e.text);
	a.cgroup = (unsigned)dir;
	pid = (pid_t)syscall(SYS_clone3, &a, sizeof(a));
	if (pid == 0)
		_exit(in_cgroup());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(sys_unlinkat(root, name, AT_REMOVEDIR), 0);
	assert_int_equal(status, 0);
	close(dir);
	close(root);
}

RUN_TESTS(cmocka_unit_test(a_container_gets_the_standard_devices_and_no_others),
	cmocka_unit_test(rules_apply_in_their_order),
	cmocka_unit_test(a_rule_for_both_types_with_numbers_opens_these_devices_only),
	cmocka_unit_test(version_1_gets_one_line_for_each_type),
	cmocka_unit_test(
		the_kernel_takes_the_program_and_a_process_cloned_into_the_cgroup_obeys_it))
