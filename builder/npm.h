/* npm packages from a package-lock.json (v2 or v3), whose keys are the placement plan. No script of
 * any package is run. */
#ifndef BUILDER_NPM_H
#define BUILDER_NPM_H

#include "builder/archive.h"
#include "builder/lock.h"

enum { NPM_BINS_MAX = 1000 }; /* commands of one package */

/* Read the manifest's package-lock.json and fill l->npms: omits applied, packages for other os, cpu
 * or libc left out, addresses built from the name and version ("mirror:npm/..."). An entry without
 * integrity, a link, a git or file dependency is refused by name. */
int npm_lock(struct lock *l, const struct manifest *m, struct err *e) must_check;
/* The same of the lock's bytes; name is for errors. */
int npm_lock_parse(struct lock *l, const struct strings *omit, const char *name, const void *text,
	size_t n, struct err *e) must_check;

/* Unpack one tarball into out, below prefix + "/" + path. */
int npm_unpack(const struct lock_npm *n, const char *prefix, int fd, struct pool *p,
	struct entries *out, struct err *e) must_check;

/* node_modules/.bin links of all packages: relative symlinks, as npm makes them, and mode 0755 of
 * what they point to. Call after the packages were merged. */
int npm_bins(struct tree *t, const struct lock *l, const char *prefix, int64_t epoch,
	uint32_t origin, struct err *e) must_check;

/* "sha512-BASE64" -> 64 bytes. Of several hashes (SRI: separated by spaces) the sha512 counts. */
int npm_integrity(const char *text, uint8_t out[64], struct err *e) must_check;

/* Is it a package's name: "name" or "@scope/name"? */
bool npm_is_name(const char *s);
/* Is it a placement path: "node_modules/NAME", any number of times, 64 at most? CORRUPT names it.
 */
int npm_check_path(const char *path, struct err *e) must_check;
/* Is it a command's file name, and is target a path in its package? CORRUPT names them. */
int npm_check_bin(const struct pair *bin, struct err *e) must_check;
/* Where a package lies in the tree: prefix "/opt/app" -> "opt/app/node_modules/a". To be freed. */
char *npm_place(const char *prefix, const char *path);
/* Last name of a placement path: "node_modules/a/node_modules/@b/c" -> "@b/c". */
const char *npm_path_name(const char *path);

#endif
