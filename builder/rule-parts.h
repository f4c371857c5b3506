/* What builder/rules*.c are written with. */
#ifndef BUILDER_RULE_PARTS_H
#define BUILDER_RULE_PARTS_H

#include <string.h>

#include "base/str.h"
#include "builder/rules.h"

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGIT "0123456789"

/* 1 to max bytes, all of them in set, the first one in `first` (NULL: in set). */
static inline bool only(const char *s, const char *set, const char *first, size_t max)
{
	size_t n = strlen(s);

	return n >= 1 && n <= max && strspn(s, set) == n && (!first || strchr(first, s[0]));
}

static inline bool no_control(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f ||
			((unsigned char)s[0] == 0xc2 && (unsigned char)s[1] < 0xa0))
			return false;
	return true;
}

/* builder/rules.c */
bool rule_is_name(const char *s);
bool rule_is_rel(const char *s);
bool rule_is_address(const char *s);
bool rule_is_glob(const char *s);

#endif
