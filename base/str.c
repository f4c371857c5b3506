#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <strings.h>

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

int str_bytes(const char *s, uint64_t *v)
{
	static const char units[] = "bkmgt";
	const char *unit;
	char *end;
	double n, factor = 1;

	if (!isdigit((unsigned char)*s))
		return -1;
	errno = 0;
	n = strtod(s, &end);
	if (errno || !isfinite(n) || (size_t)(end - s) != strspn(s, "0123456789."))
		return -1; /* strtod alone takes 1e3 and 0x10 */
	if (*end) {
		unit = strchr(units, tolower((unsigned char)*end));
		if (!unit || !*unit)
			return -1;
		for (; unit > units; unit--)
			factor *= 1024;
		end++;
		if (*end && strcasecmp(end, "b") != 0 && strcasecmp(end, "ib") != 0)
			return -1;
	}
	if (n * factor >= 9e18)
		return -1;
	*v = (uint64_t)(n * factor);
	return 0;
}

/* Iterative with one restart point per star kind, so hostile patterns cost n * m, not 2^n. */
bool str_glob(const char *p, const char *s)
{
	const char *star_p = NULL, *star_s = NULL, *deep_p = NULL, *deep_s = NULL;

	while (*s || *p) {
		if (p[0] == '*' && p[1] == '*') {
			deep_p = p + 2;
			deep_s = s;
			star_p = NULL;
			p += 2;
			if (*p == '/') { /* "**" + "/" also matches nothing at all */
				if (str_glob(p + 1, s))
					return true;
			}
			continue;
		}
		if (*p == '*') {
			star_p = ++p;
			star_s = s;
			continue;
		}
		if (*s && *p && (*p == *s || (*p == '?' && *s != '/'))) {
			p++;
			s++;
			continue;
		}
		if (star_p && *star_s && *star_s != '/') {
			p = star_p;
			s = ++star_s;
			continue;
		}
		if (deep_p && *deep_s) {
			p = deep_p;
			s = ++deep_s;
			star_p = NULL;
			continue;
		}
		return false;
	}
	return true;
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

const char *str_shown(const char *name, char out[STR_SHOWN])
{
	enum { SHOWN = STR_SHOWN - sizeof("...") };
	size_t n = 0;

	for (; name[n] && n < SHOWN; n++)
		out[n] = (char)((unsigned char)name[n] < 0x20 || name[n] == 0x7f ? '?' : name[n]);
	memcpy(out + n, name[n] ? "..." : "", name[n] ? sizeof("...") : 1);
	return out;
}

bool str_utf8(const char *s, size_t n)
{
	const unsigned char *p = (const unsigned char *)s, *end = p + n;

	while (p < end) {
		uint32_t c = *p, min;
		int more;

		if (c == 0)
			return false;
		if (c < 0x80) {
			p++;
			continue;
		}
		if (c >= 0xc2 && c < 0xe0) {
			more = 1, min = 0x80, c &= 0x1f;
		} else if (c >= 0xe0 && c < 0xf0) {
			more = 2, min = 0x800, c &= 0x0f;
		} else if (c >= 0xf0 && c < 0xf5) {
			more = 3, min = 0x10000, c &= 0x07;
		} else {
			return false;
		}
		if (end - p <= more)
			return false;
		for (p++; more > 0; more--, p++) {
			if ((*p & 0xc0) != 0x80)
				return false;
			c = c << 6 | (*p & 0x3f);
		}
		if (c < min || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
			return false;
	}
	return true;
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
