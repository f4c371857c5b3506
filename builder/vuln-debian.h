/* Debian's security tracker as it is published: one JSON object of all source packages, each of all
 * its vulnerabilities, each with its state in every release. Source: the tracker's JSON export. */
#ifndef BUILDER_VULN_DEBIAN_H
#define BUILDER_VULN_DEBIAN_H

#include "builder/vuln-index.h"

/* Add what it says; one package at a time is in memory beside the text. CORRUPT names the byte, or
 * the package and the vulnerability. */
int tracker_add(struct vuln_index_maker *m, const char *text, size_t n, struct err *e) must_check;

/* Is a version affected in a release ("bookworm"), as a record of the index says? *fixed: the
 * version that is not, or NULL. *level is set when it is. */
int tracker_affects(const json_t *record, const char *release, const char *version,
	const char **fixed, enum vuln_level *level);

#endif
