#include "runtime/cgroup-values.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t cgroup_weight(int64_t shares)
{
	double l;

	if (shares <= 2)
		return 1;
	if (shares >= 262144)
		return 10000;
	l = log2((double)shares);
	/* A hair less, for the values that are whole but for rounding. */
	return (int64_t)ceil(pow(10, (l * l + 125 * l) / 612 - 7.0 / 34) - 1e-9);
}

int64_t cgroup_io_weight(int64_t weight)
{
	if (weight <= 10)
		return 1;
	return weight >= 1000 ? 10000 : 1 + (weight - 10) * 9999 / 990;
}

int cgroup_swap(int64_t both, int64_t limit, int64_t *swap, struct err *e)
{
	*swap = -1;
	if (both < 0)
		return 0;
	if (limit < 0 || limit == INT64_MAX)
		return err_set(e, ERR_USAGE,
			"/linux/resources/memory/swap: memory and swap together cannot be limited "
			"without a limit of memory");
	if (both < limit)
		return err_set(e, ERR_USAGE,
			"/linux/resources/memory/swap: memory and swap together, %" PRId64
			", are less than memory, %" PRId64,
			both, limit);
	*swap = both - limit;
	return 0;
}

void cgroup_cpu_max(char out[64], const char *old, int64_t quota, int64_t period)
{
	char kept[24] = "max";
	long long was = 0;

	sscanf(old, "%23s %lld", kept, &was);
	if (quota)
		snprintf(kept, sizeof(kept), "%" PRId64, quota);
	if (!period)
		period = was > 0 ? was : 100000;
	snprintf(out, 64, "%s %" PRId64, quota < 0 ? "max" : kept, period);
}

/* A number at *p, which moves on; `end` when there is none below it. */
static uint64_t take_number(const char **p, uint64_t end)
{
	uint64_t v = end;
	char *behind;

	if (**p >= '0' && **p <= '9') {
		v = strtoull(*p, &behind, 10);
		*p = behind;
	}
	return v < end ? v : end;
}

int cgroup_bit_set(const char *list, uint8_t *bits, size_t size, size_t *n)
{
	uint64_t end = size * 8, i, last;

	memset(bits, 0, size);
	*n = 0;
	for (const char *p = list;; p++) {
		i = last = take_number(&p, end);
		if (*p == '-') {
			p++;
			last = take_number(&p, end);
		}
		if (last == end || i > last)
			return -1;
		if (last / 8 + 1 > *n)
			*n = last / 8 + 1;
		for (; i <= last; i++)
			bits[i / 8] |= (uint8_t)(1u << i % 8);
		if (*p != ',')
			return *p && *p != '\n' ? -1 : 0;
	}
}
