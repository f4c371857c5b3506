/* Signatures of images: what is one, and what only looks like one. */
#include "images/signature.h"

#include <unistd.h>

#include "base/json.h"
#include "base/str.h"
#include "images/base64.h"
#include "tests/unit/fixture.h"

struct signer {
	char dir[64];
	struct sign_key *k;
	struct digest image, other;
};

static void signer_init(struct signer *s)
{
	auto_free char *name = NULL, *key = NULL;

	*s = (struct signer){.dir = "/tmp/svrun-test-XXXXXX",
		.image = digest_of("image", 5),
		.other = digest_of("other", 5)};
	assert_non_null(mkdtemp(s->dir));
	name = mem_printf("%s/k", s->dir);
	key = mem_printf("%s.key", name);
	assert_int_equal(sign_key_make(name, NULL, NULL), 0);
	assert_int_equal(sign_key_load(&s->k, key, NULL, NULL), 0);
}

static void signer_fini(struct signer *s)
{
	sign_key_free(s->k);
	assert_int_equal(sys_remove_tree(AT_FDCWD, s->dir), 0);
}

static json_t *annotations(const struct signer *s, const void *p, size_t n)
{
	auto_buf struct buf der = BUF_INIT(SIGN_DER_MAX);
	auto_free char *text = NULL;

	assert_int_equal(sign_bytes(s->k, p, n, &der, NULL), 0);
	text = base64_encode(der.data, der.len);
	return json_pack("{s:s}", SIGNATURE_ANNOTATION, text);
}

/* Added as one of s->image: is it one by the key? what: its fault must say so; NULL: none. */
static void check_simple(
	const struct signer *s, const char *payload, const json_t *a, bool good, const char *what)
{
	struct signatures l = {0};

	signatures_add_simple(&l, "tag", &s->image, payload, strlen(payload), a);
	assert_int_equal(l.n, 1);
	assert_int_equal(signature_is_by(&l.v[0], s->k), good);
	if (!what != !l.v[0].fault || (what && !strstr(l.v[0].fault, what)))
		fail_msg("'%s': expected '%s', found '%s'", payload, what ? what : "",
			l.v[0].fault ? l.v[0].fault : "");
	signatures_fini(&l);
}

TEST(a_payload_is_one_of_the_image_that_it_names)
{
	auto_buf struct buf good = BUF_INIT(4096), other = BUF_INIT(4096);
	auto_json json_t *a = NULL, *b = NULL, *none = json_object();
	struct signer s;

	signer_init(&s);
	sign_payload("r.example/app", &s.image, &good);
	sign_payload("r.example/app", &s.other, &other);
	a = annotations(&s, good.data, good.len);
	b = annotations(&s, other.data, other.len);
	check_simple(&s, good.data, a, true, NULL);
	check_simple(&s, other.data, b, false, "is over sha256:"); /* another digest */
	check_simple(&s, good.data, b, false, NULL);               /* a swapped payload */
	check_simple(&s, good.data, none, false, "base64");
	check_simple(&s, good.data, NULL, false, "base64");
	check_simple(&s, "{}", a, false, "not simple signing");
	check_simple(&s, "", a, false, "not simple signing");
	json_object_set_new(a, SIGNATURE_ANNOTATION, json_string("AAAA"));
	check_simple(&s, good.data, a, false, NULL);
	json_object_set_new(a, SIGNATURE_ANNOTATION, json_integer(1));
	check_simple(&s, good.data, a, false, "base64");
	signer_fini(&s);
}

/* A signed payload in every other respect. */
static void check_text(const struct signer *s, const char *payload, const char *what)
{
	auto_json json_t *a = annotations(s, payload, strlen(payload));

	check_simple(s, payload, a, false, what);
}

TEST(a_payload_that_says_too_much_or_too_little_is_none)
{
	struct signer s;
	char text[DIGEST_TEXT + 1];
	auto_free char *twice = NULL, *type = NULL, *upper = NULL;

	signer_init(&s);
	digest_text(&s.image, text);
	twice = mem_printf("{\"critical\":{\"image\":{\"docker-manifest-digest\":\"%s\","
			   "\"docker-manifest-digest\":\"%s\"},\"type\":\"cosign container image "
			   "signature\"}}",
		text, text);
	type = mem_printf("{\"critical\":{\"image\":{\"docker-manifest-digest\":\"%s\"},\"type\":"
			  "\"atomic container signature\"}}",
		text);
	upper = mem_printf("{\"critical\":{\"image\":{\"docker-manifest-digest\":\"SHA256:%s\"},"
			   "\"type\":\"cosign container image signature\"}}",
		text + 7);
	check_text(&s, twice, "not simple signing");
	check_text(&s, type, "another type");
	check_text(&s, upper, "names no sha256 digest");
	check_text(&s, "{\"critical\":{\"type\":\"cosign container image signature\"}}",
		"names no sha256 digest");
	signer_fini(&s);
}

/* ---- bundles ---- */

