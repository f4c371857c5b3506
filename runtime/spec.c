#include "runtime/spec.h"

#include <ctype.h>

#include "base/file.h"
#include "base/str.h"
#include "runtime/hooks.h"

enum { SPEC_MAX = 8 << 20, HOST_NAME_BYTES = 64 };

int spec_pairs(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	struct spec_pairs *p = out;
	size_t n = json_object_size(a->v);
	const char *key;
	json_t *v;

	if (!json_is_object(a->v) || n > FIELDS_ELEMENTS_MAX)
		return at_error(a, e, "expected an object of at most %d", FIELDS_ELEMENTS_MAX);
	p->v = arena_alloc(mem, n ? n * sizeof(*p->v) : 1);
	p->n = 0;
	json_object_foreach (a->v, key, v) {
		const struct at member = {a, key, 0, v};
		const char *value = at_string(&member, e);

		if (!value)
			return -1;
		if (!*key)
			return at_error(&member, e, "an empty name");
		p->v[p->n++] = (struct spec_pair){key, value};
	}
	return 0;
}

static int read_root(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"path", FIELD_STR, offsetof(struct spec, root), true, NULL},
		{"readonly", FIELD_BOOL, offsetof(struct spec, root_readonly), false, NULL},
		{0},
	};
	const struct spec *s = out;

	if (fields_read(a, fields, out, mem, e) < 0)
		return -1;
	return *s->root ? 0 : at_error(a, e, "path: empty");
}

static int read_mount(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"destination", FIELD_STR, offsetof(struct spec_mount, destination), true, NULL},
		{"type", FIELD_OPT_STR, offsetof(struct spec_mount, type), false, NULL},
		{"source", FIELD_OPT_STR, offsetof(struct spec_mount, source), false, NULL},
		{"options", FIELD_STRS, offsetof(struct spec_mount, options), false, NULL},
		{"uidMappings", FIELD_READ, offsetof(struct spec_mount, uids), false, spec_idmaps},
		{"gidMappings", FIELD_READ, offsetof(struct spec_mount, gids), false, spec_idmaps},
		{0},
	};
	struct spec_mount *m = out;

	if (fields_read(a, fields, out, mem, e) < 0)
		return -1;
	if (!*m->destination)
		return at_error(a, e, "destination: empty");
	if (m->destination[0] != '/') /* deprecated, and means this (config.md "Mounts") */
		m->destination = arena_printf(mem, "/%s", m->destination);
	if (!m->uids.n != !m->gids.n)
		return at_error(a, e, "uidMappings and gidMappings need each other");
	return 0;
}

static int read_mounts(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	struct spec *s = out;

	return fields_read_array(
		a, sizeof(*s->mounts), &s->mounts, &s->nmounts, read_mount, mem, e);
}

static int read_hook(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"path", FIELD_PATH, offsetof(struct spec_hook, path), true, NULL},
		{"args", FIELD_STRS, offsetof(struct spec_hook, args), false, NULL},
		{"env", FIELD_STRS, offsetof(struct spec_hook, env), false, NULL},
		{"timeout", FIELD_OPT_I64, offsetof(struct spec_hook, timeout), false, NULL},
		{0},
	};
	const struct spec_hook *h = out;

	if (fields_read(a, fields, out, mem, e) < 0)
		return -1;
	if (h->timeout.set && (h->timeout.v <= 0 || h->timeout.v > INT32_MAX))
		return at_error(a, e, "timeout: expected seconds, at least 1");
	return 0;
}

static int read_hooks(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	struct spec *s = out;

	if (!json_is_object(a->v))
		return at_error(a, e, "expected an object");
	for (enum hook_kind k = 0; k < HOOK_KINDS; k++) {
		const struct at list = {a, hook_name(k), 0, json_object_get(a->v, hook_name(k))};
		struct spec_hooks *h = &s->hooks[k];

		if (!list.v || json_is_null(list.v))
			continue;
		if (fields_read_array(&list, sizeof(*h->v), &h->v, &h->n, read_hook, mem, e) < 0)
			return -1;
	}
	return 0;
}

/* What no part can see alone. */
static int check(const struct at *a, const struct spec *s, struct err *e)
{
	if (strncmp(s->version, "1.", 2) != 0 || !isdigit((unsigned char)s->version[2]))
		return at_unsupported(a, e, "ociVersion '%.40s': expected 1.x", s->version);
	if (s->hostname && strlen(s->hostname) > HOST_NAME_BYTES)
		return at_error(a, e, "hostname: longer than %d bytes", HOST_NAME_BYTES);
	if (s->domainname && strlen(s->domainname) > HOST_NAME_BYTES)
		return at_error(a, e, "domainname: longer than %d bytes", HOST_NAME_BYTES);
	if ((s->hostname || s->domainname) && !spec_has_ns(s, NS_UTS))
		return at_error(a, e, "hostname and domainname need a uts namespace");
	/* Without one, every step of putting the container together would change the host. */
	if (!spec_has_ns(s, NS_MOUNT))
		return at_unsupported(a, e, "linux: namespaces: a mount namespace is needed");
	return 0;
}

