/* Named mirrors: "mirror:debian/pool/x" -> an address. Site configuration first (images/config.h),
 * then what the host's own apt ("debian", "debian-security", "ubuntu": by the Label of the Release
 * files of its sources; on a host of another distribution, the default that its debootstrap package
 * brings) and npm ("npm": npm config get registry) are set up to use. No address of a public
 * service stands in the code. */
#ifndef BUILDER_MIRROR_H
#define BUILDER_MIRROR_H

#include "base/mem.h"
#include "images/config.h"

struct mirrors {
	struct arena arena;
	const struct config *config;
	json_t *found; /* what the host was asked for: name -> address, or null when it has none */
	json_t *credentials; /* host -> Authorization, or null: mirror-auth.h */
	const char *root;    /* put before /etc and /usr when the host's files are read: "", but in
				tests */
};

void mirrors_init(struct mirrors *m, const struct config *c);
void mirrors_fini(struct mirrors *m);

/* Full address of a "mirror:NAME/rest" (http and https addresses pass through). Lives as long as m.
 * NOT_FOUND names the mirror and says how to configure it. Not thread-safe: resolve before
 * fetching. */
const char *mirror_url(struct mirrors *m, const char *uri, struct err *e) must_check;

#endif
