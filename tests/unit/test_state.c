#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "runtime/door.h"
#include "svrun/state.h"

static char dir[64];
static int root;

static int set_up(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/svrun-state-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	root = state_root(dir, NULL);
	return root < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(root);
	return sys_remove_tree(AT_FDCWD, dir);
}

/* A container of this test's own process. */
static void make(struct state *s, const char *id)
{
	struct err e = {0};

	assert_int_equal(state_create(s, root, id, &e), 0);
	s->bundle = mem_strdup("/bundle");
	s->rootfs = mem_strdup("/bundle/rootfs");
	s->annotations = json_pack("{s:s}", "a", "b");
	assert_int_equal(state_set_process(s, getpid(), &e), 0);
	assert_int_equal(state_write(s, &e), 0);
}

static enum state_status status_of(const struct state *s)
{
	enum state_status status;

	assert_int_equal(state_status(s, &status, NULL), 0);
	return status;
}

TEST(ids_are_what_runc_takes_and_nothing_else)
{
	static const char *const good[] = {"a", "A_b+c-d.e", "0", "...", "-x", ".hidden"};
	static const char *const bad[] = {
		"", ".", "..", "a/b", "/", "a b", "a\n", "\xc3\xa4", "a:b", "a,b", "*", ".seccomp"};
	char longest[STATE_ID_MAX + 2];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_int_equal(state_check_id(good[i], NULL), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct err e = {0};

		assert_int_equal(state_check_id(bad[i], &e), -1);
		assert_int_equal(e.kind, ERR_USAGE);
		assert_true(str_ends(e.text, ": invalid container ID format"));
	}
	memset(longest, 'a', sizeof(longest));
	longest[STATE_ID_MAX] = '\0';
	assert_int_equal(state_check_id(longest, NULL), 0);
	longest[STATE_ID_MAX] = 'a';
	longest[STATE_ID_MAX + 1] = '\0';
	assert_int_equal(state_check_id(longest, NULL), -1);
}

TEST(what_is_written_is_read_back)
{
	struct err e = {0};
	struct state a, b;

	make(&a, "c1");
	snprintf(a.cgroup.path, sizeof(a.cgroup.path), "/x/c1");
	snprintf(a.cgroup.slice, sizeof(a.cgroup.slice), "system.slice");
	snprintf(a.cgroup.unit, sizeof(a.cgroup.unit), "x-c1.scope");
	a.cgroup.may_lack = true;
	a.console = mem_strdup("/run/console");
	assert_int_equal(state_write(&a, &e), 0);
	assert_int_equal(state_open(&b, root, "c1", false, &e), 0);
	assert_string_equal(b.id, "c1");
	assert_string_equal(b.bundle, "/bundle");
	assert_string_equal(b.rootfs, "/bundle/rootfs");
	assert_string_equal(b.console, "/run/console");
	assert_int_equal(b.pid, getpid());
	assert_int_equal(b.started, a.started);
	assert_int_equal(b.created, a.created);
	assert_int_equal(b.created_nanosecs, a.created_nanosecs);
	assert_int_equal(b.owner, geteuid());
	assert_memory_equal(&b.cgroup, &a.cgroup, sizeof(a.cgroup));
	assert_true(json_equal(a.annotations, b.annotations));
	state_close(&b);
	state_close(&a);
}

TEST(a_second_container_of_a_name_is_refused)
{
	struct err e = {0};
	struct state a, b;

	make(&a, "c1");
	assert_int_equal(state_create(&b, root, "c1", &e), -1);
	assert_int_equal(e.kind, ERR_EXISTS);
	assert_string_equal(e.text, "c1: container with given ID already exists");
	assert_int_equal(state_remove(&a, &e), 0);
	state_close(&a);
	make(&b, "c1");
	state_close(&b);
}

TEST(what_does_not_exist_is_told_in_the_words_engines_look_for)
{
	struct err e = {0};
	struct state s;

	assert_int_equal(state_open(&s, root, "none", true, &e), -1);
	assert_int_equal(e.kind, ERR_NOT_FOUND);
	assert_string_equal(e.text, "none: container does not exist");
	assert_int_equal(state_open(&s, root, "../x", true, &e), -1);
	assert_int_equal(e.kind, ERR_USAGE);
}

