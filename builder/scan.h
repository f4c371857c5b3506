/* Which known vulnerabilities an image's packages have, by the site's data (vuln.h): offline, and
 * without a byte of the image being changed.
 *
 * One finding is one vulnerability of one package. Of the names that it has, the CVE's is the one
 * shown; advisories that share it are one finding. Where Debian's own tracker knows the release, it
 * alone decides about Debian's packages. */
#ifndef BUILDER_SCAN_H
#define BUILDER_SCAN_H

#include "builder/manifest.h"
#include "builder/scan-packages.h"
#include "builder/vuln-score.h"

/* What is let through. */
struct scan_rules {
	enum vuln_level
		fail_on;     /* UNKNOWN: nothing fails. LOW: what nobody has judged fails, too */
	bool ignore_unfixed; /* what has no fixed version does not fail */
	const struct scan_allow *allow; /* borrowed */
	size_t nallow;
};

enum scan_allow_state { SCAN_UNUSED, SCAN_EXPIRED, SCAN_USED };

struct scan_finding {
	const char *id, *text;
	struct strings also;           /* its other names */
	const struct scan_package *of; /* the first binary package */
	const char *packages;          /* "libssl3, openssl" */
	const char *fixed;             /* NULL: in no version yet */
	enum vuln_level level;
	const struct scan_allow *allowed; /* that lets it through; NULL */
	bool fails;
};

struct scan_result {
	struct arena arena;
	struct scan_packages packages;
	struct digest data;
	struct scan_finding *v; /* the worst first */
	size_t n, cap;
	size_t counts[VULN_LEVELS], allowed, failing;
	size_t incomparable; /* packages whose version is none: nothing can be said of them */
	enum scan_allow_state *states; /* of the rules' allow */
	size_t nstates;
	char today[11]; /* in UTC: an entry counts up to and with its day */
};

/* "low", "medium", "high", "critical". USAGE. */
int scan_level_parse(const char *text, enum vuln_level *l, struct err *e) must_check;
/* Of a manifest's build.scan. */
struct scan_rules scan_rules_of(const struct manifest_build *b);

/* bill: of the image, or NULL. db: the folder. Errors: UNSUPPORTED (packages that the data say
 * nothing of: which, and what to do), CORRUPT, USAGE, SYSTEM. */
int scan_image(struct scan_result *r, struct store *s, const struct digest *manifest,
	const struct bill *bill, const char *db, const struct scan_rules *rules,
	struct err *e) must_check;
void scan_result_fini(struct scan_result *r);

/* ---- scan-text.c ---- */

/* "1 critical, 2 high" of all that fails; "" when nothing does. To free(). */
char *scan_failing(const struct scan_result *r);
void scan_table(const struct scan_result *r, struct buf *out);
/* One line of the table's. */
void scan_line(const struct scan_finding *f, struct buf *out);
json_t *scan_json(const struct scan_result *r, const struct scan_rules *rules);
/* SARIF 2.1.0. image: what it is called in locations. */
json_t *scan_sarif(const struct scan_result *r, const char *image);

#endif
