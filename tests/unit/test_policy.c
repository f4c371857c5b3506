/* The site's policy: what it may say, and what it decides. */
#include "images/policy.h"

#include "base/str.h"
#include "images/attached.h"
#include "images/base64.h"
#include "images/signature.h"
#include "tests/unit/fixture.h"

static const char good[] = "{\"schema\": \"svrun.policy/1\",\n"
			   " \"keys\": {\"a\": {\"file\": \"a.pub\"}, \"b\": {\"file\": "
			   "\"/b.pub\", \"until\": \"2030-12-31\"}},\n"
			   " \"default\": {\"action\": \"reject\", \"reason\": \"no\"},\n"
			   " \"rules\": [\n"
			   "  {\"match\": [\"r.example/prod/secret\"], \"action\": \"reject\"},\n"
			   "  {\"match\": [\"r.example/prod/*\", \"m.example/**\"], \"action\": "
			   "\"signed\", \"keys\": [\"a\", \"b\"],"
			   " \"threshold\": 2},\n"
			   "  {\"match\": [\"?*\"], \"action\": \"accept\", \"x-why\": 1}]}";

TEST(the_first_rule_that_matches_decides)
{
	static const struct {
		const char *name;
		enum policy_action action;
		const char *where;
	} cases[] = {
		{"r.example/prod/secret", POLICY_REJECT, "/rules/0"},
		{"r.example/prod/app", POLICY_SIGNED, "/rules/1"},
		{"r.example/prod/a/b", POLICY_REJECT, "/default"},
		{"m.example/a/b/c", POLICY_SIGNED, "/rules/1"},
		{"app", POLICY_ACCEPT, "/rules/2"},
		{"r.example/app", POLICY_REJECT, "/default"}, /* '*' stays within a part */
		{"", POLICY_REJECT, "/default"},
	};
	struct policy p;
	struct err e = {0};

	assert_int_equal(policy_parse(&p, "p.json", good, strlen(good), &e), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct policy_rule *r = policy_find(&p, cases[i].name);

		assert_string_equal(r->where, cases[i].where);
		assert_int_equal(r->action, cases[i].action);
		assert_int_equal(policy_admits(&p, r, cases[i].name, &e),
			cases[i].action == POLICY_REJECT ? -1 : 0);
	}
	assert_int_equal(p.rules[1].threshold, 2);
	assert_int_equal(p.rules[1].nkeys, 2);
	assert_string_equal(p.keys[p.rules[1].keys[1]].until, "2030-12-31");
	policy_close(&p);
}

