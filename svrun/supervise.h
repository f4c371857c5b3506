/* Staying with a container in the foreground: its standard streams, its signals, its end.
 *
 * Pipes, sockets and the null device are handed to the container as they are. A terminal, a file or
 * any other device is not: whoever holds a descriptor can open the thing again through
 * /proc/self/fd with more rights than the descriptor has (a file given as stdin could be written
 * to, a terminal given as stdout could be read from). Those are copied through pipes. */
#ifndef SVRUN_SUPERVISE_H
#define SVRUN_SUPERVISE_H

#include <sys/types.h>

#include "base/err.h"
#include "svrun/relay.h"
#include "svrun/tty.h"

struct supervise {
	int stdio[3]; /* what the container gets: for container_options */
	int signals;  /* signalfd */
	int stops;    /* another one, of those alone that end a start */
	int master;   /* of the container's terminal, or -1 */
	struct relay *relays[3];
	struct tty tty;
	bool interactive, as_is, terminal;
	unsigned stop_ms;
	/* While it runs: */
	bool ended;
	int asked, killed_by; /* stop signals so far; the signal that we carried out ourselves */
	double deadline, last_interrupt;
};

/* The process: a container's first one, or one that exec added. */
struct supervised {
	pid_t pid;
	int pidfd;    /* borrowed */
	int terminal; /* own: the master of its terminal, or -1 */
};

struct supervise_options {
	bool interactive; /* pass our stdin on */
	/* What engines expect of an OCI runtime: it gets our 0-2 whatever they are, and every
	 * signal as it came; none is carried out by us. */
	bool as_is;
	bool terminal; /* the container has its own */
	bool late;     /* signals mean us until it runs: there is nothing to be cleaned up before */
	unsigned stop_seconds; /* from SIGTERM to SIGKILL; not with as_is */
};

/* Before container_create(): blocks the signals that will be passed on, prepares the streams. */
int supervise_init(
	struct supervise *s, const struct supervise_options *o, struct err *e) must_check;
/* For container_options.wait: until fd can be read, or a signal to stop comes, which is then
 * killed_by. Other signals wait for the container. Errors: SYSTEM, the signal's name. */
int supervise_wait(void *supervise, int fd, struct err *e) must_check;
/* After the start: until the process has ended and its output is written; it is reaped. *status is
 * its exit status, 128 + signal when one killed it; 125 instead of 0 when some of its output could
 * not be written, which is warned of.
 *
 * Signals go to the container's first process. What the kernel does not do to the first process of
 * a pid namespace, dying of a signal that it does not handle, is done here with SIGKILL. SIGTERM is
 * followed by SIGKILL after the stop time, a second SIGTERM or a third SIGINT within two seconds at
 * once. */
int supervise_run(
	struct supervise *s, const struct supervised *p, int *status, struct err *e) must_check;
void supervise_fini(struct supervise *s);

/* Are 0-2 open? Closed ones become /dev/null: else the next file opened would be a standard stream.
 */
int supervise_streams_open(struct err *e) must_check;

#endif
