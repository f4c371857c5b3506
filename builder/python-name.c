#include "builder/python-name.h"

#include <string.h>

#include "base/str.h"
#include "builder/pep440.h"

static bool is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_separator(char c)
{
	return c == '-' || c == '_' || c == '.';
}

char *python_name_normal(struct arena *a, const char *name, size_t n)
{
	char *out;
	size_t len = 0;

	if (n == 0 || n > PYTHON_NAME_MAX || !is_alnum(name[0]) || !is_alnum(name[n - 1]))
		return NULL;
	out = arena_alloc(a, n + 1);
	for (size_t i = 0; i < n; i++) {
		char c = name[i];

		if (is_separator(c)) {
			if (out[len - 1] != '-')
				out[len++] = '-';
			continue;
		}
		if (!is_alnum(c))
			return NULL;
		out[len++] = c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
	}
	return out;
}

bool python_same_name(const char *a, const char *b)
{
	struct arena arena = {0};
	const char *x = python_name_normal(&arena, a, strlen(a));
	const char *y = python_name_normal(&arena, b, strlen(b));
	bool same = x && y && str_eq(x, y);

	arena_fini(&arena);
	return same;
}

bool python_name_is_normal(const char *name)
{
	struct arena arena = {0};
	const char *normal = python_name_normal(&arena, name, strlen(name));
	bool same = normal && str_eq(normal, name);

	arena_fini(&arena);
	return same;
}

/* ---- wheels ---- */

/* Tags are lower-case words; sets of them are joined with dots. */
static bool is_tags(const char *s)
{
	static const char chars[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";

	return *s && !s[strspn(s, chars)];
}

static const char *normal_version(struct arena *a, const char *text)
{
	struct pep440 v;
	char normal[PEP440_TEXT];
	auto_free char *version = mem_strdup(text);

	for (char *c = version; *c; c++) /* "-" separates the parts, so versions have "_" */
		if (*c == '_')
			*c = '-';
	if (strchr(text, ' ') || pep440_parse(&v, version, strlen(version)) < 0)
		return NULL;
	return arena_strdup(a, pep440_text(&v, normal));
}

int wheel_name_parse(struct wheel_name *w, struct arena *a, const char *file, struct err *e)
{
	char *part[6], *copy, shown[STR_SHOWN];
	size_t n = 0, len = strlen(file);
	bool built;

	*w = (struct wheel_name){0};
	if (!str_ends(file, ".whl") || len > 255)
		return err_set(e, ERR_CORRUPT, "SV174: '%s' is no wheel's file name",
			str_shown(file, shown));
	copy = arena_strndup(a, file, len - 4);
	for (char *s = copy; s && n <= 6; n++) {
		char *dash = strchr(s, '-');

		if (n < 6)
			part[n] = s;
		if (dash)
			*dash++ = '\0';
		s = dash;
	}
	built = n == 6;
	if (n == 5 || (built && part[2][0] >= '0' && part[2][0] <= '9')) {
		w->name = python_name_normal(a, part[0], strlen(part[0]));
		w->version = normal_version(a, part[1]);
		w->build = built ? part[2] : NULL;
		w->python = part[n - 3];
		w->abi = part[n - 2];
		w->platform = part[n - 1];
	}
	if (!w->name || !w->version || !is_tags(w->python) || !is_tags(w->abi) ||
		!is_tags(w->platform))
		return err_set(e, ERR_CORRUPT,
			"SV174: '%s': expected NAME-VERSION-PYTHON-ABI-PLATFORM.whl",
			str_shown(file, shown));
	return 0;
}
