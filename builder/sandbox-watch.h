/* Waiting for a container's end: its output goes to the log as it comes, its limits are watched. */
#ifndef BUILDER_SANDBOX_WATCH_H
#define BUILDER_SANDBOX_WATCH_H

#include "builder/sandbox.h"
#include "runtime/container.h"

struct watch {
	struct container *c;
	int output; /* own: what it prints comes here */
	int log;
	int upper;            /* the folder that it writes to */
	uint32_t timeout_ms;  /* 0: none */
	uint64_t max_bytes;   /* that it and its log may fill on the disk */
	uint64_t spare_bytes; /* that must stay free there */
};

/* How much a run may write when the disk has as much free as it has now, and what must stay. asked
 * 0: half of what can be spared. */
int watch_space(int fd, uint64_t asked, uint64_t *max, uint64_t *spare, struct err *e) must_check;

/* Until it has ended and its output is written. It is killed at its limits. Closes w->output. */
int watch_run(struct watch *w, struct sandbox_end *end, struct err *e) must_check;

#endif
