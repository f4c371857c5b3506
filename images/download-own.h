/* What the files of the download engine share; only download*.c include this.
 *
 *   download.c          the interface: streams, and handing pieces out
 *   download-network.c  the thread: starts, runs and ends transfers
 *   download-lane.c     one transfer: aiming, and the verdict
 *   download-answer.c   its head and its body
 *   download-queue.c    what is begun next
 *   download-memory.c   whose memory it may take
 *   download-job.c      states and lists
 *   download-buffers.c  the memory
 *
 * A request (struct lane) is for a run of pieces that follow each other, or for a whole blob;
 * pieces are cut from its body. Those of a run that are to come are claimed: WANTED, but on no
 * list.
 *
 * A piece (struct job):
 *
 *   WANTED -> BUSY -> ARRIVED -> OUT -> DONE
 *     ^         |        |
 *     +---------+--------+     tried again; its memory was needed elsewhere
 *
 * One lock guards everything but what is marked N, which only the network thread touches. Nothing
 * that may block, and nothing of libcurl's, is called with the lock held.
 */
#ifndef IMAGES_DOWNLOAD_OWN_H
#define IMAGES_DOWNLOAD_OWN_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "images/download.h"
#include "images/download-buffers.h"
#include "images/range.h"

enum job_state { JOB_WANTED, JOB_BUSY, JOB_ARRIVED, JOB_OUT, JOB_DONE };

struct job {
	struct piece *piece;
	struct stream *stream;
	struct blob *blob;
	size_t run_end; /* index behind the last piece of this blob that follows without a gap */
	enum job_state state;
	struct buffer buffer;     /* also WANTED ones have one, when they hold something good */
	uint32_t have, mark;      /* N: good bytes; how many there were when tries began anew */
	unsigned tries, endpoint; /* N: how many, on which endpoint */
	unsigned lanes;           /* N: 2 when hedged */
	bool hedged, listed;      /* N: once; in stream->retry */
	double due;               /* WANTED: not before; 0: at once */
	TAILQ_ENTRY(job) entry;   /* of stream->retry (by index) or stream->arrived */
};
TAILQ_HEAD(job_list, job);

/* A blob of one stream. */
TAILQ_HEAD(blob_list, blob);
struct blob {
	struct stream *stream;
	const struct digest *digest;
	uint64_t size;
	size_t first;      /* index of its first piece */
	size_t wanted;     /* pieces that are WANTED */
	unsigned endpoint; /* N: where it is fetched from now */
	/* read whole (one request, pieces are cut from it): */
	bool whole;
	struct lane *lane;   /* NULL: none at present */
	unsigned tries;      /* N */
	uint64_t best, mark; /* N: how far a try got; had got when tries began anew */
	double due;
	TAILQ_ENTRY(blob) entry; /* of stream->wholes */
};

struct stream {
	struct download *d;
	TAILQ_ENTRY(stream) entry;
	size_t n;
	bool ordered;
	struct job *jobs;
	struct blob *blobs;
	size_t nblobs;
	size_t frontier; /* jobs before it were begun, or belong to a blob that is read whole */
	struct job_list retry;   /* WANTED, begun before, single ranges; by index */
	struct blob_list wholes; /* blobs that are read whole, by first */
	struct job_list arrived;
	size_t handed;    /* pieces handed out; ordered: the index of the next one */
	size_t used;      /* bytes of buffers */
	uint64_t hunger;  /* bytes of pieces that have no buffer yet */
	unsigned waiters; /* in stream_next() */
	unsigned lanes;   /* running */
	bool failed, closing, closed;
	struct err e;
	pthread_cond_t cond;
};

/* A connection's worth of work: one request at a time. Network thread only. */
struct lane {
	struct download *d;
	CURL *curl;
	bool busy;
	bool unwanted; /* its piece came by another lane */
	bool aimed, added;
	struct registry_aim aim;
	unsigned endpoint;
	struct stream *stream;
	struct blob *blob;
	struct job *job; /* that is being filled, or NULL between pieces */
	uint64_t first, pos,
		end;    /* offsets in the blob: of this try; the next byte; where to stop */
	uint64_t from;  /* where the piece, or what it lacked, began */
	double started; /*   and when */
	double moved;   /* when a byte was last seen to come, and where that was */
	uint64_t moved_pos;

	/* the answer */
	bool ranged, accepted, discard, short_range;
	int has_range; /* -1: one that is none */
	struct range range;
	size_t discarded;
	bool redo;     /* another kind of request is needed; no fault of the piece */
	bool broken;   /* the answer is not what was asked for: e says how */
	bool hopeless; /*   and would be the same again */
	struct err e;

