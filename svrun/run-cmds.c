/* svrun run, restart, start. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "runtime/self.h"
#include "svrun/command.h"
#include "svrun/enter.h"
#include "svrun/instance-stop.h"
#include "svrun/instance.h"
#include "svrun/run-keep.h"
#include "svrun/run-models.h"
#include "svrun/run-policy.h"
#include "svrun/run-pull.h"
#include "svrun/run.h"
#include "svrun/supervise.h"

/* Start again from a read-only copy of our program: see self.h. The arguments are those that main
 * got. */
static int protect(int argc, char **argv, struct err *e)
{
	auto_free char **again = mem_array((size_t)argc + 2, sizeof(*again));

	again[0] = mem_strdup("svrun");
	memcpy(again + 1, argv, (size_t)argc * sizeof(*argv));
	if (self_protect(again, e) < 0)
		return -1;
	free(again[0]);
	return 0;
}

static int check_root(const struct command *self, struct err *e)
{
	if (geteuid() == 0)
		return 0;
	err_set(e, ERR_DENIED, "%s needs root", self->full);
	return err_hint(e, "use sudo; running without root comes in a later version");
}

/* What cmd_run() and its like return. The statuses that scripts look for are the container's own.
 */
static int end(int rc, int status, const char *what, const char *name, struct err *e)
{
	if (rc < 0 && name && e->kind != ERR_NONE) {
		err_ctx(e, "%s %s", what, name);
		if (status >= 126) { /* not found, not executable, ended by a signal */
			err_print(e, "svrun");
			rc = 0;
		}
	}
	return rc < 0 ? -1 : status;
}

int cmd_run(const struct command *self, int argc, char **argv, struct err *e)
{
	struct run_options o = {.rm = false};
	int rc, status = 125;

	rc = run_options_parse(&o, self, argc, argv, e);
	if (rc == 0 && check_root(self, e) == 0 && supervise_streams_open(e) == 0 &&
		run_pull(&o, e) == 0 && run_policy(&o, e) == 0 && run_models(&o, e) == 0 &&
		protect(argc, argv, e) == 0)
		rc = run_start(&o, NULL, &status, e);
	else
		rc = -1;
	rc = end(rc, status, "run", o.image, e);
	run_options_fini(&o);
	return rc;
}

/* ---- again ---- */

static int load_from(
	struct run_options *o, struct store *s, const char *id, bool may_run, struct err *e)
{
	struct instance_view v;
	int rc;

	if (instance_open(s->fd, id, &v, e) < 0)
		return -1;
	rc = run_keep_load(o, v.dir, id, e);
	if (rc == 0 && v.running && !may_run) {
		rc = err_set(e, ERR_EXISTS, "container %s runs", id);
		err_hint(e, "svrun restart stops it first");
	}
	instance_close(&v);
	return rc;
}

/* The options that it was started with. */
static int load(struct run_options *o, const char *id, bool may_run, struct err *e)
{
	struct store s;
	int rc;

	if (store_enter(&s, e) < 0)
		return -1;
	rc = load_from(o, &s, id, may_run, e);
	store_close(&s);
	return rc;
}

static int stop(const char *id, struct err *e)
{
	struct store s;
	int rc;

	if (store_enter(&s, e) < 0)
		return -1;
	rc = instance_stop(s.fd, id, -1, e);
	store_close(&s);
	return rc < 0 ? -1 : 0;
}

static int run_again(const struct command *self, int argc, char **argv, bool may_run, struct err *e)
{
	struct run_options o = {.rm = false}, given = {.rm = false};
	const char *id = NULL;
	int rc, first, status = 125;

	rc = run_options_parse_again(&given, self, argc, argv, &first, e);
	if (rc == 0) {
		id = argv[first];
		rc = check_root(self, e) < 0 || load(&o, id, may_run, e) < 0 ? -1 : 0;
	}
	if (rc == 0)
		run_keep_change(&o, &given);
	if (rc == 0 && run_options_values(&o, e) == 0 && supervise_streams_open(e) == 0 &&
		run_policy(&o, e) == 0 && run_models(&o, e) == 0 && protect(argc, argv, e) == 0 &&
		(!may_run || stop(id, e) == 0))
		rc = run_start(&o, id, &status, e);
	else
		rc = -1;
	rc = end(rc, status, self->name, id, e);
	run_options_fini(&o);
	run_options_fini(&given);
	return rc;
}

int cmd_restart(const struct command *self, int argc, char **argv, struct err *e)
{
	return run_again(self, argc, argv, true, e);
}

int cmd_start(const struct command *self, int argc, char **argv, struct err *e)
{
	return run_again(self, argc, argv, false, e);
}
