/* svrun ps, svrun rm. */
#include "svrun/command.h"

#include <stdio.h>

#include "base/json.h"
#include "svrun/enter.h"
#include "svrun/instance.h"
#include "svrun/options.h"
#include "svrun/output.h"

static void print_one(const struct instance_info *i, bool quiet)
{
	char status[32] = "running";

	if (quiet) {
		puts(i->id);
		return;
	}
	if (!i->running)
		snprintf(status, sizeof(status), "exited (%d)", i->status);
	printf("%-24s %-14s %-8s %s\n", i->id, status, i->running && *i->gpus ? i->gpus : "-",
		i->image);
}

/* For programs; the words of the table. */
static void print_json(const struct instance_info *v, size_t n)
{
	auto_json json_t *all = json_array(), *document = NULL;

	for (size_t i = 0; i < n; i++) {
		json_t *o = json_pack("{s:s, s:s, s:s}", "id", v[i].id, "status",
			v[i].running ? "running" : "exited", "image", v[i].image);

		if (!v[i].running)
			json_object_set_new(o, "exitStatus", json_integer(v[i].status));
		if (v[i].running && *v[i].gpus)
			json_object_set_new(o, "gpus", json_string(v[i].gpus));
		json_array_append_new(all, o);
	}
	document = json_pack("{s:s, s:O}", "schema", "svrun.ps/1", "containers", all);
	output_json(document);
}

/* No store holds no containers. */
static int list(struct instance_info **v, size_t *n, struct err *e)
{
	struct err open = {0};
	struct store s;
	int rc;

	*v = NULL;
	*n = 0;
	if (store_enter(&s, &open) < 0) {
		if (open.kind == ERR_NOT_FOUND)
			return 0;
		*e = open;
		return -1;
	}
	rc = instance_list(s.fd, v, n, e);
	store_close(&s);
	return rc;
}

int cmd_ps(const struct command *self, int argc, char **argv, struct err *e)
{
	bool quiet = false, all = false, json;
	const char *format = NULL;
	struct instance_info *v;
	size_t n;
	const struct option_spec options[] = {
		{"all", 'a', OPTION_FLAG, NULL, "those that ended, too: they are always listed",
			&all},
		{"quiet", 'q', OPTION_FLAG, NULL, "ids only", &quiet},
		{"format", 0, OPTION_STRING, "FORMAT", "table or json", &format},
		{0},
	};

	if (options_parse(self, options, argc, argv, false, e) < 0 ||
		output_format(format, &json, e) < 0)
		return -1;
	if (json && quiet)
		return err_set(e, ERR_USAGE, "--quiet and --format json: one of them");
	if (list(&v, &n, e) < 0)
		return -1;
	if (json) {
		print_json(v, n);
	} else {
		if (!quiet)
			printf("%-24s %-14s %-8s %s\n", "ID", "STATUS", "GPUS", "IMAGE");
		for (size_t i = 0; i < n; i++)
			print_one(&v[i], quiet);
	}
	instance_list_free(v, n);
	return 0;
}

static int remove_one(struct store *s, const char *id, struct err *e)
{
	if (instance_remove(s->fd, id, e) < 0)
		return -1;
	puts(id);
	return 0;
}

static int remove_ended(struct store *s, struct err *e)
{
	struct instance_info *v;
	size_t n;
	int rc = instance_list(s->fd, &v, &n, e);

	if (rc < 0)
		return -1;
	for (size_t i = 0; rc == 0 && i < n; i++)
		if (!v[i].running)
			rc = remove_one(s, v[i].id, e);
	instance_list_free(v, n);
	return rc;
}

int cmd_rm(const struct command *self, int argc, char **argv, struct err *e)
{
	bool all = false;
	struct store s;
	const struct option_spec options[] = {
		{"all", 'a', OPTION_FLAG, NULL, "every container that has ended", &all},
		{0},
	};
	int rc, n = options_parse(self, options, argc, argv, false, e);

	if (n < 0)
		return -1;
	if (n == argc && !all) {
		err_set(e, ERR_USAGE, "no container named");
		return err_hint(e, "svrun ps lists them; --all removes all that have ended");
	}
	if (store_enter(&s, e) < 0)
		return -1;
	rc = all ? remove_ended(&s, e) : 0;
	for (int i = n; i < argc && rc == 0; i++)
		rc = remove_one(&s, argv[i], e);
	store_close(&s);
	return rc;
}
