/* The host's cgroup hierarchies, at the conventional places, which every distribution and engine
 * keeps: /sys/fs/cgroup is version 2, or has a folder for each hierarchy of version 1 ("memory",
 * "cpu,cpuacct", "systemd"). For the cgroup-*.c alone. */
#ifndef RUNTIME_CGROUP_HOST_H
#define RUNTIME_CGROUP_HOST_H

#include "runtime/cgroup.h"

#define CGROUP_ROOT "/sys/fs/cgroup"

/* A process's cgroup in one hierarchy. */
struct cgroup_line {
	char hierarchy[64];         /* "" on version 2 */
	char path[CGROUP_PATH_MAX]; /* as the reader's cgroup namespace shows it */
};
struct cgroup_lines {
	struct cgroup_line v[CGROUP_HIERARCHIES];
	size_t n;
};

/* Read the text of /proc/PID/cgroup: version 1's lines, or with v2 the one of version 2. Lines that
 * are no such are left out, as are those too long or too many. */
void cgroup_lines_parse(struct cgroup_lines *l, const char *text, bool v2);
/* The same from the file, pid 0: of the calling process. */
int cgroup_lines_read(struct cgroup_lines *l, pid_t pid, bool v2, struct err *e) must_check;

/* Open the root of a hierarchy (O_PATH). -1 with ENOENT when it is not mounted. */
int cgroup_root(const char *hierarchy) must_check;
/* Does a hierarchy ("cpu,cpuacct") have this controller? That of version 2 ("") has all. */
bool cgroup_names(const char *hierarchy, const char *controller);
/* Are the caller's rights those of the host's root? */
bool cgroup_privileged(void);

#endif
