#include "tests/unit/fixture.h"

#include "base/file.h"
#include "base/str.h"
#include "builder/content.h"
#include "builder/rootfs.h"
#include "builder/steps.h"

/* Steps over a tree that has the host's /bin/sh, and nothing else that runs. */

enum { EPOCH = 1767225600 };

struct world {
	struct fixture f;
	struct manifest m;
	struct lock l;
	struct composed c;
	struct step_context x;
	char logs[128];
	uint32_t source;
};

static void put_host_file(struct world *w, const char *from, const char *to)
{
	struct fixture *f = &w->f;
	struct arena arena = {0};
	struct attr a = {.type = NODE_FILE, .mode = 0755};
	auto_fd int fd = sys_open(from, O_RDONLY, 0);

	if (fd < 0)
		return;
	need(content_from_fd(fd, from, f->p, &arena, &a, NULL, &f->e));
	assert_non_null(tree_put(w->c.tree, to, &a, 0, &f->e));
	arena_fini(&arena);
}

static void put(struct world *w, const char *path, const char *text, uint32_t origin)
{
	struct rootfs r = {.tree = w->c.tree, .pool = w->f.p, .epoch = EPOCH, .origin = origin};
	struct fixture *f = &w->f;

	need(rootfs_file(&r, path, text, strlen(text), (struct owner){.mode = 0644}, &f->e));
}

static void make_tree(struct world *w)
{
	w->c.tree = tree_new();
	compose_origin(&w->c, &(struct origin){.kind = ORIGIN_STATE, .name = "state"});
	w->source = compose_origin(&w->c, &(struct origin){.kind = ORIGIN_SOURCE, .name = "src"});
	put_host_file(w, "/bin/dash", "bin/sh");
	put_host_file(w, "/lib/x86_64-linux-gnu/libc.so.6", "lib/x86_64-linux-gnu/libc.so.6");
	put_host_file(w, "/lib64/ld-linux-x86-64.so.2", "lib64/ld-linux-x86-64.so.2");
	put_host_file(w, "/lib/aarch64-linux-gnu/libc.so.6", "lib/aarch64-linux-gnu/libc.so.6");
	put_host_file(w, "/lib/ld-linux-aarch64.so.1", "lib/ld-linux-aarch64.so.1");
	put(w, "data/in", "in\n", w->source);
	tree_sort(w->c.tree);
}

static void setup(struct world *w)
{
	if (geteuid() != 0 || access("/bin/dash", X_OK) < 0)
		skip();
	umask(022);
	*w = (struct world){.m.name = "app", .m.build.epoch = EPOCH, .l.platform = "linux/amd64"};
	fixture_init(&w->f);
	snprintf(w->logs, sizeof(w->logs), "%s/logs", w->f.path);
	assert_int_equal(mkdir(w->logs, 0700), 0);
	make_tree(w);
	w->x = (struct step_context){
		.m = &w->m, .l = &w->l, .s = &w->f.s, .pool = w->f.p, .logs = w->logs};
}

static void teardown(struct world *w)
{
	compose_fini(&w->c);
	fixture_fini(&w->f);
}

/* A new composed tree, as the next build would have. */
static void again(struct world *w)
{
	compose_fini(&w->c);
	make_tree(w);
}

static struct strings words(const char *const *v, size_t n)
{
	return (struct strings){(const char **)(uintptr_t)v, n};
}

static const char *const all[] = {"/out/**"};

static struct manifest_run script(const char *text)
{
	return (struct manifest_run){
		.id = "one", .script = text, .writes = words(all, 1), .timeout_ms = 60000};
}

static int run(struct world *w, struct manifest_run *v, size_t n)
{
	w->m.runs = v;
	w->m.nruns = n;
	w->f.e = (struct err){0};
	return steps_run(&w->x, &w->c, &w->f.e);
}

static void run_well(struct world *w, struct manifest_run *v, size_t n)
{
	if (run(w, v, n) < 0)
		fail_msg("%s; %s", w->f.e.text, w->f.e.hint);
}

static void expect_file(struct world *w, const char *path, const char *text)
{
	struct rootfs r = {.tree = w->c.tree, .pool = w->f.p};
	auto_buf struct buf b = BUF_INIT(1 << 20);

	if (rootfs_read(&r, path, &b, NULL) <= 0)
		fail_msg("/%s is not there", path);
	assert_string_equal(b.data ? b.data : "", text);
}

