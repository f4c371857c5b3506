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
 * version, "memory.max"; NULL where it has none. */
struct cgroup_file {
	const char *field, *name[2];
};

/* The folder that has a controller's files, or -1. The controller may come as the name of a file of
 * its. */
int cgroup_dir_of(const struct cgroup *c, const char *controller);
bool cgroup_has(const struct cgroup *c, const char *name);

/* Errors: UNSUPPORTED names the field when there is no such file. */
int cgroup_set(const struct cgroup *c, const struct cgroup_file *f, struct err *e, const char *fmt,
	...) printf_like(4, 5) must_check;
/* -1 is "max" on version 2. */
int cgroup_set_number(
	const struct cgroup *c, const struct cgroup_file *f, int64_t v, struct err *e) must_check;

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

/* Read the text of /proc/PID/cgroup: version 1's lines, or with v2 the one of version 2. What is
 * none, too long, too many or without its end is left out. */
void cgroup_lines_parse(struct cgroup_lines *l, const char *text, bool v2);
/* The same from the file, pid 0: of the calling process. */
int cgroup_lines_read(struct cgroup_lines *l, pid_t pid, bool v2, struct err *e) must_check;
/* c's hierarchies, when it has a path: those of the host, none opened. */
int cgroup_find(struct cgroup *c, struct err *e) must_check;

/* Is it on a file system of cgroups, of version 1? */
bool cgroup_is_at(int fd);
/* Give the caller the error, when it cares. Returns -1. */
static inline int cgroup_fail(struct err *e, const struct err *why)
{
	if (e)
		*e = *why;
	return -1;
}
/* The path of a cgroup's folder. */
void cgroup_full_path(char out[CGROUP_FULL_PATH], const char *hierarchy, const char *path);
/* Is this controller, or that of this file, in a list, "cpu,cpuacct" as version 1 names hierarchies
 * or "cpu memory" as version 2's files have it? */
bool cgroup_names(const char *list, const char *controller);
/* Are the caller's rights those of the host's root? */
bool cgroup_privileged(void);

/* ---- parts, one file each ---- */

/* Open place.path in one hierarchy. 0: it is not there, or not on a file system of cgroups.
 * (cgroup.c) */
int cgroup_open_dir(const struct cgroup *c, struct cgroup_dir *d, struct err *e) must_check;

/* Make place.path in every hierarchy, open it, and attach the device rules; hierarchies not mounted
 * leave c's. A folder that is there is taken over when it is empty and not frozen: from there
 * nobody who enters gets any further. Errors: EXISTS. (cgroup-make.c) */
int cgroup_make(struct cgroup *c, const struct spec_resources *r, struct err *e) must_check;

/* Device rules of the cgroup whose folder is `dir`: all is denied first, then the config's rules
 * apply in their order, then the devices that every container has. Any node may be made (that opens
 * nothing). Version 1 writes them; version 2 attaches a BPF program. (cgroup-devices.c) */
int cgroup_devices_write(int dir, const struct spec_resources *r, struct err *e) must_check;
int cgroup_devices_attach(int dir, const struct spec_resources *r, struct err *e) must_check;
/* *insns is the caller's to free. Later rules are tested first: the first that fits decides. */
struct bpf_insn;
void cgroup_devices_program(const struct spec_resources *r, struct bpf_insn **insns, size_t *n);

/* Have systemd make place.unit with process `pid` in it, and wait for that; place.path becomes
 * where it is. Limits are properties too, so that systemd does not undo them. (cgroup-systemd.c) */
int cgroup_systemd_start(
	struct cgroup *c, pid_t pid, const struct spec_resources *r, struct err *e) must_check;
/* Change the properties. */
int cgroup_systemd_update(
	const struct cgroup *c, const struct spec_resources *r, struct err *e) must_check;
/* Have the unit stopped, and so forgotten. Fine when there is none. */
int cgroup_systemd_stop(const struct cgroup_place *p, struct err *e) must_check;
/* What cgroup_set() would write to a file: becomes a property, where systemd has one. */
void cgroup_systemd_told(struct cgroup_told *t, const char *file, const char *text);

#endif
