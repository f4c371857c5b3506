#include "runtime/cgroup-file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
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

bool cgroup_has(const struct cgroup *c, const char *controller, const char *name)
{
	int dir = cgroup_dir_of(c, controller);

	return dir >= 0 && faccessat(dir, name, F_OK, 0) == 0;
}

static int lacks(const struct cgroup *c, const struct cgroup_file *f, struct err *e)
{
	if (c->ndirs == 0)
		return err_set(e, ERR_UNSUPPORTED,
			"/linux/resources/%s needs a cgroup of the container's own", f->field);
	err_set(e, ERR_UNSUPPORTED,
		"/linux/resources/%s: this host's cgroups cannot limit that: no %s", f->field,
		f->name[c->v2]);
	if (!c->v2)
		return err_hint(e, "the '%s' controller is not mounted", f->controller);
	return err_hint(e,
		"the '%s' controller is not available to %s: enable it in every cgroup above, "
		"none of which may have processes",
		f->controller, c->place.path);
}

int cgroup_set(const struct cgroup *c, const struct cgroup_file *f, const char *text, struct err *e)
{
	int dir = cgroup_dir_of(c, f->controller);
	const char *name = f->name[c->v2];

	if (!name)
		return err_set(e, ERR_UNSUPPORTED,
			"/linux/resources/%s: cgroups of version 2 have no such limit", f->field);
	if (dir < 0)
		return lacks(c, f, e);
	auto_fd int fd = sys_openat(dir, name, O_WRONLY, 0);
	if (fd < 0 && errno == ENOENT)
		return lacks(c, f, e);
	if (fd < 0 || sys_write_all(fd, text, strlen(text)) < 0)
		return err_sys(
			e, "/linux/resources/%s: write '%.200s' to %s", f->field, text, name);
	return 0;
}

int cgroup_set_number(const struct cgroup *c, const struct cgroup_file *f, int64_t v, struct err *e)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRId64, v);
	return cgroup_set(c, f, v < 0 && c->v2 ? "max" : text, e);
}

int cgroup_set_opt(
	const struct cgroup *c, const struct cgroup_file *f, const struct opt_i64 *v, struct err *e)
{
	if (!v->set || !v->v || (v->v < 0 && !f->name[c->v2]))
		return 0;
	return cgroup_set_number(c, f, v->v, e);
}

const char *cgroup_text(int dir, const char *name, struct buf *b)
{
	b->len = 0;
	if (dir < 0 || file_read(dir, name, b, NULL) < 0 || !b->data)
		return "";
	return b->data;
}

int64_t cgroup_number(int dir, const char *name)
{
	auto_buf struct buf text = BUF_INIT(4096);
	const char *s = cgroup_text(dir, name, &text);
	char *end;

	if (!*s)
		return -1;
	if (str_starts(s, "max"))
		return INT64_MAX;
	errno = 0;
	unsigned long long v = strtoull(s, &end, 10);
	return end == s ? -1 : errno || v > INT64_MAX ? INT64_MAX : (int64_t)v;
}

int64_t cgroup_key(const char *text, const char *key)
{
	size_t n = strlen(key);

	for (const char *p = text; *p;) {
		if (strncmp(p, key, n) == 0 && p[n] == ' ')
			return (int64_t)strtoull(p + n + 1, NULL, 10);
		p += strcspn(p, "\n");
		p += *p == '\n';
	}
	return 0;
}

/* ---- the host ---- */

bool cgroup_is_v2(void)
{
	struct statfs fs;

	return statfs(CGROUP_ROOT, &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC;
}

bool cgroup_has_swap(void)
{
	/* Version 2 has the file in every cgroup but the root. */
	return access(cgroup_is_v2() ? "/proc/swaps"
				     : CGROUP_ROOT "/memory/memory.memsw.limit_in_bytes",
		       F_OK) == 0;
}

void cgroup_full_path(char out[CGROUP_FULL_PATH], const char *hierarchy, const char *path)
{
	snprintf(out, CGROUP_FULL_PATH, CGROUP_ROOT "%s%s%s", *hierarchy ? "/" : "", hierarchy,
		path);
}

bool cgroup_names(const char *list, const char *controller)
{
	static const char between[] = ", \n";
	size_t n = strlen(controller), len;

	for (const char *p = list; *p; p += strspn(p, between)) {
		len = strcspn(p, between);
		if (len == n && strncmp(p, controller, n) == 0)
			return true;
		p += len;
	}
	return false;
}

/* "4:cpu,cpuacct:/a/b", "9:name=systemd:/", "0::/a/b". */
static bool parse_line(struct cgroup_line *out, const char *line, size_t n, bool v2)
{
	const char *end = line + n, *list = memchr(line, ':', n), *path;

	list = list ? list + 1 : end;
	path = memchr(list, ':', (size_t)(end - list));
	if (!path || (path == list) != v2)
		return false;
	if (str_starts(list, "name="))
		list += strlen("name=");
	if ((path == list) != v2 || (size_t)(path - list) >= sizeof(out->hierarchy) ||
		(size_t)(end - path) > sizeof(out->path) ||
		memchr(list, '/', (size_t)(path - list)))
		return false;
	snprintf(out->hierarchy, sizeof(out->hierarchy), "%.*s", (int)(path - list), list);
	snprintf(out->path, sizeof(out->path), "%.*s", (int)(end - path - 1), path + 1);
	return true;
}

void cgroup_lines_parse(struct cgroup_lines *l, const char *text, bool v2)
{
	l->n = 0;
	for (const char *p = text; *p && l->n < CGROUP_HIERARCHIES; p += p[0] == '\n') {
		size_t n = strcspn(p, "\n");

		l->n += parse_line(&l->v[l->n], p, n, v2);
		p += n;
	}
}

int cgroup_lines_read(struct cgroup_lines *l, pid_t pid, bool v2, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(64 * 1024);
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	if (file_read(AT_FDCWD, pid ? path : "/proc/self/cgroup", &text, e) < 0)
		return -1;
	cgroup_lines_parse(l, text.data ? text.data : "", v2);
	return 0;
}

int cgroup_hierarchies(struct cgroup_lines *l, bool v2, struct err *e)
{
	if (!v2)
		return cgroup_lines_read(l, 0, false, e);
	l->n = 1;
	l->v[0].hierarchy[0] = '\0';
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
