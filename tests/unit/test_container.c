#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"
#include "runtime/container.h"
#include "runtime/door.h"

/* Containers whose root is the host's own tree, read-only, with a /tmp of their own: every host has
 * a shell. */
static const char base[] =
	"{\"ociVersion\": \"1.2.0\","
	" \"process\": {\"user\": {\"uid\": 0, \"gid\": 0}, \"cwd\": \"/tmp/work\","
	"   \"args\": [\"sh\", \"-c\", \"exit 3\"], \"noNewPrivileges\": true,"
	"   \"env\": [\"PATH=/usr/bin:/bin\"],"
	"   \"capabilities\": {\"bounding\": [\"CAP_KILL\"], \"permitted\": [\"CAP_KILL\"],"
	"     \"effective\": [\"CAP_KILL\"]}},"
	" \"root\": {\"path\": \"/\", \"readonly\": true}, \"hostname\": \"inside\","
	" \"mounts\": ["
	"   {\"destination\": \"/proc\", \"type\": \"proc\", \"source\": \"proc\"},"
	"   {\"destination\": \"/dev\", \"type\": \"tmpfs\", \"source\": \"tmpfs\","
	"     \"options\": [\"mode=755\"]},"
	"   {\"destination\": \"/dev/pts\", \"type\": \"devpts\", \"source\": \"devpts\","
	"     \"options\": [\"newinstance\", \"ptmxmode=0666\"]},"
	"   {\"destination\": \"/tmp\", \"type\": \"tmpfs\", \"source\": \"tmpfs\"}],"
	" \"linux\": {\"namespaces\": [{\"type\": \"mount\"}, {\"type\": \"pid\"}, {\"type\": "
	"\"uts\"},"
	"   {\"type\": \"ipc\"}, {\"type\": \"network\"}, {\"type\": \"cgroup\"}],"
	"   \"maskedPaths\": [\"/proc/kcore\", \"/proc/keys\", \"/nothing/here\"],"
	"   \"readonlyPaths\": [\"/proc/sys\"]}}";

struct rig {
	json_t *json;
	struct spec spec;
	struct seccomp_prog filter;
	struct container *c;
	struct err e;
	int status;
};

/* Set members of /process, /linux or the top, from JSON text. */
static void patch(struct rig *r, const char *where, const char *text)
{
	json_t *p = json_parse(text, strlen(text), &r->e);

	if (!p)
		fail_msg("%s", r->e.text);
	json_object_update(*where ? json_object_get(r->json, where) : r->json, p);
	json_decref(p);
}

static void rig_init(struct rig *r, const char *script)
{
	*r = (struct rig){.c = NULL};
	if (geteuid() != 0)
		skip();
	r->json = json_parse(base, strlen(base), &r->e);
	if (!r->json)
		fail_msg("%s", r->e.text);
	if (script)
		json_array_set_new(json_object_get(json_object_get(r->json, "process"), "args"), 2,
			json_string(script));
	json_object_set_new(json_object_get(r->json, "linux"), "seccomp",
		json_pack("{s:s, s:[{s:[s, s], s:s}]}", "defaultAction", "SCMP_ACT_ALLOW",
			"syscalls", "names", "swapon", "mount", "action", "SCMP_ACT_ERRNO"));
}

static const struct container_options defaults = {
	.id = "unit", .bundle = "/tmp", .root = -1, .stdio = {0, 1, 2}, .door = -1};

static struct container_options rig_options(struct rig *r)
{
	struct container_options o = defaults;

	if (spec_read(&r->spec, r->json, "config.json", &r->e) < 0 ||
		(r->spec.has_seccomp && seccomp_compile(&r->filter, &r->spec.seccomp, &r->e) < 0))
		fail_msg("%s", r->e.text);
	o.spec = &r->spec;
	o.filter = r->spec.has_seccomp ? &r->filter : NULL;
	return o;
}

static int rig_create(struct rig *r)
{
	struct container_options o = rig_options(r);

	return container_create(&r->c, &o, &r->e);
}

