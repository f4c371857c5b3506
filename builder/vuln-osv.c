#include "builder/vuln-osv.h"

#include <string.h>

#include "base/str.h"
#include "builder/python-name.h"

enum {
	AFFECTED_MAX = 20000, /* packages of one record */
	EVENTS_MAX = 10000,   /* of one package */
	VERSIONS_MAX = 100000,
	ALIASES_MAX = 500,
	TEXT_MAX = 160,
	COMPARED_ONE_MAX = 2000000,  /* versions with events, of one package */
	COMPARED_ALL_MAX = 500000000 /* of an index: some minutes */
};

static const char *text_of(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

bool osv_is_record(const json_t *doc)
{
	return text_of(doc, "id") &&
	       (text_of(doc, "modified") || json_is_array(json_object_get(doc, "affected")));
}

/* ---- how bad ---- */

static enum vuln_level worse(enum vuln_level a, enum vuln_level b)
{
	return a > b ? a : b;
}

/* "severity": [{"type": "CVSS_V3", "score": "CVSS:3.1/..."}, {"type": "Ubuntu", "score": "low"}] */
static enum vuln_level level_of_list(const json_t *list)
{
	enum vuln_level l = VULN_UNKNOWN;
	const json_t *o;
	size_t i;

	json_array_foreach (list, i, o) {
		const char *score = text_of(o, "score");

		if (score)
			l = worse(l, worse(vuln_level_of_vector(score), vuln_level_of_word(score)));
	}
	return l;
}

static enum vuln_level level_of_words(const json_t *o)
{
	static const char *const keys[] = {"severity", "urgency"};
	enum vuln_level l = VULN_UNKNOWN;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const char *word = text_of(o, keys[i]);

		l = word ? worse(l, vuln_level_of_word(word)) : l;
	}
	return l;
}

/* Of the record, or of one affected package. */
static enum vuln_level level_of(const json_t *o)
{
	enum vuln_level l = level_of_list(json_object_get(o, "severity"));

	if (l == VULN_UNKNOWN)
		l = level_of_words(json_object_get(o, "database_specific"));
	if (l == VULN_UNKNOWN)
		l = level_of_words(json_object_get(o, "ecosystem_specific"));
	return l;
}

/* ---- is a version affected? ---- */

struct verdict {
	enum version_kind k;
	const char *version, *fixed;
};

static bool is_event(const char *name, const char *what)
{
	return name && str_eq(name, what);
}

/* What is no version cannot be before the one asked for: "introduced" holds, a fix does not. */
static int compare_event(const struct verdict *v, bool introduced, const char *text)
{
	int order;

	if (introduced && str_eq(text, "0"))
		return 1;
	return version_compare(v->k, v->version, text, &order) < 0 ? (introduced ? 1 : -1) : order;
}

static void take_fix(struct verdict *v, const char *text)
{
	int order;

	if (!v->fixed || (version_compare(v->k, text, v->fixed, &order) == 0 && order < 0))
		v->fixed = text;
}

static bool is_before(enum version_kind k, const char *a, const char *b)
{
	int order;

	if (str_eq(a, "0"))
		return !str_eq(b, "0");
	return version_compare(k, a, b, &order) == 0 && order < 0;
}

/* The last event that is not behind the version decides. */
static bool in_range(struct verdict *v, const json_t *events)
{
	struct verdict fixes = {.k = v->k};
	const char *last = NULL;
	bool affected = false;
	const json_t *o;
	size_t i;

	json_array_foreach (events, i, o) {
		const char *name = json_string_value(json_array_get(o, 0)),
			   *text = json_string_value(json_array_get(o, 1));
		bool introduced = is_event(name, "introduced");
		int order = name && text ? compare_event(v, introduced, text) : -1;

		if (text && is_event(name, "fixed") && order < 0)
			take_fix(&fixes, text);
		if (order < 0 || (order == 0 && is_event(name, "last_affected")) ||
			(last && is_before(v->k, text, last)))
			continue;
		last = text;
		affected = introduced;
	}
	if (affected && fixes.fixed)
		take_fix(v, fixes.fixed);
	return affected;
}

static bool in_ranges(struct verdict *v, const json_t *ranges)
{
	bool affected = false;
	const json_t *events;
	size_t i;

	json_array_foreach (ranges, i, events)
		affected = in_range(v, events) || affected;
	return affected;
}

