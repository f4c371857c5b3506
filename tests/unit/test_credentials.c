#include "tests/unit/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"
#include "images/credentials.h"

/* ---- a home folder with helpers on the PATH ---- */

struct home {
	char dir[32];
	char *path;
};

static void put(const struct home *h, const char *name, const char *text, mode_t mode)
{
	auto_free char *full = mem_printf("%s/%s", h->dir, name);
	auto_free char *dir = mem_strdup(full);

	*strrchr(dir, '/') = '\0';
	assert_int_equal(sys_mkdir_p(AT_FDCWD, dir, 0700), 0);
	assert_int_equal(file_write(AT_FDCWD, full, text, strlen(text), mode, NULL), 0);
}

static void get(const struct home *h, const char *name, struct buf *b)
{
	auto_free char *full = mem_printf("%s/%s", h->dir, name);

	b->len = 0;
	assert_int_equal(file_read(AT_FDCWD, full, b, NULL), 0);
}

static void setup(struct home *h)
{
	auto_free char *path = NULL, *run = NULL;

	*h = (struct home){.dir = "/tmp/svrun-test-XXXXXX", .path = mem_strdup(getenv("PATH"))};
	assert_non_null(mkdtemp(h->dir));
	path = mem_printf("%s/bin:%s", h->dir, h->path);
	run = mem_printf("%s/run", h->dir);
	setenv("PATH", path, 1);
	setenv("HOME", h->dir, 1);
	setenv("XDG_RUNTIME_DIR", run, 1);
	unsetenv("XDG_CONFIG_HOME");
	unsetenv("DOCKER_CONFIG");
	unsetenv("REGISTRY_AUTH_FILE");
}

static void teardown(struct home *h)
{
	setenv("PATH", h->path, 1);
	free(h->path);
	assert_int_equal(sys_remove_tree(AT_FDCWD, h->dir), 0);
}

#define DOCKER ".docker/config.json"
#define PODMAN "run/containers/auth.json"

/* A helper that keeps one secret in HOME/kept, for any host. */
static const char keeps[] = "#!/bin/sh\n"
			    "read -r in\n"
			    "case $1 in\n"
			    "store) printf %s \"$in\" >\"$HOME/kept\" ;;\n"
			    "get) [ -e \"$HOME/kept\" ] && exec cat \"$HOME/kept\"\n"
			    "	echo 'credentials not found in native keychain'; exit 1 ;;\n"
			    "erase) rm \"$HOME/kept\" ;;\n"
			    "esac\n";

/* "user:secret", "token:X", "bearer:X", "-" for anonymous, or the error. */
static char *found(const char *host, const char *path, struct err *e)
{
	struct credential c;
	char *text;
	int rc = credential_find(host, path, &c, e);

	if (rc < 0)
		return mem_strdup(e->text);
	text = rc == 0      ? mem_strdup("-")
	       : c.identity ? mem_printf("token:%s", c.identity)
	       : c.registry ? mem_printf("bearer:%s", c.registry)
			    : mem_printf("%s:%s", c.user, c.secret);
	if (rc > 0)
		assert_non_null(c.origin);
	credential_fini(&c);
	return text;
}

static void expect(const char *host, const char *path, const char *want)
{
	struct err e = {0};
	auto_free char *got = found(host, path, &e);

	if (!str_eq(got, want))
		fail_msg("%s/%s: '%s', not '%s'", host, path, got, want);
}

static void expect_error(const char *host, enum err_kind kind, const char *want)
{
	struct err e = {0};
	auto_free char *got = found(host, "a", &e);

	if (!strstr(got, want) || e.kind != kind)
		fail_msg("'%s' (%s), not '%s'", got, err_kind_name(e.kind), want);
	assert_null(strstr(got, "hunter2"));
}

/* "u:p", "v:q:r", "w:" */
#define UP "dTpw"
#define VQ "djpxOnI="
#define W "dzo="

