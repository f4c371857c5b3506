#include "builder/vuln-osv.h"

#include <string.h>

#include "base/str.h"
#include "tests/unit/test.h"

static void affects(
	enum version_kind k, const char *ranges, const char *version, int want, const char *fix)
{
	auto_free char *text = mem_printf("{\"ranges\": [%s]}", ranges);
	auto_json json_t *record = json_parse(text, strlen(text), NULL);
	const char *fixed;

	print_message("%s in %s\n", version, ranges);
	assert_non_null(record);
	assert_int_equal(osv_affects(record, k, version, &fixed), want);
	if (fix)
		assert_string_equal(fixed ? fixed : "", fix);
	else
		assert_null(fixed);
}

#define IN(v) "[\"introduced\", \"" v "\"]"
#define FIX(v) "[\"fixed\", \"" v "\"]"
#define LAST(v) "[\"last_affected\", \"" v "\"]"

TEST(the_last_event_that_is_not_behind_a_version_decides)
{
	static const char two[] =
		"[" IN("1.0.0") ", " FIX("1.2.0") ", " IN("2.0.0") ", " FIX("2.0.5") "]";

	affects(VERSION_NPM, two, "0.9.0", 0, NULL);
	affects(VERSION_NPM, two, "1.0.0", 1, "1.2.0");
	affects(VERSION_NPM, two, "1.2.0", 0, NULL);
	affects(VERSION_NPM, two, "1.2.0-rc.1", 1, "1.2.0");
	affects(VERSION_NPM, two, "2.0.4", 1, "2.0.5");
	affects(VERSION_NPM, two, "2.0.5", 0, NULL);
	/* in any order */
	affects(VERSION_NPM, "[" FIX("1.2.0") ", " IN("0") "]", "1.1.0", 1, "1.2.0");
	affects(VERSION_NPM, "[" FIX("1.2.0") ", " IN("0") "]", "1.2.0", 0, NULL);
	affects(VERSION_DEB, "[" IN("0") "]", "1~a", 1, NULL);
	affects(VERSION_PYPI, "[" IN("1.0") ", " LAST("1.0") "]", "1.0", 1, NULL);
	affects(VERSION_PYPI, "[" IN("1.0") ", " LAST("1.0") "]", "1.0.post1", 0, NULL);
	affects(VERSION_PYPI, "[" IN("0") "], [" IN("0") ", " FIX("2") "]", "1", 1, "2");
}

TEST(what_cannot_be_compared_hides_nothing)
{
	affects(VERSION_NPM, "[" IN("x") ", " FIX("2.0.0") "]", "1.0.0", 1, "2.0.0");
	affects(VERSION_NPM, "[" IN("0") ", " FIX("y") "]", "1.0.0", 1, "y");
	affects(VERSION_NPM, "[" IN("0") ", " FIX("2.0.0") "]", "one", -1, NULL);
}

static void take(struct vuln_index_maker *m, const char *text)
{
	struct err e = {0};
	auto_json json_t *doc = json_parse(text, strlen(text), &e);

	assert_true(doc && osv_is_record(doc));
	if (osv_add(m, doc, &e) < 0)
		fail_msg("%s", e.text);
}

static int count(void *ctx, const json_t *record, struct err *e)
{
	assert_non_null(record);
	++*(int *)ctx;
	return e ? 0 : 0;
}

static int records(const struct buf *b, const char *space, const char *name)
{
	int n = 0;

	assert_int_equal(vuln_index_each(b, space, name, count, &n, NULL), 0);
	return n;
}

TEST(an_index_finds_a_package_and_no_other)
{
	auto_buf struct buf b = BUF_INIT(1 << 20);
	struct vuln_index_maker m;
	struct err e = {0};

	vuln_index_begin(&m);
	take(&m, "{\"id\": \"A\", \"modified\": \"x\", \"affected\": [{\"package\": "
		 "{\"ecosystem\": \"npm\", \"name\": \"a\"}}, {\"package\": {\"ecosystem\": "
		 "\"npm\", \"name\": \"ab\"}}, {\"package\": {\"ecosystem\": \"Go\", \"name\": "
		 "\"a\"}}, {\"package\": {\"ecosystem\": \"Ubuntu:22.04:LTS\", \"name\": \"a\"}}, "
		 "{\"package\": {\"ecosystem\": \"Ubuntu:Pro:22.04:LTS\", \"name\": \"a\"}}], "
		 "\"aliases\": [\"CVE-1\"], \"database_specific\": {\"severity\": \"HIGH\"}}");
	take(&m, "{\"id\": \"B\", \"modified\": \"x\", \"affected\": [{\"package\": "
		 "{\"ecosystem\": \"npm\", \"name\": \"a\"}}], \"withdrawn\": \"y\"}");
	take(&m, "{\"id\": \"C\", \"modified\": \"x\", \"aliases\": [\"CVE-1\"], \"severity\": "
		 "[{\"type\": \"CVSS_V3\", \"score\": "
		 "\"CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H\"}]}");
	assert_int_equal(vuln_index_end(&m, &b, &e), 0);
	assert_true(vuln_index_check(&b));
	assert_int_equal(records(&b, "npm", "a"), 1);
	assert_int_equal(records(&b, "npm", "ab"), 1);
	assert_int_equal(records(&b, "npm", "abc"), 0);
	assert_int_equal(records(&b, "npm", ""), 0);
	assert_int_equal(records(&b, "Ubuntu:22.04", "a"), 1);
	assert_int_equal(records(&b, "zzz", "a"), 0);
	assert_true(vuln_index_has(&b, "npm"));
	assert_false(vuln_index_has(&b, "PyPI"));
	assert_int_equal(vuln_index_level_of(&b, "CVE-1"), VULN_CRITICAL);
	assert_int_equal(vuln_index_level_of(&b, "CVE-2"), VULN_UNKNOWN);
	b.data[b.len - 3] ^= 1;
	assert_false(vuln_index_check(&b));
}

/* Versions with events of one package: 50 million, which would take minutes. */
TEST(versions_and_events_without_number_are_kept_as_they_are)
{
	json_t *events = json_array(), *versions = json_array();
	auto_json json_t *doc = json_pack("{s:s, s:s, s:[{s:{s:s, s:s}, s:[{s:s, s:o}], s:o}]}",
		"id", "A", "modified", "x", "affected", "package", "ecosystem", "PyPI", "name", "a",
		"ranges", "type", "ECOSYSTEM", "events", events, "versions", versions);
	auto_buf struct buf b = BUF_INIT(16 << 20);
	struct vuln_index_maker m;
	struct err e = {0};

	assert_non_null(doc);
	json_array_append_new(events, json_pack("{s:s}", "introduced", "0"));
	for (size_t i = 1; i < 1000; i++)
		json_array_append_new(events, json_pack("{s:s}", "fixed", "1!1.0"));
	for (size_t i = 0; i < 50000; i++)
		json_array_append_new(versions, json_sprintf("0.%zu", i));
	vuln_index_begin(&m);
	assert_int_equal(osv_add(&m, doc, &e), 0);
	assert_int_equal(m.compared, 0);
	assert_true(m.bytes > 50000);
	assert_int_equal(vuln_index_end(&m, &b, &e), 0);
	assert_int_equal(records(&b, "PyPI", "a"), 1);
}

RUN_TESTS(cmocka_unit_test(versions_and_events_without_number_are_kept_as_they_are),
	cmocka_unit_test(the_last_event_that_is_not_behind_a_version_decides),
	cmocka_unit_test(what_cannot_be_compared_hides_nothing),
	cmocka_unit_test(an_index_finds_a_package_and_no_other))
