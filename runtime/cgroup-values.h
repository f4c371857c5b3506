/* Version 1's numbers, which the runtime-spec uses, as version 2 has them. Pure functions. */
#ifndef RUNTIME_CGROUP_VALUES_H
#define RUNTIME_CGROUP_VALUES_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* CPU shares (2 to 262144, 1024 is usual) as a weight (1 to 10000, 100 is usual), as all runtimes
 * do it since 2025: 10 ^ ((l^2 + 125 l) / 612 - 7/34), l = log2(shares), rounded up. */
int64_t cgroup_weight(int64_t shares);
/* blkio's weight (10 to 1000) as io's (1 to 10000). */
int64_t cgroup_io_weight(int64_t weight);
/* Memory and swap together, and memory's limit (INT64_MAX or -1: none), as swap alone; -1 is no
 * limit. USAGE when they do not fit. */
int cgroup_swap(int64_t both, int64_t limit, int64_t *swap, struct err *e) must_check;
/* The text for cpu.max. `old` is what it says now ("max 100000"); quota 0 and period 0 leave that;
 * quota < 0 is no limit. */
void cgroup_cpu_max(char out[64], const char *old, int64_t quota, int64_t period);
/* A list "0-3,5" as bits: bit n % 8 of byte n / 8. *n is how many bytes that takes. -1 when it is
 * no list, or has greater numbers than fit. */
int cgroup_bit_set(const char *list, uint8_t *bits, size_t size, size_t *n) must_check;

#endif