static void rig_fini(struct rig *r)
{
	if (container_delete(r->c, &r->e) < 0)
		fail_msg("%s", r->e.text);
	seccomp_prog_fini(&r->filter);
	spec_fini(&r->spec);
	json_decref(r->json);
}

static int reap(struct rig *r)
{
	int raw;

	if (waitpid(container_pid(r->c), &raw, 0) < 0)
		return -1;
	r->status = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
	return 0;
}

/* Run to the end; the status must be this. */
static void ends_with(struct rig *r, int status)
{
	if (rig_create(r) < 0 || container_start(r->c, &r->status, &r->e) < 0 || reap(r) < 0)
		fail_msg("%s", r->e.text);
	assert_int_equal(r->status, status);
	rig_fini(r);
}

TEST(a_program_runs_and_its_status_comes_back)
{
	struct rig r;

	rig_init(&r, "exit 3");
	ends_with(&r, 3);
}

TEST(one_that_starts_at_once_needs_no_second_word)
{
	struct container_options o;
	struct rig r;

	rig_init(&r, "exit 5");
	o = rig_options(&r);
	o.at_once = true;
	assert_int_equal(container_create(&r.c, &o, &r.e), 0);
	assert_int_equal(container_start(r.c, &r.status, &r.e), 0);
	assert_int_equal(reap(&r), 0);
	assert_int_equal(r.status, 5);
	rig_fini(&r);
}

TEST(inside_it_is_first_process_of_another_host)
{
	struct rig r;

	rig_init(&r, "test $$ = 1 && test \"$(uname -n)\" = inside && test \"$(pwd)\" = /tmp/work");
	ends_with(&r, 0);
}

TEST(the_root_is_read_only_and_the_tmpfs_is_not)
{
	struct rig r;

	rig_init(&r, "! touch /etc/svrun-was-here 2>/dev/null && touch /tmp/x && "
		     "! sh -c 'echo 1 >/proc/sys/kernel/shmmax' 2>/dev/null");
	ends_with(&r, 0);
}

TEST(masked_files_are_the_null_device)
{
	struct rig r;

	rig_init(&r, "test -c /proc/keys && test -z \"$(cat /proc/keys)\" && "
		     "! chmod 0 /proc/keys 2>/dev/null");
	ends_with(&r, 0);
}

TEST(nothing_but_the_standard_streams_is_open)
{
	struct rig r;
	int leak = open("/", O_PATH | O_DIRECTORY); /* not close-on-exec */

	rig_init(&r, "set -- /proc/self/fd/*; for f; do case $f in */0|*/1|*/2) ;; "
		     "*) test -e $f && exit 1;; esac; done; exit 0");
	assert_true(leak >= 3);
	ends_with(&r, 0);
	close(leak);
}

TEST(capabilities_and_filter_are_in_force)
{
	struct rig r;

	rig_init(&r, "grep -q 'CapBnd:.0000000000000020' /proc/self/status && "
		     "grep -q 'CapEff:.0000000000000020' /proc/self/status && "
		     "grep -q 'NoNewPrivs:.1' /proc/self/status && "
		     "grep -q 'Seccomp:.2' /proc/self/status");
	ends_with(&r, 0);
}

TEST(another_user_has_just_the_groups_of_the_config)
{
	struct rig r;

	rig_init(&r, "test \"$(id -u):$(id -g):$(id -G)\" = 1234:5678:'5678 42'");
	patch(&r, "process",
		"{\"user\": {\"uid\": 1234, \"gid\": 5678, \"additionalGids\": [42]},"
		" \"capabilities\": {}, \"cwd\": \"/\"}");
	ends_with(&r, 0);
}

