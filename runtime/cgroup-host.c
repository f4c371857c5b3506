#include "runtime/cgroup-host.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/vfs.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"

static bool is_type(const char *path, long type)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 && (long)fs.f_type == type;
}

bool cgroup_is_v2(void)
{
	return is_type(CGROUP_ROOT, CGROUP2_SUPER_MAGIC);
}

bool cgroup_has_swap(void)
{
	/* Version 2 has the file in every cgroup but the root. */
	return access(cgroup_is_v2() ? "/proc/swaps"
				     : CGROUP_ROOT "/memory/memory.memsw.limit_in_bytes",
		       F_OK) == 0;
}

int cgroup_root(const char *hierarchy)
{
	char path[128];

	snprintf(path, sizeof(path), CGROUP_ROOT "/%s", hierarchy);
	if (!is_type(path, *hierarchy ? CGROUP_SUPER_MAGIC : CGROUP2_SUPER_MAGIC)) {
		errno = ENOENT;
		return -1;
	}
	return sys_open(path, O_PATH | O_DIRECTORY, 0);
}

bool cgroup_names(const char *hierarchy, const char *controller)
{
	size_t n = strlen(controller);

	if (!*hierarchy)
		return true;
	for (const char *p = hierarchy; p; p = strchr(p, ',')) {
		p += *p == ',';
		if (strncmp(p, controller, n) == 0 && (p[n] == ',' || !p[n]))
			return true;
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

bool cgroup_privileged(void)
{
	auto_buf struct buf text = BUF_INIT(64 * 1024);
	unsigned inside, outside, size;

	return geteuid() == 0 && file_read(AT_FDCWD, "/proc/self/uid_map", &text, NULL) == 0 &&
	       text.data && sscanf(text.data, "%u %u %u", &inside, &outside, &size) == 3 &&
	       size == UINT32_MAX;
}
