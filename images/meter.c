#include "images/meter.h"

#include <stdio.h>

enum { SETTLED_MS = 500, TEXT = 64 };

void meter_start(struct meter *m, uint64_t done, uint64_t total, double now)
{
	*m = (struct meter){.done = done,
		.before = done,
		.last_done = done,
		.total = total,
		.started = now,
		.last = now};
}

double meter_seconds(const struct meter *m, double now)
{
	return (now - m->started) / 1e3;
}

double meter_average(const struct meter *m, double now)
{
	double s = meter_seconds(m, now);

	return s > 0.001 ? (double)(m->done - m->before) / s : 0;
}

/* The last third of a second counts most: a time left that follows the link, not its every mood. */
void meter_sample(struct meter *m, double now)
{
	double s = (now - m->last) / 1e3, share = s < 1.0 / 3 ? 3 * s : 1;

	if (s <= 0)
		return;
	if (now - m->started < SETTLED_MS || m->rate <= 0)
		m->rate = meter_average(m, now);
	else
		m->rate += share * ((double)(m->done - m->last_done) / s - m->rate);
	m->last = now;
	m->last_done = m->done;
}

static double mib(double n)
{
	return n / (1 << 20);
}

static void time_left(double s, char out[TEXT])
{
	if (s < 100)
		snprintf(out, TEXT, "  %.0f s left", s);
	else if (s < 6000)
		snprintf(out, TEXT, "  %.0f min left", s / 60);
	else if (s < 3600 * 1000)
		snprintf(out, TEXT, "  %.0f h left", s / 3600);
	else
		out[0] = '\0'; /* as good as standing still */
}

void meter_text(const struct meter *m, char *out, size_t size)
{
	char of[TEXT] = "", left[TEXT] = "";

	if (m->total)
		snprintf(of, sizeof(of), " of %.1f MiB %3u %%", mib((double)m->total),
			m->done >= m->total
				? 100U
				: (unsigned)(100.0 * (double)m->done / (double)m->total));
	if (m->total > m->done && m->rate > 0)
		time_left((double)(m->total - m->done) / m->rate, left);
	snprintf(out, size, " %8.1f MiB%s  %.0f MiB/s%s", mib((double)m->done), of, mib(m->rate),
		left);
}

void meter_result(const struct meter *m, double now, char *out, size_t size)
{
	double rate = meter_average(m, now);
	char done[TEXT] = "", speed[TEXT] = "";

	if (m->done)
		snprintf(done, sizeof(done), " %8.1f MiB", mib((double)m->done));
	if (rate > 0)
		snprintf(speed, sizeof(speed), "  %.0f MiB/s", mib(rate));
	snprintf(out, size, "%s %7.2f s%s", done, meter_seconds(m, now), speed);
}
