#include "gpu/cdi-spec.h"

#include <limits.h>

#include "base/json.h"
#include "base/str.h"

/* ---- the tables ---- */

static const char *const versions[] = {
	"0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0"};
enum { V030, V040, V050, V060, V070, V080, V100, V110, VERSIONS };

enum kind { TEXT, NUMBER, TRUTH, OBJECT, PAIRS };

/* A fault of a value, or NULL; *since is raised to the version that its contents need. */
typedef const char *value_check(const json_t *v, unsigned *since);

struct member {
	const char *name;
	enum kind kind;
	bool list, required;
	unsigned since;           /* of a value that is not empty */
	json_int_t max;           /* of numbers; of a list's length (0: CDI_LIST_MAX) */
	value_check *check;       /* each element's */
	const struct member *sub; /* of objects */
};

static const char *check_env(const json_t *v, unsigned *since)
{
	const char *s = json_string_value(v), *equals = strchr(s, '=');

	(void)since;
	return !equals || equals == s ? "expected NAME=VALUE" : NULL;
}

static const char *check_path(const json_t *v, unsigned *since)
{
	const char *s = json_string_value(v);

	(void)since;
	if (*s != '/')
		return "expected an absolute path";
	if (strlen(s) >= PATH_MAX)
		return "too long for a path";
	for (const char *p = s; (p = strstr(p, "/..")); p++)
		if (p[3] == '/' || !p[3])
			return "a path with '..'";
	return NULL;
}

static const char *check_some(const json_t *v, unsigned *since)
{
	(void)since;
	return *json_string_value(v) ? NULL : "is empty";
}

static const char *check_type(const json_t *v, unsigned *since)
{
	const char *s = json_string_value(v);

	(void)since;
	return strlen(s) <= 1 && strspn(s, "bcup") == strlen(s) ? NULL : "expected b, c, u or p";
}

static const char *check_permissions(const json_t *v, unsigned *since)
{
	const char *s = json_string_value(v);

	if (str_eq(s, "none")) {
		*since = V110;
		return NULL;
	}
	return s[strspn(s, "rwm")] ? "expected letters of rwm, or none" : NULL;
}

static const char *check_stage(const json_t *v, unsigned *since)
{
	static const char *const stages[] = {"prestart", "createRuntime", "createContainer",
		"startContainer", "poststart", "poststop"};

	(void)since;
	for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]); i++)
		if (str_eq(json_string_value(v), stages[i]))
			return NULL;
	return "is no hook of the runtime";
}

static const char *check_clos(const json_t *v, unsigned *since)
{
	const char *s = json_string_value(v);

	(void)since;
	if (str_eq(s, "/"))
		return NULL;
	return strlen(s) >= NAME_MAX || str_eq(s, ".") || str_eq(s, "..") || strpbrk(s, "/\n")
		       ? "is no name of a folder"
		       : NULL;
}

static const char *check_device_name(const json_t *v, unsigned *since)
{
	const char *s = json_string_value(v);

	if (*s >= '0' && *s <= '9')
		*since = V050;
	return cdi_device_fault(s, strlen(s));
}

static const char *check_kind(const json_t *v, unsigned *since)
{
	const char *s = json_string_value(v), *slash = strchr(s, '/'), *why;

	if (!slash)
		return "expected vendor/class";
	why = cdi_kind_fault(s, (size_t)(slash - s));
	if (!why)
		why = cdi_kind_fault(slash + 1, strlen(slash + 1));
	if (strchr(slash, '.'))
		*since = V060;
	return why;
}

static const char *check_version(const json_t *v, unsigned *since)
{
	const char *s = json_string_value(v);

	(void)since;
	s += *s == 'v';
	for (size_t i = 0; i < VERSIONS; i++)
		if (str_eq(s, versions[i]))
			return NULL;
	return "is no version of CDI that is read: 0.3.0 to 1.1.0";
}

