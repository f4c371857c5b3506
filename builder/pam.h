/* /etc/pam.d/common-*: as pam-auth-update(8) writes them from the packages' profiles. */
#ifndef BUILDER_PAM_H
#define BUILDER_PAM_H

#include "builder/rootfs.h"

/* All profiles with "Default: yes", by priority, into the templates of /usr/share/pam; nothing
 * without templates. */
int pam_make(const struct rootfs *r, struct err *e) must_check;

#endif