TEST(what_is_malformed_is_refused_with_its_place)
{
#define HEAD "{\"schema\": \"svrun.policy/1\", "
	static const char *const cases[][2] = {
		{"", "p.json:1:1"},
		{"[]", "expected an object"},
		{"{\"schema\": \"svrun.policy/1\"}", "default"},
		{"{\"default\": {\"action\": \"accept\"}}", "svrun.policy/1"},
		{HEAD "\"default\": {}}", "/default/action"},
		{HEAD "\"default\": {\"action\": 1}}", "/default/action"},
		{HEAD "\"default\": {\"action\": \"accept\", \"match\": [\"x\"]}}",
			"/default/match"},
		{HEAD "\"default\": {\"action\": \"signed\"}}", "/default/keys"},
		{HEAD "\"default\": {\"action\": \"signed\", \"keys\": []}}", "/default/keys"},
		{HEAD "\"default\": {\"action\": \"signed\", \"keys\": [\"a\"]}}",
			"'a' is not one"},
		{HEAD "\"keys\": {\"a\": {\"file\": \"x\"}}, \"default\": {\"action\": \"signed\", "
		      "\"keys\": [\"a\", \"a\"]}}",
			"twice"},
		{HEAD "\"keys\": {\"a\": {\"file\": \"x\"}}, \"default\": {\"action\": \"signed\", "
		      "\"keys\": [\"a\"], \"threshold\": 2}}",
			"/default/threshold"},
		{HEAD "\"keys\": {\"a\": {\"file\": \"x\"}}, \"default\": {\"action\": \"signed\", "
		      "\"keys\": [\"a\"], \"threshold\": 0}}",
			"/default/threshold"},
		{HEAD "\"keys\": {\"a\": {}}, \"default\": {\"action\": \"accept\"}}", "/keys/a"},
		{HEAD "\"keys\": {\"a\": {\"file\": \"x\", \"id\": \"ab\"}}, \"default\": "
		      "{\"action\": \"accept\"}}",
			"/keys/a/id"},
		{HEAD "\"keys\": {\"a\": {\"file\": \"x\", \"until\": \"2030-13-01\"}}, "
		      "\"default\": {\"action\": \"accept\"}}",
			"/keys/a/until"},
#define WHO "\"identities\": {\"i\": {\"issuer\": \"x\", \"subject\": \"y*\"}}, "
		{HEAD "\"identities\": [], \"default\": {\"action\": \"accept\"}}", "/identities"},
		{HEAD "\"identities\": {\"i\": {\"issuer\": \"x\"}}, \"default\": {\"action\": "
		      "\"accept\"}}",
			"/identities/i"},
		{HEAD "\"identities\": {\"i\": {\"issuer\": \"x\", \"subject\": \"y\", \"san\": "
		      "\"z\"}}, \"default\": {\"action\": \"accept\"}}",
			"/identities/i/san"},
		{HEAD WHO "\"default\": {\"action\": \"signed\", \"identities\": [\"k\"]}}",
			"'k' is not one of /identities"},
		{HEAD WHO "\"default\": {\"action\": \"signed\", \"identities\": [\"i\", \"i\"]}}",
			"twice"},
		{HEAD WHO "\"default\": {\"action\": \"accept\", \"identities\": [\"i\"]}}",
			"goes with action signed"},
		{HEAD WHO "\"keys\": {\"a\": {\"file\": \"f\"}}, \"default\": {\"action\": "
			  "\"signed\", \"keys\": [\"a\"], \"identities\": [\"i\"], "
			  "\"threshold\": 2}}",
			"subjects are no patterns"},
		{HEAD WHO "\"default\": {\"action\": \"signed\", \"identities\": [\"i\"], "
			  "\"threshold\": 2}}",
			"/default/threshold"},
		{HEAD "\"rules\": {}, \"default\": {\"action\": \"accept\"}}", "/rules"},
		{HEAD "\"rules\": [{\"action\": \"accept\"}], \"default\": {\"action\": "
		      "\"accept\"}}",
			"/rules/0/match"},
		{HEAD "\"rules\": [{\"match\": [\"\"], \"action\": \"accept\"}], \"default\": "
		      "{\"action\": \"accept\"}}",
			"/rules/0/match"},
		{HEAD "\"default\": {\"action\": \"accept\"}, \"default\": {\"action\": "
		      "\"reject\"}}",
			"duplicate"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct policy p;
		struct err e = {0};

		assert_int_equal(
			policy_parse(&p, "p.json", cases[i][0], strlen(cases[i][0]), &e), -1);
		assert_int_equal(e.kind, ERR_USAGE);
		if (!strstr(e.text, cases[i][1]) || !str_starts(e.text, "p.json:"))
			fail_msg("%s: %s", cases[i][0], e.text);
	}
}

/* A list of one signature by the key of DIR/k, as often as may be. */
static void attach_signatures(struct fixture *f, struct sign_key *k, const struct digest *image)
{
	auto_buf struct buf payload = BUF_INIT(4096), der = BUF_INIT(SIGN_DER_MAX),
			    text = BUF_INIT(1 << 20);
	auto_json json_t *layers = json_array(), *doc = NULL, *o = NULL;
	auto_free char *sig = NULL;
	char hex[DIGEST_TEXT + 1];
	struct digest d;

	sign_payload("r.example/app", image, &payload);
	need(sign_bytes(k, payload.data, payload.len, &der, &f->e));
	sig = base64_encode(der.data, der.len);
	need(store_blob_put(&f->s, payload.data, payload.len, &d, &f->e));
	for (size_t i = 0; i < 128; i++)
		json_array_append_new(
			layers, json_pack("{s:s, s:s, s:I, s:{s:s}}", "mediaType", "x", "digest",
					digest_text(&d, hex), "size", (json_int_t)payload.len,
					"annotations", SIGNATURE_ANNOTATION, sig));
	doc = json_pack("{s:O}", "layers", layers);
	json_text(doc, true, &text);
	need(store_blob_put(&f->s, text.data, text.len, &d, &f->e));
	o = json_pack("{s:s, s:s, s:I, s:s}", "mediaType", OCI_MANIFEST_TYPE, "digest",
		digest_text(&d, hex), "size", (json_int_t)text.len, "artifactType",
		COSIGN_REFERRER_TYPE);
	need(attached_add(&f->s, image, o, &f->e));
}

TEST(what_is_told_of_signatures_is_bounded)
{
	struct fixture fx, *f = &fx;
	auto_free char *base = NULL, *file = NULL, *text = NULL, *name = mem_alloc(20001);
	const struct digest image = digest_of("image", 5);
	struct sign_key *k;
	struct policy p;

	fixture_init(f);
	base = mem_printf("%s/k", f->path);
	file = mem_printf("%s.key", base);
	need(sign_key_make(base, NULL, &f->e));
	need(sign_key_load(&k, file, NULL, &f->e));
	attach_signatures(f, k, &image);
	memset(name, 'k', 20000);
	text = mem_printf(HEAD "\"keys\": {\"%s\": {\"file\": \"%s.pub\", \"until\": "
			       "\"2020-01-01\"}}, \"default\": {\"action\": \"signed\", "
			       "\"keys\": [\"%s\"]}}",
		name, base, name);
	need(policy_parse(&p, "p.json", text, strlen(text), &f->e));
	assert_int_equal(policy_verify(&p, &p.otherwise, &f->s, "app", &image, &f->e), -1);
	assert_int_equal(f->e.kind, ERR_DENIED);
	assert_non_null(strstr(f->e.text, "found: one by 'kkk"));
	policy_close(&p);
	sign_key_free(k);
	fixture_fini(f);
}

RUN_TESTS(cmocka_unit_test(the_first_rule_that_matches_decides),
	cmocka_unit_test(what_is_malformed_is_refused_with_its_place),
	cmocka_unit_test(what_is_told_of_signatures_is_bounded))
