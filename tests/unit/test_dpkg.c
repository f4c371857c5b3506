#include "tests/unit/fixture.h"

#include "base/str.h"
#include "builder/archive.h"
#include "builder/dpkg.h"
#include "builder/rootfs.h"

/* ---- packages by hand ---- */

enum { EPOCH = 1767225600, DEBS_MAX = 8 };

struct world {
	struct fixture f;
	struct deb debs[DEBS_MAX];
	const struct deb *all[DEBS_MAX];
	size_t n;
	struct manifest_apt apt;
};

static void setup(struct world *w)
{
	*w = (struct world){.apt = {.present = true, .merge_usr = true}};
	fixture_init(&w->f);
}

static void teardown(struct world *w)
{
	for (size_t i = 0; i < w->n; i++)
		deb_fini(&w->debs[i]);
	fixture_fini(&w->f);
}

static struct deb *add_deb(struct world *w, const char *name, const char *fields)
{
	struct deb *d = &w->debs[w->n];

	w->all[w->n++] = d;
	d->name = name;
	d->version = "1.0-1";
	d->arch = "amd64";
	d->control = arena_printf(
		&d->arena, "Package: %s\nVersion: 1.0-1\nArchitecture: amd64\n%s", name, fields);
	d->files = arena_alloc(&d->arena, 16 * sizeof(*d->files));
	return d;
}

static void ship_dir(struct deb *d, const char *path, uint32_t mode)
{
	entries_add(&d->data, path)->a =
		(struct attr){.type = NODE_DIR, .mode = mode, .mtime = 1000};
}

static void ship_file(struct world *w, struct deb *d, const char *path, const char *text)
{
	struct fixture *f = &w->f;
	struct entry *en = entries_add(&d->data, path);

	en->a = (struct attr){.type = NODE_FILE, .mode = 0644, .mtime = 1000};
	need(content_from_mem(text, strlen(text), f->p, &d->data.arena, &en->a, &f->e));
}

static void ship_link(struct deb *d, const char *path, const char *target)
{
	entries_add(&d->data, path)->a =
		(struct attr){.type = NODE_SYMLINK, .mode = 0777, .target = target};
}

static void control_file(struct deb *d, const char *name, const char *text)
{
	d->files[d->nfiles++] =
		(struct deb_file){.name = name, .data = text, .len = strlen(text), .mode = 0755};
}

static int merge(struct world *w)
{
	struct err *e = &w->f.e;

	if (dpkg_prepare(w->f.t, &w->apt, e) < 0)
		return -1;
	for (size_t i = 0; i < w->n; i++)
		if (dpkg_merge(w->f.t, w->all[i], (uint32_t)i + 1, w->all, w->n, e) < 0)
			return -1;
	return 0;
}

static int finish(struct world *w)
{
	return dpkg_finish(w->f.t, &w->apt, w->all, w->n, w->f.p, EPOCH, 0, &w->f.e);
}

static void merge_and_finish(struct world *w)
{
	struct fixture *f = &w->f;

	need(merge(w));
	need(finish(w));
}

/* ---- looking ---- */

static char *text_of(struct world *w, const char *path)
{
	struct fixture *f = &w->f;
	struct rootfs r = {.tree = f->t, .pool = f->p};
	struct buf b = BUF_INIT(1 << 20);
	int rc = rootfs_read(&r, path, &b, &f->e);

	if (rc <= 0)
		fail_msg("%s: %s", path, rc ? f->e.text : "is not there");
	buf_put(&b, "", 0);
	return b.data;
}

static void text_is(struct world *w, const char *path, const char *want)
{
	auto_free char *found = text_of(w, path);

	if (strcmp(found, want) != 0)
		fail_msg("/%s is '%s', not '%s'", path, found, want);
}

static void text_has(struct world *w, const char *path, const char *want)
{
	auto_free char *found = text_of(w, path);

	if (!strstr(found, want))
		fail_msg("/%s is '%s' and lacks '%s'", path, found, want);
}

static void link_is(struct world *w, const char *path, const char *target)
{
	const struct node *n = rootfs_at(w->f.t, path);

	if (!n || n->a.type != NODE_SYMLINK)
		fail_msg("/%s is no link", path);
	else
		assert_string_equal(n->a.target, target);
}

