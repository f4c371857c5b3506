/* Edits are put into a config.json. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/json.h"
#include "base/sys.h"
#include "gpu/edits.h"
#include "gpu/path.h"
#include "gpu/refused.h"

/* ---- config.json ---- */

/* The member of an object, made when it is not there. The config may be an engine's: whatever it
 * has in it. */
static json_t *member(json_t *o, const char *key, json_type type, struct err *e)
{
	json_t *v = o ? json_object_get(o, key) : NULL;

	if (!o)
		return NULL;
	if (!v || json_is_null(v)) {
		v = type == JSON_OBJECT ? json_object() : json_array();
		json_object_set_new(o, key, v);
	} else if (json_typeof(v) != type) {
		err_set(e, ERR_CORRUPT, "config.json: %s: expected %s", key,
			type == JSON_OBJECT ? "an object" : "an array");
		return NULL;
	}
	return v;
}

/* Remove the elements of a list whose member names the same path. */
static void drop_path(json_t *list, const char *key, const char *path)
{
	for (size_t i = json_array_size(list); i-- > 0;) {
		const char *other =
			json_string_value(json_object_get(json_array_get(list, i), key));

		if (other && path_relate(other, path) == PATH_SAME)
			json_array_remove(list, i);
	}
}

static json_t *strings(const char *const *v, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, json_string(v[i]));
	return list;
}

static int apply_env(const struct gpu_edits *x, json_t *process, struct err *e)
{
	json_t *env = x->nenv ? member(process, "env", JSON_ARRAY, e) : NULL;

	if (x->nenv && !env)
		return -1;
	for (size_t k = 0; k < x->nenv; k++) {
		auto_free char *word = mem_printf("%s=%s", x->env[k].name, x->env[k].value);
		size_t name = strlen(x->env[k].name) + 1, i;

		for (i = 0; i < json_array_size(env); i++) {
			const char *old = json_string_value(json_array_get(env, i));

			if (old && strncmp(old, word, name) == 0)
				break;
		}
		if (i < json_array_size(env))
			json_array_set_new(env, i, json_string(word));
		else
			json_array_append_new(env, json_string(word));
	}
	return 0;
}

static int apply_gids(const struct gpu_edits *x, json_t *process, struct err *e)
{
	json_t *user = x->ngids ? member(process, "user", JSON_OBJECT, e) : NULL;
	json_t *gids = user ? member(user, "additionalGids", JSON_ARRAY, e) : NULL;

	if (x->ngids && !gids)
		return -1;
	for (size_t k = 0; k < x->ngids; k++) {
		auto_json json_t *gid = json_integer(x->gids[k]);
		size_t i = 0;

		while (i < json_array_size(gids) && !json_equal(json_array_get(gids, i), gid))
			i++;
		if (i == json_array_size(gids))
			json_array_append(gids, gid);
	}
	return 0;
}

/* One who may make nodes gets at the GPUs of others wherever a rule is too wide: CVE-2021-1056. */
static void drop_mknod(json_t *process)
{
	json_t *sets = json_object_get(process, "capabilities"), *set;
	const char *name;

	json_object_foreach (sets, name, set)
		for (size_t i = json_array_size(set); i-- > 0;) {
			const char *cap = json_string_value(json_array_get(set, i));

			if (cap && str_eq(cap, "CAP_MKNOD"))
				json_array_remove(set, i);
		}
}

static int apply_process(const struct gpu_edits *x, json_t *config, struct err *e)
{
	json_t *process = json_object_get(config, "process");

	if (!process) /* a config to be created only: nobody who would see it */
		return 0;
	process = member(config, "process", JSON_OBJECT, e);
	if (!process || apply_env(x, process, e) < 0 || apply_gids(x, process, e) < 0)
		return -1;
	if (x->no_mknod)
		drop_mknod(process);
	return 0;
}

/* ---- nodes ---- */

/* The node on the host: 1, or 0 when it is not there. */
static int look(const struct edit_node *n, const struct gpu_host *h, struct stat *st, struct err *e)
{
	const char *path = n->host_path ? n->host_path : n->path;
	int dir = AT_FDCWD;

	if (h && !n->host_path && str_starts(path, "/dev/")) {
		dir = h->dev;
		path += strlen("/dev/");
		if (dir < 0)
			return 0;
	}
	if (sys_fstatat(dir, path, st, AT_SYMLINK_NOFOLLOW) == 0)
		return 1;
	return errno == ENOENT || errno == ENOTDIR ? 0 : err_sys(e, "device %s", n->path);
}

static char type_of(mode_t mode)
{
	return S_ISCHR(mode) ? 'c' : S_ISBLK(mode) ? 'b' : S_ISFIFO(mode) ? 'p' : 0;
}

/* What the edit leaves open comes from the host; what it says must be so there: numbers change with
 * every boot, and a rule for the wrong one opens somebody else's device. */
