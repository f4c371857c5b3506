#include "base/str.h"

#include <ctype.h>

#include "base/json.h"

int str_copy(char *dst, size_t size, const char *src)
{
	size_t n = strnlen(src, size);

	if (n < size) {
		memcpy(dst, src, n + 1);
		return 0;
	}
	memcpy(dst, src, size - 1);
	dst[size - 1] = '\0';
	return -1;
}

bool str_starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_ends(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n >= m && str_eq(s + n - m, suffix);
}

int str_u64(const char *s, uint64_t max, uint64_t *v)
{
	uint64_t n = 0;

	if (!*s)
		return -1;
	for (; *s; s++) {
		uint64_t d = (uint64_t)(*s - '0');

		if (!isdigit((unsigned char)*s) || n > (max - d) / 10 || d > max)
			return -1;
		n = n * 10 + d;
	}
	*v = n;
	return 0;
}

int str_range(const char **s, uint64_t max, uint64_t *first, uint64_t *last)
{
	char *p;

	if (!*s)
		return 0;
	if (!isdigit((unsigned char)**s))
		return -1;
	*first = *last = strtoull(*s, &p, 10);
	if (*p == '-' && isdigit((unsigned char)p[1]))
		*last = strtoull(p + 1, &p, 10);
	if (*last < *first || *last > max || (*p && *p != ','))
		return -1;
	*s = *p ? p + 1 : NULL;
	return 1;
}

enum { NEAREST_MAX = 64 };

static size_t distance(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b), row[NEAREST_MAX + 1];

	if (n > NEAREST_MAX || m > NEAREST_MAX)
		return NEAREST_MAX;
	for (size_t j = 0; j <= m; j++)
		row[j] = j;
	for (size_t i = 1; i <= n; i++) {
		size_t diag = row[0];

		row[0] = i;
		for (size_t j = 1; j <= m; j++) {
			size_t best = diag + (a[i - 1] != b[j - 1]);

			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			diag = row[j];
			row[j] = best;
		}
	}
	return row[m];
}

const char *str_nearest(const char *s, const char *const *names)
{
	const char *best = NULL;
	size_t least = 3;

	for (; *names; names++) {
		size_t d = distance(s, *names);

		if (d < least && d * 2 < strlen(*names) + 1) {
			least = d;
			best = *names;
		}
	}
	return best;
}

void str_plain(char *s, const char *keep)
{
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s, next = (unsigned char)s[1];

		if (c == 0xc2 && next >= 0x80 && next < 0xa0) {
			*s++ = '?';
			*s = '?';
		} else if ((c < ' ' || c == 0x7f) && !strchr(keep, c)) {
			*s = '?';
		}
	}
}

const char *str_shown(const char *name, char out[STR_SHOWN])
{
	enum { SHOWN = STR_SHOWN - sizeof("...") };

	snprintf(out, STR_SHOWN, "%.*s%s", SHOWN, name,
		strnlen(name, SHOWN + 1) > SHOWN ? "..." : "");
	str_plain(out, "");
	return out;
}

bool str_utf8(const char *s, size_t n)
{
	auto_json json_t *j = memchr(s, '\0', n) ? NULL : json_stringn(s, n);

	return j != NULL;
}

/* The next number of *s: its digits without leading zeros (numbers may be longer than any type). */
static size_t next_number(const char **s, const char **digits)
{
	size_t n;

	*s += strspn(*s, "0");
	*digits = *s;
	n = strspn(*s, "0123456789");
	*s += n;
	if (**s == '.')
		++*s;
	else
		*s = ""; /* the end, whatever stands there */
	return n;
}

int str_version_compare(const char *a, const char *b)
{
	while (*a || *b) {
		const char *x, *y;
		size_t na = next_number(&a, &x), nb = next_number(&b, &y);
		int order = na == nb ? memcmp(x, y, na) : 0;

		if (na != nb)
			return na < nb ? -1 : 1;
		if (order)
			return order < 0 ? -1 : 1;
	}
	return 0;
}
