/* AppArmor profiles and SELinux labels, where the host has them. All writes go to files verified to
 * be on a procfs of our own (CVE-2019-16884, CVE-2025-52881). */
#ifndef RUNTIME_LSM_H
#define RUNTIME_LSM_H

#include "runtime/spec.h"

/* Before anything is made: does the host have what p asks for? UNSUPPORTED names the field. */
int lsm_check(const struct spec_process *p, struct err *e) must_check;

/* What p asks for is taken by the next exec of the calling process. proc: the root of a procfs.
 * Errors: UNSUPPORTED as above; NOT_FOUND for a profile that is not loaded. */
int lsm_apply(const struct spec_process *p, int proc, struct err *e) must_check;

/* Is there one? For `features`, and before a mount label is given to a file system. */
bool lsm_has_apparmor(void);
bool lsm_has_selinux(void);

#endif
