#include "builder/schema.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "builder/document.h"

enum { STRING_BYTES = 4096 };

void reader_fault(struct reader *r, const char *key, struct fault f, const char *fmt, ...)
{
	size_t len = r->pointer.len;
	char message[512];
	va_list ap;

	if (key)
		pointer_push(&r->pointer, key);
	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	f.pointer = r->pointer.data ? r->pointer.data : "";
	report_add(r->r, &f, "%s", message);
	pointer_pop(&r->pointer, len);
}

static void *field(void *out, size_t at)
{
	return (char *)out + at;
}

/* ---- strings ---- */

const char *schema_bad_variable(const char *s, bool keep_runtime)
{
	static const char *const known[] = {"cpus}", "gpus}", "memMiB}"};

	for (; (s = strstr(s, "${")); s += 2) {
		bool ok = false;

		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
			ok = ok || (str_starts(s, "${runtime:") && str_starts(s + 10, known[i]));
		if (!ok || !keep_runtime)
			return s;
	}
	return NULL;
}

static bool variables_ok(struct reader *r, const char *s, const struct rule *rule)
{
	bool keep = rule && rule->vars == VARS_RUNTIME;
	const char *bad = rule && rule->vars == VARS_TEXT ? NULL : schema_bad_variable(s, keep);
	int len;

	if (!bad)
		return true;
	len = (int)strcspn(bad, "}") + 1;
	if (!keep)
		reader_fault(r, NULL,
			(struct fault){.code = SV_VARIABLE, .byte = (size_t)(bad - s)},
			"variables are not supported here by this version");
	else
		reader_fault(r, NULL,
			(struct fault){.code = SV_VARIABLE,
				.byte = (size_t)(bad - s),
				.expected = "${runtime:cpus}, ${runtime:gpus} or ${runtime:memMiB}",
				.hint = "a shell's variable can be written without braces"},
			"unknown variable '%.*s'", len > 64 ? 64 : len, bad);
	return false;
}

/* Does s, which is the value v (or the name of a member), obey the rule? */
static bool string_ok(struct reader *r, const char *s, const json_t *v, const struct rule *rule)
{
	size_t max = rule && rule->max ? rule->max : STRING_BYTES;

	if (strlen(s) > max) {
		reader_fault(r, NULL, (struct fault){.code = SV_LIMIT, .at_key = !v},
			"longer than %zu bytes", max);
		return false;
	}
	if (!variables_ok(r, s, rule))
		return false;
	for (size_t i = 0; rule && rule->later && rule->later[i]; i++)
		if (str_starts(s, rule->later[i])) {
			reader_fault(r, NULL,
				(struct fault){.code = SV_LATER,
					.at_key = !v,
					.expected = rule->expected,
					.got = v},
				"'%s' is not supported by this version", rule->later[i]);
			return false;
		}
	if (!rule || !rule->ok || rule->ok(s))
		return true;
	reader_fault(r, NULL,
		(struct fault){.code = rule->code ? rule->code : SV_VALUE,
			.at_key = !v,
			.expected = rule->expected,
			.got = v},
		rule->code == SV_PATH ? "not a clean path"
		: v                   ? "not a valid value"
				      : "not a valid name");
	return false;
}

static void wrong_type(struct reader *r, const char *expected, const json_t *got)
{
	reader_fault(r, NULL, (struct fault){.code = SV_TYPE, .expected = expected, .got = got},
		"wrong type");
}

static const char *read_string(struct reader *r, const json_t *v, const struct rule *rule)
{
	if (!json_is_string(v))
		return wrong_type(r, "a string", v), NULL;
	if (!string_ok(r, json_string_value(v), v, rule))
		return NULL;
	return arena_strdup(r->arena, json_string_value(v));
}

/* ---- counts ---- */

static bool count_ok(struct reader *r, size_t n, const struct key *k)
{
	size_t max = k->max ? k->max : SCHEMA_ITEMS;

	if (n >= k->min && n <= max)
		return true;
	if (n > max)
		reader_fault(r, NULL, (struct fault){.code = SV_LIMIT}, "%zu items; at most %zu", n,
			max);
	else
		reader_fault(r, NULL, (struct fault){.code = SV_VALUE},
			"%zu items; at least %" PRIu64, n, k->min);
	return false;
}

static bool array_ok(struct reader *r, const json_t *v, const char *of, const struct key *k)
{
	if (json_is_array(v))
		return count_ok(r, json_array_size(v), k);
	wrong_type(r, of, v);
	return false;
}

/* ---- one function for each kind; out is the field, or NULL when it isn't kept ---- */

static void read_plain_string(struct reader *r, const struct key *k, const json_t *v, void *out)
{
	const char *s = read_string(r, v, k->rule);

	if (s && out)
		memcpy(out, &s, sizeof(s));
}

