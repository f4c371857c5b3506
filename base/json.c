#include "base/json.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"

enum { DEPTH_MAX = 64 };

void json_decref_ref(json_t **j)
{
	json_decref(*j);
}

/* ---- a text that nobody has parsed yet, and that may be anything ---- */

static const char *past_space(const char *p, const char *end)
{
	while (p < end && isspace((unsigned char)*p))
		p++;
	return p;
}

/* Behind the string at p; NULL when it does not end. */
static const char *past_string(const char *p, const char *end)
{
	for (p++; p < end; p++)
		if (*p == '"')
			return p + 1;
		else if (*p == '\\')
			p++;
	return NULL;
}

/* Behind the value at p, as far as brackets and quotes tell; NULL when it does not end. *deepest
 * (unless NULL): how deep its brackets nest. */
static const char *past_value(const char *p, const char *end, size_t *deepest)
{
	size_t depth = 0;

	while (p && p < end) {
		if (*p == '"') {
			p = past_string(p, end);
			if (depth == 0)
				return p;
		} else if (*p == '{' || *p == '[') {
			depth++;
			p++;
			if (deepest && depth > *deepest)
				*deepest = depth;
		} else if (*p == '}' || *p == ']') {
			if (depth <= 1)
				return depth ? p + 1 : p;
			depth--;
			p++;
		} else if (depth == 0 && (*p == ',' || isspace((unsigned char)*p))) {
			return p;
		} else {
			p++;
		}
	}
	return NULL;
}

/* Is the string from p to end this key? jansson decodes the few that have escapes. */
static bool is_key(const char *p, const char *end, const char *key)
{
	size_t n = (size_t)(end - p);
	bool same = n == strlen(key) + 2 && memcmp(p + 1, key, n - 2) == 0;

	if (!same && memchr(p, '\\', n)) {
		auto_json json_t *s = json_loadb(p, n, JSON_DECODE_ANY, NULL);

		same = s && strcmp(json_string_value(s), key) == 0;
	}
	return same;
}

/* The value of the member `key` of the object at p, or of element number `key` of the array; NULL:
 * there is none. *name: where the key stands, NULL for an element. */
static const char *child(const char *p, const char *end, const char *key, const char **name)
{
	bool object = p < end && *p == '{', found;
	unsigned long i = strtoul(key, NULL, 10);

	if (!object && (p >= end || *p != '['))
		return NULL;
	do {
		p = past_space(p + 1, end);
		*name = object ? p : NULL;
		found = !object && i-- == 0;
		if (object) {
			p = p < end && *p == '"' ? past_string(p, end) : NULL;
			found = p && is_key(*name, p, key);
			p = p ? past_space(p, end) : end;
			if (p >= end || *p != ':')
				return NULL;
			p = past_space(p + 1, end);
		}
		if (found)
			return p < end && *p != ']' ? p : NULL;
		p = past_value(p, end, NULL);
		p = p ? past_space(p, end) : end;
	} while (p < end && *p == ',');
	return NULL;
}

bool json_find(
	const char *text, size_t n, const char *const *keys, const char **from, const char **to)
{
	const char *end = text + n, *p = past_space(text, end), *name;

	for (; p && *keys; keys++)
		p = p < end && *p == '{' ? child(p, end, *keys, &name) : NULL;
	*from = p;
	*to = p ? past_value(p, end, NULL) : NULL;
	return *to != NULL;
}

const char *json_pointer_token(const char *p, char *out, size_t size)
{
	size_t n = 0;

	for (p++; *p && *p != '/'; p++) {
		char c = *p;

		if (c == '~' && (p[1] == '0' || p[1] == '1'))
			c = *++p == '0' ? '~' : '/';
		if (n + 1 < size)
			out[n++] = c;
	}
	out[n] = '\0';
	return p;
}

void json_doc_locate(
	const struct json_doc *d, const char *pointer, bool at_key, int *line, int *col)
{
	const char *text = d->text.data, *end = text + d->text.len, *at = past_space(text, end);
	const char *name = NULL;
	char part[512];

	while (*pointer == '/') {
		const char *next, *k;

		pointer = json_pointer_token(pointer, part, sizeof(part));
		next = child(at, end, part, &k);
		if (!next)
			break;
		at = next;
		name = k;
	}
	if (at_key && name)
		at = name;
	*line = *col = 1;
	for (; text < at; text++, ++*col)
		if (*text == '\n') {
			++*line;
			*col = 0;
		}
}

/* ---- documents ---- */

