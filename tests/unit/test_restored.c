#include "tests/unit/test.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"
#include "runtime/container.h"
#include "svrun/checkpoint.h"

/* A container is made with one config, and looked at as if it had been restored with another. */
static const char base[] =
	"{'ociVersion': '1.2.0',"
	" 'process': {'user': {'uid': 0, 'gid': 0}, 'cwd': '/', 'noNewPrivileges': true,"
	"   'args': ['/busybox', 'sleep', '1000'], 'capabilities': {}},"
	" 'root': {'path': 'rootfs'},"
	" 'mounts': ["
	"   {'destination': '/proc', 'type': 'proc', 'source': 'proc'},"
	"   {'destination': '/dev', 'type': 'tmpfs', 'source': 'tmpfs', 'options': ['mode=755']},"
	"   {'destination': '/dev/pts', 'type': 'devpts', 'source': 'devpts',"
	"     'options': ['newinstance', 'ptmxmode=0666']},"
	"   {'destination': '/sys', 'type': 'sysfs', 'source': 'sysfs', 'options': ['ro']},"
	"   {'destination': '/sys/fs/cgroup', 'type': 'cgroup', 'source': 'cgroup',"
	"     'options': ['ro']},"
	"   {'destination': '/link/vol', 'type': 'bind', 'source': 'vol', 'options': ['bind']}],"
	" 'linux': {'namespaces': [{'type': 'mount'}, {'type': 'pid'}, {'type': 'network'},"
	"     {'type': 'ipc'}],"
	"   'maskedPaths': ['/proc/keys', '/proc/kcore', '/sys/firmware', '/nothing/here'],"
	"   'readonlyPaths': ['/proc/sys', '/proc/sys/kernel', '/proc/irq', '/etc']}}";

static const char user_ns[] =
	"{'linux': {'namespaces': [{'type': 'mount'}, {'type': 'pid'}, {'type': 'network'},"
	"     {'type': 'ipc'}, {'type': 'user'}],"
	"   'uidMappings': [{'containerID': 0, 'hostID': 100000, 'size': 10}],"
	"   'gidMappings': [{'containerID': 0, 'hostID': 100000, 'size': 10}]},"
	" 'mounts': [{'destination': '/proc', 'type': 'proc', 'source': 'proc'},"
	"   {'destination': '/dev', 'type': 'tmpfs', 'source': 'tmpfs',"
	"     'options': ['mode=755']}]}";

struct rig {
	char dir[64], rootfs[80];
	struct spec made, wanted;
	struct container *c;
	struct cgroup cgroup;
	struct err e;
};

static json_t *parse(const char *quoted)
{
	char *text = mem_strdup(quoted);
	struct err e = {0};
	json_t *json;

	for (char *c = text; *c; c++)
		if (*c == '\'')
			*c = '"';
	json = json_parse(text, strlen(text), &e);
	if (!json)
		fail_msg("%s: %s", text, e.text);
	free(text);
	return json;
}

static void read_config(struct spec *s, const char *patch)
{
	struct err e = {0};
	json_t *json = parse(base), *p = parse(patch ? patch : "{}");

	json_object_update_recursive(json, p);
	if (spec_read(s, json, "config.json", &e) < 0)
		fail_msg("%s", e.text);
	json_decref(p);
	json_decref(json);
}

static void make_tree(struct rig *r)
{
	static const char *const folders[] = {"", "/vol", "/vol/sub", "/other", "/rootfs",
		"/rootfs/proc", "/rootfs/dev", "/rootfs/sys", "/rootfs/etc", "/rootfs/etc/sub",
		"/rootfs/real", "/rootfs/real/vol", "/rootfs/proc2", NULL};
	auto_buf struct buf program = BUF_INIT(8 << 20);

	snprintf(r->dir, sizeof(r->dir), "/tmp/svrun-restored-XXXXXX");
	assert_non_null(mkdtemp(r->dir));
	assert_int_equal(chmod(r->dir, 0755), 0);
	snprintf(r->rootfs, sizeof(r->rootfs), "%s/rootfs", r->dir);
	for (size_t i = 1; folders[i]; i++) {
		auto_free char *path = mem_printf("%s%s", r->dir, folders[i]);

		assert_int_equal(mkdir(path, 0755), 0);
	}
	auto_fd int root = sys_open(r->rootfs, O_PATH | O_DIRECTORY, 0);
	assert_int_equal(symlinkat("/real", root, "link"), 0);
	if (file_read(AT_FDCWD, "/bin/busybox", &program, &r->e) < 0 ||
		file_write(root, "busybox", program.data, program.len, 0755, &r->e) < 0)
		fail_msg("%s", r->e.text);
}