int osv_affects(const json_t *record, enum version_kind k, const char *version, const char **fixed)
{
	struct verdict v = {k, version, NULL};
	const json_t *o;
	size_t i;
	int order;
	bool comparable = version_compare(k, version, version, &order) == 0, affected;

	*fixed = NULL;
	affected = comparable && in_ranges(&v, json_object_get(record, "ranges"));
	json_array_foreach (json_object_get(record, "versions"), i, o) {
		const char *text = json_string_value(o);

		affected = affected || (text && str_eq(text, version)) ||
			   (text && comparable && version_compare(k, text, version, &order) == 0 &&
				   order == 0);
	}
	*fixed = affected ? v.fixed : NULL;
	return affected ? 1 : comparable ? 0 : -1;
}

/* ---- reading ---- */

struct reading {
	struct vuln_index_maker *m;
	const json_t *doc;
	const char *id;
	json_t *also, *up; /* of all packages */
	enum vuln_level level;
	char text[TEXT_MAX + 1];
};

/* What the index calls an ecosystem; to free(). NULL: it is none of ours. */
static char *space_of(const char *ecosystem, enum version_kind *k)
{
	const char *release = strchr(ecosystem, ':');

	*k = str_eq(ecosystem, "npm")    ? VERSION_NPM
	     : str_eq(ecosystem, "PyPI") ? VERSION_PYPI
					 : VERSION_DEB;
	if (*k != VERSION_DEB)
		return mem_strdup(ecosystem);
	if (!release || !release[1] || release[1] < '0' || release[1] > '9' ||
		!(str_starts(ecosystem, "Debian:") || str_starts(ecosystem, "Ubuntu:")))
		return NULL;
	/* "Ubuntu:22.04:LTS" */
	return mem_printf("%.*s%.*s", (int)(release + 1 - ecosystem), ecosystem,
		(int)strcspn(release + 1, ":"), release + 1);
}

static int take_names(json_t *out, const json_t *list, const char *key, struct err *e)
{
	const json_t *o;
	size_t i;

	if (json_array_size(list) > ALIASES_MAX)
		return err_set(e, ERR_CORRUPT, "/%s: more than the limit of %d", key, ALIASES_MAX);
	json_array_foreach (list, i, o) {
		const char *text = json_string_value(o);

		if (!text || !vuln_is_name(text))
			return err_set(e, ERR_CORRUPT, "/%s/%zu: expected an id", key, i);
		json_array_append_new(out, json_string(text));
	}
	return 0;
}

static int take_event(json_t *out, const json_t *o, struct err *e)
{
	static const char *const names[] = {"introduced", "fixed", "last_affected", "limit"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const json_t *v = json_object_get(o, names[i]);
		const char *text = json_string_value(v);

		if (v && (!text || !*text || strlen(text) > VERSION_MAX))
			return err_set(e, ERR_CORRUPT, "%s: expected a version", names[i]);
		if (v)
			json_array_append_new(out, json_pack("[s, s]", names[i], text));
	}
	return 0;
}

static int take_ranges(json_t *out, const json_t *list, struct err *e)
{
	const json_t *o, *event;
	size_t i, k, total = 0;

	json_array_foreach (list, i, o) {
		const char *type = text_of(o, "type");
		const json_t *events = json_object_get(o, "events");
		auto_json json_t *taken = json_array();

		if (!type || !(str_eq(type, "SEMVER") || str_eq(type, "ECOSYSTEM")))
			continue; /* GIT: no versions */
		total += json_array_size(events);
		if (total > EVENTS_MAX)
			return err_set(e, ERR_CORRUPT, "/ranges: more than the limit of %d events",
				EVENTS_MAX);
		json_array_foreach (events, k, event)
			if (take_event(taken, event, e) < 0)
				return err_ctx(e, "/ranges/%zu/events/%zu", i, k);
		if (json_array_size(taken))
			json_array_append(out, taken);
	}
	return 0;
}

/* To leave out versions that a range holds makes the index smaller, and no more: nobody's data may
 * keep us at that for hours. */
static bool may_compare(struct vuln_index_maker *m, const json_t *versions, const json_t *ranges)
{
	const json_t *events;
	uint64_t n = 0;
	size_t i;

	json_array_foreach (ranges, i, events)
		n += json_array_size(events);
	n *= json_array_size(versions);
	if (n > COMPARED_ONE_MAX || m->compared + n > COMPARED_ALL_MAX)
		return false;
	m->compared += n;
	return true;
}

/* Those that no range holds. */
static int take_versions(struct vuln_index_maker *m, json_t *out, const json_t *list,
	enum version_kind k, const json_t *ranges, struct err *e)
{
	bool compare = may_compare(m, list, ranges);
	const json_t *o;
	size_t i;

