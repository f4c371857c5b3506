#include "tests/unit/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/str.h"
#include "base/sys.h"
#include "gpu/cdi.h"

/* Two folders of specs, the first one of less weight. */
struct folders {
	char top[32];
	char a[40], b[40];
	const char *v[3];
	struct strings dirs;
};

static int setup(void **state)
{
	struct folders *f = mem_alloc(sizeof(*f));

	snprintf(f->top, sizeof(f->top), "/tmp/svrun-cdi-XXXXXX");
	assert_non_null(mkdtemp(f->top));
	snprintf(f->a, sizeof(f->a), "%s/etc", f->top);
	snprintf(f->b, sizeof(f->b), "%s/run", f->top);
	assert_int_equal(mkdir(f->a, 0755) | mkdir(f->b, 0755), 0);
	f->v[0] = f->a;
	f->v[1] = f->b;
	f->v[2] = "/tmp/svrun-no-such-folder";
	f->dirs = (struct strings){f->v, 3};
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct folders *f = *state;

	sys_remove_tree(AT_FDCWD, f->top);
	free(f);
	return 0;
}
#define FOLDERS struct folders *f = *state
#undef TEST
#define TEST(name) static void name(void **state)

static void write_file(const char *dir, const char *name, const char *text)
{
	auto_free char *path = mem_printf("%s/%s", dir, name);
	auto_fd int fd = sys_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(sys_write_all(fd, text, strlen(text)), 0);
}

/* A spec whose devices set WHO to where they are from. */
static void write_spec(const char *dir, const char *name, const char *kind, const char *devices)
{
	auto_buf struct buf b = BUF_INIT(65536);

	buf_printf(&b,
		"{\"cdiVersion\":\"0.5.0\",\"kind\":\"%s\",\"containerEdits\":{\"env\":[\""
		"SPEC=%s\"]},\"devices\":[",
		kind, name);
	for (const char *p = devices; *p; p += strspn(p, " ")) {
		size_t n = strcspn(p, " ");

		buf_printf(&b,
			"%s{\"name\":\"%.*s\",\"containerEdits\":{\"env\":[\"D_%.*s=%s/%s\"]}"
			"}",
			p == devices ? "" : ",", (int)n, p, (int)n, p, dir, name);
		p += n;
	}
	buf_printf(&b, "]}");
	write_file(dir, name, b.data);
}

static const char *env_of(const struct gpu_edits *x, const char *name)
{
	for (size_t i = 0; i < x->nenv; i++)
		if (str_eq(x->env[i].name, name))
			return x->env[i].value;
	return NULL;
}

/* Resolve the names, as a start does; *c and *x are the caller's. */
static int ask(struct folders *f, struct cdi *c, struct gpu_edits *x, const char *const *names,
	struct err *e)
{
	const char *v[8];
	struct strings s = {v, 0};

	for (; names[s.n]; s.n++)
		v[s.n] = names[s.n];
	gpu_edits_init(x);
	if (cdi_load_for(c, &f->dirs, &s, e) < 0)
		return -1;
	return cdi_resolve(c, &s, NULL, x, e);
}
#define NAMES(...)                                                                                 \
	(const char *const[])                                                                      \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}

TEST(devices_are_found_in_all_folders_and_later_folders_win)
{
	FOLDERS;
	struct cdi c;
	struct gpu_edits x;

	write_spec(f->a, "one.json", "v.com/gpu", "0 1");
	write_spec(f->b, "one.json", "v.com/gpu", "1 2");
	write_file(f->b, "two.yaml",
		"cdiVersion: 0.5.0\nkind: w.com/nic\ndevices:\n- name: 0\n"
		"  containerEdits: {env: [N=0]}\n");
	assert_int_equal(cdi_load(&c, &f->dirs, NULL), 0);
	assert_int_equal(c.n, 4);
	assert_int_equal(c.nerrors, 0);
	assert_string_equal(c.v[1].name, "1");
	assert_true(str_starts(c.v[1].file, f->b));
	assert_null(c.v[1].conflict);
	assert_string_equal(c.v[3].vendor, "w.com");
	cdi_fini(&c);
	if (ask(f, &c, &x, NAMES("v.com/gpu=0", "v.com/gpu=1", "w.com/nic=0", "v.com/gpu=0"),
		    NULL) < 0)
		fail();
	assert_int_equal(x.nenv, 4);
	assert_true(str_starts(env_of(&x, "D_0"), f->a));
	assert_true(str_starts(env_of(&x, "D_1"), f->b));
	assert_string_equal(env_of(&x, "SPEC"), "one.json");
	gpu_edits_fini(&x);
	cdi_fini(&c);
}

