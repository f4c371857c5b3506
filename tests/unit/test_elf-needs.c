#include "tests/unit/elf-make.h"

#include <ftw.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/str.h"
#include "builder/elf-file.h"
#include "builder/elf-needs.h"
#include "builder/ld-conf.h"

/* ---- where libraries are found ---- */

static void put_text(struct fixture *f, const char *path, const char *text)
{
	put_bytes(f, path, text, (uint32_t)strlen(text), 0644);
}

static void put_link(struct fixture *f, const char *path, const char *target)
{
	put_node(f, path, &(struct attr){.type = NODE_SYMLINK, .mode = 0777, .target = target});
}

/* "PATH LIBRARY ELSEWHERE;" of each. */
static void unresolved(
	struct fixture *f, const char *const *globs, const char *library_path, struct buf *out)
{
	const struct rootfs r = {.tree = f->t, .pool = f->p};
	struct strings list = {.v = (const char **)(uintptr_t)globs};
	struct arena a = {0};
	struct elf_unresolved *v;
	size_t n;

	while (globs && globs[list.n])
		list.n++;
	tree_sort(f->t);
	need(elf_unresolved(&r, globs ? &list : NULL, library_path, &a, &v, &n, &f->e));
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "%s%s %s%s%s%s;", v[i].damaged ? "!" : "", v[i].path, v[i].library,
			v[i].elsewhere ? " (" : "", v[i].elsewhere ? v[i].elsewhere : "",
			v[i].elsewhere ? ")" : "");
	arena_fini(&a);
}

static const struct elf_spec plain = {.needs = {NULL}};

struct found_case {
	const char *what;
	struct elf_spec program; /* opt/app/bin/x */
	const char *library;     /* where libx.so is; NULL: nowhere */
	const char *conf;        /* etc/ld.so.conf, and there is a cache */
	const char *library_path;
	const char *missing; /* "" when it is found */
};

#define LOST "/opt/app/bin/x libx.so (/%s);"
#define NEEDS .needs = {"libx.so"}

static const struct found_case found_cases[] = {
	{"default", {NEEDS}, "usr/lib/libx.so", NULL, NULL, ""},
	{"multiarch", {NEEDS}, "usr/lib/x86_64-linux-gnu/libx.so", NULL, NULL, ""},
	{"lib64", {NEEDS}, "lib64/libx.so", NULL, NULL, ""},
	{"other multiarch", {NEEDS}, "usr/lib/i386-linux-gnu/libx.so", NULL, NULL, LOST},
	{"nowhere", {NEEDS}, NULL, NULL, NULL, "/opt/app/bin/x libx.so;"},
	{"aside", {NEEDS}, "usr/local/lib/libx.so", NULL, NULL, LOST},
	{"rpath", {NEEDS, .rpath = "/a:/opt/l"}, "opt/l/libx.so", NULL, NULL, ""},
	{"runpath", {NEEDS, .runpath = "/a:/opt/l"}, "opt/l/libx.so", NULL, NULL, ""},
	{"rpath beside runpath", {NEEDS, .rpath = "/opt/l", .runpath = "/a"}, "opt/l/libx.so", NULL,
		NULL, LOST},
	{"origin", {NEEDS, .runpath = "$ORIGIN/../lib"}, "opt/app/lib/libx.so", NULL, NULL, ""},
	{"braces", {NEEDS, .rpath = "${ORIGIN}"}, "opt/app/bin/libx.so", NULL, NULL, ""},
	{"lib", {NEEDS, .rpath = "/opt/$LIB"}, "opt/lib/x86_64-linux-gnu/libx.so", NULL, NULL, ""},
	{"lib64 token", {NEEDS, .rpath = "/opt/$LIB"}, "opt/lib64/libx.so", NULL, NULL, ""},
	{"platform", {NEEDS, .rpath = "/opt/${PLATFORM}/l"}, "opt/x86_64/l/libx.so", NULL, NULL,
		""},
	{"unknown token", {NEEDS, .rpath = "/opt/$HOME"}, "opt/root/libx.so", NULL, NULL, LOST},
	{"relative", {NEEDS, .rpath = "opt/l:.:"}, "opt/l/libx.so", NULL, NULL, LOST},
	{"root", {NEEDS, .rpath = "/"}, "libx.so", NULL, NULL, ""},
	{"environment", {NEEDS}, "opt/l/libx.so", NULL, "/a:/opt/l", ""},
	{"semicolons", {NEEDS}, "opt/l/libx.so", NULL, "/a;/opt/l", ""},
	{"cache", {NEEDS}, "opt/l/libx.so", "/a\n  /opt/l # mine\n", NULL, ""},
	{"cache of old", {NEEDS}, "opt/l/libx.so", "/a /b:/opt/l=libc6\n", NULL, ""},
	{"no default", {NEEDS, .no_default_lib = true}, "usr/lib/libx.so", "/usr/lib", NULL, LOST},
	{"beyond the root", {NEEDS, .rpath = "/../../opt/../opt/l"}, "opt/l/libx.so", NULL, NULL,
		""},
	{"absolute", {.needs = {"/opt/l/libx.so"}}, "opt/l/libx.so", NULL, NULL, ""},
	{"absolute, not there", {.needs = {"/opt/libx.so"}}, NULL, NULL, NULL,
		"/opt/app/bin/x /opt/libx.so;"},
	{"with a slash", {.needs = {"l/libx.so"}}, "usr/lib/l/libx.so", NULL, NULL,
		"/opt/app/bin/x l/libx.so;"},
	{"no name", {.needs = {""}}, NULL, NULL, NULL, "/opt/app/bin/x ;"},
	{"interpreter", {.interpreter = "/lib/ld.so"}, "lib/ld.so", NULL, NULL, ""},
	{"no interpreter", {.interpreter = "/lib/ld.so"}, NULL, NULL, NULL,
		"/opt/app/bin/x /lib/ld.so;"},
	{"nothing", {.needs = {NULL}}, NULL, NULL, NULL, ""},
};

