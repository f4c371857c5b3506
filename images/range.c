#include "images/range.h"

#include <inttypes.h>
#include <strings.h>

#include "base/str.h"

static const char *blanks(const char *s)
{
	return s + strspn(s, " \t");
}

static const char *digits(const char *s, uint64_t *v)
{
	char text[21];
	size_t n = strspn(s, "0123456789");

	if (n == 0 || n >= sizeof(text))
		return NULL;
	memcpy(text, s, n);
	text[n] = '\0';
	return str_u64(text, UINT64_MAX, v) < 0 ? NULL : s + n;
}

/* "100-199" or "*" */
static const char *parse_part(struct range *r, const char *s)
{
	if (*s == '*')
		return s + 1;
	r->satisfied = true;
	s = digits(s, &r->first);
	if (!s || *s != '-')
		return NULL;
	s = digits(s + 1, &r->last);
	return s && r->last >= r->first ? s : NULL;
}

static const char *parse_total(struct range *r, const char *s)
{
	if (*s == '*')
		return r->satisfied ? s + 1 : NULL;
	r->has_total = true;
	s = digits(s, &r->total);
	return s && (!r->satisfied || r->total > r->last) ? s : NULL;
}

int range_parse(struct range *r, const char *s)
{
	struct range v = {0};

	s = blanks(s);
	if (strncasecmp(s, "bytes", 5) != 0 || blanks(s + 5) == s + 5)
		return -1;
	s = parse_part(&v, blanks(s + 5));
	if (!s || *s != '/')
		return -1;
	s = parse_total(&v, s + 1);
	if (!s || s[strspn(s, " \t\r\n")] != '\0')
		return -1;
	*r = v;
	return 0;
}

int range_header(struct range *r, const char *line, size_t n)
{
	static const char name[] = "content-range:";
	char text[256];

	if (n < sizeof(name) - 1 || strncasecmp(line, name, sizeof(name) - 1) != 0)
		return 0;
	if (n >= sizeof(text) || memchr(line, '\0', n))
		return -1;
	memcpy(text, line, n);
	text[n] = '\0';
	return range_parse(r, text + sizeof(name) - 1) < 0 ? -1 : 1;
}

char *range_print(const struct range *r, char out[RANGE_TEXT])
{
	char part[48] = "*", total[24] = "*";

	if (r->satisfied)
		snprintf(part, sizeof(part), "%" PRIu64 "-%" PRIu64, r->first, r->last);
	if (r->has_total)
		snprintf(total, sizeof(total), "%" PRIu64, r->total);
	snprintf(out, RANGE_TEXT, "bytes %s/%s", part, total);
	return out;
}

char *range_ask(uint64_t first, uint64_t last, char out[RANGE_TEXT])
{
	snprintf(out, RANGE_TEXT, "%" PRIu64 "-%" PRIu64, first, last);
	return out;
}
