/* How far something has come, and how fast: what lines of progress are made of. Times are
 * sys_now_ms(). */
#ifndef BASE_METER_H
#define BASE_METER_H

#include <stddef.h>
#include <stdint.h>

struct meter {
	uint64_t done, total; /* bytes; total 0: unknown */
	uint64_t before;      /* what was done when it started: it does not count for the rate */
	double started;
	uint64_t last_done; /* of the last sample */
	double last;
	double rate; /* bytes a second, of late */
};

void meter_start(struct meter *m, uint64_t done, uint64_t total, double now);
/* Take a sample for the rate, about as often as the meter is looked at. */
void meter_sample(struct meter *m, double now);
double meter_seconds(const struct meter *m, double now);
/* Bytes a second over all. */
double meter_average(const struct meter *m, double now);

/* "  12.3 MiB of 50.0 MiB  24 %  30 MiB/s  2 s left": on its way, after meter_sample(). */
void meter_text(const struct meter *m, char *out, size_t size);
/* "  50.0 MiB    1.64 s  30 MiB/s": at its end. */
void meter_result(const struct meter *m, double now, char *out, size_t size);

#endif
