#include "builder/toml.h"

#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "builder/toml-private.h"

enum {
	DEPTH_MAX = 64, /* of values, and of dotted keys */
	KEY_MAX = 1024,
};

/* How a table came to be decides who may add to it. Noted in the table itself under a key that the
 * language cannot have here (control characters in keys are refused), and taken out at the end. */
static const char kind_key[] = "\x01";
enum kind {
	KIND_IMPLICIT, /* on the way of a header: [a.b] makes a */
	KIND_HEADER,   /* [a] or [[a]] */
	KIND_DOTTED,   /* on the way of a key: a.b = 1 makes a */
	KIND_INLINE,   /* a = {} */
};

static int skip_comment(struct toml *s)
{
	if (toml_peek(s) != '#')
		return 0;
	while (s->at < s->end && *s->at != '\n' && !toml_starts(s, "\r\n")) {
		if (toml_is_control(*s->at))
			return toml_bad(s, "a control character in a comment");
		s->at++;
	}
	return 0;
}

/* Blanks, comments and line ends. */
static int skip_lines(struct toml *s)
{
	do {
		toml_skip_blanks(s);
		if (skip_comment(s) < 0)
			return -1;
	} while (toml_take_newline(s));
	return 0;
}

static enum kind kind_of(const json_t *table)
{
	return (enum kind)json_integer_value(json_object_get(table, kind_key));
}

static void set_kind(json_t *table, enum kind kind)
{
	json_object_set_new(table, kind_key, json_integer(kind));
}

static json_t *new_table(enum kind kind)
{
	json_t *t = json_object();

	set_kind(t, kind);
	return t;
}

/* ---- keys ---- */

static int take_key(struct toml *s, struct buf *key)
{
	toml_skip_blanks(s);
	key->len = 0;
	buf_put(key, "", 0);
	if (toml_peek(s) == '"' || toml_peek(s) == '\'') {
		if (toml_take_string(s, false, key) < 0)
			return -1;
	} else {
		if (!toml_is_bare(toml_peek(s)))
			return toml_bad(s, "expected a key");
		while (toml_is_bare(toml_peek(s)))
			buf_put(key, s->at++, 1);
	}
	if (key->len > KEY_MAX)
		return toml_bad(s, "a key that is too long");
	for (size_t i = 0; i < key->len; i++)
		if (toml_is_control(key->data[i]))
			return toml_bad(s, "a control character in a key");
	toml_skip_blanks(s);
	return 0;
}

/* The table that a header's path leads through: of an array of tables the last one. */
static json_t *step_header(struct toml *s, json_t *t, const char *key)
{
	json_t *next = json_object_get(t, key);

	if (!next) {
		next = new_table(KIND_IMPLICIT);
		json_object_set_new(t, key, next);
	}
	if (json_array_size(next))
		next = json_array_get(next, json_array_size(next) - 1);
	if (!json_is_object(next) || kind_of(next) == KIND_INLINE) {
		toml_bad(s, "a header within what is no open table");
		return NULL;
	}
	return next;
}

static json_t *step_dotted(struct toml *s, json_t *t, const char *key)
{
	json_t *next = json_object_get(t, key);

	if (!next) {
		next = new_table(KIND_DOTTED);
		json_object_set_new(t, key, next);
	}
	if (!json_is_object(next) || kind_of(next) != KIND_DOTTED) {
		toml_bad(s, "a dotted key within what is no open table");
		return NULL;
	}
	return next;
}

/* "a.b.c": the table of the last part is returned, the last part left in key. */
static json_t *take_path(struct toml *s, json_t *t, struct buf *key,
	json_t *(*step)(struct toml *, json_t *, const char *))
{
	unsigned depth = s->depth;

	if (take_key(s, key) < 0)
		return NULL;
	while (toml_take(s, ".")) {
		if (++depth > DEPTH_MAX) {
			toml_bad(s, "nested too deep");
			return NULL;
		}
		t = step(s, t, key->data);
		if (!t || take_key(s, key) < 0)
			return NULL;
	}
	return t;
}

/* ---- values ---- */

static json_t *take_value(struct toml *s);
static int take_pair(struct toml *s, json_t *table);

static json_t *take_array(struct toml *s)
{
	json_t *list = json_array();

	for (s->at++;;) {
		json_t *v;

		if (skip_lines(s) < 0)
			break;
		if (toml_take(s, "]"))
			return list;
		v = take_value(s);
		if (!v)
			break;
		json_array_append_new(list, v);
		if (skip_lines(s) < 0)
			break;
		if (!toml_take(s, ",") && toml_peek(s) != ']') {
			toml_bad(s, "expected ',' or ']'");
			break;
		}
	}
	json_decref(list);
	return NULL;
}

