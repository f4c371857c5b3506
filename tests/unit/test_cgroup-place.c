#include "tests/unit/test.h"

#include <unistd.h>

#include "base/str.h"
#include "runtime/cgroup-file.h"

TEST(paths_are_cleaned_and_stay_below_the_root)
{
	static const struct {
		const char *given, *path; /* NULL: refused */
	} cases[] = {
		{"/a/b", "/a/b"}, {"//a/./b//", "/a/b"}, {"/a/../b", "/b"}, {"/../../b", "/b"},
		{"/", NULL}, {"/..", NULL}, {"/a/..", NULL}, {".", NULL},
		{"/system.slice:p:n", "/system.slice:p:n"}, /* without systemd only a name */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cgroup_place p;
		struct err e = {0};
		int rc = cgroup_place(&p, cases[i].given, "id", false, &e);

		assert_int_equal(rc, cases[i].path ? 0 : -1);
		if (cases[i].path)
			assert_string_equal(p.path, cases[i].path);
		else
			assert_int_equal(e.kind, ERR_USAGE);
	}
}

TEST(without_a_path_it_is_named_by_the_id)
{
	struct cgroup_place p;
	struct err e = {0};

	if (!cgroup_privileged())
		skip();
	assert_int_equal(cgroup_place(&p, NULL, "some-id", false, &e), 0);
	assert_string_equal(p.path, "/some-id");
	assert_string_equal(p.unit, "");
	assert_int_equal(cgroup_place(&p, "a/b", "some-id", false, &e), 0);
	assert_string_equal(p.path, "/a/b");
	assert_int_equal(cgroup_place(&p, "../../a", "some-id", false, &e), 0);
	assert_string_equal(p.path, "/a");
}

