/* Which packages an image has, as advisories name them: Debian's and Ubuntu's by source package,
 * PyPI's, npm's. From its dpkg database, from its folders of packages, and from its bill when it
 * was built here, else from the SBOM that it brings. Bill and SBOM only add: what is in the image
 * cannot be left out by one. */
#ifndef BUILDER_SCAN_PACKAGES_H
#define BUILDER_SCAN_PACKAGES_H

#include "builder/bill.h"
#include "builder/scan-version.h"

enum { SCAN_PACKAGES_MAX = 200000 };

struct scan_package {
	enum version_kind kind;
	const char *name, *version;          /* npm: "@scope/name"; PyPI: in the normal form */
	const char *source, *source_version; /* DEB: of the source package; else as above */
};

struct scan_packages {
	struct arena arena;
	struct scan_package *v; /* sorted by kind, source, name; each once */
	size_t n, cap;
	const char *distribution;       /* "debian", "ubuntu", or another; NULL: not to be told */
	const char *release, *codename; /* "12", "bookworm"; each may be NULL */
	bool database; /* of dpkg is there: nobody else is asked about its packages */
	size_t others; /* of what nobody has advisories for: sources, models */
};

/* bill: of the image, or NULL: it was not built here. Errors: CORRUPT (the image, its SBOM),
 * SYSTEM. */
int scan_packages_list(struct scan_packages *l, struct store *s, const struct digest *manifest,
	const struct bill *bill, struct err *e) must_check;
void scan_packages_fini(struct scan_packages *l);

/* Add the packages of an SBOM (a document of SPDX or CycloneDX): for tests and fuzzing, too. */
int scan_packages_add_sbom(struct scan_packages *l, const json_t *doc, struct err *e) must_check;

#endif