TEST(a_link_in_the_place_of_a_folder_is_not_followed)
{
	struct err e = {0};
	struct state s;

	assert_int_equal(sys_symlinkat("/etc", root, "link"), 0);
	assert_int_equal(state_open(&s, root, "link", true, &e), -1);
	assert_int_equal(state_create(&s, root, "link", &e), -1);
	assert_int_equal(e.kind, ERR_EXISTS);
}

TEST(roots_that_others_could_have_made_are_refused)
{
	char path[96];
	struct err e = {0};
	int fd;

	snprintf(path, sizeof(path), "%s/a/b", dir);
	fd = state_root(path, &e);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(chmod(path, 0770), 0);
	assert_int_equal(state_root(path, &e), -1);
	assert_int_equal(e.kind, ERR_DENIED);
	assert_int_equal(chmod(path, 0707), 0);
	assert_int_equal(state_root(path, &e), -1);
	assert_int_equal(chmod(path, 0755), 0);
	fd = state_root(path, &e);
	assert_true(fd >= 0);
	close(fd);
	snprintf(path, sizeof(path), "%s/link", dir);
	assert_int_equal(symlink("/etc", path), 0);
	assert_int_equal(state_root(path, &e), -1);
	if (geteuid() == 0) {
		snprintf(path, sizeof(path), "%s/theirs", dir);
		assert_int_equal(mkdir(path, 0700), 0);
		assert_int_equal(chown(path, 1, 1), 0);
		assert_int_equal(state_root(path, &e), -1);
		assert_int_equal(e.kind, ERR_DENIED);
	}
}