static void expect_log(struct world *w, const char *id, const char *text)
{
	auto_free char *path = mem_printf("%s/%s.log", w->logs, id);
	auto_buf struct buf b = BUF_INIT(1 << 20);

	assert_int_equal(file_read(AT_FDCWD, path, &b, NULL), 0);
	if (!strstr(b.data ? b.data : "", text))
		fail_msg("%s: expected %s in: %s", path, text, b.data);
}

static void expect_error(struct world *w, struct manifest_run *v, size_t n, const char *text)
{
	assert_int_equal(run(w, v, n), -1);
	if (!strstr(w->f.e.text, text) && !strstr(w->f.e.hint, text))
		fail_msg("expected %s in: %s; %s", text, w->f.e.text, w->f.e.hint);
}

/* ---- */

TEST(steps_run_in_their_order_and_their_changes_are_merged)
{
	struct world w;

	setup(&w);
	struct manifest_run v[] = {script("read x < /data/in; echo 1$x > /out/a"),
		script("read x < /out/a; echo 2$x > /out/a; echo said; umask 077; : > /out/b")};
	struct rootfs r = {.tree = w.c.tree};

	v[1].id = "two";
	assert_int_equal(rootfs_dir(&r, "out", (struct owner){.mode = 0755}, &w.f.e), 0);
	tree_sort(w.c.tree);
	run_well(&w, v, 2);
	expect_file(&w, "out/a", "21in\n");
	expect_log(&w, "run:two", "said\n");
	assert_int_equal(tree_find(w.c.tree, "out/b")->a.mode, 0600);
	assert_int_equal(tree_find(w.c.tree, "out/a")->a.mtime, EPOCH); /* clamped */
	assert_string_equal(w.c.origins[tree_find(w.c.tree, "out/a")->origin].name, "two");
	teardown(&w);
}

/* The proof that nothing ran: what it prints tells one run from another. */
TEST(what_a_step_did_is_found_again_until_something_that_it_sees_changes)
{
	static const char *const inputs[] = {"other"};
	static const char text[] = "read x < /proc/sys/kernel/random/uuid; echo $x > /out";
	static const char *const out[] = {"/out"};
	struct rootfs r;
	auto_buf struct buf first = BUF_INIT(4096);
	struct world w;

	setup(&w);
	struct manifest_run v = script(text);
	v.writes = words(out, 1);
	run_well(&w, &v, 1);
	r = (struct rootfs){.tree = w.c.tree, .pool = w.f.p};
	assert_int_equal(rootfs_read(&r, "out", &first, NULL), 1);

	again(&w); /* nothing changed; limits do not count */
	v.timeout_ms = 50000;
	run_well(&w, &v, 1);
	expect_file(&w, "out", first.data);
	expect_log(&w, "run:one", "");

	const struct {
		const char *path, *text, *argument;
		bool with_inputs, same;
	} cases[] = {
		{"data/in", "other\n", NULL, false, false},
		{"data/new", "x", NULL, false, false},
		{NULL, NULL, "2", false, false},
		{NULL, NULL, NULL, false, true},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_buf struct buf now = BUF_INIT(4096);
		struct pair env = {"X", cases[i].argument};

		again(&w);
		if (cases[i].path)
			put(&w, cases[i].path, cases[i].text, w.source);
		tree_sort(w.c.tree);
		v.env = (struct pairs){&env, cases[i].argument ? 1 : 0};
		run_well(&w, &v, 1);
		r.tree = w.c.tree;
		assert_int_equal(rootfs_read(&r, "out", &now, NULL), 1);
		if (str_eq(now.data, first.data) != cases[i].same)
			fail_msg("case %zu", i);
	}
	v.env.n = 0;

	/* With inputs, sources that are not named are neither seen nor looked at. */
	auto_buf struct buf blind = BUF_INIT(4096);
	again(&w);
	v.inputs = words(inputs, 1);
	v.script = "read x < /proc/sys/kernel/random/uuid; echo $x > /out; ! test -e /data/in";
	run_well(&w, &v, 1);
	r.tree = w.c.tree;
	assert_int_equal(rootfs_read(&r, "out", &blind, NULL), 1);
	again(&w);
	put(&w, "data/in", "changed\n", w.source);
	run_well(&w, &v, 1);
	expect_file(&w, "out", blind.data);
	expect_file(&w, "data/in", "changed\n");

	again(&w); /* --no-cache */
	w.x.no_cache = true;
	run_well(&w, &v, 1);
	r.tree = w.c.tree;
	auto_buf struct buf other = BUF_INIT(4096);
	assert_int_equal(rootfs_read(&r, "out", &other, NULL), 1);
	assert_string_not_equal(other.data, blind.data);
	teardown(&w);
}

