#include "svrun/bundle.h"

#include "base/str.h"
#include "runtime/cgroup.h"
#include "runtime/confine.h"
#include "runtime/seccomp-profile.h"

enum { CPU_PERIOD_US = 100000 };

static json_t *make_namespaces(const struct run_options *o)
{
	static const char *const kinds[] = {"mount", "pid", "ipc", "uts", "cgroup", "network"};
	size_t n = sizeof(kinds) / sizeof(kinds[0]);
	json_t *list = json_array();

	if (o->network && str_eq(o->network, "host"))
		n--;
	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, json_pack("{s:s}", "type", kinds[i]));
	return list;
}

static json_t *make_resources(const struct run_options *o)
{
	json_t *r = json_pack("{s:[{s:b, s:s}]}", "devices", "allow", 0, "access", "rwm");

	if (o->memory_bytes) {
		json_t *m = json_pack("{s:I}", "limit", (json_int_t)o->memory_bytes);

		/* Memory and swap together: what is asked for is a limit of memory, not a licence
		 * to swap as much again. */
		if (confine_has_swap())
			json_object_set_new(m, "swap", json_integer((json_int_t)o->memory_bytes));
		json_object_set_new(r, "memory", m);
	}
	if (o->cores > 0)
		json_object_set_new(r, "cpu",
			json_pack("{s:i, s:I}", "period", CPU_PERIOD_US, "quota",
				(json_int_t)(o->cores * CPU_PERIOD_US + 0.5)));
	if (o->pids_max)
		json_object_set_new(
			r, "pids", json_pack("{s:I}", "limit", (json_int_t)o->pids_max));
	return r;
}

static json_t *make_linux(const struct bundle_request *r, const char *cgroup, uint64_t caps)
{
	return json_pack("{s:o, s:s, s:o, s:o, s:o, s:o}", "namespaces", make_namespaces(r->o),
		"cgroupsPath", cgroup, "resources", make_resources(r->o), "seccomp",
		seccomp_profile(caps), "maskedPaths", confine_masked(), "readonlyPaths",
		confine_readonly());
}

json_t *bundle_make(const struct bundle_request *r, struct err *e)
{
	const struct run_options *o = r->o;
	char cgroup[INSTANCE_CGROUP_SIZE];
	json_t *process, *mounts;
	uint64_t caps;

	if (instance_cgroup(r->instance, cgroup, e) < 0 || bundle_caps(o, &caps, e) < 0)
		return NULL;
	process = bundle_process(r, e);
	if (!process)
		return NULL;
	mounts = bundle_mounts(r, e);
	if (!mounts) {
		json_decref(process);
		return NULL;
	}
	return json_pack("{s:s, s:o, s:{s:s, s:b}, s:s, s:o, s:o, s:{s:s, s:s, s:s}}", "ociVersion",
		"1.2.0", "process", process, "root", "path", r->lower, "readonly", o->read_only,
		"hostname", o->hostname ? o->hostname : r->instance->id, "mounts", mounts, "linux",
		make_linux(r, cgroup, caps), "annotations", INSTANCE_IMAGE, o->image,
		INSTANCE_MANIFEST, r->digest, INSTANCE_RM, r->instance->rm ? "true" : "false");
}
