/* Capabilities: names, and the five sets of a process. Source: capabilities(7). */
#ifndef RUNTIME_CAPS_H
#define RUNTIME_CAPS_H

#include <stdint.h>

#include "base/err.h"

struct caps {
	uint64_t bounding, permitted, effective, inheritable, ambient; /* bit n: capability n */
};

/* Number of "CAP_CHOWN" (case as written), or -1. */
int caps_number(const char *name);
/* Name of a number, NULL beyond the table. */
const char *caps_name(int cap);

/* Drop everything outside the bounding set: before the user changes, while CAP_SETPCAP is held. */
int caps_apply_bounding(const struct caps *c, struct err *e) must_check;
/* Set the other sets, exactly: after the user changed. */
int caps_apply(const struct caps *c, struct err *e) must_check;

#endif
