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

static int printf_like(4, 0)
	fail(const struct at *a, enum err_kind kind, struct err *e, const char *fmt, va_list ap)
{
	char way[512], text[512];

	print_way(a, way, sizeof(way));
	vsnprintf(text, sizeof(text), fmt, ap);
	return err_set(e, kind, "%s%s%s", way, a->parent ? ": " : "", text);
}

int at_error(const struct at *a, struct err *e, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fail(a, ERR_CORRUPT, e, fmt, ap);
	va_end(ap);
	return -1;
}

int at_unsupported(const struct at *a, struct err *e, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fail(a, ERR_UNSUPPORTED, e, fmt, ap);
	va_end(ap);
	return -1;
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

static int check_absolute(const struct at *a, const char *s, struct err *e)
{
	if (s[0] != '/')
		return at_error(a, e, "expected an absolute path, got '%.200s'", s);
	return 0;
}

/* "0-3,5": what the kernel takes for CPUs and nodes, without its rarer forms. */
static bool is_ranges(const char *s)
{
	unsigned long from, to;
	char *end;

	for (;; s = end + 1) {
		if (*s < '0' || *s > '9')
			return false;
		from = to = strtoul(s, &end, 10);
		if (*end == '-') {
			s = end + 1;
			if (*s < '0' || *s > '9')
				return false;
			to = strtoul(s, &end, 10);
		}
		if (to < from || to > UINT16_MAX || (*end && *end != ','))
			return false;
		if (!*end)
			return true;
	}
}

static int read_string(const struct at *a, enum field_kind kind, const char **out, struct err *e)
{
	const char *s = at_string(a, e);

	if (!s)
		return -1;
	if (kind == FIELD_PATH && check_absolute(a, s, e) < 0)
		return -1;
	if (kind == FIELD_RANGES && *s && !is_ranges(s))
		return at_error(a, e, "expected a list such as 0-3,5, got '%.100s'", s);
	*out = *s || kind == FIELD_STR ? s : NULL;
	return 0;
}

static int read_unsigned(const struct at *a, uint64_t max, uint64_t *out, struct err *e)
{
	const char *s = json_string_value(a->v);

	if (json_is_integer(a->v) && json_integer_value(a->v) >= 0)
		*out = (uint64_t)json_integer_value(a->v);
	else if (!s || *s != FIELDS_BIG_MARK || str_u64(s + 1, UINT64_MAX, out) < 0)
		return at_error(a, e, "expected a non-negative integer");
	if (*out > max)
		return at_error(a, e, "%llu is greater than %llu", (unsigned long long)*out,
			(unsigned long long)max);
	return 0;
}

static int read_optional(const struct at *a, uint64_t max, struct opt_i64 *out, struct err *e)
{
	uint64_t u;

	if (read_unsigned(a, max, &u, e) < 0)
		return -1;
	*out = (struct opt_i64){true, (int64_t)u};
	return 0;
}

static int read_strings(
	const struct at *a, bool absolute, struct strings *out, struct arena *mem, struct err *e)
{
	size_t n = json_array_size(a->v);

	if (!json_is_array(a->v))
		return at_error(a, e, "expected an array of strings");
	if (n > FIELDS_ELEMENTS_MAX)
		return at_error(a, e, "more than %d elements", FIELDS_ELEMENTS_MAX);
	out->v = arena_alloc(mem, (n + 1) * sizeof(*out->v));
	out->n = n;
	for (size_t i = 0; i < n; i++) {
		const struct at el = {a, NULL, i, json_array_get(a->v, i)};

		out->v[i] = at_string(&el, e);
		if (!out->v[i] || (absolute && check_absolute(&el, out->v[i], e) < 0))
			return -1;
	}
	return 0;
}

static bool is_empty(const json_t *v)
{
	return json_is_false(v) || (json_is_string(v) && json_string_length(v) == 0) ||
	       (json_is_array(v) && json_array_size(v) == 0) ||
	       (json_is_object(v) && json_object_size(v) == 0) ||
	       (json_is_integer(v) && json_integer_value(v) == 0);
}

static int read_field(
	const struct at *a, const struct field *f, char *out, struct arena *mem, struct err *e)
{
	uint64_t u;

	switch (f->kind) {
	case FIELD_BOOL:
		if (!json_is_boolean(a->v))
			return at_error(a, e, "expected true or false");
		*(bool *)out = json_is_true(a->v);
		return 0;
	case FIELD_STR:
	case FIELD_OPT_STR:
	case FIELD_PATH:
	case FIELD_RANGES:
		return read_string(a, f->kind, (const char **)(void *)out, e);
	case FIELD_U32:
		if (read_unsigned(a, UINT32_MAX, &u, e) < 0)
			return -1;
		*(uint32_t *)(void *)out = (uint32_t)u;
		return 0;
	case FIELD_U64:
		return read_unsigned(a, UINT64_MAX, (uint64_t *)(void *)out, e);
	case FIELD_OPT_U63:
		return read_optional(a, INT64_MAX, (struct opt_i64 *)(void *)out, e);
	case FIELD_OPT_U32:
		return read_optional(a, UINT32_MAX, (struct opt_i64 *)(void *)out, e);
	case FIELD_OPT_I64:
		if (!json_is_integer(a->v))
			return at_error(a, e, "expected an integer");
		*(struct opt_i64 *)(void *)out =
			(struct opt_i64){true, (int64_t)json_integer_value(a->v)};
		return 0;
	case FIELD_STRS:
	case FIELD_PATHS:
		return read_strings(
			a, f->kind == FIELD_PATHS, (struct strings *)(void *)out, mem, e);
	case FIELD_READ:
		return f->read(a, out, mem, e);
	case FIELD_REFUSE:
		return is_empty(a->v) ? 0 : at_unsupported(a, e, "this runtime does not do it");
	}
	return -1;
}

int fields_read(
	const struct at *a, const struct field *table, void *base, struct arena *mem, struct err *e)
{
	if (!json_is_object(a->v))
		return at_error(a, e, "expected an object");
	for (const struct field *f = table; f->name; f++) {
		const struct at member = {a, f->name, 0, json_object_get(a->v, f->name)};

		if (!member.v || json_is_null(member.v)) {
			if (f->required)
				return at_error(a, e, "missing key '%s'", f->name);
			continue;
		}
		if (read_field(&member, f, (char *)base + f->off, mem, e) < 0)
			return -1;
	}
	return 0;
}

int fields_read_array(const struct at *a, size_t size, void *v, size_t *n,
	int (*read)(const struct at *a, void *out, struct arena *mem, struct err *e),
	struct arena *mem, struct err *e)
{
	size_t count = json_array_size(a->v);
	char *out;

	if (!json_is_array(a->v))
		return at_error(a, e, "expected an array");
	if (count > FIELDS_ELEMENTS_MAX)
		return at_error(a, e, "more than %d elements", FIELDS_ELEMENTS_MAX);
	out = arena_alloc(mem, count ? count * size : 1);
	*(void **)v = out;
	*n = count;
	for (size_t i = 0; i < count; i++) {
		const struct at el = {a, NULL, i, json_array_get(a->v, i)};

		if (read(&el, out + i * size, mem, e) < 0)
			return -1;
	}
	return 0;
}

const struct fields_word *fields_word(const struct fields_word *t, const char *name)
{
	for (; t->name; t++)
		if (str_eq(t->name, name))
			return t;
	return NULL;
}

int at_word(const struct at *a, const struct fields_word *t, uint64_t *out, struct err *e)
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

int at_words(const struct at *a, const struct fields_word *t, uint64_t *out, struct err *e)
{
	if (!json_is_array(a->v))
		return at_error(a, e, "expected an array");
	for (size_t i = 0; i < json_array_size(a->v); i++) {
		const struct at el = {a, NULL, i, json_array_get(a->v, i)};
		uint64_t v;

		if (at_word(&el, t, &v, e) < 0)
			return -1;
		*out |= v;
	}
	return 0;
}
