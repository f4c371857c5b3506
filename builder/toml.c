#include "builder/toml.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"

enum {
	DEPTH_MAX = 64, /* of values, and of dotted keys */
	NUMBER_MAX = 64,
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

struct scan {
	const char *name, *start, *at, *end;
	unsigned depth;
	json_t *root, *table; /* table: where "key = value" goes */
	struct err *e;
};

static int bad(const struct scan *s, const char *what)
{
	size_t line = 1;
	const char *first = s->start;

	for (const char *p = s->start; p < s->at; p++)
		if (*p == '\n') {
			line++;
			first = p + 1;
		}
	return err_set(s->e, ERR_CORRUPT, "%s:%zu:%zu: %s", s->name, line,
		(size_t)(s->at - first) + 1, what);
}

static char peek(const struct scan *s)
{
	return s->at < s->end ? *s->at : '\0';
}

static bool starts(const struct scan *s, const char *text)
{
	size_t n = strlen(text);

	return (size_t)(s->end - s->at) >= n && memcmp(s->at, text, n) == 0;
}

static bool take(struct scan *s, const char *text)
{
	if (!starts(s, text))
		return false;
	s->at += strlen(text);
	return true;
}

static void skip_blanks(struct scan *s)
{
	while (peek(s) == ' ' || peek(s) == '\t')
		s->at++;
}

static bool is_control(char c)
{
	return ((unsigned char)c < ' ' && c != '\t') || c == 0x7f;
}

static int skip_comment(struct scan *s)
{
	if (peek(s) != '#')
		return 0;
	while (s->at < s->end && *s->at != '\n' && !starts(s, "\r\n")) {
		if (is_control(*s->at))
			return bad(s, "a control character in a comment");
		s->at++;
	}
	return 0;
}

static bool take_newline(struct scan *s)
{
	return take(s, "\n") || take(s, "\r\n");
}

/* Blanks, comments and line ends. */
static int skip_lines(struct scan *s)
{
	do {
		skip_blanks(s);
		if (skip_comment(s) < 0)
			return -1;
	} while (take_newline(s));
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

/* ---- strings ---- */

static int add_character(struct scan *s, struct buf *out, unsigned long c)
{
	char utf8[4];
	size_t n = 0;

	if (c == 0 || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return bad(s, "an escape that is no character");
	if (c < 0x80) {
		utf8[n++] = (char)c;
	} else if (c < 0x800) {
		utf8[n++] = (char)(0xc0 | c >> 6);
	} else if (c < 0x10000) {
		utf8[n++] = (char)(0xe0 | c >> 12);
		utf8[n++] = (char)(0x80 | (c >> 6 & 63));
	} else {
		utf8[n++] = (char)(0xf0 | c >> 18);
		utf8[n++] = (char)(0x80 | (c >> 12 & 63));
		utf8[n++] = (char)(0x80 | (c >> 6 & 63));
	}
	if (c >= 0x80)
		utf8[n++] = (char)(0x80 | (c & 63));
	buf_put(out, utf8, n);
	return 0;
}

static int take_escape(struct scan *s, struct buf *out)
{
	static const char names[] = "btnfr\"\\", means[] = "\b\t\n\f\r\"\\";
	const char *known = peek(s) ? strchr(names, peek(s)) : NULL;
	size_t n = peek(s) == 'u' ? 4 : peek(s) == 'U' ? 8 : 0;
	char hex[9] = {0};

	if (known) {
		s->at++;
		buf_put(out, &means[known - names], 1);
		return 0;
	}
	if (n == 0 || (size_t)(s->end - s->at) <= n)
		return bad(s, "an unknown escape");
	memcpy(hex, s->at + 1, n);
	if (strspn(hex, "0123456789abcdefABCDEF") != n)
		return bad(s, "an unknown escape");
	s->at += n + 1;
	return add_character(s, out, strtoul(hex, NULL, 16));
}

/* A backslash at the end of a line: what is blank up to the next text goes. */
static bool take_line_end(struct scan *s)
{
	const char *at = s->at;

	skip_blanks(s);
	if (!take_newline(s)) {
		s->at = at;
		return false;
	}
	do
		skip_blanks(s);
	while (take_newline(s));
	return true;
}

/* Up to two quotes may stand before the three that end it. */
static bool take_end(struct scan *s, char quote, bool multi, struct buf *out)
{
	size_t n = 0;

	while (n < 5 && s->at + n < s->end && s->at[n] == quote)
		n++;
	if (!multi) {
		s->at += n > 0;
		return n > 0;
	}
	if (n < 3) {
		buf_put(out, s->at, n);
		s->at += n;
		return false;
	}
	buf_put(out, s->at, n - 3);
	s->at += n;
	return true;
}

static int take_string(struct scan *s, bool may_be_multi, struct buf *out)
{
	char quote = peek(s);
	bool multi = may_be_multi && starts(s, quote == '"' ? "\"\"\"" : "'''");

	s->at += multi ? 3 : 1;
	if (multi)
		(void)take_newline(s);
	while (s->at < s->end) {
		if (*s->at == quote) {
			if (take_end(s, quote, multi, out))
				return 0;
		} else if (*s->at == '\\' && quote == '"') {
			s->at++;
			if (!(multi && take_line_end(s)) && take_escape(s, out) < 0)
				return -1;
		} else if (multi && take_newline(s)) {
			buf_put(out, "\n", 1);
		} else if (is_control(*s->at)) {
			return bad(s, multi ? "a control character in a string"
					    : "a string that its line does not end");
		} else {
			buf_put(out, s->at++, 1);
		}
	}
	return bad(s, "a string without an end");
}

/* ---- keys ---- */

static bool is_bare(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-';
}

static int take_key(struct scan *s, struct buf *key)
{
	skip_blanks(s);
	key->len = 0;
	buf_put(key, "", 0);
	if (peek(s) == '"' || peek(s) == '\'') {
		if (take_string(s, false, key) < 0)
			return -1;
	} else {
		if (!is_bare(peek(s)))
			return bad(s, "expected a key");
		while (is_bare(peek(s)))
			buf_put(key, s->at++, 1);
	}
	if (key->len > KEY_MAX)
		return bad(s, "a key that is too long");
	for (size_t i = 0; i < key->len; i++)
		if (is_control(key->data[i]))
			return bad(s, "a control character in a key");
	skip_blanks(s);
	return 0;
}

/* The table that a header's path leads through: of an array of tables the last one. */
static json_t *step_header(struct scan *s, json_t *t, const char *key)
{
	json_t *next = json_object_get(t, key);

	if (!next) {
		next = new_table(KIND_IMPLICIT);
		json_object_set_new(t, key, next);
	}
	if (json_array_size(next))
		next = json_array_get(next, json_array_size(next) - 1);
	if (!json_is_object(next) || kind_of(next) == KIND_INLINE) {
		bad(s, "a header within what is no open table");
		return NULL;
	}
	return next;
}

static json_t *step_dotted(struct scan *s, json_t *t, const char *key)
{
	json_t *next = json_object_get(t, key);

	if (!next) {
		next = new_table(KIND_DOTTED);
		json_object_set_new(t, key, next);
	}
	if (!json_is_object(next) || kind_of(next) != KIND_DOTTED) {
		bad(s, "a dotted key within what is no open table");
		return NULL;
	}
	return next;
}

/* "a.b.c": the table of the last part is returned, the last part left in key. */
static json_t *take_path(struct scan *s, json_t *t, struct buf *key,
	json_t *(*step)(struct scan *, json_t *, const char *))
{
	unsigned depth = s->depth;

	if (take_key(s, key) < 0)
		return NULL;
	while (take(s, ".")) {
		if (++depth > DEPTH_MAX) {
			bad(s, "nested too deep");
			return NULL;
		}
		t = step(s, t, key->data);
		if (!t || take_key(s, key) < 0)
			return NULL;
	}
	return t;
}

/* ---- numbers and dates ---- */

/* Digits of this base, with single underscores between them. */
static bool digits(const char **s, const char *of, char *out, size_t *n)
{
	const char *p = *s;

	while (*p && (strchr(of, *p) || (*p == '_' && p > *s && p[-1] != '_'))) {
		if (*p != '_')
			out[(*n)++] = *p;
		p++;
	}
	if (p == *s || p[-1] == '_')
		return false;
	*s = p;
	return true;
}

static json_t *integer(const char *text, int base)
{
	char *end;
	long long v;

	errno = 0;
	v = strtoll(text, &end, base);
	return errno || *end ? NULL : json_integer(v);
}

static json_t *based(const char *t)
{
	static const struct {
		char letter;
		int base;
		const char *of;
	} bases[] = {{'x', 16, "0123456789abcdefABCDEF"}, {'o', 8, "01234567"}, {'b', 2, "01"}};
	char out[NUMBER_MAX + 1] = {0};
	size_t n = 0;

	for (size_t i = 0; i < 3; i++)
		if (t[1] == bases[i].letter) {
			const char *p = t + 2;

			return digits(&p, bases[i].of, out, &n) && !*p ? integer(out, bases[i].base)
								       : NULL;
		}
	return NULL;
}

static json_t *number(const char *t)
{
	static const char decimal[] = "0123456789";
	char out[NUMBER_MAX + 1] = {0};
	size_t n = 0, lead;
	bool real = false;

	if (t[0] == '0' && t[1] && strchr("xob", t[1]))
		return based(t);
	if (*t == '+' || *t == '-')
		out[n++] = *t++;
	lead = n;
	if (!digits(&t, decimal, out, &n) || (out[lead] == '0' && n > lead + 1))
		return NULL;
	if (*t == '.') {
		real = true;
		out[n++] = *t++;
		if (!digits(&t, decimal, out, &n))
			return NULL;
	}
	if (*t == 'e' || *t == 'E') {
		real = true;
		out[n++] = *t++;
		if (*t == '+' || *t == '-')
			out[n++] = *t++;
		if (!digits(&t, decimal, out, &n))
			return NULL;
	}
	if (*t)
		return NULL;
	return real ? json_real(strtod(out, NULL)) : integer(out, 10); /* NULL when infinite */
}

/* "9" is a digit; what may follow the seconds is checked apart. */
static bool like(const char *s, const char *pattern, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (pattern[i] == '9' ? s[i] < '0' || s[i] > '9' : s[i] != pattern[i])
			return false;
	return true;
}

static bool is_time(const char *t, bool zone)
{
	if (!like(t, "99:99:99", 8))
		return false;
	t += 8;
	if (*t == '.') {
		size_t n = strspn(t + 1, "0123456789");

		if (n == 0)
			return false;
		t += n + 1;
	}
	if (zone && (*t == '+' || *t == '-') && like(t + 1, "99:99", 5))
		t += 6;
	else if (zone && (*t == 'Z' || *t == 'z'))
		t++;
	return !*t;
}

static bool is_date_or_time(const char *t)
{
	if (!like(t, "9999-99-99", 10))
		return is_time(t, false);
	return !t[10] || (strchr("Tt ", t[10]) && is_time(t + 11, true));
}

static json_t *take_plain(struct scan *s)
{
	char text[NUMBER_MAX + 1];
	size_t n = 0;
	json_t *j = NULL;

	while (n < NUMBER_MAX && s->at + n < s->end &&
		(is_bare(s->at[n]) || strchr("+.:", s->at[n]) ||
			(s->at[n] == ' ' && n == 10 && s->at[4] == '-' && s->at + 11 < s->end &&
				s->at[11] >= '0' && s->at[11] <= '9')))
		n++;
	memcpy(text, s->at, n);
	text[n] = '\0';
	if (str_eq(text, "true") || str_eq(text, "false"))
		j = json_boolean(text[0] == 't');
	else if (n > 0 && is_date_or_time(text))
		j = json_string(text);
	else if (n > 0)
		j = number(text);
	if (!j)
		bad(s, "expected a value");
	else
		s->at += n;
	return j;
}

/* ---- values ---- */

static json_t *take_value(struct scan *s);
static int take_pair(struct scan *s, json_t *table);

static json_t *take_array(struct scan *s)
{
	json_t *list = json_array();

	for (s->at++;;) {
		json_t *v;

		if (skip_lines(s) < 0)
			break;
		if (take(s, "]"))
			return list;
		v = take_value(s);
		if (!v)
			break;
		json_array_append_new(list, v);
		if (skip_lines(s) < 0)
			break;
		if (!take(s, ",") && peek(s) != ']') {
			bad(s, "expected ',' or ']'");
			break;
		}
	}
	json_decref(list);
	return NULL;
}

static json_t *take_inline(struct scan *s)
{
	json_t *t = new_table(KIND_INLINE);

	s->at++;
	skip_blanks(s);
	if (take(s, "}"))
		return t;
	while (take_pair(s, t) == 0) {
		skip_blanks(s);
		if (take(s, "}"))
			return t;
		if (!take(s, ",")) {
			bad(s, "expected ',' or '}'");
			break;
		}
	}
	json_decref(t);
	return NULL;
}

static json_t *take_text(struct scan *s)
{
	auto_buf struct buf text = BUF_INIT((size_t)(s->end - s->start) + 1);

	buf_put(&text, "", 0);
	return take_string(s, true, &text) < 0 ? NULL : json_stringn(text.data, text.len);
}

static json_t *take_value(struct scan *s)
{
	char c = peek(s);
	json_t *j;

	if (c == '"' || c == '\'')
		return take_text(s);
	if (c != '[' && c != '{')
		return take_plain(s);
	if (++s->depth > DEPTH_MAX) {
		bad(s, "nested too deep");
		return NULL;
	}
	j = c == '[' ? take_array(s) : take_inline(s);
	s->depth--;
	return j;
}

static int take_pair(struct scan *s, json_t *table)
{
	auto_buf struct buf key = BUF_INIT((size_t)(s->end - s->start) + 1);
	json_t *v;

	table = take_path(s, table, &key, step_dotted);
	if (!table)
		return -1;
	if (json_object_get(table, key.data))
		return bad(s, "a key that is there already");
	if (!take(s, "="))
		return bad(s, "expected '='");
	skip_blanks(s);
	v = take_value(s);
	if (!v)
		return -1;
	json_object_set_new(table, key.data, v);
	return 0;
}

/* ---- the document ---- */

static int take_header(struct scan *s)
{
	auto_buf struct buf key = BUF_INIT((size_t)(s->end - s->start) + 1);
	bool many = take(s, "[[");
	json_t *t, *old;

	if (!many)
		s->at++;
	t = take_path(s, s->root, &key, step_header);
	if (!t)
		return -1;
	if (!take(s, many ? "]]" : "]"))
		return bad(s, many ? "expected ']]'" : "expected ']'");
	old = json_object_get(t, key.data);
	s->table = old;
	if (many) {
		if (old && kind_of(json_array_get(old, 0)) != KIND_HEADER)
			return bad(s, "an array of tables that is something else already");
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
		return bad(s, "a table that is there already");
	} else {
		set_kind(old, KIND_HEADER);
	}
	return 0;
}

static int take_document(struct scan *s)
{
	while (skip_lines(s) == 0) {
		if (s->at == s->end)
			return 0;
		if ((peek(s) == '[' ? take_header(s) : take_pair(s, s->table)) < 0)
			return -1;
		skip_blanks(s);
		if (skip_comment(s) < 0)
			return -1;
		if (s->at < s->end && !take_newline(s))
			return bad(s, "expected the end of the line");
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
	struct scan s = {.name = name, .start = text, .at = text, .end = text + n, .e = e};

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
