#include "images/sink.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "images/workers.h"

enum {
	BATCH_ITEMS = 256,      /* chunks in one hand-over */
	GATHER_MAX = 256 << 10, /* a longer chunk is not worth copying: it goes alone */
};

struct item {
	struct chunk *c;
	uint32_t at, len;
	bool known; /* c->digest is what it must be */
};

/* A buffer and what is in it. Free, with a caller, gathering, in the queue, or with a thread. */
struct batch {
	struct batch *next;
	uint64_t number; /* of its hand-over; 0: it was not handed over */
	uint32_t fill, n;
	struct item v[BATCH_ITEMS];
	_Alignas(64) unsigned char data[CHUNK_SIZE];
};

struct sink {
	struct pool *pool;
	pthread_t *threads;
	size_t nthreads;
	atomic_bool failed;
	pthread_mutex_t lock; /* of all below */
	pthread_cond_t work, freed;
	struct batch **all;
	size_t n;
	struct batch *free;
	struct batch *first, **last; /* the queue */
	struct batch *gather;        /* small chunks come here until it is full */
	uint64_t number;             /* of hand-overs so far */
	bool stop;
	struct err e; /* the first */
};

/* ---- the threads ---- */

static int put_items(struct sink *s, const struct batch *b, struct err *e)
{
	struct pool_item known[BATCH_ITEMS], found[BATCH_ITEMS];
	size_t nknown = 0, nfound = 0;

	for (uint32_t i = 0; i < b->n; i++) {
		struct pool_item v = {.data = b->data + b->v[i].at, .c = b->v[i].c};

		if (b->v[i].known)
			known[nknown++] = v;
		else
			found[nfound++] = v;
	}
	if (nfound && pool_put_all(s->pool, found, nfound, e) < 0)
		return -1;
	return nknown ? pool_put_known(s->pool, known, nknown, e) : 0;
}

/* Put what b holds and free it. Called with the lock, which is not held meanwhile. */
static void process(struct sink *s, struct batch *b)
{
	struct err e = {0};
	int rc = 0;

	pthread_mutex_unlock(&s->lock);
	if (!atomic_load(&s->failed))
		rc = put_items(s, b, &e);
	pthread_mutex_lock(&s->lock);
	if (rc < 0 && !atomic_load(&s->failed)) {
		s->e = e;
		atomic_store(&s->failed, true);
	}
	b->number = 0;
	b->next = s->free;
	s->free = b;
	pthread_cond_broadcast(&s->freed);
}

