/* Copying bytes between a standard stream of svrun and the container's: one bounded buffer for each
 * direction. The writer is not read further while the reader is slow. */
#ifndef SVRUN_RELAY_H
#define SVRUN_RELAY_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

enum { RELAY_SIZE = 16384, RELAY_TYPED = 2 };

struct relay {
	int from, to; /* owned; -1 when that side has ended */
	size_t start, len;
	int error;  /* errno of a write that lost data; 0 also when the reader went away */
	bool typed; /* `to` is a terminal's keyboard: the end of `from` is typed, as ^D */
	char last;  /* the last byte that came */
	char buf[RELAY_SIZE + RELAY_TYPED];
};

void relay_init(struct relay *r, int own_from, int own_to);
void relay_fini(struct relay *r);
/* Nothing more will come, and all that came is written or has nowhere to go. */
bool relay_done(const struct relay *r);
/* What to wait for: fills p[0] and p[1] (fd -1 where there is nothing to wait for). */
void relay_want(const struct relay *r, struct pollfd p[2]);
/* Do what poll says is possible. */
void relay_step(struct relay *r, const struct pollfd p[2]);

#endif