TEST(keys_are_matched_by_the_longest_namespace)
{
	struct home h;

	setup(&h);
	put(&h, DOCKER,
		"{\"auths\":{\"r.example\":{\"auth\":\"" UP "\"},"
		"\"r.example/team\":{\"auth\":\"" VQ "\"},"
		"\"r.example/team/app/\":{\"username\":\"x\",\"password\":\"y\"},"
		"\"r.example:5000\":{\"registrytoken\":\"T\"},"
		"\"R.upper.example\":{\"auth\":\"" UP "\"},"
		"\"https://old.example/v1/\":{\"auth\":\"" UP "\"},"
		"\"https://both.example/v2/\":{\"auth\":\"" UP "\"},"
		"\"both.example\":{\"auth\":\"" VQ "\"},"
		"\"id.example\":{\"auth\":\"" W "\",\"identitytoken\":\"I\"},"
		"\"mark.example\":{},\"mail.example\":{\"email\":\"x\"}}}",
		0600);
	expect("r.example", "", "u:p");
	expect("r.example", "other", "u:p");
	expect("r.example", "teams", "u:p");
	expect("r.example", "team", "v:q:r");
	expect("r.example", "team/other", "v:q:r");
	expect("r.example", "team/app", "x:y");
	expect("r.example", "team/app/x", "x:y");
	expect("r.example", "team/apple", "v:q:r");
	expect("r.example:5000", "team", "bearer:T");
	expect("r.example:5001", "team", "-");
	expect("r.exampl", "", "-");
	expect("r.upper.example", "", "u:p");
	expect("old.example", "x", "u:p");
	expect("both.example", "x", "v:q:r");
	expect("id.example", "x", "token:I");
	expect("mark.example", "x", "-");
	expect("mail.example", "x", "-");
	teardown(&h);
}

TEST(files_are_looked_at_in_the_order_of_podman_then_docker)
{
	struct home h;
	auto_free char *file = NULL, *dir = NULL;

	setup(&h);
	expect("r.example", "", "-");
	put(&h, DOCKER, "{\"auths\":{\"r.example\":{\"registrytoken\":\"home\"}}}", 0600);
	expect("r.example", "", "bearer:home");
	put(&h, "d/config.json", "{\"auths\":{\"r.example\":{\"registrytoken\":\"dir\"}}}", 0600);
	dir = mem_printf("%s/d", h.dir);
	setenv("DOCKER_CONFIG", dir, 1);
	expect("r.example", "", "bearer:dir");
	put(&h, ".config/containers/auth.json",
		"{\"auths\":{\"r.example\":{\"registrytoken\":\"config\"}}}", 0600);
	expect("r.example", "", "bearer:config");
	put(&h, PODMAN, "{\"auths\":{\"r.example\":{\"registrytoken\":\"run\"}}}", 0600);
	expect("r.example", "", "bearer:run");
	file = mem_printf("%s/only.json", h.dir);
	setenv("REGISTRY_AUTH_FILE", file, 1);
	expect("r.example", "", "-"); /* that file alone */
	put(&h, "only.json", "{\"auths\":{\"r.example\":{\"registrytoken\":\"only\"}}}", 0600);
	expect("r.example", "", "bearer:only");
	teardown(&h);
}

TEST(a_damaged_file_is_told_with_the_place_and_without_its_secrets)
{
	static const struct {
		const char *text, *say;
	} cases[] = {
		{"{\"auths\":", "config.json:1:"},
		{"{\"auths\":{\"r.example\":{\"auth\": hunter2}}}", "config.json:1:"},
		{"[]", "config.json: expected an object"},
		{"{\"auths\":[]}", "config.json:1:10: auths: expected an object"},
		{"{\"auths\":{\n\"r.example\":7}}",
			"config.json:2:13: auths: 'r.example': expected an object"},
		{"{\"auths\":{\"r.example\":{\"auth\":7}}}",
			"'r.example': auth: expected a string"},
		{"{\"auths\":{\"r.example\":{\"auth\":\"hunter2\"}}}",
			"auth: expected base64 of user:password"},
		{"{\"auths\":{\"r.example\":{\"auth\":\"aHVudGVyMg==\"}}}",
			"auth: expected base64 of user:password"}, /* no colon */
		{"{\"auths\":{\"r.example\":{\"auth\":\"dTpw=\"}}}", "expected base64"},
		{"{\"auths\":{\"r.example\":{\"auth\":\"dTpwdTp.\"}}}", "expected base64"},
		{"{\"auths\":{\"r.example\":{\"auth\":\"dTp=dTpw\"}}}", "expected base64"},
		{"{\"auths\":{\"r.example\":{\"auth\":\"dQA6cA==\"}}}", "expected base64"},
		{"{\"auths\":{\"r.example\":{\"identitytoken\":[]}}}",
			"identitytoken: expected a string"},
		{"{\"auths\":{\"r.example\":{\"auth\":\"\\u0000\"}}}", ""},
		{"{\"credHelpers\":[]}", "credHelpers: expected an object"},
		{"{\"credHelpers\":{\"r.example\":1}}",
			"credHelpers: 'r.example': expected the name of a helper"},
		{"{\"credsStore\":1}", "config.json:1:15: credsStore: expected the name"},
	};
	struct home h;

	setup(&h);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		put(&h, DOCKER, cases[i].text, 0600);
		expect_error("r.example", ERR_CORRUPT, cases[i].say);
		expect_error("r.example", ERR_CORRUPT, "credentials for r.example: ");
	}
	put(&h, DOCKER, "{\"auths\":{\"other.example\":{\"auth\":7},\"o2\":3}}", 0600);
	expect("r.example", "", "-"); /* another host's are not looked at */
	teardown(&h);
}

