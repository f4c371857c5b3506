#include "builder/python-scheme.h"

#include <string.h>

#include "base/str.h"

int python_version_parts(const char *python, unsigned *major, unsigned *minor)
{
	const char *dot = strchr(python, '.');
	char text[4];
	uint64_t v;

	if (!dot || dot == python || dot - python > 3)
		return -1;
	memcpy(text, python, (size_t)(dot - python));
	text[dot - python] = '\0';
	if (str_u64(text, 99, &v) < 0)
		return -1;
	*major = (unsigned)v;
	if (str_u64(dot + 1, 999, &v) < 0)
		return -1;
	*minor = (unsigned)v;
	return 0;
}

char *python_version_of_path(struct arena *a, const char *path)
{
	const char *base = strrchr(path, '/');
	unsigned major, minor;

	base = base ? base + 1 : path;
	if (!str_starts(base, "python") ||
		python_version_parts(base + strlen("python"), &major, &minor) < 0)
		return NULL;
	return arena_printf(a, "%u.%u", major, minor);
}

static bool is_packages(const char *path)
{
	return str_ends(path, "/site-packages") || str_ends(path, "/dist-packages");
}

/* "/usr" of "/usr/lib/python3/dist-packages": the folder above lib. */
static const char *root_of_packages(struct arena *a, const char *path)
{
	const char *lib = strstr(path, "/lib/python"), *next;

	while (lib && (next = strstr(lib + 1, "/lib/python")))
		lib = next;
	if (!lib || strchr(lib + strlen("/lib/"), '/') != strrchr(path, '/'))
		return path;
	return arena_strndup(a, path, (size_t)(lib - path));
}

/* Is the prefix one that the interpreter searches without being told? */
static bool is_own(const struct manifest_python *p)
{
	return str_eq(p->prefix, "/usr/local") || str_eq(p->prefix, "/usr");
}

/* Debian keeps its own packages and those of pip apart from what upstream calls site-packages. */
static const char *own_lib(
	struct arena *a, const struct manifest_python *p, unsigned major, unsigned minor)
{
	bool debian = str_starts(p->interpreter, "/usr/bin/");

	if (debian && str_eq(p->prefix, "/usr"))
		return arena_printf(a, "/usr/lib/python%u/dist-packages", major);
	return arena_printf(a, "%s/lib/python%u.%u/%s", p->prefix, major, minor,
		debian ? "dist-packages" : "site-packages");
}

/* Shells read it, too, where the kernel cannot. */
static bool is_quotable(const char *path)
{
	for (const char *c = path; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f || strchr("\"'\\$`", *c))
			return false;
	return true;
}

int python_scheme(struct python_scheme *s, struct arena *a, const struct manifest_python *p,
	const char *python, struct err *e)
{
	const char *root = p->prefix;
	unsigned major, minor;

	*s = (struct python_scheme){.executable = p->interpreter};
	if (!is_quotable(p->interpreter) || (root && !is_quotable(root)))
		return err_set(e, ERR_USAGE,
			"/python: a path with quotes, '$', backslashes or control characters "
			"cannot stand in the first line of a script");
	if (!python)
		python = python_version_of_path(a, p->interpreter);
	s->python = python;
	if (!python || python_version_parts(python, &major, &minor) < 0) {
		err_set(e, ERR_USAGE,
			"/python: the version of the image's interpreter is not known");
		return err_hint(e, "name it in python.interpreter, like /usr/bin/python3.11");
	}
	if (!root) {
		err_set(e, ERR_USAGE, "/python/prefix: there are wheels, and no place for them");
		return err_hint(e, "name a folder for a virtual environment, like /opt/venv");
	}
	if (is_packages(root)) {
		s->lib = root;
		root = root_of_packages(a, root);
	} else if (is_own(p)) {
		s->lib = own_lib(a, p, major, minor);
	} else {
		s->venv = true;
		s->lib = arena_printf(a, "%s/lib/python%u.%u/site-packages", root, major, minor);
		s->executable = arena_printf(a, "%s/bin/python", root);
	}
	s->scripts = arena_printf(a, "%s/bin", root);
	s->data = root;
	s->headers = s->venv ? arena_printf(a, "%s/include/site/python%u.%u", root, major, minor)
			     : arena_printf(a, "%s/include/python%u.%u", root, major, minor);
	return 0;
}

bool python_scheme_owns(const struct python_scheme *s, const char *path)
{
	size_t n = strlen(s->scripts), k = strlen(s->data);

	if (!s->venv)
		return false;
	if (strncmp(path, s->data, k) == 0 && str_eq(path + k, "/pyvenv.cfg"))
		return true;
	if (strncmp(path, s->scripts, n) != 0 || !str_starts(path + n, "/python"))
		return false;
	n += strlen("/python");
	return !path[n + strspn(path + n, "0123456789.")];
}
