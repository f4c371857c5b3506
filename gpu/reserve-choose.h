/* Which GPUs to take when a number was asked for. For gpu/reserve.c only. */
#ifndef GPU_RESERVE_CHOOSE_H
#define GPU_RESERVE_CHOOSE_H

#include "gpu/request.h"

/* What can be given one by one: whole GPUs, and the MIG devices of those in MIG mode. */
void reserve_list(const struct gpu_inventory *i, struct gpu_grants *g);

/* Kinds are not mixed: a program can use several MIG devices no more than two makers' GPUs. Those
 * that come first are taken first. */
enum { RESERVE_KINDS = 4 };
int reserve_kind(const struct gpu_grant *g);

/* Move `want` of those in `from`, which has so many, to g, which grows: of one NUMA node where one
 * has enough. Those that were moved have no device in `from` any more. */
void reserve_choose(struct gpu_grants *from, size_t want, struct gpu_grants *g);

#endif
