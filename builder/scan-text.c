/* A scan's findings for people and for machines. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "builder/scan.h"

char *scan_failing(const struct scan_result *r)
{
	auto_buf struct buf b = BUF_INIT(4096);
	size_t counts[VULN_LEVELS] = {0};

	for (size_t i = 0; i < r->n; i++)
		counts[r->v[i].level] += r->v[i].fails;
	for (size_t l = VULN_LEVELS; l-- > 0;)
		if (counts[l])
			buf_printf(&b, "%s%zu %s", b.len ? ", " : "", counts[l],
				vuln_level_name((enum vuln_level)l));
	return b.len ? steal_ptr(&b.data) : mem_strdup("");
}

/* ---- a table ---- */

void scan_line(const struct scan_finding *f, struct buf *out)
{
	auto_free char *line = mem_printf("%-10s  %-19s  %s %s (%s)  %s%s  %s%s%s",
		vuln_level_name(f->level), f->id, f->of->source, f->of->source_version, f->packages,
		f->fixed ? "fixed in " : "not fixed", f->fixed ? f->fixed : "",
		f->allowed ? "[allowed until " : "", f->allowed ? f->allowed->until : "",
		f->allowed ? "] " : "");

	str_plain(line, "");
	buf_printf(out, "%.2000s%s\n", line, f->text);
}

void scan_table(const struct scan_result *r, struct buf *out)
{
	auto_free char *failing = scan_failing(r);

	for (size_t i = 0; i < r->n; i++)
		scan_line(&r->v[i], out);
	buf_printf(out, "%zu packages, %zu vulnerabilities", r->packages.n, r->n);
	for (size_t l = VULN_LEVELS; l-- > 0;)
		if (r->counts[l])
			buf_printf(
				out, ", %zu %s", r->counts[l], vuln_level_name((enum vuln_level)l));
	if (r->allowed)
		buf_printf(out, "; %zu allowed", r->allowed);
	if (r->incomparable)
		buf_printf(out, "; %zu packages have versions that cannot be compared",
			r->incomparable);
	if (r->packages.others)
		buf_printf(out, "; %zu sources and models are no packages: not looked at",
			r->packages.others);
	buf_printf(out, "\n%s%s", *failing ? "fails: " : "", failing);
	if (*failing)
		buf_printf(out, "\n");
}

/* ---- JSON ---- */

static const char *kind_name(enum version_kind k)
{
	return k == VERSION_DEB ? "deb" : k == VERSION_PYPI ? "pypi" : "npm";
}

/* What came out of an image need not be UTF-8. */
static json_t *text(const char *s)
{
	auto_free char *copy = NULL;

	if (!s || str_utf8(s, strlen(s)))
		return s ? json_string(s) : json_null();
	copy = mem_strdup(s);
	for (char *c = copy; *c; c++)
		if ((unsigned char)*c >= 0x80)
			*c = '?';
	return json_string(copy);
}

static json_t *also_of(const struct scan_finding *f)
{
	json_t *list = json_array();

	for (size_t i = 0; i < f->also.n; i++)
		json_array_append_new(list, text(f->also.v[i]));
	return list;
}

static json_t *finding_json(const struct scan_finding *f)
{
	json_t *allowed = f->allowed ? json_pack("{s:o, s:o}", "until", text(f->allowed->until),
					       "reason", text(f->allowed->reason))
				     : json_null();

	return json_pack("{s:o, s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:b}", "id",
		text(f->id), "aliases", also_of(f), "level", vuln_level_name(f->level), "kind",
		kind_name(f->of->kind), "package", text(f->of->source), "version",
		text(f->of->source_version), "binaries", text(f->packages), "fixed", text(f->fixed),
		"summary", text(f->text), "allowed", allowed, "fails", (int)f->fails);
}

json_t *scan_json(const struct scan_result *r, const struct scan_rules *rules)
{
	static const char *const states[] = {"unused", "expired", "used"};
	json_t *findings = json_array(), *counts = json_object(), *allow = json_array();
	char hex[DIGEST_TEXT + 1];

	for (size_t i = 0; i < r->n; i++)
		json_array_append_new(findings, finding_json(&r->v[i]));
	for (size_t l = 0; l < VULN_LEVELS; l++)
		json_object_set_new(counts, vuln_level_name((enum vuln_level)l),
			json_integer((json_int_t)r->counts[l]));
	for (size_t i = 0; i < r->nstates; i++)
		json_array_append_new(
			allow, json_pack("{s:o, s:o, s:s}", "id", text(rules->allow[i].id), "until",
				       text(rules->allow[i].until), "state", states[r->states[i]]));
	return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "data",
		digest_text(&r->data, hex), "today", r->today, "packages",
		(json_int_t)r->packages.n, "notCompared", (json_int_t)r->incomparable,
		"notLookedAt", (json_int_t)r->packages.others, "failing", (json_int_t)r->failing,
		"counts", counts, "allow", allow, "findings", findings);
}

/* ---- SARIF ---- */

static const char *sarif_level(enum vuln_level l)
{
	return l >= VULN_HIGH ? "error" : l == VULN_MEDIUM ? "warning" : "note";
}

static json_t *sarif_result(const struct scan_finding *f, const char *image)
{
	auto_free char *message = mem_printf("%s %s (%s): %s%s%s%s", f->of->source,
		f->of->source_version, f->packages, f->id, f->fixed ? ", fixed in " : "",
		f->fixed ? f->fixed : ", not fixed yet", *f->text ? ": " : "");
	auto_free char *whole = mem_printf("%s%s", message, f->text);
	json_t *o;

	o = json_pack("{s:o, s:s, s:{s:o}, s:[{s:{s:{s:o}}}], s:{s:s, s:o}}", "ruleId", text(f->id),
		"level", sarif_level(f->level), "message", "text", text(whole), "locations",
		"physicalLocation", "artifactLocation", "uri", text(image), "properties", "level",
		vuln_level_name(f->level), "aliases", also_of(f));
	if (f->allowed)
		json_object_set_new(o, "suppressions",
			json_pack("[{s:s, s:o}]", "kind", "external", "justification",
				text(f->allowed->reason)));
	return o;
}

json_t *scan_sarif(const struct scan_result *r, const char *image)
{
	json_t *results = json_array(), *rules = json_array();
	auto_json json_t *seen = json_object();

	for (size_t i = 0; i < r->n; i++) {
		const struct scan_finding *f = &r->v[i];

		json_array_append_new(results, sarif_result(f, image));
		if (json_object_get(seen, f->id))
			continue;
		json_object_set_new(seen, f->id, json_true());
		json_array_append_new(
			rules, json_pack("{s:o, s:{s:o}}", "id", text(f->id), "shortDescription",
				       "text", text(*f->text ? f->text : f->id)));
	}
	return json_pack("{s:s, s:[{s:{s:{s:s, s:s, s:o}}, s:o}]}", "version", "2.1.0", "runs",
		"tool", "driver", "name", "svrun", "version", SVRUN_VERSION, "rules", rules,
		"results", results);
}