TEST(a_device_twice_in_one_folder_cannot_be_had_unless_a_later_folder_has_it)
{
	FOLDERS;
	struct cdi c;
	struct gpu_edits x;
	struct err e = {0};
	char want[200];

	write_spec(f->a, "one.json", "v.com/gpu", "0 1");
	write_spec(f->a, "two.json", "v.com/gpu", "1 2");
	assert_int_equal(ask(f, &c, &x, NAMES("v.com/gpu=2"), NULL), 0);
	gpu_edits_fini(&x);
	cdi_fini(&c);
	assert_int_equal(ask(f, &c, &x, NAMES("v.com/gpu=0", "v.com/gpu=1"), &e), -1);
	assert_int_equal(e.kind, ERR_EXISTS);
	snprintf(want, sizeof(want),
		"CDI device v.com/gpu=1 is in both %s/one.json and %s/two.json", f->a, f->a);
	assert_string_equal(e.text, want);
	gpu_edits_fini(&x);
	cdi_fini(&c);
	write_spec(f->b, "three.json", "v.com/gpu", "1");
	assert_int_equal(ask(f, &c, &x, NAMES("v.com/gpu=1"), NULL), 0);
	gpu_edits_fini(&x);
	cdi_fini(&c);
}

TEST(every_name_that_is_missing_is_told_with_folders_and_errors)
{
	FOLDERS;
	struct cdi c;
	struct gpu_edits x;
	struct err e = {0};
	char want[400];

	write_spec(f->a, "one.json", "v.com/gpu", "0 1");
	write_file(f->b, "bad.json", "{\"kind\":\"v.com/gpu\",\n}");
	write_file(f->b, "other.json", "{\"kind\":\"w.com/gpu\",\n}");
	assert_int_equal(ask(f, &c, &x, NAMES("v.com/gpu=7", "v.com/gpu=1", "u.com/x=y"), &e), -1);
	assert_int_equal(e.kind, ERR_NOT_FOUND);
	snprintf(want, sizeof(want),
		"CDI devices that cannot be had: v.com/gpu=7, u.com/x=y (searched: %s %s "
		"/tmp/svrun-no-such-folder); %s/bad.json:2:1: string or '}' expected near '}'",
		f->a, f->b, f->b);
	assert_string_equal(e.text, want);
	assert_string_equal(e.hint, "there are 0, 1");
	gpu_edits_fini(&x);
	cdi_fini(&c);
	/* A broken file that cannot have it harms nobody. */
	assert_int_equal(ask(f, &c, &x, NAMES("v.com/gpu=1"), NULL), 0);
	gpu_edits_fini(&x);
	cdi_fini(&c);
}

TEST(a_name_that_is_none_is_a_usage_error)
{
	FOLDERS;
	struct cdi c;
	struct gpu_edits x;
	struct err e = {0};

	assert_int_equal(ask(f, &c, &x, NAMES("v.com/gpu"), &e), -1);
	assert_int_equal(e.kind, ERR_USAGE);
	gpu_edits_fini(&x);
}

