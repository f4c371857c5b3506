#include "builder/license.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "builder/license-ids.h"

enum { NAME_MAX_SHOWN = 64, EXPRESSION_MAX = 4096, STANZAS_MAX = 4096 };

/* ---- identifiers ---- */

static int compare_id(const void *a, const void *b)
{
	return strcmp(a, *(const char *const *)b);
}

/* Is it an identifier of SPDX's list (of those that packages here have)? */
static bool is_known(const char *id)
{
	return bsearch(id, license_ids, sizeof(license_ids) / sizeof(license_ids[0]),
		       sizeof(license_ids[0]), compare_id) != NULL;
}

/* Names that Debian, PyPI and people have for what SPDX calls otherwise; in lower case. */
static const struct {
	const char *name, *spdx;
} synonyms[] = {
	{"expat", "MIT"},
	{"mit license", "MIT"},
	{"the mit license", "MIT"},
	{"mit/x11", "MIT"},
	{"mit-style", "MIT"},
	{"apache-2", "Apache-2.0"},
	{"apache 2", "Apache-2.0"},
	{"apache 2.0", "Apache-2.0"},
	{"apache2", "Apache-2.0"},
	{"apache license 2.0", "Apache-2.0"},
	{"apache license, version 2.0", "Apache-2.0"},
	{"apache software license", "Apache-2.0"},
	{"apache software license 2.0", "Apache-2.0"},
	{"bsd-2", "BSD-2-Clause"},
	{"bsd-3", "BSD-3-Clause"},
	{"bsd-4", "BSD-4-Clause"},
	{"bsd 2-clause", "BSD-2-Clause"},
	{"bsd 3-clause", "BSD-3-Clause"},
	{"3-clause bsd license", "BSD-3-Clause"},
	{"new bsd", "BSD-3-Clause"},
	{"new bsd license", "BSD-3-Clause"},
	{"modified bsd", "BSD-3-Clause"},
	{"isc license", "ISC"},
	{"isc license (iscl)", "ISC"},
	{"psf", "PSF-2.0"},
	{"psf-2", "PSF-2.0"},
	{"python software foundation license", "PSF-2.0"},
	{"python", "Python-2.0"},
	{"artistic", "Artistic-1.0-Perl"},
	{"artistic-1", "Artistic-1.0"},
	{"artistic-2", "Artistic-2.0"},
	{"mpl-2", "MPL-2.0"},
	{"mozilla public license 2.0 (mpl 2.0)", "MPL-2.0"},
	{"gplv2", "GPL-2.0-only"},
	{"gplv2+", "GPL-2.0-or-later"},
	{"gplv3", "GPL-3.0-only"},
	{"gplv3+", "GPL-3.0-or-later"},
	{"gnu general public license v3 (gplv3)", "GPL-3.0-only"},
	{"gnu general public license v3 or later (gplv3+)", "GPL-3.0-or-later"},
	{"gnu general public license v2 or later (gplv2+)", "GPL-2.0-or-later"},
	{"gnu lesser general public license v3 (lgplv3)", "LGPL-3.0-only"},
	{"gnu lesser general public license v3 or later (lgplv3+)", "LGPL-3.0-or-later"},
	{"gfdl-niv-1.3", "GFDL-1.3-no-invariants-only"},
	{"gfdl-niv-1.3+", "GFDL-1.3-no-invariants-or-later"},
	{"gfdl-niv-1.2+", "GFDL-1.2-no-invariants-or-later"},
	{"cc0", "CC0-1.0"},
	{"boost", "BSL-1.0"},
	{"boost-1.0", "BSL-1.0"},
	{"the unlicense (unlicense)", "Unlicense"},
	{"openssl", "OpenSSL"},
	{"zlib/libpng", "Zlib"},
	{"sil-1.1", "OFL-1.1"},
	{"ofl", "OFL-1.1"},
};

static const char *known_in_any_case(const char *name)
{
	for (size_t i = 0; i < sizeof(license_ids) / sizeof(license_ids[0]); i++)
		if (strcasecmp(license_ids[i], name) == 0)
			return license_ids[i];
	return NULL;
}

/* GPL, LGPL, AGPL, GFDL: "GPL-2+", "LGPL-2.1", "GPL-3.0+". */
static const char *gnu(struct arena *a, const char *name)
{
	static const char *const families[] = {"GPL-", "LGPL-", "AGPL-", "GFDL-"};

	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		size_t n = strlen(families[i]), digits;
		const char *version, *rest, *spdx;

		if (strncasecmp(name, families[i], n) != 0)
			continue;
		version = name + n;
		digits = strspn(version, "0123456789.");
		rest = version + digits;
		if (digits == 0 || digits > 8 || !(*rest == '\0' || str_eq(rest, "+")))
			return NULL;
		spdx = arena_printf(a, "%s%.*s%s-%s", families[i], (int)digits, version,
			memchr(version, '.', digits) ? "" : ".0", *rest ? "or-later" : "only");
		return is_known(spdx) ? spdx : NULL;
	}
	return NULL;
}