TEST(a_step_that_writes_elsewhere_is_refused_with_every_path)
{
	struct world w;

	setup(&w);
	struct manifest_run v = script("for i in 1 2 3 4 5 6 7 8 9 10; do : > /data/$i; done; : > "
				       "/ok");
	static const char *const ok[] = {"/ok"};
	v.writes = words(ok, 1);
	expect_error(&w, &v, 1,
		"SV061 /run/0/writes: step run:one wrote outside: /data/1, /data/10, /data/2");
	assert_non_null(strstr(w.f.e.text, "and 2 more"));
	expect_log(&w, "run:one", "/data/9\n");
	assert_null(tree_find(w.c.tree, "ok"));
	teardown(&w);
}

TEST(a_step_that_fails_says_how_and_where_its_log_is)
{
	struct world w;

	setup(&w);
	struct manifest_run v = script("echo before; exit 3");
	expect_error(
		&w, &v, 1, "step run:one failed with exit status 3; its log: /tmp/svrun-test-");
	assert_string_equal(w.f.e.hint, "run it again: svrun image build app");
	expect_log(&w, "run:one", "before\n");
	w.x.command = "svrun image build --jobs 2 app";
	v = script("while :; do :; done");
	v.timeout_ms = 300;
	expect_error(&w, &v, 1, "was stopped after its time of 300 ms");
	assert_string_equal(w.f.e.hint, "run it again: svrun image build --jobs 2 app");
	v = script("");
	v.interpreter = "/bin/none";
	expect_error(&w, &v, 1, "/bin/none");
	v = script("x=1111111111111111; while :; do x=$x$x; done");
	v.memory_mib = 16;
	expect_error(&w, &v, 1, "memory limit of 16 MiB");
	teardown(&w);
}

TEST(a_secret_is_a_file_for_the_step_and_reaches_nothing)
{
	struct run_secret want[] = {{"token", NULL, true}};
	struct build_secret have = {.id = "token", .value = (char[]){"hush-hush"}, .n = 9};
	struct world w;

	setup(&w);
	struct manifest_run v = script("read x < /run/secrets/token; echo ${#x} > /out; set > /x");
	static const char *const out[] = {"/out", "/x"};
	v.writes = words(out, 2);
	v.secrets = want;
	v.nsecrets = 1;
	expect_error(&w, &v, 1, "SV131 /run/0/secrets/0: step run:one needs the secret 'token'");
	w.x.secrets = &have;
	w.x.nsecrets = 1;
	expect_error(&w, &v, 1, "the secret 'token' is in /x");
	v.script = "read x < /run/secrets/token; echo $x";
	expect_error(&w, &v, 1, "the secret 'token' is in what it printed");
	expect_log(&w, "run:one", "a secret was in this log");
	v.script = "read x < /run/secrets/token; echo $x; exit 1";
	expect_error(&w, &v, 1, "the secret 'token' is in what it printed");
	v.script = "read x < /run/secrets/token; echo ${#x} > /out";
	run_well(&w, &v, 1);
	expect_file(&w, "out", "9\n");

	/* What it did is found again without the secret. */
	again(&w);
	w.x.nsecrets = 0;
	run_well(&w, &v, 1);
	expect_file(&w, "out", "9\n");
	teardown(&w);
}