/* ---- helpers ---- */

TEST(helpers_are_asked_first_and_may_know_nothing)
{
	struct home h;

	setup(&h);
	put(&h, "bin/docker-credential-one",
		"#!/bin/sh\nread -r h\n[ \"$1 $h\" = 'get r.example:5000' ] || exit 9\n"
		"echo '{\"ServerURL\":\"x\",\"Username\":\"u1\",\"Secret\":\"s1\"}'\n",
		0700);
	put(&h, "bin/docker-credential-tok",
		"#!/bin/sh\necho '{\"Username\":\"<token>\",\"Secret\":\"I\"}'\n", 0700);
	put(&h, "bin/docker-credential-none",
		"#!/bin/sh\necho 'credentials not found in native keychain'; exit 1\n", 0700);
	put(&h, "bin/docker-credential-empty",
		"#!/bin/sh\necho '{\"Username\":\"\",\"Secret\":\"\"}'\n", 0700);
	put(&h, DOCKER,
		"{\"credHelpers\":{\"r.example:5000\":\"one\",\"t.example\":\"tok\","
		"\"n.example\":\"none\"},\"credsStore\":\"empty\","
		"\"auths\":{\"r.example:5000\":{\"auth\":\"" UP "\"},"
		"\"n.example\":{\"auth\":\"" VQ "\"}}}",
		0600);
	expect("r.example:5000", "a", "u1:s1");
	expect("t.example", "a", "token:I");
	expect("n.example", "a", "v:q:r");
	expect("other.example", "a", "-");
	put(&h, DOCKER, "{\"credsStore\":\"tok\",\"auths\":{}}", 0600);
	expect("any.example", "a", "token:I");
	teardown(&h);
}

TEST(helpers_that_fail_are_errors_with_their_own_words)
{
	static const struct {
		const char *script; /* NULL: no such program */
		enum err_kind kind;
		const char *say;
	} cases[] = {
		{"echo 'the keychain is locked'; exit 1", ERR_SYSTEM,
			"docker-credential-x get ended with status 1: the keychain is locked"},
		{"printf 'no\\033[31m' >&2; exit 3", ERR_SYSTEM, "status 3: no?[31m"},
		{"echo hunter2", ERR_CORRUPT,
			"answer of docker-credential-x for r.example: "
			"expected JSON"},
		{"echo '{\"Username\":\"hunter2\"}'", ERR_CORRUPT, "missing key 'Secret'"},
		{"echo '{\"Username\":7,\"Secret\":\"hunter2\"}'", ERR_CORRUPT, "'Username'"},
		{"yes", ERR_CORRUPT, "longer than the limit"},
		{"kill -9 $$", ERR_SYSTEM, "ended with status 137"},
		{NULL, ERR_SYSTEM, "run docker-credential-x"},
	};
	struct home h;

	setup(&h);
	put(&h, DOCKER, "{\"credsStore\":\"x\"}", 0600);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_free char *script =
			mem_printf("#!/bin/sh\n%s\n", cases[i].script ? cases[i].script : "");
		auto_free char *program = mem_printf("%s/bin/docker-credential-x", h.dir);

		put(&h, "bin/docker-credential-x", script, 0700);
		if (!cases[i].script)
			assert_int_equal(unlink(program), 0);
		expect_error("r.example", cases[i].kind, cases[i].say);
	}
	teardown(&h);
}

TEST(the_name_of_a_helper_is_no_path)
{
	static const char *const names[] = {"../x", "a/b", "a b", "a;b", "\xc3\xa4"};
	struct home h;

	setup(&h);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		auto_free char *text = mem_printf("{\"credsStore\":\"%s\"}", names[i]);

		put(&h, DOCKER, text, 0600);
		expect_error("r.example", ERR_USAGE, "is no name of a credential helper");
	}
	teardown(&h);
}

/* ---- keeping and forgetting ---- */

static void expect_where(const struct home *h, char *where, const char *want)
{
	auto_free char *full =
		str_starts(want, "docker-") ? mem_strdup(want) : mem_printf("%s/%s", h->dir, want);

	assert_string_equal(where, full);
	free(where);
}

