/* What is known about vulnerabilities, as one text: lines, sorted, so that a package's are found
 * without reading the others'.
 *
 *   "svrun.vuln/1 HEX\n"         sha256 of all that follows
 *   "SPACE\tNAME\tJSON\n"        a record about a package: npm, PyPI, Debian:12, Ubuntu:22.04;
 *                                "tracker" for Debian's own, whose records name releases
 *   "level\tID\tLEVEL\n"         how bad a vulnerability is, whoever says so
 *   "have\tSPACE\tN\n"           how many records there are
 *
 * A record: {"id", "also": [other names], "up": [what it is made from], "level", "text", and
 * "ranges": [[[EVENT, VERSION], ...], ...], "versions": [...] (vuln-osv.h) or, of the tracker,
 * "in": {RELEASE: [STATUS, FIXED, LEVEL]} (vuln-debian.h)}. */
#ifndef BUILDER_VULN_INDEX_H
#define BUILDER_VULN_INDEX_H

#include "base/json.h"
#include "builder/vuln-score.h"

enum {
	VULN_INDEX_MAX = 512 << 20,
	VULN_LINES_MAX = 8 << 20,
	VULN_NAME_MAX = 256, /* bytes of a package's name, or an id */
};

#define VULN_TRACKER "tracker"

/* ---- making ---- */

struct vuln_index_maker {
	struct arena arena;
	const char **v;
	size_t n, cap, bytes;
	json_t *have;
	uint64_t compared; /* versions with events, by osv_add() */
};

void vuln_index_begin(struct vuln_index_maker *m);
void vuln_index_abort(struct vuln_index_maker *m);
/* Add a record about a package. CORRUPT: a name with control characters, or too much of all. */
int vuln_index_add(struct vuln_index_maker *m, const char *space, const char *name,
	const json_t *record, struct err *e) must_check;
/* UNKNOWN and NEGLIGIBLE are not kept. */
int vuln_index_level(
	struct vuln_index_maker *m, const char *id, enum vuln_level l, struct err *e) must_check;
/* There is something about a space, even if no package has a record. */
void vuln_index_have(struct vuln_index_maker *m, const char *space);
/* The text, into out; m is empty then. */
int vuln_index_end(struct vuln_index_maker *m, struct buf *out, struct err *e) must_check;

/* May it be a name or an id: printable, and not too long? */
bool vuln_is_name(const char *s);

/* ---- looking ---- */

/* Is the text whole? */
bool vuln_index_check(const struct buf *text);
/* fn for every record of a package; -1 of it ends that. */
int vuln_index_each(const struct buf *text, const char *space, const char *name,
	int (*fn)(void *ctx, const json_t *record, struct err *e), void *ctx,
	struct err *e) must_check;
/* The worst that anybody says. */
enum vuln_level vuln_index_level_of(const struct buf *text, const char *id);
bool vuln_index_has(const struct buf *text, const char *space);

#endif
