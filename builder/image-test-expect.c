/* What an output, an answer or a file's content must be. */
#include "builder/image-test.h"

#include <ctype.h>
#include <math.h>
#include <regex.h>
#include <stdio.h>

#include "base/json.h"
#include "base/str.h"

enum { QUOTED = 200, LINE_MAX_SEEN = 1024 };

/* ---- quoting ---- */

/* The beginning of a text, on one line; malloc'ed. */
static char *quoted(const char *text, size_t n)
{
	char *s = mem_alloc(2 * QUOTED + sizeof("..."));
	size_t len = n < QUOTED ? n : QUOTED, at = 0;

	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\n')
			s[at++] = '\\';
		s[at++] = text[i] == '\0' ? '?' : text[i] == '\n' ? 'n' : text[i];
	}
	s[at] = '\0';
	str_plain(s, "");
	if (n > len)
		memcpy(s + at, "...", sizeof("..."));
	return s;
}

/* ---- texts ---- */

bool test_matches(const char *regex, const char *text, size_t n)
{
	regmatch_t m = {.rm_so = 0, .rm_eo = (regoff_t)n};
	regex_t re;
	int rc;

	if (regcomp(&re, regex, REG_EXTENDED | REG_NEWLINE) != 0)
		return false;
	rc = regexec(&re, text, 1, &m, REG_STARTEND); /* the text may have NULs */
	regfree(&re);
	return rc == 0;
}

/* The same, or with a newline at its end: programs print one, people do not write it. */
static bool is_equal(const char *want, const char *text, size_t n)
{
	size_t len = strlen(want);

	return (n == len || (n == len + 1 && text[len] == '\n')) && memcmp(want, text, len) == 0;
}

/* Where a number begins in a line, or its end: "speed: -1.5 GB/s". */
static const char *find_number(const char *line)
{
	for (; *line; line++) {
		size_t sign = line[0] == '-' || line[0] == '+', dot = line[sign] == '.';

		if (isdigit((unsigned char)line[sign + dot]))
			break;
	}
	return line;
}

/* The first one of the last line. */
static char *check_number(double least, const char *text, size_t n)
{
	char line[LINE_MAX_SEEN], *end;
	const char *number;
	size_t from;
	double v;

	while (n && isspace((unsigned char)text[n - 1]))
		n--;
	for (from = n; from && text[from - 1] != '\n'; from--)
		;
	auto_free char *shown = quoted(text + from, n - from);
	snprintf(line, sizeof(line), "%.*s",
		(int)(n - from < LINE_MAX_SEEN ? n - from : LINE_MAX_SEEN), text + from);
	number = find_number(line);
	v = strtod(number, &end);
	if (end == number || !isfinite(v))
		return mem_printf("the last line is '%s', expected a number", shown);
	return v < least ? mem_printf("the number is %.6g, expected at least %g", v, least) : NULL;
}

char *test_check_text(const struct test_expect *x, const char *text, size_t n)
{
	auto_free char *shown = quoted(text, n);

	if (x->equals && !is_equal(x->equals, text, n)) {
		auto_free char *want = quoted(x->equals, strlen(x->equals));

		return mem_printf("it is '%s', expected '%s'", shown, want);
	}
	for (size_t i = 0; i < x->contains.n; i++)
		if (!memmem(text, n, x->contains.v[i], strlen(x->contains.v[i]))) {
			auto_free char *want = quoted(x->contains.v[i], strlen(x->contains.v[i]));

			return mem_printf("it does not contain '%s': '%s'", want, shown);
		}
	if (x->matches && !test_matches(x->matches, text, n))
		return mem_printf("it does not match /%s/: '%s'", x->matches, shown);
	return x->has_number_at_least ? check_number(x->number_at_least, text, n) : NULL;
}

/* ---- JSON ---- */

/* RFC 6901. NULL: there is nothing. */
static const json_t *at_pointer(const json_t *j, const char *pointer)
{
	auto_free char *token = mem_alloc(strlen(pointer) + 1);
	size_t size = strlen(pointer) + 1;
	uint64_t i;

	for (const char *p = pointer; j && *p;) {
		p = json_pointer_token(p, token, size);
		if (json_is_object(j))
			j = json_object_get(j, token);
		else if (json_is_array(j) && (token[0] != '0' || !token[1]) &&
			 str_u64(token, SIZE_MAX, &i) == 0)
			j = json_array_get(j, (size_t)i);
		else
			j = NULL;
	}
	return j;
}

static size_t characters(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

static size_t length_of(const json_t *v)
{
	if (json_is_string(v))
		return characters(json_string_value(v));
	return json_is_array(v) ? json_array_size(v) : json_object_size(v);
}

/* 1 and 1.0 are the same number. */
static bool is_same(const json_t *a, const json_t *b)
{
	if (json_is_number(a) && json_is_number(b) && json_typeof(a) != json_typeof(b))
		return json_number_value(a) == json_number_value(b);
	return json_equal(a, b);
}

static char *shown_value(const json_t *v)
{
	auto_free char *text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS);

	return text ? quoted(text, strlen(text)) : mem_strdup("?");
}

static char *check_value(const struct test_json *want, const json_t *v)
{
	const char *at = *want->pointer ? want->pointer : "the document";
	auto_free char *shown = v ? shown_value(v) : NULL;

	if (!v)
		return mem_printf("%s: there is no such value", at);
	if (want->equals && !is_same(want->equals, v)) {
		auto_free char *expected = shown_value(want->equals);

		return mem_printf("%s is %s, expected %s", at, shown, expected);
	}
	if (want->has_minimum && !json_is_number(v))
		return mem_printf("%s is %s, expected a number", at, shown);
	if (want->has_minimum && !(json_number_value(v) >= want->minimum))
		return mem_printf("%s is %s, expected at least %g", at, shown, want->minimum);
	if (want->has_min_length && !json_is_string(v) && !json_is_array(v) && !json_is_object(v))
		return mem_printf("%s is %s, which has no length", at, shown);
	if (want->has_min_length && length_of(v) < want->min_length)
		return mem_printf("%s has length %zu, expected at least %llu: %s", at, length_of(v),
			(unsigned long long)want->min_length, shown);
	return NULL;
}

char *test_check_json(const struct test_expect *x, const char *text, size_t n)
{
	struct err fault = {0};
	auto_json json_t *j = x->njson ? json_parse(text, n, &fault) : NULL;

	if (x->njson && !j) {
		auto_free char *shown = quoted(text, n);

		return mem_printf("it is not JSON (%.200s): '%s'", fault.text, shown);
	}
	for (size_t i = 0; i < x->njson; i++) {
		char *wrong = check_value(&x->json[i], at_pointer(j, x->json[i].pointer));

		if (wrong)
			return wrong;
	}
	return NULL;
}