static int complete(struct edit_node *n, const struct gpu_host *h, struct err *e)
{
	const char *shown = n->host_path ? n->host_path : n->path;
	bool whole = n->type && (n->type == 'p' || n->has_number);
	struct stat st;
	int there = look(n, h, &st, e);
	char type;

	n->type = n->type == 'u' ? 'c' : n->type;
	if (there < 0)
		return -1;
	if (!there)
		return whole && !n->host_path
			       ? 0
			       : err_set(e, ERR_NOT_FOUND, "device %s is not on this host", shown);
	type = type_of(st.st_mode);
	if (!type)
		return err_set(e, ERR_DENIED, "%s is no device on this host%s", shown,
			S_ISLNK(st.st_mode) ? ", but a link" : "");
	if (n->type && n->type != type)
		return err_set(e, ERR_DENIED,
			"device %s is of type '%c' on this host, asked for is '%c'", shown, type,
			n->type);
	if (n->has_number && type != 'p' && st.st_rdev != makedev(n->major, n->minor)) {
		err_set(e, ERR_DENIED, "device %s is %u:%u on this host, asked for is %u:%u", shown,
			major(st.st_rdev), minor(st.st_rdev), n->major, n->minor);
		return err_hint(e, "numbers change when drivers are loaded: was the CDI spec made "
				   "before the last boot?");
	}
	n->type = type;
	n->major = major(st.st_rdev);
	n->minor = minor(st.st_rdev);
	n->has_number = type != 'p';
	if (!n->has_mode)
		n->mode = st.st_mode & 0777;
	n->has_mode = true;
	return 0;
}

/* Devices that are the machine itself, whatever name they come by. */
static int check_allowed(const struct edit_node *n, bool disks, struct err *e)
{
	const char *what = refused_device(n->type, n->major, n->minor, disks);

	return what ? err_set(e, ERR_DENIED, "device %s leads to %s: no container gets it", n->path,
			      what)
		    : 0;
}

static void set_owner(json_t *device, const char *key, bool has, uint32_t id, const json_t *user)
{
	const json_t *own = json_object_get(user, key);

	if (has)
		json_object_set_new(device, key, json_integer(id));
	else if (json_integer_value(own) > 0)
		json_object_set_new(device, key, json_integer(json_integer_value(own)));
}

static int apply_node(const struct edit_node *given, bool disks, const struct gpu_host *h,
	json_t *devices, json_t *rules, const json_t *user, struct err *e)
{
	struct edit_node n = *given;
	char type[2] = {0};
	json_t *device;

	if (complete(&n, h, e) < 0 || check_allowed(&n, disks, e) < 0)
		return -1;
	type[0] = n.type;
	device = json_pack("{s:s, s:s}", "path", n.path, "type", type);
	if (n.has_number) {
		json_object_set_new(device, "major", json_integer(n.major));
		json_object_set_new(device, "minor", json_integer(n.minor));
	}
	if (n.has_mode)
		json_object_set_new(device, "fileMode", json_integer(n.mode));
	set_owner(device, "uid", n.has_uid, n.uid, user);
	set_owner(device, "gid", n.has_gid, n.gid, user);
	drop_path(devices, "path", n.path);
	json_array_append_new(devices, device);
	if (n.type != 'p' && n.access && *n.access)
		json_array_append_new(
			rules, json_pack("{s:b, s:s, s:I, s:I, s:s}", "allow", 1, "type", type,
				       "major", (json_int_t)n.major, "minor", (json_int_t)n.minor,
				       "access", n.access));
	return 0;
}

static int apply_nodes(
	const struct gpu_edits *x, const struct gpu_host *h, json_t *config, struct err *e)
{
	json_t *l = member(config, "linux", JSON_OBJECT, e);
	json_t *devices = member(l, "devices", JSON_ARRAY, e);
	json_t *resources = member(l, "resources", JSON_OBJECT, e);
	json_t *rules = member(resources, "devices", JSON_ARRAY, e);
	const json_t *user = json_object_get(json_object_get(config, "process"), "user");

	if (!devices || !rules)
		return -1;
	for (size_t i = 0; i < x->nnodes; i++)
		if (apply_node(&x->nodes[i], x->disks, h, devices, rules, user, e) < 0)
			return -1;
	return 0;
}

/* ---- mounts ---- */

static bool is_bind(const struct edit_mount *m)
{
	return !m->type || str_eq(m->type, "bind") || !*m->type;
}

static json_t *mount_json(const struct edit_mount *m)
{
	json_t *options = strings(m->options, m->noptions);
	bool bind = is_bind(m), said = !bind;

	for (size_t i = 0; i < m->noptions; i++)
		said |= str_eq(m->options[i], "bind") || str_eq(m->options[i], "rbind");
	if (!said)
		json_array_insert_new(options, 0, json_string("rbind"));
	return json_pack("{s:s, s:s, s:s, s:o}", "destination", m->destination, "type",
		bind ? "bind" : m->type, "source", m->source, "options", options);
}

