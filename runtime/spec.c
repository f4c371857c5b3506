#include "runtime/spec.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>

#include "base/file.h"
#include "base/str.h"
#include "runtime/hooks.h"

enum { HOST_NAME_BYTES = 64 };

int spec_pair(const struct at *a, void *out, struct err *e)
{
	struct spec_pair *p = out;

	p->value = at_string(a, e);
	if (!p->value)
		return -1;
	return *a->key ? 0 : at_error(a, e, "an empty name");
}

static int check_mount(const struct at *a, void *out, struct err *e)
{
	struct spec_mount *m = out;

	if (m->destination[0] != '/') /* deprecated, and means this (config.md "Mounts") */
		m->destination = arena_printf(a->mem, "/%s", m->destination);
	if (!m->uids.n != !m->gids.n)
		return at_error(a, e, "uidMappings and gidMappings need each other");
	return 0;
}

static const struct field hook_fields[] = {
	FIELD(PATH, "path", struct spec_hook, path, .required = true),
	FIELD(STRS, "args", struct spec_hook, args),
	FIELD(STRS, "env", struct spec_hook, env),
	FIELD(OPT, "timeout", struct spec_hook, timeout, .min = 1, .max = INT32_MAX / 1000),
	{0},
};

#define HOOKS(name, kind) FIELD_LIST(ARRAY, name, struct spec, hooks[kind].v, .rows = hook_fields)
static const struct field hooks_fields[] = {
	HOOKS("prestart", HOOK_PRESTART),
	HOOKS("createRuntime", HOOK_CREATE_RUNTIME),
	HOOKS("createContainer", HOOK_CREATE_CONTAINER),
	HOOKS("startContainer", HOOK_START_CONTAINER),
	HOOKS("poststart", HOOK_POSTSTART),
	HOOKS("poststop", HOOK_POSTSTOP),
	{0},
};

const char *hook_name(enum hook_kind kind)
{
	return hooks_fields[kind].name;
}

static const struct field fields[] = {
	FIELD(STR, "ociVersion", struct spec, version, .required = true),
	FIELD(READ, "process", struct spec, process, .check = spec_process),
	FIELD_PART("root", ROWS(FIELD(STR, "path", struct spec, root, .required = true, .min = 1),
				   FIELD(BOOL, "readonly", struct spec, root_readonly))),
	FIELD(OPT_STR, "hostname", struct spec, hostname, .max = HOST_NAME_BYTES),
	FIELD(OPT_STR, "domainname", struct spec, domainname, .max = HOST_NAME_BYTES),
	FIELD_LIST(ARRAY, "mounts", struct spec, mounts,
		ROWS(FIELD(STR, "destination", struct spec_mount, destination, .required = true,
			     .min = 1),
			FIELD(OPT_STR, "type", struct spec_mount, type),
			FIELD(OPT_STR, "source", struct spec_mount, source),
			FIELD(STRS, "options", struct spec_mount, options),
			FIELD(READ, "uidMappings", struct spec_mount, uids, .check = spec_idmaps),
			FIELD(READ, "gidMappings", struct spec_mount, gids, .check = spec_idmaps)),
		.each = check_mount),
	FIELD_PART("hooks", .rows = hooks_fields),
	FIELD_LIST(MAP, "annotations", struct spec, annotations.v, .each = spec_pair),
	FIELD_PART("linux", .rows = spec_linux_fields, .check = spec_linux_check),
	{.name = "solaris", .kind = FIELD_REFUSE},
	{.name = "windows", .kind = FIELD_REFUSE},
	{.name = "vm", .kind = FIELD_REFUSE},
	{.name = "zos", .kind = FIELD_REFUSE},
	{.name = "freebsd", .kind = FIELD_REFUSE},
	{0},
};

/* What no part can see alone. */
static int check(const struct at *a, const struct spec *s, struct err *e)
{
	if (strncmp(s->version, "1.", 2) != 0 || !isdigit((unsigned char)s->version[2]))
		return at_unsupported(a, e, "ociVersion '%.40s': expected 1.x", s->version);
	if ((s->hostname || s->domainname) && !spec_has_ns(s, NS_UTS))
		return at_error(a, e, "hostname and domainname need a uts namespace");
	/* Without one, every step of putting the container together would change the host. */
	if (!spec_has_ns(s, NS_MOUNT))
		return at_unsupported(a, e, "linux: namespaces: a mount namespace is needed");
	return 0;
}

int spec_read(struct spec *s, json_t *json, const char *name, struct err *e)
{
	const struct at root = {NULL, name, 0, json, &s->mem};

	*s = (struct spec){.json = json_incref(json)};
	if (fields_read(&root, fields, s, e) == 0 && check(&root, s, e) == 0)
		return 0;
	spec_fini(s);
	return -1;
}

int spec_read_process(
	struct spec_process *p, json_t *json, const char *name, struct arena *mem, struct err *e)
{
	const struct at root = {NULL, name, 0, json, mem};

	*p = (struct spec_process){0};
	return spec_process(&root, p, e);
}

int spec_read_resources(
	struct spec_resources *r, json_t *json, const char *name, struct arena *mem, struct err *e)
{
	const struct at root = {NULL, name, 0, json, mem};

	*r = (struct spec_resources){0};
	return fields_read(&root, spec_resources_fields, r, e);
}

/* ---- texts ---- */

/* Integers beyond INT64_MAX become marked strings (see FIELDS_BIG_MARK) of the same length. */
static void mark_big(char *p)
{
	bool in_string = false;

	for (; *p; p++) {
		size_t n = in_string ? 0 : strspn(p, "0123456789+-.eE");
		char *end, marked[32];
		uint64_t u;

		if (*p == '"')
			in_string = !in_string;
		else if (in_string && *p == '\\' && p[1])
			p++;
		if (!n)
			continue;
		errno = 0;
		u = strtoull(p, &end, 10);
		if (isdigit((unsigned char)*p) && *p != '0' && end == p + n && !errno &&
			u > INT64_MAX) {
			snprintf(marked, sizeof(marked), "\"%c%016" PRIx64 "\" ", FIELDS_BIG_MARK,
				u);
			memcpy(p, marked, n); /* 19 digits, or 20 */
		}
		p += n - 1;
	}
}

int spec_doc_parse(struct json_doc *d, const char *name, const void *p, size_t n, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(n);

	if (n && memchr(p, '\0', n))
		return err_set(e, ERR_CORRUPT, "%s:1:1: contains a NUL character", name);
	buf_put(&text, p, n);
	mark_big(text.data);
	return json_doc_parse(d, name, text.data, n, e);
}

int spec_doc_load(struct json_doc *d, int dirfd, const char *path, size_t max, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(max);

	return file_read(dirfd, path, &text, e) < 0
		       ? -1
		       : spec_doc_parse(d, path, text.data, text.len, e);
}

static int read_doc(struct spec *s, struct json_doc *d, struct err *e)
{
	int rc = spec_read(s, d->root, d->name, e);

	json_doc_fini(d);
	return rc;
}

int spec_parse(struct spec *s, const char *name, const char *text, size_t n, struct err *e)
{
	struct json_doc doc;

	return spec_doc_parse(&doc, name, text, n, e) < 0 ? -1 : read_doc(s, &doc, e);
}

int spec_load(struct spec *s, int dirfd, const char *path, struct err *e)
{
	struct json_doc doc;

	return spec_doc_load(&doc, dirfd, path, SPEC_MAX, e) < 0 ? -1 : read_doc(s, &doc, e);
}

void spec_fini(struct spec *s)
{
	arena_fini(&s->mem);
	json_decref(s->json);
	*s = (struct spec){0};
}
