#include "builder/scan.h"

#include <string.h>
#include <time.h>

#include "base/str.h"
#include "builder/vuln-debian.h"
#include "builder/vuln-osv.h"
#include "builder/vuln.h"

enum { FINDINGS_MAX = 1 << 20, NAMES_MAX = 16 << 10 /* bytes, of one source's packages */ };

int scan_level_parse(const char *text, enum vuln_level *l, struct err *e)
{
	for (size_t i = VULN_LOW; i < VULN_LEVELS; i++)
		if (str_eq(text, vuln_level_name((enum vuln_level)i))) {
			*l = (enum vuln_level)i;
			return 0;
		}
	return err_set(e, ERR_USAGE, "expected low, medium, high or critical, got '%.40s'", text);
}

struct scan_rules scan_rules_of(const struct manifest_build *b)
{
	return (struct scan_rules){
		.fail_on = b->scan_fail_on ? vuln_level_of_word(b->scan_fail_on) : VULN_UNKNOWN,
		.ignore_unfixed = b->scan_ignore_unfixed,
		.allow = b->allow,
		.nallow = b->nallow};
}

struct scanning {
	struct scan_result *r;
	const struct vuln *db;
	const struct scan_rules *rules;
	const struct scan_package *of; /* the first of those of one source */
	const char *packages;
	json_t *found; /* numbers of this source's findings, by name */
	bool tracked;  /* Debian's tracker knows the release */
	char *release; /* "Debian:12"; NULL */
	bool compared;
};

/* ---- what a vulnerability is called ---- */

static const char *only_cve(const json_t *list, size_t *n)
{
	const char *found = NULL;
	const json_t *o;
	size_t i;

	*n = 0;
	json_array_foreach (list, i, o)
		if (str_starts(json_string_value(o), "CVE-")) {
			found = json_string_value(o);
			++*n;
		}
	return found;
}

/* An advisory about several (DSA-1) keeps its own name. */
static const char *main_name(const json_t *record)
{
	const char *id = json_string_value(json_object_get(record, "id")), *cve;
	size_t n;

	if (str_starts(id, "CVE-"))
		return id;
	cve = only_cve(json_object_get(record, "also"), &n);
	if (n == 0)
		cve = only_cve(json_object_get(record, "up"), &n);
	return n == 1 ? cve : id;
}

static void add_name(struct arena *a, struct scan_finding *f, const char *name)
{
	const char **v;

	if (!name || str_eq(name, f->id))
		return;
	for (size_t i = 0; i < f->also.n; i++)
		if (str_eq(f->also.v[i], name))
			return;
	v = arena_alloc(a, (f->also.n + 1) * sizeof(*v));
	if (f->also.n)
		memcpy(v, f->also.v, f->also.n * sizeof(*v));
	v[f->also.n++] = arena_strdup(a, name);
	f->also.v = v;
}

static void add_names(struct arena *a, struct scan_finding *f, const json_t *record)
{
	static const char *const lists[] = {"also", "up"};
	const json_t *o;
	size_t i;

	add_name(a, f, json_string_value(json_object_get(record, "id")));
	for (size_t k = 0; k < sizeof(lists) / sizeof(lists[0]); k++)
		json_array_foreach (json_object_get(record, lists[k]), i, o)
			add_name(a, f, json_string_value(o));
}

/* ---- findings ---- */

static struct scan_finding *finding_of(struct scanning *x, const char *id, struct err *e)
{
	struct scan_result *r = x->r;

	const json_t *known = json_object_get(x->found, id);

	if (known)
		return &r->v[json_integer_value(known)];
	if (r->n >= FINDINGS_MAX) {
		err_set(e, ERR_CORRUPT, "more than the limit of %d findings", FINDINGS_MAX);
		return NULL;
	}
	mem_grow(&r->v, &r->cap, r->n);
	r->v[r->n] = (struct scan_finding){.id = arena_strdup(&r->arena, id),
		.text = "",
		.of = x->of,
		.packages = x->packages};
	json_object_set_new(x->found, id, json_integer((json_int_t)r->n));
	return &r->v[r->n++];
}

static int found(struct scanning *x, const json_t *record, const char *fixed, enum vuln_level level,
	struct err *e)
{
	const char *text = json_string_value(json_object_get(record, "text"));
	struct arena *a = &x->r->arena;
	struct scan_finding *f = finding_of(x, main_name(record), e);

	if (!f)
		return -1;
	if (level == VULN_UNKNOWN)
		level = vuln_index_level_of(&x->db->index, f->id);
	f->level = level > f->level ? level : f->level;
	if (!f->fixed && fixed)
		f->fixed = arena_strdup(a, fixed);
	if (!*f->text && text)
		f->text = arena_strdup(a, text);
	add_names(a, f, record);
	return 0;
}

