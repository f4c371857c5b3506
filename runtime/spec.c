#include "runtime/spec.h"

#include <limits.h>
#include <sys/resource.h>

#include "base/file.h"
#include "base/str.h"

enum { SPEC_MAX = 8 << 20, UMASK_MAX = 0777 };

/* ---- process ---- */

static int read_groups(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	struct spec_user *u = out;
	size_t n = json_array_size(a->v);

	if (!json_is_array(a->v) || n > FIELDS_ELEMENTS_MAX)
		return at_error(a, e, "expected an array of at most %d", FIELDS_ELEMENTS_MAX);
	u->groups = arena_alloc(mem, n ? n * sizeof(*u->groups) : 1);
	for (size_t i = 0; i < n; i++) {
		const struct at el = {a, NULL, i, json_array_get(a->v, i)};

		if (!json_is_integer(el.v) || json_integer_value(el.v) < 0 ||
			json_integer_value(el.v) >= UINT32_MAX)
			return at_error(&el, e, "expected a group id");
		u->groups[u->ngroups++] = (uint32_t)json_integer_value(el.v);
	}
	return 0;
}

static int read_user(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"uid", FIELD_U32, offsetof(struct spec_user, uid), true, NULL},
		{"gid", FIELD_U32, offsetof(struct spec_user, gid), true, NULL},
		{"umask", FIELD_OPT_I64, offsetof(struct spec_user, umask), false, NULL},
		{"additionalGids", FIELD_READ, 0, false, read_groups},
		{0},
	};
	struct spec_user *u = out;

	if (fields_read(a, fields, u, mem, e) < 0)
		return -1;
	/* -1 means "leave it as it is" to setresuid(2): root would stay root (CVE-2024-40635). */
	if (u->uid == UINT32_MAX || u->gid == UINT32_MAX)
		return at_error(a, e, "uid and gid must be less than %u", UINT32_MAX);
	if (u->umask.set && (u->umask.v < 0 || u->umask.v > UMASK_MAX))
		return at_error(a, e, "umask must be at most 0777 (octal)");
	return 0;
}

static int read_console_size(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"height", FIELD_U32, offsetof(struct spec_process, rows), true, NULL},
		{"width", FIELD_U32, offsetof(struct spec_process, columns), true, NULL},
		{0},
	};

	return fields_read(a, fields, out, mem, e);
}

static int read_cap_set(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	uint64_t *set = out;

	(void)mem;
	if (!json_is_array(a->v) || json_array_size(a->v) > FIELDS_ELEMENTS_MAX)
		return at_error(a, e, "expected an array of capability names");
	for (size_t i = 0; i < json_array_size(a->v); i++) {
		const struct at el = {a, NULL, i, json_array_get(a->v, i)};
		const char *name = at_string(&el, e);
		int cap = name ? caps_number(name) : -1;

		if (!name)
			return -1;
		if (cap < 0)
			return at_error(&el, e, "unknown capability '%.100s'", name);
		*set |= UINT64_C(1) << cap;
	}
	return 0;
}

static int read_caps(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"bounding", FIELD_READ, offsetof(struct caps, bounding), false, read_cap_set},
		{"permitted", FIELD_READ, offsetof(struct caps, permitted), false, read_cap_set},
		{"effective", FIELD_READ, offsetof(struct caps, effective), false, read_cap_set},
		{"inheritable", FIELD_READ, offsetof(struct caps, inheritable), false,
			read_cap_set},
		{"ambient", FIELD_READ, offsetof(struct caps, ambient), false, read_cap_set},
		{0},
	};

	return fields_read(a, fields, out, mem, e);
}

static const struct {
	const char *name;
	int resource;
} rlimit_names[] = {
	{"RLIMIT_AS", RLIMIT_AS},
	{"RLIMIT_CORE", RLIMIT_CORE},
	{"RLIMIT_CPU", RLIMIT_CPU},
	{"RLIMIT_DATA", RLIMIT_DATA},
	{"RLIMIT_FSIZE", RLIMIT_FSIZE},
	{"RLIMIT_LOCKS", RLIMIT_LOCKS},
	{"RLIMIT_MEMLOCK", RLIMIT_MEMLOCK},
	{"RLIMIT_MSGQUEUE", RLIMIT_MSGQUEUE},
	{"RLIMIT_NICE", RLIMIT_NICE},
	{"RLIMIT_NOFILE", RLIMIT_NOFILE},
	{"RLIMIT_NPROC", RLIMIT_NPROC},
	{"RLIMIT_RSS", RLIMIT_RSS},
	{"RLIMIT_RTPRIO", RLIMIT_RTPRIO},
	{"RLIMIT_RTTIME", RLIMIT_RTTIME},
	{"RLIMIT_SIGPENDING", RLIMIT_SIGPENDING},
	{"RLIMIT_STACK", RLIMIT_STACK},
};

