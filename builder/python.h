/* Python packages as wheels, installed without running code: what pip would leave behind, from the
 * archives alone. Source: PyPA "Binary distribution format", "Recording installed projects",
 * "Entry points", "Platform compatibility tags", "pylock.toml" (PEP 751), PEP 440, 503, 427, 508.
 */
#ifndef BUILDER_PYTHON_H
#define BUILDER_PYTHON_H

#include "builder/lock.h"
#include "builder/mirror.h"
#include "builder/python-name.h"
#include "builder/rootfs.h"
#include "images/entries.h"
#include "images/store.h"

/* Fill l->wheels from the manifest's wheels and its lock file (pylock.toml, or requirements with
 * --hash): wheels for the image's interpreter and platform chosen by their tags, markers evaluated.
 * The interpreter is that of the locked debs (python_of_lock()) or what its name says; the C
 * library that of the debs, or of the base image in s (NULL: not asked). Codes: SV050 the guard,
 * SV051 an sdist, SV052 nothing that fits, SV053 not pinned, without sha256 or without an address,
 * SV054 a lock file that is not one, SV055 a package twice. */
int python_lock(struct lock *l, const struct manifest *m, struct mirrors *mirrors, struct store *s,
	struct err *e) must_check;

/* Version of the interpreter and of glibc that a lock's debs (or its base image's) bring: "3.11",
 * or NULL when there is none. */
const char *python_of_lock(const struct lock *l);
const char *glibc_of_lock(const struct lock *l);

/* Unpack one wheel (an open file) into out: RECORD checked, *.data moved, console and gui scripts
 * written, "#!python" rewritten, INSTALLER, REQUESTED (when asked for by the manifest), direct_url
 * where it came from a file, a new RECORD. Signatures of the old RECORD are left out. Every object
 * is of 1980: what is installed depends on the wheel alone. python: "3.11"; NULL: as the
 * interpreter's name says. Thread-safe. CORRUPT names wheel and member, with a code of wheel.h. */
int wheel_unpack(const struct lock_wheel *w, const struct manifest_python *p, const char *python,
	int fd, struct pool *pool, struct entries *out, struct err *e) must_check;

/* Before the wheels are merged: the virtual environment at prefix (pyvenv.cfg, bin/python links,
 * lib64), unless the prefix is the interpreter's own ("/usr/local", "/usr"). */
int python_prepare(const struct rootfs *r, const struct manifest_python *p, const char *python,
	struct err *e) must_check;

/* After all are merged: is what is installed what `guard` says (every *.dist-info and egg-info of
 * the tree, Debian's included)? "compatible" instead of a specifier: all that the distribution says
 * it needs is there. All violations in one error (USAGE, SV050). Also used by the python-guard
 * test. */
int python_guard(const struct rootfs *r, const struct manifest_python *p, struct err *e) must_check;

/* After all are merged: is what wheels need for the extras they were asked for with ("name[extra]"
 * in requirements) installed, too? All that is missing in one error (USAGE, SV053). */
int python_extras(const struct rootfs *r, const struct manifest_python *p, const struct lock *l,
	struct err *e) must_check;

/* What is installed, from the tree: for SBOM and tests. Sorted by name. Only what an interpreter
 * looks for: what lies in folders called site-packages or dist-packages. */
struct python_dist {
	const char *name, *version; /* name in its normal form */
	const char *path;           /* of its dist-info or egg-info folder or file, without "/" */
};
struct python_dist *python_installed(const struct rootfs *r, struct arena *a, size_t *n);

/* Does a version (PEP 440) fit a specifier set (">=1.2,!=1.5.*"; "1.2.*" alone is "==1.2.*")? 1, 0,
 * -1: malformed. "compatible" says nothing about the version: 1. */
int python_version_fits(const char *version, const char *specifier);

#endif
