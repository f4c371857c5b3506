#include "tests/unit/test.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "images/url.h"

TEST(an_origin_is_scheme_host_and_port)
{
	static const struct {
		const char *a, *b;
		bool same;
	} cases[] = {
		{"https://registry.example/a", "https://registry.example/b?c", true},
		{"https://registry.example/", "HTTPS://Registry.Example:443/", true},
		{"http://registry.example/", "http://registry.example:80/", true},
		{"http://[::1]:5000/", "http://[::1]:5000/x", true},
		{"https://registry.example/", "http://registry.example/", false},
		{"https://registry.example/", "https://registry.example:444/", false},
		{"https://registry.example/", "https://registry.example./", false},
		{"https://registry.example/", "https://sub.registry.example/", false},
		{"https://registry.example/", "https://registry.example@evil.example/", false},
		{"https://registry.example/", "https://evil.example/https://registry.example/",
			false},
		{"nonsense", "nonsense", false},
		{"", "", false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (url_same_origin(cases[i].a, cases[i].b) != cases[i].same)
			fail_msg("%s and %s", cases[i].a, cases[i].b);
}

TEST(addresses_in_answers_are_resolved_or_refused)
{
	static const struct {
		const char *base, *text, *url; /* NULL: refused */
		enum err_kind kind;
	} cases[] = {
		{"https://r.example/v2/a", "/v2/b?c=d", "https://r.example/v2/b?c=d", 0},
		{"https://r.example/v2/a", "b", "https://r.example/v2/b", 0},
		{"https://r.example/v2/a", "//s.example/b#c", "https://s.example/b", 0},
		{"https://r.example/v2/a", "https://s.example:1/b%20c", "https://s.example:1/b%20c",
			0},
		{"http://r.example/", "http://s.example/", "http://s.example/", 0},
		{"http://r.example/", "https://s.example/", "https://s.example/", 0},
		{"https://r.example/", "http://r.example/", NULL, ERR_DENIED},
		{"https://r.example/", "file:///etc/passwd", NULL, ERR_CORRUPT},
		{"https://r.example/", "javascript:x", NULL, ERR_CORRUPT},
		{"https://r.example/", "https://u:p@r.example/", NULL, ERR_CORRUPT},
		{"https://r.example/", "/a b", NULL, ERR_CORRUPT},
		{"https://r.example/", "/a\r\nb", NULL, ERR_CORRUPT},
		{"https://r.example/", "/\xc3\xa9", NULL, ERR_CORRUPT},
		{"https://r.example/", "https://", NULL, ERR_CORRUPT},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err e = {0};
		auto_free char *url = url_resolve(cases[i].base, cases[i].text, &e);

		if (!url != !cases[i].url || (url && !str_eq(url, cases[i].url)) ||
			e.kind != cases[i].kind)
			fail_msg("%s: %s %s", cases[i].text, url ? url : "refused", e.text);
	}
}

TEST(an_address_without_end_is_refused)
{
	auto_free char *text = mem_printf("/%0*d", URL_MAX + 1, 0);
	struct err e = {0};

	assert_null(url_resolve("https://registry.example/", text, &e));
	assert_int_equal(e.kind, ERR_CORRUPT);
	assert_true(strlen(e.text) < 200);
}

TEST(what_is_shown_of_an_address_holds_no_secrets)
{
	static const struct {
		const char *url, *shown;
	} cases[] = {
		{"https://r.example/a?sig=secret", "https://r.example/a"},
		{"https://user:se@cret@r.example/a#b", "https://r.example/a"},
		{"https://r.example/a@b", "https://r.example/a@b"},
		{"file:///srv/a", "file:///srv/a"},
		{"nonsense", "nonsense"},
	};
	char out[64];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(url_show(cases[i].url, out, sizeof(out)), cases[i].shown);
	assert_string_equal(url_show("https://registry.example/", out, 9), "https://");
}

TEST(hosts_are_named_as_configuration_names_them)
{
	static const struct {
		const char *url, *host;
	} cases[] = {
		{"https://R.Example/x", "r.example"},
		{"https://r.example:443/x", "r.example"},
		{"http://r.example:443/x", "r.example:443"},
		{"http://[::1]:5000/", "[::1]:5000"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_free char *host = url_host(cases[i].url);

		assert_string_equal(host, cases[i].host);
	}
	assert_null(url_host("nonsense:"));
}

TEST(what_nobody_reads_on_the_way)
{
	static const char *const yes[] = {"https://host/x", "https://host:8443",
		"http://127.0.0.1:80/x", "http://127.1.2.3", "HTTP://localhost:8080/",
		"http://[::1]/", "http://[::1]:8080/x"};
	static const char *const no[] = {"http://host/", "http://localhost.host/",
		"http://127.0.0.1.host", "http://128.0.0.1", "http://[::2]/",
		"http://user:127.0.0.1@host/", "file:///x", "x", ""};

	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		if (!url_is_private(yes[i]))
			fail_msg("%s", yes[i]);
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		if (url_is_private(no[i]))
			fail_msg("%s", no[i]);
}

RUN_TESTS(cmocka_unit_test(what_nobody_reads_on_the_way),
	cmocka_unit_test(an_origin_is_scheme_host_and_port),
	cmocka_unit_test(addresses_in_answers_are_resolved_or_refused),
	cmocka_unit_test(an_address_without_end_is_refused),
	cmocka_unit_test(what_is_shown_of_an_address_holds_no_secrets),
	cmocka_unit_test(hosts_are_named_as_configuration_names_them))
