#include "runtime/fields.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/str.h"

/* Append "/key/0/..." from the root down to a. */
static void print_way(const struct at *a, char *out, size_t size)
{
	size_t n;

	if (!a->parent) {
		snprintf(out, size, "%s: ", a->key);
		return;
	}
	print_way(a->parent, out, size);
	n = strlen(out);
	if (a->key)
		snprintf(out + n, size - n, "/%.64s", a->key);
	else
		snprintf(out + n, size - n, "/%zu", a->index);
}

int at_fail(const struct at *a, enum err_kind kind, struct err *e, const char *fmt, ...)
{
	char way[512], text[512];
	va_list ap;

	print_way(a, way, sizeof(way));
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return err_set(e, kind, "%s%s%s", way, a->parent ? ": " : "", text);
}

const char *at_string(const struct at *a, struct err *e)
{
	size_t n = json_string_length(a->v);

	if (!json_is_string(a->v) || json_string_value(a->v)[0] == FIELDS_BIG_MARK)
		return at_error(a, e, "expected a string"), NULL;
	if (n > FIELDS_STRING_MAX)
		return at_error(a, e, "longer than %d bytes", FIELDS_STRING_MAX), NULL;
	if (strlen(json_string_value(a->v)) != n)
		return at_error(a, e, "contains a NUL character"), NULL;
	return json_string_value(a->v);
}

const struct fields_word *fields_word(const struct fields_word *t, const char *name)
{
	for (; t->name; t++)
		if (str_eq(t->name, name))
			return t;
	return NULL;
}

int at_word(const struct at *a, const struct fields_word *t, uint32_t *out, struct err *e)
{
	const char *s = at_string(a, e);
	const struct fields_word *w = s ? fields_word(t, s) : NULL;

	if (!s)
		return -1;
	if (!w)
		return at_unsupported(a, e, "unknown value '%.100s'", s);
	*out = w->value;
	return 0;
}

/* ---- values ---- */

/* "0-3,5": what the kernel takes for CPUs and nodes, without its rarer forms. */
static bool is_ranges(const char *s)
{
	uint64_t first, last;
	int rc;

	while ((rc = str_range(&s, UINT16_MAX, &first, &last)) > 0)
		;
	return rc == 0;
}

static int read_string(const struct at *a, const struct field *f, const char **out, struct err *e)
{
	bool optional =
		f->kind == FIELD_OPT_STR || f->kind == FIELD_OPT_PATH || f->kind == FIELD_RANGES;
	bool path = f->kind == FIELD_PATH || f->kind == FIELD_OPT_PATH || f->kind == FIELD_PATHS;
	const char *s = at_string(a, e);

	if (!s)
		return -1;
	*out = NULL;
	if (!*s && optional)
		return 0;
	if (path && s[0] != '/')
		return at_error(a, e, "expected an absolute path, got '%.200s'", s);
	if (f->kind == FIELD_RANGES && !is_ranges(s))
		return at_error(a, e, "expected a list such as 0-3,5, got '%.100s'", s);
	if (!*s && f->min && f->kind == FIELD_STR)
		return at_error(a, e, "empty");
	if (f->max && strlen(s) > (size_t)f->max)
		return at_error(a, e, "longer than %lld bytes", (long long)f->max);
	*out = s;
	return 0;
}

static int read_u64(const struct at *a, uint64_t *out, struct err *e)
{
	const char *s = json_string_value(a->v);

	*out = (uint64_t)json_integer_value(a->v);
	if (json_is_integer(a->v) && json_integer_value(a->v) >= 0)
		return 0;
	if (!s || *s != FIELDS_BIG_MARK || strlen(s) != FIELDS_BIG_SIZE ||
		strspn(s + 1, "0123456789abcdef") != FIELDS_BIG_SIZE - 1)
		return at_error(a, e, "expected a non-negative integer");
	*out = strtoull(s + 1, NULL, 16);
	return 0;
}

static int read_number(const struct at *a, const struct field *f, void *out, struct err *e)
{
	bool any = !f->max && f->kind != FIELD_U32;
	long long min = any ? INT64_MIN : f->min;
	long long max = f->max ? f->max : any ? INT64_MAX : UINT32_MAX;
	long long n = json_integer_value(a->v);

	if (!json_is_integer(a->v) || (min == 0 && n < 0))
		return at_error(a, e, "expected %s integer", min == 0 ? "a non-negative" : "an");
	if (min == 0 && n > max)
		return at_error(a, e, "%lld is greater than %lld", n, max);
	if (n < min && max == INT64_MAX)
		return at_error(a, e, "expected an integer, at least %lld", min);
	if (n < min || n > max)
		return at_error(a, e, "expected %lld to %lld", min, max);
	if (f->kind == FIELD_U32)
		*(uint32_t *)out = (uint32_t)n;
	else if (f->kind == FIELD_INT)
		*(int *)out = (int)n;
	else if (f->kind == FIELD_I64)
		*(int64_t *)out = n;
	else
		*(struct opt_i64 *)out = (struct opt_i64){true, n};
	return 0;
}