static void read_strings(struct reader *r, const struct key *k, const json_t *v, void *out)
{
	struct strings list = {0};

	if (!array_ok(r, v, "an array of strings", k))
		return;
	list.v = arena_alloc(r->arena, json_array_size(v) * sizeof(*list.v));
	for (size_t i = 0; i < json_array_size(v); i++) {
		size_t len = pointer_push_index(&r->pointer, i);
		const char *s = read_string(r, json_array_get(v, i), k->rule);

		if (s)
			list.v[list.n++] = s;
		pointer_pop(&r->pointer, len);
	}
	if (out)
		memcpy(out, &list, sizeof(list));
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct pair *)a)->name, ((const struct pair *)b)->name);
}

static void read_pairs(struct reader *r, const struct key *k, const json_t *cv, void *out)
{
	json_t *v = (json_t *)(uintptr_t)cv, *value;
	struct pairs list = {0};
	const char *name;

	if (!json_is_object(v)) {
		wrong_type(r, "an object of strings", v);
		return;
	}
	if (!count_ok(r, json_object_size(v), k))
		return;
	list.v = arena_alloc(r->arena, json_object_size(v) * sizeof(*list.v));
	json_object_foreach (v, name, value) {
		size_t len = pointer_push(&r->pointer, name);
		bool ok = string_ok(r, name, NULL, k->name_rule);
		const char *s = read_string(r, value, k->rule);

		if (ok && s)
			list.v[list.n++] = (struct pair){arena_strdup(r->arena, name), s};
		pointer_pop(&r->pointer, len);
	}
	if (list.n)
		qsort(list.v, list.n, sizeof(*list.v), by_name);
	if (out)
		memcpy(out, &list, sizeof(list));
}

static const char *choices_text(struct arena *a, const struct choice *c)
{
	char text[512] = "";
	size_t n = 0, choices = 0;

	for (size_t i = 0; c[i].name; i++)
		choices += !c[i].later;
	for (size_t i = 0; c[i].name; i++) {
		const char *sep = n ? ", " : choices > 1 ? "one of " : "";

		if (!c[i].later && n < sizeof(text))
			n += (size_t)snprintf(
				text + n, sizeof(text) - n, "%s\"%s\"", sep, c[i].name);
	}
	return arena_strdup(a, text);
}

static const struct choice *read_choice(struct reader *r, const struct key *k, const json_t *v)
{
	const char *s = json_string_value(v);

	for (const struct choice *c = k->choices; s && c->name; c++) {
		if (!str_eq(c->name, s))
			continue;
		if (!c->later)
			return c;
		reader_fault(r, NULL,
			(struct fault){
				.code = SV_LATER, .expected = choices_text(r->arena, k->choices)},
			"\"%s\" is not supported by this version", s);
		return NULL;
	}
	reader_fault(r, NULL,
		(struct fault){.code = s ? SV_VALUE : SV_TYPE,
			.expected = choices_text(r->arena, k->choices),
			.got = v},
		s ? "not one of the values" : "wrong type");
	return NULL;
}

static void read_word(struct reader *r, const struct key *k, const json_t *v, void *out)
{
	const struct choice *c = read_choice(r, k, v);

	if (c && out)
		memcpy(out, &c->name, sizeof(c->name));
}

static void read_enum(struct reader *r, const struct key *k, const json_t *v, void *out)
{
	const struct choice *c = read_choice(r, k, v);

	if (c && out)
		memcpy(out, &c->value, sizeof(c->value));
}

static void read_bool(struct reader *r, const struct key *k, const json_t *v, void *out)
{
	bool b = json_is_true(v);

	(void)k;
	if (!json_is_boolean(v))
		wrong_type(r, "true or false", v);
	else if (out)
		memcpy(out, &b, sizeof(b));
}

static void read_integer(struct reader *r, const struct key *k, const json_t *v, void *out)
{
	json_int_t n = json_integer_value(v);
	uint32_t narrow = (uint32_t)n;

	if (!json_is_integer(v)) {
		wrong_type(r, "an integer", v);
		return;
	}
	if (n < 0 || (uint64_t)n < k->min || (uint64_t)n > k->max) {
		reader_fault(r, NULL,
			(struct fault){.code = SV_VALUE,
				.expected = arena_printf(
					r->arena, "%" PRIu64 " to %" PRIu64, k->min, k->max),
				.got = v},
			"out of range");
		return;
	}
	if (out && k->width == sizeof(narrow))
		memcpy(out, &narrow, sizeof(narrow));
	else if (out)
		memcpy(out, &n, sizeof(n));
}

static void read_mode(struct reader *r, const struct key *k, const json_t *v, void *out)
{
	const char *s = json_string_value(v);
	uint32_t mode;

	(void)k;
	if (!s || strlen(s) != 4 || strspn(s, "01234567") != 4) {
		reader_fault(r, NULL,
			(struct fault){.code = s ? SV_VALUE : SV_TYPE,
				.expected = "a string of four octal digits, like \"0644\"",
				.got = v},
			s ? "not a mode" : "wrong type");
		return;
	}
	mode = (uint32_t)strtoul(s, NULL, 8);
	if (out)
		memcpy(out, &mode, sizeof(mode));
}

