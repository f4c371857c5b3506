/* How bad a vulnerability is, out of what advisories say of it. Pure functions of text. Source:
 * FIRST, CVSS 2.0 3.2, CVSS 3.1 7.1 (base scores) and 5 (levels); Debian's security tracker
 * (urgencies). */
#ifndef BUILDER_VULN_SCORE_H
#define BUILDER_VULN_SCORE_H

#include "base/err.h"

/* UNKNOWN: nobody has judged it yet. */
enum vuln_level {
	VULN_UNKNOWN,
	VULN_NEGLIGIBLE,
	VULN_LOW,
	VULN_MEDIUM,
	VULN_HIGH,
	VULN_CRITICAL,
	VULN_LEVELS
};

/* "unknown", "negligible", "low", ... */
const char *vuln_level_name(enum vuln_level l);
/* Of a word, as anybody writes it: "HIGH", "moderate", "low**", "unimportant"; else UNKNOWN. */
enum vuln_level vuln_level_of_word(const char *word);
/* Of a CVSS vector of version 2 or 3; else (also of version 4, whose score is a table) UNKNOWN. */
enum vuln_level vuln_level_of_vector(const char *vector);
/* The base score of such a vector in tenths; -1: it is none. */
int vuln_score(const char *vector) must_check;

#endif
