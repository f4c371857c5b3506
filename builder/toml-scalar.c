#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "builder/toml-private.h"

enum { NUMBER_MAX = 64 };

int toml_bad(const struct toml *s, const char *what)
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

char toml_peek(const struct toml *s)
{
	return s->at < s->end ? *s->at : '\0';
}

bool toml_starts(const struct toml *s, const char *text)
{
	size_t n = strlen(text);

	return (size_t)(s->end - s->at) >= n && memcmp(s->at, text, n) == 0;
}

bool toml_take(struct toml *s, const char *text)
{
	if (!toml_starts(s, text))
		return false;
	s->at += strlen(text);
	return true;
}

void toml_skip_blanks(struct toml *s)
{
	while (toml_peek(s) == ' ' || toml_peek(s) == '\t')
		s->at++;
}

bool toml_is_control(char c)
{
	return ((unsigned char)c < ' ' && c != '\t') || c == 0x7f;
}

bool toml_take_newline(struct toml *s)
{
	return toml_take(s, "\n") || toml_take(s, "\r\n");
}

bool toml_is_bare(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-';
}

/* ---- strings ---- */

static int add_character(struct toml *s, struct buf *out, unsigned long c)
{
	char utf8[4];
	size_t n = 0;

	if (c == 0 || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return toml_bad(s, "an escape that is no character");
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

static int take_escape(struct toml *s, struct buf *out)
{
	static const char names[] = "btnfr\"\\", means[] = "\b\t\n\f\r\"\\";
	const char *known = toml_peek(s) ? strchr(names, toml_peek(s)) : NULL;
	size_t n = toml_peek(s) == 'u' ? 4 : toml_peek(s) == 'U' ? 8 : 0;
	char hex[9] = {0};

	if (known) {
		s->at++;
		buf_put(out, &means[known - names], 1);
		return 0;
	}
	if (n == 0 || (size_t)(s->end - s->at) <= n)
		return toml_bad(s, "an unknown escape");
	memcpy(hex, s->at + 1, n);
	if (strspn(hex, "0123456789abcdefABCDEF") != n)
		return toml_bad(s, "an unknown escape");
	s->at += n + 1;
	return add_character(s, out, strtoul(hex, NULL, 16));
}

/* A backslash at the end of a line: what is blank up to the next text goes. */
static bool take_line_end(struct toml *s)
{
	const char *at = s->at;

	toml_skip_blanks(s);
	if (!toml_take_newline(s)) {
		s->at = at;
		return false;
	}
	do
		toml_skip_blanks(s);
	while (toml_take_newline(s));
	return true;
}

/* Up to two quotes may stand before the three that end it. */
static bool take_end(struct toml *s, char quote, bool multi, struct buf *out)
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

int toml_take_string(struct toml *s, bool may_be_multi, struct buf *out)
{
	char quote = toml_peek(s);
	bool multi = may_be_multi && toml_starts(s, quote == '"' ? "\"\"\"" : "'''");

	s->at += multi ? 3 : 1;
	if (multi)
		(void)toml_take_newline(s);
	while (s->at < s->end) {
		if (*s->at == quote) {
			if (take_end(s, quote, multi, out))
				return 0;
		} else if (*s->at == '\\' && quote == '"') {
			s->at++;
			if (!(multi && take_line_end(s)) && take_escape(s, out) < 0)
				return -1;
		} else if (multi && toml_take_newline(s)) {
			buf_put(out, "\n", 1);
		} else if (toml_is_control(*s->at)) {
			return toml_bad(s, multi ? "a control character in a string"
						 : "a string that its line does not end");
		} else {
			buf_put(out, s->at++, 1);
		}
	}
	return toml_bad(s, "a string without an end");
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

json_t *toml_take_plain(struct toml *s)
{
	char text[NUMBER_MAX + 1];
	size_t n = 0;
	json_t *j = NULL;

	while (n < NUMBER_MAX && s->at + n < s->end &&
		(toml_is_bare(s->at[n]) || strchr("+.:", s->at[n]) ||
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
		toml_bad(s, "expected a value");
	else
		s->at += n;
	return j;
}
