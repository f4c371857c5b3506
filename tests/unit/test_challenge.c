#include "tests/unit/test.h"

#include "base/str.h"
#include "images/challenge.h"

TEST(challenges_are_read_in_every_form_the_grammar_has)
{
	static const struct {
		const char *text;
		size_t n;
		const char *scheme, *realm, *service, *scope; /* of the first */
	} cases[] = {
		{"Bearer realm=\"https://auth.example/token\",service=\"registry.example\","
		 "scope=\"repository:a/b:pull,push\"",
			1, "Bearer", "https://auth.example/token", "registry.example",
			"repository:a/b:pull,push"},
		{"bearer SCOPE=\"x\" , Service=s,\trealm = \"r\"", 1, "bearer", "r", "s", "x"},
		{"Basic realm=\"a \\\"quoted\\\" \\\\ one\"", 1, "Basic", "a \"quoted\" \\ one", "",
			""},
		{"Basic", 1, "Basic", "", "", ""},
		{",, Basic ,,", 1, "Basic", "", "", ""},
		{"Negotiate", 1, "Negotiate", "", "", ""},
		{"Negotiate YII=, Bearer realm=\"r\"", 2, "Negotiate", "", "", ""},
		{"Basic realm=\"a, Bearer realm=b\"", 1, "Basic", "a, Bearer realm=b", "", ""},
		{"Basic realm=a, Bearer realm=b, Digest nonce=c, realm=d", 3, "Basic", "a", "", ""},
		{"Bearer error=\"invalid_token\",realm=\"r\",unknown=\"u,v\",other=w", 1, "Bearer",
			"r", "", ""},
		{"Bearer realm=\"\"", 1, "Bearer", "", "", ""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct challenges c = {0};

		challenges_add(&c, cases[i].text);
		if (c.n != cases[i].n || !str_eq(c.v[0].scheme, cases[i].scheme) ||
			!str_eq(c.v[0].realm, cases[i].realm) ||
			!str_eq(c.v[0].service, cases[i].service) ||
			!str_eq(c.v[0].scope, cases[i].scope))
			fail_msg("%s: %zu, %s '%s' '%s' '%s'", cases[i].text, c.n, c.v[0].scheme,
				c.v[0].realm, c.v[0].service, c.v[0].scope);
	}
}

TEST(what_cannot_be_read_is_left_out_and_what_came_before_stays)
{
	static const struct {
		const char *text;
		size_t n;
	} cases[] = {
		{"", 0},
		{" \t,", 0},
		{"=", 0},
		{"\"Basic\"", 0},
		{"Basic realm=\"never ends", 0},
		{"Basic realm=\"ends with a backslash\\", 0},
		{"Basic realm=a b", 0},
		{"Basic realm=\"a\"b", 0},
		{"Basic realm=", 1 /* a token68 */},
		{"Basic realm=\"line\nfeed\"", 0},
		{"Basic realm=\"\x7f\"", 0},
		{"Basic realm=a, realm=b", 0},
		{"Bearer realm=x, Basic realm=\"", 1},
		{"Bearer realm=x, Basic \x01", 2},
		{"B@sic realm=x", 0},
		{"a,b,c,d,e,f,g,h,i,j,k", CHALLENGES_MAX},
		{"Aschemethatislongerthanthirtytwocharacters realm=x, Basic realm=y", 1},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct challenges c = {0};

		challenges_add(&c, cases[i].text);
		if (c.n != cases[i].n)
			fail_msg("%s: %zu challenges", cases[i].text, c.n);
	}
}

TEST(a_value_that_is_too_long_makes_only_its_own_challenge_unusable)
{
	char text[4096];
	struct challenges c = {0};

	snprintf(text, sizeof(text), "Bearer realm=\"%01500d\", Basic realm=\"ok\"", 0);
	challenges_add(&c, text);
	assert_int_equal(c.n, 1);
	assert_null(challenges_find(&c, "Bearer"));
	assert_string_equal(challenges_find(&c, "BASIC")->realm, "ok");
}

TEST(several_fields_add_up)
{
	struct challenges c = {0};

	challenges_add(&c, "Negotiate");
	challenges_add(&c, "Basic realm=x");
	challenges_add(&c, "Bearer realm=y");
	assert_int_equal(c.n, 3);
	assert_string_equal(challenges_find(&c, "bearer")->realm, "y");
}

RUN_TESTS(cmocka_unit_test(challenges_are_read_in_every_form_the_grammar_has),
	cmocka_unit_test(what_cannot_be_read_is_left_out_and_what_came_before_stays),
	cmocka_unit_test(a_value_that_is_too_long_makes_only_its_own_challenge_unusable),
	cmocka_unit_test(several_fields_add_up))
