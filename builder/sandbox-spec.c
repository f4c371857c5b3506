#include "builder/sandbox-spec.h"

#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "runtime/caps.h"
#include "runtime/cgroup.h"
#include "runtime/confine.h"
#include "runtime/seccomp-profile.h"
#include "runtime/spec.h"

enum { CPU_PERIOD_US = 100000, OPEN_FILES = 16384, RUN_SIZE_MIB = 64 };

static const char path[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/* Folders that are mounted on in every run, and files. */
static const char *const always[] = {"/proc/", "/sys/", "/dev/", "/tmp/", "/run/", "/etc/hosts"};
static const char resolv[] = "/etc/resolv.conf";

/* ---- targets ---- */

/* The longest part of target that the tree has, through links, and the rest as it is. */
static char *real_target(struct arena *a, struct tree *t, const char *target)
{
	auto_free char *part = mem_strdup(target + 1);
	char real[TREE_PATH_MAX + 1];

	for (size_t n = strlen(part);; n = (size_t)(strrchr(part, '/') - part)) {
		const struct node *node;

		part[n] = '\0';
		node = tree_resolve(t, part);
		if (node)
			return arena_printf(a, "%s%s%s", node->parent ? "/" : "",
				node->parent ? node_path(node, real) : "", target + 1 + n);
		if (!strchr(part, '/'))
			return arena_strdup(a, target);
	}
}

static int add_target(struct sandbox_targets *x, struct tree *t, const char *target, bool folder,
	const char **out, struct err *e)
{
	if (target[0] != '/' || tree_check_path(target + 1, e) < 0) {
		if (target[0] != '/')
			err_set(e, ERR_USAGE, "not an absolute path");
		return err_ctx(e, "'%.200s' cannot be mounted on", target);
	}
	*out = real_target(&x->arena, t, target);
	x->points.v[x->points.n++] = folder ? arena_printf(&x->arena, "%s/", *out) : *out;
	return 0;
}

static bool is_folder(const char *host)
{
	struct stat st;

	return stat(host, &st) == 0 && S_ISDIR(st.st_mode);
}

int sandbox_targets_make(struct sandbox_targets *x, const struct sandbox_step *step,
	struct tree *tree, struct err *e)
{
	size_t n = sizeof(always) / sizeof(always[0]), all = n + 1 + step->nbinds + step->nfiles;

	*x = (struct sandbox_targets){0};
	x->points.v = arena_alloc(&x->arena, all * sizeof(const char *));
	x->binds = arena_alloc(&x->arena, step->nbinds * sizeof(const char *));
	x->files = arena_alloc(&x->arena, step->nfiles * sizeof(const char *));
	for (size_t i = 0; i < n; i++)
		if (!step->keep_run || !str_eq(always[i], "/run/"))
			x->points.v[x->points.n++] = always[i];
	if (step->network)
		x->points.v[x->points.n++] = resolv;
	for (size_t i = 0; i < step->nbinds; i++)
		if (add_target(x, tree, step->binds[i].target, is_folder(step->binds[i].host),
			    &x->binds[i], e) < 0)
			return -1;
	for (size_t i = 0; i < step->nfiles; i++)
		if (add_target(x, tree, step->files[i].target, false, &x->files[i], e) < 0)
			return -1;
	return 0;
}

void sandbox_targets_fini(struct sandbox_targets *x)
{
	arena_fini(&x->arena);
}

/* ---- mounts ---- */

static const char ro[] = "rbind,rprivate,nosuid,nodev,rro", rw[] = "rbind,rprivate,nosuid,nodev";

static void add_file(const struct sandbox_request *r, json_t *mounts, size_t i, const char *target)
{
	auto_free char *from = mem_printf("%s/files/%zu", r->folder->path, i);

	confine_mount(mounts, target, "bind", from, ro);
}

static json_t *make_mounts(const struct sandbox_request *r)
{
	const struct sandbox_step *s = r->step;
	auto_free char *tmp = mem_printf("%s/tmp", r->folder->path);
	auto_free char *run = mem_printf("nosuid,nodev,mode=755,size=%dm", RUN_SIZE_MIB);
	json_t *m = json_array();

	confine_mounts(m, 0);
	confine_mount(m, "/tmp", "bind", tmp, rw);
	if (!s->keep_run)
		confine_mount(m, "/run", "tmpfs", "tmpfs", run);
	add_file(r, m, s->nfiles, "/etc/hosts");
	if (s->network)
		add_file(r, m, s->nfiles + 1, resolv);
	for (size_t i = 0; i < s->nbinds; i++)
		confine_mount(m, r->targets->binds[i], "bind", s->binds[i].host,
			s->binds[i].writable ? rw : ro);
	for (size_t i = 0; i < s->nfiles; i++)
		add_file(r, m, i, r->targets->files[i]);
	return m;
}

/* ---- process ---- */

static void set_env(json_t *env, const char *name, const char *value)
{
	auto_free char *pair = mem_printf("%s=%s", name, value);
	size_t key = strlen(name) + 1, i;
	json_t *v;

	json_array_foreach (env, i, v)
		if (strncmp(json_string_value(v), pair, key) == 0) {
			json_array_set_new(env, i, json_string(pair));
			return;
		}
	json_array_append_new(env, json_string(pair));
}

static json_t *make_env(const struct sandbox_step *s)
{
	json_t *env = json_array();
	char epoch[32];

	snprintf(epoch, sizeof(epoch), "%" PRId64, s->epoch);
	set_env(env, "PATH", path);
	set_env(env, "HOME", "/root");
	set_env(env, "HOSTNAME", "svrun");
	set_env(env, "LANG", "C.UTF-8");
	set_env(env, "TZ", "UTC");
	set_env(env, "SOURCE_DATE_EPOCH", epoch);
	for (size_t i = 0; i < s->env.n; i++)
		set_env(env, s->env.v[i].name, s->env.v[i].value);
	return env;
}

/* Not more than we have ourselves: raising it is the host's to allow. */
static json_t *make_limit(const char *type, int resource, uint64_t v)
{
	struct rlimit own;

	if (getrlimit((__rlimit_resource_t)resource, &own) == 0 && own.rlim_max < v)
		v = own.rlim_max;
	return json_pack(
		"{s:s, s:I, s:I}", "type", type, "soft", (json_int_t)v, "hard", (json_int_t)v);
}

static json_t *make_process(const struct sandbox_request *r, uint64_t caps)
{
	const struct sandbox_step *s = r->step;
	json_t *args = json_array(), *groups = json_array();

	for (size_t i = 0; i < s->argv.n; i++)
		json_array_append_new(args, json_string(s->argv.v[i]));
	for (uint32_t i = 0; i < r->ids->ngroups; i++)
		json_array_append_new(groups, json_integer(r->ids->groups[i]));
	return json_pack("{s:o, s:o, s:s, s:{s:I, s:I, s:i, s:o}, s:o, s:b, s:[o, o, o]}", "args",
		args, "env", make_env(s), "cwd", s->workdir ? s->workdir : "/", "user", "uid",
		(json_int_t)r->ids->uid, "gid", (json_int_t)r->ids->gid, "umask", 022,
		"additionalGids", groups, "capabilities", confine_caps(caps, r->ids->uid == 0),
		"noNewPrivileges", 1, "rlimits",
		make_limit("RLIMIT_NOFILE", RLIMIT_NOFILE, OPEN_FILES),
		make_limit("RLIMIT_CORE", RLIMIT_CORE, 0),
		make_limit("RLIMIT_FSIZE", RLIMIT_FSIZE, r->max_bytes));
}

/* ---- linux ---- */

static json_t *make_namespaces(bool network)
{
	static const char *const kinds[] = {"mount", "pid", "ipc", "uts", "cgroup", "network"};
	size_t n = sizeof(kinds) / sizeof(kinds[0]) - network;
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, json_pack("{s:s}", "type", kinds[i]));
	return list;
}

