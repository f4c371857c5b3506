/* An apt of our own: its state, cache, sources and configuration lie in one folder, so that nothing
 * of the host's decides what is resolved. Only the host's transport settings (proxies, CA files,
 * retries, logins of mirrors) are taken over. */
#ifndef BUILDER_APT_STATE_H
#define BUILDER_APT_STATE_H

#include "builder/lock.h"
#include "builder/mirror.h"

struct apt_origin {
	const struct apt_source *source;
	const char *uri;     /* the source's, of a snapshot with its time: what the lock says */
	const char *address; /* where the mirror is, as apt prints it; no final slash */
	const char *keyring; /* absolute path; NULL: none, and apt will refuse the source */
};

struct apt_state {
	struct arena arena;
	const char *dir;            /* borrowed */
	const char *arch;           /* Debian's name of the platform */
	const char **env;           /* of the programs */
	struct apt_origin *origins; /* one per source */
	size_t norigins;
};

/* dir: an existing, empty folder. Errors: NOT_FOUND (mirror, keyring, apt itself), USAGE, SYSTEM.
 */
int apt_state_init(struct apt_state *s, const struct manifest *m, const char *platform,
	struct mirrors *mirrors, const char *dir, struct err *e) must_check;
void apt_state_fini(struct apt_state *s);

/* Run a program of apt's (argv ends with NULL) with this state. Returns its exit status, or -1. */
int apt_state_run(const struct apt_state *s, const char *const *argv, struct buf *out,
	struct buf *errout, struct err *e) must_check;

#endif