/* Behind the last mount that its place is in, before the first that is in it; else at the end. */
static size_t place_of(const json_t *mounts, const char *destination)
{
	size_t at = json_array_size(mounts);

	for (size_t i = json_array_size(mounts); i-- > 0;) {
		const char *other = json_string_value(
			json_object_get(json_array_get(mounts, i), "destination"));
		enum path_relation r = other ? path_relate(other, destination) : PATH_APART;

		if (r == PATH_ABOVE)
			break;
		if (r == PATH_BELOW)
			at = i;
	}
	return at;
}

static int by_depth(const void *pa, const void *pb)
{
	const struct edit_mount *const *a = pa, *const *b = pb;
	size_t da = path_depth((*a)->destination), db = path_depth((*b)->destination);

	if (da != db)
		return da < db ? -1 : 1;
	return *a < *b ? -1 : *a > *b; /* as they came */
}

static int apply_mounts(const struct gpu_edits *x, json_t *config, struct err *e)
{
	json_t *mounts = member(config, "mounts", JSON_ARRAY, e);
	auto_free const struct edit_mount **sorted = mem_array(x->nmounts, sizeof(*sorted));
	struct stat st;

	if (!mounts)
		return -1;
	for (size_t i = 0; i < x->nmounts; i++) {
		const struct edit_mount *m = &x->mounts[i];

		if (is_bind(m) && sys_fstatat(AT_FDCWD, m->source, &st, 0) < 0) {
			err_sys(e, "mount %s", m->source);
			return err_ctx(e, "%s", m->destination);
		}
		drop_path(mounts, "destination", m->destination);
		sorted[i] = m;
	}
	qsort(sorted, x->nmounts, sizeof(*sorted), by_depth);
	for (size_t i = 0; i < x->nmounts; i++)
		json_array_insert_new(
			mounts, place_of(mounts, sorted[i]->destination), mount_json(sorted[i]));
	return 0;
}

/* ---- hooks, classes of service, interfaces ---- */

/* An engine that has resolved the same devices has put the same hooks there. */
static void append_once(json_t *list, json_t *own_item)
{
	size_t i = 0;

	while (i < json_array_size(list) && !json_equal(json_array_get(list, i), own_item))
		i++;
	if (i == json_array_size(list))
		json_array_append(list, own_item);
	json_decref(own_item);
}

static int apply_hooks(const struct gpu_edits *x, json_t *config, struct err *e)
{
	json_t *hooks = member(config, "hooks", JSON_OBJECT, e);

	for (size_t i = 0; i < x->nhooks; i++) {
		const struct edit_hook *h = &x->hooks[i];
		json_t *stage = member(hooks, h->stage, JSON_ARRAY, e), *hook;

		if (!stage)
			return -1;
		hook = json_pack("{s:s}", "path", h->path);
		if (h->args.n)
			json_object_set_new(hook, "args", strings(h->args.v, h->args.n));
		if (h->env.n)
			json_object_set_new(hook, "env", strings(h->env.v, h->env.n));
		if (h->timeout)
			json_object_set_new(hook, "timeout", json_integer(h->timeout));
		append_once(stage, hook);
	}
	return 0;
}

static int apply_rdt(const struct edit_rdt *r, json_t *config, struct err *e)
{
	json_t *l = member(config, "linux", JSON_OBJECT, e), *rdt;

	if (!l)
		return -1;
	rdt = json_pack("{s:s*, s:s*, s:s*}", "closID", r->clos_id, "l3CacheSchema", r->l3,
		"memBwSchema", r->memory);
	if (r->schemata.n)
		json_object_set_new(rdt, "schemata", strings(r->schemata.v, r->schemata.n));
	if (r->monitor)
		json_object_set_new(rdt, "enableMonitoring", json_true());
	json_object_set_new(l, "intelRdt", rdt);
	return 0;
}

static int apply_netdevs(const struct gpu_edits *x, json_t *config, struct err *e)
{
	json_t *l = member(config, "linux", JSON_OBJECT, e);
	json_t *devices = member(l, "netDevices", JSON_OBJECT, e);

	if (!devices)
		return -1;
	for (size_t i = 0; i < x->nnetdevs; i++)
		json_object_set_new(devices, x->netdevs[i].host,
			json_pack("{s:s*}", "name", x->netdevs[i].name));
	return 0;
}

int gpu_edits_apply(
	const struct gpu_edits *x, const struct gpu_host *h, json_t *config, struct err *e)
{
	if (!json_is_object(config))
		return err_set(e, ERR_CORRUPT, "config.json: expected an object");
	if (apply_process(x, config, e) < 0)
		return -1;
	if (x->nnodes && apply_nodes(x, h, config, e) < 0)
		return -1;
	if (x->nmounts && apply_mounts(x, config, e) < 0)
		return -1;
	if (x->nhooks && apply_hooks(x, config, e) < 0)
		return -1;
	if (x->nnetdevs && apply_netdevs(x, config, e) < 0)
		return -1;
	return x->rdt.given ? apply_rdt(&x->rdt, config, e) : 0;
}
