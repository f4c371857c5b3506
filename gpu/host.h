/* Where the facts about GPUs are read: the host's /proc, /sys, /dev and its root. Tests, and hosts
 * whose driver lives in a root of its own, give another one. Nothing is cached between starts: the
 * majors of devices change with every boot. */
#ifndef GPU_HOST_H
#define GPU_HOST_H

#include "base/err.h"

struct gpu_host {
	int proc, sys, dev; /* folders */
	int root;           /* "/": where drivers are searched */
	const char *prefix; /* "" or the path of the other root, for messages and for mounts */
	const char *run;    /* folder of what we keep until the next boot: "/run/svrun/gpu" */
};

/* SVRUN_GPU_ROOT=DIR in the environment: DIR/proc, DIR/sys, DIR/dev, DIR and DIR/run/svrun/gpu
 * instead. That is for tests: DENIED in a program that gained rights by its file (AT_SECURE).
 * A missing proc, sys or dev is an empty one. Errors: SYSTEM, DENIED. */
int gpu_host_open(struct gpu_host *h, struct err *e) must_check;
void gpu_host_close(struct gpu_host *h);

#endif