static void fails(struct world *w, int (*fn)(struct world *), enum err_kind kind, const char *words)
{
	assert_int_equal(fn(w), -1);
	if (w->f.e.kind != kind || !strstr(w->f.e.text, words))
		fail_msg("'%s' (%s) lacks '%s'", w->f.e.text, err_kind_name(w->f.e.kind), words);
}

/* ---- merging ---- */

TEST(files_of_the_root_land_in_usr)
{
	struct world w;
	struct deb *d;

	setup(&w);
	d = add_deb(&w, "sh", "");
	ship_dir(d, "bin", 0755);
	ship_file(&w, d, "bin/sh", "x");
	ship_dir(d, "lib64", 0755);
	ship_file(&w, d, "lib64/ld.so", "x");
	merge_and_finish(&w);
	link_is(&w, "bin", "usr/bin");
	link_is(&w, "lib64", "usr/lib64");
	text_is(&w, "usr/bin/sh", "x");
	text_is(&w, "usr/lib64/ld.so", "x");
	/* dpkg keeps the names as they are shipped */
	text_is(&w, "var/lib/dpkg/info/sh.list", "/bin\n/bin/sh\n/lib64\n/lib64/ld.so\n");
	teardown(&w);
}

TEST(the_first_folder_stays_and_so_do_links_to_folders)
{
	struct world w;
	struct deb *a, *b;

	setup(&w);
	a = add_deb(&w, "a", "");
	ship_dir(a, "srv", 0700);
	ship_dir(a, "usr/share/real", 0755);
	ship_link(a, "usr/share/link", "real");
	b = add_deb(&w, "b", "");
	ship_dir(b, "srv", 0755);
	ship_dir(b, "usr/share/link", 0755);
	ship_file(&w, b, "usr/share/link/f", "x");
	ship_link(b, "usr/share/real", "elsewhere");
	merge_and_finish(&w);
	assert_int_equal(tree_find(w.f.t, "srv")->a.mode, 0700);
	link_is(&w, "usr/share/link", "real");
	text_is(&w, "usr/share/real/f", "x");
	teardown(&w);
}

TEST(one_file_of_two_packages_is_an_error_that_names_both)
{
	struct world w;

	setup(&w);
	ship_file(&w, add_deb(&w, "one", ""), "usr/f", "1");
	ship_file(&w, add_deb(&w, "two", ""), "usr/f", "2");
	fails(&w, merge, ERR_CORRUPT, "packages one and two both ship /usr/f");
	teardown(&w);
	setup(&w); /* through a link, too */
	ship_file(&w, add_deb(&w, "one", ""), "bin/f", "1");
	ship_file(&w, add_deb(&w, "two", ""), "usr/bin/f", "2");
	fails(&w, merge, ERR_CORRUPT, "packages one and two both ship /usr/bin/f");
	teardown(&w);
	setup(&w);
	ship_dir(add_deb(&w, "one", ""), "usr/d", 0755);
	ship_file(&w, add_deb(&w, "two", ""), "usr/d", "2");
	fails(&w, merge, ERR_CORRUPT, "package two ships /usr/d, which is a folder");
	teardown(&w);
}

TEST(equal_files_are_shared)
{
	struct world w;

	setup(&w);
	ship_file(&w, add_deb(&w, "one", ""), "usr/f", "same");
	ship_file(&w, add_deb(&w, "two", ""), "usr/f", "same");
	merge_and_finish(&w);
	text_is(&w, "var/lib/dpkg/info/one.list", "/usr/f\n");
	text_is(&w, "var/lib/dpkg/info/two.list", "/usr/f\n");
	teardown(&w);
}

TEST(without_a_database_nothing_of_dpkg_is_left)
{
	struct world w;
	struct deb *d;

	setup(&w);
	w.apt.database = DATABASE_NONE;
	d = add_deb(&w, "dash", "");
	ship_dir(d, "var/lib/dpkg/info", 0755);
	ship_file(&w, d, "usr/bin/dash", "x");
	control_file(d, "postinst",
		"#!/bin/sh\nupdate-alternatives --install /usr/bin/shell shell /usr/bin/dash 10\n");
	merge_and_finish(&w);
	assert_null(tree_find(w.f.t, "var/lib/dpkg"));
	assert_null(tree_find(w.f.t, "var/lib/apt"));
	link_is(&w, "usr/bin/shell", "/etc/alternatives/shell");
	link_is(&w, "etc/alternatives/shell", "/usr/bin/dash");
	teardown(&w);
}