TEST(what_is_no_file_is_told_and_never_waited_for)
{
	FOLDERS;
	static const char *const wants[] = {"dev.json: a device, not a file",
		"dir.json: a folder, not a file", "fifo.json: a pipe, not a file",
		"fifo2.yaml: a pipe, not a file", "loop.json: Too many levels of symbolic links",
		"lost.json: No such file or directory", "open.json: anybody may write to it"};
	auto_fd int dir = sys_open(f->a, O_RDONLY | O_DIRECTORY, 0);
	struct cdi c;

	write_spec(f->b, "real.json", "v.com/gpu", "0");
	write_spec(f->a, "open.json", "v.com/gpu", "1");
	assert_int_equal(fchmodat(dir, "open.json", 0666, 0), 0);
	assert_int_equal(symlinkat("../run/real.json", dir, "link.json"), 0);
	assert_int_equal(symlinkat("loop.json", dir, "loop.json"), 0);
	assert_int_equal(symlinkat("nowhere", dir, "lost.json"), 0);
	assert_int_equal(symlinkat("/dev/zero", dir, "dev.json"), 0);
	assert_int_equal(mkfifoat(dir, "fifo.json", 0600), 0);
	assert_int_equal(symlinkat("fifo.json", dir, "fifo2.yaml"), 0);
	assert_int_equal(mkdirat(dir, "dir.json", 0755), 0);
	assert_int_equal(mkdirat(dir, "sub", 0755), 0);
	write_file(f->a, ".hidden.json", "x");
	write_file(f->a, "note.txt", "x");
	write_file(f->a, "old.yml", "x");
	assert_int_equal(cdi_load(&c, &f->dirs, NULL), 0);
	assert_int_equal(c.n, 1);
	assert_true(str_starts(c.v[0].file, f->b)); /* the link's is of less weight */
	assert_int_equal(c.nerrors, sizeof(wants) / sizeof(wants[0]));
	for (size_t i = 0; i < c.nerrors; i++)
		if (!str_ends(c.errors[i].text, wants[i]))
			fail_msg("%s, not %s", c.errors[i].text, wants[i]);
	cdi_fini(&c);
}

TEST(a_kind_that_is_escaped_is_found_too)
{
	FOLDERS;
	struct cdi c;
	struct gpu_edits x;

	write_file(f->a, "a.json",
		"{\"cdiVersion\":\"0.5.0\",\"kind\":\"v.com\\/gpu\",\"devices\":[{\"name\":\"0\","
		"\"containerEdits\":{\"env\":[\"A=b\"]}}]}");
	write_file(f->b, "b.yaml",
		"cdiVersion: 0.5.0\nkind: \"w\\x2ecom/gpu\"\ndevices:\n- name: 0\n"
		"  containerEdits: {env: [A=b]}\n");
	assert_int_equal(ask(f, &c, &x, NAMES("v.com/gpu=0", "w.com/gpu=0"), NULL), 0);
	gpu_edits_fini(&x);
	cdi_fini(&c);
}

