/* From a spec's containerEdits to what is done to a container, and what no container gets. Source:
 * SPEC.md "OCI Edits"; gpu.md 2.1, 2.3. */
#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/str.h"
#include "base/sys.h"
#include "gpu/cdi-spec.h"
#include "gpu/path.h"

static const char *text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s && *s ? s : NULL;
}

/* One that a valid document has. */
static const char *required(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	assert(s);
	return s;
}

struct strings cdi_texts(const json_t *list, struct arena *mem)
{
	struct strings s = {NULL, json_array_size(list)};

	s.v = arena_alloc(mem, (s.n + 1) * sizeof(*s.v));
	for (size_t i = 0; i < s.n; i++)
		s.v[i] = json_string_value(json_array_get(list, i));
	return s;
}

static bool number(const json_t *o, const char *key, uint32_t *v)
{
	const json_t *n = json_object_get(o, key);

	*v = (uint32_t)json_integer_value(n);
	return json_is_integer(n);
}

/* ---- nodes ---- */

static void add_node(struct gpu_edits *x, const json_t *o)
{
	const char *permissions = text(o, "permissions"), *type = text(o, "type");
	struct edit_node n = {
		.path = required(o, "path"),
		.host_path = text(o, "hostPath"),
		.type = type ? *type : 0,
		/* "none": the node is seen, and nothing more */
		.access = !permissions                  ? "rw"
			  : str_eq(permissions, "none") ? ""
							: permissions,
	};

	/* Producers in Go leave out a minor of 0, and leave in a major of 0 that says nothing. */
	n.has_number = number(o, "major", &n.major);
	n.has_number = (number(o, "minor", &n.minor) || n.has_number) && (n.major || n.minor);
	/* What the spec leaves open is taken from this system's node, fixtures of GPUs or not. */
	if (!n.host_path && !(n.type && (n.has_number || n.type == 'p')))
		n.host_path = n.path;
	n.has_mode = number(o, "fileMode", &n.mode);
	n.mode &= 0777; /* producers leave what stat(2) says of the type in it */
	n.has_uid = number(o, "uid", &n.uid);
	n.has_gid = number(o, "gid", &n.gid);
	gpu_edits_node(x, &n);
}

/* ---- mounts ---- */

static bool has_option(const struct strings *options, const char *a, const char *b)
{
	for (size_t i = 0; i < options->n; i++)
		if (str_eq(options->v[i], a) || str_eq(options->v[i], b))
			return true;
	return false;
}

/* A whole tree of the host, or what it consists of: read-only at most. */
static bool is_vital(const char *path)
{
	static const char *const trees[] = {
		"/dev", "/home", "/opt", "/root", "/srv", "/var", "/var/lib"};
	static const char *const whole[] = {"/bin", "/boot", "/etc", "/lib", "/lib32", "/lib64",
		"/libx32", "/proc", "/sbin", "/sys", "/usr"};

	for (size_t i = 0; i < sizeof(trees) / sizeof(trees[0]); i++)
		if (str_eq(path, trees[i]))
			return true;
	for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++)
		if (path_relate(whole[i], path) != PATH_APART)
			return true;
	return false;
}

static bool is_folder(const char *path)
{
	struct stat st;

	return sys_fstatat(AT_FDCWD, path, &st, 0) == 0 && S_ISDIR(st.st_mode);
}

/* In /run are the sockets of who does everything for whoever connects, which "ro" does not hinder:
 * plain files are given, and what NVIDIA's specs have: /run/nvidia-persistenced/socket,
 * /run/nvidia-fabricmanager/socket, /run/nvidia/mps, /run/nvidia/driver/... (AMD's have no mounts.)
 */
static bool may_have_sockets(const char *path)
{
	static const char gpus[] = "/run/nvidia";
	struct stat st;

	if (str_starts(path, "/var/run")) /* a link, which nothing has followed yet */
		path += strlen("/var");
	if (path_relate("/run", path) == PATH_APART ||
		(str_starts(path, gpus) && strchr("/-", path[strlen(gpus)])))
		return false;
	return sys_fstatat(AT_FDCWD, path, &st, 0) < 0 || !S_ISREG(st.st_mode);
}

/* What leads to all of the host, and be it only to be read: /proc/PID/root is a way to its root
 * folder. */
static bool leads_out(const char *path)
{
	static const char proc[] = "/proc/";

	return str_eq(path, "/proc") || may_have_sockets(path) ||
	       (str_starts(path, proc) && strchr("0123456789", path[strlen(proc)]));
}

/* "ro" and "rw" together may end either way. */
static bool is_read_only(const struct strings *options)
{
	return has_option(options, "ro", "rro") && !has_option(options, "rw", "rrw");
}

