#include "builder/vars.h"

#include <regex.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "builder/rules.h"

enum {
	VARS_MAX = 1000,
	STRING_MAX = 1 << 20,
	ROOM = 8 << 20,
	VALUE_MAX = 32768,
};

/* ---- is a value one that its declaration allows? ---- */

static const char *type_of(const struct value *declared)
{
	const char *type = value_text_of(declared, "type");

	return type ? type : "string";
}

static bool has_type(const struct value *v, const char *type)
{
	if (str_eq(type, "integer"))
		return v->kind == JSON_INTEGER;
	if (str_eq(type, "boolean"))
		return v->kind == JSON_TRUE || v->kind == JSON_FALSE;
	return v->kind == JSON_STRING;
}

/* An expression that the tables refuse matches everything: they say so. */
static bool matches(const char *pattern, const char *text)
{
	regex_t re;
	bool ok;

	if (!rule_regex.ok(pattern) || regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB) != 0)
		return true;
	ok = regexec(&re, text, 0, NULL, 0) == 0;
	regfree(&re);
	return ok;
}

static const char *expected_choices(struct arena *a, const struct value *choices)
{
	auto_buf struct buf b = BUF_INIT(2 * (size_t)STRING_MAX);

	for (size_t i = 0; i < choices->n && b.len < 300; i++) {
		const char *text = value_as_text(a, choices->v[i]);

		buf_printf(&b, "%s%.64s",
			i                ? ", "
			: choices->n > 1 ? "one of "
					 : "",
			text ? text : "?");
	}
	return arena_strdup(a, b.data ? b.data : "");
}

static bool is_choice(struct arena *a, const struct value *choices, const char *text)
{
	for (size_t i = 0; i < choices->n; i++) {
		const char *choice = value_as_text(a, choices->v[i]);

		if (choice && str_eq(choice, text))
			return true;
	}
	return false;
}

/* What v would have to be instead, or NULL. */
static const char *wrong_value(
	struct arena *a, const struct value *declared, const struct value *v, const char *text)
{
	const struct value *choices = value_member(declared, "enum");
	const struct value *min = value_member(declared, "min"),
			   *max = value_member(declared, "max");
	const char *pattern = value_text_of(declared, "pattern");

	if (choices && choices->kind == JSON_ARRAY && choices->n <= SCHEMA_ITEMS &&
		!is_choice(a, choices, text))
		return expected_choices(a, choices);
	if (pattern && !matches(pattern, text))
		return arena_printf(a, "a text that matches %.128s", pattern);
	if (v->kind != JSON_INTEGER)
		return NULL;
	if (min && min->kind == JSON_INTEGER && v->integer < min->integer)
		return arena_printf(a, "at least %" JSON_INTEGER_FORMAT, min->integer);
	if (max && max->kind == JSON_INTEGER && v->integer > max->integer)
		return arena_printf(a, "at most %" JSON_INTEGER_FORMAT, max->integer);
	return NULL;
}

struct verdict {
	int code; /* 0: it is fine */
	const char *message, *expected;
};

static struct verdict judge(struct arena *a, const struct value *declared, const struct value *v)
{
	const char *type = type_of(declared), *text = value_as_text(a, v), *wrong;

	if (!has_type(v, type))
		return (struct verdict){SV_TYPE, "wrong type",
			str_eq(type, "integer")   ? "an integer"
			: str_eq(type, "boolean") ? "true or false"
						  : "a string"};
	if (strlen(text) > VALUE_MAX)
		return (struct verdict){SV_LIMIT, "longer than 32768 bytes", NULL};
	if (strstr(text, "${"))
		return (struct verdict){
			SV_VARIABLE, "a variable's value cannot name a variable", NULL};
	wrong = wrong_value(a, declared, v, text);
	return (struct verdict){wrong ? SV_VALUE : 0, "not a value of the variable", wrong};
}

/* Complains in v's document. */
static bool value_fits(struct arena *a, const struct value *declared, const struct value *v)
{
	struct verdict x = judge(a, declared, v);
	auto_json json_t *got = x.expected ? value_json(v) : NULL;

	if (x.code)
		value_fault(v, (struct fault){.code = x.code, .expected = x.expected, .got = got},
			"%s", x.message);
	return x.code == 0;
}

/* ---- who says what it is ---- */

/* The declared variable, or NULL. */
static const struct var *find_var(const struct vars *vars, const char *name)
{
	for (size_t i = 0; i < vars->n; i++)
		if (str_eq(vars->v[i].name, name))
			return &vars->v[i];
	return NULL;
}

static const char *nearest(const struct vars *vars, const char *name)
{
	const char **names = mem_array(vars->n + 1, sizeof(*names)), *near;

	for (size_t i = 0; i < vars->n; i++)
		names[i] = vars->v[i].name;
	near = str_nearest(name, names);
	free(names);
	return near;
}