#define ROWS(...)                                                                                  \
	(const struct member[])                                                                    \
	{                                                                                          \
		__VA_ARGS__,                                                                       \
		{                                                                                  \
			0                                                                          \
		}                                                                                  \
	}
#define U32 .kind = NUMBER, .max = UINT32_MAX

static const struct member node_members[] = {
	{"path", TEXT, .required = true, .check = check_path},
	{"hostPath", TEXT, .since = V050, .check = check_path},
	{"type", TEXT, .check = check_type},
	{"major", .kind = NUMBER, .max = UINT32_MAX},
	{"minor", .kind = NUMBER, .max = UINT32_MAX},
	{"fileMode", .kind = NUMBER, .max = UINT32_MAX},
	{"permissions", TEXT, .check = check_permissions},
	{"uid", U32},
	{"gid", U32},
	{0},
};
/* hostPath of a mount that is no bind is whatever its type makes of it: see check_mount(). */
static const struct member mount_members[] = {
	{"hostPath", TEXT, .required = true, .check = check_some},
	{"containerPath", TEXT, .required = true, .check = check_path},
	{"type", TEXT, .since = V040},
	{"options", TEXT, .list = true, .check = check_some},
	{0},
};
static const struct member hook_members[] = {
	{"hookName", TEXT, .required = true, .check = check_stage},
	{"path", TEXT, .required = true, .check = check_path},
	{"args", TEXT, .list = true},
	{"env", TEXT, .list = true, .check = check_env},
	{"timeout", .kind = NUMBER, .max = INT32_MAX},
	{0},
};
static const struct member rdt_members[] = {
	{"closID", TEXT, .check = check_clos},
	{"l3CacheSchema", .kind = TEXT},
	{"memBwSchema", .kind = TEXT},
	{"schemata", TEXT, .list = true, .since = V110, .check = check_some},
	{"enableMonitoring", .kind = TRUTH, .since = V110},
	{0},
};
static const struct member netdev_members[] = {
	{"hostInterfaceName", TEXT, .required = true, .check = check_some},
	{"name", TEXT, .required = true, .check = check_some},
	{0},
};
static const struct member edit_members[] = {
	{"env", TEXT, .list = true, .check = check_env},
	{"deviceNodes", OBJECT, .list = true, .sub = node_members},
	{"mounts", OBJECT, .list = true, .sub = mount_members},
	{"hooks", OBJECT, .list = true, .sub = hook_members},
	{"additionalGids", U32, .list = true, .since = V070},
	{"intelRdt", OBJECT, .since = V070, .sub = rdt_members},
	{"netDevices", OBJECT, .list = true, .since = V110, .sub = netdev_members},
	{0},
};
static const struct member device_members[] = {
	{"name", TEXT, .required = true, .check = check_device_name},
	{"annotations", PAIRS, .since = V060},
	{"containerEdits", OBJECT, .required = true, .sub = edit_members},
	{0},
};
static const struct member spec_members[] = {
	{"cdiVersion", TEXT, .required = true, .check = check_version},
	{"kind", TEXT, .required = true, .check = check_kind},
	{"annotations", PAIRS, .since = V060},
	{"devices", OBJECT, .list = true, .required = true, .max = CDI_DEVICES_MAX,
		.sub = device_members},
	{"containerEdits", OBJECT, .sub = edit_members},
	{0},
};

/* ---- the check ---- */

struct checking {
	cdi_report *report;
	void *ctx;
	size_t faults;
	bool enough;
	char pointer[512];
	unsigned since; /* the version that what was seen needs */
	char needer[512];
};

static void fault(struct checking *c, const char *fmt, ...) printf_like(2, 3);
static void fault(struct checking *c, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (c->enough)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	c->faults++;
	c->enough = !c->report(c->ctx, c->pointer, text);
}

/* One name deeper; returns where to cut it off again. Names are those of our tables, and numbers.
 */
