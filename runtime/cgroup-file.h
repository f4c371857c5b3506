/* The files of a cgroup, with errors that name the field of the config, and where the host has its
 * hierarchies: at the conventional places, which every distribution and engine keeps.
 * /sys/fs/cgroup is version 2, or has a folder for each hierarchy of version 1 ("memory",
 * "cpu,cpuacct", "systemd"). For the cgroup-*.c, and those that read what they count. */
#ifndef RUNTIME_CGROUP_FILE_H
#define RUNTIME_CGROUP_FILE_H

#include "runtime/cgroup.h"

#define CGROUP_ROOT "/sys/fs/cgroup"

enum {
	CGROUP_PIDS_TEXT = 64 << 20, /* more than a cgroup.procs can have */
	CGROUP_FULL_PATH = CGROUP_PATH_MAX + 128
};

/* Where a field of the config goes. field: below /linux/resources, "memory/limit". name: by
 * version, NULL where it has none. */
struct cgroup_file {
	const char *field, *controller, *name[2];
};

/* The folder that has a controller's files, or -1. */
int cgroup_dir_of(const struct cgroup *c, const char *controller);
bool cgroup_has(const struct cgroup *c, const char *controller, const char *name);

/* Errors: UNSUPPORTED names the field when there is no such file. */
int cgroup_set(const struct cgroup *c, const struct cgroup_file *f, const char *text,
	struct err *e) must_check;
/* -1 is "max" on version 2. */
int cgroup_set_number(
	const struct cgroup *c, const struct cgroup_file *f, int64_t v, struct err *e) must_check;
/* The same when v is set, and not 0: which means "as it is", as engines use it. */
int cgroup_set_opt(const struct cgroup *c, const struct cgroup_file *f, const struct opt_i64 *v,
	struct err *e) must_check;

/* The text of a file in `dir`, in b, which is emptied first. Returns b's text; "" when there is no
 * such file. */
const char *cgroup_text(int dir, const char *name, struct buf *b);
/* A file that is one number; "max" and what is beyond an int64_t is INT64_MAX. -1: no such file. */
int64_t cgroup_number(int dir, const char *name);
/* The number after "KEY " at the start of a line, 0 without. */
int64_t cgroup_key(const char *text, const char *key);

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
/* The hierarchies that there are; the paths may be left out. */
int cgroup_hierarchies(struct cgroup_lines *l, bool v2, struct err *e) must_check;

/* The path of a cgroup's folder. */
void cgroup_full_path(char out[CGROUP_FULL_PATH], const char *hierarchy, const char *path);
/* Is this controller one of those in a list, "cpu,cpuacct", as version 1 names its hierarchies, or
 * "cpu memory", as version 2's files have it? */
bool cgroup_names(const char *list, const char *controller);
/* Are the caller's rights those of the host's root? */
bool cgroup_privileged(void);

/* Open place.path in one hierarchy, c's next. 0: it is not there. (cgroup.c) */
int cgroup_open_in(struct cgroup *c, const char *hierarchy, struct err *e) must_check;
/* Make place.path in every hierarchy and open it; c->ndirs counts what is open. A folder that is
 * there is taken over when it is empty and not frozen: from there nobody who enters gets any
 * further. Errors: EXISTS. (cgroup-make.c) */
int cgroup_make(struct cgroup *c, const struct spec_resources *r, struct err *e) must_check;

#endif