TEST(libraries_are_found_where_the_loader_looks)
{
	if (!str_eq(manifest_platform(), "linux/amd64"))
		skip();
	for (size_t i = 0; i < sizeof(found_cases) / sizeof(found_cases[0]); i++) {
		const struct found_case *c = &found_cases[i];
		auto_buf struct buf out = BUF_INIT(1 << 16), want = BUF_INIT(1 << 16);
		struct fixture fixture, *f = &fixture;

		fixture_init(f);
		put_elf(f, "opt/app/bin/x", &c->program);
		if (c->library)
			put_elf(f, c->library, &plain);
		if (c->conf) {
			put_text(f, "etc/ld.so.conf", c->conf);
			put_text(f, "etc/ld.so.cache", "x");
		}
		if (str_eq(c->missing, LOST))
			buf_printf(&want, "/opt/app/bin/x libx.so (/%s);", c->library);
		else
			buf_printf(&want, "%s", c->missing);
		unresolved(f, NULL, c->library_path, &out);
		if (!str_eq(out.data ? out.data : "", want.data))
			fail_msg("%s: expected '%s', got '%s'", c->what, want.data,
				out.data ? out.data : "");
		fixture_fini(f);
	}
}

TEST(a_library_of_another_kind_is_none)
{
	static const struct elf_spec others[] = {{.bits = 32}, {.machine = EM_AARCH64},
		{.big_endian = true}, {.osabi = ELFOSABI_FREEBSD}};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		auto_buf struct buf out = BUF_INIT(1 << 16);
		struct fixture fixture, *f = &fixture;
		const char *const globs[] = {"/bin/*", NULL};

		fixture_init(f);
		put_elf(f, "bin/x", &(struct elf_spec){.needs = {"libx.so"}});
		put_elf(f, "usr/lib/libx.so", &others[i]);
		unresolved(f, globs, NULL, &out);
		assert_true(str_starts(out.data, "/bin/x libx.so"));
		fixture_fini(f);
	}
}

