#include "tests/unit/test.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/magic.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include "base/str.h"
#include "base/sys.h"
#include "runtime/dev.h"
#include "runtime/mounts.h"
#include "tests/unit/own-mounts.h"

/* A config of some mounts, and their plan. */
struct rig {
	struct spec spec;
	struct spec_mount mounts[80];
	struct mount_plan *plan;
	struct mounts_place place;
	struct err e;
};

static void add(struct rig *r, const char *destination, const char *type, const char *source,
	const char *options)
{
	struct spec_mount *m = &r->mounts[r->spec.nmounts++];
	const char **v = arena_alloc(&r->spec.mem, 16 * sizeof(*v));
	char *rest = arena_strdup(&r->spec.mem, options), *word;

	*m = (struct spec_mount){.destination = destination, .type = type, .source = source};
	m->options.v = v;
	while ((word = strsep(&rest, " ")))
		if (*word)
			v[m->options.n++] = word;
	r->spec.mounts = r->mounts;
}

static int plan(struct rig *r)
{
	r->e = (struct err){0};
	return mounts_plan(&r->spec, &r->spec.mem, &r->plan, &r->e);
}

static void rig_fini(struct rig *r)
{
	if (r->plan)
		mounts_close(r->plan, r->spec.nmounts);
	arena_fini(&r->spec.mem);
}