	/* the body */
	bool whole, paused, sated;
	size_t cursor, run_end; /* pieces that are to come: their indices */
	size_t skip; /* bytes of what libcurl gives again after a pause that are used already */
};

/* What is to be begun: a run of pieces, the first of which is BUSY and has a buffer, or a whole
 * blob. */
struct work {
	struct job *job;
	size_t run_end;
	struct blob *whole;
};

enum { DOWNLOAD_TIMES = 32 };

struct download {
	struct registry *r;
	struct download_limits limits;
	pthread_t thread;
	pthread_mutex_t lock;
	CURLM *multi;
	struct lane *lanes; /* limits.connections */
	unsigned endpoints;
	bool *ignores_range;                     /* by endpoint */
	TAILQ_HEAD(stream_list, stream) streams; /* whose turn it is comes first */
	struct buffers buffers;
	unsigned delayed; /* pieces and blobs with a due time, passed or not */
	bool hungry;      /* something waits for memory */
	bool stop;
	atomic_uint_fast64_t received;

	/* N: hedging */
	double times[DOWNLOAD_TIMES]; /* ms that pieces took, the last ones */
	size_t ntimes;
	uint64_t hedged; /* bytes asked for twice */
	unsigned open;   /* transfers that may run at once, by now; since when */
	double opened;
	double next_hedge;
};

/* ---- download-job.c: with the lock held ---- */

size_t job_index(const struct job *j);
void job_set_state(struct job *j, enum job_state state);
void job_unlist(struct job *j);
void job_arrived(struct job *j);
/* BUSY -> WANTED, not before due (0: at once). What it has is kept. */
void job_back(struct job *j, double due);
/* The one that is next for a consumer, which is OUT then, or NULL. */
struct job *job_hand_out(struct stream *s);
void job_done(struct job *j);
/* Its memory is free again. */
void job_drop(struct job *j);
void due_clear(struct download *d, double *due);
void blob_make_whole(struct blob *b);
/* Not read before due (0: at once). */
void blob_wait(struct blob *b, double due);
/* Go on with endpoint next, if it is not behind that already. false: there is none. */
bool blob_next_endpoint(struct blob *b, unsigned next);
/* Failed, or being closed. */
bool stream_over(const struct stream *s);
/* Forget what waits or has arrived. */
void stream_clear(struct stream *s);
void stream_fail(struct stream *s, const struct err *e);

/* ---- download-memory.c: with the lock held ---- */

/* Has it memory, or may it take some? Else d->hungry. */
bool job_may_begin(struct job *j);
/* BUSY, with a buffer. false: memory is short. */
bool job_take(struct job *j);
/* Can a paused lane take its next piece, or end? */
bool lane_may_go_on(struct lane *l);
/* Somebody waits for a piece that cannot be begun, because others' pieces, which nobody takes, have
 * the memory or the lanes: take it from them. true: something became free. */
bool memory_relieve(struct download *d, double now, bool lanes_left);

/* ---- download-queue.c: with the lock held ---- */

/* What may be begun now. false: nothing (d->hungry: for want of memory). */
bool queue_pick(struct download *d, double now, struct work *w);
/* How many pieces and blobs wait to be tried again; each keeps a lane's place, so that a server
 * that wants less is not asked for all the other pieces in the meantime. *wait: ms until the first
 * of them is due, at most max. */
unsigned queue_delayed(struct download *d, double now, int max, int *wait);
/* The next WANTED piece that the lane's body has not passed, or NULL. */
struct job *lane_next_job(struct lane *l);
/* The pieces that are to come are for others. */
void lane_give_back(struct lane *l);

/* ---- download-lane.c: network thread, without the lock ---- */

int lane_init(struct lane *l, struct download *d, struct err *e) must_check;
void lane_fini(struct lane *l);
void lane_start(struct lane *l, const struct work *w);
/* libcurl is done with it. */
void lane_end(struct lane *l, CURLcode code);
/* Nobody wants it any more. */
void lane_cancel(struct lane *l);

/* ---- download-answer.c: network thread, without the lock ---- */

/* For libcurl; ctx is the lane. */
size_t lane_on_header(char *data, size_t size, size_t n, void *ctx);
size_t lane_on_data(char *data, size_t size, size_t n, void *ctx);
/* Look at the head before the first byte is taken. -1: redo or broken is set. */
int lane_accept(struct lane *l) must_check;
void lane_begin_piece(struct lane *l);
/* For the median. */
void lane_note_time(struct lane *l);
/* The lane's piece is here: who else fetches it is in vain. Lock held. */
void lane_win(struct lane *l);

/* ---- download-network.c ---- */

void *download_network(void *d);

#endif
