/* A container that tests look at: `svrun run` in a process of its own, without a network but its
 * loopback, its output in a log.
 *
 *	test_container_start -> test_container_await -> exec, enter, ... -> test_container_stop
 *	                     -> test_container_finish (of one whose own output is the test)
 *
 * It goes with us: however we end, its svrun hears of it, and what even that one leaves when it is
 * killed is removed by the next command (instances_sweep()). All waiting ends at a deadline
 * (sys_now_ms()) or when somebody wants us to stop (`signals`). One thread. */
#ifndef SVRUN_TEST_CONTAINER_H
#define SVRUN_TEST_CONTAINER_H

#include <poll.h>

#include "builder/manifest.h"
#include "images/store.h"
#include "svrun/instance.h"
#include "svrun/options.h"

enum { TEST_OUTPUT_MAX = 1 << 20, TEST_LOG_MAX = 16 << 20, TEST_LOG_LINES = 40 };

struct test_container {
	struct store *s;
	const struct manifest *m; /* borrowed, as in the options */
	uint32_t gpus;            /* of the options */
	int signals;              /* borrowed: a signalfd of what ends us, or -1 */
	char name[INSTANCE_ID_MAX + 1];
	char *log; /* path of its log */
	pid_t pid; /* of its svrun; 0: not there */
	int pidfd;
	int output; /* what it says on standard output, when that is kept apart; else -1 */
	pid_t logger;
	bool ended;
	int status; /* of its svrun, once ended: the program's, or 125 to 127 */
};

struct test_container_options {
	const struct manifest *m;   /* its resources are the limits */
	const char *image;          /* by its digest */
	struct strings argv;        /* instead of the image's entrypoint and command; n 0: those */
	struct pairs env;           /* on top of the image's */
	const char *user, *workdir; /* NULL: the image's */
	const struct option_list *accepted; /* licences of models; NULL: none */
	uint32_t gpus;                      /* how many it is given */
	bool capture;                       /* keep standard output apart */
	const char *log;                    /* path; what was there is replaced */
};

/* Errors: USAGE (a value that `svrun run` does not take), SYSTEM. */
int test_container_start(struct test_container *c, struct store *s, int signals,
	const struct test_container_options *o, struct err *e) must_check;
/* Until its program runs: 1; 0 when it has ended before or the deadline came; -1. */
int test_container_await(struct test_container *c, double deadline, struct err *e) must_check;
/* Until it has ended: 1, its status is set and all it said is in out (whose max bounds it; what is
 * beyond is read and dropped, and *cut set); 0 when the deadline came; -1. */
int test_container_finish(struct test_container *c, double deadline, struct buf *out, bool *cut,
	struct err *e) must_check;
/* Has it ended? Does not wait. */
bool test_container_ended(struct test_container *c);
/* End it, if it runs, and wait until nothing is left but its log. Fine when it never started. */
void test_container_stop(struct test_container *c);
/* The last lines of its log; malloc'ed; NULL: there are none. */
char *test_container_tail(const struct test_container *c);
/* Append to its log. */
void test_container_note(const struct test_container *c, const void *p, size_t n);

/* What a test says, with the variables that are only known at start (${runtime:cpus}) as the
 * container of m with so many GPUs has them; malloc'ed. USAGE: an unknown one. */
char *test_expand(
	const struct manifest *m, uint32_t gpus, const char *text, struct err *e) must_check;
/* poll() that ends when somebody wants us to stop: -1 with DENIED "interrupted". ms -1: no limit.
 */
int test_wait(int signals, struct pollfd *p, size_t n, int ms, struct err *e) must_check;
/* Read once from fd into out, as far as its max goes; *cut is set when some was dropped. 1 while
 * there may be more, 0 at the end, -1. */
int test_take(int fd, struct buf *out, bool *cut, struct err *e) must_check;
/* What is left until a deadline, for poll(): 0 to INT_MAX. */
int test_left(double deadline);

/* ---- inside (test-inside.c) ---- */

struct test_process {
	struct strings argv;
	struct pairs env;
	const char *user, *workdir; /* NULL: the container's */
};

/* Run one more program in it: 1, with its status, and its standard output in out as above (standard
 * error goes to the log); 0 when the deadline came: it was killed, or when the container has ended:
 * *status is TEST_NOT_RUNNING; -1, when it could not be started with status 126 or 127. */
enum { TEST_NOT_RUNNING = -1 };
int test_container_exec(struct test_container *c, const struct test_process *p, double deadline,
	struct buf *out, bool *cut, int *status, struct err *e) must_check;

/* Let this thread make sockets in its network; *back is what test_container_leave() wants. 1; 0:
 * the container has ended. */
int test_container_enter(struct test_container *c, int *back, struct err *e) must_check;
/* Ends the program when it cannot be left: nothing may go on in a container's network. */
void test_container_leave(int *back);

/* Which addresses listen on a port ("0.0.0.0", "127.0.0.1", "::"): comma-separated in out. 1; 0:
 * none, or it has ended. */
int test_container_listens(
	struct test_container *c, uint32_t port, bool udp, char out[256], struct err *e) must_check;

#endif
