/* Site configuration: /etc/svrun/config.json, or the file that $SVRUN_CONFIG names.
 *
 *   { "root": "/var/lib/svrun",                      where images and instances live
 *     "mirrors": { "debian": "http://...", ... } }   addresses of named mirrors (docs/config.md)
 *
 * $SVRUN_ROOT wins over "root"; without either it is /var/lib/svrun for root, and
 * $XDG_DATA_HOME/svrun or ~/.local/share/svrun for others. A missing file is an empty one, unless
 * $SVRUN_CONFIG names it. */
#ifndef BASE_CONFIG_H
#define BASE_CONFIG_H

#include <jansson.h>

#include "base/err.h"

struct config {
	char *path;      /* the file read, or the one that would be */
	char *root;      /* absolute */
	json_t *mirrors; /* object of strings; never NULL */
};

int config_load(struct config *c, struct err *e) must_check;
void config_fini(struct config *c);

/* Borrowed address of a named mirror without a final slash, or NULL when the site has none. */
const char *config_mirror(const struct config *c, const char *name);

#endif
