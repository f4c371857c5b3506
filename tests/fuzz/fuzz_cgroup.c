/* Any cgroupsPath, /proc/PID/cgroup and list of CPUs: a place is below the root and stays the same
 * when it is read again, a unit has only the characters of units, and whatever is written to
 * cpu.max is what the kernel reads. The first byte chooses. */
#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "runtime/cgroup-file.h"
#include "runtime/cgroup-values.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_path(const char *path)
{
	assert(path[0] == '/' && strlen(path) < CGROUP_PATH_MAX);
	assert(!str_ends(path, "/") && !strstr(path, "//"));
	assert(!strstr(path, "/../") && !str_ends(path, "/.."));
}

static void place_path(const char *text)
{
	struct cgroup_place p, again;
	struct err e = {0};

	if (cgroup_place(&p, text, "id", false, &e) < 0) {
		assert(e.kind == ERR_USAGE && *e.text);
		return;
	}
	check_path(p.path);
	assert(cgroup_place(&again, p.path, "id", false, &e) == 0);
	assert(str_eq(p.path, again.path) && !*p.unit);
}

static void place_unit(const char *text)
{
	struct cgroup_place p;
	struct err e = {0};

	if (cgroup_place(&p, text, "id", true, &e) < 0) {
		assert(e.kind == ERR_USAGE && *e.text);
		return;
	}
	check_path(p.path);
	assert(str_ends(p.unit, ".scope") || str_ends(p.unit, ".slice"));
	assert(str_ends(p.slice, ".slice"));
	for (const char *c = p.unit; *c; c++)
		assert(isalnum((unsigned char)*c) || strchr(":-_.\\@", *c));
	assert(str_ends(p.path, p.unit));
}

static void lines(const char *text)
{
	static struct cgroup_lines l;

	for (int v2 = 0; v2 < 2; v2++) {
		cgroup_lines_parse(&l, text, v2);
		assert(l.n <= CGROUP_HIERARCHIES);
		for (size_t i = 0; i < l.n; i++) {
			assert(!strchr(l.v[i].hierarchy, '/') && !strchr(l.v[i].path, '\n'));
			assert(v2 == !*l.v[i].hierarchy);
		}
	}
}

static void values(const char *text)
{
	uint8_t bits[64];
	char out[64], *end;
	size_t n;

	if (cgroup_bit_set(text, bits, sizeof(bits), &n) == 0)
		assert(n >= 1 && n <= sizeof(bits) && bits[n - 1]);
	cgroup_cpu_max(out, text, 0, 0);
	assert(strchr(out, ' ') && strtoll(strchr(out, ' ') + 1, &end, 10) > 0 && !*end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const targets[])(const char *) = {place_path, place_unit, lines, values};
	char *text;

	if (size == 0 || size > 8192)
		return 0;
	text = mem_alloc(size);
	memcpy(text, data + 1, size - 1);
	targets[data[0] % 4](text);
	free(text);
	return 0;
}
