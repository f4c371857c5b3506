#include "images/workers.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

/* "max 100000" or "150000 100000" of cgroup v2; v1 has two files. 0 when there is no limit. */
static size_t quota_cores(void)
{
	FILE *f = fopen("/sys/fs/cgroup/cpu.max", "re");
	long quota = -1, period = 0;

	if (f) {
		if (fscanf(f, "%ld %ld", &quota, &period) != 2)
			quota = -1;
		fclose(f);
	}
	return quota > 0 && period > 0 ? (size_t)((quota + period - 1) / period) : 0;
}

size_t workers_cores(void)
{
	cpu_set_t set;
	size_t n = 1, quota = quota_cores();

	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		n = (size_t)CPU_COUNT(&set);
	if (quota && quota < n)
		n = quota;
	return n ? n : 1;
}

struct each {
	size_t n;
	atomic_size_t next;
	int (*fn)(void *, size_t, struct err *);
	void *ctx;
	pthread_mutex_t lock;
	bool failed;
	struct err first;
};

static void keep_first(pthread_mutex_t *lock, bool *failed, struct err *first, const struct err *e)
{
	pthread_mutex_lock(lock);
	if (!*failed)
		*first = *e;
	*failed = true;
	pthread_mutex_unlock(lock);
}

static void *each_thread(void *arg)
{
	struct each *w = arg;
	struct err e = {0};
	size_t i;

	while ((i = atomic_fetch_add(&w->next, 1)) < w->n)
		if (w->fn(w->ctx, i, &e) < 0) {
			keep_first(&w->lock, &w->failed, &w->first, &e);
			atomic_store(&w->next, w->n);
		}
	return NULL;
}

static size_t start(pthread_t *t, size_t threads, void *(*fn)(void *), void *arg)
{
	size_t started = 0;

	while (started < threads && pthread_create(&t[started], NULL, fn, arg) == 0)
		started++;
	return started;
}

int workers_each(
	size_t n, size_t threads, int (*fn)(void *, size_t, struct err *), void *ctx, struct err *e)
{
	struct each w = {.n = n, .fn = fn, .ctx = ctx, .lock = PTHREAD_MUTEX_INITIALIZER};
	size_t started;

	if (threads == 0)
		threads = workers_cores();
	if (threads > n)
		threads = n;

	auto_free pthread_t *t = mem_array(threads, sizeof(*t));

	started = start(t, threads ? threads - 1 : 0, each_thread, &w);
	each_thread(&w); /* the caller works too, so no thread at all is fine */
	while (started > 0)
		pthread_join(t[--started], NULL);
	if (w.failed && e)
		*e = w.first;
	return w.failed ? -1 : 0;
}

struct pipe_state {
	const struct workers_pipe *p;
	pthread_mutex_t lock;
	pthread_cond_t made, taken;
	size_t n, next_make, next_take;
	bool *ready; /* by slot */
	bool failed;
	struct err first;
};

static void *make_thread(void *arg)
{
	struct pipe_state *s = arg;
	struct err e = {0};

	pthread_mutex_lock(&s->lock);
	for (;;) {
		size_t i;
		int rc;

		while (!s->failed && s->next_make < s->n &&
			s->next_make >= s->next_take + s->p->slots)
			pthread_cond_wait(&s->taken, &s->lock);
		if (s->failed || s->next_make >= s->n)
			break;
		i = s->next_make++;
		pthread_mutex_unlock(&s->lock);
		rc = s->p->make(s->p->ctx, i, i % s->p->slots, &e);
		pthread_mutex_lock(&s->lock);
		if (rc < 0 && !s->failed) {
			s->failed = true;
			s->first = e;
			pthread_cond_broadcast(&s->taken);
		}
		if (rc > 0 && i < s->n) { /* those that wait for room need it no more */
			s->n = i;
			pthread_cond_broadcast(&s->taken);
		}
		s->ready[i % s->p->slots] = true;
		pthread_cond_signal(&s->made);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static void take_all(struct pipe_state *s)
{
	struct err e = {0};

	pthread_mutex_lock(&s->lock);
	while (!s->failed && s->next_take < s->n) {
		size_t i = s->next_take, slot = i % s->p->slots;
		int rc;

		while (!s->failed && !s->ready[slot])
			pthread_cond_wait(&s->made, &s->lock);
		if (s->failed || i >= s->n)
			break;
		pthread_mutex_unlock(&s->lock);
		rc = s->p->take(s->p->ctx, i, slot, &e);
		pthread_mutex_lock(&s->lock);
		if (rc < 0 && !s->failed) {
			s->failed = true;
			s->first = e;
		}
		s->ready[slot] = false;
		s->next_take++;
		pthread_cond_broadcast(&s->taken);
	}
	pthread_mutex_unlock(&s->lock);
}

int workers_ordered(const struct workers_pipe *p, struct err *e)
{
	struct pipe_state s = {.p = p, .n = p->n, .lock = PTHREAD_MUTEX_INITIALIZER};
	size_t threads = p->threads ? p->threads : workers_cores(), started;

	assert(p->slots > 0);
	if (threads > p->n)
		threads = p->n;
	if (threads == 0)
		return 0;

	auto_free pthread_t *t = mem_array(threads, sizeof(*t));
	auto_free bool *ready = mem_array(p->slots, sizeof(*ready));

	s.ready = ready;
	pthread_cond_init(&s.made, NULL);
	pthread_cond_init(&s.taken, NULL);
	started = start(t, threads, make_thread, &s);
	if (started == 0) {
		errno = EAGAIN;
		return err_sys(e, "start a worker thread");
	}
	take_all(&s);
	while (started > 0)
		pthread_join(t[--started], NULL);
	pthread_cond_destroy(&s.made);
	pthread_cond_destroy(&s.taken);
	if (s.failed && e)
		*e = s.first;
	return s.failed ? -1 : 0;
}
