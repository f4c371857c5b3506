/* svrun gpu allocate: GPUs for a program of the host, and for all containers that it starts. */
#include "svrun/command.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/json.h"
#include "base/str.h"
#include "gpu/reserve.h"
#include "svrun/options.h"
#include "svrun/output.h"

enum { LIST_MAX = 64 * 1024 };

struct allocation {
	struct gpu_host host;
	struct gpu_inventory inventory;
	struct gpu_request request;
	struct gpu_reservation held;
	struct gpu_grants grants;
};

/* ---- who has what ---- */

/* As svrun gpu ls has it: JSON takes no broken UTF-8. */
static json_t *one_json(const struct gpu_grant *g, char *who, bool shared)
{
	json_t *o = json_pack("{s:s, s:I, s:s*, s:s, s:s*}", "maker",
		g->device->maker == GPU_MAKER_AMD ? "amd" : "nvidia", "index",
		(json_int_t)g->device->index, "uuid", g->mig ? g->mig->uuid : g->device->uuid,
		"bus", g->device->bus, "model", g->device->model);

	for (char *p = who; p && *p; p++)
		*p = (unsigned char)*p < 0x80 ? *p : '?';
	if (g->mig)
		json_object_set_new(o, "mig", json_integer(g->mig->index));
	json_object_set_new(o, "state", json_string(!who ? "free" : shared ? "shared" : "taken"));
	if (who)
		json_object_set_new(o, "by", json_string(who));
	return o;
}

/* list: NULL for the table. */
static int tell_one(
	const struct gpu_host *h, const struct gpu_grant *g, json_t *list, struct err *e)
{
	auto_free char *what = gpu_grant_text(g), *who = NULL;
	bool shared;
	int rc = gpu_reserved(h, g, &who, &shared, e);

	if (rc < 0)
		return -1;
	if (list)
		json_array_append_new(list, one_json(g, who, shared));
	else
		printf("%-36s %s%s\n", what, rc ? who : "free", rc && shared ? " (shared)" : "");
	return 0;
}

static int tell_all(const struct allocation *a, json_t *list, struct err *e)
{
	bool any = false;

	for (size_t i = 0; i < a->inventory.n; i++) {
		const struct gpu_device *d = &a->inventory.v[i];
		struct gpu_grant g = {.device = d};

		if (d->excluded)
			continue;
		for (size_t m = 0; m < d->nmigs || m == 0; m++) {
			g.mig = d->nmigs ? &d->migs[m] : NULL;
			if (tell_one(&a->host, &g, list, e) < 0)
				return -1;
			any = true;
		}
	}
	if (!any && !list)
		puts("no GPU");
	return 0;
}

static int print_json(const struct allocation *a, struct err *e)
{
	auto_json json_t *list = json_array(), *document = NULL;

	if (tell_all(a, list, e) < 0)
		return -1;
	document = json_pack("{s:s, s:O}", "schema", "svrun.gpu-allocate/1", "gpus", list);
	output_json(document);
	return 0;
}

/* ---- the command ---- */

/* What NVIDIA's and CUDA's variables call it: the same whatever order they count in. */
static void add_name(struct buf *b, const struct gpu_grant *g)
{
	const char *whole = g->device->uuid, *uuid = g->mig ? g->mig->uuid : whole;

	buf_printf(b, "%s", b->len ? "," : "");
	if (uuid)
		buf_printf(b, "%s", uuid);
	else if (g->mig && whole) /* CUDA takes no G:N */
		buf_printf(b, "MIG-%s/%" PRIu32 "/%" PRIu32, whole, g->mig->gi, g->mig->ci);
	else if (g->mig)
		buf_printf(b, "%" PRIu32 ":%" PRIu32, g->device->index, g->mig->index);
	else
		buf_printf(b, "%" PRIu32, g->device->index);
}

