#include "builder/marker.h"

#include <stdbool.h>
#include <string.h>

#include "base/str.h"
#include "builder/pep440.h"
#include "builder/python-name.h"

enum {
	MARKER_MAX = 8192, /* bytes of a requirement or a marker */
	VALUE_MAX = 1024,
	DEPTH_MAX = 32, /* parentheses */
};

/* ---- tokens ---- */

struct scan {
	const char *text, *at;
	const struct marker_env *env;
	unsigned depth;
};

static void skip_blanks(struct scan *s)
{
	s->at += strspn(s->at, " \t");
}

static int bad(const struct scan *s, struct err *e, const char *expected)
{
	char text[STR_SHOWN];

	return err_set(e, ERR_CORRUPT, "SV054: '%s': expected %s at byte %zu",
		str_shown(s->text, text), expected, (size_t)(s->at - s->text) + 1);
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

/* A whole word, or nothing is taken. */
static bool take_word(struct scan *s, const char *word)
{
	size_t n = strlen(word);

	if (strncmp(s->at, word, n) != 0 || is_word(s->at[n]))
		return false;
	s->at += n;
	return true;
}

static bool take(struct scan *s, const char *text)
{
	if (!str_starts(s->at, text))
		return false;
	s->at += strlen(text);
	return true;
}

/* ---- values ---- */

struct value {
	char text[VALUE_MAX];
	const struct strings *set; /* "extras": what stands left of it is looked for in here */
	bool extra;                /* compared as a name */
};

/* One variable and where its value is: text, or an offset into the environment. */
struct variable {
	const char *name;
	const char *text;
	size_t at;
	enum { V_TEXT, V_ENV, V_SET, V_KERNEL } kind;
};

#define ENV(member) offsetof(struct marker_env, member)
static const struct variable variables[] = {
	{"python_version", NULL, ENV(python_version), V_ENV},
	{"python_full_version", NULL, ENV(python_full_version), V_ENV},
	{"implementation_version", NULL, ENV(python_full_version), V_ENV},
	{"platform_machine", NULL, ENV(machine), V_ENV},
	{"platform.machine", NULL, ENV(machine), V_ENV},
	{"extra", NULL, ENV(extra), V_ENV},
	{"extras", NULL, ENV(extras), V_SET},
	{"dependency_groups", NULL, ENV(groups), V_SET},
	{"os_name", "posix", 0, V_TEXT},
	{"os.name", "posix", 0, V_TEXT},
	{"sys_platform", "linux", 0, V_TEXT},
	{"sys.platform", "linux", 0, V_TEXT},
	{"platform_system", "Linux", 0, V_TEXT},
	{"implementation_name", "cpython", 0, V_TEXT},
	{"platform_python_implementation", "CPython", 0, V_TEXT},
	{"platform.python_implementation", "CPython", 0, V_TEXT},
	{"python_implementation", "CPython", 0, V_TEXT},
	{"platform_release", NULL, 0, V_KERNEL},
	{"platform_version", NULL, 0, V_KERNEL},
	{"platform.version", NULL, 0, V_KERNEL},
};

static int fill_variable(
	const struct scan *s, const struct variable *v, struct value *out, struct err *e)
{
	const char *env = (const char *)s->env + v->at;
	const char *text = v->kind == V_TEXT ? v->text : "";
	char shown[STR_SHOWN];

	if (v->kind == V_KERNEL)
		return err_set(e, ERR_UNSUPPORTED,
			"SV054: '%s': %s is the running kernel's, which an image does not know",
			str_shown(s->text, shown), v->name);
	if (v->kind == V_SET)
		out->set = (const struct strings *)(const void *)env;
	if (v->kind == V_ENV)
		memcpy(&text, env, sizeof(text));
	out->extra = v->kind == V_SET || str_eq(v->name, "extra");
	if (!text)
		return err_set(e, ERR_UNSUPPORTED,
			"SV054: '%s': %s of the image's interpreter is not known",
			str_shown(s->text, shown), v->name);
	return str_copy(out->text, VALUE_MAX, text) < 0 ? bad(s, e, "a shorter value") : 0;
}

static int take_value(struct scan *s, struct value *out, struct err *e)
{
	char quote = *s->at;
	size_t n;

	*out = (struct value){0};
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		if (take_word(s, variables[i].name))
			return fill_variable(s, &variables[i], out, e);
	if (quote != '"' && quote != '\'')
		return bad(s, e, "a variable or a quoted text");
	n = strcspn(s->at + 1, quote == '"' ? "\"\\" : "'\\");
	if (s->at[1 + n] != quote || n >= VALUE_MAX)
		return bad(s, e, "a quoted text without escapes");
	memcpy(out->text, s->at + 1, n);
	s->at += n + 2;
	return 0;
}

/* ---- comparing ---- */

static bool in_set(const struct strings *set, const char *name)
{
	for (size_t i = 0; i < set->n; i++)
		if (python_same_name(set->v[i], name))
			return true;
	return false;
}

static int compare_texts(const char *a, const char *op, const char *b)
{
	int c = strcmp(a, b);

	if (op[0] == '<')
		return op[1] ? c <= 0 : c < 0;
	if (op[0] == '>')
		return op[1] ? c >= 0 : c > 0;
	if (op[0] == '~')
		return -1;
	return op[0] == '!' ? c != 0 : c == 0;
}

/* Versions when both sides are such, else texts. */
static int compare(
	struct scan *s, const struct value *a, const char *op, const struct value *b, struct err *e)
{
	char specifier[VALUE_MAX + 4];
	int rc;

	if (a->set || b->set)
		return bad(s, e, "'in' or 'not in' with a set of names");
	if ((a->extra || b->extra) && (str_eq(op, "==") || str_eq(op, "!=")))
		return python_same_name(a->text, b->text) == (op[0] == '=');
	snprintf(specifier, sizeof(specifier), "%s%s", op, b->text);
	rc = strchr(b->text, ',') ? -1 : pep440_fits(a->text, specifier);
	if (rc < 0)
		rc = compare_texts(a->text, op, b->text);
	return rc < 0 ? bad(s, e, "versions beside '~='") : rc;
}

static int member(struct scan *s, const struct value *a, const struct value *b, struct err *e)
{
	if (a->set)
		return bad(s, e, "a set of names on the right side only");
	return b->set ? in_set(b->set, a->text) : strstr(b->text, a->text) != NULL;
}

static int take_item(struct scan *s, struct err *e)
{
	static const char *const ops[] = {"===", "==", "~=", "!=", "<=", ">=", "<", ">", NULL};
	struct value a, b;
	size_t k = 0;
	bool in, not_in = false;
	int rc;

	if (take_value(s, &a, e) < 0)
		return -1;
	skip_blanks(s);
	in = take_word(s, "in");
	if (!in && take_word(s, "not")) {
		skip_blanks(s);
		not_in = take_word(s, "in");
		if (!not_in)
			return bad(s, e, "'in'");
	}
	while (!in && !not_in && ops[k] && !take(s, ops[k]))
		k++;
	if (!ops[k])
		return bad(s, e, "an operator");
	skip_blanks(s);
	if (take_value(s, &b, e) < 0)
		return -1;
	skip_blanks(s);
	if (!in && !not_in)
		return compare(s, &a, ops[k], &b, e);
	rc = member(s, &a, &b, e);
	return rc < 0 ? -1 : not_in ? !rc : rc;
}

/* ---- the expression ---- */

static int take_or(struct scan *s, struct err *e);

static int take_atom(struct scan *s, struct err *e)
{
	int rc;

	skip_blanks(s);
	if (!take(s, "("))
		return take_item(s, e);
	if (s->depth++ == DEPTH_MAX)
		return bad(s, e, "fewer parentheses");
	rc = take_or(s, e);
	s->depth--;
	if (rc < 0)
		return -1;
	if (!take(s, ")"))
		return bad(s, e, "')'");
	skip_blanks(s);
	return rc;
}

/* Everything is read, whatever is known already: the rest may be malformed. */
static int take_and(struct scan *s, struct err *e)
{
	int all = take_atom(s, e);

	while (all >= 0 && take_word(s, "and")) {
		int rc = take_atom(s, e);

		all = rc < 0 ? -1 : all && rc;
	}
	return all;
}

static int take_or(struct scan *s, struct err *e)
{
	int any = take_and(s, e);

	while (any >= 0 && take_word(s, "or")) {
		int rc = take_and(s, e);

		any = rc < 0 ? -1 : any || rc;
	}
	return any;
}

int marker_holds(const char *text, const struct marker_env *env, struct err *e)
{
	struct scan s = {.text = text, .at = text, .env = env};
	int rc;

	if (strlen(text) > MARKER_MAX)
		return bad(&s, e, "a shorter marker");
	rc = take_or(&s, e);
	if (rc >= 0 && *s.at)
		return bad(&s, e, "the end, 'and' or 'or'");
	return rc;
}

/* ---- requirements ---- */

static const char name_chars[] =
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

static char *take_name(struct scan *s, struct arena *a)
{
	size_t n = strspn(s->at, name_chars);
	const char *start = s->at;

	/* "name." is no name, and "name-" is none either */
	while (n > 0 && strchr("._-", s->at[n - 1]))
		n--;
	s->at += n;
	return python_name_normal(a, start, n);
}

static int take_extras(struct scan *s, struct arena *a, struct strings *out, struct err *e)
{
	out->v = arena_alloc(a, (strlen(s->at) + 1) * sizeof(char *));
	skip_blanks(s);
	if (take(s, "]"))
		return 0;
	do {
		skip_blanks(s);
		out->v[out->n] = take_name(s, a);
		if (!out->v[out->n++])
			return bad(s, e, "the name of an extra");
		skip_blanks(s);
	} while (take(s, ","));
	return take(s, "]") ? 0 : bad(s, e, "',' or ']'");
}

/* ">=1, <2", perhaps in parentheses: kept as text once every part was found well-formed. */
static int take_specifiers(struct scan *s, struct arena *a, const char **out, struct err *e)
{
	bool round = take(s, "(");
	size_t n = strcspn(s->at, round ? ");" : ";");

	*out = arena_strndup(a, s->at, n);
	if (pep440_fits("0", *out) < 0)
		return bad(s, e, "version specifiers, '@' or ';'");
	s->at += n;
	return round && !take(s, ")") ? bad(s, e, "')'") : 0;
}

int requirement_parse(struct requirement *r, struct arena *a, const char *text, struct err *e)
{
	struct scan s = {.text = text, .at = text};
	size_t n;

	*r = (struct requirement){.specifiers = ""};
	if (strlen(text) > MARKER_MAX)
		return bad(&s, e, "a shorter requirement");
	skip_blanks(&s);
	r->name = take_name(&s, a);
	if (!r->name)
		return bad(&s, e, "a package's name");
	skip_blanks(&s);
	if (take(&s, "[") && take_extras(&s, a, &r->extras, e) < 0)
		return -1;
	skip_blanks(&s);
	if (take(&s, "@")) {
		skip_blanks(&s);
		n = strcspn(s.at, " \t");
		if (n == 0)
			return bad(&s, e, "an address");
		r->url = arena_strndup(a, s.at, n);
		s.at += n;
	} else if (take_specifiers(&s, a, &r->specifiers, e) < 0) {
		return -1;
	}
	skip_blanks(&s);
	if (take(&s, ";")) {
		skip_blanks(&s);
		r->marker = arena_strdup(a, s.at);
		return *s.at ? 0 : bad(&s, e, "a marker");
	}
	return *s.at ? bad(&s, e, "the end or ';'") : 0;
}