TEST(a_cache_folder_is_kept_from_step_to_step_and_never_in_the_image)
{
	struct run_cache c[] = {{"c", "/var/cache/c"}};
	struct build_secret have = {.id = "token", .value = (char[]){"hush-hush"}, .n = 9};
	struct world w;

	setup(&w);
	struct manifest_run v[] = {script("echo kept > /var/cache/c/x"),
		script("read x < /var/cache/c/x; echo $x > /o")};
	static const char *const out[] = {"/o"};
	v[0].caches = v[1].caches = c;
	v[0].ncaches = v[1].ncaches = 1;
	v[0].writes.n = 0;
	v[1].writes = words(out, 1);
	v[1].id = "two";
	run_well(&w, v, 2);
	expect_file(&w, "o", "kept\n");
	assert_null(tree_find(w.c.tree, "var"));

	struct run_secret want[] = {{"token", "/root/.token", true}};
	again(&w);
	w.x.secrets = &have;
	w.x.nsecrets = 1;
	v[0].script = "read x < /root/.token; echo $x > /var/cache/c/leak";
	v[0].secrets = want;
	v[0].nsecrets = 1;
	expect_error(&w, v, 1, "the secret 'token' is in cache folder 'c', file leak");
	assert_int_equal(faccessat(w.f.s.fd, "cache/mounts/c/leak", F_OK, 0), -1);
	teardown(&w);
}

/* ---- npm ---- */

static const char pack_a[] =
	"{\"name\":\"a\",\"scripts\":{\"postinstall\":\"echo 3 $PWD >> "
	"$INIT_CWD/node_modules/a/done\","
	"\"preinstall\":\"echo 1 $npm_lifecycle_event > done\","
	"\"install\":\"echo 2 $npm_package_name $npm_package_version >> done; echo said\","
	"\"test\":\"exit 1\"}}";

static void npm_setup(struct world *w, struct lock_npm *npms, size_t n, const char *const *scripts,
	size_t nscripts)
{
	w->m.node = (struct manifest_node){
		.present = true, .prefix = "/opt/app", .scripts = words(scripts, nscripts)};
	w->l.npms = npms;
	w->l.nnpms = n;
}

TEST(install_scripts_run_as_npm_runs_them_and_write_below_the_packages_only)
{
	static const char *const scripts[] = {"a"};
	struct lock_npm npms[] = {{.path = "node_modules/a", .name = "a", .version = "1.2.3"},
		{.path = "node_modules/b", .name = "b", .version = "1.0.0"},
		{.path = "node_modules/b/node_modules/a", .name = "a", .version = "1.0.0"}};
	struct world w;

	setup(&w);
	npm_setup(&w, npms, 3, scripts, 1);
	put(&w, "opt/app/node_modules/a/package.json", pack_a, 0);
	put(&w, "opt/app/node_modules/b/package.json", "{\"scripts\":{\"install\":\"exit 1\"}}", 0);
	put(&w, "opt/app/node_modules/b/node_modules/a/package.json",
		"{\"scripts\":{\"install\":\": > first\"}}", 0);
	tree_sort(w.c.tree);
	run_well(&w, NULL, 0);
	expect_file(&w, "opt/app/node_modules/a/done",
		"1 preinstall\n2 a 1.2.3\n3 /opt/app/node_modules/a\n");
	expect_file(&w, "opt/app/node_modules/b/node_modules/a/first", "");
	expect_log(&w, "npm:a", "> preinstall: echo 1");
	expect_log(&w, "npm:b+node_modules+a", "> install: : > first");
	assert_int_equal(
		w.c.origins[tree_find(w.c.tree, "opt/app/node_modules/a/done")->origin].kind,
		ORIGIN_NPM);

	again(&w);
	put(&w, "opt/app/node_modules/a/package.json", "{\"scripts\":{\"install\":\": > /x\"}}", 0);
	put(&w, "opt/app/node_modules/b/node_modules/a/package.json", "{}", 0);
	tree_sort(w.c.tree);
	expect_error(&w, NULL, 0, "SV061 /node/scripts/0: step npm:a wrote outside: /x");

	static const char *const none[] = {"none"};
	w.m.node.scripts = words(none, 1);
	expect_error(&w, NULL, 0, "/node/scripts/0: the lock has no package 'none'");
	teardown(&w);
}

RUN_TESTS(cmocka_unit_test(steps_run_in_their_order_and_their_changes_are_merged),
	cmocka_unit_test(what_a_step_did_is_found_again_until_something_that_it_sees_changes),
	cmocka_unit_test(a_step_that_writes_elsewhere_is_refused_with_every_path),
	cmocka_unit_test(a_step_that_fails_says_how_and_where_its_log_is),
	cmocka_unit_test(a_secret_is_a_file_for_the_step_and_reaches_nothing),
	cmocka_unit_test(a_cache_folder_is_kept_from_step_to_step_and_never_in_the_image),
	cmocka_unit_test(install_scripts_run_as_npm_runs_them_and_write_below_the_packages_only))