static void set_variables(const struct allocation *a, const char *name)
{
	auto_buf struct buf ours = BUF_INIT(LIST_MAX), names = BUF_INIT(LIST_MAX);

	for (size_t i = 0; i < a->grants.n; i++) {
		const struct gpu_grant *g = &a->grants.v[i];

		buf_printf(&ours, "%s%" PRIu32, ours.len ? "," : "", g->device->index);
		if (g->mig)
			buf_printf(&ours, ":%" PRIu32, g->mig->index);
		if (g->device->maker == GPU_MAKER_NVIDIA)
			add_name(&names, g);
	}
	setenv(GPU_ALLOCATION_ENV, name, 1);
	setenv("SVRUN_GPUS", ours.data ? ours.data : "", 1);
	setenv("NVIDIA_VISIBLE_DEVICES", names.data ? names.data : "", 1);
	setenv("CUDA_VISIBLE_DEVICES", names.data ? names.data : "", 1);
}

/* The program takes our place, and holds the locks: nobody else has to live for that. */
static int become(struct allocation *a, char **argv, struct err *e)
{
	const char *within = getenv(GPU_ALLOCATION_ENV);
	auto_free char *who = mem_printf("%s (process %d)", argv[0], (int)getpid());
	auto_free char *name = NULL;
	struct gpu_reserve_terms terms = {.who = who, .within = within && *within ? within : NULL};
	int rc;

	if (gpu_reserve(&a->held, &a->host, &a->inventory, &a->request, &terms, &a->grants, e) <
			0 ||
		gpu_allocation_make(&a->held, &a->host, &a->grants, &name, e) < 0 ||
		gpu_reservation_inherit(&a->held, e) < 0)
		return -1;
	if (!a->grants.n) /* whose variables would hide what Windows has */
		return err_set(e, ERR_UNSUPPORTED, "on WSL2 the GPUs are shared: none is held");
	set_variables(a, name);
	execvp(argv[0], argv);
	rc = errno == ENOENT ? 127 : 126; /* as of svrun run, and of env */
	err_sys(e, "start %s", argv[0]);
	err_print(e, "svrun");
	return rc;
}

static int allocate(
	struct allocation *a, const char *what, char **command, bool json, struct err *e)
{
	if (!what)
		return json ? print_json(a, e) : tell_all(a, NULL, e);
	if (json)
		return err_set(e, ERR_USAGE, "--format is for the list: without GPUS");
	if (gpu_request_parse(&a->request, what, e) < 0)
		return -1;
	if (!*command) {
		err_set(e, ERR_USAGE, "no command to run with the GPUs");
		return err_hint(
			e, "svrun gpu allocate GPUS -- COMMAND; they are free when it ends");
	}
	return become(a, command, e);
}

int cmd_gpu_allocate(const struct command *self, int argc, char **argv, struct err *e)
{
	struct allocation a = {.host = {.proc = -1}};
	const char *format = NULL;
	bool json;
	const struct option_spec options[] = {
		{"shared", 0, OPTION_FLAG, NULL, "others who share may have them, too",
			&a.request.shared},
		{"format", 0, OPTION_STRING, "FORMAT", "of the list: table or json", &format},
		{0},
	};
	int rc, first = options_parse(self, options, argc, argv, true, e);
	const char *what = NULL;

	if (first < 0 || output_format(format, &json, e) < 0)
		return -1;
	if (first < argc)
		what = argv[first++];
	if (first < argc && str_eq(argv[first], "--"))
		first++;
	if (gpu_host_open(&a.host, e) < 0)
		return -1;
	rc = gpu_inventory_read(&a.inventory, &a.host, e);
	if (rc == 0) {
		rc = allocate(&a, what, argv + first, json, e);
		gpu_release(&a.held);
		free(a.grants.v);
		gpu_request_fini(&a.request);
		gpu_inventory_fini(&a.inventory);
	}
	gpu_host_close(&a.host);
	return rc;
}
