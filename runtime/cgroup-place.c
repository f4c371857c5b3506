/* Where a container's cgroup is to be: from what the config says to a path, and to systemd's names.
 */
#include "runtime/cgroup-file.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/str.h"
#include "base/sys.h"

static const char slice_end[] = ".slice";

/* Append the parts of `path` to out, "/a/b": a ".." takes one away again, and never more than there
 * is. */
static int append_clean(char *out, size_t size, const char *path, struct err *e)
{
	for (const char *p = path; *p;) {
		size_t n = strcspn(p, "/"), len = strlen(out);

		if (n == 2 && p[0] == '.' && p[1] == '.') {
			char *slash = strrchr(out, '/');

			if (slash)
				*slash = '\0';
		} else if (n && !(n == 1 && p[0] == '.')) {
			if (len + 1 + n >= size || n > 255)
				return err_set(e, ERR_USAGE, "cgroupsPath: too long");
			snprintf(out + len, size - len, "/%.*s", (int)n, p);
		}
		p += n + (p[n] == '/');
	}
	return 0;
}

/* Without root, what is made must be where we may: beside our own cgroup, or in it. */
static int append_own(char *out, size_t size, struct err *e)
{
	char procs[CGROUP_PATH_MAX + 64], *slash;
	struct cgroup_lines own;

	if (!cgroup_is_v2() || cgroup_privileged())
		return 0;
	if (cgroup_lines_read(&own, 0, true, e) < 0)
		return -1;
	if (own.n == 0 || append_clean(out, size, own.v[0].path, e) < 0)
		return own.n == 0 ? 0 : -1;
	/* Beside, where we may: in a cgroup that has processes, ours among them, no controller can
	 * be had. */
	slash = strrchr(out, '/');
	if (!slash)
		return 0;
	snprintf(procs, sizeof(procs), CGROUP_ROOT "%.*s/cgroup.procs", (int)(slash - out), out);
	if (faccessat(AT_FDCWD, procs, W_OK, AT_EACCESS) == 0)
		*slash = '\0';
	return 0;
}

static int place_path(struct cgroup_place *p, const char *path, struct err *e)
{
	char own[CGROUP_PATH_MAX] = "", clean[CGROUP_PATH_MAX] = "";

	if (*path != '/' && append_own(own, sizeof(own), e) < 0)
		return -1;
	if (append_clean(clean, sizeof(clean), path, e) < 0)
		return -1;
	if (!clean[0])
		return err_set(
			e, ERR_USAGE, "cgroupsPath: a container needs a cgroup of its own, not /");
	if ((size_t)snprintf(p->path, sizeof(p->path), "%s%s", own, clean) >= sizeof(p->path))
		return err_set(e, ERR_USAGE, "cgroupsPath: too long");
	return 0;
}

/* ---- systemd: Source: systemd.unit(5), systemd.slice(5) ---- */

static int check_slice(const char *s, struct err *e)
{
	size_t n = strlen(s) - (sizeof(slice_end) - 1);

	if (!str_ends(s, slice_end) || strlen(s) > 255 || n == 0 || strchr(s, '/'))
		return err_set(e, ERR_USAGE, "cgroupsPath: '%.100s' is no name of a slice", s);
	if (str_eq(s, "-.slice"))
		return 0;
	if (s[0] == '-' || s[n - 1] == '-' || strstr(s, "--"))
		return err_set(e, ERR_USAGE, "cgroupsPath: '%.100s' has an empty part", s);
	for (size_t i = 0; s[i]; i++)
		if (!isalnum((unsigned char)s[i]) && !strchr(":-_.\\@", s[i]))
			return err_set(e, ERR_USAGE,
				"cgroupsPath: '%.100s' has characters that no unit may have", s);
	return 0;
}

/* "a-b.slice" is in /a.slice/a-b.slice. */
static void slice_path(char *out, size_t size, const char *slice)
{
	size_t end = strlen(slice) - (sizeof(slice_end) - 1), len = 0;

	out[0] = '\0';
	if (str_eq(slice, "-.slice"))
		return;
	for (size_t i = 1; i <= end && len < size; i++)
		if (i == end || slice[i] == '-')
			len += (size_t)snprintf(
				out + len, size - len, "/%.*s%s", (int)i, slice, slice_end);
}

