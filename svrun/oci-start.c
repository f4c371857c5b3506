/* svrun-oci start */
#include "base/sys.h"
#include "runtime/container.h"
#include "runtime/door.h"
#include "svrun/oci.h"

static int check_status(const struct state *s, struct err *e)
{
	enum state_status status;

	if (state_status(s, &status, e) < 0)
		return -1;
	switch (status) {
	case STATE_CREATED:
		return 0;
	case STATE_STOPPED:
	case STATE_CREATING:
		return err_set(
			e, ERR_USAGE, "%s: cannot start a container that has stopped", s->id);
	case STATE_PAUSED:
		err_set(e, ERR_USAGE, "%s: cannot start a paused container", s->id);
		return err_hint(e, "resume it first");
	case STATE_RUNNING:
		break;
	}
	return err_set(e, ERR_USAGE, "%s: cannot start an already running container", s->id);
}

static int start(const struct state *s, const struct spec *spec, struct err *e)
{
	struct container_start o = {spec, s->id, s->bundle, "created", s->pid, s->pid, -1};
	int status, rc;

	if (!spec->process.given)
		return err_set(e, ERR_USAGE, "%s: its config.json has no process", s->id);
	o.sock = door_knock(s->dir, STATE_DOOR, s->pid, e);
	if (o.sock < 0)
		return -1;
	rc = container_start_at(&o, &status, e);
	sys_close_ref(&o.sock);
	if (state_close_door(s, rc ? NULL : e) < 0 || rc < 0)
		return -1;
	oci_late_hooks(spec, HOOK_POSTSTART, s, STATE_RUNNING);
	return 0;
}

int oci_start(const struct oci *o, const struct command *self, int argc, char **argv, struct err *e)
{
	const struct option_spec options[] = {{0}};
	int first = options_parse(self, options, argc, argv, false, e);
	struct state s;
	struct spec spec;
	int rc;

	if (first < 0 || oci_open(o, argv[first], true, &s, e) < 0)
		return -1;
	rc = check_status(&s, e);
	if (rc == 0)
		rc = state_config(&s, &spec, e);
	if (rc == 0) {
		rc = start(&s, &spec, e);
		spec_fini(&spec);
	}
	state_close(&s);
	return rc;
}
