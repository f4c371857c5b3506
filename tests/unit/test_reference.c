#include "tests/unit/test.h"

#include <jansson.h>
#include <stdlib.h>

#include "images/reference.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define DIGEST "sha256:" HEX

TEST(a_reference_is_taken_apart_and_printed_again)
{
	static const struct {
		const char *text, *host, *path, *tag;
		bool digest;
		const char *print; /* NULL: as it was */
	} cases[] = {
		{"registry.example/app", "registry.example", "app", "latest", false, NULL},
		{"registry.example/app:latest", "registry.example", "app", "latest", false,
			"registry.example/app"},
		{"registry.example:5000/team/app:1.0", "registry.example:5000", "team/app", "1.0",
			false, NULL},
		{"localhost/a", "localhost", "a", "latest", false, NULL},
		{"localhost:1/a:b", "localhost:1", "a", "b", false, NULL},
		{"host:65535/a", "host:65535", "a", "latest", false, NULL},
		{"127.0.0.1:5000/a/b/c:t", "127.0.0.1:5000", "a/b/c", "t", false, NULL},
		{"[::1]:5000/a", "[::1]:5000", "a", "latest", false, NULL},
		{"[2001:DB8::2]/a:x", "[2001:db8::2]", "a", "x", false, "[2001:db8::2]/a:x"},
		{"Registry.Example/app", "registry.example", "app", "latest", false,
			"registry.example/app"},
		{"registry.example/a@" DIGEST, "registry.example", "a", "", true, NULL},
		{"registry.example/a:1@" DIGEST, "registry.example", "a", "1", true, NULL},
		{"registry.example/a:latest@" DIGEST, "registry.example", "a", "latest", true,
			NULL},
		{"r.example/a--b/c__d.e_f:_A.b-C", "r.example", "a--b/c__d.e_f", "_A.b-C", false,
			NULL},
		{"xn--bcher-kva.example/a", "xn--bcher-kva.example", "a", "latest", false, NULL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct reference r;
		struct err e = {0};
		char out[REFERENCE_TEXT], target[DIGEST_TEXT + 1];

		if (reference_parse(&r, cases[i].text, &e) < 0)
			fail_msg("%s", e.text);
		assert_string_equal(r.host, cases[i].host);
		assert_string_equal(r.path, cases[i].path);
		assert_string_equal(r.tag, cases[i].tag);
		assert_int_equal(r.has_digest, cases[i].digest);
		assert_string_equal(
			reference_text(&r, out), cases[i].print ? cases[i].print : cases[i].text);
		assert_string_equal(
			reference_target(&r, target), cases[i].digest ? DIGEST : cases[i].tag);
	}
}

TEST(a_malformed_reference_is_told_by_its_part)
{
	static const struct {
		const char *text, *say;
	} cases[] = {
		{"app", "it has no host"},
		{"team/app:1", "it has no host"},
		{"", "it has no host"},
		{"registry.example/", "the path '' has an empty part"},
		{"registry.example/App", "the path 'App' has upper case"},
		{"registry.example/team//app", "the path 'team//app' has an empty part"},
		{"registry.example/app/", "the path 'app/' has an empty part"},
		{"registry.example/../x", "the path '../x' has a part that begins or ends"},
		{"registry.example/a..b", "has two of them in a row"},
		{"registry.example/a___b", "has two of them in a row"},
		{"registry.example/a-", "the path 'a-' has a part that begins or ends"},
		{"registry.example/-a", "the path '-a' has a part that begins or ends"},
		{"registry.example/a b", "the path 'a b' has something else"},
		{"registry.example/\xc3\xa4", "the path '?\?' has something else"},
		{"registry.example/a\n", "the path 'a?' has something else"},
		{"registry.example/a:", "the tag '' is empty"},
		{"registry.example/a:.x", "the tag '.x' begins with"},
		{"registry.example/a:b/c", "the tag 'b/c' has something else"},
		{"registry.example/a:b:c", "the tag 'b:c' has something else"},
		{"registry.example/a@sha256:12", "the digest 'sha256:12' is not"},
		{"registry.example/a@sha512:" HEX, "the digest 'sha512:"},
		{"registry.example/a@" DIGEST "@" DIGEST, "the digest"},
		{"registry.example/a@", "the digest '' is not"},
		{"-a.example/a", "the host '-a.example' has a part that begins with '-'"},
		{"a-.example/a", "the host 'a-.example' has a part that ends with '-'"},
		{"a..example/a", "the host 'a..example' has an empty part"},
		{".example/a", "the host '.example' has an empty part"},
		{"a_b.example/a", "the host 'a_b.example' has something else"},
		{"a.example:/a", "the host 'a.example:' has a port"},
		{"a.example:0/a", "has a port that is not a number from 1 to 65535"},
		{"a.example:65536/a", "has a port that is not"},
		{"a.example:080/a", "has a port that is not"},
		{"a.example:99999999999/a", "has a port that is not"},
		{"a.example:5x/a", "has a port that is not"},
		{":5000/a", "the host ':5000' is empty"},
		{"[::1/a", "has a '[' without ']'"},
		{"[::1%lo]/a:b", "has no IPv6 address in its brackets"},
		{"[::1]5000/a", "something other than a port after its ']'"},
		{"[127.0.0.1]/a", "has no IPv6 address"},
		{"http://registry.example/a", "the host 'http:' is a scheme"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct reference r;
		struct err e = {0};

		assert_int_equal(reference_parse(&r, cases[i].text, &e), -1);
		assert_int_equal(e.kind, ERR_USAGE);
		if (!strstr(e.text, cases[i].say) || !e.hint[0])
			fail_msg("'%s': '%s', not '%s'", cases[i].text, e.text, cases[i].say);
	}
}

/* Parse before, n times c, after. */
static int parse_with(const char *before, int c, size_t n, const char *after)
{
	char many[1000], text[2000];
	struct reference r;

	memset(many, c, n);
	many[n] = '\0';
	snprintf(text, sizeof(text), "%s%s%s", before, many, after);
	return reference_parse(&r, text, NULL);
}

TEST(every_part_has_its_limit)
{
	assert_int_equal(parse_with("r.example/", 'a', 255, ""), 0);
	assert_int_equal(parse_with("r.example/", 'a', 256, ""), -1);
	assert_int_equal(parse_with("r.example/a:", 'a', 128, ""), 0);
	assert_int_equal(parse_with("r.example/a:", 'a', 129, ""), -1);
	assert_int_equal(parse_with("", 'a', 63, ".example/a"), 0);
	assert_int_equal(parse_with("", 'a', 64, ".example/a"), -1);
	assert_int_equal(parse_with("r.example/a", '/', 900, ""), -1);
	assert_int_equal(parse_with("r", '.', 900, "/a"), -1);
}

TEST(the_longest_reference_fits)
{
	char host[300] = "", text[2000], out[REFERENCE_TEXT];
	struct reference r;
	struct err e = {0};
	size_t n = 0;

	while (n < 252) { /* parts of one letter: 253 bytes with the last */
		host[n++] = 'a';
		host[n++] = '.';
	}
	host[n++] = 'a';
	assert_int_equal(n, 253);
	snprintf(text, sizeof(text), "%s:65535/%0255d:%0128d@" DIGEST, host, 0, 0);
	if (reference_parse(&r, text, &e) < 0)
		fail_msg("%s", e.text);
	assert_string_equal(reference_text(&r, out), text);
	snprintf(text, sizeof(text), "%s.a/a", host);
	assert_int_equal(reference_parse(&r, text, NULL), -1);
}

TEST(only_names_with_a_host_have_one)
{
	assert_true(reference_has_host("registry.example/a"));
	assert_true(reference_has_host("localhost/a"));
	assert_true(reference_has_host("host:1/a"));
	assert_true(reference_has_host("[::1]/a"));
	assert_false(reference_has_host("localhost"));
	assert_false(reference_has_host("a.b:1"));
	assert_false(reference_has_host("team/app:1.0"));
	assert_false(reference_has_host("app@sha256:a/b"));
}

TEST(a_name_without_a_host_is_one_of_the_store)
{
	struct reference r;
	char out[REFERENCE_TEXT];

	assert_int_equal(reference_parse_name(&r, "team/app:latest", NULL), 0);
	assert_string_equal(r.host, "");
	assert_string_equal(reference_text(&r, out), "team/app");
	assert_int_equal(reference_parse_name(&r, "app@" DIGEST, NULL), 0);
	assert_string_equal(reference_text(&r, out), "app@" DIGEST);
}

TEST(a_host_is_taken_as_people_write_it)
{
	static const struct {
		const char *text, *host; /* NULL: refused */
	} cases[] = {
		{"registry.example", "registry.example"},
		{"Registry.Example:5000", "registry.example:5000"},
		{"https://registry.example/", "registry.example"},
		{"localhost", "localhost"},
		{"[::1]:5000", "[::1]:5000"},
		{"http://registry.example", NULL},
		{"registry.example/team", NULL},
		{"https://registry.example/v2/", NULL},
		{"", NULL},
		{"/", NULL},
		{"user@registry.example", NULL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char host[REFERENCE_HOST];
		int rc = reference_host(cases[i].text, host, NULL);

		if (rc != (cases[i].host ? 0 : -1))
			fail_msg("'%s': %d", cases[i].text, rc);
		if (rc == 0)
			assert_string_equal(host, cases[i].host);
	}
}

/* ---- short names ---- */

static struct config site(const char *short_names)
{
	struct config c = {0};

	c.path = mem_strdup("/etc/x.json");
	c.short_names = json_loads(short_names, 0, NULL);
	assert_non_null(c.short_names);
	return c;
}

static void expand_to(const char *short_names, const char *text, const char *const *want)
{
	struct config c = site(short_names);
	struct reference v[4];
	struct err e = {0};
	char out[REFERENCE_TEXT];
	size_t n;

	if (reference_expand(&c, text, v, 4, &n, &e) < 0)
		fail_msg("%s: %s", text, e.text);
	for (size_t i = 0; i < n; i++) {
		assert_non_null(want[i]);
		assert_string_equal(reference_text(&v[i], out), want[i]);
	}
	assert_null(want[n]);
	config_fini(&c);
}

TEST(a_short_name_means_what_the_site_says)
{
	static const char aliases[] =
		"{\"aliases\":{\"ubuntu\":\"registry.example/library/ubuntu\","
		"\"team/app\":\"localhost:5000/x\"},"
		"\"search\":[\"one.example\",\"two.example/lib\"]}";

	expand_to(aliases, "ubuntu", (const char *[]){"registry.example/library/ubuntu", NULL});
	expand_to(aliases, "ubuntu:22.04",
		(const char *[]){"registry.example/library/ubuntu:22.04", NULL});
	expand_to(aliases, "ubuntu@" DIGEST,
		(const char *[]){"registry.example/library/ubuntu@" DIGEST, NULL});
	expand_to(aliases, "team/app:1", (const char *[]){"localhost:5000/x:1", NULL});
	expand_to(aliases, "other/app:1",
		(const char *[]){"one.example/other/app:1", "two.example/lib/other/app:1", NULL});
	expand_to(aliases, "third.example/ubuntu", (const char *[]){"third.example/ubuntu", NULL});
	expand_to("{\"search\":[\"a.example\",\"b.example\",\"c.example\",\"d.example\","
		  "\"e.example\"]}",
		"x",
		(const char *[]){"a.example/x", "b.example/x", "c.example/x", "d.example/x", NULL});
}

TEST(a_short_name_that_means_nothing_is_explained)
{
	static const struct {
		const char *site, *text;
		enum err_kind kind;
		const char *say;
	} cases[] = {
		{"{}", "ubuntu", ERR_NOT_FOUND, "'ubuntu' names no registry"},
		{"{\"aliases\":{\"debian\":\"r.example/debian\"}}", "ubuntu", ERR_NOT_FOUND,
			"names no registry"},
		{"{}", "Ubuntu", ERR_USAGE, "has upper case"},
		{"{\"aliases\":{\"a\":\"b\"}}", "a", ERR_USAGE,
			"/etc/x.json: short-names: aliases: 'b' is not"},
		{"{\"aliases\":{\"a\":\"r.example/b:1\"}}", "a", ERR_USAGE, "has a tag or digest"},
		{"{\"aliases\":{\"a\":\"r.example/b:latest\"}}", "a", ERR_USAGE,
			"has a tag or digest"},
		{"{\"search\":[\"r.example/B\"]}", "a", ERR_USAGE, "short-names: search"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct config c = site(cases[i].site);
		struct reference v[4];
		struct err e = {0};
		size_t n;

		assert_int_equal(reference_expand(&c, cases[i].text, v, 4, &n, &e), -1);
		assert_int_equal(e.kind, cases[i].kind);
		if (!strstr(e.text, cases[i].say))
			fail_msg("'%s', not '%s'", e.text, cases[i].say);
		if (e.kind == ERR_NOT_FOUND)
			assert_non_null(strstr(e.hint, "short-names in /etc/x.json"));
		config_fini(&c);
	}
}

RUN_TESTS(cmocka_unit_test(a_reference_is_taken_apart_and_printed_again),
	cmocka_unit_test(a_malformed_reference_is_told_by_its_part),
	cmocka_unit_test(every_part_has_its_limit), cmocka_unit_test(the_longest_reference_fits),
	cmocka_unit_test(only_names_with_a_host_have_one),
	cmocka_unit_test(a_name_without_a_host_is_one_of_the_store),
	cmocka_unit_test(a_host_is_taken_as_people_write_it),
	cmocka_unit_test(a_short_name_means_what_the_site_says),
	cmocka_unit_test(a_short_name_that_means_nothing_is_explained))
