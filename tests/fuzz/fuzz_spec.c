/* Any config.json: refused with a message that names a place, or read into something that the rest
 * of the runtime can plan with. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "runtime/cgroup-devices.h"
#include "runtime/mounts.h"
#include "runtime/seccomp.h"
#include "runtime/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void plan(const struct spec *s)
{
	struct seccomp_prog prog;
	struct mount_plan *mounts;
	struct bpf_insn *insns;
	struct arena mem = {0};
	struct err e = {0};
	size_t n;

	if (mounts_plan(s, &mem, &mounts, &e) < 0)
		assert(strlen(e.text) > 0);
	if (s->has_seccomp && seccomp_compile(&prog, &s->seccomp, &e) == 0) {
		assert(prog.n <= BPF_MAXINSNS);
		seccomp_prog_fini(&prog);
	}
	cgroup_devices_program(&s->resources, &insns, &n);
	free(insns);
	arena_fini(&mem);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e = {0};
	json_t *json = json_parse(data, size, &e);
	struct spec s;

	if (!json)
		return 0;
	if (spec_read(&s, json, "config.json", &e) < 0) {
		assert(e.kind == ERR_CORRUPT || e.kind == ERR_UNSUPPORTED);
		assert(strncmp(e.text, "config.json: ", 13) == 0);
	} else {
		assert(!s.process.given || (s.process.args.n > 0 && s.process.cwd[0] == '/'));
		plan(&s);
		spec_fini(&s);
	}
	json_decref(json);
	return 0;
}