int spec_read(struct spec *s, json_t *json, const char *name, struct err *e)
{
	static const struct field fields[] = {
		{"ociVersion", FIELD_STR, offsetof(struct spec, version), true, NULL},
		{"process", FIELD_READ, offsetof(struct spec, process), false, spec_process},
		{"root", FIELD_READ, 0, false, read_root},
		{"hostname", FIELD_OPT_STR, offsetof(struct spec, hostname), false, NULL},
		{"domainname", FIELD_OPT_STR, offsetof(struct spec, domainname), false, NULL},
		{"mounts", FIELD_READ, 0, false, read_mounts},
		{"hooks", FIELD_READ, 0, false, read_hooks},
		{"annotations", FIELD_READ, offsetof(struct spec, annotations), false, spec_pairs},
		{"linux", FIELD_READ, 0, false, spec_linux},
		{"solaris", FIELD_REFUSE, 0, false, NULL},
		{"windows", FIELD_REFUSE, 0, false, NULL},
		{"vm", FIELD_REFUSE, 0, false, NULL},
		{"zos", FIELD_REFUSE, 0, false, NULL},
		{"freebsd", FIELD_REFUSE, 0, false, NULL},
		{0},
	};
	const struct at root = {NULL, name, 0, json};

	*s = (struct spec){.json = json_incref(json)};
	if (fields_read(&root, fields, s, &s->mem, e) == 0 && check(&root, s, e) == 0)
		return 0;
	spec_fini(s);
	return -1;
}

int spec_read_process(
	struct spec_process *p, json_t *json, const char *name, struct arena *mem, struct err *e)
{
	const struct at root = {NULL, name, 0, json};

	*p = (struct spec_process){0};
	return spec_process(&root, p, mem, e);
}

int spec_read_resources(
	struct spec_resources *r, json_t *json, const char *name, struct arena *mem, struct err *e)
{
	const struct at root = {NULL, name, 0, json};

	*r = (struct spec_resources){0};
	return spec_resources(&root, r, mem, e);
}

/* ---- texts ---- */

/* The number of bytes at p that are an integer beyond INT64_MAX, else 0. */
static size_t big_integer(const char *p)
{
	size_t n = strspn(p, "0123456789");
	char digits[21];
	uint64_t u;

	if (n < 19 || n >= sizeof(digits) || p[0] == '0' || strchr(".eE", p[n]))
		return 0;
	memcpy(digits, p, n);
	digits[n] = '\0';
	return str_u64(digits, UINT64_MAX, &u) == 0 && u > INT64_MAX ? n : 0;
}

/* Copy text, big integers made into marked strings (see FIELDS_BIG_MARK). Positions in errors of
 * the same line move by the mark. */
static void mark_big(const char *p, struct buf *out)
{
	static const char mark[] = "\"\\u0001";
	const char *from = p;
	bool in_string = false;

	while (*p) {
		size_t n = 0;

		if (in_string && *p == '\\' && p[1])
			p++;
		else if (*p == '"')
			in_string = !in_string;
		else if (!in_string && isdigit((unsigned char)*p)) {
			n = p[-1] == '-' ? 0 : big_integer(p);
			if (n) {
				buf_put(out, from, (size_t)(p - from));
				buf_printf(out, "%s%.*s\"", mark, (int)n, p);
				from = p + n;
			} else {
				n = strspn(p, "0123456789.eE+-");
			}
		}
		p += n ? n : 1;
	}
	buf_put(out, from, (size_t)(p - from));
}

int spec_doc_parse(struct json_doc *d, const char *name, const void *p, size_t n, struct err *e)
{
	auto_buf struct buf marked = BUF_INIT(2 * n + 1);
	auto_buf struct buf text = BUF_INIT(n);

	if (n && memchr(p, '\0', n))
		return err_set(e, ERR_CORRUPT, "%s:1:1: contains a NUL character", name);
	buf_put(&text, p, n); /* ends with a NUL */
	/* A number at the very start has nothing before it to look at, and is no object. */
	if (n && (text.data[0] == '{' || isspace((unsigned char)text.data[0])))
		mark_big(text.data, &marked);
	return marked.len ? json_doc_parse(d, name, marked.data, marked.len, e)
			  : json_doc_parse(d, name, n ? text.data : "", n, e);
}

int spec_doc_load(struct json_doc *d, int dirfd, const char *path, size_t max, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(max);

	if (file_read(dirfd, path, &text, e) < 0)
		return -1;
	return spec_doc_parse(d, path, text.data, text.len, e);
}

int spec_load(struct spec *s, int dirfd, const char *path, struct err *e)
{
	struct json_doc doc;
	int rc;

	if (spec_doc_load(&doc, dirfd, path, SPEC_MAX, e) < 0)
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