static int take_advisory(void *ctx, const json_t *record, struct err *e)
{
	struct scanning *x = ctx;
	json_int_t l = json_integer_value(json_object_get(record, "level"));
	const char *fixed;
	int rc = osv_affects(record, x->of->kind, x->of->source_version, &fixed);

	x->compared = x->compared && rc >= 0;
	return rc > 0 ? found(x, record, fixed,
				l > 0 && l < VULN_LEVELS ? (enum vuln_level)l : VULN_UNKNOWN, e)
		      : 0;
}

static int take_tracked(void *ctx, const json_t *record, struct err *e)
{
	struct scanning *x = ctx;
	enum vuln_level level = VULN_UNKNOWN;
	const char *fixed;
	int rc = tracker_affects(
		record, x->r->packages.codename, x->of->source_version, &fixed, &level);

	x->compared = x->compared && rc >= 0;
	return rc > 0 ? found(x, record, fixed, level, e) : 0;
}

static int scan_source(struct scanning *x, struct err *e)
{
	const struct scan_package *p = x->of;
	const char *space = p->kind == VERSION_NPM    ? "npm"
			    : p->kind == VERSION_PYPI ? "PyPI"
						      : x->release;
	int rc;

	json_object_clear(x->found);
	x->compared = true;
	if (p->kind == VERSION_DEB && x->tracked)
		rc = vuln_index_each(&x->db->index, VULN_TRACKER, p->source, take_tracked, x, e);
	else
		rc = vuln_index_each(&x->db->index, space, p->source, take_advisory, x, e);
	x->r->incomparable += !x->compared;
	return rc < 0 ? err_ctx(e, "package %s", p->name) : 0;
}

static bool same_source(const struct scan_package *a, const struct scan_package *b)
{
	return a->kind == b->kind && str_eq(a->source, b->source) &&
	       str_eq(a->source_version, b->source_version);
}

/* They are only told: of an absurd number, the first. */
static void add_package_name(struct buf *names, const char *name)
{
	static const char more[] = ", ...";

	if (names->len + strlen(name) + 2 <= NAMES_MAX)
		buf_printf(names, "%s%s", names->len ? ", " : "", name);
	else if (names->len == 0 || !str_ends(names->data, more))
		buf_printf(names, "%s", names->len ? more : "...");
}

/* All packages of one source in one go. */
static int scan_packages(struct scanning *x, struct err *e)
{
	const struct scan_packages *l = &x->r->packages;

	for (size_t i = 0, next; i < l->n; i = next) {
		auto_buf struct buf names = BUF_INIT(NAMES_MAX + 8);

		for (next = i; next < l->n && same_source(&l->v[i], &l->v[next]); next++)
			if (next == i || !str_eq(l->v[next].name, l->v[next - 1].name))
				add_package_name(&names, l->v[next].name);
		x->of = &l->v[i];
		x->packages = arena_strdup(&x->r->arena, names.data);
		if (scan_source(x, e) < 0)
			return -1;
	}
	return 0;
}

/* ---- do the data know of all of it? ---- */

static const char *codename_of(const char *release)
{
	static const char *const known[][2] = {{"10", "buster"}, {"11", "bullseye"},
		{"12", "bookworm"}, {"13", "trixie"}, {"14", "forky"}};

	for (size_t i = 0; release && i < sizeof(known) / sizeof(known[0]); i++)
		if (str_eq(known[i][0], release) || str_eq(known[i][1], release))
			return known[i][str_eq(known[i][0], release)];
	return NULL;
}

static int no_data(size_t n, const char *what, struct err *e)
{
	err_set(e, ERR_UNSUPPORTED,
		"the data say nothing of %s, and the image has %zu packages of it", what, n);
	return err_hint(e, "put what is known of %s into the folder of data: docs/scan.md", what);
}

static int cover_debs(struct scanning *x, size_t n, struct err *e)
{
	struct scan_packages *l = &x->r->packages;
	bool debian = l->distribution && str_eq(l->distribution, "debian"),
	     ubuntu = l->distribution && str_eq(l->distribution, "ubuntu");
	char *tracked;

	if (!debian && !ubuntu)
		return err_set(e, ERR_UNSUPPORTED,
			"the image has %zu packages of dpkg, and %s%.60s", n,
			l->distribution ? "there are no data about the distribution "
					: "no etc/os-release says of which distribution",
			l->distribution ? l->distribution : "");
	if (debian && !l->codename)
		l->codename = codename_of(l->release);
	if (debian && !l->release)
		l->release = codename_of(l->codename);
	tracked = arena_printf(&l->arena, "%s:%.60s", VULN_TRACKER, l->codename ? l->codename : "");
	x->tracked = debian && l->codename && vuln_index_has(&x->db->index, tracked);
	if (l->release)
		x->release = arena_printf(
			&l->arena, "%s:%.60s", debian ? "Debian" : "Ubuntu", l->release);
	if (x->tracked || (x->release && vuln_index_has(&x->db->index, x->release)))
		return 0;
	tracked = arena_printf(&l->arena, "%s %.60s", debian ? "Debian" : "Ubuntu",
		l->release    ? l->release
		: l->codename ? l->codename
			      : "without a release");
	return no_data(n, tracked, e);
}