TEST(destinations_are_absolute_and_without_dots)
{
	static const char *const cases[][2] = {{"/a", "/a"}, {"a", "/a"}, {"//a///b/", "/a/b"},
		{"/a/./b/.", "/a/b"}, {"/a/../b", "/b"}, {"../../a", "/a"}, {"/a/b/../../c", "/c"},
		{"/...", "/..."}, {"/a/..b/.c", "/a/..b/.c"}};
	struct rig r = {0};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		add(&r, cases[i][0], "tmpfs", "x", "");
	assert_int_equal(plan(&r), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(r.plan[i].destination, cases[i][1]);
	rig_fini(&r);
}

TEST(a_plan_that_cannot_be_is_refused_before_anything_is_made)
{
	static const struct {
		const char *destination, *type, *source, *options, *text;
	} cases[] = {
		{"/", "tmpfs", "x", "", "mount /: nothing can be mounted over the root"},
		{"/a/..", "bind", "x", "", "mount /a/..: nothing can be mounted over the root"},
		{"/a", NULL, "x", "", "mount /a: no type"},
		{"/a", "bind", NULL, "", "mount /a: no source"},
		{"/a", NULL, "", "rbind", "mount /a: no source"},
		{"/a", "bind", "x", "size=1", "mount /a: unknown option 'size=1'"},
		{"/a", "cgroup", "x", "memory", "mount /a: unknown option 'memory'"},
		{"/a", "proc", "x", "tmpcopyup", "mount /a: tmpcopyup of anything but a tmpfs"},
		{"/a", "tmpfs", "x", "idmap", "mount /a: id maps of anything but a bind"},
		{"/a", "bind", "x", "ridmap",
			"mount /a: 'idmap' without uidMappings, and without a user namespace"},
		{"/a", "bind", "x", "move", "mount /a: mount option 'move' is not supported"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rig r = {0};

		add(&r, cases[i].destination, cases[i].type, cases[i].source, cases[i].options);
		assert_int_equal(plan(&r), -1);
		assert_string_equal(r.e.text, cases[i].text);
		rig_fini(&r);
	}
}

TEST(one_word_may_hold_several_options)
{
	static const char *const want[] = {
		"lowerdir=/a:/b\\,c", "upperdir=/u", "x", "context=s0:c1,c2", "size=1m", "y=\""};
	struct rig r = {0};

	add(&r, "/a", "overlay", "overlay",
		"lowerdir=/a:/b\\,c,upperdir=/u,,x, context=\"s0:c1,c2\",size=1m y=\"");
	assert_int_equal(plan(&r), 0);
	assert_int_equal(r.plan[0].o.data.n, 6);
	for (size_t i = 0; i < 6; i++)
		assert_string_equal(r.plan[0].o.data.v[i], want[i]);
	rig_fini(&r);
}

/* The root is `top`; sources start there, too. */
static int make(struct rig *r, int top)
{
	if (plan(r) < 0 || mounts_open(r->plan, &r->spec, top, &r->e) < 0)
		return -1;
	r->place = (struct mounts_place){
		.spec = &r->spec, .root = top, .bundle = top, .cgroup = NULL, .proc = -1};
	assert_int_equal(own_mounts_add(&r->place.own, top, &r->e), 0);
	return mounts_make(&r->place, r->plan, r->spec.nmounts, &r->e);
}

static long magic(const char *path)
{
	struct statfs fs;

	assert_int_equal(statfs(path, &fs), 0);
	return (long)fs.f_type;
}

static unsigned long flags(const char *path)
{
	struct statvfs fs;

	assert_int_equal(statvfs(path, &fs), 0);
	return fs.f_flag & (ST_RDONLY | ST_NOSUID | ST_NODEV | ST_NOEXEC);
}

static void make_some(int top)
{
	struct rig r = {0};

	assert_int_equal(mkdir("source", 0755), 0);
	put("source/file", "text", 0644);
	add(&r, "/proc", "proc", "proc", "nosuid");
	add(&r, "/t", "tmpfs", "t", "ro noexec");
	add(&r, "/dir", "bind", "source", "ro");
	add(&r, "/dir2/file", "bind", "source/file", "nodev");
	add(&r, "/t/below", "bind", "source", "");
	add(&r, "/t2", "tmpfs", "t", "");
	add(&r, "/t2/in", "tmpfs", "t", "");
	if (make(&r, top) < 0)
		fail_msg("%s", r.e.text);
	assert_true(magic("proc") == PROC_SUPER_MAGIC);
	assert_true(r.place.proc >= 0);
	assert_int_equal(flags("proc"), ST_NOSUID);
	assert_int_equal(flags("t"), ST_NOEXEC); /* more may have to be made in it */
	assert_int_equal(mounts_seal(&r.place, &r.e), 0);
	assert_int_equal(flags("t"), ST_RDONLY | ST_NOEXEC);
	assert_int_equal(flags("t/below"), 0);
	assert_int_equal(flags("dir"), ST_RDONLY);
	assert_int_equal(flags("source"), 0);
	assert_int_equal(flags("dir2/file"), ST_NODEV);
	assert_int_equal(r.place.own.n, 4); /* the root and the tmpfs */
	rig_fini(&r);
}

TEST(mounts_are_made_in_their_order)
{
	with_own_mounts(make_some);
}

static void make_too_many(int top)
{
	struct rig r = {0};

	for (int i = 0; i < OWN_MOUNTS_MAX; i++)
		add(&r, arena_printf(&r.spec.mem, "/t%d", i), "tmpfs", "t", "");
	assert_int_equal(make(&r, top), -1);
	assert_string_equal(r.e.text, "mount /t63: more than 64 tmpfs mounts");
	rig_fini(&r);
}

TEST(there_is_a_limit_to_tmpfs)
{
	with_own_mounts(make_too_many);
}

static void open_sources(int top)
{
	struct spec_idmap map = {0, 100000, 10};
	struct rig r = {0};
	struct stat st;

	assert_int_equal(mkdir("source", 0755), 0);
	add(&r, "/plain", "bind", "source", "");
	add(&r, "/mapped", "bind", "source", "");
	r.mounts[1].uids = r.mounts[1].gids = (struct spec_idmaps){&map, 1};
	assert_int_equal(plan(&r), 0);
	if (mounts_open(r.plan, &r.spec, top, &r.e) < 0)
		fail_msg("%s", r.e.text);
	assert_int_equal(r.plan[0].fd, -1); /* the child can do that itself */
	assert_int_equal(sys_fstat(r.plan[1].fd, &st), 0);
	assert_int_equal(st.st_uid, 100000);
	mounts_close(r.plan, 2);
	assert_int_equal(r.plan[1].fd, -1);
	/* In a user namespace all sources are opened before. */
	r.spec.namespaces[NS_USER].given = true;
	assert_int_equal(mounts_open(r.plan, &r.spec, top, &r.e), 0);
	assert_true(r.plan[0].fd >= 0);
	rig_fini(&r);
}

TEST(sources_are_opened_before_where_the_child_could_not)
{
	with_own_mounts(open_sources);
}

static void open_without_root(int top)
{
	struct spec_idmap map = {0, 100000, 10};
	struct rig r = {0};

	add(&r, "/plain", "bind", ".", "");
	r.spec.namespaces[NS_USER].given = true;
	assert_int_equal(plan(&r), 0);
	assert_int_equal(setgroups(0, NULL), 0);
	assert_int_equal(setresuid(65534, 65534, 65534), 0);
	assert_int_equal(mounts_open(r.plan, &r.spec, top, &r.e), 0);
	assert_int_equal(r.plan[0].fd, -1);
	r.mounts[0].uids = r.mounts[0].gids = (struct spec_idmaps){&map, 1};
	assert_int_equal(mounts_open(r.plan, &r.spec, top, &r.e), -1);
	assert_int_equal(r.e.kind, ERR_DENIED);
	rig_fini(&r);
}

TEST(without_root_sources_are_left_to_the_child)
{
	with_own_mounts(open_without_root);
}

static void mask_some(int top)
{
	static const char *paths[] = {"/file", "/dir", "/missing", "/file/x", "/file2", "/dir2"};
	struct strings list = {paths, 6};
	struct err e = {0};
	char text[8];
	int null = dev_null(&e), fd;

	assert_true(null >= 0);
	put("file", "secret", 0644);
	put("file2", "secret", 0644);
	assert_int_equal(mkdir("dir", 0755), 0);
	assert_int_equal(mkdir("dir2", 0755), 0);
	put("dir2/file", "secret", 0644);
	if (mounts_mask(top, null, &list, &e) < 0)
		fail_msg("%s", e.text);
	for (int i = 0; i < 2; i++) {
		fd = sys_open(i ? "file2" : "file", O_RDONLY, 0);
		assert_int_equal(read(fd, text, sizeof(text)), 0);
		assert_int_equal(fchmod(fd, 0600), -1); /* of the host's null device */
		close(fd);
	}
	assert_int_equal(access("dir2/file", F_OK), -1);
	assert_int_equal(mkdir("dir/x", 0755), -1);
	assert_int_equal(flags("dir"), ST_RDONLY | ST_NOSUID | ST_NODEV | ST_NOEXEC);
}

TEST(masked_paths_are_empty)
{
	with_own_mounts(mask_some);
}

static void protect_some(int top)
{
	static const char *paths[] = {"/dir", "/missing"};
	struct strings list = {paths, 2};
	struct err e = {0};

	assert_int_equal(mkdir("dir", 0755), 0);
	assert_int_equal(mkdir("dir/sub", 0755), 0);
	assert_int_equal(sys_mount("t", "dir/sub", "tmpfs", 0, NULL), 0);
	if (mounts_readonly(top, &list, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(flags("dir"), ST_RDONLY);
	assert_int_equal(flags("dir/sub"), ST_RDONLY);
}

TEST(read_only_paths_are_so_with_all_below)
{
	with_own_mounts(protect_some);
}

RUN_TESTS(cmocka_unit_test(destinations_are_absolute_and_without_dots),
	cmocka_unit_test(a_plan_that_cannot_be_is_refused_before_anything_is_made),
	cmocka_unit_test(one_word_may_hold_several_options),
	cmocka_unit_test(mounts_are_made_in_their_order),
	cmocka_unit_test(there_is_a_limit_to_tmpfs),
	cmocka_unit_test(sources_are_opened_before_where_the_child_could_not),
	cmocka_unit_test(without_root_sources_are_left_to_the_child),
	cmocka_unit_test(masked_paths_are_empty),
	cmocka_unit_test(read_only_paths_are_so_with_all_below))
