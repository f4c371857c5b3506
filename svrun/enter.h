/* How a command enters the store. */
#ifndef SVRUN_ENTER_H
#define SVRUN_ENTER_H

#include "images/config.h"
#include "images/store.h"

/* Open the store of the site's configuration, which must be there, and take back what a killed
 * svrun left: instances with their cgroups first, then mounts, which they may hold. Errors: those
 * of config_load(), store_open(), instances_sweep() and mount_sweep(). */
int store_enter(struct store *s, struct err *e) must_check;
/* The same for what brings images in: a store that is missing is made. */
int store_enter_new(struct store *s, struct err *e) must_check;
/* Either, for who has read the configuration. */
int store_enter_at(struct store *s, const struct config *c, bool create, struct err *e) must_check;

#endif