int spec_rlimit_resource(const char *name)
{
	for (size_t i = 0; i < sizeof(rlimit_names) / sizeof(rlimit_names[0]); i++)
		if (str_eq(rlimit_names[i].name, name))
			return rlimit_names[i].resource;
	return -1;
}

static int read_rlimit(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"type", FIELD_STR, offsetof(struct spec_rlimit, name), true, NULL},
		{"soft", FIELD_U64, offsetof(struct spec_rlimit, soft), true, NULL},
		{"hard", FIELD_U64, offsetof(struct spec_rlimit, hard), true, NULL},
		{0},
	};
	struct spec_rlimit *r = out;

	if (fields_read(a, fields, r, mem, e) < 0)
		return -1;
	r->resource = spec_rlimit_resource(r->name);
	if (r->resource < 0)
		return at_error(a, e, "unknown rlimit '%.100s'", r->name);
	if (r->soft == SPEC_RLIM_INFINITY)
		r->soft = RLIM_INFINITY;
	if (r->hard == SPEC_RLIM_INFINITY)
		r->hard = RLIM_INFINITY;
	if (r->soft > r->hard)
		return at_error(a, e, "soft limit is greater than the hard limit");
	return 0;
}

static int read_rlimits(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	struct spec_process *p = out;

	if (fields_read_array(
		    a, sizeof(*p->rlimits), &p->rlimits, &p->nrlimits, read_rlimit, mem, e) < 0)
		return -1;
	for (size_t i = 0; i < p->nrlimits; i++)
		for (size_t k = 0; k < i; k++)
			if (p->rlimits[i].resource == p->rlimits[k].resource)
				return at_error(a, e, "%s is there twice", p->rlimits[i].name);
	return 0;
}

static int check_process(const struct at *a, const struct spec_process *p, struct err *e)
{
	if (p->args.n == 0)
		return at_error(a, e, "args: empty");
	for (size_t i = 0; i < p->env.n; i++)
		if (!strchr(p->env.v[i], '=') || p->env.v[i][0] == '=')
			return at_error(a, e, "env/%zu: expected NAME=VALUE", i);
	if (p->oom_score_adj.set && (p->oom_score_adj.v < -1000 || p->oom_score_adj.v > 1000))
		return at_error(a, e, "oomScoreAdj: expected -1000 to 1000");
	if ((p->rows | p->columns) > USHRT_MAX)
		return at_error(a, e, "consoleSize: at most %d", USHRT_MAX);
	return 0;
}

static int read_process(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"terminal", FIELD_BOOL, offsetof(struct spec_process, terminal), false, NULL},
		{"consoleSize", FIELD_READ, 0, false, read_console_size},
		{"user", FIELD_READ, offsetof(struct spec_process, user), true, read_user},
		{"args", FIELD_STRS, offsetof(struct spec_process, args), true, NULL},
		{"env", FIELD_STRS, offsetof(struct spec_process, env), false, NULL},
		{"cwd", FIELD_PATH, offsetof(struct spec_process, cwd), true, NULL},
		{"capabilities", FIELD_READ, offsetof(struct spec_process, caps), false, read_caps},
		{"rlimits", FIELD_READ, 0, false, read_rlimits},
		{"noNewPrivileges", FIELD_BOOL, offsetof(struct spec_process, no_new_privs), false,
			NULL},
		{"oomScoreAdj", FIELD_OPT_I64, offsetof(struct spec_process, oom_score_adj), false,
			NULL},
		{"apparmorProfile", FIELD_REFUSE, 0, false, NULL},
		{"selinuxLabel", FIELD_REFUSE, 0, false, NULL},
		{"scheduler", FIELD_REFUSE, 0, false, NULL},
		{"ioPriority", FIELD_REFUSE, 0, false, NULL},
		{"execCPUAffinity", FIELD_REFUSE, 0, false, NULL},
		{0},
	};
	struct spec_process *p = out;

	if (fields_read(a, fields, p, mem, e) < 0)
		return -1;
	p->given = true;
	return check_process(a, p, e);
}

/* ---- the rest of the top level ---- */

static int read_root(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"path", FIELD_STR, offsetof(struct spec, root), true, NULL},
		{"readonly", FIELD_BOOL, offsetof(struct spec, root_readonly), false, NULL},
		{0},
	};

	return fields_read(a, fields, out, mem, e);
}

