/* Any config.json: refused with a message that names a place, or read into something that the rest
 * of the runtime can plan with, and the same from its own text. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "runtime/cgroup-file.h"
#include "runtime/mounts.h"
#include "runtime/seccomp.h"
#include "runtime/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Unknown capabilities are warnings: not thousands of times a second. */
static int read_quietly(struct spec *s, json_t *json, struct err *e)
{
	static FILE *nowhere;
	FILE *was = stderr;
	int rc;

	if (!nowhere)
		nowhere = fopen("/dev/null", "we");
	stderr = nowhere ? nowhere : was;
	rc = spec_read(s, json, "config.json", e);
	stderr = was;
	return rc;
}

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

static void check(const struct spec *s)
{
	const struct spec_resources *r = &s->resources;

	assert(!s->process.given || (s->process.args.n > 0 && s->process.cwd[0] == '/'));
	assert(spec_has_ns(s, NS_MOUNT));
	assert(!s->uids.n == !s->gids.n);
	for (size_t i = 0; i < s->nmounts; i++)
		assert(s->mounts[i].destination[0] == '/');
	for (enum hook_kind k = 0; k < HOOK_KINDS; k++)
		for (size_t i = 0; i < s->hooks[k].n; i++)
			assert(s->hooks[k].v[i].path[0] == '/');
	for (size_t i = 0; i < r->unified.n; i++)
		assert(!strchr(r->unified.v[i].name, '/'));
	assert(!s->cgroups_path || !strstr(s->cgroups_path, "/../"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf printed = BUF_INIT(1 << 26);
	struct err e = {0};
	struct json_doc doc = {0}, again;
	struct spec s;

	if (spec_doc_parse(&doc, "config.json", data, size, &e) == 0 &&
		read_quietly(&s, doc.root, &e) == 0) {
		check(&s);
		plan(&s);
		spec_fini(&s);
		json_text(doc.root, true, &printed);
		if (spec_doc_parse(&again, "config.json", printed.data, printed.len, &e) < 0 ||
			read_quietly(&s, again.root, &e) < 0)
			abort();
		spec_fini(&s);
		json_doc_fini(&again);
	} else {
		assert(e.kind == ERR_CORRUPT || (doc.root && e.kind == ERR_UNSUPPORTED));
		assert(strncmp(e.text, "config.json:", 12) == 0);
	}
	json_doc_fini(&doc);
	buf_fini(&printed);
	return 0;
}