TEST(who_replaces_wins_in_either_order)
{
	for (int order = 0; order < 2; order++) {
		struct world w;
		const char *fields = "Replaces: other (<< 2), old (<< 1.0)\n";

		setup(&w);
		if (order)
			ship_file(&w, add_deb(&w, "new", fields), "usr/f", "new");
		ship_file(&w, add_deb(&w, "old", ""), "usr/f", "old");
		if (!order)
			ship_file(&w, add_deb(&w, "new", fields), "usr/f", "new");
		merge_and_finish(&w);
		text_is(&w, "usr/f", "new");
		text_is(&w, "var/lib/dpkg/info/new.list", "/usr/f\n");
		text_is(&w, "var/lib/dpkg/info/old.list", ""); /* dpkg forgets it, too */
		teardown(&w);
	}
}

/* ---- the database ---- */

TEST(the_status_is_the_control_file_and_what_dpkg_adds)
{
	struct world w;
	struct deb *d;

	setup(&w);
	d = add_deb(&w, "conf", "Description: a\n b\n");
	ship_file(&w, d, "etc/conf", "abc");
	control_file(d, "conffiles", "/etc/conf\nremove-on-upgrade /etc/old\n/etc/missing\n");
	control_file(d, "postinst", "#!/bin/sh\n");
	merge_and_finish(&w);
	text_is(&w, "var/lib/dpkg/status",
		"Package: conf\nStatus: install ok installed\nVersion: 1.0-1\n"
		"Architecture: amd64\nDescription: a\n b\nConffiles:\n"
		" /etc/conf 900150983cd24fb0d6963f7d28e17f72\n\n");
	text_is(&w, "var/lib/dpkg/info/conf.postinst", "#!/bin/sh\n");
	assert_int_equal(tree_find(w.f.t, "var/lib/dpkg/info/conf.postinst")->a.mode, 0755);
	assert_int_equal(tree_find(w.f.t, "var/lib/dpkg/status")->a.mtime, EPOCH);
	text_is(&w, "var/lib/dpkg/info/format", "1\n");
	text_is(&w, "var/lib/dpkg/diversions", "");
	text_is(&w, "var/lib/dpkg/available", "");
	teardown(&w);
}

TEST(unconfigured_packages_are_only_unpacked)
{
	struct world w;

	setup(&w);
	w.apt.configure = APT_NONE;
	control_file(add_deb(&w, "a", ""), "postinst",
		"update-alternatives --install /usr/bin/x x /usr/bin/y 1\n");
	ship_file(&w, &w.debs[0], "usr/bin/y", "y");
	merge_and_finish(&w);
	text_has(&w, "var/lib/dpkg/status", "Status: install ok unpacked\n");
	assert_null(tree_find(w.f.t, "usr/bin/x"));
	teardown(&w);
}

TEST(names_carry_the_architecture_where_it_may_be_there_twice)
{
	struct world w;
	struct deb *d;

	setup(&w);
	d = add_deb(&w, "libx", "Multi-Arch: same\n");
	d->multi_arch = "same";
	d->automatic = true;
	control_file(d, "triggers",
		"# made\ninterest-noawait /usr/share/x\ninterest y\nactivate ldconfig\n");
	d = add_deb(&w, "z", "");
	control_file(d, "triggers", "interest-await y\ninterest ../bad\n");
	merge_and_finish(&w);
	text_is(&w, "var/lib/dpkg/info/libx:amd64.list", "");
	text_is(&w, "var/lib/dpkg/triggers/File", "/usr/share/x libx:amd64/noawait\n");
	text_is(&w, "var/lib/dpkg/triggers/y", "libx:amd64\nz\n");
	text_is(&w, "var/lib/apt/extended_states",
		"Package: libx\nArchitecture: amd64\nAuto-Installed: 1\n\n");
	teardown(&w);
}

