#include "images/glob.h"

#include <stddef.h>

/* Iterative with one restart point per star kind, so hostile patterns cost n * m, not 2^n. */
bool glob_matches(const char *p, const char *s)
{
	const char *star_p = NULL, *star_s = NULL, *deep_p = NULL, *deep_s = NULL;

	while (*s || *p) {
		if (p[0] == '*' && p[1] == '*') {
			deep_p = p + 2;
			deep_s = s;
			star_p = NULL;
			p += 2;
			if (*p == '/') { /* "**" + "/" also matches nothing at all */
				if (glob_matches(p + 1, s))
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
