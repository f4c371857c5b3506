#include "builder/control.h"

#include <string.h>
#include <strings.h>

struct slice slice_of(const char *text)
{
	return (struct slice){.p = text, .n = strlen(text)};
}

bool slice_eq(struct slice s, const char *text)
{
	return strlen(text) == s.n && memcmp(s.p, text, s.n) == 0;
}

bool slice_starts(struct slice s, const char *prefix)
{
	size_t n = strlen(prefix);

	return n <= s.n && memcmp(s.p, prefix, n) == 0;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

struct slice slice_trim(struct slice s)
{
	while (s.n > 0 && is_space(s.p[0])) {
		s.p++;
		s.n--;
	}
	while (s.n > 0 && is_space(s.p[s.n - 1]))
		s.n--;
	return s;
}

/* Cut at sep; the rest begins behind it. */
static bool cut(struct slice *text, char sep, struct slice *piece)
{
	const char *end;

	if (text->n == 0)
		return false;
	end = memchr(text->p, sep, text->n);
	*piece = (struct slice){.p = text->p, .n = end ? (size_t)(end - text->p) : text->n};
	text->p += piece->n;
	text->n -= piece->n;
	if (end) {
		text->p++;
		text->n--;
	}
	return true;
}

bool slice_line(struct slice *text, struct slice *line)
{
	return cut(text, '\n', line);
}

bool slice_piece(struct slice *text, char sep, struct slice *piece)
{
	if (!cut(text, sep, piece))
		return false;
	*piece = slice_trim(*piece);
	return true;
}

bool control_next(struct slice *text, struct slice *stanza)
{
	struct slice line;
	const char *start = NULL, *end = NULL;

	while (slice_line(text, &line)) {
		bool blank = slice_trim(line).n == 0;

		if (blank && start)
			break;
		if (!blank) {
			start = start ? start : line.p;
			end = line.p + line.n;
		}
	}
	if (!start)
		return false;
	*stanza = (struct slice){.p = start, .n = (size_t)(end - start)};
	return true;
}

static bool continues(struct slice line)
{
	return line.n > 0 && (line.p[0] == ' ' || line.p[0] == '\t');
}

struct slice control_field(struct slice stanza, const char *name)
{
	size_t n = strlen(name);
	struct slice line, value = {0};

	while (slice_line(&stanza, &line)) {
		if (value.p && !continues(line))
			break;
		if (value.p)
			value.n = (size_t)(line.p + line.n - value.p);
		else if (line.n > n && line.p[n] == ':' && strncasecmp(line.p, name, n) == 0)
			value = (struct slice){.p = line.p + n + 1, .n = line.n - n - 1};
	}
	return value.p ? slice_trim(value) : value;
}

char *control_str(struct arena *a, struct slice stanza, const char *name)
{
	struct slice v = control_field(stanza, name);

	return v.p ? arena_strndup(a, v.p, v.n) : NULL;
}

int control_check(struct slice text, struct err *e)
{
	struct slice line;
	bool first = true;

	if (memchr(text.p, '\0', text.n))
		return err_set(e, ERR_CORRUPT, "a zero byte");
	while (slice_line(&text, &line)) {
		const char *colon = memchr(line.p, ':', line.n);
		int shown = line.n < 60 ? (int)line.n : 60;

		if (continues(line) && !first && slice_trim(line).n > 0)
			continue;
		first = false;
		if (!colon || colon == line.p || memchr(line.p, ' ', (size_t)(colon - line.p)))
			return err_set(
				e, ERR_CORRUPT, "line '%.*s' has no field name", shown, line.p);
	}
	return 0;
}
