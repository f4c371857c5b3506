#include "svrun/run-options.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/str.h"

enum { PIDS_DEFAULT = 16384, PIDS_LIMIT = 4194304, STOP_DEFAULT = 10, STOP_LIMIT = 86400 };
static const uint64_t memory_min = 6 << 20; /* below that not even a shell starts */
static const double cores_min = 0.01, cores_limit = 4096;

static int parse_bytes(
	const char *option, const char *s, uint64_t min, uint64_t *out, struct err *e)
{
	*out = 0;
	if (!s)
		return 0;
	if (option_bytes(s, out) < 0) {
		err_set(e, ERR_USAGE, "%s '%s': expected a size", option, s);
		return err_hint(e, "like 512m, 2g or 1.5GiB");
	}
	if (*out < min)
		return err_set(e, ERR_USAGE, "%s '%s': at least %llu KiB", option, s,
			(unsigned long long)(min >> 10));
	return 0;
}

/* A plain decimal: strtod alone would take "inf", "0x8" and " 1". */
static int parse_cores(const char *s, double *out, struct err *e)
{
	char *end;

	*out = 0;
	if (!s)
		return 0;
	if (strspn(s, "0123456789.") == strlen(s) && isdigit((unsigned char)s[0])) {
		*out = strtod(s, &end);
		if (!*end && *out >= cores_min && *out <= cores_limit)
			return 0;
	}
	return err_set(e, ERR_USAGE, "--cpus '%s': expected a number of cores, like 2 or 0.5", s);
}

static int parse_pids(const char *s, uint64_t *out, struct err *e)
{
	*out = PIDS_DEFAULT;
	if (!s)
		return 0;
	if (str_eq(s, "unlimited")) {
		*out = 0;
		return 0;
	}
	if (str_u64(s, PIDS_LIMIT, out) < 0 || *out == 0)
		return err_set(
			e, ERR_USAGE, "--pids '%s': expected 1 to %d or unlimited", s, PIDS_LIMIT);
	return 0;
}

static int parse_stop(const char *s, unsigned *out, struct err *e)
{
	uint64_t v = STOP_DEFAULT;

	if (s && str_u64(s, STOP_LIMIT, &v) < 0)
		return err_set(e, ERR_USAGE, "--stop-timeout '%s': expected seconds, 0 to %d", s,
			STOP_LIMIT);
	*out = (unsigned)v;
	return 0;
}

static int check_hostname(const char *s, struct err *e)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.";

	if (!s || (*s && strlen(s) <= 63 && strspn(s, allowed) == strlen(s) && *s != '-'))
		return 0;
	err_set(e, ERR_USAGE, "--hostname '%.80s' is not a host name", s);
	return err_hint(e, "letters, digits, '-' and '.', at most 63");
}

static int check_network(const char *s, struct err *e)
{
	if (!s || str_eq(s, "none") || str_eq(s, "host"))
		return 0;
	return err_set(e, ERR_USAGE, "--network '%s': expected none or host", s);
}

static int check_pull(const char *s, struct err *e)
{
	if (!s || str_eq(s, "missing") || str_eq(s, "always") || str_eq(s, "never"))
		return 0;
	return err_set(e, ERR_USAGE, "--pull '%s': expected missing, always or never", s);
}

int run_options_values(struct run_options *o, struct err *e)
{
	if (parse_bytes("--memory", o->memory, memory_min, &o->memory_bytes, e) < 0 ||
		parse_bytes("--shm-size", o->shm_size, 4096, &o->shm_bytes, e) < 0 ||
		parse_cores(o->cpus, &o->cores, e) < 0 ||
		parse_pids(o->pids, &o->pids_max, e) < 0 ||
		parse_stop(o->stop_timeout, &o->stop_seconds, e) < 0)
		return -1;
	if (check_hostname(o->hostname, e) < 0 || check_network(o->network, e) < 0)
		return -1;
	return check_pull(o->pull, e);
}

