#include "tests/unit/fixture.h"

#include <dirent.h>
#include <errno.h>
#include <sys/mman.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "base/str.h"
#include "builder/rootfs.h"
#include "builder/sandbox.h"

/* ---- a tree to run over: its programs are the host's, bound ---- */

enum { EPOCH = 1767225600 };

struct world {
	struct fixture f;
	struct rootfs r;
	struct entries changed;
	struct sandbox_step step;
	struct sandbox_bind usr;
	struct sandbox_end end;
	const char *words[8];
	int log;
	char text[8192]; /* what it printed */
};

static void put(struct world *w, const char *path, const char *text, uint32_t mode)
{
	struct fixture *f = &w->f;

	need(rootfs_file(&w->r, path, text, strlen(text), (struct owner){.mode = mode}, &f->e));
}

static void make_tree(struct world *w)
{
	static const char *const links[] = {"bin", "sbin", "lib", "lib64"};
	static const char *const dirs[] = {"usr", "etc", "root", "var/empty", "data/sub"};
	struct fixture *f = &w->f;

	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		char target[32];

		snprintf(target, sizeof(target), "usr/%s", links[i]);
		need(rootfs_link(&w->r, links[i], target, &f->e));
	}
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		need(rootfs_dir(&w->r, dirs[i], (struct owner){.mode = 0755}, &f->e));
	put(w, "etc/passwd", "root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n",
		0644);
	put(w, "etc/group", "root:x:0:\nuser:x:1000:\n", 0644);
	put(w, "data/a", "a\n", 0644);
	put(w, "data/b", "b\n", 0640);
	put(w, "data/sub/c", "c\n", 0644);
	put_node(f, "data/hard", &(struct attr){.type = NODE_HARDLINK, .target = "data/a"});
	tree_sort(f->t);
}

static void setup(struct world *w)
{
	if (geteuid() != 0)
		skip();
	umask(022);
	*w = (struct world){.usr = {"/usr", "/usr", false}};
	fixture_init(&w->f);
	w->r = (struct rootfs){.tree = w->f.t, .pool = w->f.p, .epoch = EPOCH};
	make_tree(w);
	w->log = memfd_create("log", MFD_CLOEXEC);
	assert_true(w->log >= 0);
	w->step = (struct sandbox_step){.id = "test",
		.binds = &w->usr,
		.nbinds = 1,
		.timeout_ms = 60000,
		.log = w->log,
		.epoch = EPOCH};
}

/* Nothing of a run is left: no folder, no mount, no cgroup. */
static void expect_nothing_left(struct world *w)
{
	auto_fd int dir = sys_openat(w->f.s.fd, "steps", O_RDONLY | O_DIRECTORY, 0);
	DIR *d = fdopendir(steal_fd(&dir));
	char line[4096];
	FILE *mounts = fopen("/proc/self/mountinfo", "re");

	for (struct dirent *x; d && (x = readdir(d));)
		if (x->d_name[0] != '.')
			fail_msg("steps/%s is left", x->d_name);
	if (d)
		closedir(d);
	while (mounts && fgets(line, sizeof(line), mounts))
		if (strstr(line, w->f.path))
			fail_msg("a mount is left: %s", line);
	if (mounts)
		fclose(mounts);
}

static void teardown(struct world *w)
{
	expect_nothing_left(w);
	entries_fini(&w->changed);
	close(w->log);
	fixture_fini(&w->f);
}

static int run(struct world *w, const char *script)
{
	struct fixture *f = &w->f;
	ssize_t n;
	int rc;

	w->words[0] = "/bin/sh";
	w->words[1] = "-c";
	w->words[2] = script;
	w->step.argv = (struct strings){w->words, 3};
	w->f.e = (struct err){0};
	entries_fini(&w->changed);
	w->changed = (struct entries){0};
	assert_int_equal(ftruncate(w->log, 0), 0);
	assert_int_equal(lseek(w->log, 0, SEEK_SET), 0);
	rc = sandbox_run(&w->step, w->f.t, &w->f.s, w->f.p, &w->changed, &w->end, &f->e);
	n = pread(w->log, w->text, sizeof(w->text) - 1, 0);
	w->text[n > 0 ? n : 0] = '\0';
	return rc;
}

static void run_well(struct world *w, const char *script)
{
	if (run(w, script) < 0)
		fail_msg("%s: %s", script, w->f.e.text);
	if (w->end.status != 0)
		fail_msg("%s: status %d: %s", script, w->end.status, w->text);
}