/* Each of these takes time or memory without end when it is not bounded. */
TEST(a_package_that_registers_without_end_is_refused)
{
	static const struct {
		const char *file, *line, *says;
		unsigned lines;
	} cases[] = {
		{"conffiles", "/etc/big\n", "conffiles of greedy: '/etc/big'", 5000},
		{"triggers", "interest a#\n", "triggers of greedy: more than 1024 lines", 1025},
		{"postinst", "update-alternatives --install /bin/g# g# /bin/x 1\n",
			"postinst of greedy: one alternative too many", 2049},
		{"postinst", "update-alternatives --install /bin/g g /bin/x# 1\n",
			"postinst of greedy: one alternative too many", 257},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world w;
		auto_buf struct buf text = BUF_INIT(1 << 20);
		struct deb *d;

		setup(&w);
		d = add_deb(&w, "greedy", "");
		ship_file(&w, d, "etc/big", "text");
		for (unsigned k = 0; k < cases[i].lines; k++) {
			for (const char *c = cases[i].line; *c; c++)
				if (*c == '#')
					buf_printf(&text, "%u", k);
				else
					buf_put(&text, c, 1);
		}
		buf_put(&text, "", 1);
		control_file(d, cases[i].file, text.data);
		assert_int_equal(merge(&w), 0);
		assert_int_equal(finish(&w), -1);
		assert_non_null(strstr(w.f.e.text, cases[i].says));
		teardown(&w);
	}
}

/* ---- alternatives ---- */

static void two_pagers(struct world *w)
{
	struct deb *d = add_deb(w, "less", "");

	ship_file(w, d, "usr/bin/less", "less");
	ship_file(w, d, "usr/share/man/man1/less.1.gz", "man");
	control_file(d, "postinst",
		"update-alternatives --quiet --install /usr/bin/pager pager \\\n"
		"  /usr/bin/less 77 --slave /usr/share/man/man1/pager.1.gz pager.1.gz \\\n"
		"  /usr/share/man/man1/less.1.gz\n");
	d = add_deb(w, "more", "");
	ship_file(w, d, "bin/more", "more");
	control_file(d, "postinst",
		"B=/bin\nupdate-alternatives --install /usr/bin/pager pager $B/more 50 \\\n"
		" --slave /usr/share/man/man1/pager.1.gz pager.1.gz /usr/share/man/man1/more.1.gz\n"
		"update-alternatives --install /usr/bin/pager pager /usr/bin/nothing 99\n"
		"update-alternatives --install usr/bin/bad bad /usr/bin/less 1\n"
		"update-alternatives --install /usr/bin/bad ../bad /usr/bin/less 1\n"
		"update-alternatives --install /usr/bin/bad bad /usr/bin/less high\n");
}

TEST(the_highest_priority_is_linked)
{
	struct world w;

	setup(&w);
	two_pagers(&w);
	merge_and_finish(&w);
	link_is(&w, "usr/bin/pager", "/etc/alternatives/pager");
	link_is(&w, "etc/alternatives/pager", "/usr/bin/less");
	link_is(&w, "usr/share/man/man1/pager.1.gz", "/etc/alternatives/pager.1.gz");
	link_is(&w, "etc/alternatives/pager.1.gz", "/usr/share/man/man1/less.1.gz");
	text_is(&w, "usr/bin/pager", "less");
	text_is(&w, "var/lib/dpkg/alternatives/pager",
		"auto\n/usr/bin/pager\npager.1.gz\n/usr/share/man/man1/pager.1.gz\n\n"
		"/bin/more\n50\n/usr/share/man/man1/more.1.gz\n"
		"/usr/bin/less\n77\n/usr/share/man/man1/less.1.gz\n\n");
	assert_null(tree_find(w.f.t, "usr/bin/bad"));
	teardown(&w);
}