static const struct value *from_text(struct arena *a, const char *type, const char *text)
{
	struct value *v = arena_alloc(a, sizeof(*v));
	json_t *number = NULL;

	v->kind = JSON_STRING;
	v->text = arena_strdup(a, text);
	if (str_eq(type, "boolean") && (str_eq(text, "true") || str_eq(text, "false")))
		v->kind = *text == 't' ? JSON_TRUE : JSON_FALSE;
	if (str_eq(type, "integer"))
		number = json_loads(text, JSON_DECODE_ANY, NULL);
	if (json_is_integer(number)) {
		v->kind = JSON_INTEGER;
		v->integer = json_integer_value(number);
	}
	json_decref(number);
	return v;
}

static int set_given(struct vars *vars, const struct pair *given, struct err *e)
{
	struct var *var = NULL;
	const struct value *v;
	struct verdict x;
	char shown[STR_SHOWN];

	for (size_t i = 0; i < vars->n; i++)
		if (str_eq(vars->v[i].name, given->name))
			var = &vars->v[i];
	if (!var) {
		const char *near = nearest(vars, given->name);

		err_set(e, ERR_USAGE, "--var %s: the manifest has no such variable",
			str_shown(given->name, shown));
		return near ? err_hint(e, "did you mean '%s'?", near) : -1;
	}
	if (!str_utf8(given->value, strlen(given->value)))
		return err_set(e, ERR_USAGE, "--var %s: its value is not UTF-8", var->name);
	v = from_text(vars->arena, type_of(var->declared), given->value);
	x = judge(vars->arena, var->declared, v);
	if (x.code)
		return err_set(e, ERR_USAGE, "--var %s: %s%s%s, got '%s'", var->name, x.message,
			x.expected ? "; expected " : "", x.expected ? x.expected : "",
			str_shown(given->value, shown));
	var->given = v;
	return 0;
}

/* Entries of the matrix that nobody asked for are checked, too. */
static void check_matrix(struct vars *vars, const struct value *matrix, const struct value *chosen)
{
	for (size_t i = 0; matrix && matrix->kind == JSON_ARRAY && i < matrix->n; i++) {
		const struct value *set = value_member(matrix->v[i], "vars");

		for (size_t k = 0; set && set->kind == JSON_OBJECT && k < set->n && k < VARS_MAX;
			k++) {
			const struct value *v = set->v[k];
			const struct var *var = find_var(vars, v->key);
			const char *near = var ? NULL : nearest(vars, v->key);

			if (!var)
				value_fault(v,
					(struct fault){.code = SV_VARIABLE,
						.at_key = true,
						.hint = near ? arena_printf(vars->arena,
								       "did you mean '%s'?", near)
							     : NULL},
					"unknown variable '%s'", v->key);
			else if (value_fits(vars->arena, var->declared, v) &&
				 matrix->v[i] == chosen)
				vars->v[var - vars->v].given = v;
		}
	}
}

static void check_default(struct vars *vars, struct var *var)
{
	const struct value *v = value_member(var->declared, "default");

	if (v && value_fits(vars->arena, var->declared, v))
		var->given = v;
}

int vars_init(struct vars *vars, struct arena *a, const struct value *root,
	const struct value *entry, const struct pairs *given, struct err *e)
{
	const struct value *list = value_member(root, "vars");

	*vars = (struct vars){.arena = a, .room = ROOM};
	if (list && list->kind == JSON_OBJECT && list->n <= VARS_MAX) {
		vars->v = arena_alloc(a, list->n * sizeof(*vars->v));
		for (size_t i = 0; i < list->n; i++)
			if (list->v[i]->kind == JSON_OBJECT)
				vars->v[vars->n++] =
					(struct var){list->v[i]->key, list->v[i], NULL};
	}
	for (size_t i = 0; i < vars->n; i++)
		check_default(vars, &vars->v[i]);
	check_matrix(vars, value_member(root, "matrix"), entry);
	for (size_t i = 0; given && i < given->n; i++)
		if (set_given(vars, &given->v[i], e) < 0)
			return -1;
	for (size_t i = 0; i < vars->n; i++)
		if (!vars->v[i].given && !value_member(vars->v[i].declared, "default"))
			value_fault(vars->v[i].declared,
				(struct fault){.code = SV_MISSING,
					.at_key = true,
					.expected = "'default', an entry of the matrix, or --var "
						    "NAME=VALUE"},
				"variable '%s' has no value", vars->v[i].name);
	return 0;
}

/* ---- expanding ---- */

