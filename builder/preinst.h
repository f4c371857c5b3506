/* The preinst scripts of packages that are unpacked already: in which order, and the shell text
 * that runs them as dpkg would have before it unpacked them. */
#ifndef BUILDER_PREINST_H
#define BUILDER_PREINST_H

#include "builder/rootfs.h"

/* Append the text, nothing when no package has one: base-passwd, what is essential, then the rest,
 * each after what it Pre-Depends and Depends on (a circle is cut where it is met). Each script gets
 * `install`, dpkg's variables, and its control files in /var/lib/dpkg/tmp.ci. The text fails, and
 * says the package, when a script fails, or diverted a file of another package that is then in
 * neither place. Reads dpkg's database of the tree. Errors: CORRUPT.
 * Source: dpkg, src/main/unpack.c and script.c; deb-preinst(5); dpkg(1) "INTERNAL ENVIRONMENT". */
int preinst_text(const struct rootfs *r, struct buf *out, struct err *e) must_check;

#endif
