#include "builder/document.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"

/* ---- pointers ---- */

size_t pointer_push(struct buf *pointer, const char *key)
{
	size_t len = pointer->len;

	buf_put(pointer, "/", 1);
	for (; *key; key++) {
		if (*key == '~' || *key == '/')
			buf_put(pointer, *key == '~' ? "~0" : "~1", 2);
		else
			buf_put(pointer, key, 1);
	}
	return len;
}

size_t pointer_push_index(struct buf *pointer, size_t i)
{
	size_t len = pointer->len;

	buf_printf(pointer, "/%zu", i);
	return len;
}

void pointer_pop(struct buf *pointer, size_t len)
{
	pointer->len = len;
	if (pointer->data)
		pointer->data[len] = '\0';
}

/* ---- duplicate keys: a walk over text that jansson accepted ---- */

struct walk {
	const char *p;
	struct report *r;
	struct buf pointer;
};

static void skip_space(struct walk *w)
{
	while (isspace((unsigned char)*w->p))
		w->p++;
}

static void skip_string(struct walk *w)
{
	for (w->p++; *w->p != '"'; w->p++)
		if (*w->p == '\\')
			w->p++;
	w->p++;
}

static void walk_value(struct walk *w);

/* The key at w->p, which moves to its value. */
static json_t *walk_key(struct walk *w)
{
	const char *start = w->p;
	json_t *key;

	skip_string(w);
	key = json_loadb(start, (size_t)(w->p - start), JSON_DECODE_ANY, NULL);
	skip_space(w);
	w->p++; /* the colon */
	return key;
}

static void walk_object(struct walk *w)
{
	auto_json json_t *seen = json_object();

	w->p++;
	for (skip_space(w); *w->p == '"'; skip_space(w)) {
		const char *at = w->p;
		auto_json json_t *key = walk_key(w);
		const char *name = key ? json_string_value(key) : "";
		size_t len = pointer_push(&w->pointer, name);

		if (json_object_get(seen, name))
			report_add(w->r,
				&(struct fault){.code = SV_DUPLICATE,
					.pointer = w->pointer.data,
					.at = at,
					.hint = "only one of the two can be meant"},
				"duplicate key '%s'", name);
		json_object_set_new(seen, name, json_true());
		walk_value(w);
		pointer_pop(&w->pointer, len);
		skip_space(w);
		if (*w->p == ',')
			w->p++;
	}
	w->p++;
}

static void walk_array(struct walk *w)
{
	w->p++;
	skip_space(w);
	for (size_t i = 0; *w->p != ']'; i++) {
		size_t len = pointer_push_index(&w->pointer, i);

		walk_value(w);
		pointer_pop(&w->pointer, len);
		skip_space(w);
		if (*w->p == ',')
			w->p++;
		skip_space(w);
	}
	w->p++;
}

static void walk_value(struct walk *w)
{
	skip_space(w);
	if (*w->p == '{')
		walk_object(w);
	else if (*w->p == '[')
		walk_array(w);
	else if (*w->p == '"')
		skip_string(w);
	else
		while (*w->p && !strchr(",]} \t\r\n", *w->p))
			w->p++;
}

/* ---- parsing ---- */

/* The first bracket that is nested too deep, or NULL. Strings need not end. */
static const char *too_deep(const char *p, const char *end)
{
	size_t depth = 0;
	bool in = false;

	for (; p < end; p++) {
		if (*p == '"')
			in = !in;
		else if (in && *p == '\\')
			p++;
		else if (!in && (*p == '{' || *p == '['))
			depth++;
		else if (!in && (*p == '}' || *p == ']') && depth > 0)
			depth--;
		if (depth > DOCUMENT_DEPTH)
			return p;
	}
	return NULL;
}

/* jansson tells where the offending token ends: where does it start? */
static const char *token_start(const char *text, size_t end)
{
	size_t at = end;

	if (at > 1 && text[at - 1] == '"') {
		for (at--; at > 0; at--) {
			size_t slashes = 0;

			while (slashes < at - 1 && text[at - 2 - slashes] == '\\')
				slashes++;
			if (text[at - 1] == '"' && slashes % 2 == 0)
				return text + at - 1;
			if (text[at - 1] == '\n')
				break;
		}
		return text + end - 1;
	}
	while (at > 0 && (isalnum((unsigned char)text[at - 1]) || strchr("+-.", text[at - 1])))
		at--;
	if (at == end && at > 0)
		at--;
	return text + at;
}

static void syntax_error(struct report *r, const json_error_t *je)
{
	size_t end = je->position > 0 ? (size_t)je->position : 0;
	struct fault f = {.code = SV_SYNTAX};

	if (end > r->len)
		end = r->len;
	f.at = strstr(je->text, "end of file") ? r->text + r->len : token_start(r->text, end);
	if (json_error_code(je) == json_error_null_character)
		report_add(r, &f, "\\u0000 is not allowed");
	else if (str_starts(je->text, "'}' expected") || str_starts(je->text, "']' expected"))
		report_add(r, &f, "',' or %s", je->text);
	else
		report_add(r, &f, "%s", je->text);
}

int document_parse(struct json_doc *d, const char *name, const void *p, size_t n,
	size_t max_complaints, struct report *r)
{
	const char *deep;
	json_error_t je;

	*d = (struct json_doc){.name = mem_strdup(name), .text = BUF_INIT(n)};
	buf_put(&d->text, p, n);
	report_init(r, d->name, d->text.data, n, max_complaints);
	deep = too_deep(r->text, r->text + n);
	if (deep) {
		report_add(r, &(struct fault){.code = SV_LIMIT, .at = deep},
			"nested more than %d deep", DOCUMENT_DEPTH);
		return -1;
	}
	d->root = json_loadb(r->text, n, JSON_REJECT_DUPLICATES, &je);
	if (!d->root && json_error_code(&je) == json_error_duplicate_key) {
		struct walk w = {.p = r->text, .r = r, .pointer = BUF_INIT(2 * n + 4096)};

		d->root = json_loadb(r->text, n, 0, &je);
		if (d->root)
			walk_value(&w);
		buf_fini(&w.pointer);
	}
	if (!d->root) {
		syntax_error(r, &je);
		return -1;
	}
	r->doc = d;
	return 0;
}