/* ---- arrays ---- */

static int read_element(const struct at *a, const struct field *f, void *out, struct err *e)
{
	uint32_t word;

	if (f->kind == FIELD_STRS || f->kind == FIELD_PATHS)
		return read_string(a, f, out, e);
	if (f->kind == FIELD_WORDS) {
		if (at_word(a, f->words, &word, e) < 0)
			return -1;
		*(uint32_t *)out |= word;
		return 0;
	}
	if (f->kind == FIELD_MAP)
		*(const char **)out = a->key;
	if (f->rows && fields_read(a, f->rows, out, e) < 0)
		return -1;
	return f->each ? f->each(a, out, e) : 0;
}

/* Elements stand one after the other in a list, or (size 0) all go to one place. */
static int read_list(const struct at *a, const struct field *f, void *out, struct err *e)
{
	size_t n = json_array_size(a->v) + json_object_size(a->v);
	size_t max = f->max ? (size_t)f->max : FIELDS_ELEMENTS_MAX;
	bool strings = f->kind == FIELD_STRS || f->kind == FIELD_PATHS;
	size_t size = strings ? sizeof(char *) : f->size;
	char *to = out;
	const char *key;
	json_t *v;

	if (f->kind == FIELD_MAP && (!json_is_object(a->v) || n > max))
		return at_error(a, e, "expected an object of at most %zu", max);
	if (f->kind != FIELD_MAP && !json_is_array(a->v))
		return at_error(a, e, "expected an array%s", strings ? " of strings" : "");
	if (n > max)
		return at_error(a, e, "more than %zu elements", max);
	if (!n && f->min)
		return at_error(a, e, "empty");
	if (size) {
		const struct {
			void *v;
			size_t n;
		} list = {arena_alloc(a->mem, (n + 1) * size), n};

		memcpy(out, &list, sizeof(list));
		to = list.v;
	}
	for (size_t i = 0; i < json_array_size(a->v); i++, to += size) {
		const struct at el = {a, NULL, i, json_array_get(a->v, i), a->mem};

		if (read_element(&el, f, to, e) < 0)
			return -1;
	}
	json_object_foreach (a->v, key, v) {
		const struct at member = {a, key, 0, v, a->mem};

		if (read_element(&member, f, to, e) < 0)
			return -1;
		to += size;
	}
	return 0;
}

/* ---- objects ---- */

static bool is_empty(const json_t *v)
{
	return json_is_false(v) || (json_is_string(v) && json_string_length(v) == 0) ||
	       (json_is_array(v) && json_array_size(v) == 0) ||
	       (json_is_object(v) && json_object_size(v) == 0) ||
	       (json_is_integer(v) && json_integer_value(v) == 0);
}

static int read_value(const struct at *a, const struct field *f, void *out, struct err *e)
{
	switch (f->kind) {
	case FIELD_BOOL:
		if (!json_is_boolean(a->v))
			return at_error(a, e, "expected true or false");
		*(bool *)out |= json_is_true(a->v); /* what has had several names is one member */
		return 0;
	case FIELD_STR:
	case FIELD_OPT_STR:
	case FIELD_PATH:
	case FIELD_OPT_PATH:
	case FIELD_RANGES:
		return read_string(a, f, out, e);
	case FIELD_U64:
		return read_u64(a, out, e);
	case FIELD_U32:
	case FIELD_INT:
	case FIELD_I64:
	case FIELD_OPT:
		return read_number(a, f, out, e);
	case FIELD_WORD:
		return at_word(a, f->words, out, e);
	case FIELD_OBJECT:
		if (f->given)
			*(bool *)out = true;
		return fields_read(a, f->rows, out, e);
	case FIELD_WORDS:
	case FIELD_STRS:
	case FIELD_PATHS:
	case FIELD_ARRAY:
	case FIELD_EACH:
	case FIELD_MAP:
		return read_list(a, f, out, e);
	case FIELD_READ:
		return 0;
	case FIELD_REFUSE:
		return is_empty(a->v) ? 0 : at_unsupported(a, e, "this runtime does not do it");
	}
	return -1;
}

int field_read(const struct at *a, const struct field *f, void *base, struct err *e)
{
	void *out = (char *)base + f->off;

	if (read_value(a, f, out, e) < 0)
		return -1;
	return f->check ? f->check(a, out, e) : 0;
}

int fields_read(const struct at *a, const struct field *rows, void *base, struct err *e)
{
	if (!json_is_object(a->v))
		return at_error(a, e, "expected an object");
	for (const struct field *f = rows; f->name; f++) {
		json_t *v = json_object_get(a->v, f->name);
		const struct at member = {a, f->name, 0, v, a->mem};

		if (!v || json_is_null(v)) {
			if (f->required)
				return at_error(a, e, "missing key '%s'", f->name);
			continue;
		}
		if (field_read(&member, f, base, e) < 0)
			return -1;
	}
	return 0;
}
