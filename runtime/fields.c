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

	if (!json_is_string(a->v))
		return at_error(a, e, "expected a string"), NULL;
	if (n > FIELDS_STRING_MAX)
		return at_error(a, e, "longer than %d bytes", FIELDS_STRING_MAX), NULL;
	if (strlen(json_string_value(a->v)) != n)
		return at_error(a, e, "contains a NUL character"), NULL;
	return json_string_value(a->v);
}

static int read_string(const struct at *a, bool absolute, const char **out, struct err *e)
{
	*out = at_string(a, e);
	if (!*out)
		return -1;
	if (absolute && (*out)[0] != '/')
		return at_error(a, e, "expected an absolute path, got '%.200s'", *out);
	return 0;
}

static int read_unsigned(const struct at *a, uint64_t max, uint64_t *out, struct err *e)
{
	if (!json_is_integer(a->v) || json_integer_value(a->v) < 0)
		return at_error(a, e, "expected a non-negative integer");
	*out = (uint64_t)json_integer_value(a->v);
	if (*out > max)
		return at_error(a, e, "%llu is greater than %llu", (unsigned long long)*out,
			(unsigned long long)max);
	return 0;
}

static int read_strings(const struct at *a, struct strings *out, struct arena *mem, struct err *e)
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
		if (!out->v[i])
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
	case FIELD_PATH:
		return read_string(a, f->kind == FIELD_PATH, (const char **)(void *)out, e);
	case FIELD_U32:
		if (read_unsigned(a, UINT32_MAX, &u, e) < 0)
			return -1;
		*(uint32_t *)(void *)out = (uint32_t)u;
		return 0;
	case FIELD_U64:
		return read_unsigned(a, INT64_MAX, (uint64_t *)(void *)out, e);
	case FIELD_OPT_I64:
		if (!json_is_integer(a->v))
			return at_error(a, e, "expected an integer");
		*(struct opt_i64 *)(void *)out =
			(struct opt_i64){true, (int64_t)json_integer_value(a->v)};
		return 0;
	case FIELD_STRS:
		return read_strings(a, (struct strings *)(void *)out, mem, e);
	case FIELD_READ:
		return f->read(a, out, mem, e);
	case FIELD_REFUSE:
		return is_empty(a->v) ? 0 : at_unsupported(a, e, "not supported by this version");
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
