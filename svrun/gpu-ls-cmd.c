/* svrun gpu ls */
#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "base/str.h"
#include "gpu/facts.h"
#include "gpu/reserve.h"
#include "svrun/command.h"
#include "svrun/output.h"

struct listing {
	struct gpu_host host;
	struct gpu_inventory inventory;
	struct gpu_probe probe;
};

/* Who has it: "free", "taken", "shared", "excluded", "split" (only its MIG devices can be had). */
struct state {
	const char *word;
	char *by; /* to free(); NULL */
};

static int state_of(const struct listing *l, const struct gpu_device *d, const struct gpu_mig *m,
	struct state *s, struct err *e)
{
	const struct gpu_grant g = {d, m};
	bool shared = false;
	int taken;

	*s = (struct state){.word = "excluded"};
	if (d->excluded)
		return 0;
	taken = gpu_reserved(&l->host, &g, &s->by, &shared, e);
	for (char *p = s->by; p && *p; p++) /* JSON takes no broken UTF-8 */
		*p = (unsigned char)*p < 0x80 ? *p : '?';
	/* Whoever has a part shares the whole with others: its own row says so. */
	if (!m && d->nmigs && (!taken || shared)) {
		free(s->by);
		*s = (struct state){.word = "split"};
	} else {
		s->word = !taken ? "free" : shared ? "shared" : "taken";
	}
	return taken < 0 ? -1 : 0;
}

/* ---- JSON ---- */

static json_t *node_paths(const struct gpu_nodes *n)
{
	json_t *a = json_array();

	for (size_t k = 0; k < n->n; k++)
		json_array_append_new(a, json_string(n->v[k].path));
	return a;
}

static void put_cc(json_t *o, const struct gpu_facts *f)
{
	if (f->cc)
		json_object_set_new(o, "computeCapability",
			json_sprintf("%" PRIu32 ".%" PRIu32, f->cc / 10, f->cc % 10));
}

static int mig_json(const struct listing *l, const struct gpu_device *d, const struct gpu_mig *m,
	json_t *to, struct err *e)
{
	const struct gpu_nodes caps = {(struct gpu_node[]){m->caps[0], m->caps[1]}, 2};
	struct gpu_facts f;
	struct state s;
	json_t *o;

	if (state_of(l, d, m, &s, e) < 0)
		return -1;
	gpu_facts_of(d, m, &l->probe, &f);
	o = json_pack("{s:I, s:I, s:I, s:s*, s:s, s:s*, s:o}", "index", (json_int_t)m->index,
		"gpuInstance", (json_int_t)m->gi, "computeInstance", (json_int_t)m->ci, "uuid",
		m->uuid, "state", s.word, "by", s.by, "nodes", node_paths(&caps));
	json_object_set_new(o, "name", json_sprintf("%" PRIu32 ":%" PRIu32, d->index, m->index));
	if (f.vram_mib)
		json_object_set_new(o, "vramMiB", json_integer(f.vram_mib));
	json_array_append_new(to, o);
	free(s.by);
	return 0;
}

static int gpu_json(const struct listing *l, const struct gpu_device *d, json_t *to, struct err *e)
{
	json_t *migs = json_array(), *o;
	struct gpu_facts f;
	struct state s = {0};
	int rc = state_of(l, d, NULL, &s, e);

	for (size_t k = 0; rc == 0 && k < d->nmigs; k++)
		rc = mig_json(l, d, &d->migs[k], migs, e);
	gpu_facts_of(d, NULL, &l->probe, &f);
	o = json_pack("{s:s, s:s, s:I, s:s*, s:s*, s:s*, s:s*, s:s*, s:s, s:s*, s:o, s:o, s:o}",
		"maker", d->maker == GPU_MAKER_AMD ? "amd" : "nvidia", "bus", d->bus, "minor",
		(json_int_t)d->minor, "uuid", d->uuid, "model", d->model, "arch", d->arch,
		"firmware", d->firmware, "brand", f.brand, "state", s.word, "by", s.by, "nodes",
		node_paths(&d->nodes), "dri", node_paths(&d->dri), "mig", migs);
	free(s.by);
	if (!d->excluded)
		json_object_set_new(o, "index", json_integer(d->index));
	if (d->numa >= 0)
		json_object_set_new(o, "numa", json_integer(d->numa));
	if (f.vram_mib) {
		json_object_set_new(o, "vramMiB", json_integer(f.vram_mib));
		json_object_set_new(o, "knownFrom", json_string(f.source));
	}
	put_cc(o, &f);
	json_array_append_new(to, o);
	return rc;
}

