#include <inttypes.h>
#include <stdio.h>
#include <sys/sysinfo.h>

#include "base/mem.h"
#include "base/str.h"
#include "images/workers.h"
#include "svrun/bundle.h"

enum { EXPANDED_MAX = 128 * 1024 };

uint64_t bundle_cpus(const struct run_options *o)
{
	uint64_t have = workers_cores();
	uint64_t asked = (uint64_t)o->cores;

	if ((double)asked < o->cores) /* half a core is one thread's */
		asked++;
	return asked && asked < have ? asked : have;
}

/* Limit of the cgroup at the root of what we see, which is above every container's. */
static uint64_t host_limit(void)
{
	static const char *const files[] = {
		"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
	uint64_t v;

	for (size_t i = 0; i < 2; i++) {
		FILE *f = fopen(files[i], "re");
		int n = f ? fscanf(f, "%" SCNu64, &v) : 0;

		if (f)
			fclose(f);
		if (n == 1)
			return v;
	}
	return UINT64_MAX;
}

static uint64_t mem_mib(const struct run_options *o)
{
	uint64_t least = host_limit();
	struct sysinfo info;

	if (sysinfo(&info) == 0 && (uint64_t)info.totalram * info.mem_unit < least)
		least = (uint64_t)info.totalram * info.mem_unit;
	if (o->memory_bytes && o->memory_bytes < least)
		least = o->memory_bytes;
	return least >> 20;
}

static const struct {
	const char *name;
	uint64_t (*value)(const struct run_options *o);
} names[] = {
	{"cpus}", bundle_cpus},
	{"memMiB}", mem_mib},
	{"gpus}", NULL},
};

/* The value of what stands behind "${runtime:". Returns the length of its name, or 0. */
static size_t look_up(const struct run_options *o, size_t gpus, const char *p, uint64_t *v)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (str_starts(p, names[i].name)) {
			*v = names[i].value ? names[i].value(o) : gpus;
			return strlen(names[i].name);
		}
	return 0;
}

char *bundle_expand(const struct run_options *o, size_t gpus, const char *value, struct err *e)
{
	static const char start[] = "${runtime:";
	auto_buf struct buf b = BUF_INIT(EXPANDED_MAX);
	char number[24];

	for (const char *p = value, *next; *p; p = next) {
		uint64_t v = 0;
		size_t n;

		next = strstr(p, start);
		if (!next)
			next = p + strlen(p);
		if (buf_add(&b, p, (size_t)(next - p), e) < 0)
			return NULL;
		if (!*next)
			break;
		next += sizeof(start) - 1;
		n = look_up(o, gpus, next, &v);
		if (!n) {
			err_set(e, ERR_CORRUPT, "image config: unknown variable %.60s", next - 10);
			err_hint(e, "known are ${runtime:cpus}, ${runtime:memMiB} and "
				    "${runtime:gpus}");
			return NULL;
		}
		snprintf(number, sizeof(number), "%" PRIu64, v);
		if (buf_add(&b, number, strlen(number), e) < 0)
			return NULL;
		next += n;
	}
	return b.data ? steal_ptr(&b.data) : mem_strdup("");
}