/* Units' names have fewer characters than those of containers: others are written "\x2b", as
 * systemd-escape(1) does. */
static void append_escaped(char *out, size_t size, const char *name, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(out);

		if (isalnum((unsigned char)name[i]) || strchr(":-_.\\@", name[i]))
			snprintf(out + len, size - len, "%c", name[i]);
		else
			snprintf(out + len, size - len, "\\x%02x", (unsigned char)name[i]);
	}
}

static int place_unit(
	struct cgroup_place *p, const char *prefix, size_t nprefix, const char *name, struct err *e)
{
	char unit[1100] = "";

	if (!*name || strlen(name) > 255 || nprefix > 255)
		return err_set(e, ERR_USAGE,
			"cgroupsPath: slice:prefix:name needs a name of at "
			"most 255 bytes");
	append_escaped(unit, sizeof(unit), prefix, nprefix);
	if (nprefix)
		append_escaped(unit, sizeof(unit), "-", 1);
	append_escaped(unit, sizeof(unit), name, strlen(name));
	if (nprefix || !str_ends(name, slice_end))
		append_escaped(unit, sizeof(unit), ".scope", 6);
	else if (check_slice(name, e) < 0)
		return -1;
	if (str_eq(unit, "-.slice"))
		return err_set(e, ERR_USAGE,
			"cgroupsPath: a container needs a cgroup of its own, not the root's");
	if (str_copy(p->unit, sizeof(p->unit), unit) < 0)
		return err_set(e, ERR_USAGE, "cgroupsPath: a unit's name has at most 255 bytes");
	return 0;
}

static int place_systemd(struct cgroup_place *p, const char *path, const char *id, struct err *e)
{
	const char *prefix = strchr(path, ':'), *name = prefix ? strchr(prefix + 1, ':') : NULL;
	char slice[CGROUP_PATH_MAX];
	int n;

	if (!*path)
		return place_unit(p, "svrun", strlen("svrun"), id, e);
	if (!name || strchr(name + 1, ':')) {
		err_set(e, ERR_USAGE, "cgroupsPath: '%.100s' is not slice:prefix:name", path);
		return err_hint(e, "this is what --systemd-cgroup expects");
	}
	if (place_unit(p, prefix + 1, (size_t)(name - prefix - 1), name + 1, e) < 0)
		return -1;
	if (prefix == path)
		return 0;
	n = snprintf(slice, sizeof(slice), "%.*s", (int)(prefix - path), path);
	if ((size_t)n >= sizeof(slice) || check_slice(slice, e) < 0)
		return (size_t)n >= sizeof(slice) ? err_set(e, ERR_USAGE, "cgroupsPath: too long")
						  : -1;
	snprintf(p->slice, sizeof(p->slice), "%s", slice);
	return 0;
}

int cgroup_place(struct cgroup_place *p, const char *cgroups_path, const char *id, bool systemd,
	struct err *e)
{
	const char *path = cgroups_path ? cgroups_path : "";
	char slices[CGROUP_PATH_MAX];
	int n;

	*p = (struct cgroup_place){.may_lack = !*path && !cgroup_privileged()};
	if (!systemd)
		return place_path(p, *path ? path : id, e);
	if (place_systemd(p, path, id, e) < 0)
		return -1;
	if (!p->slice[0])
		snprintf(p->slice, sizeof(p->slice), "%s",
			cgroup_privileged() ? "system.slice" : "user.slice");
	/* A slice's place is in its own name. */
	slice_path(slices, sizeof(slices), str_ends(p->unit, slice_end) ? p->unit : p->slice);
	n = snprintf(p->path, sizeof(p->path), "%s%s%s", slices,
		str_ends(p->unit, slice_end) ? "" : "/",
		str_ends(p->unit, slice_end) ? "" : p->unit);
	return (size_t)n < sizeof(p->path) ? 0 : err_set(e, ERR_USAGE, "cgroupsPath: too long");
}