static void *sink_thread(void *arg)
{
	struct sink *s = arg;

	pthread_mutex_lock(&s->lock);
	for (;;) {
		struct batch *b;

		while (!s->first && !s->stop)
			pthread_cond_wait(&s->work, &s->lock);
		b = s->first;
		if (!b)
			break;
		s->first = b->next;
		if (!s->first)
			s->last = &s->first;
		process(s, b);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

struct sink *sink_new(struct pool *p, size_t threads, size_t memory)
{
	struct sink *s = mem_alloc(sizeof(*s));

	if (threads == 0)
		threads = workers_cores();
	s->pool = p;
	s->last = &s->first;
	s->n = memory / CHUNK_SIZE > threads ? memory / CHUNK_SIZE : threads + 1;
	s->all = mem_array(s->n, sizeof(struct batch *));
	for (size_t i = 0; i < s->n; i++) {
		s->all[i] = mem_alloc(sizeof(struct batch));
		s->all[i]->next = s->free;
		s->free = s->all[i];
	}
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->work, NULL);
	pthread_cond_init(&s->freed, NULL);
	s->threads = mem_array(threads, sizeof(*s->threads));
	while (s->nthreads < threads &&
		pthread_create(&s->threads[s->nthreads], NULL, sink_thread, s) == 0)
		s->nthreads++;
	return s;
}

/* ---- handing over; all with the lock ---- */

static void hand_over(struct sink *s, struct batch *b)
{
	b->number = ++s->number;
	if (s->nthreads == 0) { /* none could be started: the caller does the work */
		process(s, b);
		return;
	}
	b->next = NULL;
	*s->last = b;
	s->last = &b->next;
	pthread_cond_signal(&s->work);
}

static void hand_over_gathered(struct sink *s)
{
	struct batch *b = s->gather;

	s->gather = NULL;
	if (b)
		hand_over(s, b);
}

static struct batch *take_free(struct sink *s)
{
	struct batch *b;

	while (!s->free) {
		hand_over_gathered(s); /* it may be the one that everybody waits for */
		if (!s->free)
			pthread_cond_wait(&s->freed, &s->lock);
	}
	b = s->free;
	s->free = b->next;
	b->fill = b->n = 0;
	return b;
}

static void give_free(struct sink *s, struct batch *b)
{
	b->next = s->free;
	s->free = b;
	pthread_cond_broadcast(&s->freed);
}

static bool has_room(const struct batch *b, uint32_t len)
{
	return b->n < BATCH_ITEMS && len <= CHUNK_SIZE - b->fill;
}

/* Note that the next len bytes of b are c's. */
static void add_item(struct batch *b, uint32_t len, struct chunk *c, const struct digest *expected)
{
	if (expected)
		c->digest = *expected;
	c->length = len;
	b->v[b->n++] = (struct item){.c = c, .at = b->fill, .len = len, .known = expected != NULL};
	b->fill += len;
}

/* ---- the callers ---- */

unsigned char *sink_buffer(struct sink *s)
{
	struct batch *b;

	pthread_mutex_lock(&s->lock);
	b = take_free(s);
	pthread_mutex_unlock(&s->lock);
	return b->data;
}

void sink_put(struct sink *s, unsigned char *own_buffer, uint32_t len, struct chunk *c,
	const struct digest *expected)
{
	struct batch *b = (struct batch *)(void *)(own_buffer - offsetof(struct batch, data));

	assert(len <= CHUNK_SIZE);
	pthread_mutex_lock(&s->lock);
	if (len == 0) {
		give_free(s, b);
	} else if (len > GATHER_MAX) {
		add_item(b, len, c, expected);
		hand_over(s, b);
	} else if (s->gather && has_room(s->gather, len)) {
		memcpy(s->gather->data + s->gather->fill, own_buffer, len);
		add_item(s->gather, len, c, expected);
		give_free(s, b);
	} else { /* it becomes the one that gathers: nobody has to wait */
		hand_over_gathered(s);
		add_item(b, len, c, expected);
		s->gather = b;
	}
	pthread_mutex_unlock(&s->lock);
}

void sink_add(struct sink *s, const void *data, uint32_t len, struct chunk *c,
	const struct digest *expected)
{
	assert(len > 0 && len <= SINK_SMALL);
	pthread_mutex_lock(&s->lock);
	while (!s->gather || !has_room(s->gather, len)) {
		struct batch *b;

		hand_over_gathered(s);
		b = take_free(s);
		if (s->gather) /* another thread was faster */
			give_free(s, b);
		else
			s->gather = b;
	}
	memcpy(s->gather->data + s->gather->fill, data, len);
	add_item(s->gather, len, c, expected);
	pthread_mutex_unlock(&s->lock);
}

static bool is_busy(const struct sink *s, uint64_t number)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->all[i]->number && s->all[i]->number <= number)
			return true;
	return false;
}

int sink_wait(struct sink *s, struct err *e)
{
	uint64_t number;

	pthread_mutex_lock(&s->lock);
	hand_over_gathered(s);
	number = s->number;
	while (is_busy(s, number))
		pthread_cond_wait(&s->freed, &s->lock);
	pthread_mutex_unlock(&s->lock);
	return sink_check(s, e);
}

int sink_check(struct sink *s, struct err *e)
{
	if (!atomic_load(&s->failed))
		return 0;
	pthread_mutex_lock(&s->lock);
	if (e)
		*e = s->e;
	pthread_mutex_unlock(&s->lock);
	return -1;
}

void sink_free(struct sink *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	hand_over_gathered(s);
	s->stop = true;
	pthread_cond_broadcast(&s->work);
	pthread_mutex_unlock(&s->lock);
	for (size_t i = 0; i < s->nthreads; i++)
		pthread_join(s->threads[i], NULL);
	for (size_t i = 0; i < s->n; i++)
		free(s->all[i]);
	pthread_cond_destroy(&s->freed);
	pthread_cond_destroy(&s->work);
	pthread_mutex_destroy(&s->lock);
	free(s->threads);
	free(s->all);
	free(s);
}
