#include "runtime/cgroup-file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/vfs.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"

/* ---- files ---- */

int cgroup_dir_of(const struct cgroup *c, const char *controller)
{
	for (size_t i = 0; i < c->ndirs; i++)
		if (c->v2 || cgroup_names(c->dirs[i].hierarchy, controller))
			return c->dirs[i].dir;
	return -1;
}

bool cgroup_has(const struct cgroup *c, const char *name)
{
	int dir = cgroup_dir_of(c, name);

	return dir >= 0 && faccessat(dir, name, F_OK, 0) == 0;
}

static int lacks(const struct cgroup *c, const struct cgroup_file *f, struct err *e)
{
	const char *name = f->name[c->v2];
	int n = (int)strcspn(name, ".");

	if (c->ndirs == 0)
		return err_set(e, ERR_UNSUPPORTED,
			"/linux/resources/%s needs a cgroup of the container's own", f->field);
	err_set(e, ERR_UNSUPPORTED,
		"/linux/resources/%s: this host's cgroups cannot limit that: no %s", f->field,
		name);
	if (!c->v2)
		return err_hint(e, "the '%.*s' controller is not mounted", n, name);
	return err_hint(e,
		"the '%.*s' controller is not available to %s: enable it in every cgroup above, "
		"none of which may have processes",
		n, name, c->place.path);
}

int cgroup_set(
	const struct cgroup *c, const struct cgroup_file *f, struct err *e, const char *fmt, ...)
{
	const char *name = f->name[c->v2];
	char text[4096];
	va_list list;
	int n;

	va_start(list, fmt);
	n = vsnprintf(text, sizeof(text), fmt, list);
	va_end(list);
	if ((size_t)n >= sizeof(text))
		return err_set(e, ERR_USAGE, "/linux/resources/%s: too long", f->field);
	if (!name)
		return err_set(e, ERR_UNSUPPORTED,
			"/linux/resources/%s: cgroups of version 2 have no such limit", f->field);
	if (c->told) {
		cgroup_systemd_told(c->told, name, text);
		return 0;
	}
	int dir = cgroup_dir_of(c, name);
	auto_fd int fd = dir < 0 ? -1 : sys_openat(dir, name, O_WRONLY, 0);
	if (dir < 0 || (fd < 0 && errno == ENOENT))
		return lacks(c, f, e);
	if (fd < 0 || sys_write_all(fd, text, (size_t)n) < 0)
		return err_sys(
			e, "/linux/resources/%s: write '%.200s' to %s", f->field, text, name);
	return 0;
}

int cgroup_set_number(const struct cgroup *c, const struct cgroup_file *f, int64_t v, struct err *e)
{
	return v < 0 && c->v2 ? cgroup_set(c, f, e, "max")
			      : cgroup_set(c, f, e, "%lld", (long long)v);
}

const char *cgroup_text(int dir, const char *name, struct buf *b)
{
	b->len = 0;
	return dir < 0 || file_read(dir, name, b, NULL) < 0 || !b->data ? "" : b->data;
}

int64_t cgroup_number(int dir, const char *name)
{
	auto_buf struct buf text = BUF_INIT(4096);
	const char *s = cgroup_text(dir, name, &text);
	char *end;

	if (str_starts(s, "max"))
		return INT64_MAX;
	errno = 0;
	unsigned long long v = strtoull(s, &end, 10);
	return end == s ? -1 : errno || v > INT64_MAX ? INT64_MAX : (int64_t)v;
}

int64_t cgroup_key(const char *text, const char *key)
{
	size_t n = strlen(key);

	for (const char *p = text; p; p = strchr(p, '\n')) {
		p += *p == '\n';
		if (strncmp(p, key, n) == 0 && p[n] == ' ')
			return (int64_t)strtoull(p + n + 1, NULL, 10);
	}
	return 0;
}

/* ---- the host ---- */

bool cgroup_is_v2(void)
{
	struct statfs fs;

	return statfs(CGROUP_ROOT, &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC;
}

bool cgroup_is_at(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == CGROUP_SUPER_MAGIC;
}

void cgroup_full_path(char out[CGROUP_FULL_PATH], const char *hierarchy, const char *path)
{
	snprintf(out, CGROUP_FULL_PATH, CGROUP_ROOT "%s%s%s", *hierarchy ? "/" : "", hierarchy,
		path);
}

bool cgroup_names(const char *list, const char *controller)
{
	static const char between[] = ", \n";
	size_t n = strcspn(controller, "."), len;

	for (const char *p = list; *p; p += len + strspn(p + len, between)) {
		len = strcspn(p, between);
		if (len == n && strncmp(p, controller, n) == 0)
			return true;
	}
	return false;
}

/* "4:cpu,cpuacct:/a/b", "9:name=systemd:/", "0::/a/b", with its end. */
static bool parse_line(struct cgroup_line *out, const char *line, bool v2)
{
	char end = '\0';

	_Static_assert(sizeof(out->hierarchy) == 64 && sizeof(out->path) == 1024, "as below");
	out->hierarchy[0] = '\0';
	if (v2)
		return sscanf(line, "0::%1023[^\n]%c", out->path, &end) == 2 && end == '\n';
	return (sscanf(line, "%*[0-9]:name=%63[^:/\n]:%1023[^\n]%c", out->hierarchy, out->path,
			&end) == 3 ||
		       sscanf(line, "%*[0-9]:%63[^:/\n]:%1023[^\n]%c", out->hierarchy, out->path,
			       &end) == 3) &&
	       end == '\n';
}

void cgroup_lines_parse(struct cgroup_lines *l, const char *text, bool v2)
{
	for (l->n = 0; l->n < CGROUP_HIERARCHIES && *text; text += *text == '\n') {
		l->n += parse_line(&l->v[l->n], text, v2);
		text += strcspn(text, "\n");
	}
}

int cgroup_lines_read(struct cgroup_lines *l, pid_t pid, bool v2, struct err *e)
{
	char path[64] = "/proc/self/cgroup", text[32 * 1024];
	ssize_t n;

	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	auto_fd int fd = sys_open(path, O_RDONLY, 0);
	n = fd < 0 ? -1 : sys_read(fd, text, sizeof(text) - 1); /* at once, as the kernel has it */
	if (n < 0)
		return err_sys(e, "%s", path);
	text[n] = '\0';
	cgroup_lines_parse(l, text, v2);
	return 0;
}

int cgroup_find(struct cgroup *c, struct err *e)
{
	struct cgroup_lines l;

	c->ndirs = 0;
	if (!c->place.path[0])
		return 0;
	l.n = 1;
	l.v[0].hierarchy[0] = '\0';
	if (!c->v2 && cgroup_lines_read(&l, 0, false, e) < 0)
		return -1;
	for (; c->ndirs < l.n; c->ndirs++) {
		struct cgroup_dir *d = &c->dirs[c->ndirs];

		memcpy(d->hierarchy, l.v[c->ndirs].hierarchy, sizeof(d->hierarchy));
		d->dir = -1;
		d->made = false;
	}
	return 0;
}

bool cgroup_privileged(void)
{
	auto_buf struct buf text = BUF_INIT(64 * 1024);
	unsigned inside, outside, size;

	return geteuid() == 0 && file_read(AT_FDCWD, "/proc/self/uid_map", &text, NULL) == 0 &&
	       text.data && sscanf(text.data, "%u %u %u", &inside, &outside, &size) == 3 &&
	       size == UINT32_MAX;
}