static void unknown(struct vars *vars, struct value *v, const struct rule *rule, const char *at,
	const char *name)
{
	const char *near = nearest(vars, name);
	size_t n = strcspn(at, "}") + 1;

	value_fault(v,
		(struct fault){.code = SV_VARIABLE,
			.byte = (size_t)(at - v->text),
			.expected = vars->n ? "one of the manifest's vars, ${runtime:cpus}, "
					      "${runtime:gpus} or ${runtime:memMiB}"
					    : "${runtime:cpus}, ${runtime:gpus} or "
					      "${runtime:memMiB}",
			.hint = near ? arena_printf(vars->arena, "did you mean '%s'?", near)
				     : rule_variable_hint(rule)},
		"unknown variable '%.*s'", n > 64 ? 64 : (int)n, at);
}

/* The text that stands for the variable at p, which moves behind it; NULL when p is to stay as it
 * is, and *ok is false when that is a mistake. */
static const char *replacement(
	struct vars *vars, struct value *v, const struct rule *rule, const char **p, bool *ok)
{
	bool lenient = rule && rule->vars == VARS_TEXT;
	const char *end = strchr(*p, '}'), *text = "";
	char name[80] = "";
	const struct var *var = NULL;

	if (str_starts(*p, "${runtime:"))
		return NULL; /* schema.c knows where it may be */
	if (end && (size_t)(end - *p) - 2 < sizeof(name))
		memcpy(name, *p + 2, (size_t)(end - *p) - 2);
	var = *name ? find_var(vars, name) : NULL;
	if (!var && !lenient) {
		unknown(vars, v, rule, *p, name);
		*ok = false;
	}
	if (!var)
		return NULL;
	if (var->given)
		text = value_as_text(vars->arena, var->given);
	*p = end + 1;
	return text;
}

/* v is nothing but one variable: it gets its type. */
static bool take_type(struct vars *vars, struct value *v)
{
	size_t n = strlen(v->text);
	char name[80] = "";
	const struct var *var;

	if (n < 4 || n > sizeof(name) || !str_starts(v->text, "${") || v->text[n - 1] != '}')
		return false;
	memcpy(name, v->text + 2, n - 3);
	var = find_var(vars, name);
	if (!var || !var->given || var->given->kind == JSON_STRING)
		return false;
	v->kind = var->given->kind;
	v->integer = var->given->integer;
	v->expanded = true;
	return true;
}

static bool has_room(struct vars *vars, struct value *v, size_t len)
{
	if (len <= STRING_MAX && len <= vars->room)
		return true;
	value_fault(v, (struct fault){.code = SV_LIMIT}, "variables make it too long");
	return false;
}

static void expand_string(struct vars *vars, struct value *v, const struct rule *rule)
{
	auto_buf struct buf out = BUF_INIT(2 * (size_t)STRING_MAX + VALUE_MAX);
	bool joined = false, ok = true, changed = false;

	for (const char *p = v->text; *p;) {
		const char *text = str_starts(p, "${") ? replacement(vars, v, rule, &p, &ok) : NULL;
		size_t n = text ? strlen(text) : 1 + strcspn(p + 1, "$");

		changed = changed || text;
		buf_put(&out, text ? text : p, n);
		/* "$" from a variable before "{", or the other way round */
		joined =
			joined || (text && n && text[n - 1] == '$' && *p == '{') ||
			(text && text[0] == '{' && out.len > n && out.data[out.len - n - 1] == '$');
		p += text ? 0 : n;
		if (!has_room(vars, v, out.len))
			return;
	}
	if (joined)
		value_fault(v, (struct fault){.code = SV_VARIABLE},
			"variables cannot make up another variable");
	if (!changed || !ok)
		return;
	vars->room -= out.len;
	v->text = arena_strdup(vars->arena, out.data ? out.data : "");
	v->expanded = true;
}

static void expand(struct vars *vars, struct value *v, const struct key *k)
{
	for (size_t i = 0; (v->kind == JSON_OBJECT || v->kind == JSON_ARRAY) && i < v->n; i++) {
		struct key child = schema_child(k, v->v[i]->key);

		if (child.kind)
			expand(vars, v->v[i], &child);
	}
	if (v->kind != JSON_STRING || (k->rule && k->rule->vars == VARS_NEVER) ||
		!strstr(v->text, "${"))
		return;
	if (!schema_is_text(k) && take_type(vars, v))
		return;
	expand_string(vars, v, k->rule);
}

void vars_expand(struct vars *vars, struct value *root, const struct key *k)
{
	static const char *const never[] = {"$schema", "schema", "from", "vars", "matrix"};

	for (size_t i = 0; i < root->n; i++) {
		struct key child = schema_child(k, root->v[i]->key);
		bool skip = !child.kind;

		for (size_t x = 0; x < sizeof(never) / sizeof(never[0]); x++)
			skip = skip || str_eq(root->v[i]->key, never[x]);
		if (!skip)
			expand(vars, root->v[i], &child);
	}
}