static void rig_init(struct rig *r, const char *patch)
{
	struct container_options o = {
		.id = "restored-unit", .root = -1, .stdio = {0, 1, 2}, .door = -1};
	int status;

	if (geteuid() != 0 || access("/bin/busybox", X_OK) < 0)
		skip();
	*r = (struct rig){.c = NULL};
	make_tree(r);
	read_config(&r->made, patch);
	o.spec = &r->made;
	o.bundle = r->dir;
	if (cgroup_place(&o.cgroup, NULL, r->dir + strlen("/tmp/"), false, &r->e) < 0 ||
		container_create(&r->c, &o, &r->e) < 0 ||
		container_start(r->c, &status, &r->e) < 0 ||
		cgroup_open(&r->cgroup, container_cgroup(r->c), NULL, &r->e) < 0)
		fail_msg("%s", r->e.text);
}

static void rig_fini(struct rig *r)
{
	cgroup_fini(&r->cgroup);
	if (container_delete(r->c, &r->e) < 0)
		fail_msg("%s", r->e.text);
	spec_fini(&r->made);
	assert_int_equal(sys_remove_tree(AT_FDCWD, r->dir), 0);
}

/* Look at it with a config; text NULL: it passes. */
static void check(struct rig *r, const char *patch, const char *text)
{
	struct err e = {0};
	int rc;

	read_config(&r->wanted, patch);
	rc = restored_check(&r->wanted, r->rootfs, r->dir, &r->cgroup, container_pid(r->c), &e);
	spec_fini(&r->wanted);
	if (!text && rc < 0)
		fail_msg("%s: %s", patch ? patch : "the same", e.text);
	if (text && rc == 0)
		fail_msg("accepted, not %s", text);
	if (text && !strstr(e.text, text))
		fail_msg("expected %s\ngot      %s", text, e.text);
	assert_true(!text || e.kind == ERR_DENIED);
}

/* Of the config with a patch each; text NULL: it passes. */
static void made_and_checked(const char *made, const char *wanted, const char *text)
{
	struct rig r;

	rig_init(&r, made);
	check(&r, wanted, text);
	rig_fini(&r);
}

/* mount(2) in its mount namespace, with all rights. */
struct change {
	const char *source, *place, *type;
	unsigned long flags;
};