static size_t enter(struct checking *c, const char *name)
{
	size_t n = strlen(c->pointer);

	snprintf(c->pointer + n, sizeof(c->pointer) - n, "/%s", name);
	return n;
}

static void needs(struct checking *c, unsigned since)
{
	if (since > c->since) {
		c->since = since;
		memcpy(c->needer, c->pointer, sizeof(c->needer));
	}
}

static void check_object(struct checking *c, const json_t *o, const struct member *table);

static void check_pairs(struct checking *c, const json_t *o)
{
	const char *key;
	json_t *v;
	char shown[STR_SHOWN];

	json_object_foreach ((json_t *)(uintptr_t)o, key, v)
		if (!json_is_string(v))
			fault(c, "'%s': expected a text", str_shown(key, shown));
}

static void check_one(struct checking *c, const struct member *m, const json_t *v)
{
	static const char *const names[] = {
		"a text", "a number", "true or false", "an object", "an object of texts"};
	bool good = m->kind == TEXT     ? json_is_string(v)
		    : m->kind == NUMBER ? json_is_integer(v)
		    : m->kind == TRUTH  ? json_is_boolean(v)
					: json_is_object(v);
	unsigned since = 0;
	const char *why;

	if (!good) {
		fault(c, "expected %s", names[m->kind]);
		return;
	}
	if (m->kind == NUMBER && (json_integer_value(v) < 0 || json_integer_value(v) > m->max))
		fault(c, "expected a number from 0 to %lld", (long long)m->max);
	if (m->kind == TEXT && json_string_length(v) > CDI_TEXT_MAX) {
		fault(c, "longer than %d bytes", CDI_TEXT_MAX);
		return;
	}
	why = m->check ? m->check(v, &since) : NULL;
	if (why)
		fault(c, "%s", why);
	needs(c, since);
	if (m->kind == PAIRS)
		check_pairs(c, v);
	else if (m->sub)
		check_object(c, v, m->sub);
}

static void check_list(struct checking *c, const struct member *m, const json_t *v)
{
	size_t i, max = m->max && m->kind == OBJECT ? (size_t)m->max : CDI_LIST_MAX;
	json_t *item;

	if (!json_is_array(v)) {
		fault(c, "expected a list");
		return;
	}
	if (json_array_size(v) > max) {
		fault(c, "more than %zu", max);
		return;
	}
	json_array_foreach (v, i, item) {
		char name[24];
		size_t cut;

		snprintf(name, sizeof(name), "%zu", i);
		cut = enter(c, name);
		check_one(c, m, item);
		c->pointer[cut] = '\0';
		if (c->enough)
			return;
	}
}

/* What is not said in any of the ways to say nothing. */
static bool is_empty(const json_t *v)
{
	return !v || json_is_null(v) || json_is_false(v) ||
	       (json_is_string(v) && json_string_length(v) == 0) ||
	       (json_is_array(v) && json_array_size(v) == 0);
}

static const struct member *find(const struct member *table, const char *name)
{
	for (; table->name; table++)
		if (str_eq(table->name, name))
			return table;
	return NULL;
}

