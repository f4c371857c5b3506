/* State of a container as JSON: what is kept, and what is shown. */
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <time.h>

#include "base/json.h"
#include "base/str.h"
#include "svrun/state.h"

static void put_str(json_t *o, const char *key, const char *text)
{
	if (text)
		json_object_set_new(o, key, json_string(text));
}

static void put_int(json_t *o, const char *key, uint64_t v)
{
	json_object_set_new(o, key, json_integer((json_int_t)v));
}

/* ---- the file ---- */

static json_t *cgroup_to_json(const struct cgroup_place *p)
{
	json_t *o = json_object();

	put_str(o, "path", p->path);
	put_str(o, "slice", p->slice);
	put_str(o, "unit", p->unit);
	json_object_set_new(o, "mayLack", json_boolean(p->may_lack));
	return o;
}

void state_text(const struct state *s, struct buf *text)
{
	auto_json json_t *o = json_object();

	put_str(o, "ociVersion", SPEC_VERSION);
	put_str(o, "id", s->id);
	put_str(o, "bundle", s->bundle);
	put_str(o, "rootfs", s->rootfs);
	put_int(o, "pid", (uint64_t)s->pid);
	put_int(o, "started", s->started);
	json_object_set_new(o, "cgroup", cgroup_to_json(&s->cgroup));
	put_int(o, "created", (uint64_t)s->created);
	put_int(o, "createdNanosecs", s->created_nanosecs);
	put_int(o, "owner", s->owner);
	if (s->annotations)
		json_object_set(o, "annotations", s->annotations);
	put_str(o, "console", s->console);
	json_text(o, true, text);
}

static int get_str(const json_t *o, const char *key, char **out, struct err *e)
{
	const char *text;

	if (json_str_opt(o, key, &text, e) < 0)
		return -1;
	*out = text ? mem_strdup(text) : NULL;
	return 0;
}

static int copy_str(const json_t *o, const char *key, char *out, size_t size, struct err *e)
{
	const char *text = json_str(o, key, e);

	if (!text)
		return -1;
	return str_copy(out, size, text) < 0 ? err_set(e, ERR_CORRUPT, "%s: too long", key) : 0;
}

static int get_cgroup(const json_t *o, struct cgroup_place *p, struct err *e)
{
	const json_t *c = json_object_of(o, "cgroup", e);

	if (!c || copy_str(c, "path", p->path, sizeof(p->path), e) < 0 ||
		copy_str(c, "slice", p->slice, sizeof(p->slice), e) < 0 ||
		copy_str(c, "unit", p->unit, sizeof(p->unit), e) < 0)
		return -1;
	return json_bool_opt(c, "mayLack", false, &p->may_lack, e);
}

static int get_process(const json_t *o, struct state *s, struct err *e)
{
	uint64_t pid, created, nanosecs, owner;

	if (json_u64(o, "pid", INT_MAX, &pid, e) < 0 ||
		json_u64(o, "started", INT64_MAX, &s->started, e) < 0 ||
		json_u64(o, "created", INT64_MAX, &created, e) < 0 ||
		json_u64(o, "createdNanosecs", 999999999, &nanosecs, e) < 0 ||
		json_u64(o, "owner", UINT32_MAX, &owner, e) < 0)
		return -1;
	s->pid = (pid_t)pid;
	s->created = (int64_t)created;
	s->created_nanosecs = (uint32_t)nanosecs;
	s->owner = (uint32_t)owner;
	return 0;
}

int state_parse(struct state *s, const char *text, size_t n, struct err *e)
{
	auto_json json_t *o = json_parse(text, n, e);

	if (!o || get_str(o, "bundle", &s->bundle, e) < 0 ||
		get_str(o, "rootfs", &s->rootfs, e) < 0 ||
		get_str(o, "console", &s->console, e) < 0 || get_cgroup(o, &s->cgroup, e) < 0 ||
		get_process(o, s, e) < 0)
		return -1;
	if (json_object_get(o, "annotations"))
		s->annotations = json_incref(json_object_of(o, "annotations", e));
	return json_object_get(o, "annotations") && !s->annotations ? -1 : 0;
}

/* ---- what is shown ---- */

/* The name of a user in the host's /etc/passwd. (Not getpwuid(): a static program would load
 * libraries for it.) */
static void put_owner(json_t *o, uint32_t uid)
{
	FILE *f = uid ? fopen("/etc/passwd", "re") : NULL;
	char name[64];
	struct passwd *p = NULL;

	snprintf(name, sizeof(name), uid ? "#%u" : "root", uid);
	while (f && (p = fgetpwent(f)))
		if (p->pw_uid == uid) {
			snprintf(name, sizeof(name), "%s", p->pw_name);
			break;
		}
	if (f)
		fclose(f);
	put_str(o, "owner", name);
}

static void put_created(json_t *o, const struct state *s)
{
	time_t t = (time_t)s->created;
	char text[32], all[64];
	struct tm tm;

	if (!gmtime_r(&t, &tm))
		return;
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(all, sizeof(all), "%s.%09uZ", text, s->created_nanosecs);
	put_str(o, "created", all);
}

json_t *state_json(const struct state *s, enum state_status status, bool more)
{
	json_t *o = json_object();

	put_str(o, "ociVersion", SPEC_VERSION);
	put_str(o, "id", s->id);
	put_int(o, "pid", status == STATE_STOPPED ? 0 : (uint64_t)s->pid);
	put_str(o, "status", state_status_name(status));
	put_str(o, "bundle", s->bundle ? s->bundle : "");
	if (more) {
		put_str(o, "rootfs", s->rootfs ? s->rootfs : "");
		put_created(o, s);
	}
	if (s->annotations && json_object_size(s->annotations))
		json_object_set(o, "annotations", s->annotations);
	if (more)
		put_owner(o, s->owner);
	return o;
}