	if (json_array_size(list) > VERSIONS_MAX)
		return err_set(
			e, ERR_CORRUPT, "/versions: more than the limit of %d", VERSIONS_MAX);
	json_array_foreach (list, i, o) {
		const char *text = json_string_value(o);
		struct verdict v = {k, text, NULL};
		int order;

		if (!text || !*text || strlen(text) > VERSION_MAX)
			return err_set(e, ERR_CORRUPT, "/versions/%zu: expected a version", i);
		if (!compare || version_compare(k, text, text, &order) < 0 ||
			!in_ranges(&v, ranges))
			json_array_append_new(out, json_string(text));
	}
	return 0;
}

static int add_package(struct reading *r, const json_t *affected, const char *space,
	enum version_kind k, const char *name, struct err *e)
{
	json_t *ranges = json_array(), *versions = json_array();
	enum vuln_level l = worse(r->level, level_of(affected));
	auto_json json_t *record = json_pack("{s:s, s:O, s:O, s:i, s:s, s:o, s:o}", "id", r->id,
		"also", r->also, "up", r->up, "level", (int)l, "text", r->text, "ranges", ranges,
		"versions", versions);

	if (!record) /* jansson takes UTF-8 only, and what it parsed is */
		return err_set(e, ERR_CORRUPT, "a text that is not UTF-8");
	if (take_ranges(ranges, json_object_get(affected, "ranges"), e) < 0 ||
		take_versions(r->m, versions, json_object_get(affected, "versions"), k, ranges, e) <
			0)
		return -1;
	return vuln_index_add(r->m, space, name, record, e);
}

static int take_affected(struct reading *r, const json_t *affected, struct err *e)
{
	const json_t *package = json_object_get(affected, "package");
	const char *ecosystem = text_of(package, "ecosystem"), *name = text_of(package, "name");
	enum version_kind k;
	auto_free char *space = ecosystem ? space_of(ecosystem, &k) : NULL;
	struct arena a = {0};
	int rc;

	if (!space)
		return 0;
	if (!vuln_is_name(space) || !name)
		return err_set(e, ERR_CORRUPT, "/package: expected an ecosystem and a name");
	if (k == VERSION_PYPI)
		name = python_name_normal(&a, name, strlen(name));
	rc = name ? add_package(r, affected, space, k, name, e)
		  : err_set(e, ERR_CORRUPT, "/package/name: no name of a package of Python");
	arena_fini(&a);
	return rc;
}

/* "summary", or how "details" begins: one line. */
static void take_text(struct reading *r)
{
	const char *text = text_of(r->doc, "summary");
	size_t n;

	text = text ? text : text_of(r->doc, "details");
	if (!text)
		return;
	n = strcspn(text, "\r\n");
	n = n < TEXT_MAX ? n : TEXT_MAX;
	while (n && ((unsigned char)text[n] & 0xc0) == 0x80) /* not within a character */
		n--;
	memcpy(r->text, text, n);
	r->text[n] = '\0';
	str_plain(r->text, "");
	if (!str_utf8(r->text, strlen(r->text)))
		r->text[0] = '\0';
}

static int take_levels(struct reading *r, struct err *e)
{
	const json_t *o;
	size_t i;

	if (vuln_index_level(r->m, r->id, r->level, e) < 0)
		return -1;
	json_array_foreach (r->also, i, o)
		if (vuln_index_level(r->m, json_string_value(o), r->level, e) < 0)
			return -1;
	return 0;
}

static int read_record(struct reading *r, struct err *e)
{
	const json_t *affected = json_object_get(r->doc, "affected"), *o;
	size_t i;

	if (take_names(r->also, json_object_get(r->doc, "aliases"), "aliases", e) < 0 ||
		take_names(r->up, json_object_get(r->doc, "upstream"), "upstream", e) < 0)
		return -1;
	if (json_array_size(affected) > AFFECTED_MAX)
		return err_set(
			e, ERR_CORRUPT, "/affected: more than the limit of %d", AFFECTED_MAX);
	r->level = level_of(r->doc);
	take_text(r);
	json_array_foreach (affected, i, o)
		if (take_affected(r, o, e) < 0)
			return err_ctx(e, "/affected/%zu", i);
	return take_levels(r, e);
}

int osv_add(struct vuln_index_maker *m, const json_t *doc, struct err *e)
{
	auto_json json_t *also = json_array(), *up = json_array();
	struct reading r = {.m = m, .doc = doc, .id = text_of(doc, "id"), .also = also, .up = up};

	if (!r.id || !vuln_is_name(r.id))
		return err_set(e, ERR_CORRUPT, "/id: expected an id");
	if (json_object_get(doc, "withdrawn"))
		return 0;
	return read_record(&r, e) < 0 ? err_ctx(e, "%s", r.id) : 0;
}
