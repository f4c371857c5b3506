#include "builder/wheel-meta.h"

#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "builder/pep440.h"

enum { FIELD_MAX = 64 << 10 };

/* ---- headers ---- */

static const char *line_end(const char *p, const char *end)
{
	const char *nl = memchr(p, '\n', (size_t)(end - p));

	return nl ? nl : end;
}

static size_t trimmed(const char *p, const char *end)
{
	while (end > p && strchr(" \t\r\n", end[-1]))
		end--;
	return (size_t)(end - p);
}

/* The value that begins at p, with the lines that go on it. */
static char *unfold(struct arena *a, const char *p, const char *end)
{
	auto_buf struct buf out = BUF_INIT(FIELD_MAX);

	for (;;) {
		const char *stop = line_end(p, end);
		size_t n;

		while (p < stop && (*p == ' ' || *p == '\t'))
			p++;
		n = trimmed(p, stop);
		if (out.len + n + 1 > FIELD_MAX)
			n = 0;
		if (out.len && n)
			buf_put(&out, " ", 1);
		buf_put(&out, p, n);
		if (stop >= end || stop + 1 >= end || (stop[1] != ' ' && stop[1] != '\t'))
			return arena_strndup(a, out.data, out.len);
		p = stop + 1;
	}
}

char *metadata_field(struct arena *a, const char *text, size_t n, const char *name, size_t *from)
{
	const char *end = text + n;
	size_t len = strlen(name), start = from ? *from : 0;

	for (const char *p = text + start; p < end; p = line_end(p, end) + 1) {
		if (*p == '\n' || (*p == '\r' && p + 1 < end && p[1] == '\n'))
			return NULL; /* the body follows */
		if ((size_t)(end - p) <= len || p[len] != ':' || strncasecmp(p, name, len) != 0)
			continue;
		if (from)
			*from = (size_t)(line_end(p, end) - text) + 1;
		return unfold(a, p + len + 1, end);
	}
	return NULL;
}

/* The only value; NULL when there is none or another one. */
static char *only_field(struct arena *a, const char *text, size_t n, const char *name)
{
	size_t from = 0;
	char *value = metadata_field(a, text, n, name, &from);

	return value && from < n && metadata_field(a, text, n, name, &from) ? NULL : value;
}

/* ---- names ---- */

static const char *normal_version(struct arena *a, const char *text, size_t n)
{
	struct pep440 v;
	char normal[PEP440_TEXT];

	return pep440_parse(&v, text, n) < 0 ? NULL : arena_strdup(a, pep440_text(&v, normal));
}

bool metadata_folder(
	struct arena *a, const char *folder, size_t n, const char **name, const char **version)
{
	size_t dash = n;
	char *text;

	while (dash > 0 && folder[dash - 1] != '-')
		dash--;
	if (dash < 2)
		return false;
	text = arena_strndup(a, folder + dash, n - dash);
	for (char *c = text; *c; c++) /* as in names of wheels */
		*c = *c == '_' ? '-' : *c;
	*name = python_name_normal(a, folder, dash - 1);
	*version = normal_version(a, text, strlen(text));
	return *name && *version;
}

static int differ(const char *what, const char *here, const char *there, struct err *e)
{
	char a[STR_SHOWN], b[STR_SHOWN];

	return err_set(e, ERR_CORRUPT, "SV174: METADATA has the %s '%s', the file's name '%s'",
		what, str_shown(here, a), str_shown(there, b));
}

int metadata_check(const char *text, size_t n, const struct wheel_name *w, struct arena *a,
	const char **project, struct err *e)
{
	const char *name = only_field(a, text, n, "Name");
	const char *version = only_field(a, text, n, "Version"), *normal;

	if (!name || !version || memchr(text, '\0', n))
		return err_set(
			e, ERR_CORRUPT, "SV174: METADATA: expected one Name and one Version");
	normal = python_name_normal(a, name, strlen(name));
	if (!normal || !str_eq(normal, w->name))
		return differ("name", name, w->name, e);
	if (!pep440_same(version, w->version))
		return differ("version", version, w->version, e);
	if (project)
		*project = name;
	return 0;
}

int wheel_version_check(const char *text, size_t n, struct err *e)
{
	struct arena a = {0};
	const char *version = only_field(&a, text, n, "Wheel-Version");
	char shown[STR_SHOWN];
	int rc = 0;

	if (!version)
		rc = err_set(e, ERR_CORRUPT, "SV174: WHEEL: expected one Wheel-Version");
	else if (!str_starts(version, "1.") || !version[2] ||
		 version[2 + strspn(version + 2, "0123456789")])
		rc = err_set(e, ERR_UNSUPPORTED,
			"SV174: Wheel-Version is '%s'; expected 1.0 or another 1.x",
			str_shown(version, shown));
	arena_fini(&a);
	return rc;
}
