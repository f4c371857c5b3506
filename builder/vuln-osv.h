/* Advisories in the OSV schema: one JSON document each. Source: OSV schema 1.7, "affected[].ranges"
 * and its evaluation. */
#ifndef BUILDER_VULN_OSV_H
#define BUILDER_VULN_OSV_H

#include "builder/scan-version.h"
#include "builder/vuln-index.h"

enum { OSV_MAX = 16 << 20 }; /* bytes of a record */

/* Does a document look like one? */
bool osv_is_record(const json_t *doc);
/* Add what it says of packages of Debian, Ubuntu, PyPI and npm: of others, and when it was
 * withdrawn, nothing. CORRUPT names the place. */
int osv_add(struct vuln_index_maker *m, const json_t *doc, struct err *e) must_check;

/* Is a version affected, as a record of the index says? 1, 0; -1: the version is none of that kind.
 * *fixed: the next version that is not, or NULL; borrowed from the record. */
int osv_affects(const json_t *record, enum version_kind k, const char *version, const char **fixed);

#endif
