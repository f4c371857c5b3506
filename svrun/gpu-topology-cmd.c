/* svrun gpu topology */
#include <stdio.h>

#include "base/json.h"
#include "base/str.h"
#include "gpu/topology.h"
#include "svrun/command.h"
#include "svrun/output.h"

static void print_table(const struct gpu_topology *t)
{
	bool used[GPU_PATH_UNKNOWN + 1] = {0};

	if (!t->n) {
		puts("no GPU");
		return;
	}
	printf("%-8s", "");
	for (size_t b = 0; b < t->n; b++)
		printf(" %-7s", t->v[b].name);
	printf(" %5s  %s\n", "NUMA", "CPUS");
	for (size_t a = 0; a < t->n; a++) {
		const struct gpu_place *p = &t->v[a];
		char numa[16] = "-";

		printf("%-8s", p->name);
		for (size_t b = 0; b < t->n; b++) {
			enum gpu_path path = gpu_topology_path(t, a, b);

			used[path] = true;
			printf(" %-7s", gpu_path_name(path));
		}
		if (p->numa >= 0)
			snprintf(numa, sizeof(numa), "%d", p->numa);
		printf(" %5s  %s\n", numa, p->cpus ? p->cpus : "-");
	}
	if (t->n > 1)
		putchar('\n');
	for (enum gpu_path p = GPU_PATH_NVLINK; p <= GPU_PATH_UNKNOWN; p++)
		if (used[p])
			printf("%-5s %s\n", gpu_path_name(p), gpu_path_meaning(p));
}

static void print_json(const struct gpu_topology *t)
{
	auto_json json_t *places = json_array(), *o = NULL;

	for (size_t a = 0; a < t->n; a++) {
		const struct gpu_place *p = &t->v[a];
		json_t *paths = json_object(),
		       *place = json_pack("{s:s, s:s*, s:s*, s:s*, s:o}", "name", p->name, "bus",
			       p->device ? p->device->bus : NULL, "uuid",
			       p->device ? p->device->uuid : NULL, "cpus", p->cpus, "paths", paths);

		if (p->device)
			json_object_set_new(place, "index", json_integer(p->device->index));
		for (size_t b = 0; b < t->n; b++)
			if (a != b)
				json_object_set_new(paths, t->v[b].name,
					json_string(gpu_path_name(gpu_topology_path(t, a, b))));
		if (p->numa >= 0)
			json_object_set_new(place, "numa", json_integer(p->numa));
		json_array_append_new(places, place);
	}
	o = json_pack("{s:s, s:O}", "schema", "svrun.gpu-topology/1", "places", places);
	output_json(o);
}

static int show(bool json, struct err *e)
{
	struct gpu_host host;
	struct gpu_inventory inventory;
	struct gpu_topology topology;
	int rc;

	if (gpu_host_open(&host, e) < 0)
		return -1;
	rc = gpu_inventory_read(&inventory, &host, e);
	if (rc == 0) {
		rc = gpu_topology_read(&topology, &host, &inventory, e);
		if (rc == 0) {
			if (json)
				print_json(&topology);
			else
				print_table(&topology);
			gpu_topology_fini(&topology);
		}
		gpu_inventory_fini(&inventory);
	}
	gpu_host_close(&host);
	return rc;
}

int cmd_gpu_topology(const struct command *self, int argc, char **argv, struct err *e)
{
	bool json;

	return output_options(self, argc, argv, &json, e) < 0 ? -1 : show(json, e);
}