/* "PUT data/x f0644 3" a line: what a step changed. */
static char *describe(const struct world *w, char *out, size_t size)
{
	size_t n = 0;

	out[0] = '\0';
	for (size_t i = 0; i < w->changed.n; i++) {
		const struct entry *en = &w->changed.v[i];
		static const char types[] = "?dflhpcb";

		if (en->kind == ENTRY_PUT)
			n += (size_t)snprintf(out + n, size - n, "%s %c%04o %u:%u %s\n", en->path,
				types[en->a.type], en->a.type == NODE_HARDLINK ? 0 : en->a.mode,
				en->a.uid, en->a.gid, en->a.target ? en->a.target : "");
		else
			n += (size_t)snprintf(out + n, size - n, "%s %s\n", en->path,
				en->kind == ENTRY_OPAQUE ? "opaque" : "gone");
	}
	return out;
}

/* ---- what comes back ---- */

TEST(what_a_program_changed_comes_back_and_nothing_else)
{
	static const struct {
		const char *script, *changed;
	} cases[] = {
		{"true", ""},
		{"echo new > /data/new", "data/new f0644 0:0 \n"},
		{"echo A > /data/a", "data/a f0644 0:0 \n"},
		{"cat /data/b > /tmp/x; cat /tmp/x > /data/b; touch /data/sub", ""},
		{"chmod 600 /data/b", "data/b f0600 0:0 \n"},
		{"chown 1000:1000 /data/b", "data/b f0640 1000:1000 \n"},
		{"rm /data/b", "data/b gone\n"},
		{"rm -r /data/sub", "data/sub gone\n"},
		{"rm -r /data/sub; mkdir /data/sub; echo d > /data/sub/d",
			"data/sub opaque\ndata/sub/d f0644 0:0 \n"},
		{"rm -r /data/sub; ln -s /etc /data/sub", "data/sub l0777 0:0 /etc\n"},
		{"rm /data/b; mkdir /data/b", "data/b d0755 0:0 \n"},
		{"mv /data/sub /data/moved",
			"data/moved d0755 0:0 \ndata/moved/c f0644 0:0 \ndata/sub gone\n"},
		{"echo 1 > /root/z; ln /root/z /root/a; ln -s z /root/l",
			"root/a f0644 0:0 \nroot/l l0777 0:0 z\nroot/z h0000 0:0 root/a\n"},
		{"mkfifo /root/p; chmod 4755 /data/a", "data/a f4755 0:0 \nroot/p p0644 0:0 \n"},
		{"echo x > /run/x; echo x > /tmp/y; echo x > /dev/shm/z; rm -f /data/none", ""},
		{"chmod 700 /", " d0700 0:0 \n"},
	};
	static char text[8192];
	struct world w;

	setup(&w);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		run_well(&w, cases[i].script);
		if (!str_eq(describe(&w, text, sizeof(text)), cases[i].changed))
			fail_msg("%s:\n%s\nexpected:\n%s", cases[i].script, text, cases[i].changed);
	}
	teardown(&w);
}

TEST(data_and_attributes_come_back_as_they_were_written)
{
	struct world w;
	struct fixture *f = &w.f;
	auto_free char *data = mem_alloc(CHUNK_SIZE + 1);

	setup(&w);
	run_well(&w, "head -c 3000000 /dev/zero | tr '\\0' z > /root/big; setfattr -n user.a -v 1 "
		     "/root/big 2>/dev/null; touch -d @1234 /root/big");
	assert_int_equal(w.changed.n, 1);
	assert_int_equal(w.changed.v[0].a.size, 3000000);
	assert_int_equal(w.changed.v[0].a.nchunks, 3);
	assert_int_equal(w.changed.v[0].a.mtime, 1234);
	need(pool_read(f->p, &w.changed.v[0].a.chunks[2], data, &f->e));
	assert_int_equal(data[0], 'z');
	if (access("/usr/bin/setfattr", X_OK) == 0) {
		assert_int_equal(w.changed.v[0].a.nxattrs, 1);
		assert_string_equal(w.changed.v[0].a.xattrs[0].name, "user.a");
	}
	teardown(&w);
}

TEST(a_program_sees_the_tree_and_fixed_names_and_times)
{
	struct world w;

	setup(&w);
	run_well(&w,
		"cat /data/a /data/hard; env | sort; hostname; pwd; umask; id -u; ls /tmp /run "
		"| wc -l; grep -c . /proc/net/dev; cat /etc/hosts");
	assert_string_equal(w.text,
		"a\na\nHOME=/root\nHOSTNAME=svrun\nLANG=C.UTF-8\n"
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\nPWD=/\n"
		"SOURCE_DATE_EPOCH=1767225600\nTZ=UTC\nsvrun\n/\n0022\n0\n3\n3\n"
		"127.0.0.1\tlocalhost svrun\n::1\tlocalhost\n");
	teardown(&w);
}