static void inside(struct rig *r, const struct change *m, int tree)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		auto_free char *path = mem_printf("/proc/%d/ns/mnt", (int)container_pid(r->c));
		int ns = open(path, O_RDONLY | O_CLOEXEC);

		if (ns < 0 || setns(ns, CLONE_NEWNS) < 0)
			_exit(1);
		for (; m->place && tree < 0; m++)
			if (sys_mount(m->source, m->place, m->type, m->flags, NULL) < 0)
				_exit(2);
		_exit(tree >= 0 &&
			sys_move_mount(tree, "", AT_FDCWD, m->place, MOVE_MOUNT_F_EMPTY_PATH) < 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* What the container does to its mounts, and what that is called. */
static void changed_and_checked(const char *made, const struct change *m, const char *text)
{
	struct rig r;

	rig_init(&r, made);
	inside(&r, m, -1);
	check(&r, made, text);
	rig_fini(&r);
}

TEST(what_the_config_says_passes)
{
	made_and_checked(NULL, NULL, NULL);
}

TEST(in_a_user_namespace_too)
{
	made_and_checked(user_ns, user_ns, NULL);
}

TEST(a_read_only_root_and_another_user_pass)
{
	static const char config[] =
		"{'root': {'readonly': true}, 'process': {'user': {'uid': 7, 'gid': 8,"
		" 'additionalGids': [9, 10]}}}";

	made_and_checked(config, config, NULL);
}

TEST(who_may_change_its_user_may_have)
{
	static const char config[] =
		"{'process': {'capabilities': {'bounding': ['CAP_SETUID', 'CAP_SETGID'],"
		" 'permitted': ['CAP_SETUID', 'CAP_SETGID'],"
		" 'effective': ['CAP_SETUID', 'CAP_SETGID']}}}";

	made_and_checked(
		"{'process': {'user': {'uid': 7, 'gid': 8, 'additionalGids': [9]}}}", config, NULL);
}

TEST(root_is_refused_where_the_config_has_another_user)
{
	made_and_checked(NULL, "{'process': {'user': {'uid': 1000, 'gid': 0}}}",
		"a process has the Uid 0, which the config does not grant");
}

TEST(also_without_no_new_privs)
{
	made_and_checked("{'process': {'noNewPrivileges': false}}",
		"{'process': {'noNewPrivileges': false, 'user': {'uid': 1000, 'gid': 0}}}",
		"a process has the Uid 0");
}

TEST(another_group_is_refused)
{
	made_and_checked(NULL, "{'process': {'user': {'uid': 0, 'gid': 5}}}",
		"a process has the Gid 0, which the config does not grant");
}

TEST(a_further_group_is_refused)
{
	made_and_checked("{'process': {'user': {'uid': 7, 'gid': 8, 'additionalGids': [9, 10]}}}",
		"{'process': {'user': {'uid': 7, 'gid': 8, 'additionalGids': [9]}}}",
		"a process has the Groups 10, which the config does not grant");
}

TEST(other_ids_of_a_user_namespace_are_refused)
{
	auto_free char *other = mem_strdup(user_ns);
	char *size = strstr(other, "'size': 10");

	memcpy(size, "'size': 99", strlen("'size': 99"));
	made_and_checked(user_ns, other, "the uid_map is not the config's");
}

TEST(without_masks_it_is_refused)
{
	made_and_checked("{'linux': {'maskedPaths': []}}", NULL, "/proc/keys is not masked");
}

TEST(a_folder_that_is_not_masked_is_refused)
{
	made_and_checked("{'linux': {'maskedPaths': ['/proc/keys', '/proc/kcore']}}", NULL,
		"/sys/firmware is not masked");
}

TEST(without_read_only_paths_it_is_refused)
{
	made_and_checked("{'linux': {'readonlyPaths': []}}", NULL, "/proc/sys is not read-only");
}

TEST(a_writable_sysfs_is_refused)
{
	made_and_checked("{'mounts': [{'destination': '/proc', 'type': 'proc', 'source': 'proc'},"
			 "{'destination': '/sys', 'type': 'sysfs', 'source': 'sysfs'}]}",
		NULL, "/sys is not read-only");
}

TEST(a_procfs_where_the_config_has_none_is_refused)
{
	static const struct change m[] = {{"proc", "/proc2", "proc", 0}, {NULL}};

	changed_and_checked(NULL, m, "a proc that is not the config's on /proc2");
}

TEST(a_part_of_it_elsewhere_is_refused)
{
	static const struct change m[] = {{"/proc/irq", "/proc2", NULL, MS_BIND}, {NULL}};

	changed_and_checked(NULL, m, "a proc that is not the config's on /proc2");
}

TEST(a_writable_part_below_a_read_only_path_is_refused)
{
	static const struct change m[] = {{"/proc/sys/fs", "/proc/sys/fs", NULL, MS_BIND},
		{NULL, "/proc/sys/fs", NULL, MS_REMOUNT | MS_BIND}, {NULL}};

	changed_and_checked(NULL, m, "/proc/sys/fs is not read-only");
}

TEST(a_writable_part_of_the_root_below_a_read_only_path_is_refused)
{
	static const struct change m[] = {{"/etc/sub", "/etc/sub", NULL, MS_BIND},
		{NULL, "/etc/sub", NULL, MS_REMOUNT | MS_BIND}, {NULL}};

	changed_and_checked(NULL, m, "/etc/sub is not read-only");
}

TEST(a_covered_procfs_is_refused)
{
	static const struct change m[] = {{"tmpfs", "/proc", "tmpfs", 0}, {NULL}};

	changed_and_checked("{'linux': {'maskedPaths': [], 'readonlyPaths': []}}", m,
		"the proc on /proc is covered");
}

TEST(a_tmpfs_over_a_masked_folder_must_be_read_only)
{
	static const struct change m[] = {{"tmpfs", "/sys/firmware", "tmpfs", 0}, {NULL}};

	changed_and_checked(NULL, m, "/sys/firmware is not masked");
}

TEST(a_masked_file_must_not_be_another_device)
{
	static const struct change m[] = {{"/dev/zero", "/proc/keys", NULL, MS_BIND}, {NULL}};

	changed_and_checked(NULL, m, "/proc/keys is not masked");
}

TEST(another_folder_of_the_disk_is_refused)
{
	static const struct change m[] = {{NULL, "/real/vol", NULL, 0}};
	struct rig r;
	auto_free char *path = NULL;

	rig_init(&r, NULL);
	path = mem_printf("%s/other", r.dir);
	auto_fd int tree = sys_open_tree(AT_FDCWD, path, OPEN_TREE_CLONE);
	assert_true(tree >= 0);
	inside(&r, m, tree);
	check(&r, NULL, "a mount that is not the config's");
	rig_fini(&r);
}

TEST(a_bind_of_another_source_is_refused)
{
	made_and_checked("{'mounts': [{'destination': '/link/vol', 'type': 'bind',"
			 "'source': 'other', 'options': ['bind']}]}",
		"{'mounts': [{'destination': '/link/vol', 'type': 'bind',"
		"'source': 'vol', 'options': ['bind']}]}",
		"on /real/vol");
}

TEST(a_bind_that_shall_be_read_only_is_also_through_a_link)
{
	made_and_checked("{'mounts': [{'destination': '/link/vol', 'type': 'bind',"
			 "'source': 'vol', 'options': ['bind']}]}",
		"{'mounts': [{'destination': '/link/vol', 'type': 'bind',"
		"'source': 'vol', 'options': ['bind', 'ro']}]}",
		"/real/vol is not read-only");
}

#define JAIL                                                                                       \
	"'process': {'args': ['/busybox', 'chroot', '/jail', '/busybox', 'sleep', '1000'],"        \
	" 'capabilities': {'bounding': ['CAP_SYS_CHROOT'], 'permitted': ['CAP_SYS_CHROOT'],"       \
	"   'effective': ['CAP_SYS_CHROOT']}},"                                                    \
	"'mounts': [{'destination': '/proc', 'type': 'proc', 'source': 'proc'},"                   \
	" {'destination': '/jail', 'type': 'bind', 'source': 'rootfs', 'options': ['bind']}]"

TEST(a_process_with_another_root_hides_nothing)
{
	struct rig r;
	char root[8] = "";

	rig_init(&r, "{" JAIL ", 'linux': {'maskedPaths': []}}");
	auto_free char *link = mem_printf("/proc/%d/root", (int)container_pid(r.c));
	for (int i = 0; i < 1000 && !str_starts(root, "/jail"); i++) {
		ssize_t n = readlink(link, root, sizeof(root) - 1);

		root[n > 0 ? n : 0] = '\0';
		usleep(10000);
	}
	check(&r, "{" JAIL "}", "/proc/keys is not masked");
	rig_fini(&r);
}

RUN_TESTS(cmocka_unit_test(what_the_config_says_passes), cmocka_unit_test(in_a_user_namespace_too),
	cmocka_unit_test(a_read_only_root_and_another_user_pass),
	cmocka_unit_test(who_may_change_its_user_may_have),
	cmocka_unit_test(root_is_refused_where_the_config_has_another_user),
	cmocka_unit_test(also_without_no_new_privs), cmocka_unit_test(another_group_is_refused),
	cmocka_unit_test(a_further_group_is_refused),
	cmocka_unit_test(other_ids_of_a_user_namespace_are_refused),
	cmocka_unit_test(without_masks_it_is_refused),
	cmocka_unit_test(a_folder_that_is_not_masked_is_refused),
	cmocka_unit_test(without_read_only_paths_it_is_refused),
	cmocka_unit_test(a_writable_sysfs_is_refused),
	cmocka_unit_test(a_procfs_where_the_config_has_none_is_refused),
	cmocka_unit_test(a_part_of_it_elsewhere_is_refused),
	cmocka_unit_test(a_writable_part_below_a_read_only_path_is_refused),
	cmocka_unit_test(a_writable_part_of_the_root_below_a_read_only_path_is_refused),
	cmocka_unit_test(a_covered_procfs_is_refused),
	cmocka_unit_test(a_tmpfs_over_a_masked_folder_must_be_read_only),
	cmocka_unit_test(a_masked_file_must_not_be_another_device),
	cmocka_unit_test(another_folder_of_the_disk_is_refused),
	cmocka_unit_test(a_bind_of_another_source_is_refused),
	cmocka_unit_test(a_bind_that_shall_be_read_only_is_also_through_a_link),
	cmocka_unit_test(a_process_with_another_root_hides_nothing))