TEST(the_manifest_chooses)
{
	static const struct {
		const char *name, *target, *words;
	} cases[] = {
		{"pager", "/bin/more", NULL},
		{"/usr/bin/pager", "/bin/more", NULL},
		{"pager", "/bin/less",
			"pager: no package offers /bin/less; there is /bin/more, "
			"/usr/bin/less"},
		{"pagr", "/bin/more", "no package offers 'pagr'; did you mean 'pager'?"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world w;
		struct fixture *f = &w.f;
		struct pair choice = {cases[i].name, cases[i].target};

		setup(&w);
		two_pagers(&w);
		w.apt.alternatives = (struct pairs){.v = &choice, .n = 1};
		need(merge(&w));
		if (cases[i].words) {
			fails(&w, finish, ERR_USAGE, cases[i].words);
		} else {
			need(finish(&w));
			text_is(&w, "usr/bin/pager", "more");
			text_has(&w, "var/lib/dpkg/alternatives/pager", "manual\n");
			/* the manual page that it names is not there */
			assert_null(rootfs_at(w.f.t, "etc/alternatives/pager.1.gz"));
		}
		teardown(&w);
	}
}

TEST(a_program_is_not_replaced_by_a_link)
{
	struct world w;
	struct deb *d;

	setup(&w);
	d = add_deb(&w, "a", "");
	ship_file(&w, d, "usr/bin/pager", "a real program");
	ship_file(&w, d, "usr/bin/less", "less");
	control_file(d, "postinst",
		"update-alternatives --install /usr/bin/pager pager /usr/bin/less 1\n");
	merge_and_finish(&w);
	text_is(&w, "usr/bin/pager", "a real program");
	teardown(&w);
}

/* ---- configuration ---- */

TEST(users_come_from_the_masters_and_the_scripts)
{
	struct world w;
	struct deb *d;

	setup(&w);
	d = add_deb(&w, "base-passwd", "");
	ship_file(&w, d, "usr/share/base-passwd/passwd.master",
		"root:*:0:0:root:/root:/bin/bash\nnobody:*:65534:65534:nobody:/x:/bin/false\n");
	ship_file(&w, d, "usr/share/base-passwd/group.master",
		"root:*:0:\nshadow:*:42:\nusers:*:100:\nnogroup:*:65534:\n");
	add_deb(&w, "passwd", "");
	d = add_deb(&w, "dbus", "");
	ship_file(&w, d, "usr/lib/helper", "x");
	control_file(d, "postinst",
		"U=messagebus\n"
		"in_sysroot adduser --system --quiet --home /nonexistent --group \"$U\"\n"
		"adduser --system --no-create-home --shell /bin/sh --ingroup users other\n"
		"adduser --system bad:name\nadduser --system $1\nadduser person\n"
		"addgroup --system rdma\naddgroup --system rdma\n"
		"dpkg-statoverride --update --add root $U 4754 /usr/lib/helper\n");
	merge_and_finish(&w);
	text_is(&w, "etc/passwd",
		"root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/x:/bin/false\n"
		"messagebus:x:100:101::/nonexistent:/usr/sbin/nologin\n"
		"other:x:101:100::/nonexistent:/bin/sh\n");
	text_is(&w, "etc/group",
		"root:x:0:\nshadow:x:42:\nusers:x:100:\nnogroup:x:65534:\nmessagebus:x:101:\n"
		"rdma:x:102:\n");
	text_is(&w, "etc/shadow",
		"root:*:20454:0:99999:7:::\nnobody:*:20454:0:99999:7:::\n"
		"messagebus:!:20454::::::\nother:!:20454::::::\n");
	assert_int_equal(tree_find(w.f.t, "etc/shadow")->a.mode, 0640);
	assert_int_equal(tree_find(w.f.t, "etc/shadow")->a.gid, 42);
	text_is(&w, "var/lib/dpkg/statoverride", "root messagebus 4754 /usr/lib/helper\n");
	assert_int_equal(tree_find(w.f.t, "usr/lib/helper")->a.mode, 04754);
	assert_int_equal(tree_find(w.f.t, "usr/lib/helper")->a.gid, 101);
	teardown(&w);
}

TEST(known_packages_get_what_their_scripts_make)
{
	struct world w;
	struct deb *d;

	setup(&w);
	d = add_deb(&w, "base-files", "");
	ship_file(&w, d, "usr/share/base-files/profile", "profile");
	ship_file(&w, d, "etc/dpkg/origins/debian", "Vendor: Debian\n");
	ship_dir(d, "var/run", 0755);
	d = add_deb(&w, "debianutils", "");
	ship_file(&w, d, "usr/share/debianutils/shells", "# comment\n/bin/sh\n");
	d = add_deb(&w, "dash", "");
	ship_file(&w, d, "usr/share/debianutils/shells.d/dash", "/bin/dash\n");
	control_file(d, "postinst", "\tdpkg-divert --package dash --no-rename --divert $d\n");
	d = add_deb(&w, "tzdata", "");
	ship_file(&w, d, "usr/share/zoneinfo/Etc/UTC", "TZif");
	merge_and_finish(&w);
	text_is(&w, "etc/profile", "profile");
	assert_null(tree_find(w.f.t, "etc/motd")); /* nothing to copy it from */
	link_is(&w, "etc/dpkg/origins/default", "debian");
	link_is(&w, "var/run", "/run");
	assert_int_equal(tree_find(w.f.t, "run/lock")->a.mode, 01777);
	assert_int_equal(tree_find(w.f.t, "var/mail")->a.gid, 8);
	text_is(&w, "etc/shells",
		"# /etc/shells: valid login shells\n/bin/sh\n/usr/bin/sh\n/bin/dash\n"
		"/usr/bin/dash\n");
	text_has(&w, "var/lib/dpkg/diversions", "/bin/sh\n/bin/sh.distrib\ndash\n");
	link_is(&w, "etc/localtime", "/usr/share/zoneinfo/Etc/UTC");
	text_is(&w, "etc/timezone", "Etc/UTC\n");
	teardown(&w);
}

TEST(pam_stacks_are_made_of_the_profiles)
{
	struct world w;
	struct deb *d;

	setup(&w);
	d = add_deb(&w, "libpam-runtime", "");
	ship_file(&w, d, "usr/share/pam/common-auth",
		"# head\n$auth_primary\nauth\trequisite\tpam_deny.so\n$auth_additional\n# end\n");
	ship_file(&w, d, "usr/share/pam/common-session-noninteractive",
		"$session_nonint_primary\n$session_nonint_additional\n");
	ship_file(&w, d, "usr/share/pam-configs/unix",
		"Name: Unix\nDefault: yes\nPriority: 256\nAuth-Type: Primary\nAuth:\n"
		"\t[success=end default=ignore]\tpam_unix.so try_first_pass\nAuth-Initial:\n"
		"\t[success=end default=ignore]\tpam_unix.so nullok\nSession-Type: Additional\n"
		"Session:\n\trequired\tpam_unix.so\n");
	ship_file(&w, d, "usr/share/pam-configs/ldap",
		"Name: LDAP\nDefault: yes\nPriority: 128\nAuth-Type: Primary\nAuth:\n"
		"\t[success=end default=ignore]\tpam_ldap.so use_first_pass\n");
	ship_file(&w, d, "usr/share/pam-configs/mkhomedir",
		"Name: home\nDefault: no\nPriority: 0\nSession-Type: Additional\nSession:\n"
		"\toptional\tpam_mkhomedir.so\n");
	merge_and_finish(&w);
	text_is(&w, "etc/pam.d/common-auth",
		"# head\nauth\t[success=2 default=ignore]\tpam_unix.so nullok\n"
		"auth\t[success=1 default=ignore]\tpam_ldap.so use_first_pass\n"
		"auth\trequisite\tpam_deny.so\n# end\n");
	text_is(&w, "etc/pam.d/common-session-noninteractive",
		"session\t[default=1]\t\t\tpam_permit.so\nsession\trequired\tpam_unix.so \n");
	text_is(&w, "var/lib/pam/seen", "ldap\nmkhomedir\nunix\n");
	teardown(&w);
}

TEST(a_file_that_is_no_certificate_is_named)
{
	struct world w;
	struct fixture *f = &w.f;

	setup(&w);
	ship_file(&w, add_deb(&w, "ca-certificates", ""),
		"usr/share/ca-certificates/mozilla/Bad.crt", "-----BEGIN CERTIFICATE-----\n");
	need(merge(&w));
	fails(&w, finish, ERR_CORRUPT,
		"/usr/share/ca-certificates/mozilla/Bad.crt is no certificate");
	teardown(&w);
}

/* ---- prune ---- */

TEST(documentation_goes_and_licences_stay)
{
	static const char *const what[] = {"doc", "man", "info", "locale:!en", "pyc", "apt-lists"};
	struct world w;
	struct deb *d;
	const char *names[6];

	setup(&w);
	d = add_deb(&w, "a", "");
	ship_dir(d, "usr/share/doc/a", 0755);
	ship_file(&w, d, "usr/share/doc/a/copyright", "licence");
	ship_file(&w, d, "usr/share/doc/a/examples/deep/x", "x");
	ship_link(d, "usr/share/doc/a-dev", "a");
	ship_file(&w, d, "usr/share/man/man1/a.1.gz", "x");
	ship_file(&w, d, "usr/share/locale/de/LC_MESSAGES/a.mo", "x");
	ship_file(&w, d, "usr/share/locale/en/LC_MESSAGES/a.mo", "x");
	ship_file(&w, d, "usr/share/locale/en_GB/LC_MESSAGES/a.mo", "x");
	ship_file(&w, d, "usr/share/locale/enm/LC_MESSAGES/a.mo", "x");
	ship_file(&w, d, "usr/share/locale/locale.alias", "x");
	ship_file(&w, d, "usr/lib/python3/a/__pycache__/a.pyc", "x");
	ship_file(&w, d, "usr/lib/python3/a/a.py", "x");
	control_file(d, "postinst",
		"update-alternatives --install /usr/share/man/man1/b.1.gz b.1.gz "
		"/usr/share/man/man1/a.1.gz 1\n");
	memcpy(names, what, sizeof(what));
	w.apt.prune = (struct strings){.v = names, .n = 6};
	merge_and_finish(&w);
	text_is(&w, "usr/share/doc/a/copyright", "licence");
	assert_null(tree_find(w.f.t, "usr/share/doc/a/examples"));
	link_is(&w, "usr/share/doc/a-dev", "a");
	assert_non_null(tree_find(w.f.t, "usr/share/man"));
	assert_null(tree_find(w.f.t, "usr/share/man/man1"));
	assert_null(tree_find(w.f.t, "usr/share/locale/de"));
	assert_null(tree_find(w.f.t, "usr/share/locale/enm"));
	assert_non_null(tree_find(w.f.t, "usr/share/locale/en/LC_MESSAGES/a.mo"));
	assert_non_null(tree_find(w.f.t, "usr/share/locale/en_GB/LC_MESSAGES/a.mo"));
	assert_non_null(tree_find(w.f.t, "usr/share/locale/locale.alias"));
	assert_null(tree_find(w.f.t, "usr/lib/python3/a/__pycache__"));
	assert_non_null(tree_find(w.f.t, "usr/lib/python3/a/a.py"));
	assert_null(rootfs_at(w.f.t, "etc/alternatives/b.1.gz"));
	/* dpkg still knows them, and leaves out what comes later */
	text_has(&w, "var/lib/dpkg/info/a.list", "/usr/share/man/man1/a.1.gz\n");
	text_has(&w, "etc/dpkg/dpkg.cfg.d/svrun-prune",
		"path-exclude=/usr/share/doc/*\npath-exclude=/usr/share/lintian/*\n");
	text_has(
		&w, "etc/dpkg/dpkg.cfg.d/svrun-prune", "path-include=/usr/share/doc/*/copyright\n");
	text_has(&w, "etc/dpkg/dpkg.cfg.d/svrun-prune", "path-include=/usr/share/locale/en_*/*\n");
	teardown(&w);
}

TEST(unknown_things_cannot_be_pruned)
{
	static const char *const bad[] = {"docs", "locale:!", "locale:!*", "locale:!../x", ""};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct world w;
		const char *name = bad[i];

		setup(&w);
		w.apt.prune = (struct strings){.v = &name, .n = 1};
		fails(&w, finish, ERR_USAGE, "/apt/prune: ");
		teardown(&w);
	}
}