TEST(user_folder_variables_and_files_are_what_the_step_says)
{
	static const struct pair env[] = {{"A", "1"}, {"PATH", "/bin"}};
	static const struct sandbox_file files[] = {
		{"/run/secrets/s", "secret", 6, 0400}, {"/etc/conf.d/x", "x\n", 2, 0444}};
	static char text[256];
	struct world w;

	setup(&w);
	w.step.user = "user";
	w.step.workdir = "/data";
	w.step.env = (struct pairs){(struct pair *)(uintptr_t)env, 2};
	w.step.files = files;
	w.step.nfiles = 2;
	run_well(&w, "id -u; id -g; pwd; echo $A $PATH; cat /run/secrets/s; cat /etc/conf.d/x; "
		     "stat -c %a /run/secrets/s; ! echo x > /data/x");
	assert_string_equal(w.text,
		"1000\n1000\n/data\n1 /bin\nsecretx\n400\n/bin/sh: 1: cannot create /data/x: "
		"Permission denied\n");
	assert_string_equal(describe(&w, text, sizeof(text)), "");
	teardown(&w);
}

TEST(what_a_hostile_program_cannot_do)
{
	static const char *const scripts[] = {
		"mknod /data/null c 1 3",
		"mount -t tmpfs none /mnt",
		"echo 1 > /proc/sys/kernel/core_pattern",
		"echo x > /usr/x",
		"ls /proc/1/root/../../home",
		"cat /proc/kcore",
		"unshare -r true",
	};
	struct world w;

	setup(&w);
	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
		assert_int_equal(run(&w, scripts[i]), 0);
		if (w.end.status == 0)
			fail_msg("%s: it could", scripts[i]);
		assert_int_equal(w.changed.n, 0);
	}
	teardown(&w);
}

/* ---- how it ends ---- */

TEST(a_program_that_fails_leaves_its_status_and_nothing_else)
{
	struct world w;

	setup(&w);
	assert_int_equal(run(&w, "echo x > /data/x; echo gone wrong >&2; exit 7"), 0);
	assert_int_equal(w.end.status, 7);
	assert_int_equal(w.changed.n, 0);
	assert_string_equal(w.text, "gone wrong\n");
	assert_int_equal(run(&w, "kill -9 $$"), 0); /* the first process of its namespace */
	w.words[0] = "/bin/nothing";
	w.step.argv = (struct strings){w.words, 1};
	assert_int_equal(
		sandbox_run(&w.step, w.f.t, &w.f.s, w.f.p, &w.changed, &w.end, &w.f.e), -1);
	assert_non_null(strstr(w.f.e.text, "/bin/nothing"));
	teardown(&w);
}

TEST(limits_end_a_program)
{
	struct world w;

	setup(&w);
	w.step.timeout_ms = 500;
	assert_int_equal(run(&w, "sleep 100 & sleep 100"), 0);
	assert_true(w.end.timed_out);
	w.step.timeout_ms = 60000;
	w.step.pids = 30;
	assert_int_equal(run(&w, "f() { f | f & f; }; f"), 0);
	assert_true(w.end.out_of_pids);
	w.step.pids = 0;
	w.step.max_bytes = 8 << 20;
	assert_int_equal(run(&w, "i=0; while true; do head -c 1000000 /dev/zero > /data/$i; i=$((i "
				 "+ 1)); done"),
		0);
	assert_true(w.end.wrote_too_much);
	assert_int_equal(run(&w, "head -c 100000000 /dev/zero > /data/x"), 0);
	assert_true(w.end.wrote_too_much);
	assert_int_equal(run(&w, "for i in 1 2 3; do head -c 4000000 /dev/zero > /data/$i; done"), 0);
	assert_true(w.end.wrote_too_much);
	assert_int_equal(run(&w, "yes"), 0);
	assert_true(w.end.wrote_too_much);
	assert_int_equal(w.changed.n, 0);
	w.step.max_bytes = 0;
	assert_int_equal(run(&w, "yes"), 0);
	assert_true(w.end.too_much_output);
	assert_int_equal(lseek(w.log, 0, SEEK_END), SANDBOX_LOG_MAX);
	w.step.memory_mib = 16;
	assert_int_equal(run(&w, "x=$(head -c 100000000 /dev/zero | tr '\\0' x); echo ${#x}"), 0);
	assert_int_not_equal(w.end.status, 0);
	assert_true(w.end.out_of_memory);
	teardown(&w);
}