static void create_fails(struct rig *r, const char *text)
{
	assert_int_equal(rig_create(r), -1);
	assert_string_equal(r->e.text, text);
	r->c = NULL;
	rig_fini(r);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static const char not_there[] =
	"exec 'no-such-program': executable file not found in PATH (/usr/bin:/bin)";

/* Who creates now and starts later, hears it now; who starts at once, with the status to end with.
 */
TEST(a_program_that_is_not_there_is_127_and_nothing_is_left)
{
	struct container_options o;
	struct rig r;

	rig_init(&r, NULL);
	patch(&r, "process", "{\"args\": [\"no-such-program\"]}");
	create_fails(&r, not_there);
	rig_init(&r, NULL);
	patch(&r, "process", "{\"args\": [\"no-such-program\"]}");
	o = rig_options(&r);
	o.at_once = true;
	assert_int_equal(container_create(&r.c, &o, &r.e), 0);
	assert_int_equal(container_start(r.c, &r.status, &r.e), -1);
	assert_int_equal(r.status, 127);
	assert_string_equal(r.e.text, not_there);
	rig_fini(&r);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child */
}

TEST(a_step_that_fails_says_what_and_leaves_no_process)
{
	struct rig r;

	rig_init(&r, NULL);
	patch(&r, "", "{\"root\": {\"path\": \"/no/such/root\"}}");
	create_fails(&r, "root /no/such/root: No such file or directory");
	rig_init(&r, NULL);
	patch(&r, "",
		"{\"mounts\": [{\"destination\": \"/tmp\", \"type\": \"bind\","
		" \"source\": \"/no/such/source\"}]}");
	create_fails(&r, "mount /tmp: /no/such/source: bind: No such file or directory");
	rig_init(&r, NULL);
	patch(&r, "", "{\"mounts\": [{\"destination\": \"/tmp\", \"type\": \"nofs\"}]}");
	create_fails(&r, "mount /tmp: file system nofs: No such device");
	rig_init(&r, NULL);
	patch(&r, "",
		"{\"mounts\": [{\"destination\": \"/tmp\", \"type\": \"tmpfs\","
		" \"options\": [\"size=many\"]}]}");
	create_fails(&r, "mount /tmp: option 'size=many' of tmpfs: Invalid argument");
	rig_init(&r, NULL);
	patch(&r, "linux", "{\"sysctl\": {\"kernel.panic\": \"1\"}}");
	create_fails(&r, "sysctl kernel.panic would change the host");
}

TEST(one_without_a_process_can_be_created_and_not_started)
{
	struct rig r;

	rig_init(&r, NULL);
	patch(&r, "", "{\"process\": null}");
	assert_int_equal(rig_create(&r), 0);
	assert_int_equal(container_start(r.c, &r.status, &r.e), -1);
	assert_string_equal(r.e.text, "the config has no process to start");
	rig_fini(&r);
}

/* Another process could do the same: all that is needed is the folder and the pid. */
TEST(a_released_container_waits_at_its_door)
{
	char dir[] = "/tmp/svrun-door-XXXXXX";
	struct container_options o;
	struct container_start start;
	struct rig r;
	pid_t pid;
	int fd;

	rig_init(&r, "exit 7");
	assert_non_null(mkdtemp(dir));
	fd = sys_open(dir, O_RDONLY | O_DIRECTORY, 0);
	o = rig_options(&r);
	o.detach = true;
	o.door = door_make(fd, "door", &r.e);
	assert_true(o.door >= 0);
	assert_int_equal(container_create(&r.c, &o, &r.e), 0);
	pid = container_pid(r.c);
	close(o.door);
	assert_int_equal(container_release(r.c, &r.e), 0);
	r.c = NULL;
	start = (struct container_start){&r.spec, "unit", "/tmp", "created", pid, pid, -1};
	assert_int_equal(door_knock(fd, "door", pid + 1, &r.e), -1);
	start.sock = door_knock(fd, "door", pid, &r.e);
	if (start.sock < 0 || container_start_at(&start, &r.status, &r.e) < 0)
		fail_msg("%s", r.e.text);
	close(start.sock);
	assert_int_equal(waitpid(pid, &r.status, 0), pid);
	assert_int_equal(WEXITSTATUS(r.status), 7);
	rig_fini(&r);
	close(fd);
	assert_int_equal(sys_remove_tree(AT_FDCWD, dir), 0);
}

TEST(namespaces_are_joined_by_path)
{
	struct rig first, r;
	char text[512];
	int pid;

	rig_init(&first, "sleep 1000");
	if (rig_create(&first) < 0 || container_start(first.c, &first.status, &first.e) < 0)
		fail_msg("%s", first.e.text);
	pid = (int)container_pid(first.c);
	snprintf(text, sizeof(text),
		"{\"namespaces\": [{\"type\": \"mount\"}, {\"type\": \"cgroup\"},"
		" {\"type\": \"pid\", \"path\": \"/proc/%d/ns/pid\"},"
		" {\"type\": \"network\", \"path\": \"/proc/%d/ns/net\"},"
		" {\"type\": \"uts\", \"path\": \"/proc/%d/ns/uts\"}]}",
		pid, pid, pid);
	rig_init(&r,
		"test $$ != 1 && test \"$(uname -n)\" = inside && grep -q sleep /proc/1/cmdline");
	patch(&r, "linux", text);
	json_object_del(r.json, "hostname");
	ends_with(&r, 0);
	rig_fini(&first);
	rig_init(&r, NULL);
	patch(&r, "linux",
		"{\"namespaces\": [{\"type\": \"mount\"},"
		" {\"type\": \"network\", \"path\": \"/proc/self/ns/uts\"}]}");
	json_object_del(r.json, "hostname");
	create_fails(&r, "/proc/self/ns/uts is no network namespace");
}

TEST(a_user_namespace_has_its_own_root)
{
	struct rig r;

	rig_init(&r, "test \"$(id -u)\" = 0 && grep -q '0 *100000 *1000' /proc/self/uid_map && "
		     "test -c /dev/null && test -w /tmp && echo x >/dev/null");
	patch(&r, "linux",
		"{\"namespaces\": [{\"type\": \"mount\"}, {\"type\": \"pid\"}, {\"type\": "
		"\"user\"},"
		" {\"type\": \"uts\"}, {\"type\": \"ipc\"}],"
		" \"uidMappings\": [{\"containerID\": 0, \"hostID\": 100000, \"size\": 1000}],"
		" \"gidMappings\": [{\"containerID\": 0, \"hostID\": 100000, \"size\": 1000}]}");
	ends_with(&r, 0);
}

TEST(a_time_namespace_has_its_offsets)
{
	struct rig r;

	if (access("/proc/self/ns/time", F_OK) < 0)
		skip();
	rig_init(&r, "test \"$(cut -d. -f1 /proc/uptime)\" -gt 1000000");
	patch(&r, "linux",
		"{\"namespaces\": [{\"type\": \"mount\"}, {\"type\": \"pid\"}, {\"type\": \"uts\"},"
		" {\"type\": \"time\"}], \"timeOffsets\": {\"boottime\": {\"secs\": 1000000}}}");
	ends_with(&r, 0);
}

/* Each writes its name and what it got into a file of the host's; those of the container's own
 * namespaces run while the host's tree is still there. */
TEST(hooks_run_at_their_places_and_know_the_container)
{
	char file[] = "/tmp/svrun-hooks-XXXXXX", text[2048], said[4096] = "";
	struct rig r;
	int fd = mkstemp(file);

	rig_init(&r, "exit 0");
	assert_true(fd >= 0);
	snprintf(text, sizeof(text),
		"{\"hooks\": {"
		" \"prestart\": [{\"path\": \"/bin/sh\", \"args\": [\"sh\", \"-c\","
		"   \"echo 1 $(pwd) $A $HOME $(cat) >>%s\"], \"env\": [\"A=b\"]}],"
		" \"createRuntime\": [{\"path\": \"/bin/sh\", \"args\": [\"sh\", \"-c\","
		"   \"echo 2 >>%s\"]}],"
		" \"createContainer\": [{\"path\": \"/bin/sh\", \"args\": [\"sh\", \"-c\","
		"   \"echo 3 $(uname -n) $(cat) >>%s\"]}],"
		" \"startContainer\": [{\"path\": \"/bin/sh\", \"args\": [\"sh\", \"-c\","
		"   \"cat >/tmp/started\"]}]}, \"annotations\": {\"k\": \"v\"}}",
		file, file, file);
	patch(&r, "", text);
	patch(&r, "process", "{\"args\": [\"sh\", \"-c\", \"grep -q created /tmp/started\"]}");
	if (rig_create(&r) < 0)
		fail_msg("%s", r.e.text);
	snprintf(text, sizeof(text),
		"1 / b {\"ociVersion\":\"" SPEC_VERSION
		"\",\"id\":\"unit\",\"status\":\"creating\","
		"\"bundle\":\"/tmp\",\"pid\":%d,\"annotations\":{\"k\":\"v\"}}\n2\n3 inside {",
		(int)container_pid(r.c));
	assert_true(read(fd, said, sizeof(said) - 1) > 0);
	assert_memory_equal(said, text, strlen(text));
	if (container_start(r.c, &r.status, &r.e) < 0 || reap(&r) < 0)
		fail_msg("%s", r.e.text);
	assert_int_equal(r.status, 0);
	rig_fini(&r);
	close(fd);
	unlink(file);
}

TEST(a_hook_that_fails_leaves_nothing)
{
	static const char *const kinds[] = {"prestart", "createRuntime", "createContainer"};
	char text[256], want[256];
	struct rig r;

	for (size_t i = 0; i < 3; i++) {
		rig_init(&r, NULL);
		snprintf(text, sizeof(text),
			"{\"hooks\": {\"%s\": [{\"path\": \"/bin/sh\","
			" \"args\": [\"sh\", \"-c\", \"echo no >&2; exit 4\"]}]}}",
			kinds[i]);
		snprintf(want, sizeof(want), "%s hook 0, /bin/sh: ended with status 4: no\n",
			kinds[i]);
		patch(&r, "", text);
		create_fails(&r, want);
	}
}

TEST(a_created_container_that_is_never_started_goes_away)
{
	struct rig r;

	rig_init(&r, "exit 0");
	assert_int_equal(rig_create(&r), 0);
	assert_int_equal(kill(container_pid(r.c), 0), 0);
	rig_fini(&r);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

TEST(deleting_a_running_container_kills_everything_in_it)
{
	struct rig r;
	pid_t pid;

	rig_init(&r, "sleep 1000 & sleep 1000 & wait");
	assert_int_equal(rig_create(&r), 0);
	assert_int_equal(container_start(r.c, &r.status, &r.e), 0);
	pid = container_pid(r.c);
	rig_fini(&r);
	assert_int_equal(kill(pid, 0), -1);
}

TEST(a_terminal_is_one_of_the_containers_own)
{
	struct rig r;
	int master;

	rig_init(&r, "test \"$(tty)\" = /dev/pts/0 && test -c /dev/console && "
		     "test \"$(stty size)\" = '24 81' && test -w /dev/tty");
	patch(&r, "process",
		"{\"terminal\": true, \"consoleSize\": {\"height\": 24, \"width\": 81}}");
	assert_int_equal(rig_create(&r), 0);
	master = container_take_terminal(r.c);
	assert_true(master >= 0);
	assert_true(isatty(master));
	assert_int_equal(container_take_terminal(r.c), -1);
	assert_int_equal(container_start(r.c, &r.status, &r.e), 0);
	assert_int_equal(reap(&r), 0);
	assert_int_equal(r.status, 0);
	close(master);
	rig_fini(&r);
}

/* A root without a mount on /dev, in which the image has a link where a device should be: as the
 * first step of opening the host's file as the null device (CVE-2026-88264). */
TEST(devices_of_an_image_must_be_devices)
{
	char dir[] = "/tmp/svrun-root-XXXXXX", text[256];
	struct rig r;
	int fd;

	rig_init(&r, NULL);
	assert_non_null(mkdtemp(dir));
	fd = sys_open(dir, O_PATH | O_DIRECTORY, 0);
	assert_int_equal(sys_mkdirat(fd, "dev", 0755), 0);
	snprintf(text, sizeof(text), "{\"root\": {\"path\": \"%s\"}, \"mounts\": []}", dir);
	patch(&r, "", text);
	assert_int_equal(sys_symlinkat("/tmp", fd, "dev/null"), 0);
	create_fails(&r, "device null in the root is something else");
	assert_int_equal(sys_unlinkat(fd, "dev/null", 0), 0);
	assert_int_equal(mknodat(fd, "dev/null", S_IFCHR | 0666, 1), 0);
	rig_init(&r, NULL);
	patch(&r, "", text);
	create_fails(&r, "device null in the root is something else");
	/* Where nothing is in the way, the nodes are made in the image's own folder. */
	assert_int_equal(sys_unlinkat(fd, "dev/null", 0), 0);
	rig_init(&r, NULL);
	patch(&r, "", text);
	patch(&r, "", "{\"process\": null}");
	assert_int_equal(rig_create(&r), 0);
	rig_fini(&r);
	assert_int_equal(faccessat(fd, "dev/urandom", F_OK, 0), 0);
	close(fd);
	assert_int_equal(sys_remove_tree(AT_FDCWD, dir), 0);
}

/* A volume that never answers. */
static int fill_forever(void *ctx, int root, const uint64_t *own, size_t nown, struct err *e)
{
	(void)ctx;
	(void)root;
	(void)own;
	(void)nown;
	(void)e;
	while (pause() < 0)
		;
	return 0;
}

static int somebody_wants_the_end(void *ctx, int fd, struct err *e)
{
	(void)fd;
	++*(int *)ctx;
	return err_set(e, ERR_SYSTEM, "told to end");
}

TEST(a_start_that_hangs_is_ended_by_whoever_waits_for_it)
{
	struct rig rig, *r = &rig;
	struct container_options o;
	int asked = 0;

	rig_init(r, NULL);
	o = rig_options(r);
	o.fill = fill_forever;
	o.wait = somebody_wants_the_end;
	o.wait_ctx = &asked;
	o.at_once = true;
	assert_int_equal(container_create(&r->c, &o, &r->e), -1);
	assert_string_equal(r->e.text, "told to end");
	assert_int_equal(asked, 1);
	/* nothing of it is left to be waited for */
	assert_true(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
	r->e = (struct err){0};
	rig_fini(r);
}

RUN_TESTS(cmocka_unit_test(a_program_runs_and_its_status_comes_back),
	cmocka_unit_test(one_that_starts_at_once_needs_no_second_word),
	cmocka_unit_test(a_start_that_hangs_is_ended_by_whoever_waits_for_it),
	cmocka_unit_test(inside_it_is_first_process_of_another_host),
	cmocka_unit_test(the_root_is_read_only_and_the_tmpfs_is_not),
	cmocka_unit_test(masked_files_are_the_null_device),
	cmocka_unit_test(nothing_but_the_standard_streams_is_open),
	cmocka_unit_test(capabilities_and_filter_are_in_force),
	cmocka_unit_test(another_user_has_just_the_groups_of_the_config),
	cmocka_unit_test(a_program_that_is_not_there_is_127_and_nothing_is_left),
	cmocka_unit_test(a_step_that_fails_says_what_and_leaves_no_process),
	cmocka_unit_test(one_without_a_process_can_be_created_and_not_started),
	cmocka_unit_test(a_released_container_waits_at_its_door),
	cmocka_unit_test(namespaces_are_joined_by_path),
	cmocka_unit_test(a_user_namespace_has_its_own_root),
	cmocka_unit_test(a_time_namespace_has_its_offsets),
	cmocka_unit_test(hooks_run_at_their_places_and_know_the_container),
	cmocka_unit_test(a_hook_that_fails_leaves_nothing),
	cmocka_unit_test(a_created_container_that_is_never_started_goes_away),
	cmocka_unit_test(deleting_a_running_container_kills_everything_in_it),
	cmocka_unit_test(devices_of_an_image_must_be_devices),
	cmocka_unit_test(a_terminal_is_one_of_the_containers_own))
