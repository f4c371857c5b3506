/* Waiting for a container's end: its output goes to the log as it comes, its limits are watched. */
#ifndef BUILDER_SANDBOX_WATCH_H
#define BUILDER_SANDBOX_WATCH_H

#include <poll.h>

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
	bool exact;           /* max_bytes was asked for: what it has written is counted often */
	const struct sandbox_bind *binds; /* what it may write besides; borrowed */
	size_t nbinds;
	struct sandbox_end *end;

	double begun, next_look, next_count; /* from here on the watch's own */
	time_t since;
	uint64_t free_at_start, own_bytes, log_bytes;
	bool killed, ended, silent, disk_short;
	unsigned char *piece;
};

/* How much a run may write when the disk has as much free as it has now, and what must stay: half
 * of what can be spared, or what is asked, when that is less. */
int watch_space(int fd, uint64_t asked, uint64_t *max, uint64_t *spare, struct err *e) must_check;

/* The fields are set, and it is about to be started:
 *
 *	watch_begin -> (watch_poll, poll(), watch_handle) until watch_over -> watch_finish
 *
 * Several can be waited for in one poll(). It is killed at its limits. */
int watch_begin(struct watch *w, struct err *e) must_check;
/* What to poll for. */
enum { WATCH_FDS = 2 };
void watch_poll(const struct watch *w, struct pollfd p[WATCH_FDS]);
int watch_timeout(const struct watch *w); /* ms; -1: none */
int watch_handle(struct watch *w, const struct pollfd p[WATCH_FDS], struct err *e) must_check;
/* It has ended, and its output is written. */
bool watch_over(const struct watch *w);
/* Let it end now. */
void watch_stop(struct watch *w);
/* Bytes that it has on the disk. When disk_short says that little is free there, it is for the
 * caller, who knows what else writes to it, to stop it and to set end->out_of_disk. */
uint64_t watch_written(const struct watch *w);
/* How it ended, once it is over. */
int watch_finish(struct watch *w, struct err *e) must_check;
/* Closes w->output. */
void watch_fini(struct watch *w);

#endif
