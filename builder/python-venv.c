#include "builder/python.h"

#include <string.h>

#include "base/str.h"
#include "builder/python-scheme.h"

/* What `python3 -m venv --without-pip` leaves, but for the scripts of other shells. */

static const struct owner file = {.mode = 0644}, folder = {.mode = 0755};

static int put_text(const struct rootfs *r, const char *path, const char *text, struct err *e)
{
	return rootfs_file(r, path + 1, text, strlen(text), file, e);
}

static int put_config(const struct rootfs *r, const struct manifest_python *p,
	const struct python_scheme *s, struct err *e)
{
	auto_free char *path = mem_printf("%s/pyvenv.cfg", s->data);
	auto_free char *text = mem_printf("home = %.*s\n"
					  "include-system-site-packages = false\n"
					  "version = %s\n"
					  "executable = %s\n",
		(int)(strrchr(p->interpreter, '/') - p->interpreter), p->interpreter, s->python,
		p->interpreter);

	return put_text(r, path, text, e);
}

/* For people who work in the image: `. /opt/venv/bin/activate`. */
static int put_activate(const struct rootfs *r, const struct python_scheme *s, struct err *e)
{
	auto_free char *path = mem_printf("%s/activate", s->scripts);
	auto_free char *text =
		mem_printf("# This file is read by a shell: . %s/activate\n"
			   "deactivate() {\n"
			   "\t[ -z \"${_OLD_VIRTUAL_PATH:-}\" ] || PATH=$_OLD_VIRTUAL_PATH\n"
			   "\tunset _OLD_VIRTUAL_PATH VIRTUAL_ENV\n"
			   "\t[ \"${1:-}\" = nondestructive ] || unset -f deactivate\n"
			   "}\n"
			   "deactivate nondestructive\n"
			   "VIRTUAL_ENV='%s'\n"
			   "_OLD_VIRTUAL_PATH=$PATH\n"
			   "PATH=\"$VIRTUAL_ENV/bin:$PATH\"\n"
			   "export VIRTUAL_ENV PATH\n"
			   "unset PYTHONHOME\n",
			s->scripts, s->data);

	return put_text(r, path, text, e);
}

static int put_link(const struct rootfs *r, const char *dir, const char *name, const char *target,
	struct err *e)
{
	auto_free char *path = mem_printf("%s/%s", dir, name);

	return rootfs_link(r, path + 1, target, e);
}

static int put_links(const struct rootfs *r, const struct manifest_python *p,
	const struct python_scheme *s, struct err *e)
{
	auto_free char *versioned = mem_printf("python%s", s->python);

	return put_link(r, s->scripts, "python3", p->interpreter, e) < 0 ||
			       put_link(r, s->scripts, "python", "python3", e) < 0 ||
			       put_link(r, s->scripts, versioned, "python3", e) < 0 ||
			       put_link(r, s->data, "lib64", "lib", e) < 0
		       ? -1
		       : 0;
}

static int make(const struct rootfs *r, const struct manifest_python *p,
	const struct python_scheme *s, struct err *e)
{
	auto_free char *include = mem_printf("%s/include", s->data);

	if (rootfs_dir(r, s->data + 1, folder, e) < 0 ||
		rootfs_dir(r, include + 1, folder, e) < 0 ||
		rootfs_dir(r, s->lib + 1, folder, e) < 0 ||
		rootfs_dir(r, s->scripts + 1, folder, e) < 0)
		return -1;
	return put_links(r, p, s, e) < 0 || put_config(r, p, s, e) < 0 ? -1 : put_activate(r, s, e);
}

/* The interpreter that the wheels were chosen for is the one of the image. */
static int check_interpreter(const struct rootfs *r, const struct manifest_python *p,
	const struct python_scheme *s, struct err *e)
{
	struct arena a = {0};
	const struct node *n = tree_resolve(r->tree, p->interpreter + 1);
	const char *version = n ? python_version_of_path(&a, n->name) : NULL;
	int rc = 0;

	if (!n) {
		err_set(e, ERR_USAGE, "/python/interpreter: the image has no %s", p->interpreter);
		rc = err_hint(e, "add a package that brings it, like python3, to apt.packages");
	} else if (version && !str_eq(version, s->python)) {
		rc = err_set(e, ERR_USAGE, "/python/interpreter: %s is Python %s, not %s",
			p->interpreter, version, s->python);
	}
	arena_fini(&a);
	return rc;
}

int python_prepare(
	const struct rootfs *r, const struct manifest_python *p, const char *python, struct err *e)
{
	struct arena a = {0};
	struct python_scheme s;
	int rc = 0;

	if (!p->prefix)
		return 0;
	rc = python_scheme(&s, &a, p, python, e);
	if (rc == 0 && s.venv)
		rc = check_interpreter(r, p, &s, e);
	if (rc == 0 && s.venv)
		rc = make(r, p, &s, e);
	arena_fini(&a);
	return rc;
}
