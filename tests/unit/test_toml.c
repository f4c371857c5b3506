#include "tests/unit/test.h"

#include <unistd.h>

#include "base/json.h"
#include "base/proc.h"
#include "base/str.h"
#include "builder/toml.h"

static const char *const good[] = {"", "# comment", "a = 1 # c\r\nb = 2\r\n",
	"a.b.c = 1\na.b.d = 2", "\"quoted key\" = 1\n'lit'.\"x\" = 2\n1234 = 'n'\n",
	"[a]\nx=1\n[a.b]\ny=2\n[c]\n", "[a.b]\nx=1\n[a]\ny=2\n",
	"[[p]]\nn=1\n[[p]]\nn=2\n[p.q]\nz=1\n[[p.r]]\nw=1\n[[p.r]]\nw=2\n",
	"a = [1, 2, # c\n 3,\n]\nb = []\nc = [[1], ['x']]", "a = { x = 1, 'y'.z = 2 }\nb = {}",
	"[fruit]\napple.color = 1\napple.taste.sweet = true\n[fruit.apple.texture]\nsmooth = "
	"true\n",
	"a = \"\"\"\nx\\\n   \n  y \\\"\"\"z\"\"\"\"\"\n", "a = '''\nC:\\x ''y'' '''''\n",
	"a = \"\\u00e9\\U0001F600\\t\\\"\\\\\"", "a = 'C:\\x'", "a = +1\nb = -17\nc = 1_000\nd = 0",
	"a = 0xDEAD_beef\nb = 0o17\nc = 0b101",
	"a = 1.5\nb = -0.01\nc = 5e+22\nd = 6.626E-34\ne = 1e06", "a = true\nb = false",
	"a = 9223372036854775807\nb = -9223372036854775808"};

static const char *const bad[] = {"a", "a =", "a = 1 b = 2", "= 1", "a = 1\na = 2", "[a]\n[a]",
	"[a]\nb = 1\n[a.b]\n", "a = {}\n[a.b]\n", "a = {x = 1}\na.y = 2", "a = []\n[[a]]",
	"a = [{}]\n[[a]]", "[[a]]\n[a]\n", "[a]\n[[a]]", "[a.b]\n[a]\nb.c = 1", "a.b = 1\n[a]",
	"a.b = 1\na.b.c = 2", "a = {x = 1\n}", "a = {x = 1,}", "a = [1 2]", "a = [1,,2]", "a = \"x",
	"a = \"x\ny\"", "a = '''x", "a = \"\\x\"", "a = \"\\uD800\"", "a = \"\\u0000\"", "a = 01",
	"a = 1_", "a = _1", "a = 1__0", "a = 1.", "a = .5", "a = 1e", "a = 0x", "a = +0x1",
	"a = 9223372036854775808", "a = inf", "a = nan", "a = tru", "a = 1979-05-27T", "[a", "[a]]",
	"[[a]", "[]", "[a.]", "[ [a]]", "a.b = 1\na = 2", "a..b = 1", "# \x01", "a = \"\x7f\"",
	"a = \"\"\"\"\"\"\"\"\"", "\"\\u0001\" = 1", "a = 1\rb = 2", "a = 1e999", "\xc3\xa9 = 1"};

static json_t *parse(const char *text, struct err *e)
{
	return toml_parse("x.toml", text, strlen(text), e);
}

TEST(documents_mean_what_pythons_reader_says)
{
	static const char script[] =
		"import sys, json, tomllib; print(json.dumps(tomllib.loads(sys.stdin.buffer.read()"
		".decode().replace('\\r\\n', '\\n'))))";
	const char *const argv[] = {"/usr/bin/python3", "-c", script, NULL};

	if (access(argv[0], X_OK) != 0) {
		print_message("skipped: no /usr/bin/python3\n");
		skip();
	}
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		auto_buf struct buf out = BUF_INIT(1 << 20);
		auto_json json_t *ours = NULL, *theirs = NULL;
		struct err e = {0};

		if (proc_check(&(struct proc){.argv = argv,
				       .in = good[i],
				       .in_size = strlen(good[i]),
				       .out = &out},
			    &e) < 0)
			fail_msg("%s: %s", good[i], e.text);
		theirs = json_parse(out.data, out.len, &e);
		ours = parse(good[i], &e);
		if (!ours)
			fail_msg("%s", e.text);
		if (!json_equal(ours, theirs)) {
			auto_buf struct buf text = BUF_INIT(1 << 20);

			json_text(ours, true, &text);
			fail_msg("%s: %s, expected %s", good[i], text.data, out.data);
		}
	}
}

TEST(dates_and_times_are_texts)
{
	static const char *const cases[] = {"1979-05-27T07:32:00Z", "1979-05-27 07:32:00.999-07:00",
		"1979-05-27T07:32:00", "1979-05-27", "07:32:00.5"};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_free char *text = mem_printf("a = %s # c\n", cases[i]);
		auto_json json_t *j = parse(text, NULL);

		assert_non_null(j);
		assert_string_equal(json_string_value(json_object_get(j, "a")), cases[i]);
	}
}

TEST(what_is_malformed_is_refused_with_its_place)
{
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct err e = {0};
		auto_json json_t *j = parse(bad[i], &e);

		if (j)
			fail_msg("'%s' was taken", bad[i]);
		assert_int_equal(e.kind, ERR_CORRUPT);
		assert_true(str_starts(e.text, "x.toml:"));
	}
}

TEST(errors_count_lines_and_columns)
{
	struct err e = {0};
	auto_json json_t *j = parse("a = 1\nbc = ?\n", &e);

	assert_null(j);
	assert_string_equal(e.text, "x.toml:2:6: expected a value");
}

TEST(depth_is_bounded)
{
	auto_buf struct buf b = BUF_INIT(1 << 20);
	struct err e = {0};

	buf_printf(&b, "a = ");
	for (int i = 0; i < 1000; i++)
		buf_printf(&b, "[");
	assert_null(toml_parse("x", b.data, b.len, &e));
	assert_non_null(strstr(e.text, "nested too deep"));
	b.len = 0;
	for (int i = 0; i < 1000; i++)
		buf_printf(&b, "a.");
	buf_printf(&b, "a = 1");
	assert_null(toml_parse("x", b.data, b.len, &e));
}

RUN_TESTS(cmocka_unit_test(documents_mean_what_pythons_reader_says),
	cmocka_unit_test(dates_and_times_are_texts),
	cmocka_unit_test(what_is_malformed_is_refused_with_its_place),
	cmocka_unit_test(errors_count_lines_and_columns), cmocka_unit_test(depth_is_bounded))
