/* Bounded strings. The unbounded ones of libc do not compile where this is included. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

/* These write or read without a bound, or hide errors. */
#undef sprintf
#undef vsprintf
#pragma GCC poison strcpy strcat sprintf vsprintf strtok atoi atol

/* Copy with the NUL; -1 when it does not fit (dst is then truncated but terminated). */
int str_copy(char *dst, size_t size, const char *src) must_check;

static inline bool str_eq(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);

/* Strict decimal: digits only, no sign, no space, no overflow beyond max. -1 otherwise. */
int str_u64(const char *s, uint64_t max, uint64_t *v) must_check;

/* The next range of a list such as "0-3,5", up to max: *s moves behind it, and is NULL behind the
 * last. 1; 0: *s was NULL; -1: this is no such list. */
int str_range(const char **s, uint64_t max, uint64_t *first, uint64_t *last) must_check;

/* The candidate nearest to s by edit distance (2 or less, and under half of its length), or NULL:
 * for "did you mean". names ends with NULL. */
const char *str_nearest(const char *s, const char *const *names);

/* Replace what a terminal would obey by '?': control characters but those in keep, C1 ones in UTF-8
 * (U+009B begins a sequence as ESC [ does) among them. */
void str_plain(char *s, const char *keep);

/* A name from outside for an error: no control characters, and not endless. Returns out. */
enum { STR_SHOWN = 160 + sizeof("...") };
const char *str_shown(const char *name, char out[STR_SHOWN]);

/* Versions of dotted numbers, as long as they like: "12.10" is more than "12.9", "12" as much as
 * "12.0". What is no digit ends a version. < 0, 0, > 0. */
int str_version_compare(const char *a, const char *b);

/* Valid UTF-8 without NUL; control characters are the caller's business. */
bool str_utf8(const char *s, size_t n);

#endif