/* Files that the image cannot run anyway are not asked for. */
TEST(other_machines_count_when_their_loader_is_there)
{
	static const struct {
		struct elf_spec spec;
		const char *loader;
	} table[] = {
		{{.needs = {"libx.so"}, .machine = EM_386, .bits = 32}, "lib/ld-linux.so.2"},
		{{.needs = {"libx.so"}, .machine = EM_ARM, .bits = 32}, "lib/ld-linux-armhf.so.3"},
		{{.needs = {"libx.so"}, .machine = EM_S390, .big_endian = true}, "lib/ld64.so.1"},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		for (int with = 0; with < 2; with++) {
			auto_buf struct buf out = BUF_INIT(1 << 16);
			struct fixture fixture, *f = &fixture;

			fixture_init(f);
			put_elf(f, "bin/x", &table[i].spec);
			if (with)
				put_text(f, table[i].loader, "loader");
			unresolved(f, NULL, NULL, &out);
			assert_string_equal(
				out.data ? out.data : "", with ? "/bin/x libx.so;" : "");
			fixture_fini(f);
		}
}

TEST(links_are_followed_and_globs_choose)
{
	auto_buf struct buf all = BUF_INIT(1 << 16), some = BUF_INIT(1 << 16);
	const char *const globs[] = {"/opt/**", NULL};
	struct fixture fixture, *f = &fixture;

	fixture_init(f);
	put_link(f, "lib", "usr/lib");
	put_link(f, "usr/lib/libx.so.1", "x86_64-linux-gnu/libx.so.1.2");
	put_link(f, "usr/lib/liby.so", "liby.so");
	put_elf(f, "usr/lib/x86_64-linux-gnu/libx.so.1.2", &plain);
	put_elf(f, "bin/a", &(struct elf_spec){.needs = {"libx.so.1", "liby.so"}});
	put_elf(f, "opt/b", &(struct elf_spec){.needs = {"libz.so", "libx.so.1"}});
	put_elf(f, "usr/lib/debug/c", &(struct elf_spec){.needs = {"libz.so"}});
	put_text(f, "bin/script", "#!/bin/sh\n");
	unresolved(f, NULL, NULL, &all);
	assert_string_equal(all.data, "/bin/a liby.so;/opt/b libz.so;");
	unresolved(f, globs, NULL, &some);
	assert_string_equal(some.data, "/opt/b libz.so;");
	fixture_fini(f);
}

/* ---- ld.so.conf ---- */

static void conf_is(struct fixture *f, const char *want)
{
	const struct rootfs r = {.tree = f->t, .pool = f->p};
	auto_buf struct buf out = BUF_INIT(1 << 20);
	struct arena a = {0};
	struct strings l;

	tree_sort(f->t);
	need(ld_conf_folders(&r, &a, &l, &f->e));
	for (size_t i = 0; i < l.n; i++)
		buf_printf(&out, "%s%s", i ? " " : "", l.v[i]);
	assert_string_equal(out.data ? out.data : "", want);
	arena_fini(&a);
}

TEST(ld_so_conf_includes_by_globs)
{
	struct fixture fixture, *f = &fixture;

	fixture_init(f);
	conf_is(f, "");
	put_text(f, "etc/ld.so.conf",
		"/first\ninclude /etc/ld.so.conf.d/*.conf\ninclude more/?/*.c extra\nhwcap 1 x\n"
		"relative\n/last /first\nincluded\n");
	put_text(f, "etc/ld.so.conf.d/b.conf", "/b\n");
	put_text(f, "etc/ld.so.conf.d/a.conf", "# nothing\n\t/a\t# /c\n");
	put_text(f, "etc/ld.so.conf.d/.hidden.conf", "/hidden\n");
	put_text(f, "etc/ld.so.conf.d/c.txt", "/txt\n");
	put_text(f, "etc/more/x/y.c", "/more");
	put_text(f, "etc/more/xx/y.c", "/not");
	put_text(f, "etc/extra", "include ../usr/deep\n");
	put_text(f, "usr/deep", "/deep");
	conf_is(f, "/first /a /b /more /last");
	fixture_fini(f);
}

TEST(ld_so_conf_that_includes_itself_ends)
{
	struct fixture fixture, *f = &fixture;
	auto_buf struct buf many = BUF_INIT(1 << 20);

	fixture_init(f);
	put_text(f, "etc/ld.so.conf", "/a\ninclude ld.so.conf\ninclude ld*\n");
	conf_is(f, "/a");
	for (int i = 0; i < 400; i++)
		buf_printf(&many, "/f%d\n", i);
	put_text(f, "etc/ld.so.conf", many.data);
	many.len = 0;
	for (int i = 0; i < 256; i++)
		buf_printf(&many, "%s/f%d", i ? " " : "", i);
	conf_is(f, many.data);
	fixture_fini(f);
}

/* ---- hostile files ---- */

static int read_bytes(struct fixture *f, const void *p, uint32_t n, struct elf_file *out)
{
	struct arena a = {0};
	struct node *file = put_bytes(f, "x", p, n, 0755);
	int rc;

	f->e = (struct err){0};
	rc = elf_file_read(out, &file->a, f->p, &a, &f->e);
	if (rc < 0 && (f->e.kind != ERR_CORRUPT || !str_starts(f->e.text, "damaged ELF file: ")))
		fail_msg("%s", f->e.text);
	arena_fini(&a);
	return rc;
}

TEST(every_byte_of_the_headers_may_be_wrong)
{
	static const unsigned char values[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
	static const struct elf_spec specs[] = {
		{.needs = {"a", "b"}, .runpath = "$ORIGIN", .interpreter = "/l"},
		{.needs = {"a", "b"}, .rpath = "/r", .bits = 32},
		{.needs = {"a"}, .big_endian = true}};
	struct fixture fixture, *f = &fixture;
	size_t refused = 0, taken = 0;
	struct elf_out o;
	struct elf_file file;

	fixture_init(f);
	for (size_t s = 0; s < sizeof(specs) / sizeof(specs[0]); s++)
		for (size_t at = 0; at < 360; at++)
			for (size_t v = 0; v < sizeof(values); v++) {
				elf_make(&o, &specs[s]);
				o.b[at] = values[v];
				if (read_bytes(f, o.b, ELF_BYTES, &file) < 0)
					refused++;
				else
					taken++;
			}
	assert_true(refused > 500 && taken > 500);
	fixture_fini(f);
}

TEST(a_file_may_end_anywhere)
{
	struct elf_spec s = {.needs = {"a"}, .interpreter = "/l"};
	struct fixture fixture, *f = &fixture;
	struct elf_file file;
	struct elf_out o;

	fixture_init(f);
	elf_make(&o, &s);
	assert_int_equal(read_bytes(f, o.b, ELF_BYTES, &file), 1);
	for (uint32_t n = 1; n < 518; n++)
		assert_true(read_bytes(f, o.b, n, &file) <= 0);
	fixture_fini(f);
}

static void damaged(struct fixture *f, const struct elf_out *o, const char *why)
{
	struct elf_file file;

	assert_int_equal(read_bytes(f, o->b, ELF_BYTES, &file), -1);
	assert_string_equal(f->e.text + strlen("damaged ELF file: "), why);
}

TEST(what_is_wrong_with_a_file_is_said)
{
	struct elf_spec s = {.needs = {"a"}};
	struct fixture fixture, *f = &fixture;
	struct elf_out o;

	fixture_init(f);
	elf_make(&o, &s);
	ELF_PUT(&o, 0, Ehdr, e_phnum, 257);
	damaged(f, &o, "more than 256 program headers");
	elf_make(&o, &s);
	ELF_PUT(&o, 0, Ehdr, e_phentsize, 55);
	damaged(f, &o, "program headers of another size");
	elf_make(&o, &s);
	ELF_PUT(&o, 0, Ehdr, e_phoff, ELF_BYTES);
	damaged(f, &o, "an offset beyond the end of the file");
	elf_make(&o, &s);
	ELF_PUT(&o, 0, Ehdr, e_phoff, UINT64_MAX - 8);
	damaged(f, &o, "an offset beyond the end of the file");
	elf_make(&o, &s);
	elf_program_header(&o, 1, PT_DYNAMIC, 0, 1 << 17);
	damaged(f, &o, "a dynamic section of more than 64 KiB");
	elf_make(&o, &s);
	o.ndynamic = 0;
	elf_dynamic(&o, DT_NEEDED, 5000);
	damaged(f, &o, "a string beyond its table");
	elf_make(&o, &s);
	memset(o.b + o.strings, 'a', ELF_BYTES - o.strings);
	damaged(f, &o, "a string without an end");
	elf_make(&o, &s);
	o.ndynamic = 1;
	elf_dynamic(&o, DT_NULL, 0);
	damaged(f, &o, "names without a table of strings");
	elf_make(&o, &s);
	elf_program_header(&o, 0, PT_LOAD, 0, 16);
	damaged(f, &o, "an address that is in no segment");
	fixture_fini(f);
}

TEST(a_file_that_needs_too_much_is_named)
{
	enum { BIG = 64 << 10 };
	unsigned char *b = mem_alloc(BIG);
	auto_buf struct buf out = BUF_INIT(1 << 16);
	struct elf_spec s = {.needs = {"a"}};
	struct fixture fixture, *f = &fixture;
	struct elf_out o;

	fixture_init(f);
	elf_make(&o, &s);
	elf_program_header(&o, 1, PT_DYNAMIC, 4096, 60 << 10);
	memcpy(b, o.b, ELF_BYTES);
	for (size_t i = 0; i < 600; i++)
		b[4096 + 16 * i] = DT_NEEDED;
	put_bytes(f, "bin/x", b, BIG, 0755);
	unresolved(f, NULL, NULL, &out);
	assert_string_equal(
		out.data, "!/bin/x damaged ELF file: it needs more than 512 libraries;");
	free(b);
	fixture_fini(f);
}

/* ---- beside ldd ---- */

enum { CHECKED_MAX = 120, STEP = 23 };

/* The programs and libraries of this machine: nftw() has no argument for them. */
static struct world {
	struct fixture *f;
	char *checked[CHECKED_MAX];
	size_t n, seen;
} world;

static void put_host_file(const char *path, const struct stat *st)
{
	unsigned char head[64];
	auto_fd int fd = sys_open(path, O_RDONLY, 0);
	bool wanted = world.n < CHECKED_MAX && st->st_size < 256 << 10;
	auto_free unsigned char *all = NULL;

	if (fd < 0 || st->st_size < 64 || sys_pread_all(fd, head, sizeof(head), 0) < 0 ||
		memcmp(head, ELFMAG, SELFMAG) != 0)
		return;
	world.seen++;
	if (wanted) {
		all = mem_alloc((size_t)st->st_size);
		wanted = sys_pread_all(fd, all, (size_t)st->st_size, 0) == 0 &&
			 (world.seen % STEP == 0 ||
				 (world.n < CHECKED_MAX / 2 &&
					 memmem(all, (size_t)st->st_size, "$ORIGIN", 7)));
	}
	if (wanted)
		world.checked[world.n++] = mem_strdup(path);
	if (wanted)
		put_bytes(world.f, path + 1, all, (uint32_t)st->st_size, 0755);
	else /* enough for what looks for a library */
		put_bytes(world.f, path + 1, head, sizeof(head), 0755);
}

static int visit(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	char target[4096];
	ssize_t n;

	(void)ftw;
	if (kind == FTW_F && S_ISREG(st->st_mode))
		put_host_file(path, st);
	if (kind != FTW_SL)
		return 0;
	n = readlink(path, target, sizeof(target) - 1);
	if (n > 0) {
		target[n] = '\0';
		put_link(world.f, path + 1, target);
	}
	return 0;
}

static int visit_conf(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	auto_buf struct buf text = BUF_INIT(1 << 20);

	(void)st;
	(void)ftw;
	if (kind == FTW_F && file_read(AT_FDCWD, path, &text, NULL) == 0 && text.len)
		put_bytes(world.f, path + 1, text.data, (uint32_t)text.len, 0644);
	return 0;
}

static void run(const char *command, const char *path, struct buf *out)
{
	auto_free char *line = mem_printf("%s '%s' 2>/dev/null", command, path);
	FILE *p = popen(line, "r");
	char part[4096];
	size_t n;

	assert_non_null(p);
	while ((n = fread(part, 1, sizeof(part), p)))
		buf_put(out, part, n);
	pclose(p);
	buf_put(out, "", 0);
}

/* What path itself needs and ldd does not find, as unresolved() writes it, without elsewhere. */
static bool ldd_says(const char *path, struct buf *out)
{
	auto_buf struct buf found = BUF_INIT(16 << 20), needs = BUF_INIT(16 << 20);

	run("ldd", path, &found);
	run("readelf -dW", path, &needs);
	if (!found.data || !strstr(found.data, "\t") || strstr(found.data, "statically linked"))
		return false;
	for (char *p = needs.data; p && (p = strstr(p, "Shared library: [")); p++) {
		char *name = p + strlen("Shared library: [");
		auto_free char *line =
			mem_printf("\t%.*s => not found", (int)strcspn(name, "]"), name);

		if (strstr(found.data, line))
			buf_printf(out, "%s %.*s;", path, (int)strcspn(name, "]"), name);
	}
	return true;
}

static void compare(struct fixture *f, const char *path)
{
	const struct rootfs r = {.tree = f->t, .pool = f->p};
	auto_buf struct buf want = BUF_INIT(1 << 20), got = BUF_INIT(1 << 20);
	const struct strings glob = {.v = &path, .n = 1};
	struct arena a = {0};
	struct elf_unresolved *v;
	size_t n;

	if (!ldd_says(path, &want))
		return;
	need(elf_unresolved(&r, &glob, NULL, &a, &v, &n, &f->e));
	for (size_t i = 0; i < n; i++) { /* sorted, what readelf prints is not */
		auto_free char *one = mem_printf("%s %s;", v[i].path, v[i].library);

		buf_printf(&got, "%s", one);
		if (!want.data || !strstr(want.data, one))
			fail_msg("we do not find %s", one);
	}
	if (got.len != want.len)
		fail_msg(
			"ldd does not find '%s', we not '%s'", want.data, got.data ? got.data : "");
	arena_fini(&a);
}

TEST(what_is_missing_is_what_ldd_does_not_find)
{
	static const char *const folders[] = {"/usr/bin", "/usr/sbin", "/usr/lib", "/usr/libexec",
		"/usr/lib64", "/etc/alternatives"};
	static const char *const links[] = {"/bin", "/sbin", "/lib", "/lib64"};
	struct fixture fixture, *f = &fixture;

	if (system("command -v ldd readelf >/dev/null") != 0)
		skip();
	fixture_init(f);
	world = (struct world){.f = f};
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		char target[64];
		ssize_t n = readlink(links[i], target, sizeof(target) - 1);

		if (n > 0) {
			target[n] = '\0';
			put_link(f, links[i] + 1, target);
		}
	}
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		nftw(folders[i], visit, 16, FTW_PHYS);
	nftw("/etc/ld.so.conf", visit_conf, 16, FTW_PHYS);
	nftw("/etc/ld.so.conf.d", visit_conf, 16, FTW_PHYS);
	nftw("/etc/ld.so.cache", visit_conf, 16, FTW_PHYS);
	tree_sort(f->t);
	assert_true(world.n > 10);
	for (size_t i = 0; i < world.n; i++) {
		compare(f, world.checked[i]);
		free(world.checked[i]);
	}
	fixture_fini(f);
}

RUN_TESTS(cmocka_unit_test(libraries_are_found_where_the_loader_looks),
	cmocka_unit_test(a_library_of_another_kind_is_none),
	cmocka_unit_test(other_machines_count_when_their_loader_is_there),
	cmocka_unit_test(links_are_followed_and_globs_choose),
	cmocka_unit_test(ld_so_conf_includes_by_globs),
	cmocka_unit_test(ld_so_conf_that_includes_itself_ends),
	cmocka_unit_test(every_byte_of_the_headers_may_be_wrong),
	cmocka_unit_test(a_file_may_end_anywhere),
	cmocka_unit_test(what_is_wrong_with_a_file_is_said),
	cmocka_unit_test(a_file_that_needs_too_much_is_named),
	cmocka_unit_test(what_is_missing_is_what_ldd_does_not_find))
