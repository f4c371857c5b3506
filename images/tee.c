#include "images/tee.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>

#include "base/mem.h"

enum { SMALL = 32 << 10 }; /* below: hashing takes less time than waking a thread */

struct span {
	const void *p;
	size_t n;
};

struct tee {
	struct source source;
	struct source *in;
	const char *name;
	uint64_t bytes, max;
	unsigned lag;
	struct hash hash; /* the thread's while spans are in the ring */
	pthread_t thread;
	bool started, no_thread;
	pthread_mutex_t lock; /* of all below */
	pthread_cond_t added, hashed;
	struct span ring[TEE_LAG_MAX + 1];
	uint64_t head, tail; /* spans that came, spans that are hashed */
	bool stop;
};

static void *hash_thread(void *arg)
{
	struct tee *t = arg;

	pthread_mutex_lock(&t->lock);
	for (;;) {
		struct span s;

		while (t->head == t->tail && !t->stop)
			pthread_cond_wait(&t->added, &t->lock);
		if (t->head == t->tail)
			break;
		s = t->ring[t->tail % (TEE_LAG_MAX + 1)];
		pthread_mutex_unlock(&t->lock);
		hash_add(&t->hash, s.p, s.n);
		pthread_mutex_lock(&t->lock);
		t->tail++;
		pthread_cond_signal(&t->hashed);
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

/* Until at most `left` spans wait to be hashed. */
static void wait_hashed(struct tee *t, unsigned left)
{
	pthread_mutex_lock(&t->lock);
	while (t->head - t->tail > left)
		pthread_cond_wait(&t->hashed, &t->lock);
	pthread_mutex_unlock(&t->lock);
}

static bool have_thread(struct tee *t)
{
	if (!t->started && !t->no_thread)
		t->started = pthread_create(&t->thread, NULL, hash_thread, t) == 0;
	t->no_thread = !t->started;
	return t->started;
}

static void add(struct tee *t, const void *p, size_t n)
{
	if (n < SMALL || !have_thread(t)) {
		wait_hashed(t, 0);
		hash_add(&t->hash, p, n);
		return;
	}
	pthread_mutex_lock(&t->lock);
	t->ring[t->head++ % (TEE_LAG_MAX + 1)] = (struct span){p, n};
	pthread_cond_signal(&t->added);
	pthread_mutex_unlock(&t->lock);
}

static int tee_next(struct source *source, const void **data, size_t *n, struct err *e)
{
	struct tee *t = (struct tee *)source;
	int rc;

	wait_hashed(t, t->lag); /* the call takes the oldest span away */
	rc = source_next(t->in, data, n, e);
	if (rc <= 0)
		return rc;
	t->bytes += *n;
	if (t->bytes > t->max)
		return err_set(e, ERR_CORRUPT, "%s: more than the %" PRIu64 " bytes expected",
			t->name, t->max);
	add(t, *data, *n);
	return rc;
}

struct tee *tee_new(struct source *in, unsigned lag, uint64_t max, const char *name)
{
	struct tee *t = mem_alloc(sizeof(*t));

	assert(lag <= TEE_LAG_MAX);
	t->source.next = tee_next;
	t->in = in;
	t->lag = lag;
	t->max = max;
	t->name = name;
	hash_init(&t->hash, HASH_SHA256);
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->added, NULL);
	pthread_cond_init(&t->hashed, NULL);
	return t;
}

void tee_free(struct tee *t)
{
	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	t->stop = true;
	pthread_cond_signal(&t->added);
	pthread_mutex_unlock(&t->lock);
	if (t->started)
		pthread_join(t->thread, NULL);
	pthread_cond_destroy(&t->hashed);
	pthread_cond_destroy(&t->added);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

struct source *tee_source(struct tee *t)
{
	return &t->source;
}

uint64_t tee_bytes(const struct tee *t)
{
	return t->bytes;
}

struct digest tee_digest(struct tee *t)
{
	wait_hashed(t, 0);
	return hash_digest(&t->hash);
}
