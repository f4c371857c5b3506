#include "tests/unit/test.h"

#include <stdlib.h>

#include "builder/script.h"

/* Every command on a line of its own, words between bars; "?" marks unknown ones. */
static char *commands(const char *text)
{
	struct script *s = script_new(text, strlen(text));
	struct buf b = BUF_INIT(1 << 20);
	struct command c;

	buf_put(&b, "", 0);
	while (script_next(s, &c)) {
		buf_printf(&b, "%s", c.unknown ? "?" : "");
		for (size_t i = 0; i < c.words.n && !c.unknown; i++)
			buf_printf(&b, "%s%s", i ? "|" : "", c.words.v[i]);
		buf_printf(&b, "\n");
	}
	script_free(s);
	return b.data;
}

TEST(commands_are_read_as_a_shell_would)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"", ""},
		{"a b c\nd", "a|b|c\nd\n"},
		{"a; b && c || d & e | f", "a\nb\nc\nd\ne\nf\n"},
		{"a \\\n  b \\\n\tc", "a|b|c\n"},
		{"a 'b c' \"d e\" f\\ g", "a|b c|d e|f g\n"},
		{"a '' b\"\"c", "a||bc\n"},
		{"# nothing\na b # tail\n#\nc", "a|b\nc\n"},
		{"a#b", "a#b\n"},
		{"if a; then b; else c; fi", "a\nb\nc\nfi\n"},
		{"f() { a b; }", "f\na|b\n"},
		{"case x in y) a;; esac", "case|x|in|y\na\nesac\n"},
		{"a >out 2>&1 <in b", "a|2|b\n"},
		{"cat <<E\nnot a command\nE\nb", "cat\nb\n"},
		{"cat <<-'E'\n\tno\n\tE\nb", "cat\nb\n"},
		{"X=1 Y='2 3'\na $X \"$Y\" ${X}z", "a|1|2 3|1z\n"},
		{"X=1; X=$X$X; a $X", "a|11\n"},
		{"export P=/usr; a $P/bin", "a|/usr/bin\n"},
		{"a $1", "?\n"},
		{"a $(b c) d", "?\n"},
		{"a `b c` d\ne", "?\ne\n"},
		{"a \"x$(b \"y)\")z\"", "?\n"},
		{"X=$(b); a $X", "?\n"},
		{"X=1; X=$1; a $X", "?\n"},
		{"a ${X:-b}", "?\n"},
		{"a $UNSET", "?\n"},
		{"a $DPKG_ROOT/etc", "a|/etc\n"},
		{"a '$1'", "a|$1\n"},
		{"for i in 1 2 3; do a $i; done; b", "a|1\na|2\na|3\nb\n"},
		{"for i in x y; do for k in 1 2; do a $i$k; done; done",
			"a|x1\na|x2\na|y1\na|y2\n"},
		{"for i in $L; do a $i; b; done", "?\nb\n"},
		{"while true; do a; done; b", "a\nb\n"},
		{"a 'open", "a|open\n"},
		{"a \"open", "a|open\n"},
		{"a $(open", "?\n"},
		{"a \\", "a|\n"},
		{"done; done; fi }", "fi|}\n"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_free char *found = commands(cases[i].text);

		if (strcmp(found, cases[i].want) != 0)
			fail_msg("'%s' gave '%s', not '%s'", cases[i].text, found, cases[i].want);
	}
}

/* 2^40 commands, and a variable of 2^60 bytes, if anybody followed them. */
TEST(a_script_that_would_never_end_is_left)
{
	auto_buf struct buf b = BUF_INIT(1 << 20);
	struct command c;
	struct script *s;
	size_t n = 0;

	for (int i = 0; i < 10; i++)
		buf_printf(&b, "for v%d in a b c d e f g h i j k l m n o p\ndo\n", i);
	buf_printf(&b, "x\n");
	for (int i = 0; i < 10; i++)
		buf_printf(&b, "done\n");
	s = script_new(b.data, b.len);
	while (script_next(s, &c))
		n++;
	script_free(s);
	assert_true(n > 10000 && n <= 100000);
	b.len = 0;
	buf_printf(&b, "X=aaaaaaaaaaaaaaaa\n");
	for (int i = 0; i < 60; i++)
		buf_printf(&b, "X=$X$X\n");
	buf_printf(&b, "a $X\n");
	s = script_new(b.data, b.len);
	while (script_next(s, &c))
		assert_true(c.unknown);
	script_free(s);
}

TEST(any_bytes_are_read_without_a_crash)
{
	static const char alphabet[] = "ab=$(){}'\"`\\\n ;&|<>#fordin eX\0\xff";
	char text[200];
	uint32_t x = 12345;

	for (int round = 0; round < 20000; round++) {
		struct script *s;
		struct command c;

		for (size_t i = 0; i < sizeof(text); i++) {
			x = x * 1664525 + 1013904223;
			text[i] = alphabet[(x >> 16) % (sizeof(alphabet) - 1)];
		}
		s = script_new(text, sizeof(text));
		while (script_next(s, &c))
			assert_true(c.words.n > 0);
		script_free(s);
	}
}

RUN_TESTS(cmocka_unit_test(commands_are_read_as_a_shell_would),
	cmocka_unit_test(a_script_that_would_never_end_is_left),
	cmocka_unit_test(any_bytes_are_read_without_a_crash))