TEST(all_edits_of_a_device_are_added)
{
	FOLDERS;
	struct cdi c;
	struct gpu_edits x;
	struct err e = {0};

	write_file(f->a, "a.yaml",
		"cdiVersion: 1.1.0\nkind: v.com/gpu\ncontainerEdits:\n"
		"  intelRdt: {closID: spec}\n  env: [A=spec, B=1]\n  additionalGids: [0, 44, 44]\n"
		"devices:\n- name: 0\n  containerEdits:\n    env: [A=dev]\n    deviceNodes:\n"
		"    - {path: /dev/x0, hostPath: /dev/null, permissions: r}\n"
		"    - {path: /dev/x1, type: c, major: 195, fileMode: 0o20660, uid: 1}\n"
		"    - {path: /dev/x2, type: c, major: 0, minor: 0, permissions: none}\n"
		"    mounts:\n    - hostPath: /usr/bin/env\n      containerPath: /bin/x\n"
		"      options: [ro]\n    additionalGids: [109]\n    netDevices:\n"
		"    - {hostInterfaceName: eth1, name: net0}\n"
		"    intelRdt: {closID: dev, schemata: ['L3:0=f'], enableMonitoring: true}\n"
		"    hooks:\n    - hookName: createContainer\n      path: "
		"/usr/bin/nvidia-cdi-hook\n"
		"      args: [nvidia-cdi-hook, create-symlinks, --link, 'a::/b']\n"
		"    - hookName: createContainer\n      path: /usr/bin/nvidia-cdi-hook\n"
		"      args: [nvidia-cdi-hook, update-application-profile]\n");
	if (ask(f, &c, &x, NAMES("v.com/gpu=0"), &e) < 0)
		fail_msg("%s", e.text);
	assert_string_equal(env_of(&x, "A"), "dev");
	assert_string_equal(env_of(&x, "B"), "1");
	assert_int_equal(x.ngids, 2);
	assert_string_equal(x.rdt.clos_id, "dev");
	assert_true(x.rdt.monitor);
	assert_int_equal(x.rdt.schemata.n, 1);
	assert_int_equal(x.nnodes, 3);
	assert_string_equal(x.nodes[0].host_path, "/dev/null");
	assert_string_equal(x.nodes[0].access, "r");
	assert_null(x.nodes[1].host_path);
	assert_true(x.nodes[1].has_number && x.nodes[1].has_mode && x.nodes[1].has_uid);
	assert_int_equal(x.nodes[1].mode, 0660);
	assert_string_equal(x.nodes[1].access, "rw");
	assert_string_equal(x.nodes[2].host_path, "/dev/x2");
	assert_false(x.nodes[2].has_number);
	assert_string_equal(x.nodes[2].access, "");
	assert_int_equal(x.nmounts, 1);
	assert_int_equal(x.mounts[0].noptions, 1);
	assert_int_equal(x.nnetdevs, 1);
	assert_int_equal(x.nlinks, 1);
	assert_null(x.visible_profile); /* no /dev/nvidiaN */
	gpu_edits_fini(&x);
	cdi_fini(&c);
}

TEST(a_device_that_asks_for_too_much_is_named_with_its_file)
{
	FOLDERS;
	struct cdi c;
	struct gpu_edits x;
	struct err e = {0};
	char want[200];

	write_file(f->a, "a.yaml",
		"cdiVersion: 0.5.0\nkind: v.com/gpu\ndevices:\n- name: 0\n"
		"  containerEdits:\n    mounts:\n"
		"    - {hostPath: /, containerPath: /host, options: [ro]}\n");
	assert_int_equal(ask(f, &c, &x, NAMES("v.com/gpu=0"), &e), -1);
	snprintf(want, sizeof(want),
		"CDI device v.com/gpu=0 of %s/a.yaml: /host: mount of the host's root: no "
		"container "
		"gets it",
		f->a);
	assert_string_equal(e.text, want);
	assert_int_equal(e.kind, ERR_DENIED);
	gpu_edits_fini(&x);
	cdi_fini(&c);
}

TEST(a_huge_file_is_not_read)
{
	FOLDERS;
	auto_free char *path = mem_printf("%s/huge.json", f->a);
	struct cdi c;

	write_file(f->a, "huge.json", "{");
	assert_int_equal(truncate(path, 1LL << 40), 0);
	assert_int_equal(cdi_load(&c, &f->dirs, NULL), 0);
	assert_int_equal(c.nerrors, 1);
	assert_true(
		str_ends(c.errors[0].text, "huge.json: longer than the limit of 4194304 bytes"));
	cdi_fini(&c);
}

#define WITH_FOLDERS(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
RUN_TESTS(WITH_FOLDERS(devices_are_found_in_all_folders_and_later_folders_win),
	WITH_FOLDERS(a_device_twice_in_one_folder_cannot_be_had_unless_a_later_folder_has_it),
	WITH_FOLDERS(every_name_that_is_missing_is_told_with_folders_and_errors),
	WITH_FOLDERS(a_name_that_is_none_is_a_usage_error),
	WITH_FOLDERS(what_is_no_file_is_told_and_never_waited_for),
	WITH_FOLDERS(a_kind_that_is_escaped_is_found_too),
	WITH_FOLDERS(all_edits_of_a_device_are_added),
	WITH_FOLDERS(a_device_that_asks_for_too_much_is_named_with_its_file),
	WITH_FOLDERS(a_huge_file_is_not_read))