static json_t *make_resources(const struct sandbox_step *s)
{
	json_t *r = json_pack("{s:[{s:b, s:s}], s:{s:i}}", "devices", "allow", 0, "access", "rwm",
		"pids", "limit", s->pids ? (int)s->pids : SANDBOX_PIDS);
	json_int_t bytes = (json_int_t)s->memory_mib << 20;

	if (bytes) {
		json_t *m = json_pack("{s:I}", "limit", bytes);

		if (confine_has_swap())
			json_object_set_new(m, "swap", json_integer(bytes));
		json_object_set_new(r, "memory", m);
	}
	if (s->cpus)
		json_object_set_new(r, "cpu",
			json_pack("{s:i, s:I}", "period", CPU_PERIOD_US, "quota",
				(json_int_t)s->cpus * CPU_PERIOD_US));
	return r;
}

json_t *sandbox_spec(const struct sandbox_request *r)
{
	uint64_t caps = confine_caps_default() & ~(UINT64_C(1) << CAP_MKNOD);

	if (!r->step->network)
		caps &= ~(UINT64_C(1) << CAP_NET_RAW);
	return json_pack("{s:s, s:o, s:{s:s, s:b}, s:s, s:o, s:{s:o, s:o, s:o, s:o, s:o}}",
		"ociVersion", "1.2.0", "process", make_process(r, caps), "root", "path",
		r->folder->path, "readonly", 0, "hostname", "svrun", "mounts", make_mounts(r),
		"linux", "namespaces", make_namespaces(r->step->network), "resources",
		make_resources(r->step), "seccomp", seccomp_profile(caps), "maskedPaths",
		confine_masked(), "readonlyPaths", confine_readonly());
}