static void read_sha256(struct reader *r, const struct key *k, const json_t *v, void *out)
{
	static const struct digest zero;
	const char *s = json_string_value(v);
	struct digest d;

	(void)k;
	if (!s || digest_from_hex(&d, s) < 0) {
		reader_fault(r, NULL,
			(struct fault){.code = s ? SV_VALUE : SV_TYPE,
				.expected = "64 lower-case hex digits",
				.got = v},
			s ? "not a sha256" : "wrong type");
		return;
	}
	if (digest_eq(&d, &zero))
		reader_fault(r, NULL,
			(struct fault){
				.code = SV_PLACEHOLDER, .hint = "write the file's real sha256"},
			"an all-zero digest is a placeholder");
	else if (out)
		memcpy(out, &d, sizeof(d));
}

static void read_objects(struct reader *r, const struct key *k, const json_t *v, void *out)
{
	size_t n = json_array_size(v);
	char *items;

	if (!array_ok(r, v, "an array of objects", k))
		return;
	items = arena_alloc(r->arena, n * k->of->size);
	for (size_t i = 0; i < n; i++) {
		size_t len = pointer_push_index(&r->pointer, i);

		if (k->of->defaults)
			memcpy(items + i * k->of->size, k->of->defaults, k->of->size);
		schema_read(r, k->of, json_array_get(v, i), items + i * k->of->size);
		pointer_pop(&r->pointer, len);
	}
	memcpy(field(out, k->at), &items, sizeof(items));
	memcpy(field(out, k->count), &n, sizeof(n));
}

/* ---- objects ---- */

static void read_key(struct reader *r, const struct key *k, const json_t *v, void *out)
{
	static void (*const readers[])(
		struct reader *, const struct key *, const json_t *, void *) = {
		[V_STRING] = read_plain_string,
		[V_STRINGS] = read_strings,
		[V_PAIRS] = read_pairs,
		[V_WORD] = read_word,
		[V_ENUM] = read_enum,
		[V_BOOL] = read_bool,
		[V_INTEGER] = read_integer,
		[V_MODE] = read_mode,
		[V_SHA256] = read_sha256,
	};
	size_t len = pointer_push(&r->pointer, k->name);

	if (k->kind == V_OBJECT)
		schema_read(r, k->of, v, field(out, k->at));
	else if (k->kind == V_OBJECTS)
		read_objects(r, k, v, out);
	else
		readers[k->kind](r, k, v, k->keep ? field(out, k->at) : NULL);
	if (k->present)
		memcpy(field(out, k->present), &(bool){true}, sizeof(bool));
	pointer_pop(&r->pointer, len);
}

static bool listed(const char *const *names, const char *s)
{
	for (; names && *names; names++)
		if (str_eq(*names, s))
			return true;
	return false;
}

static void unknown_key(struct reader *r, const struct schema *s, const char *name)
{
	const char *names[64], *near;
	size_t n = 0;

	if (listed(s->later, name)) {
		reader_fault(r, name, (struct fault){.code = SV_LATER, .at_key = true},
			"key '%s' is not supported by this version", name);
		return;
	}
	for (const struct key *k = s->keys; k->name; k++) {
		assert(n < sizeof(names) / sizeof(names[0]) - 1);
		names[n++] = k->name;
	}
	names[n] = NULL;
	near = str_nearest(name, names);
	reader_fault(r, name,
		(struct fault){.code = SV_UNKNOWN,
			.at_key = true,
			.hint = near ? arena_printf(r->arena, "did you mean '%s'?", near) : NULL},
		"unknown key '%s'", name);
}

void schema_read(struct reader *r, const struct schema *s, const json_t *co, void *out)
{
	json_t *o = (json_t *)(uintptr_t)co, *v;
	const char *name;

	if (!json_is_object(o)) {
		wrong_type(r, "an object", o);
		return;
	}
	if (json_object_size(o) > SCHEMA_ITEMS) {
		reader_fault(r, NULL, (struct fault){.code = SV_LIMIT}, "%zu keys; at most %d",
			json_object_size(o), SCHEMA_ITEMS);
		return;
	}
	json_object_foreach (o, name, v) {
		const struct key *k = s->keys;

		while (k->name && !str_eq(k->name, name))
			k++;
		if (k->name)
			read_key(r, k, v, out);
		else if (!str_starts(name, "x-"))
			unknown_key(r, s, name);
	}
	for (const struct key *k = s->keys; k->name; k++)
		if (k->required && !json_object_get(o, k->name))
			reader_fault(r, k->name, (struct fault){.code = SV_MISSING},
				"missing key '%s'", k->name);
}
