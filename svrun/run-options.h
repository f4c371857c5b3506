/* What `svrun run` was asked for. */
#ifndef SVRUN_RUN_OPTIONS_H
#define SVRUN_RUN_OPTIONS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "svrun/options.h"

struct run_options {
	bool rm, terminal, interactive, read_only, timings, gpus_shared;
	const char *name, *user, *workdir, *network, *memory, *cpus, *pids, *hostname, *entrypoint,
		*shm_size, *stop_timeout, *pull, *mode;
	struct option_list env, env_files, volumes, tmpfs, cap_add, cap_drop, ulimits, secrets,
		accepted, gpus, devices, cdi_dirs, cdi_hooks;
	const char *image;
	const char *digest; /* of its manifest, of an instance that starts again; NULL: by name */
	char *const *words; /* behind the image's name */
	size_t nwords;
	/* Parsed from the strings above: */
	uint64_t memory_bytes, shm_bytes; /* 0: not given */
	double cores;                     /* 0: not given */
	uint64_t pids_max;                /* 0: no limit */
	unsigned stop_seconds;
	/* Of an instance that starts again (run-keep.h), which the strings above are in: */
	json_t *kept;
	char **own_words;
};

/* Errors: USAGE. */
int run_options_parse(struct run_options *o, const struct command *self, int argc, char **argv,
	struct err *e) must_check;
void run_options_fini(struct run_options *o);

/* The same for `svrun restart` and `svrun start`: what may be changed then, and the time of --time.
 * *first: index of the instance's name in argv. */
int run_options_parse_again(struct run_options *o, const struct command *self, int argc,
	char **argv, int *first, struct err *e) must_check;
/* Numbers out of the texts, once all of these are there. */
int run_options_values(struct run_options *o, struct err *e) must_check;

/* The table of all options, with o's members for their values; rows stand at the same place for
 * every o. */
enum { RUN_OPTIONS_MAX = 56 };
void run_options_table(struct run_options *o, struct option_spec table[RUN_OPTIONS_MAX]);

#endif