static json_t *parse(const char *name, const void *p, size_t n, struct err *e)
{
	const char *text = p, *end = text + n;
	json_error_t je;
	size_t deepest = 0;
	json_t *j;

	past_value(past_space(text, end), end, &deepest);
	if (deepest > DEPTH_MAX)
		return err_set(e, ERR_CORRUPT, "%s: nested more than %d deep", name, DEPTH_MAX),
		       NULL;
	j = json_loadb(p, n, JSON_REJECT_DUPLICATES, &je);
	if (!j)
		err_set(e, ERR_CORRUPT, "%s:%d:%d: %s", name, je.line < 1 ? 1 : je.line,
			je.column < 1 ? 1 : je.column, je.text);
	return j;
}

json_t *json_parse(const void *p, size_t n, struct err *e)
{
	return parse("json", p, n, e);
}

int json_doc_parse(struct json_doc *d, const char *name, const void *p, size_t n, struct err *e)
{
	*d = (struct json_doc){.name = mem_strdup(name), .text = BUF_INIT(n)};
	buf_put(&d->text, p, n);
	d->root = parse(name, d->text.data, n, e);
	if (d->root)
		return 0;
	json_doc_fini(d);
	return -1;
}

int json_doc_load(struct json_doc *d, int dirfd, const char *path, size_t max, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(max);

	*d = (struct json_doc){0};
	return file_read(dirfd, path, &text, e) < 0
		       ? -1
		       : json_doc_parse(d, path, text.data, text.len, e);
}

void json_doc_fini(struct json_doc *d)
{
	json_decref(d->root);
	buf_fini(&d->text);
	free(d->name);
	*d = (struct json_doc){0};
}

/* ---- access ---- */

static int missing(const char *key, const char *type, const json_t *v, struct err *e)
{
	if (!v)
		return err_set(e, ERR_CORRUPT, "missing key '%s'", key);
	return err_set(e, ERR_CORRUPT, "key '%s': expected %s", key, type);
}

const char *json_str(const json_t *o, const char *key, struct err *e)
{
	const json_t *v = json_object_get(o, key);

	if (!json_is_string(v) || strlen(json_string_value(v)) != json_string_length(v))
		return missing(key, "a string", v, e), NULL;
	return json_string_value(v);
}

int json_str_opt(const json_t *o, const char *key, const char **v, struct err *e)
{
	*v = NULL;
	if (!json_object_get(o, key))
		return 0;
	*v = json_str(o, key, e);
	return *v ? 0 : -1;
}

int json_u64(const json_t *o, const char *key, uint64_t max, uint64_t *v, struct err *e)
{
	const json_t *n = json_object_get(o, key);

	if (!json_is_integer(n) || json_integer_value(n) < 0 ||
		(uint64_t)json_integer_value(n) > max)
		return missing(key, "an integer within limits", n, e);
	*v = (uint64_t)json_integer_value(n);
	return 0;
}

json_t *json_array_of(const json_t *o, const char *key, struct err *e)
{
	json_t *v = json_object_get(o, key);

	return json_is_array(v) ? v : (missing(key, "an array", v, e), NULL);
}

json_t *json_object_of(const json_t *o, const char *key, struct err *e)
{
	json_t *v = json_object_get(o, key);

	return json_is_object(v) ? v : (missing(key, "an object", v, e), NULL);
}

int json_bool_opt(const json_t *o, const char *key, bool def, bool *v, struct err *e)
{
	const json_t *b = json_object_get(o, key);

	*v = b ? json_is_true(b) : def;
	return !b || json_is_boolean(b) ? 0 : missing(key, "true or false", b, e);
}

static int dump(const char *p, size_t n, void *b)
{
	buf_put(b, p, n);
	return 0;
}

void json_text(const json_t *j, bool compact, struct buf *b)
{
	size_t flags = JSON_SORT_KEYS | JSON_ENCODE_ANY | (compact ? JSON_COMPACT : JSON_INDENT(2));
	int rc;

	b->len = 0;
	rc = json_dump_callback(j, dump, b, flags);
	assert(rc == 0);
	if (!compact)
		buf_put(b, "\n", 1);
}

static int dump_bounded(const char *p, size_t n, void *b)
{
	return buf_add(b, p, n, NULL);
}

int json_text_bounded(const json_t *j, struct buf *b, struct err *e)
{
	b->len = 0;
	if (json_dump_callback(
		    j, dump_bounded, b, JSON_SORT_KEYS | JSON_ENCODE_ANY | JSON_COMPACT) == 0)
		return 0;
	return err_set(e, ERR_CORRUPT, "a document of more than the limit of %zu bytes", b->max);
}