static int read_mount(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"destination", FIELD_PATH, offsetof(struct spec_mount, destination), true, NULL},
		{"type", FIELD_STR, offsetof(struct spec_mount, type), false, NULL},
		{"source", FIELD_STR, offsetof(struct spec_mount, source), false, NULL},
		{"options", FIELD_STRS, offsetof(struct spec_mount, options), false, NULL},
		{"uidMappings", FIELD_REFUSE, 0, false, NULL},
		{"gidMappings", FIELD_REFUSE, 0, false, NULL},
		{0},
	};

	return fields_read(a, fields, out, mem, e);
}

static int read_mounts(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	struct spec *s = out;

	return fields_read_array(
		a, sizeof(*s->mounts), &s->mounts, &s->nmounts, read_mount, mem, e);
}

static int read_hooks(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"prestart", FIELD_REFUSE, 0, false, NULL},
		{"createRuntime", FIELD_REFUSE, 0, false, NULL},
		{"createContainer", FIELD_REFUSE, 0, false, NULL},
		{"startContainer", FIELD_REFUSE, 0, false, NULL},
		{"poststart", FIELD_REFUSE, 0, false, NULL},
		{"poststop", FIELD_REFUSE, 0, false, NULL},
		{0},
	};

	return fields_read(a, fields, out, mem, e);
}

static int check_names(const struct at *a, const struct spec *s, struct err *e)
{
	if (strncmp(s->version, "1.", 2) != 0)
		return at_unsupported(a, e, "ociVersion '%.40s': expected 1.x", s->version);
	if (s->hostname && strlen(s->hostname) > 64)
		return at_error(a, e, "hostname: longer than 64 characters");
	if (s->domainname && strlen(s->domainname) > 64)
		return at_error(a, e, "domainname: longer than 64 characters");
	if ((s->hostname || s->domainname) && !s->namespaces[NS_UTS])
		return at_error(a, e, "hostname and domainname need a new uts namespace");
	return 0;
}

int spec_read(struct spec *s, json_t *json, const char *name, struct err *e)
{
	static const struct field fields[] = {
		{"ociVersion", FIELD_STR, offsetof(struct spec, version), true, NULL},
		{"process", FIELD_READ, offsetof(struct spec, process), false, read_process},
		{"root", FIELD_READ, 0, true, read_root},
		{"hostname", FIELD_STR, offsetof(struct spec, hostname), false, NULL},
		{"domainname", FIELD_STR, offsetof(struct spec, domainname), false, NULL},
		{"mounts", FIELD_READ, 0, false, read_mounts},
		{"hooks", FIELD_READ, 0, false, read_hooks},
		{"linux", FIELD_READ, 0, true, spec_read_linux},
		{"solaris", FIELD_REFUSE, 0, false, NULL},
		{"windows", FIELD_REFUSE, 0, false, NULL},
		{"vm", FIELD_REFUSE, 0, false, NULL},
		{"zos", FIELD_REFUSE, 0, false, NULL},
		{0},
	};
	const struct at root = {NULL, name, 0, json};

	*s = (struct spec){.json = json_incref(json)};
	if (fields_read(&root, fields, s, &s->mem, e) == 0 && check_names(&root, s, e) == 0)
		return 0;
	spec_fini(s);
	return -1;
}

/* The largest value of uint64, which engines write for "no limit", does not fit jansson's integers;
 * the largest that fits, and a space, takes its place (see SPEC_RLIM_INFINITY). */
static void replace_infinity(char *p)
{
	static const char from[] = "18446744073709551615", to[] = "9223372036854775807 ";
	bool in_string = false;

	for (; *p; p++) {
		if (in_string && *p == '\\' && p[1])
			p++;
		else if (*p == '"')
			in_string = !in_string;
		else if (!in_string && strncmp(p, from, sizeof(from) - 1) == 0)
			memcpy(p, to, sizeof(to) - 1);
	}
}

int spec_load(struct spec *s, int dirfd, const char *path, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(SPEC_MAX);
	struct json_doc doc;
	int rc;

	if (file_read(dirfd, path, &text, e) < 0)
		return -1;
	if (text.len)
		replace_infinity(text.data);
	if (json_doc_parse(&doc, path, text.len ? text.data : "", text.len, e) < 0)
		return -1;
	rc = spec_read(s, doc.root, path, e);
	json_doc_fini(&doc);
	return rc;
}

void spec_fini(struct spec *s)
{
	arena_fini(&s->mem);
	json_decref(s->json);
	*s = (struct spec){0};
}
