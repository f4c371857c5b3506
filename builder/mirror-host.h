/* What the host's own tools are set up to use. Each asks for one mirror by name and puts it, and
 * the others that it learns on the way, into m->found. Only mirror.c calls these. */
#ifndef BUILDER_MIRROR_HOST_H
#define BUILDER_MIRROR_HOST_H

#include <stdbool.h>

#include "builder/mirror.h"

/* Remember an address, made clean, unless the name has one. What is no http, https or file address,
 * or no mirror's name, is left out. */
void mirror_found(struct mirrors *m, const char *name, const char *address);
/* Has m->found an address for the name? */
bool mirror_is_found(const struct mirrors *m, const char *name);

/* apt's sources: by the labels of their Release files, else from the files that list them; for
 * "debian" and "debian-security" also what debootstrap uses. */
void mirror_ask_apt(struct mirrors *m, const char *name);
/* npm's registry, as "npm". */
void mirror_ask_npm(struct mirrors *m, const char *name);

#endif
