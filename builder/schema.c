#include "builder/schema-read.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "builder/document.h"
#include "builder/rules.h"

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

/* The first "${" in s that is not one of the runtime variables (keep_runtime), or NULL. */
static const char *bad_variable(const char *s, bool keep_runtime)
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
	const char *bad = rule && rule->vars >= VARS_TEXT ? NULL : bad_variable(s, keep);
	int len;

	if (!bad)
		return true;
	if (r->r->source && !str_starts(bad, "${runtime:"))
		return false; /* vars.h has said so */
	len = (int)strcspn(bad, "}") + 1;
	if (!keep)
		reader_fault(r, NULL,
			(struct fault){.code = SV_VARIABLE, .byte = (size_t)(bad - s)},
			"no variable of the start can stand here");
	else
		reader_fault(r, NULL,
			(struct fault){.code = SV_VARIABLE,
				.byte = (size_t)(bad - s),
				.expected = "${runtime:cpus}, ${runtime:gpus} or ${runtime:memMiB}",
				.hint = rule_variable_hint(rule)},
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

void reader_wrong_type(struct reader *r, const char *expected, const json_t *got)
{
	reader_fault(r, NULL, (struct fault){.code = SV_TYPE, .expected = expected, .got = got},
		"wrong type");
}

/* The text of v: its own, or that of a number or a boolean where the key takes one. */
static const char *text_of(struct reader *r, const struct key *k, const json_t *v)
{
	auto_free char *text = NULL;

	if (json_is_string(v) || !k->scalars || json_is_object(v) || json_is_array(v) ||
		json_is_null(v))
		return json_string_value(v);
	text = json_dumps(v, JSON_ENCODE_ANY);
	return arena_strdup(r->arena, text ? text : "");
}

static const char *read_string(struct reader *r, const json_t *v, const struct key *k)
{
	const char *s = text_of(r, k, v);

	if (!s)
		return reader_wrong_type(
			       r, k->scalars ? "a string, number or boolean" : "a string", v),
		       NULL;
	return string_ok(r, s, v, k->rule) ? arena_strdup(r->arena, s) : NULL;
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
	reader_wrong_type(r, of, v);
	return false;
}

/* ---- one function for each kind; out is the field, or NULL when it isn't kept ---- */

static void read_plain_string(struct reader *r, const struct key *k, const json_t *v, void *out)
{
	const char *s = read_string(r, v, k);

	if (s && out)
		memcpy(out, &s, sizeof(s));
}

static void read_strings(struct reader *r, const struct key *k, const json_t *v, void *out)
{
	struct strings list = {0};

	if (k->one && json_is_string(v)) {
		const char *s = read_string(r, v, k);

		if (s && out)
			memcpy(out, &(struct strings){arena_dup(r->arena, &s, sizeof(s)), 1},
				sizeof(list));
		return;
	}
	for (const struct choice *c = k->choices; c && c->name; c++)
		if (json_is_string(v) && str_eq(json_string_value(v), c->name))
			return;
	if (!array_ok(
		    r, v, k->choices ? "an array of strings, or a word" : "an array of strings", k))
		return;
	list.v = arena_alloc(r->arena, json_array_size(v) * sizeof(*list.v));
	for (size_t i = 0; i < json_array_size(v); i++) {
		size_t len = pointer_push_index(&r->pointer, i);
		const char *s = read_string(r, json_array_get(v, i), k);

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
		reader_wrong_type(r, "an object of strings", v);
		return;
	}
	if (!count_ok(r, json_object_size(v), k))
		return;
	list.v = arena_alloc(r->arena, json_object_size(v) * sizeof(*list.v));
	json_object_foreach (v, name, value) {
		size_t len = pointer_push(&r->pointer, name);
		bool ok = string_ok(r, name, NULL, k->name_rule);
		const char *s = read_string(r, value, k);

		if (ok && s)
			list.v[list.n++] = (struct pair){arena_strdup(r->arena, name), s};
		pointer_pop(&r->pointer, len);
	}
	if (list.n)
		qsort(list.v, list.n, sizeof(*list.v), by_name);
	if (out)
		memcpy(out, &list, sizeof(list));
}

static void read_integers(struct reader *r, const struct key *k, const json_t *v, void *out)
{
	const struct key of = {
		.kind = V_INTEGER, .min = k->min, .max = k->max, .width = sizeof(uint32_t)};
	size_t n = json_array_size(v);
	uint32_t *items;

	if (!array_ok(r, v, "an array of integers", &(struct key){0}))
		return;
	items = arena_alloc(r->arena, n * sizeof(*items));
	for (size_t i = 0; i < n; i++) {
		size_t len = pointer_push_index(&r->pointer, i);

		schema_read_scalar(r, &of, json_array_get(v, i), &items[i]);
		pointer_pop(&r->pointer, len);
	}
	memcpy(field(out, k->at), &items, sizeof(items));
	memcpy(field(out, k->count), &n, sizeof(n));
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

static int by_first_member(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void read_named(struct reader *r, const struct key *k, const json_t *cv, void *out)
{
	json_t *v = (json_t *)(uintptr_t)cv, *value;
	bool outer = r->partial;
	const char *name;
	char *items;
	size_t n = 0;

	if (!json_is_object(v)) {
		reader_wrong_type(r, "an object of objects", v);
		return;
	}
	if (!count_ok(r, json_object_size(v), k))
		return;
	items = arena_alloc(r->arena, json_object_size(v) * k->of->size);
	r->partial = outer || k->partial;
	json_object_foreach (v, name, value) {
		size_t len = pointer_push(&r->pointer, name);
		char *item = items + n * k->of->size;

		if (string_ok(r, name, NULL, k->name_rule)) {
			if (k->of->defaults)
				memcpy(item, k->of->defaults, k->of->size);
			memcpy(item, &(char *){arena_strdup(r->arena, name)}, sizeof(char *));
			schema_read(r, k->of, value, item);
			n++;
		}
		pointer_pop(&r->pointer, len);
	}
	r->partial = outer;
	if (n)
		qsort(items, n, k->of->size, by_first_member);
	memcpy(field(out, k->at), &items, sizeof(items));
	memcpy(field(out, k->count), &n, sizeof(n));
}

/* ---- objects ---- */

static void read_key(struct reader *r, const struct key *k, const json_t *v, void *out)
{
	size_t len = pointer_push(&r->pointer, k->name);
	void *kept = k->keep ? field(out, k->at) : NULL;

	if (k->kind == V_OBJECT)
		schema_read(r, k->of, v, field(out, k->at));
	else if (k->kind == V_OBJECTS)
		read_objects(r, k, v, out);
	else if (k->kind == V_NAMED)
		read_named(r, k, v, out);
	else if (k->kind == V_INTEGERS)
		read_integers(r, k, v, out);
	else if (k->kind == V_STRING)
		read_plain_string(r, k, v, kept);
	else if (k->kind == V_STRINGS)
		read_strings(r, k, v, kept);
	else if (k->kind == V_PAIRS)
		read_pairs(r, k, v, kept);
	else
		schema_read_scalar(r, k, v, kept);
	if (k->present_as)
		memcpy(field(out, k->present), &k->present_as, sizeof(int));
	else if (k->present)
		memcpy(field(out, k->present), &(bool){true}, sizeof(bool));
	pointer_pop(&r->pointer, len);
}

struct key schema_child(const struct key *k, const char *name)
{
	struct key child = {0};

	if (k->kind == V_OBJECT && name) {
		for (const struct key *of = k->of->keys; of->name; of++)
			if (str_eq(of->name, name))
				return *of;
	} else if (k->kind == V_JSON) {
		child = *k;
	} else if ((k->kind == V_OBJECTS && !name) || (k->kind == V_NAMED && name)) {
		child = (struct key){.kind = V_OBJECT, .of = k->of};
	} else if ((k->kind == V_STRINGS && !name) || (k->kind == V_PAIRS && name)) {
		child = *k;
		child.kind = V_STRING;
	} else if (k->kind == V_INTEGERS && !name) {
		child = *k;
		child.kind = V_INTEGER;
	}
	return child;
}

bool schema_is_text(const struct key *k)
{
	return k->kind == V_STRING || k->kind == V_STRINGS || k->kind == V_PAIRS ||
	       k->kind == V_WORD || k->kind == V_MODE;
}

static void unknown_key(struct reader *r, const struct schema *s, const char *name)
{
	const char *names[80], *near;
	size_t n = 0;

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
		reader_wrong_type(r, "an object", o);
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
		if (k->required && !r->partial && !json_object_get(o, k->name))
			reader_fault(r, k->name, (struct fault){.code = SV_MISSING},
				"missing key '%s'", k->name);
}