static int print_json(const struct listing *l, struct err *e)
{
	const struct gpu_inventory *i = &l->inventory;
	bool newer;
	const char *cuda = gpu_driver_cuda(i->driver, &l->probe, &newer);
	auto_json json_t *gpus = json_array(), *o = NULL;

	for (size_t k = 0; k < i->n; k++)
		if (gpu_json(l, &i->v[k], gpus, e) < 0)
			return -1;
	o = json_pack("{s:s, s:s*, s:s*, s:b, s:O}", "schema", "svrun.gpu-ls/1", "driver",
		i->driver, "cuda", cuda, "wsl", (int)i->dxg, "gpus", gpus);
	if (i->driver)
		json_object_set_new(o, "openModules", json_boolean(i->open_modules));
	if (cuda && newer)
		json_object_set_new(o, "cudaOrNewer", json_true());
	output_json(o);
	return 0;
}

/* ---- table ---- */

static void print_row(const char *name, const char *model, uint32_t mib, const char *bus,
	const char *minor, int numa, const struct state *s, const char *uuid)
{
	auto_free char *by = s->by ? output_plain(s->by) : NULL,
		       *state = by ? mem_printf("%s: %s", s->word, by) : mem_strdup(s->word);
	char vram[32] = "-", node[16] = "-";

	if (mib)
		snprintf(vram, sizeof(vram), "%" PRIu32 ".%" PRIu32 " GiB", mib / 1024,
			mib % 1024 * 10 / 1024);
	if (numa >= 0)
		snprintf(node, sizeof(node), "%d", numa);
	printf("%-6s %-32s %10s  %-14s %5s %4s  %-40s  %s\n", name, model, vram, bus, minor, node,
		uuid ? uuid : "-", state);
}

static int print_gpu(const struct listing *l, const struct gpu_device *d, struct err *e)
{
	struct gpu_facts f;
	struct state s;
	char name[32] = "-", minor[16];

	if (state_of(l, d, NULL, &s, e) < 0)
		return -1;
	gpu_facts_of(d, NULL, &l->probe, &f);
	if (!d->excluded)
		snprintf(name, sizeof(name), "%" PRIu32, d->index);
	snprintf(minor, sizeof(minor), "%" PRIu32, d->minor);
	print_row(name, d->model ? d->model : "-", f.vram_mib, d->bus, minor, d->numa, &s, d->uuid);
	free(s.by);
	for (size_t k = 0; k < d->nmigs; k++) {
		const struct gpu_mig *m = &d->migs[k];
		char what[64];

		if (state_of(l, d, m, &s, e) < 0)
			return -1;
		gpu_facts_of(d, m, &l->probe, &f);
		snprintf(name, sizeof(name), "%" PRIu32 ":%" PRIu32, d->index, m->index);
		snprintf(what, sizeof(what), "  MIG, instances %" PRIu32 " and %" PRIu32, m->gi,
			m->ci);
		print_row(name, what, f.vram_mib, "", "", -1, &s, m->uuid);
		free(s.by);
	}
	return 0;
}

static int print_table(const struct listing *l, struct err *e)
{
	const struct gpu_inventory *i = &l->inventory;
	bool newer;
	const char *cuda = gpu_driver_cuda(i->driver, &l->probe, &newer);

	if (i->driver)
		printf("NVIDIA driver %s (%s), CUDA %s%s\n", i->driver,
			i->open_modules ? "open modules" : "closed modules",
			cuda ? cuda : "unknown", cuda && newer ? " or newer" : "");
	if (i->dxg)
		puts("WSL2: the GPUs of Windows, through /dev/dxg");
	if (!i->n) {
		if (!i->dxg)
			puts("no GPU");
		return 0;
	}
	printf("%-6s %-32s %10s  %-14s %5s %4s  %-40s  %s\n", "GPU", "MODEL", "MEMORY", "BUS",
		"MINOR", "NUMA", "UUID", "STATE");
	for (size_t k = 0; k < i->n; k++)
		if (print_gpu(l, &i->v[k], e) < 0)
			return -1;
	return 0;
}

static int list(bool json, struct err *e)
{
	struct listing l = {0};
	int rc;

	if (gpu_host_open(&l.host, e) < 0)
		return -1;
	rc = gpu_inventory_read(&l.inventory, &l.host, e);
	if (rc == 0) {
		rc = gpu_probe_load(&l.probe, &l.host, &l.inventory, e);
		gpu_probe_name_migs(&l.inventory, &l.probe);
		if (rc == 0)
			rc = json ? print_json(&l, e) : print_table(&l, e);
		gpu_probe_free(&l.probe);
		gpu_inventory_fini(&l.inventory);
	}
	gpu_host_close(&l.host);
	return rc;
}

int cmd_gpu_ls(const struct command *self, int argc, char **argv, struct err *e)
{
	bool json;

	return output_options(self, argc, argv, &json, e) < 0 ? -1 : list(json, e);
}
