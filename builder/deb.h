/* A .deb: ar of debian-binary, control.tar.*, data.tar.*. Source: deb(5). */
#ifndef BUILDER_DEB_H
#define BUILDER_DEB_H

#include "builder/archive.h"
#include "builder/control.h"

struct deb_file {
	const char *name; /* "postinst", "md5sums", "conffiles", ... */
	const char *data; /* with a NUL behind it */
	size_t len;
	uint32_t mode;
};

struct deb {
	const char *name, *version, *arch; /* of the control file */
	const char *multi_arch;            /* "same", "foreign", ...; NULL: none */
	const char *control;               /* its whole text, one stanza */
	bool automatic;         /* set by the caller: only there because another package needs it */
	struct deb_file *files; /* the other members of control.tar, sorted by name */
	size_t nfiles;
	struct entries data;
	const char **places; /* set by the caller (diversions.h): where an object of data goes, or
				NULL for its own path; NULL: all go there */
	struct arena arena;
};

/* Unpack fd into d and the pool, without the data of what prune (may be NULL) names. Streams:
 * memory is bounded by the decompressor's window. Thread-safe for different packages. CORRUPT when
 * it is truncated or malformed; the caller compares name, version and arch with the lock.
 * deb_fini() is due in any case. */
int deb_unpack(struct deb *d, int fd, const char *name, const struct prune *prune, struct pool *p,
	struct err *e) must_check;
void deb_fini(struct deb *d);

/* Where object i of its data goes. */
const char *deb_place(const struct deb *d, size_t i);
/* A member of control.tar, or NULL. */
const struct deb_file *deb_file(const struct deb *d, const char *name);
/* A field of the control file; p is NULL when there is none. */
struct slice deb_field(const struct deb *d, const char *field);

#endif
