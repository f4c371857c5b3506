#include "images/outlet.h"

#include <errno.h>
#include <signal.h>

#include "base/file.h"
#include "base/str.h"
#include "tests/unit/fixture.h"

struct place {
	char path[64];
	int fd;
	struct err e;
};

static void place_init(struct place *p)
{
	*p = (struct place){.path = "/tmp/svrun-test-XXXXXX"};
	assert_non_null(mkdtemp(p->path));
	p->fd = sys_open(p->path, O_RDONLY | O_DIRECTORY, 0);
}

static void place_fini(struct place *p)
{
	sys_close_ref(&p->fd);
	assert_int_equal(sys_remove_tree(AT_FDCWD, p->path), 0);
}

/* Names in the folder, sorted, as one line. */
static void assert_names(const struct place *p, const char *want)
{
	auto_free char *command = mem_printf("cd %s && ls -A | tr '\\n' ' '", p->path);
	char got[256] = "";
	FILE *f = popen(command, "r");

	assert_non_null(f);
	(void)!fgets(got, sizeof(got), f);
	pclose(f);
	assert_string_equal(got, want);
}

static char *in(const struct place *p, const char *name)
{
	return mem_printf("%s/%s", p->path, name);
}

static int put(struct outlet *o, const char *name, const char *text, struct err *e)
{
	return outlet_file(o, name, strlen(text), e) < 0 ||
			       outlet_write(o, text, strlen(text), e) < 0
		       ? -1
		       : outlet_end(o, e);
}

static void ok(struct place *p, int rc)
{
	if (rc < 0)
		fail_msg("%s", p->e.text);
}

TEST(a_file_has_its_name_only_when_it_is_whole_and_replaces_an_older_one)
{
	struct place place, *p = &place;
	struct outlet o;
	auto_buf struct buf b = BUF_INIT(1 << 20);
	auto_free char *path = NULL;

	place_init(p);
	path = in(p, "x.tar");
	ok(p, file_write(p->fd, "x.tar", "old", 3, 0644, &p->e));
	ok(p, outlet_open(&o, path, -1, NULL, &p->e));
	ok(p, put(&o, "a", "one", &p->e));
	ok(p, file_read(p->fd, "x.tar", &b, &p->e));
	assert_string_equal(b.data, "old");
	outlet_close(&o); /* given up */
	assert_names(p, "x.tar ");
	ok(p, outlet_open(&o, path, -1, NULL, &p->e));
	ok(p, put(&o, "a", "one", &p->e));
	ok(p, outlet_commit(&o, &p->e));
	outlet_close(&o);
	assert_names(p, "x.tar ");
	b.len = 0;
	ok(p, file_read(p->fd, "x.tar", &b, &p->e));
	assert_int_equal(b.len, 512 + 512 + 1024);
	assert_memory_equal(b.data + 512, "one", 4);
	place_fini(p);
}

TEST(a_folder_has_its_name_only_when_it_is_whole)
{
	struct place place, *p = &place;
	struct outlet o;
	auto_free char *path = NULL;

	place_init(p);
	path = in(p, "dir/");
	ok(p, outlet_open_folder(&o, path, &p->e));
	ok(p, outlet_dir(&o, "sub", &p->e));
	ok(p, put(&o, "sub/a", "one", &p->e));
	outlet_close(&o);
	assert_names(p, "");
	assert_int_equal(sys_mkdirat(p->fd, "dir", 0755), 0); /* an empty one is fine */
	ok(p, outlet_open_folder(&o, path, &p->e));
	ok(p, outlet_dir(&o, "sub", &p->e));
	ok(p, put(&o, "sub/a", "one", &p->e));
	ok(p, outlet_commit(&o, &p->e));
	outlet_close(&o);
	assert_names(p, "dir ");
	assert_int_equal(faccessat(p->fd, "dir/sub/a", F_OK, 0), 0);
	assert_int_equal(outlet_open_folder(&o, path, &p->e), -1);
	assert_int_equal(p->e.kind, ERR_EXISTS);
	assert_non_null(strstr(p->e.text, "is not empty: it holds sub"));
	place_fini(p);
}

TEST(places_that_cannot_be_are_told)
{
	struct place place, *p = &place;
	struct outlet o;
	auto_free char *none = NULL;

	place_init(p);
	none = in(p, "none/x.tar");
	assert_int_equal(outlet_open(&o, none, -1, NULL, &p->e), -1);
	assert_int_equal(p->e.kind, ERR_NOT_FOUND);
	p->e = (struct err){0};
	assert_int_equal(outlet_open(&o, p->path, -1, NULL, &p->e), -1);
	assert_non_null(strstr(p->e.text, "is a folder"));
	p->e = (struct err){0};
	assert_int_equal(outlet_open_folder(&o, "/", &p->e), -1);
	assert_int_equal(p->e.kind, ERR_USAGE);
	place_fini(p);
}

TEST(a_member_must_be_as_long_as_was_said)
{
	struct place place, *p = &place;
	struct outlet o;
	auto_free char *path = NULL;

	place_init(p);
	path = in(p, "x.tar");
	ok(p, outlet_open(&o, path, -1, NULL, &p->e));
	ok(p, outlet_file(&o, "a", 3, &p->e));
	assert_int_equal(outlet_write(&o, "four", 4, &p->e), -1);
	ok(p, outlet_write(&o, "tw", 2, &p->e));
	assert_int_equal(outlet_end(&o, &p->e), -1);
	outlet_close(&o);
	assert_names(p, "");
	place_fini(p);
}

TEST(a_reader_that_goes_away_is_an_error)
{
	static char big[1 << 20];
	struct outlet o;
	struct err e = {0};
	int fds[2];

	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(sys_pipe(fds), 0);
	sys_close_ref(&fds[0]);
	assert_int_equal(outlet_open(&o, NULL, fds[1], "a pipe", &e), 0);
	assert_int_equal(outlet_file(&o, "a", sizeof(big), &e), 0);
	assert_int_equal(outlet_write(&o, big, sizeof(big), &e), -1);
	assert_int_equal(e.sys, EPIPE);
	assert_non_null(strstr(e.text, "a pipe"));
	outlet_close(&o);
	assert_int_equal(fcntl(fds[1], F_GETFD) >= 0, 1); /* it was the caller's */
	sys_close_ref(&fds[1]);
}

RUN_TESTS(cmocka_unit_test(a_file_has_its_name_only_when_it_is_whole_and_replaces_an_older_one),
	cmocka_unit_test(a_folder_has_its_name_only_when_it_is_whole),
	cmocka_unit_test(places_that_cannot_be_are_told),
	cmocka_unit_test(a_member_must_be_as_long_as_was_said),
	cmocka_unit_test(a_reader_that_goes_away_is_an_error))
