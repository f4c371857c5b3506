/* What `svrun run` was asked for. */
#ifndef SVRUN_RUN_OPTIONS_H
#define SVRUN_RUN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "svrun/options.h"

struct run_options {
	bool rm, terminal, interactive, read_only, timings;
	const char *name, *user, *workdir, *network, *memory, *cpus, *pids, *hostname, *entrypoint,
		*shm_size, *stop_timeout, *pull;
	struct option_list env, env_files, volumes, tmpfs, cap_add, cap_drop, ulimits,
		secrets, accepted;
	const char *image;
	char *const *words; /* behind the image's name */
	size_t nwords;
	/* Parsed from the strings above: */
	uint64_t memory_bytes, shm_bytes; /* 0: not given */
	double cores;                     /* 0: not given */
	uint64_t pids_max;                /* 0: no limit */
	unsigned stop_seconds;
};

/* Errors: USAGE. */
int run_options_parse(struct run_options *o, const struct command *self, int argc, char **argv,
	struct err *e) must_check;
void run_options_fini(struct run_options *o);

#endif