static mode_t mode_of(const struct home *h, const char *name)
{
	auto_free char *full = mem_printf("%s/%s", h->dir, name);
	struct stat st;

	assert_int_equal(sys_fstatat(AT_FDCWD, full, &st, 0), 0);
	return st.st_mode & 07777;
}

TEST(what_is_kept_is_found_and_forgotten_again)
{
	struct home h;
	char *where;
	struct err e = {0};

	setup(&h);
	if (credential_store("r.example:5000", "u", "p:\"\\\xc3\xa4", &where, &e) < 0)
		fail_msg("%s", e.text);
	expect_where(&h, where, DOCKER);
	assert_int_equal(mode_of(&h, DOCKER), 0600);
	assert_int_equal(mode_of(&h, ".docker"), 0700);
	expect("r.example:5000", "x", "u:p:\"\\\xc3\xa4");
	expect("r.example", "x", "-");
	assert_int_equal(credential_store("r.example:5000", "v", "", &where, &e), 0);
	free(where);
	expect("r.example:5000", "x", "v:");
	assert_int_equal(credential_remove("r.example:5000", &where, &e), 0);
	expect_where(&h, where, DOCKER);
	expect("r.example:5000", "x", "-");
	assert_int_equal(credential_remove("r.example:5000", &where, &e), -1);
	assert_int_equal(e.kind, ERR_NOT_FOUND);
	teardown(&h);
}

TEST(everything_else_in_the_file_is_kept_in_its_order)
{
	struct home h;
	char *where;
	auto_buf struct buf b = BUF_INIT(1 << 16);

	setup(&h);
	put(&h, DOCKER,
		"{\"zoom\":1.5,\"auths\":{\"z.example\":{\"auth\":\"" UP "\",\"email\":\"m\"},"
		"\"https://r.example/v1/\":{\"auth\":\"" UP "\"},"
		"\"r.example/team\":{\"auth\":\"" VQ "\"},\"a.example\":{}},"
		"\"HttpHeaders\":{\"X\":[1,null,true]},\"alpha\":\"\xc3\xa4\"}",
		0644);
	assert_int_equal(credential_store("r.example", "w", "", &where, NULL), 0);
	free(where);
	get(&h, DOCKER, &b);
	assert_string_equal(b.data, "{\n"
				    "  \"zoom\": 1.5,\n"
				    "  \"auths\": {\n"
				    "    \"z.example\": {\n"
				    "      \"auth\": \"" UP "\",\n"
				    "      \"email\": \"m\"\n"
				    "    },\n"
				    "    \"r.example/team\": {\n"
				    "      \"auth\": \"" VQ "\"\n"
				    "    },\n"
				    "    \"a.example\": {},\n"
				    "    \"r.example\": {\n"
				    "      \"auth\": \"" W "\"\n"
				    "    }\n"
				    "  },\n"
				    "  \"HttpHeaders\": {\n"
				    "    \"X\": [\n"
				    "      1,\n"
				    "      null,\n"
				    "      true\n"
				    "    ]\n"
				    "  },\n"
				    "  \"alpha\": \"\xc3\xa4\"\n"
				    "}\n");
	assert_int_equal(mode_of(&h, DOCKER), 0600);
	assert_int_equal(credential_store("z.example", "w", "", &where, NULL), 0);
	free(where);
	get(&h, DOCKER, &b); /* its place and its other members stay */
	assert_non_null(
		strstr(b.data, "\"auths\": {\n    \"z.example\": {\n      \"email\": \"m\""));
	assert_int_equal(credential_remove("r.example", &where, NULL), 0);
	free(where);
	expect("r.example", "", "-");
	expect("r.example", "team", "v:q:r");
	teardown(&h);
}

TEST(a_login_goes_where_it_will_be_found)
{
	struct home h;
	char *where;

	setup(&h);
	put(&h, PODMAN, "{\"auths\":{\"r.example\":{\"auth\":\"" UP "\"}}}", 0600);
	put(&h, DOCKER, "{\"auths\":{\"r.example\":{\"auth\":\"" UP "\"}}}", 0600);
	assert_int_equal(credential_store("r.example", "new", "s", &where, NULL), 0);
	expect_where(&h, where, PODMAN);
	expect("r.example", "", "new:s");
	assert_int_equal(credential_store("o.example", "new", "s", &where, NULL), 0);
	expect_where(&h, where, DOCKER);
	assert_int_equal(credential_remove("r.example", &where, NULL), 0);
	assert_non_null(strstr(where, PODMAN));
	assert_non_null(strstr(where, ", "));
	free(where);
	expect("r.example", "", "-");
	expect("o.example", "", "new:s");
	teardown(&h);
}