static json_t *take_inline(struct toml *s)
{
	json_t *t = new_table(KIND_INLINE);

	s->at++;
	toml_skip_blanks(s);
	if (toml_take(s, "}"))
		return t;
	while (take_pair(s, t) == 0) {
		toml_skip_blanks(s);
		if (toml_take(s, "}"))
			return t;
		if (!toml_take(s, ",")) {
			toml_bad(s, "expected ',' or '}'");
			break;
		}
	}
	json_decref(t);
	return NULL;
}

static json_t *take_text(struct toml *s)
{
	auto_buf struct buf text = BUF_INIT((size_t)(s->end - s->start) + 1);

	buf_put(&text, "", 0);
	return toml_take_string(s, true, &text) < 0 ? NULL : json_stringn(text.data, text.len);
}

static json_t *take_value(struct toml *s)
{
	char c = toml_peek(s);
	json_t *j;

	if (c == '"' || c == '\'')
		return take_text(s);
	if (c != '[' && c != '{')
		return toml_take_plain(s);
	if (++s->depth > DEPTH_MAX) {
		toml_bad(s, "nested too deep");
		return NULL;
	}
	j = c == '[' ? take_array(s) : take_inline(s);
	s->depth--;
	return j;
}

static int take_pair(struct toml *s, json_t *table)
{
	auto_buf struct buf key = BUF_INIT((size_t)(s->end - s->start) + 1);
	json_t *v;

	table = take_path(s, table, &key, step_dotted);
	if (!table)
		return -1;
	if (json_object_get(table, key.data))
		return toml_bad(s, "a key that is there already");
	if (!toml_take(s, "="))
		return toml_bad(s, "expected '='");
	toml_skip_blanks(s);
	v = take_value(s);
	if (!v)
		return -1;
	json_object_set_new(table, key.data, v);
	return 0;
}

/* ---- the document ---- */

static int take_header(struct toml *s)
{
	auto_buf struct buf key = BUF_INIT((size_t)(s->end - s->start) + 1);
	bool many = toml_take(s, "[[");
	json_t *t, *old;

	if (!many)
		s->at++;
	t = take_path(s, s->root, &key, step_header);
	if (!t)
		return -1;
	if (!toml_take(s, many ? "]]" : "]"))
		return toml_bad(s, many ? "expected ']]'" : "expected ']'");
	old = json_object_get(t, key.data);
	s->table = old;
	if (many) {
		if (old && kind_of(json_array_get(old, 0)) != KIND_HEADER)
			return toml_bad(s, "an array of tables that is something else already");
		if (!old) {
			old = json_array();
			json_object_set_new(t, key.data, old);
		}
		s->table = new_table(KIND_HEADER);
		json_array_append_new(old, s->table);
	} else if (!old) {
		s->table = new_table(KIND_HEADER);
		json_object_set_new(t, key.data, s->table);
	} else if (!json_is_object(old) || kind_of(old) != KIND_IMPLICIT) {
		return toml_bad(s, "a table that is there already");
	} else {
		set_kind(old, KIND_HEADER);
	}
	return 0;
}

static int take_document(struct toml *s)
{
	while (skip_lines(s) == 0) {
		if (s->at == s->end)
			return 0;
		if ((toml_peek(s) == '[' ? take_header(s) : take_pair(s, s->table)) < 0)
			return -1;
		toml_skip_blanks(s);
		if (skip_comment(s) < 0)
			return -1;
		if (s->at < s->end && !toml_take_newline(s))
			return toml_bad(s, "expected the end of the line");
	}
	return -1;
}

static void forget_kinds(json_t *j)
{
	const char *key;
	json_t *v;
	size_t i;

	json_object_del(j, kind_key);
	json_object_foreach (j, key, v)
		forget_kinds(v);
	json_array_foreach (j, i, v)
		forget_kinds(v);
}

json_t *toml_parse(const char *name, const char *text, size_t n, struct err *e)
{
	struct toml s = {.name = name, .start = text, .at = text, .end = text + n, .e = e};

	if (!str_utf8(text, n)) {
		err_set(e, ERR_CORRUPT, "%s:1:1: not UTF-8", name);
		return NULL;
	}
	s.root = s.table = new_table(KIND_HEADER);
	if (take_document(&s) < 0) {
		json_decref(s.root);
		return NULL;
	}
	forget_kinds(s.root);
	return s.root;
}
