/* A .deb: ar of debian-binary, control.tar.*, data.tar.*. Source: deb(5). */
#ifndef BUILDER_DEB_H
#define BUILDER_DEB_H

#include "builder/archive.h"

struct deb_file {
	const char *name; /* "postinst", "md5sums", "conffiles", ... */
	const char *data;
	size_t len;
	uint32_t mode;
};

struct deb {
	const char *name, *version, *arch, *multi_arch; /* of the control file */
	const char *control; /* its whole text */
	struct deb_file *files; /* the other members of control.tar, sorted by name */
	size_t nfiles;
	struct entries data;
	struct arena arena;
};

/* Unpack fd into d and the pool. CORRUPT when it is truncated, malformed, or not what the lock names. */
int deb_unpack(struct deb *d, int fd, const char *name, struct pool *p, struct err *e) must_check;
void deb_fini(struct deb *d);

#endif