/* *all: what is mounted below the source must be read-only, too. */
static int check_source(const char *source, const struct strings *options, bool *all, struct err *e)
{
	auto_free char *real = realpath(source, NULL);
	const char *path = real ? real : source;

	*all = false;
	if (str_eq(path, "/"))
		return err_set(e, ERR_DENIED, "mount of the host's root: no container gets it");
	if (leads_out(path))
		return err_set(
			e, ERR_DENIED, "mount of the host's %s: no container gets it", source);
	if (!is_vital(path))
		return 0;
	*all = is_folder(path);
	if (is_read_only(options))
		return 0;
	err_set(e, ERR_DENIED,
		"mount of the host's %s that may be written to: no container gets it", source);
	return err_hint(e, "with the option \"ro\" of its own it may be mounted");
}

static int add_mount(struct gpu_edits *x, const json_t *o, struct err *e)
{
	const char *type = text(o, "type");
	struct strings options = cdi_texts(json_object_get(o, "options"), &x->mem);
	struct edit_mount m = {
		required(o, "hostPath"), required(o, "containerPath"), type, options.v, options.n};
	bool bind = !type || str_eq(type, "bind") || str_eq(type, "none"), all = false;

	if (bind)
		m.type = NULL;
	else if (!str_eq(type, "tmpfs"))
		return err_set(
			e, ERR_DENIED, "mount of a file system '%.40s' on %s", type, m.destination);
	if (m.destination[strspn(m.destination, "/.")] == '\0')
		return err_set(e, ERR_DENIED, "mount on the root of the container");
	if (has_option(&options, "shared", "rshared"))
		return err_set(e, ERR_DENIED,
			"mount on %s: what is mounted there inside would be mounted on the host",
			m.destination);
	if (bind && check_source(m.source, &options, &all, e) < 0)
		return err_ctx(e, "%s", m.destination);
	if (all) { /* "ro" is of the uppermost mount alone: /sys would have cgroups to be written */
		m.options = options.v;
		options.v[options.n] = "rro"; /* cdi_texts() has left a place */
		m.noptions = options.n + 1;
	}
	gpu_edits_mount(x, &m);
	return 0;
}

/* ---- hooks ---- */

static bool is_allowed(const struct cdi_policy *p, const char *path)
{
	for (size_t i = 0; p && i < p->hooks.n; i++)
		if (str_eq(p->hooks.v[i], path))
			return true;
	return false;
}

static int add_hook(struct gpu_edits *x, const json_t *o, const struct cdi_policy *p, struct err *e)
{
	struct edit_hook h = {
		.stage = required(o, "hookName"),
		.path = required(o, "path"),
		.args = cdi_texts(json_object_get(o, "args"), &x->mem),
		.env = cdi_texts(json_object_get(o, "env"), &x->mem),
	};
	int native = cdi_hook_native(x, h.path, &h.args, e);

	if (native)
		return native < 0 ? -1 : 0;
	if (!is_allowed(p, h.path)) {
		err_set(e, ERR_DENIED, "%s hook %s%s%.100s: a program of the host is not run",
			h.stage, h.path, h.args.n > 1 ? " " : "", h.args.n > 1 ? h.args.v[1] : "");
		return err_hint(
			e, "if you trust it, allow it by its path: --cdi-allow-hook %s", h.path);
	}
	if (cdi_program(h.path, &h.path, &x->mem, e) < 0)
		return -1;
	number(o, "timeout", &h.timeout);
	gpu_edits_hook(x, &h);
	return 0;
}

/* ---- all of it ---- */

static void add_env(struct gpu_edits *x, const char *word)
{
	const char *equals = strchr(word, '=');

	assert(equals);
	gpu_edits_env(x, arena_strndup(&x->mem, word, (size_t)(equals - word)), equals + 1);
}

static void set_rdt(struct gpu_edits *x, const json_t *o)
{
	x->rdt = (struct edit_rdt){
		.given = true,
		.monitor = json_is_true(json_object_get(o, "enableMonitoring")),
		.clos_id = text(o, "closID"),
		.l3 = text(o, "l3CacheSchema"),
		.memory = text(o, "memBwSchema"),
		.schemata = cdi_texts(json_object_get(o, "schemata"), &x->mem),
	};
}

int cdi_edits_add(
	struct gpu_edits *x, const json_t *edits, const struct cdi_policy *p, struct err *e)
{
	const json_t *rdt = json_object_get(edits, "intelRdt");
	size_t i;
	json_t *v;

	json_array_foreach (json_object_get(edits, "env"), i, v)
		add_env(x, json_string_value(v));
	json_array_foreach (json_object_get(edits, "deviceNodes"), i, v)
		add_node(x, v);
	json_array_foreach (json_object_get(edits, "netDevices"), i, v)
		gpu_edits_netdev(x, required(v, "hostInterfaceName"), required(v, "name"));
	json_array_foreach (json_object_get(edits, "mounts"), i, v)
		if (add_mount(x, v, e) < 0)
			return -1;
	json_array_foreach (json_object_get(edits, "hooks"), i, v)
		if (add_hook(x, v, p, e) < 0)
			return -1;
	json_array_foreach (json_object_get(edits, "additionalGids"), i, v)
		gpu_edits_gid(x, (uint32_t)json_integer_value(v));
	if (json_is_object(rdt))
		set_rdt(x, rdt);
	return 0;
}
