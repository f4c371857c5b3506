/* Messages between the supervisor and the child it clones: whole, of one size, over a SEQPACKET
 * pair, or over a connection to the child's door.
 *
 *	supervisor             child
 *	clone <--- ALONE ----- in its namespaces (only when the supervisor has something to do now)
 *	      ---- GO ------->
 *	      <--- MOUNTED --- (only with hooks that run before pivot_root)
 *	      ---- GO ------->
 *	      <--- READY ----- (with the terminal's master, if there is one)
 *	      ---- DETACH ---> live on without us, wait at the door
 *	      ---- START ----> confines itself
 *	      <--- LISTENER -- (only with a filter that notifies)
 *	                       execs
 *	      <--- end ------- the socket is closed by exec
 *
 * FAILED may come instead of any message of the child: an error value, and the status to exit with.
 */
#ifndef RUNTIME_SYNC_H
#define RUNTIME_SYNC_H

#include <sys/types.h>

#include "base/err.h"

enum sync_kind {
	SYNC_END,
	SYNC_ALONE,
	SYNC_GO,
	SYNC_MOUNTED,
	SYNC_READY,
	SYNC_DETACH,
	SYNC_START,
	SYNC_LISTENER,
	SYNC_FAILED,
	SYNC_NEVER /* is not sent */
};

struct sync_msg {
	enum sync_kind kind;
	int status;
	pid_t pid;
	struct err err;
};

/* fd: a descriptor to pass along, or -1. */
int sync_send(int sock, const struct sync_msg *m, int fd, struct err *e) must_check;
/* *fd: receives a descriptor that came along, or -1; NULL refuses one. A closed socket is SYNC_END.
 */
int sync_recv(int sock, struct sync_msg *m, int *fd, struct err *e) must_check;
/* Send to a process that may have ended: the error is then why it did, if it has said so. */
int sync_say(int sock, const struct sync_msg *m, struct err *e) must_check;
/* The next message, which must be `kind`. FAILED: its error, and *status. */
int sync_expect(
	int sock, enum sync_kind kind, struct sync_msg *m, int *fd, struct err *e) must_check;
/* Tell of a failure; the caller exits then. */
void sync_fail(int sock, int status, const struct err *e);

#endif
