#include "runtime/cgroup-file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "runtime/cgroup-host.h"

int cgroup_dir_of(const struct cgroup *c, const char *controller)
{
	for (size_t i = 0; i < c->ndirs; i++)
		if (cgroup_names(c->dirs[i].hierarchy, controller))
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
	err_set(e, ERR_UNSUPPORTED,
		"/linux/resources/%s: this host's cgroups cannot limit that: no %s", f->field,
		f->name);
	if (c->ndirs == 0)
		return err_hint(e, "the container has no cgroup of its own");
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

	if (dir < 0)
		return lacks(c, f, e);
	auto_fd int fd = sys_openat(dir, f->name, O_WRONLY, 0);
	if (fd < 0 && errno == ENOENT)
		return lacks(c, f, e);
	if (fd < 0 || sys_write_all(fd, text, strlen(text)) < 0)
		return err_sys(
			e, "/linux/resources/%s: write '%.200s' to %s", f->field, text, f->name);
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
	return v->set && v->v ? cgroup_set_number(c, f, v->v, e) : 0;
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