RUN_TESTS(cmocka_unit_test(a_package_that_registers_without_end_is_refused),
	cmocka_unit_test(files_of_the_root_land_in_usr),
	cmocka_unit_test(the_first_folder_stays_and_so_do_links_to_folders),
	cmocka_unit_test(one_file_of_two_packages_is_an_error_that_names_both),
	cmocka_unit_test(equal_files_are_shared),
	cmocka_unit_test(without_a_database_nothing_of_dpkg_is_left),
	cmocka_unit_test(who_replaces_wins_in_either_order),
	cmocka_unit_test(the_status_is_the_control_file_and_what_dpkg_adds),
	cmocka_unit_test(unconfigured_packages_are_only_unpacked),
	cmocka_unit_test(names_carry_the_architecture_where_it_may_be_there_twice),
	cmocka_unit_test(the_highest_priority_is_linked), cmocka_unit_test(the_manifest_chooses),
	cmocka_unit_test(a_program_is_not_replaced_by_a_link),
	cmocka_unit_test(users_come_from_the_masters_and_the_scripts),
	cmocka_unit_test(known_packages_get_what_their_scripts_make),
	cmocka_unit_test(pam_stacks_are_made_of_the_profiles),
	cmocka_unit_test(a_file_that_is_no_certificate_is_named),
	cmocka_unit_test(documentation_goes_and_licences_stay),
	cmocka_unit_test(unknown_things_cannot_be_pruned))
