#include "base/progress.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"

struct progress {
	enum progress_mode mode;
	bool bar, running;
	pthread_mutex_t lock;
	char stage[32];
	uint64_t total, done;
	double started, drawn;
};

int progress_mode_parse(const char *s, enum progress_mode *mode)
{
	static const char *const names[] = {"auto", "plain", "json", "timings", "none"};

	for (unsigned i = 0; i < 5; i++)
		if (strcmp(s, names[i]) == 0) {
			*mode = (enum progress_mode)i;
			return 0;
		}
	return -1;
}

struct progress *progress_new(enum progress_mode mode)
{
	struct progress *p;

	if (mode == PROGRESS_NONE)
		return NULL;
	p = mem_alloc(sizeof(*p));
	p->mode = mode;
	p->bar = mode == PROGRESS_AUTO && isatty(STDERR_FILENO);
	pthread_mutex_init(&p->lock, NULL);
	return p;
}

void progress_free(struct progress *p)
{
	if (!p)
		return;
	progress_end(p);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

static double mib(uint64_t n)
{
	return (double)n / (1 << 20);
}

static void draw(struct progress *p)
{
	double s = (sys_now_ms() - p->started) / 1e3, rate = s > 0 ? mib(p->done) / s : 0;
	int percent = p->total ? (int)(100 * p->done / p->total) : 0;

	fprintf(stderr, "\r\033[K%-8s %8.1f MiB", p->stage, mib(p->done));
	if (p->total)
		fprintf(stderr, " of %.1f MiB %3d %%", mib(p->total),
			percent > 100 ? 100 : percent);
	fprintf(stderr, "  %.0f MiB/s", rate);
	if (p->total > p->done && rate > 0)
		fprintf(stderr, "  %.0f s left", mib(p->total - p->done) / rate);
	fflush(stderr);
}

static void finish(struct progress *p)
{
	double s = (sys_now_ms() - p->started) / 1e3;

	if (!p->running)
		return;
	p->running = false;
	if (p->mode == PROGRESS_JSON) {
		fprintf(stderr, "{\"stage\":\"%s\",\"bytes\":%" PRIu64 ",\"seconds\":%.3f}\n",
			p->stage, p->done, s);
		return;
	}
	if (p->mode == PROGRESS_TIMINGS) {
		fprintf(stderr, "timing %s %.1f ms\n", p->stage, s * 1e3);
		return;
	}
	if (p->bar)
		fputs("\r\033[K", stderr);
	fprintf(stderr, "%-8s", p->stage);
	if (p->done)
		fprintf(stderr, " %8.1f MiB", mib(p->done));
	fprintf(stderr, " %7.2f s", s);
	if (p->done && s > 0.001)
		fprintf(stderr, "  %.0f MiB/s", mib(p->done) / s);
	fputc('\n', stderr);
}

void progress_begin(struct progress *p, const char *stage, uint64_t total)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	finish(p);
	snprintf(p->stage, sizeof(p->stage), "%s", stage);
	p->total = total;
	p->done = 0;
	p->started = p->drawn = sys_now_ms();
	p->running = true;
	pthread_mutex_unlock(&p->lock);
}

void progress_add(struct progress *p, uint64_t bytes)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->done += bytes;
	if (p->bar && sys_now_ms() - p->drawn > 100) {
		p->drawn = sys_now_ms();
		draw(p);
	}
	pthread_mutex_unlock(&p->lock);
}

void progress_end(struct progress *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	finish(p);
	pthread_mutex_unlock(&p->lock);
}

void progress_note(struct progress *p, const char *fmt, ...)
{
	char line[1024];
	va_list ap;

	if (!p)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	pthread_mutex_lock(&p->lock);
	if (p->mode != PROGRESS_JSON && p->mode != PROGRESS_TIMINGS)
		fprintf(stderr, "%s%s\n", p->bar ? "\r\033[K" : "", line);
	pthread_mutex_unlock(&p->lock);
}