static void check_unknown(struct checking *c, const json_t *o, const struct member *table)
{
	const char *key;
	json_t *v;

	json_object_foreach ((json_t *)(uintptr_t)o, key, v) {
		const char *names[16] = {NULL}, *near;
		char shown[STR_SHOWN];

		if (find(table, key))
			continue;
		for (size_t i = 0; table[i].name && i < 15; i++)
			names[i] = table[i].name;
		near = str_nearest(key, names);
		fault(c, "unknown member '%s'%s%s%s", str_shown(key, shown),
			near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
	}
}

/* Between the members of one object. */

static void check_mount(struct checking *c, const json_t *o)
{
	const char *type = json_string_value(json_object_get(o, "type"));
	const json_t *host = json_object_get(o, "hostPath");
	unsigned since = 0;
	const char *why = json_is_string(host) ? check_path(host, &since) : NULL;

	if (why && (!type || !*type || str_eq(type, "bind"))) {
		size_t cut = enter(c, "hostPath");

		fault(c, "%s", why);
		c->pointer[cut] = '\0';
	}
}

static void check_edits(struct checking *c, const json_t *o)
{
	auto_json json_t *hosts = json_object(), *names = json_object();
	json_t *list = json_object_get(o, "netDevices"), *d;
	size_t i;

	json_array_foreach (list, i, d) {
		const char *host = json_string_value(json_object_get(d, "hostInterfaceName"));
		const char *name = json_string_value(json_object_get(d, "name"));

		if (!host || !name)
			continue;
		if (json_object_get(hosts, host) || json_object_get(names, name))
			fault(c, "netDevices: %.20s or %.20s is there twice", host, name);
		json_object_set_new(hosts, host, json_true());
		json_object_set_new(names, name, json_true());
	}
}

static void check_device(struct checking *c, const json_t *o)
{
	const json_t *edits = json_object_get(o, "containerEdits");
	const char *key;
	json_t *v;
	size_t some = 0;

	json_object_foreach ((json_t *)(uintptr_t)edits, key, v)
		some += !is_empty(v);
	if (json_is_object(edits) && !some) {
		size_t cut = enter(c, "containerEdits");

		fault(c, "is empty: a device changes something");
		c->pointer[cut] = '\0';
	}
}

static void check_devices(struct checking *c, const json_t *o)
{
	auto_json json_t *seen = json_object();
	json_t *list = json_object_get(o, "devices"), *d;
	size_t i;

	if (json_is_array(list) && json_array_size(list) == 0)
		fault(c, "devices: there is none");
	if (!json_is_array(list) || json_array_size(list) > CDI_DEVICES_MAX)
		return;
	json_array_foreach (list, i, d) {
		const char *name = json_string_value(json_object_get(d, "name"));

		if (name && json_object_get(seen, name))
			fault(c, "devices: '%.100s' is there twice", name);
		if (name)
			json_object_set_new(seen, name, json_true());
	}
}

static void check_object(struct checking *c, const json_t *o, const struct member *table)
{
	check_unknown(c, o, table);
	for (const struct member *m = table; m->name && !c->enough; m++) {
		const json_t *v = json_object_get(o, m->name);
		size_t cut;

		if (!v || json_is_null(v)) {
			if (m->required)
				fault(c, "'%s' is missing", m->name);
			continue;
		}
		cut = enter(c, m->name);
		if (!is_empty(v))
			needs(c, m->since);
		if (m->list)
			check_list(c, m, v);
		else
			check_one(c, m, v);
		c->pointer[cut] = '\0';
	}
	if (table == mount_members)
		check_mount(c, o);
	else if (table == edit_members)
		check_edits(c, o);
	else if (table == device_members)
		check_device(c, o);
	else if (table == spec_members)
		check_devices(c, o);
}

static void check_declared(struct checking *c, const json_t *spec)
{
	const char *v = json_string_value(json_object_get(spec, "cdiVersion"));
	size_t declared = 0;

	if (!v)
		return;
	v += *v == 'v';
	while (declared < VERSIONS && !str_eq(v, versions[declared]))
		declared++;
	if (declared == VERSIONS || declared >= c->since)
		return;
	enter(c, "cdiVersion");
	fault(c, "%s, but %.200s needs %s", v, c->needer, versions[c->since]);
	c->pointer[0] = '\0';
}

size_t cdi_check(const json_t *spec, cdi_report *report, void *ctx)
{
	struct checking c = {.report = report, .ctx = ctx};

	if (!json_is_object(spec)) {
		fault(&c, "expected an object");
		return c.faults;
	}
	check_object(&c, spec, spec_members);
	check_declared(&c, spec);
	return c.faults;
}
