#include "tests/unit/test.h"

#include <string.h>

#include "base/str.h"
#include "builder/lock-pins.h"

#define A "abababababababababababababababababababababababababababababababab"
#define COMMIT "0123456789012345678901234567890123456789"

/* What pins, in a manifest; and a lock that says the same. */
static const char doc[] =
	"{\"schema\": \"svrun.image/1\", \"name\": \"a\", \"version\": \"1\",\n"
	"\"apt\": {\"sources\": [{\"uri\": \"mirror:debian\", \"suites\": [\"x\"], "
	"\"components\": [\"main\"], \"signedBy\": \"keyring:x\"}],\n"
	" \"packages\": [\"curl=1.2-3\", \"hello\"]},\n"
	"\"python\": {\"prefix\": \"/opt/venv\", \"wheels\": [{\"name\": \"Six_x\", "
	"\"version\": \"1.0\", \"file\": \"six_x-1.0-py3-none-any.whl\", \"sha256\": \"" A
	"\", \"size\": 7, \"url\": \"mirror:pypi/six.whl\"}]},\n"
	"\"sources\": [{\"id\": \"git\", \"type\": \"git\", \"url\": \"file:repo\", "
	"\"commit\": \"" COMMIT "\", \"treeSha256\": \"" A "\", \"dest\": \"/g\"},\n"
	" {\"id\": \"tar\", \"type\": \"archive\", \"url\": \"mirror:x/y.tar\", \"sha256\": \"" A
	"\", \"size\": 9, \"dest\": \"/t\"}],\n"
	"\"models\": [{\"id\": \"m\", \"target\": \"/m\", \"format\": \"other\", \"source\": "
	"{\"type\": \"file\", \"path\": \"f\"}, \"files\": [{\"path\": \"f\", \"sha256\": \"" A
	"\", \"size\": 5}]}]}";

struct state {
	struct manifest m;
	struct lock l;
	struct lock_deb debs[2];
	struct lock_wheel wheels[2];
	struct lock_source sources[2];
	struct lock_model model;
	struct model_file file;
	struct arena a;
};

static void fill(struct state *s)
{
	struct digest d;

	memset(d.b, 0xab, DIGEST_SIZE);
	s->debs[0] = (struct lock_deb){.name = "curl", .version = "1.2-3"};
	s->debs[1] = (struct lock_deb){.name = "hello", .version = "5"};
	s->wheels[0] = (struct lock_wheel){.name = "six-x",
		.version = "1.0",
		.file = "six_x-1.0-py3-none-any.whl",
		.url = "mirror:pypi/six.whl",
		.sha256 = d,
		.size = 7};
	s->wheels[1] =
		(struct lock_wheel){.name = "other", .version = "1", .file = "o", .url = "o"};
	s->sources[0] = (struct lock_source){
		.id = "git", .url = "file:repo", .commit = COMMIT, .tree_sha256 = d};
	s->sources[1] =
		(struct lock_source){.id = "tar", .url = "mirror:x/y.tar", .sha256 = d, .size = 9};
	s->file = (struct model_file){.path = "f", .sha256 = d, .size = 5};
	s->model = (struct lock_model){.id = "m", .files = &s->file, .nfiles = 1};
	s->l = (struct lock){.platform = "linux/amd64",
		.debs = s->debs,
		.ndebs = 2,
		.wheels = s->wheels,
		.nwheels = 1,
		.sources = s->sources,
		.nsources = 2,
		.models = &s->model,
		.nmodels = 1};
}

static void open(struct state *s)
{
	struct complaints c = {0};
	struct err e = {0};

	*s = (struct state){0};
	if (manifest_parse(&s->m, "m.json", doc, strlen(doc), NULL, &c, &e) < 0)
		fail_msg("%s", c.text.data ? c.text.data : e.text);
	fill(s);
}

static void close(struct state *s)
{
	manifest_fini(&s->m);
	arena_fini(&s->a);
}

static void differs(struct state *s, const char *what)
{
	const char *is = lock_pins_differ(&s->l, &s->m, &s->a);

	if (!is || !strstr(is, what))
		fail_msg("expected '%s', got '%s'", what, is ? is : "nothing");
	fill(s);
	assert_null(lock_pins_differ(&s->l, &s->m, &s->a));
}

TEST(a_lock_that_says_the_same_is_taken)
{
	struct state s;

	open(&s);
	assert_null(lock_pins_differ(&s.l, &s.m, &s.a));
	s.l.nmodels = 0; /* its files stand in the manifest */
	assert_null(lock_pins_differ(&s.l, &s.m, &s.a));
	close(&s);
}

TEST(whatever_differs_from_what_the_manifest_pins_is_named)
{
	struct state s;

	open(&s);
	s.debs[0].version = "1.2-4";
	differs(&s, "the package 'curl=1.2-3'");
	s.debs[0].name = "curl2";
	differs(&s, "the package 'curl=1.2-3'");
	s.wheels[0].sha256.b[3] ^= 1;
	differs(&s, "/python/wheels/0");
	s.wheels[0].size++;
	differs(&s, "/python/wheels/0");
	s.wheels[0].version = "1.1";
	differs(&s, "/python/wheels/0");
	s.wheels[0].url = "mirror:pypi/seven.whl";
	differs(&s, "/python/wheels/0");
	s.l.nwheels = 2;
	differs(&s, "'other' is none of them");
	s.sources[0].commit = "1123456789012345678901234567890123456789";
	differs(&s, "/sources/0");
	s.sources[0].tree_sha256.b[0] ^= 1;
	differs(&s, "/sources/0");
	s.sources[1].sha256.b[0] ^= 1;
	differs(&s, "/sources/1");
	s.sources[1].size = 8;
	differs(&s, "/sources/1");
	s.sources[1].url = "mirror:x/z.tar";
	differs(&s, "/sources/1");
	s.l.nsources = 1;
	differs(&s, "the source 'tar'");
	s.file.sha256.b[31] ^= 1;
	differs(&s, "/models/0/files");
	s.file.size = 6;
	differs(&s, "/models/0/files");
	s.model.nfiles = 0;
	differs(&s, "/models/0/files");
	s.l.npms = &(struct lock_npm){.path = "node_modules/a"};
	s.l.nnpms = 1;
	differs(&s, "none of npm");
	close(&s);
}

RUN_TESTS(cmocka_unit_test(a_lock_that_says_the_same_is_taken),
	cmocka_unit_test(whatever_differs_from_what_the_manifest_pins_is_named))