static int check_cover(struct scanning *x, struct err *e)
{
	const struct scan_packages *l = &x->r->packages;
	size_t n[VERSION_NPM + 1] = {0};

	for (size_t i = 0; i < l->n; i++)
		n[l->v[i].kind]++;
	if (n[VERSION_DEB] && cover_debs(x, n[VERSION_DEB], e) < 0)
		return -1;
	if (n[VERSION_PYPI] && !vuln_index_has(&x->db->index, "PyPI"))
		return no_data(n[VERSION_PYPI], "PyPI", e);
	if (n[VERSION_NPM] && !vuln_index_has(&x->db->index, "npm"))
		return no_data(n[VERSION_NPM], "npm", e);
	return 0;
}

/* ---- what fails ---- */

static bool is_named(const struct scan_finding *f, const char *id)
{
	bool named = str_eq(f->id, id);

	for (size_t i = 0; i < f->also.n; i++)
		named = named || str_eq(f->also.v[i], id);
	return named;
}

static void find_allow(struct scanning *x, struct scan_finding *f)
{
	struct scan_result *r = x->r;

	for (size_t i = 0; i < x->rules->nallow; i++) {
		const struct scan_allow *a = &x->rules->allow[i];

		if (!is_named(f, a->id))
			continue;
		r->states[i] = strcmp(r->today, a->until) > 0 ? SCAN_EXPIRED : SCAN_USED;
		if (r->states[i] == SCAN_USED && !f->allowed)
			f->allowed = a;
	}
}

static bool is_bad(const struct scan_rules *rules, const struct scan_finding *f)
{
	if (rules->fail_on == VULN_UNKNOWN || f->allowed || (rules->ignore_unfixed && !f->fixed))
		return false;
	return f->level >= rules->fail_on ||
	       (rules->fail_on == VULN_LOW && f->level == VULN_UNKNOWN);
}

static int by_level(const void *a, const void *b)
{
	const struct scan_finding *x = a, *y = b;
	int rc = (int)y->level - (int)x->level;

	rc = rc ? rc : strcmp(x->of->source, y->of->source);
	rc = rc ? rc : strcmp(x->id, y->id);
	return rc ? rc : strcmp(x->of->source_version, y->of->source_version);
}

static int judge(struct scanning *x, struct err *e)
{
	struct scan_result *r = x->r;
	time_t now = time(NULL);
	struct tm tm;

	if (!gmtime_r(&now, &tm) || strftime(r->today, sizeof(r->today), "%Y-%m-%d", &tm) == 0)
		return err_set(e, ERR_SYSTEM, "what day is it?");
	r->nstates = x->rules->nallow;
	r->states = arena_alloc(&r->arena, r->nstates * sizeof(*r->states));
	for (size_t i = 0; i < r->n; i++) {
		struct scan_finding *f = &r->v[i];

		find_allow(x, f);
		f->fails = is_bad(x->rules, f);
		r->counts[f->level]++;
		r->allowed += f->allowed != NULL;
		r->failing += f->fails;
	}
	if (r->n)
		qsort(r->v, r->n, sizeof(*r->v), by_level);
	return 0;
}

int scan_image(struct scan_result *r, struct store *s, const struct digest *manifest,
	const struct bill *bill, const char *db, const struct scan_rules *rules, struct err *e)
{
	struct vuln v;
	auto_json json_t *found = json_object();
	struct scanning x = {.r = r, .db = &v, .rules = rules, .found = found};
	int rc;

	*r = (struct scan_result){0};
	if (vuln_open(&v, s, db, e) < 0)
		return -1;
	r->data = v.digest;
	rc = scan_packages_list(&r->packages, s, manifest, bill, e);
	if (rc == 0)
		rc = check_cover(&x, e) < 0 || scan_packages(&x, e) < 0 || judge(&x, e) < 0 ? -1
											    : 0;
	vuln_close(&v);
	if (rc < 0)
		scan_result_fini(r);
	return rc;
}

void scan_result_fini(struct scan_result *r)
{
	scan_packages_fini(&r->packages);
	arena_fini(&r->arena);
	free(r->v);
	*r = (struct scan_result){0};
}
