/* npm packages from a package-lock.json (v2 or v3), whose keys are the placement plan. No script of any package
 * is run. */
#ifndef BUILDER_NPM_H
#define BUILDER_NPM_H

#include "builder/archive.h"
#include "builder/lock.h"

/* Read the manifest's package-lock.json and fill l->npms: omits applied, packages for other os, cpu or
 * libc left out, addresses built from the name and version ("mirror:npm/..."). An entry without
 * integrity, a link, a git or file dependency is refused by name. */
int npm_lock(struct lock *l, const struct manifest *m, struct err *e) must_check;

/* Unpack one tarball into out, below prefix + "/" + path. */
int npm_unpack(const struct lock_npm *n, const char *prefix, int fd, struct pool *p,
	struct entries *out, struct err *e) must_check;

/* node_modules/.bin links of all packages: relative symlinks, as npm makes them, and mode 0755 of what
 * they point to. Call after the packages were merged. */
int npm_bins(struct tree *t, const struct lock *l, const char *prefix, int64_t epoch, uint32_t origin,
	struct err *e) must_check;

/* "sha512-BASE64" -> 64 bytes. */
int npm_integrity(const char *text, uint8_t out[64], struct err *e) must_check;

#endif