static char *bundle(const struct signer *s, const char *type, const char *statement)
{
	auto_buf struct buf pae = BUF_INIT(1 << 16), der = BUF_INIT(SIGN_DER_MAX),
			    out = BUF_INIT(1 << 16);
	auto_free char *payload = base64_encode(statement, strlen(statement)), *sig = NULL;
	auto_json json_t *j = NULL;

	dsse_encode(type, statement, strlen(statement), &pae);
	assert_int_equal(sign_bytes(s->k, pae.data, pae.len, &der, NULL), 0);
	sig = base64_encode(der.data, der.len);
	j = json_pack("{s:{s:{s:s}}, s:{s:s, s:s, s:[{s:s}]}}", "verificationMaterial", "publicKey",
		"hint", "abc", "dsseEnvelope", "payloadType", type, "payload", payload,
		"signatures", "sig", sig);
	json_text(j, true, &out);
	return mem_strdup(out.data);
}

static char *statement(const struct digest *d, const char *predicate)
{
	char hex[DIGEST_HEX + 1];

	return mem_printf(
		"{\"_type\":\"" IN_TOTO_STATEMENT "\",\"predicateType\":\"%s\","
		"\"subject\":[{\"name\":\"r.example/app\",\"digest\":{\"sha256\":\"%s\"}}]}",
		predicate, digest_hex(d, hex));
}

TEST(a_bundle_is_one_of_the_image_that_its_statement_is_about)
{
	struct signer s;
	struct signatures l = {0};
	auto_free char *mine = NULL, *theirs = NULL, *about = NULL, *a = NULL, *b = NULL, *c = NULL;

	signer_init(&s);
	mine = statement(&s.image, SIGN_PREDICATE);
	theirs = statement(&s.other, SIGN_PREDICATE);
	about = statement(&s.image, "https://slsa.dev/provenance/v1");
	a = bundle(&s, IN_TOTO_TYPE, mine);
	b = bundle(&s, IN_TOTO_TYPE, theirs);
	c = bundle(&s, IN_TOTO_TYPE, about);
	signatures_add_bundle(&l, &s.image, a, strlen(a));
	signatures_add_bundle(&l, &s.image, b, strlen(b));
	signatures_add_bundle(&l, &s.image, c, strlen(c)); /* provenance signs nothing off */
	assert_int_equal(l.n, 2);
	assert_true(signature_is_by(&l.v[0], s.k));
	assert_string_equal(l.v[0].reference, "r.example/app");
	assert_string_equal(l.v[0].key_hint, "abc");
	assert_false(signature_is_by(&l.v[1], s.k));
	assert_non_null(strstr(l.v[1].fault, "is over sha256:"));
	signatures_fini(&l);
	signer_fini(&s);
}

TEST(the_type_of_the_payload_is_signed_too)
{
	struct signer s;
	struct signatures l = {0};
	auto_free char *mine = NULL, *a = NULL;
	char *at;

	signer_init(&s);
	mine = statement(&s.image, SIGN_PREDICATE);
	a = bundle(&s, "application/vnd.in-toto+jsoN", mine);
	at = strstr(a, "jsoN");
	assert_non_null(at);
	at[3] = 'n'; /* as if it had been signed as a statement */
	signatures_add_bundle(&l, &s.image, a, strlen(a));
	assert_int_equal(l.n, 1);
	assert_null(l.v[0].fault);
	assert_false(signature_is_by(&l.v[0], s.k));
	signatures_fini(&l);
	signer_fini(&s);
}

/* ---- in the store ---- */

TEST(what_is_attached_is_listed_replaced_and_found)
{
	struct fixture fx, *f = &fx;
	struct digest subject;
	auto_json json_t *list = NULL, *first = NULL, *second = NULL;
	auto_buf struct buf b = BUF_INIT(100);
	struct attachment a = {.type = "application/x", .data = "one", .n = 3};

	fixture_init(f);
	need(store_blob_put(&f->s, "{\"layers\":[]}", 13, &subject, &f->e));
	first = attached_list(&f->s, &subject, &f->e);
	assert_int_equal(json_array_size(first), 0);
	need(attached_put(&f->s, &subject, &a, NULL, &f->e));
	a.data = "two";
	need(attached_put(&f->s, &subject, &a, NULL, &f->e));
	list = attached_list(&f->s, &subject, &f->e);
	assert_int_equal(json_array_size(list), 1);
	assert_int_equal(attached_blob(&f->s, &subject, "application/x", NULL, NULL, &b, &f->e), 1);
	assert_string_equal(b.data, "two");
	assert_int_equal(attached_blob(&f->s, &subject, "application/y", NULL, NULL, &b, &f->e), 0);
	a.type = "application/y";
	need(attached_put(&f->s, &subject, &a, NULL, &f->e));
	second = attached_list(&f->s, &subject, &f->e);
	assert_int_equal(json_array_size(second), 2);
	need(attached_remove(&f->s, &subject, &f->e));
	need(attached_remove(&f->s, &subject, &f->e));
	fixture_fini(f);
}

RUN_TESTS(cmocka_unit_test(a_payload_is_one_of_the_image_that_it_names),
	cmocka_unit_test(a_payload_that_says_too_much_or_too_little_is_none),
	cmocka_unit_test(a_bundle_is_one_of_the_image_that_its_statement_is_about),
	cmocka_unit_test(the_type_of_the_payload_is_signed_too),
	cmocka_unit_test(what_is_attached_is_listed_replaced_and_found))