void run_options_table(struct run_options *o, struct option_spec table[RUN_OPTIONS_MAX])
{
	const struct option_spec rows[] = {
		{"rm", 0, OPTION_FLAG, NULL, "remove what it wrote when it ends", &o->rm},
		{"name", 0, OPTION_STRING, "NAME", "name of the instance", &o->name},
		{"interactive", 'i', OPTION_FLAG, NULL, "pass standard input on", &o->interactive},
		{"tty", 't', OPTION_FLAG, NULL, "give it a terminal", &o->terminal},
		{"env", 'e', OPTION_LIST, "K=V", "set a variable, or pass K on", &o->env},
		{"env-file", 0, OPTION_LIST, "FILE", "variables from a file of K=V lines",
			&o->env_files},
		{"volume", 'v', OPTION_LIST, "SRC:DST", "mount a host path; :ro for read-only",
			&o->volumes},
		{"tmpfs", 0, OPTION_LIST, "DST[:OPT]", "mount an empty tmpfs", &o->tmpfs},
		{"workdir", 'w', OPTION_STRING, "DIR", "working directory", &o->workdir},
		{"user", 'u', OPTION_STRING, "USER[:GROUP]", "names or numbers", &o->user},
		{"entrypoint", 0, OPTION_STRING, "PROGRAM", "instead of the image's",
			&o->entrypoint},
		{"network", 0, OPTION_STRING, "MODE", "none (default) or host", &o->network},
		{"hostname", 0, OPTION_STRING, "NAME", "host name inside", &o->hostname},
		{"memory", 'm', OPTION_STRING, "SIZE", "memory limit, without swap", &o->memory},
		{"cpus", 0, OPTION_STRING, "N", "cores it may use, also 0.5", &o->cpus},
		{"pids", 0, OPTION_STRING, "N", "processes and threads (16384)", &o->pids},
		{"shm-size", 0, OPTION_STRING, "SIZE", "of /dev/shm (half of the memory)",
			&o->shm_size},
		{"ulimit", 0, OPTION_LIST, "NAME=SOFT[:HARD]", "resource limit", &o->ulimits},
		{"read-only", 0, OPTION_FLAG, NULL, "root cannot be written to", &o->read_only},
		{"cap-add", 0, OPTION_LIST, "CAP", "one more capability, or ALL", &o->cap_add},
		{"cap-drop", 0, OPTION_LIST, "CAP", "one capability less, or ALL", &o->cap_drop},
		{"gpus", 0, OPTION_LIST, "GPUS",
			"all, a number, or a list of index, UUID, bus or MIG device", &o->gpus},
		{"gpus-shared", 0, OPTION_FLAG, NULL, "others who say so may have them, too",
			&o->gpus_shared},
		{"device", 0, OPTION_LIST, "DEVICE",
			"/dev/PATH[:PATH[:rwm]], a CDI name, or gds, gdrcopy, nvswitch, mps, dri, "
			"infiniband, modeset, mig-config, mig-monitor, fabric-mgmt, imex=N",
			&o->devices},
		{"cdi-spec-dir", 0, OPTION_LIST, "DIR", "where CDI names are looked up",
			&o->cdi_dirs},
		{"cdi-allow-hook", 0, OPTION_LIST, "FILE",
			"a program that CDI specs may run as a hook", &o->cdi_hooks},
		{"mode", 0, OPTION_STRING, "MODE", "of the image's modes; cpu: without GPUs",
			&o->mode},
		{"stop-timeout", 0, OPTION_STRING, "SECONDS", "from SIGTERM to SIGKILL (10)",
			&o->stop_timeout},
		{"pull", 0, OPTION_STRING, "WHEN",
			"from a registry: missing (default), always or never", &o->pull},
		{"secret", 0, OPTION_LIST, "ID=FILE",
			"for sources of models that are fetched at the start", &o->secrets},
		{"accept-license", 0, OPTION_LIST, "ID", "accept the licence of a model",
			&o->accepted},
		{"timings", 0, OPTION_FLAG, NULL, "print what mount and start took", &o->timings},
		{"detach", 'd', OPTION_ABSENT, NULL, "svrun run stays with the container", NULL},
		{"insecure", 0, OPTION_ABSENT, NULL,
			"svrun image pull has it; else the site's configuration (docs/config.md)",
			NULL},
		{"mount", 0, OPTION_ABSENT, NULL, "use --volume or --tmpfs", NULL},
		{"pids-limit", 0, OPTION_ABSENT, NULL, "use --pids", NULL},
		{"plain-http", 0, OPTION_ABSENT, NULL,
			"svrun image pull has it; else the site's configuration (docs/config.md)",
			NULL},
		{"platform", 0, OPTION_ABSENT, NULL,
			"svrun image pull has it; only images for this machine can be run", NULL},
		{"privileged", 0, OPTION_ABSENT, NULL, "use --cap-add for what it needs", NULL},
		{"publish", 'p', OPTION_ABSENT, NULL,
			"with --network host the ports are the host's", NULL},
		{0},
	};
	_Static_assert(sizeof(rows) <= RUN_OPTIONS_MAX * sizeof(*table), "more options");
	memcpy(table, rows, sizeof(rows));
}

int run_options_parse(
	struct run_options *o, const struct command *self, int argc, char **argv, struct err *e)
{
	struct option_spec table[RUN_OPTIONS_MAX];
	int first;

	run_options_table(o, table);
	first = options_parse(self, table, argc, argv, true, e);
	if (first < 0)
		return -1;
	o->image = argv[first++];
	if (first < argc && str_eq(argv[first], "--"))
		first++;
	o->words = argv + first;
	o->nwords = (size_t)(argc - first);
	return run_options_values(o, e);
}

int run_options_parse_again(struct run_options *o, const struct command *self, int argc,
	char **argv, int *first, struct err *e)
{
	static const char *const names[] = {"gpus", "gpus-shared", "device", "cdi-spec-dir",
		"cdi-allow-hook", "mode", "memory", "cpus", "pids", "shm-size", "env",
		"interactive", "tty", "stop-timeout", "timings", NULL};
	struct option_spec table[RUN_OPTIONS_MAX], some[RUN_OPTIONS_MAX] = {0};
	size_t n = 0;

	run_options_table(o, table);
	for (const struct option_spec *t = table; t->name; t++)
		for (size_t i = 0; names[i]; i++)
			if (t->kind != OPTION_ABSENT && str_eq(t->name, names[i]))
				some[n++] = *t;
	*first = options_parse(self, some, argc, argv, true, e);
	return *first < 0 ? -1 : run_options_values(o, e);
}

void run_options_fini(struct run_options *o)
{
	struct option_list *lists[] = {&o->env, &o->env_files, &o->volumes, &o->tmpfs, &o->cap_add,
		&o->cap_drop, &o->ulimits, &o->secrets, &o->accepted, &o->gpus, &o->devices,
		&o->cdi_dirs, &o->cdi_hooks};

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		option_list_fini(lists[i]);
	free(o->own_words);
	json_decref(o->kept);
}
