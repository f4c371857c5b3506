/* svrun doctor: run the parts, print the findings. */
#include <stdio.h>

#include "base/json.h"
#include "gpu/host.h"
#include "svrun/command.h"
#include "svrun/doctor.h"
#include "svrun/gpu-ask.h"
#include "svrun/options.h"
#include "svrun/output.h"

static const char *const levels[] = {"ok", "note", "warning", "error"};

struct counts {
	size_t v[FINDING_ERROR + 1];
};

static struct counts count(const struct doctor *d)
{
	struct counts c = {{0}};

	for (size_t i = 0; i < d->n; i++)
		c.v[d->v[i].level]++;
	return c;
}

static void print_table(const struct doctor *d)
{
	struct counts c = count(d);

	for (size_t i = 0; i < d->n; i++) {
		const struct finding *f = &d->v[i];

		printf("%-8s %-22s %s\n", levels[f->level], f->id, f->found);
		if (f->advice)
			printf("%32s-> %s\n", "", f->advice);
	}
	printf("%zu ok, %zu note%s, %zu warning%s, %zu error%s\n", c.v[FINDING_OK],
		c.v[FINDING_NOTE], c.v[FINDING_NOTE] == 1 ? "" : "s", c.v[FINDING_WARNING],
		c.v[FINDING_WARNING] == 1 ? "" : "s", c.v[FINDING_ERROR],
		c.v[FINDING_ERROR] == 1 ? "" : "s");
}

static void print_json(const struct doctor *d)
{
	struct counts c = count(d);
	json_t *list = json_array();
	auto_json json_t *j = NULL;

	for (size_t i = 0; i < d->n; i++) {
		json_t *one = json_pack("{s:s, s:s, s:s}", "id", d->v[i].id, "level",
			levels[d->v[i].level], "found", d->v[i].found);

		if (one && d->v[i].advice)
			json_object_set_new(one, "advice", json_string(d->v[i].advice));
		json_array_append_new(list, one);
	}
	j = json_pack("{s:s, s:o, s:I, s:I, s:I, s:I}", "schema", "svrun.doctor/1", "findings",
		list, "ok", (json_int_t)c.v[FINDING_OK], "notes", (json_int_t)c.v[FINDING_NOTE],
		"warnings", (json_int_t)c.v[FINDING_WARNING], "errors",
		(json_int_t)c.v[FINDING_ERROR]);
	output_json(j);
}

static void look(struct doctor *d)
{
	struct gpu_host host;
	struct err e = {0};

	doctor_kernel(d);
	doctor_namespaces(d);
	doctor_cgroups(d);
	doctor_files(d);
	doctor_store(d);
	doctor_host(d);
	if (gpu_host_open(&host, &e) < 0) {
		found_err(d, "gpu.host", FINDING_ERROR, &e, NULL);
		return;
	}
	d->host = &host;
	doctor_gpus(d);
	d->host = NULL;
	gpu_host_close(&host);
}

static int seconds_of(const char *text, unsigned *seconds, struct err *e)
{
	uint64_t v;

	if (str_u64(text, 3600, &v) < 0 || v == 0)
		return err_set(
			e, ERR_USAGE, "--timeout %s: not a number of seconds from 1 to 3600", text);
	*seconds = (unsigned)v;
	return 0;
}

int cmd_doctor(const struct command *self, int argc, char **argv, struct err *e)
{
	struct doctor d = {.seconds = GPU_ASK_SECONDS};
	const char *format = NULL, *timeout = NULL;
	struct option_list dirs = {0};
	bool json;
	const struct option_spec options[] = {
		{"cuda", 0, OPTION_FLAG, NULL,
			"ask the GPUs' driver, too: that may take seconds, and starts GPUs",
			&d.cuda},
		{"timeout", 0, OPTION_STRING, "SECONDS", "how long the driver may take (30)",
			&timeout},
		{"cdi-spec-dir", 0, OPTION_LIST, "DIR", "where CDI specs are, instead of the usual",
			&dirs},
		{"format", 0, OPTION_STRING, "FORMAT", "table or json", &format},
		{0},
	};
	int rc = -1;

	if (options_parse(self, options, argc, argv, false, e) >= 0 &&
		output_format(format, &json, e) == 0 &&
		(!timeout || seconds_of(timeout, &d.seconds, e) == 0)) {
		d.cdi_dirs = (struct strings){dirs.v, dirs.n};
		look(&d);
		if (json)
			print_json(&d);
		else
			print_table(&d);
		rc = count(&d).v[FINDING_ERROR] > 0;
	}
	option_list_fini(&dirs);
	free(d.v);
	arena_fini(&d.mem);
	return rc;
}