TEST(what_is_too_long_is_refused)
{
	char path[CGROUP_PATH_MAX + 100];
	struct cgroup_place p;
	struct err e = {0};

	memset(path, 'a', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(cgroup_place(&p, path, "id", false, &e), -1); /* a part */
	for (size_t i = 0; i < sizeof(path) - 1; i += 2)
		path[i] = '/';
	assert_int_equal(cgroup_place(&p, path, "id", false, &e), -1); /* all of it */
	memset(path, 'a', 300);
	snprintf(path + 300, sizeof(path) - 300, ".slice:p:n");
	assert_int_equal(cgroup_place(&p, path, "id", true, &e), -1);
	assert_int_equal(e.kind, ERR_USAGE);
}

TEST(systemd_names_are_slice_prefix_and_name)
{
	static const struct {
		const char *given, *slice, *unit, *path; /* slice NULL: refused */
	} cases[] = {
		{"system.slice:docker:abc", "system.slice", "docker-abc.scope",
			"/system.slice/docker-abc.scope"},
		{"a-b-c.slice:x:y", "a-b-c.slice", "x-y.scope",
			"/a.slice/a-b.slice/a-b-c.slice/x-y.scope"},
		{"-.slice:x:y", "-.slice", "x-y.scope", "/x-y.scope"},
		{"user.slice::y", "user.slice", "y.scope", "/user.slice/y.scope"},
		{"user.slice::user-y.slice", "user.slice", "user-y.slice",
			"/user.slice/user-y.slice"},
		{"user.slice:libpod:y.slice", "user.slice", "libpod-y.slice.scope",
			"/user.slice/libpod-y.slice.scope"},
		{"a.slice:x:1+2,3", "a.slice", "x-1\\x2b2\\x2c3.scope",
			"/a.slice/x-1\\x2b2\\x2c3.scope"},
		{"a.slice:x:../y", "a.slice", "x-..\\x2fy.scope", "/a.slice/x-..\\x2fy.scope"},
		{"/a/b", NULL, NULL, NULL},
		{"a.slice:x", NULL, NULL, NULL},
		{"a.slice:x:y:z", NULL, NULL, NULL},
		{"a.slice:x:", NULL, NULL, NULL},
		{"a:x:y", NULL, NULL, NULL},
		{".slice:x:y", NULL, NULL, NULL},
		{"-a.slice:x:y", NULL, NULL, NULL},
		{"a-.slice:x:y", NULL, NULL, NULL},
		{"a--b.slice:x:y", NULL, NULL, NULL},
		{"a/b.slice:x:y", NULL, NULL, NULL},
		{"a.slice::-.slice", NULL, NULL, NULL},
		{"a b.slice:x:y", NULL, NULL, NULL},
		{"../a.slice:x:y", NULL, NULL, NULL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cgroup_place p;
		struct err e = {0};
		int rc = cgroup_place(&p, cases[i].given, "id", true, &e);

		if (!cases[i].slice) {
			if (rc == 0 || e.kind != ERR_USAGE)
				fail_msg("'%s' is taken", cases[i].given);
			continue;
		}
		assert_int_equal(rc, 0);
		assert_string_equal(p.slice, cases[i].slice);
		assert_string_equal(p.unit, cases[i].unit);
		assert_string_equal(p.path, cases[i].path);
	}
}

TEST(systemd_without_a_path_is_named_by_the_id_too)
{
	struct cgroup_place p;
	struct err e = {0};

	assert_int_equal(cgroup_place(&p, NULL, "some-id", true, &e), 0);
	assert_string_equal(p.unit, "svrun-some-id.scope");
	assert_string_equal(p.slice, cgroup_privileged() ? "system.slice" : "user.slice");
}

TEST(lines_of_proc_cgroup_are_read_in_every_layout)
{
	static const char hybrid[] = "12:cpu,cpuacct:/a\n11:name=systemd:/b/c\n3:memory:/\n"
				     "nonsense\n4:../../x:/\n0::/unified\n";
	static struct cgroup_lines l;

	cgroup_lines_parse(&l, hybrid, false);
	assert_int_equal(l.n, 3);
	assert_string_equal(l.v[0].hierarchy, "cpu,cpuacct");
	assert_string_equal(l.v[0].path, "/a");
	assert_string_equal(l.v[1].hierarchy, "systemd");
	assert_string_equal(l.v[1].path, "/b/c");
	assert_string_equal(l.v[2].hierarchy, "memory");
	assert_string_equal(l.v[2].path, "/");
	cgroup_lines_parse(&l, hybrid, true);
	assert_int_equal(l.n, 1);
	assert_string_equal(l.v[0].hierarchy, "");
	assert_string_equal(l.v[0].path, "/unified");
	cgroup_lines_parse(&l, "", true);
	assert_int_equal(l.n, 0);
	cgroup_lines_parse(&l, "0:", true);
	assert_int_equal(l.n, 0);
}

TEST(a_hierarchy_has_the_controllers_of_its_name)
{
	assert_true(cgroup_names("cpuset cpu io\n", "cpu"));
	assert_true(cgroup_names("cpuset cpu io\n", "io"));
	assert_false(cgroup_names("", "cpu"));
	assert_false(cgroup_names("\n", "cpu"));
	assert_true(cgroup_names("cpu,cpuacct", "cpu"));
	assert_true(cgroup_names("cpu,cpuacct", "cpuacct"));
	assert_true(cgroup_names("cpuset", "cpuset"));
	assert_false(cgroup_names("cpuset", "cpu"));
	assert_false(cgroup_names("cpuacct", "cpu"));
	assert_false(cgroup_names("net_cls,net_prio", "net"));
}

RUN_TESTS(cmocka_unit_test(paths_are_cleaned_and_stay_below_the_root),
	cmocka_unit_test(without_a_path_it_is_named_by_the_id),
	cmocka_unit_test(what_is_too_long_is_refused),
	cmocka_unit_test(systemd_names_are_slice_prefix_and_name),
	cmocka_unit_test(systemd_without_a_path_is_named_by_the_id_too),
	cmocka_unit_test(lines_of_proc_cgroup_are_read_in_every_layout),
	cmocka_unit_test(a_hierarchy_has_the_controllers_of_its_name))
