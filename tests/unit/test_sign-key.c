/* Keys, and signatures over bytes. What openssl says of them: tests/e2e/supply.bats. */
#include "images/sign-key.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "tests/unit/test.h"

struct pair {
	char dir[64];
	char *name, *key, *pub;
	struct err e;
};

static void pair_init(struct pair *p, const char *password)
{
	*p = (struct pair){.dir = "/tmp/svrun-test-XXXXXX"};
	assert_non_null(mkdtemp(p->dir));
	p->name = mem_printf("%s/k", p->dir);
	p->key = mem_printf("%s.key", p->name);
	p->pub = mem_printf("%s.pub", p->name);
	if (sign_key_make(p->name, password, &p->e) < 0)
		fail_msg("%s", p->e.text);
}

static void pair_fini(struct pair *p)
{
	free(p->name);
	free(p->key);
	free(p->pub);
	assert_int_equal(sys_remove_tree(AT_FDCWD, p->dir), 0);
}

static struct sign_key *load(struct pair *p, const char *password)
{
	struct sign_key *k = NULL;

	if (sign_key_load(&k, p->key, password, &p->e) < 0)
		fail_msg("%s", p->e.text);
	return k;
}

TEST(what_one_half_signs_the_other_checks)
{
	auto_buf struct buf der = BUF_INIT(SIGN_DER_MAX);
	struct sign_key *key, *pub;
	char a[65], b[65];
	struct pair p;

	pair_init(&p, "secret");
	key = load(&p, "secret");
	assert_int_equal(sign_key_load_public(&pub, p.pub, &p.e), 0);
	sign_key_id(key, a);
	sign_key_id(pub, b);
	assert_string_equal(a, b);
	assert_int_equal(sign_bytes(key, "text", 4, &der, &p.e), 0);
	assert_int_equal(sign_check(pub, "text", 4, der.data, der.len, &p.e), 0);
	assert_int_equal(sign_check(pub, "texT", 4, der.data, der.len, &p.e), -1);
	assert_int_equal(p.e.kind, ERR_DENIED);
	assert_int_equal(sign_check(pub, "text", 3, der.data, der.len, NULL), -1);
	assert_int_equal(sign_check(pub, "text", 4, der.data, der.len - 1, NULL), -1);
	assert_int_equal(sign_check(pub, "text", 4, "", 0, NULL), -1);
	for (size_t i = 0; i < der.len; i++) { /* any bit */
		der.data[i] = (char)(der.data[i] ^ 1);
		assert_int_equal(sign_check(pub, "text", 4, der.data, der.len, NULL), -1);
		der.data[i] = (char)(der.data[i] ^ 1);
	}
	sign_key_free(key);
	sign_key_free(pub);
	pair_fini(&p);
}

TEST(two_signatures_of_one_text_differ_and_both_hold)
{
	auto_buf struct buf a = BUF_INIT(SIGN_DER_MAX), b = BUF_INIT(SIGN_DER_MAX);
	struct sign_key *k;
	struct pair p;

	pair_init(&p, NULL);
	k = load(&p, NULL);
	assert_int_equal(sign_bytes(k, "x", 1, &a, &p.e), 0);
	assert_int_equal(sign_bytes(k, "x", 1, &b, &p.e), 0);
	assert_int_equal(sign_check(k, "x", 1, a.data, a.len, NULL), 0);
	assert_int_equal(sign_check(k, "x", 1, b.data, b.len, NULL), 0);
	assert_true(a.len != b.len || memcmp(a.data, b.data, a.len) != 0);
	sign_key_free(k);
	pair_fini(&p);
}

TEST(a_key_wants_its_password)
{
	struct sign_key *k = NULL;
	struct stat st;
	struct pair p;

	pair_init(&p, "secret");
	assert_int_equal(stat(p.key, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(sign_key_is_encrypted(p.key, &p.e), 1);
	assert_int_equal(sign_key_load(&k, p.key, "Secret", &p.e), -1);
	assert_int_equal(p.e.kind, ERR_DENIED);
	assert_int_equal(sign_key_load(&k, p.key, NULL, &p.e), -1);
	assert_int_equal(p.e.kind, ERR_DENIED);
	assert_int_equal(sign_key_load(&k, p.key, "", &p.e), -1);
	pair_fini(&p);
}

TEST(the_halves_are_not_taken_for_each_other_and_nothing_is_overwritten)
{
	struct sign_key *k = NULL;
	struct pair p;

	pair_init(&p, NULL);
	assert_int_equal(sign_key_is_encrypted(p.key, &p.e), 0);
	assert_int_equal(sign_key_load(&k, p.pub, NULL, &p.e), -1);
	assert_int_equal(p.e.kind, ERR_USAGE);
	assert_int_equal(sign_key_load_public(&k, p.key, &p.e), -1);
	assert_int_equal(p.e.kind, ERR_USAGE);
	assert_int_equal(sign_key_make(p.name, NULL, &p.e), -1);
	assert_int_equal(p.e.kind, ERR_EXISTS);
	assert_int_equal(unlink(p.key), 0); /* the public half alone is enough to stop */
	assert_int_equal(sign_key_make(p.name, NULL, &p.e), -1);
	assert_int_equal(access(p.key, F_OK), -1);
	pair_fini(&p);
}

TEST(what_is_no_public_key_is_refused)
{
	static const char *const texts[] = {"", "x",
		"-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----\n",
		"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
		"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"};
	struct sign_key *k = NULL;
	struct err e = {0};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(
			sign_key_parse_public(&k, "k.pub", texts[i], strlen(texts[i]), &e), -1);
	assert_non_null(strstr(e.text, "k.pub"));
}

RUN_TESTS(cmocka_unit_test(what_one_half_signs_the_other_checks),
	cmocka_unit_test(two_signatures_of_one_text_differ_and_both_hold),
	cmocka_unit_test(a_key_wants_its_password),
	cmocka_unit_test(the_halves_are_not_taken_for_each_other_and_nothing_is_overwritten),
	cmocka_unit_test(what_is_no_public_key_is_refused))