/* "LicenseRef-" and letters, digits, dots and dashes. */
static const char *reference(struct arena *a, const char *name)
{
	char out[NAME_MAX_SHOWN + 1];
	size_t n = 0;

	for (const char *c = name; *c && n < NAME_MAX_SHOWN; c++)
		if (isalnum((unsigned char)*c) || *c == '.')
			out[n++] = *c;
		else if (n && out[n - 1] != '-')
			out[n++] = *c == '+' && c > name ? 'p' : '-';
	while (n && out[n - 1] == '-')
		n--;
	out[n] = '\0';
	return n ? arena_printf(a, "LicenseRef-%s", out) : NULL;
}

/* One name; *known tells that it is of SPDX's list. */
static const char *identify(struct arena *a, const char *name, bool *known)
{
	auto_free char *lower = mem_strdup(name);
	const char *spdx;

	*known = true;
	for (char *c = lower; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	for (size_t i = 0; i < sizeof(synonyms) / sizeof(synonyms[0]); i++)
		if (str_eq(synonyms[i].name, lower))
			return synonyms[i].spdx;
	spdx = gnu(a, name);
	if (!spdx)
		spdx = known_in_any_case(name);
	if (spdx)
		return spdx;
	*known = false;
	if (str_starts(name, "LicenseRef-"))
		return reference(a, name + strlen("LicenseRef-"));
	return reference(a, name);
}

/* ---- expressions ---- */

/* name [operator name]...: words of "or", "and", commas and parentheses between names of one word.
 */
struct expression {
	struct arena *a;
	const char *at;
	struct buf out;
	int depth;
	bool name_due; /* a name or "(" comes next */
	bool bad;
};

static void put(struct expression *x, const char *text)
{
	bool space = x->out.len && x->out.data[x->out.len - 1] != '(' && !str_eq(text, ")");

	if (x->out.len + strlen(text) + 2 > x->out.max) {
		x->bad = true;
		return;
	}
	buf_printf(&x->out, "%s%s", space ? " " : "", text);
}

static void take_operator(struct expression *x, const char *op)
{
	if (x->name_due)
		x->bad = true;
	else
		put(x, op);
	x->name_due = true;
}

static void take_name(struct expression *x, const char *word)
{
	bool known;
	const char *spdx = identify(x->a, word, &known);

	if (!x->name_due || !spdx)
		x->bad = true;
	else
		put(x, spdx);
	x->name_due = false;
}

/* "GPL-2+ with OpenSSL-exception": SPDX knows few of Debian's names for exceptions, so that the
 * pair becomes one reference when the licence stands before it. */
static void take_exception(struct expression *x)
{
	size_t n = strcspn(x->at, " \t\n,()");
	size_t from = x->out.len;
	const char *joined;

	while (from && x->out.data[from - 1] != ' ' && x->out.data[from - 1] != '(')
		from--;
	if (x->name_due || n == 0 || from == x->out.len) {
		x->bad = true;
		return;
	}
	joined = reference(x->a, arena_printf(x->a, "%s-with-%.*s", x->out.data + from,
					 n > 60 ? 60 : (int)n, x->at));
	x->at += n;
	x->at += strspn(x->at, " \t\n");
	if (strncasecmp(x->at, "exception", 9) == 0 && !isalnum((unsigned char)x->at[9]))
		x->at += 9;
	x->out.len = from && x->out.data[from - 1] == ' ' ? from - 1 : from;
	x->out.data[x->out.len] = '\0';
	put(x, joined);
}

static void take_word(struct expression *x, const char *word)
{
	if (strcasecmp(word, "or") == 0 || str_eq(word, "|"))
		take_operator(x, "OR");
	else if (strcasecmp(word, "and") == 0 || str_eq(word, "&"))
		take_operator(x, "AND");
	else if (strcasecmp(word, "with") == 0) {
		x->at += strspn(x->at, " \t\n");
		take_exception(x);
	} else {
		take_name(x, word);
	}
}

/* "A or B, and C" is (A or B) and C: a comma binds less than a word. */
static void take_comma(struct expression *x)
{
	const char *next = x->at + 1 + strspn(x->at + 1, " \t\n");

	x->at++;
	if (x->depth == 0 && strstr(x->out.data ? x->out.data : "", " OR ")) {
		auto_free char *whole = mem_printf("(%s)", x->out.data);

		x->out.len = 0;
		put(x, whole);
	}
	if (strncasecmp(next, "and ", 4) != 0 && strncasecmp(next, "or ", 3) != 0)
		take_operator(x, "AND");
}

static void take_next(struct expression *x)
{
	size_t n = strcspn(x->at, " \t\n,()");

	if (*x->at == '(') {
		x->depth++;
		x->bad = x->bad || !x->name_due;
		put(x, "(");
		x->at++;
	} else if (*x->at == ')') {
		x->bad = x->bad || x->name_due || --x->depth < 0;
		put(x, ")");
		x->at++;
	} else if (*x->at == ',') {
		take_comma(x);
	} else {
		const char *word = arena_strndup(x->a, x->at, n);

		x->at += n;
		take_word(x, word);
	}
}

/* NULL: it is no expression of names. */
static const char *parse(struct arena *a, const char *text)
{
	struct expression x = {
		.a = a, .at = text, .out = BUF_INIT(EXPRESSION_MAX), .name_due = true};
	const char *result = NULL;

	for (;;) {
		x.at += strspn(x.at, " \t\n");
		if (!*x.at || x.bad)
			break;
		take_next(&x);
	}
	if (!x.bad && !x.name_due && x.depth == 0 && x.out.len)
		result = arena_strdup(a, x.out.data);
	buf_fini(&x.out);
	return result;
}

/* The first line of text, trimmed. */
static const char *first_line(struct arena *a, const char *text)
{
	size_t n;

	text += strspn(text, " \t\r\n");
	n = strcspn(text, "\r\n");
	while (n && (text[n - 1] == ' ' || text[n - 1] == '\t'))
		n--;
	return arena_strndup(a, text, n > 256 ? 256 : n);
}

const char *license_of_text(struct arena *a, const char *text)
{
	const char *line = first_line(a, text), *found;
	bool known;

	if (!*line || strcasecmp(line, "UNKNOWN") == 0)
		return NULL;
	found = identify(a, line, &known);
	if (known)
		return found;
	found = parse(a, line);
	return found ? found : identify(a, line, &known);
}

const char *license_of_classifier(struct arena *a, const char *classifier)
{
	const char *last;

	if (!str_starts(classifier, "License ::"))
		return NULL;
	last = strrchr(classifier, ':') + 1;
	last += strspn(last, " ");
	if (str_eq(last, "OSI Approved"))
		return NULL;
	return license_of_text(a, last);
}

/* ---- Debian ---- */

struct licenses {
	const char **v;
	size_t n, cap;
};

static void add(struct licenses *l, const char *expression)
{
	for (size_t i = 0; i < l->n; i++)
		if (str_eq(l->v[i], expression))
			return;
	mem_grow(&l->v, &l->cap, l->n);
	l->v[l->n++] = expression;
}

static int by_text(const void *x, const void *y)
{
	return strcmp(*(const char *const *)x, *(const char *const *)y);
}

static const char *join(struct arena *a, struct licenses *l)
{
	auto_buf struct buf b = BUF_INIT(64 << 10);

	if (l->n)
		qsort(l->v, l->n, sizeof(*l->v), by_text);
	for (size_t i = 0; i < l->n; i++) {
		bool compound = l->n > 1 && strstr(l->v[i], " OR ");

		if (b.len + strlen(l->v[i]) + 16 > b.max)
			return NULL;
		buf_printf(&b, "%s%s%s%s", i ? " AND " : "", compound ? "(" : "", l->v[i],
			compound ? ")" : "");
	}
	return b.len ? arena_strdup(a, b.data) : NULL;
}

/* Does the first paragraph say "Format: .../copyright-format/1.0/"? */
static bool is_machine_readable(const char *text)
{
	const char *blank = strstr(text, "\n\n"), *format = strstr(text, "Format:");

	return format && (format == text || format[-1] == '\n') && (!blank || format < blank) &&
	       strstr(format, "copyright-format");
}

const char *license_of_debian(struct arena *a, const char *text, size_t n)
{
	struct licenses l = {0};
	const char *result;
	size_t stanzas = 0;
	bool in_files = false;

	if (memchr(text, '\0', n) || !is_machine_readable(text))
		return NULL;
	/* stanzas of "Files:", and the first one, say what holds; those of "License:" alone say
	 * what a name means */
	in_files = true;
	for (const char *line = text, *next; line && stanzas < STANZAS_MAX; line = next) {
		const char *found;

		next = strchr(line, '\n');
		next = next ? next + 1 : NULL;
		if (*line == '\n') {
			in_files = false;
			stanzas++;
		} else if (strncasecmp(line, "Files:", 6) == 0) {
			in_files = true;
		} else if (in_files && strncasecmp(line, "License:", 8) == 0) {
			found = license_of_text(
				a, arena_strndup(a, line + 8,
					   next ? (size_t)(next - line - 8) : strlen(line + 8)));
			if (found)
				add(&l, found);
		}
	}
	result = join(a, &l);
	free(l.v);
	return result;
}
