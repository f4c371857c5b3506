#include "builder/vuln-debian.h"

#include <string.h>

#include "base/str.h"
#include "builder/scan-version.h"

enum { TEXT_MAX = 160, RELEASES_MAX = 64, DEPTH_MAX = 8 };

static const char *text_of(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

/* ---- one vulnerability of one package ---- */

static int take_release(
	struct vuln_index_maker *m, json_t *in, const char *release, const json_t *o, struct err *e)
{
	const char *status = text_of(o, "status"), *fixed = text_of(o, "fixed_version"),
		   *urgency = text_of(o, "urgency");
	auto_free char *space = mem_printf("%s:%.*s", VULN_TRACKER, VULN_NAME_MAX, release);
	int order;

	if (!vuln_is_name(space) || !status)
		return err_set(e, ERR_CORRUPT, "/releases: expected releases with a status");
	if (fixed && version_compare(VERSION_DEB, fixed, fixed, &order) < 0)
		return err_set(e, ERR_CORRUPT, "/releases/%s/fixed_version: no version", release);
	vuln_index_have(m, space);
	if (str_eq(status, "open") || (str_eq(status, "resolved") && fixed && !str_eq(fixed, "0")))
		json_object_set_new(in, release,
			json_pack("[s, s?, i]", status, str_eq(status, "open") ? NULL : fixed,
				urgency ? (int)vuln_level_of_word(urgency) : VULN_UNKNOWN));
	return 0;
}

static void first_line(const json_t *o, char text[TEXT_MAX + 1])
{
	const char *s = text_of(o, "description");
	size_t n = s ? strcspn(s, "\r\n") : 0;

	n = n < TEXT_MAX ? n : TEXT_MAX;
	while (n && ((unsigned char)s[n] & 0xc0) == 0x80) /* not within a character */
		n--;
	memcpy(text, s ? s : "", n);
	text[n] = '\0';
	str_plain(text, "");
	if (!str_utf8(text, n))
		text[0] = '\0';
}

static int take_vulnerability(struct vuln_index_maker *m, const char *package, const char *id,
	const json_t *o, struct err *e)
{
	const json_t *releases = json_object_get(o, "releases"), *v;
	json_t *in = json_object();
	char text[TEXT_MAX + 1];
	auto_json json_t *record = NULL;
	const char *release;

	first_line(o, text);
	record = json_pack("{s:s, s:s, s:o}", "id", id, "text", text, "in", in);
	if (!vuln_is_name(id) || !record || !json_is_object(releases) ||
		json_object_size(releases) > RELEASES_MAX)
		return err_set(e, ERR_CORRUPT, "expected a vulnerability with /releases");
	json_object_foreach ((json_t *)(uintptr_t)releases, release, v)
		if (take_release(m, in, release, v, e) < 0)
			return -1;
	return json_object_size(in) ? vuln_index_add(m, VULN_TRACKER, package, record, e) : 0;
}

static int take_package(struct vuln_index_maker *m, const char *package, json_t *all, struct err *e)
{
	char shown[STR_SHOWN], other[STR_SHOWN];
	const char *id;
	json_t *o;

	if (!vuln_is_name(package) || !json_is_object(all))
		return err_set(e, ERR_CORRUPT, "'%s': expected a source package's vulnerabilities",
			str_shown(package, shown));
	json_object_foreach (all, id, o)
		if (take_vulnerability(m, package, id, o, e) < 0)
			return err_ctx(e, "%s: %s", package, str_shown(id, other));
	return 0;
}

/* ---- the document, member by member ---- */

struct cursor {
	const char *text;
	size_t at, n;
};

static char peek(struct cursor *c)
{
	while (c->at < c->n && strchr(" \t\r\n", c->text[c->at]) && c->text[c->at])
		c->at++;
	return c->at < c->n ? c->text[c->at] : '\0';
}

static int expected(const struct cursor *c, const char *what, struct err *e)
{
	return err_set(e, ERR_CORRUPT, "byte %zu: expected %s", c->at, what);
}

/* jansson recurses: deep nesting is told before. */
static bool is_shallow(const struct cursor *c)
{
	size_t depth = 0;

	for (size_t i = c->at; i < c->n; i++) {
		char x = c->text[i];

		if (x == '"')
			for (i++; i < c->n && c->text[i] != '"'; i++)
				i += c->text[i] == '\\';
		else if ((x == '{' || x == '[') && ++depth > DEPTH_MAX)
			return false;
		else if ((x == '}' || x == ']') && (depth == 0 || --depth == 0))
			return true;
	}
	return true;
}

static json_t *next_value(struct cursor *c, struct err *e)
{
	json_error_t fault;
	json_t *v = NULL;

	peek(c);
	if (is_shallow(c))
		v = json_loadb(c->text + c->at, c->n - c->at,
			JSON_REJECT_DUPLICATES | JSON_DISABLE_EOF_CHECK | JSON_DECODE_ANY, &fault);
	if (!v)
		expected(c, "JSON, nesting at most 8 deep, no key twice", e);
	else
		c->at += (size_t)fault.position;
	return v;
}

static int next_package(struct cursor *c, struct vuln_index_maker *m, struct err *e)
{
	auto_json json_t *name = NULL, *all = NULL;

	if (peek(c) != '"')
		return expected(c, "a package's name", e);
	name = next_value(c, e);
	if (!name)
		return -1;
	if (peek(c) != ':')
		return expected(c, "a colon", e);
	c->at++;
	all = next_value(c, e);
	return all ? take_package(m, json_string_value(name), all, e) : -1;
}

int tracker_add(struct vuln_index_maker *m, const char *text, size_t n, struct err *e)
{
	struct cursor c = {text, 0, n};
	char end = ',';

	if (peek(&c) != '{')
		return expected(&c, "an object of source packages", e);
	c.at++;
	if (peek(&c) == '}')
		return expected(&c, "a source package", e);
	while (end == ',') {
		if (next_package(&c, m, e) < 0)
			return -1;
		end = peek(&c);
		if (end != ',' && end != '}')
			return expected(&c, "a comma, or the object's end", e);
		c.at++;
	}
	return peek(&c) == '\0' && c.at == c.n ? 0 : expected(&c, "the end", e);
}

/* ---- is a version affected? ---- */

int tracker_affects(const json_t *record, const char *release, const char *version,
	const char **fixed, enum vuln_level *level)
{
	const json_t *o = json_object_get(json_object_get(record, "in"), release);
	const char *fix = json_string_value(json_array_get(o, 1));
	json_int_t l = json_integer_value(json_array_get(o, 2));
	int order;

	*fixed = NULL;
	if (version_compare(VERSION_DEB, version, version, &order) < 0)
		return -1;
	if (!o || (fix && version_compare(VERSION_DEB, version, fix, &order) == 0 && order >= 0))
		return 0;
	*fixed = fix;
	*level = l > 0 && l < VULN_LEVELS ? (enum vuln_level)l : VULN_UNKNOWN;
	return 1;
}