/* A file that is larger than it may be is one although it takes no space on the disk. */
TEST(a_sparse_file_counts_as_large_as_it_says)
{
	struct world w;

	setup(&w);
	w.step.max_bytes = 1 << 20;
	assert_int_equal(run(&w, "truncate -s 1000000 /data/1; truncate -s 1000000 /data/2"), 0);
	assert_true(w.end.wrote_too_much);
	assert_int_equal(w.changed.n, 0);
	teardown(&w);
}

TEST(names_that_no_image_can_have_are_refused)
{
	struct world w;

	setup(&w);
	assert_int_equal(run(&w, "touch /data/.wh.a"), -1);
	assert_non_null(strstr(w.f.e.text, ".wh.a"));
	assert_int_equal(
		run(&w, "mkdir -p '/data/x\ny'; touch '/data/x\ny/.wh.\nsvrun: forged'"), -1);
	assert_null(strchr(w.f.e.text, '\n'));
	assert_int_equal(
		run(&w, "mkdir -p '/data/x\ny'; mknod '/data/x\ny/\nz' p; mkdir '/data/\n'; "
			"cd '/data/\n'; i=0; while [ $i -lt 300 ]; do mkdir d; cd d; "
			"i=$((i + 1)); done"),
		-1);
	assert_null(strchr(w.f.e.text, '\n'));
	assert_int_equal(run(&w, "cd /root; i=0; while [ $i -lt 300 ]; do mkdir d; cd d; i=$((i + "
				 "1)); done"),
		-1);
	assert_non_null(strstr(w.f.e.text, "256"));
	teardown(&w);
}

TEST(what_a_killed_build_left_is_swept)
{
	struct world w;
	int status;
	pid_t pid;

	setup(&w);
	pid = fork();
	if (pid == 0) {
		/* The pool belongs to one process: this one never gets as far as to use it. */
		if (run(&w, "kill -9 -1; sleep 1000") == 0)
			_exit(0);
		_exit(1);
	}
	usleep(700000);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	run_well(&w, "true");
	teardown(&w);
}

TEST(a_secret_in_what_is_written_is_found)
{
	static const char *const scripts[] = {
		"echo my s3cret-value is > /data/x",
		"echo s3cret-value | base64 > /data/x",
		"ln -s s3cret-value /data/x",
		"mkdir /data/s3cret-value",
		"base64 -w 5 > /data/x <<E\nmy s3cret-value is\nE",
		"python3 -c 'import os; os.setxattr(\"/data/a\", \"user.s3cret-value\", b\"\")'",
		"python3 -c 'import os; os.setxattr(\"/data/a\", \"user.x\", b\"s3cret-value\")'",
	};
	struct build_secret secret = {.id = "token", .value = (char[]){"s3cret-value"}, .n = 12};
	struct world w;

	setup(&w);
	w.step.scan = secret_scan_new(&secret, 1);
	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
		run_well(&w, scripts[i]);
		if (!w.end.secret)
			fail_msg("%s: it was not found", scripts[i]);
		assert_string_equal(w.end.secret, "token");
		assert_true(str_starts(w.end.secret_path, "data"));
		assert_null(strstr(w.end.secret_path, "s3cret"));
		assert_int_equal(w.changed.n, 0);
	}
	run_well(&w, "mkdir -p /data/s3cret/-va/lue");
	assert_string_equal(w.end.secret, "token");
	assert_string_equal(w.end.secret_path, "");
	run_well(&w, "echo other > /data/x");
	assert_null(w.end.secret);
	secret_scan_free(w.step.scan);
	teardown(&w);
}

RUN_TESTS(cmocka_unit_test(what_a_program_changed_comes_back_and_nothing_else),
	cmocka_unit_test(data_and_attributes_come_back_as_they_were_written),
	cmocka_unit_test(a_program_sees_the_tree_and_fixed_names_and_times),
	cmocka_unit_test(user_folder_variables_and_files_are_what_the_step_says),
	cmocka_unit_test(what_a_hostile_program_cannot_do),
	cmocka_unit_test(a_program_that_fails_leaves_its_status_and_nothing_else),
	cmocka_unit_test(limits_end_a_program),
	cmocka_unit_test(a_sparse_file_counts_as_large_as_it_says),
	cmocka_unit_test(names_that_no_image_can_have_are_refused),
	cmocka_unit_test(what_a_killed_build_left_is_swept),
	cmocka_unit_test(a_secret_in_what_is_written_is_found))
