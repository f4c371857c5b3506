/* What came of tests: JUnit XML, JSON, lines. */
#include "builder/image-test.h"

#include <stdio.h>

#include "base/str.h"

struct counts {
	size_t passed, failed, skipped;
	double seconds;
};

static struct counts count(const struct test_result *v, size_t n)
{
	struct counts c = {0};

	for (size_t i = 0; i < n; i++) {
		c.passed += v[i].verdict == TEST_PASSED;
		c.failed += v[i].verdict == TEST_FAILED;
		c.skipped += v[i].verdict == TEST_SKIPPED;
		c.seconds += v[i].seconds;
	}
	return c;
}

/* ---- XML ---- */

/* Bytes of the UTF-8 sequence at s that XML 1.0 may hold (section 2.2, Char); 0: it may not. */
static size_t xml_char(const unsigned char *s)
{
	size_t n = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;

	if (n == 1)
		return s[0] >= ' ' || s[0] == '\t' || s[0] == '\n' ? 1 : 0;
	for (size_t i = 1; i < n; i++) /* the NUL at the end of the text is none */
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if (!str_utf8((const char *)s, n))
		return 0;
	/* U+FFFE and U+FFFF are not in */
	return n == 3 && s[0] == 0xef && s[1] == 0xbf && s[2] >= 0xbe ? 0 : n;
}

static void put_xml(struct buf *out, const char *text)
{
	size_t left = strlen(text);

	if (left > TEST_TEXT_MAX)
		left = TEST_TEXT_MAX;
	for (const unsigned char *s = (const unsigned char *)text; left;) {
		size_t n = xml_char(s);

		if (n > left)
			n = 0;
		if (n == 0)
			buf_put(out, "\xef\xbf\xbd", 3);
		else if (*s == '&' || *s == '<' || *s == '>' || *s == '"' || *s == '\n')
			buf_printf(out, "&#%u;", *s);
		else
			buf_put(out, s, n);
		s += n ? n : 1;
		left -= n ? n : 1;
	}
}

static void put_attribute(struct buf *out, const char *name, const char *text)
{
	buf_printf(out, " %s=\"", name);
	put_xml(out, text);
	buf_put(out, "\"", 1);
}

static void put_element(struct buf *out, const char *name, const char *attribute, const char *text,
	const char *body)
{
	buf_printf(out, "      <%s", name);
	if (attribute)
		put_attribute(out, attribute, text);
	if (!body) {
		buf_printf(out, "/>\n");
		return;
	}
	buf_printf(out, ">");
	put_xml(out, body);
	buf_printf(out, "</%s>\n", name);
}

static void put_case(struct buf *out, const struct test_result *r, const char *suite)
{
	auto_free char *class = mem_printf(
		"%s.%s.%s", suite, test_stage_name(r->test->stage), test_type_name(r->test->type));
	const char *text = r->text ? r->text : "";

	buf_printf(out, "    <testcase");
	put_attribute(out, "name", r->test->id);
	put_attribute(out, "classname", class);
	buf_printf(out, " time=\"%.3f\"", r->seconds);
	if (r->verdict == TEST_PASSED) {
		buf_printf(out, "/>\n");
		return;
	}
	buf_printf(out, ">\n");
	if (r->verdict == TEST_SKIPPED)
		put_element(out, "skipped", "message", text, NULL);
	else
		put_element(out, "failure", "message", text, "");
	if (r->log)
		put_element(out, "system-out", NULL, NULL, r->log);
	buf_printf(out, "    </testcase>\n");
}

void test_junit(const struct test_result *v, size_t n, const char *suite, struct buf *out)
{
	struct counts c = count(v, n);

	buf_printf(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite");
	put_attribute(out, "name", suite);
	buf_printf(out,
		" tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"%zu\" time=\"%.3f\">\n", n,
		c.failed, c.skipped, c.seconds);
	for (size_t i = 0; i < n; i++)
		put_case(out, &v[i], suite);
	buf_printf(out, "  </testsuite>\n</testsuites>\n");
}

/* ---- JSON ---- */

/* JSON holds nothing but UTF-8. */
static json_t *json_text_of(const char *text)
{
	auto_free char *s = mem_alloc(TEST_TEXT_MAX + 1);

	snprintf(s, TEST_TEXT_MAX + 1, "%s", text);
	if (!str_utf8(s, strlen(s)))
		for (char *c = s; *c; c++)
			*c = (unsigned char)*c < 0x80 ? *c : '?';
	return json_string(s);
}

static json_t *result_json(const struct test_result *r)
{
	const struct manifest_test *t = r->test;
	json_t *j = json_pack("{s:s, s:s, s:s, s:b, s:s, s:I}", "id", t->id, "stage",
		test_stage_name(t->stage), "type", test_type_name(t->type), "required", t->required,
		"verdict", test_verdict_name(r->verdict), "durationMs",
		(json_int_t)(r->seconds * 1000));

	if (t->mode)
		json_object_set_new(j, "mode", json_string(t->mode));
	if (r->text)
		json_object_set_new(j, "text", json_text_of(r->text));
	if (r->log)
		json_object_set_new(j, "log", json_text_of(r->log));
	return j;
}

void test_json_report(const struct test_result *v, size_t n, const char *image, struct buf *out)
{
	struct counts c = count(v, n);
	auto_json json_t *j =
		json_pack("{s:s, s:I, s:I, s:I}", "image", image, "passed", (json_int_t)c.passed,
			"failed", (json_int_t)c.failed, "skipped", (json_int_t)c.skipped);
	json_t *tests = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(tests, result_json(&v[i]));
	json_object_set_new(j, "tests", tests);
	json_text(j, false, out);
}

/* ---- lines ---- */

/* Each line of text, behind a prefix. */
static void put_indented(struct buf *out, const char *prefix, const char *text)
{
	auto_free char *s = mem_strdup(text);

	str_plain(s, "\n\t");
	for (char *line = s; *line;) {
		size_t n = strcspn(line, "\n");

		buf_printf(out, "%s%.*s\n", prefix, (int)n, line);
		line += n + (line[n] == '\n');
	}
}

void test_lines(const struct test_result *r, struct buf *out)
{
	static const char *const words[] = {"ok", "FAILED", "skipped"};

	buf_printf(out, "%-8s %-24s %-12s %6.1f s\n", words[r->verdict], r->test->id,
		test_type_name(r->test->type), r->seconds);
	if (r->verdict != TEST_PASSED && r->text)
		put_indented(out, "         ", r->text);
	if (r->verdict == TEST_FAILED && r->log)
		put_indented(out, "         | ", r->log);
}
