/* Where a container's cgroup is to be: from what the config says to a path, and to systemd's names.
 */
#include "runtime/cgroup-file.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/str.h"
#include "base/sys.h"

static int too_long(struct err *e)
{
	return err_set(e, ERR_USAGE, "cgroupsPath: too long");
}

/* Append the parts of `path` to out, "/a/b": a ".." takes one away again, and never more than there
 * is above `floor`. */
static int append_clean(char out[CGROUP_PATH_MAX], size_t floor, const char *path, struct err *e)
{
	size_t n, len;

	for (const char *p = path; *p; p += n + (p[n] == '/')) {
		n = strcspn(p, "/");
		len = strlen(out);
		if (n == 2 && p[0] == '.' && p[1] == '.') {
			while (len > floor && out[--len] != '/')
				;
			out[len] = '\0';
		} else if (n && !(n == 1 && p[0] == '.')) {
			if (len + 1 + n >= CGROUP_PATH_MAX || n > 255)
				return too_long(e);
			snprintf(out + len, CGROUP_PATH_MAX - len, "/%.*s", (int)n, p);
		}
	}
	return 0;
}

/* Without root, what is made must be where we may: beside our own cgroup, or in it. */
static int append_own(char out[CGROUP_PATH_MAX], struct err *e)
{
	char procs[CGROUP_PATH_MAX + 64], *slash;
	struct cgroup_lines own;

	if (!cgroup_is_v2() || cgroup_privileged())
		return 0;
	if (cgroup_lines_read(&own, 0, true, e) < 0 ||
		(own.n && append_clean(out, 0, own.v[0].path, e) < 0))
		return -1;
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
	size_t own;

	if (*path != '/' && append_own(p->path, e) < 0)
		return -1;
	own = strlen(p->path);
	if (append_clean(p->path, own, path, e) < 0)
		return -1;
	if (!p->path[own])
		return err_set(
			e, ERR_USAGE, "cgroupsPath: a container needs a cgroup of its own, not /");
	return 0;
}

/* ---- systemd: Source: systemd.unit(5), systemd.slice(5) ---- */

static const char slice_end[] = ".slice";
enum { SLICE_END = sizeof(slice_end) - 1 };

static bool is_unit_char(char c)
{
	return isalnum((unsigned char)c) || (c && strchr(":-_.\\@", c));
}

static int check_slice(const char *s, struct err *e)
{
	size_t n = strlen(s) - SLICE_END;

	if (!str_ends(s, slice_end) || strlen(s) > 255 || n == 0 || strchr(s, '/'))
		return err_set(e, ERR_USAGE, "cgroupsPath: '%.100s' is no name of a slice", s);
	if (str_eq(s, "-.slice"))
		return 0;
	if (s[0] == '-' || s[n - 1] == '-' || strstr(s, "--"))
		return err_set(e, ERR_USAGE, "cgroupsPath: '%.100s' has an empty part", s);
	while (is_unit_char(*s))
		s++;
	return *s ? err_set(e, ERR_USAGE,
			    "cgroupsPath: '%.100s' has characters that no unit may have", s)
		  : 0;
}

/* "a-b.slice" is in /a.slice/a-b.slice. */
static size_t slice_path(char *out, size_t size, const char *slice)
{
	size_t end = strlen(slice) - SLICE_END, len = 0;

	for (size_t i = 1; i <= end && len < size && slice[0] != '-'; i++)
		if (i == end || slice[i] == '-')
			len += (size_t)snprintf(
				out + len, size - len, "/%.*s%s", (int)i, slice, slice_end);
	return len;
}

/* Units' names have fewer characters than those of containers: others are written "\x2b", as
 * systemd-escape(1) does. */
static void escape(struct buf *out, const char *name, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (is_unit_char(name[i]))
			buf_put(out, name + i, 1);
		else
			buf_printf(out, "\\x%02x", (unsigned char)name[i]);
}

static int place_unit(
	struct cgroup_place *p, const char *prefix, size_t nprefix, const char *name, struct err *e)
{
	auto_buf struct buf unit = BUF_INIT(4096);

	if (!*name || strlen(name) > 255 || nprefix > 255)
		return err_set(e, ERR_USAGE,
			"cgroupsPath: slice:prefix:name needs a name of at "
			"most 255 bytes");
	escape(&unit, prefix, nprefix);
	escape(&unit, "-", nprefix > 0);
	escape(&unit, name, strlen(name));
	if (nprefix || !str_ends(name, slice_end))
		buf_printf(&unit, ".scope");
	else if (check_slice(name, e) < 0)
		return -1;
	if (str_eq(unit.data, "-.slice"))
		return err_set(e, ERR_USAGE,
			"cgroupsPath: a container needs a cgroup of its own, not the root's");
	if (str_copy(p->unit, sizeof(p->unit), unit.data) < 0)
		return err_set(e, ERR_USAGE, "cgroupsPath: a unit's name has at most 255 bytes");
	return 0;
}

/* The slice and the unit. */
static int place_names(struct cgroup_place *p, const char *path, const char *id, struct err *e)
{
	const char *prefix = strchr(path, ':'), *name = prefix ? strchr(prefix + 1, ':') : NULL;
	int n;

	snprintf(p->slice, sizeof(p->slice), cgroup_privileged() ? "system.slice" : "user.slice");
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
	n = snprintf(p->slice, sizeof(p->slice), "%.*s", (int)(prefix - path), path);
	return (size_t)n >= sizeof(p->slice) ? too_long(e) : check_slice(p->slice, e);
}

int cgroup_place(struct cgroup_place *p, const char *cgroups_path, const char *id, bool systemd,
	struct err *e)
{
	const char *path = cgroups_path ? cgroups_path : "";
	bool is_slice;
	size_t n;

	*p = (struct cgroup_place){.may_lack = !*path && !cgroup_privileged()};
	if (!systemd)
		return place_path(p, *path ? path : id, e);
	if (place_names(p, path, id, e) < 0)
		return -1;
	/* A slice's place is in its own name. */
	is_slice = str_ends(p->unit, slice_end);
	n = slice_path(p->path, sizeof(p->path), is_slice ? p->unit : p->slice);
	if (!is_slice && n < sizeof(p->path))
		n += (size_t)snprintf(p->path + n, sizeof(p->path) - n, "/%s", p->unit);
	return n < sizeof(p->path) ? 0 : too_long(e);
}