TEST(a_new_root_and_a_new_folder_are_for_the_owner_alone)
{
	struct state s;
	struct stat st;
	char path[96];
	int fd;

	umask(0);
	snprintf(path, sizeof(path), "%s/new", dir);
	fd = state_root(path, NULL);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(state_create(&s, fd, "c", NULL), 0);
	assert_int_equal(fstat(s.dir, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(state_write(&s, NULL), 0);
	assert_int_equal(fstatat(s.dir, "state.json", &st, 0), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	state_close(&s);
	close(fd);
	umask(022);
}

TEST(what_a_killed_runtime_left_can_be_opened_and_removed)
{
	static const char *const files[] = {"", "{", "null", "[]", "{\"pid\": 1}",
		"{\"pid\": \"1\", \"cgroup\": {}}", "\xff\xfe"};

	for (size_t i = 0; i <= sizeof(files) / sizeof(files[0]); i++) {
		struct err e = {0};
		struct state s;

		assert_int_equal(sys_mkdirat(root, "half", 0700), 0);
		if (i < sizeof(files) / sizeof(files[0])) {
			auto_fd int fd = sys_openat(
				root, "half/state.json", O_CREAT | O_WRONLY | O_TRUNC, 0600);

			assert_int_equal(sys_write_all(fd, files[i], strlen(files[i])), 0);
		}
		assert_int_equal(state_open(&s, root, "half", true, &e), 0);
		assert_int_equal(s.pid, 0);
		assert_int_equal(status_of(&s), STATE_STOPPED);
		assert_int_equal(state_remove(&s, &e), 0);
		state_close(&s);
		assert_int_equal(state_open(&s, root, "half", true, &e), -1);
	}
}

TEST(one_that_is_being_made_is_creating_and_nobody_waits_for_it)
{
	struct state mine, theirs;

	assert_int_equal(state_create(&mine, root, "c", NULL), 0);
	assert_int_equal(state_open(&theirs, root, "c", false, NULL), 0);
	assert_int_equal(status_of(&theirs), STATE_CREATING);
	state_close(&mine);
	assert_int_equal(status_of(&theirs), STATE_STOPPED);
	state_close(&theirs);
}

/* Who looks at a dead one must not keep a lock. */
TEST(looking_leaves_no_lock)
{
	struct state a, b;

	assert_int_equal(state_create(&a, root, "c", NULL), 0);
	state_close(&a);
	assert_int_equal(state_open(&a, root, "c", false, NULL), 0);
	assert_int_equal(status_of(&a), STATE_STOPPED);
	assert_int_equal(state_open(&b, root, "c", false, NULL), 0);
	assert_int_equal(sys_flock(b.dir, LOCK_EX | LOCK_NB), 0);
	state_close(&b);
	state_close(&a);
}

TEST(a_living_process_is_created_behind_its_door_and_running_without)
{
	struct state s;
	int door;

	make(&s, "c");
	assert_int_equal(status_of(&s), STATE_RUNNING);
	door = door_make(s.dir, STATE_DOOR, NULL);
	assert_true(door >= 0);
	assert_int_equal(status_of(&s), STATE_RUNNING); /* nobody is behind it */
	assert_int_equal(listen(door, 1), 0);
	for (int i = 0; i < 4; i++) /* also when it does not answer */
		assert_int_equal(status_of(&s), STATE_CREATED);
	close(door);
	assert_int_equal(state_close_door(&s, NULL), 0);
	assert_int_equal(state_close_door(&s, NULL), 0);
	assert_int_equal(status_of(&s), STATE_RUNNING);
	state_close(&s);
}

TEST(a_reused_pid_is_not_taken_for_the_process)
{
	struct state s;
	int fd;

	make(&s, "c");
	fd = state_pidfd(&s);
	assert_true(fd >= 0);
	close(fd);
	s.started++;
	errno = 0;
	assert_int_equal(state_pidfd(&s), -1);
	assert_int_equal(errno, ESRCH);
	assert_int_equal(status_of(&s), STATE_STOPPED);
	state_close(&s);
}

TEST(a_process_that_ended_is_stopped_also_before_it_is_reaped)
{
	struct state s;
	siginfo_t info;
	int fds[2];
	pid_t pid;

	make(&s, "c");
	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		char c;

		close(fds[1]);
		_exit(read(fds[0], &c, 1) == 0 ? 0 : 1);
	}
	assert_int_equal(state_set_process(&s, pid, NULL), 0);
	assert_int_equal(status_of(&s), STATE_RUNNING);
	close(fds[1]);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(status_of(&s), STATE_STOPPED);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(status_of(&s), STATE_STOPPED);
	assert_int_equal(state_set_process(&s, pid, NULL), -1);
	close(fds[0]);
	state_close(&s);
}

TEST(who_waited_for_the_lock_of_a_removed_one_hears_that_it_is_gone)
{
	struct state mine;
	int status, fds[2];
	char c = 0;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(state_create(&mine, root, "c", NULL), 0);
	pid = fork();
	if (pid == 0) {
		struct err e = {0};
		struct state s;

		close(mine.dir); /* else the lock is ours too */
		_exit(write(fds[1], &c, 1) == 1 && state_open(&s, root, "c", true, &e) < 0 &&
					e.kind == ERR_NOT_FOUND
				? 0
				: 1);
	}
	assert_int_equal(read(fds[0], &c, 1), 1);
	assert_int_equal(state_remove(&mine, NULL), 0);
	state_close(&mine);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(fds[0]);
	close(fds[1]);
}

TEST(a_lock_that_was_given_up_is_had_again_unless_the_folder_went)
{
	struct state mine, theirs;

	assert_int_equal(state_create(&mine, root, "c", NULL), 0);
	state_unlock(&mine);
	assert_int_equal(state_open(&theirs, root, "c", true, NULL), 0);
	state_close(&theirs);
	assert_int_equal(state_lock(&mine, NULL), 1);
	state_unlock(&mine);
	assert_int_equal(state_open(&theirs, root, "c", true, NULL), 0);
	assert_int_equal(state_remove(&theirs, NULL), 0);
	state_close(&theirs);
	assert_int_equal(state_create(&theirs, root, "c", NULL), 0);
	state_close(&theirs);
	assert_int_equal(state_lock(&mine, NULL), 0);
	state_close(&mine);
}

TEST(what_is_shown_has_the_keys_of_runc)
{
	struct state s = {.id = NULL};
	auto_free char *text = NULL;
	json_t *o;

	s.id = mem_strdup("c1");
	s.bundle = mem_strdup("/b");
	s.pid = 7;
	s.created = 1767225600;
	s.created_nanosecs = 42;
	o = state_json(&s, STATE_RUNNING, true);
	text = json_dumps(o, JSON_COMPACT);
	assert_string_equal(text,
		"{\"ociVersion\":\"" SPEC_VERSION "\",\"id\":\"c1\",\"pid\":7,"
		"\"status\":\"running\",\"bundle\":\"/b\",\"rootfs\":\"\","
		"\"created\":\"2026-01-01T00:00:00.000000042Z\",\"owner\":\"root\"}");
	json_decref(o);
	s.annotations = json_pack("{s:s}", "k", "v");
	o = state_json(&s, STATE_STOPPED, false);
	free(text);
	text = json_dumps(o, JSON_COMPACT);
	assert_string_equal(text,
		"{\"ociVersion\":\"" SPEC_VERSION "\",\"id\":\"c1\",\"pid\":0,"
		"\"status\":\"stopped\",\"bundle\":\"/b\",\"annotations\":{\"k\":\"v\"}}");
	json_decref(o);
	s.root = s.dir = -1;
	state_close(&s);
}

TEST(a_list_is_sorted_and_has_containers_only)
{
	struct state s;
	char **ids;
	size_t n;

	for (const char *const *id = (const char *const[]){"b", "a", "c", NULL}; *id; id++) {
		assert_int_equal(state_create(&s, root, *id, NULL), 0);
		state_close(&s);
	}
	assert_int_equal(sys_mkdirat(root, STATE_FILTERS, 0700), 0);
	assert_int_equal(sys_symlinkat("a", root, "link"), 0);
	close(sys_openat(root, "file", O_CREAT | O_WRONLY, 0600));
	assert_int_equal(state_list(root, &ids, &n, NULL), 0);
	assert_int_equal(n, 3);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(ids[i][0], 'a' + (int)i);
		free(ids[i]);
	}
	free(ids);
}

/* Its rules are nothing that anybody needs again: the compiled filter is. */
TEST(the_config_is_kept_without_the_rules_of_its_filter)
{
	static const char text[] =
		"{\"ociVersion\": \"1.2.0\", \"root\": {\"path\": \"r\"}, \"linux\": {"
		"\"namespaces\": [{\"type\": \"mount\"}], \"seccomp\": {\"defaultAction\":"
		" \"SCMP_ACT_ERRNO\", \"syscalls\": [{\"names\": [\"read\"], \"action\":"
		" \"SCMP_ACT_ALLOW\"}]}}}";
	struct seccomp_prog filter, again;
	struct err e = {0};
	struct state s;
	struct spec spec;
	json_t *json = json_parse(text, strlen(text), &e);

	assert_int_equal(spec_read(&spec, json, "config.json", &e), 0);
	assert_int_equal(seccomp_compile(&filter, &spec.seccomp, &e), 0);
	make(&s, "c");
	assert_int_equal(state_keep_config(&s, &spec, &e), 0);
	assert_int_equal(state_keep_filter(&s, &filter, &e), 0);
	assert_int_equal(spec.seccomp.nrules, 1);
	assert_non_null(json_object_get(spec.seccomp.source, "syscalls"));
	spec_fini(&spec);
	json_decref(json);
	assert_int_equal(state_config(&s, &spec, &e), 0);
	assert_string_equal(spec.root, "r");
	assert_true(spec.has_seccomp);
	assert_int_equal(spec.seccomp.nrules, 0);
	assert_int_equal(state_filter(&s, &again, &e), 0);
	assert_int_equal(again.n, filter.n);
	assert_memory_equal(again.code, filter.code, filter.n * sizeof(*filter.code));
	seccomp_prog_fini(&filter);
	seccomp_prog_fini(&again);
	spec_fini(&spec);
	state_close(&s);
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
RUN_TESTS(UNIT(ids_are_what_runc_takes_and_nothing_else), UNIT(what_is_written_is_read_back),
	UNIT(a_second_container_of_a_name_is_refused),
	UNIT(what_does_not_exist_is_told_in_the_words_engines_look_for),
	UNIT(a_link_in_the_place_of_a_folder_is_not_followed),
	UNIT(roots_that_others_could_have_made_are_refused),
	UNIT(a_new_root_and_a_new_folder_are_for_the_owner_alone),
	UNIT(what_a_killed_runtime_left_can_be_opened_and_removed),
	UNIT(one_that_is_being_made_is_creating_and_nobody_waits_for_it),
	UNIT(looking_leaves_no_lock),
	UNIT(a_living_process_is_created_behind_its_door_and_running_without),
	UNIT(a_reused_pid_is_not_taken_for_the_process),
	UNIT(a_process_that_ended_is_stopped_also_before_it_is_reaped),
	UNIT(who_waited_for_the_lock_of_a_removed_one_hears_that_it_is_gone),
	UNIT(a_lock_that_was_given_up_is_had_again_unless_the_folder_went),
	UNIT(what_is_shown_has_the_keys_of_runc), UNIT(a_list_is_sorted_and_has_containers_only),
	UNIT(the_config_is_kept_without_the_rules_of_its_filter))
