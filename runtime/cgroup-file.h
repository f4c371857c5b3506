/* Reading and writing the files of a cgroup, with errors that name the field of the config. For the
 * cgroup-*.c alone. */
#ifndef RUNTIME_CGROUP_FILE_H
#define RUNTIME_CGROUP_FILE_H

#include "runtime/cgroup.h"

enum { CGROUP_PIDS_TEXT = 64 << 20 }; /* more than a cgroup.procs can have */

/* Where a field of the config goes. field: below /linux/resources, "memory/limit". */
struct cgroup_file {
	const char *field, *controller, *name;
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

/* The first limit that r asks for, as a field's name, or NULL. */
const char *cgroup_first_limit(const struct spec_resources *r);
/* Write the limits of r (cgroup-v1.c, cgroup-v2.c), and those that both versions have: processes,
 * huge pages, RDMA (cgroup-limits.c). */
int cgroup_limit_common(
	const struct cgroup *c, const struct spec_resources *r, struct err *e) must_check;
int cgroup_v1_limit(
	const struct cgroup *c, const struct spec_resources *r, struct err *e) must_check;
int cgroup_v2_limit(
	const struct cgroup *c, const struct spec_resources *r, struct err *e) must_check;

/* Make place.path in every hierarchy and open it; c->ndirs counts what is open. (cgroup-v1.c,
 * cgroup-v2.c) */
int cgroup_v1_make(struct cgroup *c, struct err *e) must_check;
int cgroup_v2_make(struct cgroup *c, const struct spec_resources *r, struct err *e) must_check;

/* A folder that was there already: one that was left behind is empty. One with processes is in use,
 * and from one that is frozen nobody who enters gets any further (EXISTS). (cgroup.c) */
int cgroup_take_over(const struct cgroup *c, int dir, struct err *e) must_check;

#endif
