/* Cgroups that systemd makes, asked through busctl(1). For cgroup.c and its neighbours alone. */
#ifndef RUNTIME_CGROUP_SYSTEMD_H
#define RUNTIME_CGROUP_SYSTEMD_H

#include "runtime/cgroup.h"

/* Make the unit c->place.unit with process `pid` in it, and wait until that is done; c->place.path
 * becomes where it is. The limits are properties too, so that systemd does not undo them. */
int cgroup_systemd_start(
	struct cgroup *c, pid_t pid, const struct spec_resources *r, struct err *e) must_check;
/* Change the properties. */
int cgroup_systemd_update(
	const struct cgroup *c, const struct spec_resources *r, struct err *e) must_check;
/* Have the unit stopped, and so forgotten. Fine when there is none. */
int cgroup_systemd_stop(const struct cgroup_place *p, struct err *e) must_check;

#endif
