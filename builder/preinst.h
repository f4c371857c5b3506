/* The preinst scripts of packages that are unpacked already: the shell text that runs them as dpkg
 * would have before it unpacked them. */
#ifndef BUILDER_PREINST_H
#define BUILDER_PREINST_H

#include "builder/dpkg-order.h"

/* Append the text, nothing when no package has one. Scripts run in the packages' order; each gets
 * `install`, dpkg's variables, and its control files in /var/lib/dpkg/tmp.ci. The text fails, and
 * says the package, when a script fails, or diverted a file of another package that is then in
 * neither place.
 * Source: dpkg, src/main/unpack.c and script.c; deb-preinst(5); dpkg(1) "INTERNAL ENVIRONMENT". */
void preinst_text(const struct dpkg_order *o, struct buf *out);

#endif