TEST(a_helper_keeps_what_the_file_says_it_should)
{
	struct home h;
	char *where;
	auto_buf struct buf b = BUF_INIT(1 << 16);

	setup(&h);
	put(&h, "bin/docker-credential-kept", keeps, 0700);
	put(&h, DOCKER, "{\"credsStore\":\"kept\",\"auths\":{\"r.example\":{\"auth\":\"" UP "\"}}}",
		0600);
	assert_int_equal(credential_store("r.example", "u", "hunter2", &where, NULL), 0);
	expect_where(&h, where, "docker-credential-kept");
	get(&h, DOCKER, &b);
	assert_null(strstr(b.data, UP)); /* no old copy in the clear */
	expect("r.example", "", "u:hunter2");
	assert_int_equal(credential_remove("r.example", &where, NULL), 0);
	expect_where(&h, where, "docker-credential-kept");
	expect("r.example", "", "-");
	assert_int_equal(credential_remove("r.example", &where, NULL), -1);
	teardown(&h);
}

TEST(a_file_that_is_a_link_stays_one)
{
	struct home h;
	char *where;
	struct stat st;
	auto_free char *link = NULL;

	setup(&h);
	put(&h, "dots/docker.json", "{}", 0600);
	put(&h, DOCKER ".old", "", 0600);
	link = mem_printf("%s/" DOCKER, h.dir);
	assert_int_equal(sys_symlinkat("../dots/docker.json", AT_FDCWD, link), 0);
	assert_int_equal(credential_store("r.example", "u", "p", &where, NULL), 0);
	free(where);
	assert_int_equal(sys_fstatat(AT_FDCWD, link, &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISLNK(st.st_mode));
	expect("r.example", "", "u:p");
	teardown(&h);
}

TEST(a_user_that_cannot_be_kept_is_refused)
{
	struct home h;
	struct err e = {0};
	char *where;

	setup(&h);
	assert_int_equal(credential_store("r.example", "a:b", "p", &where, &e), -1);
	assert_int_equal(e.kind, ERR_USAGE);
	assert_int_equal(credential_store("r.example", "", "p", &where, NULL), -1);
	put(&h, DOCKER, "{\"auths\":[]}", 0600);
	assert_int_equal(credential_store("r.example", "a", "p", &where, &e), -1);
	assert_int_equal(e.kind, ERR_CORRUPT);
	unsetenv("HOME");
	assert_int_equal(credential_store("r.example", "a", "p", &where, &e), -1);
	assert_int_equal(e.kind, ERR_USAGE);
	teardown(&h);
}

TEST(logins_at_the_same_time_lose_none)
{
	enum { PROCESSES = 8 };
	struct home h;
	int status;

	setup(&h);
	for (int p = 0; p < PROCESSES; p++)
		if (fork() == 0) {
			for (int i = 0; i < 5; i++) {
				char host[64], *where;

				snprintf(host, sizeof(host), "h%d-%d.example", p, i);
				if (credential_store(host, "u", "p", &where, NULL) < 0)
					_exit(1);
			}
			_exit(0);
		}
	for (int p = 0; p < PROCESSES; p++) {
		wait(&status);
		assert_int_equal(status, 0);
	}
	for (int p = 0; p < PROCESSES; p++)
		for (int i = 0; i < 5; i++) {
			char host[64];

			snprintf(host, sizeof(host), "h%d-%d.example", p, i);
			expect(host, "", "u:p");
		}
	teardown(&h);
}

RUN_TESTS(cmocka_unit_test(keys_are_matched_by_the_longest_namespace),
	cmocka_unit_test(files_are_looked_at_in_the_order_of_podman_then_docker),
	cmocka_unit_test(a_damaged_file_is_told_with_the_place_and_without_its_secrets),
	cmocka_unit_test(helpers_are_asked_first_and_may_know_nothing),
	cmocka_unit_test(helpers_that_fail_are_errors_with_their_own_words),
	cmocka_unit_test(the_name_of_a_helper_is_no_path),
	cmocka_unit_test(what_is_kept_is_found_and_forgotten_again),
	cmocka_unit_test(everything_else_in_the_file_is_kept_in_its_order),
	cmocka_unit_test(a_login_goes_where_it_will_be_found),
	cmocka_unit_test(a_helper_keeps_what_the_file_says_it_should),
	cmocka_unit_test(a_file_that_is_a_link_stays_one),
	cmocka_unit_test(a_user_that_cannot_be_kept_is_refused),
	cmocka_unit_test(logins_at_the_same_time_lose_none))
