/* Looking at instances from outside: which there are, and removing those that ended. */
#include "svrun/instance.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"

enum { DOCUMENT_MAX = 8 << 20 };

/* An instance's folder; NOT_FOUND for what cannot be one. */
static int open_one(int all, const char *id, struct err *e)
{
	int fd = strchr(id, '/') || id[0] == '.' || strlen(id) > INSTANCE_ID_MAX
			 ? -1
			 : sys_openat(all, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

	if (fd >= 0)
		return fd;
	err_set(e, ERR_NOT_FOUND, "no container '%.80s'", id);
	return err_hint(e, "svrun ps lists them");
}

static char *annotation(const struct json_doc *doc, const char *name)
{
	const char *text =
		json_string_value(json_object_get(json_object_get(doc->root, "annotations"), name));

	return mem_strdup(text ? text : "");
}

static void read_config(struct instance_info *i, int dir)
{
	struct json_doc doc;

	if (json_doc_load(&doc, dir, "config.json", DOCUMENT_MAX, NULL) < 0) {
		i->image = mem_strdup("");
		i->gpus = mem_strdup("");
		return;
	}
	i->image = annotation(&doc, INSTANCE_IMAGE);
	i->gpus = annotation(&doc, INSTANCE_GPUS);
	json_doc_fini(&doc);
}

static int status_of(int dir)
{
	struct json_doc doc;
	uint64_t status;

	if (json_doc_load(&doc, dir, "state.json", DOCUMENT_MAX, NULL) < 0)
		return -1;
	if (json_u64(doc.root, "exitCode", 255, &status, NULL) < 0)
		status = 255;
	json_doc_fini(&doc);
	return (int)status;
}

static void describe(struct instance_info *i, int dir, const char *id)
{
	*i = (struct instance_info){.status = status_of(dir)};
	read_config(i, dir);
	snprintf(i->id, sizeof(i->id), "%.*s", INSTANCE_ID_MAX, id);
	i->running = i->status < 0;
}

static int by_id(const void *a, const void *b)
{
	return strcmp(((const struct instance_info *)a)->id, ((const struct instance_info *)b)->id);
}

int instance_list(int root, struct instance_info **v, size_t *n, struct err *e)
{
	size_t cap = 0;
	struct dirent *d;
	int fd = sys_openat(root, "instances", O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	*v = NULL;
	*n = 0;
	if (!dir) {
		if (fd < 0 && errno == ENOENT)
			return 0;
		err_sys(e, "list instances");
		sys_close_ref(&fd);
		return -1;
	}
	while ((d = readdir(dir))) {
		auto_fd int one = open_one(dirfd(dir), d->d_name, NULL);

		if (one < 0)
			continue;
		mem_grow(v, &cap, *n);
		describe(&(*v)[(*n)++], one, d->d_name);
	}
	closedir(dir);
	if (*n)
		qsort(*v, *n, sizeof(**v), by_id);
	return 0;
}

void instance_list_free(struct instance_info *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].image);
		free(v[i].gpus);
	}
	free(v);
}

/* ---- one, from outside ---- */

/* Its process, when that is still in its cgroup: a number that the kernel has given to another
 * process since is not. */
static int find_process(struct instance_view *v, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(64);
	auto_free pid_t *pids = NULL;
	struct cgroup cgroup;
	size_t n = 0;
	uint64_t pid;
	int rc;

	if (file_read(v->dir, "pid", &text, NULL) < 0 || !text.len)
		return 0;
	text.data[strcspn(text.data, "\n")] = '\0';
	if (str_u64(text.data, INT32_MAX, &pid) < 0)
		return err_set(e, ERR_CORRUPT, "instance %s: its pid is no number", v->id);
	v->pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
	if (v->pidfd < 0)
		return errno == ESRCH ? 0 : err_sys(e, "process %d", (int)pid);
	if (cgroup_open(&cgroup, &v->cgroup, NULL, e) < 0)
		return -1;
	rc = cgroup_pids(&cgroup, &pids, &n, e);
	cgroup_fini(&cgroup);
	for (size_t i = 0; rc == 0 && i < n; i++)
		if (pids[i] == (pid_t)pid)
			v->pid = (pid_t)pid;
	if (!v->pid)
		sys_close_ref(&v->pidfd);
	return rc;
}

/* Only what has ended is locked: svrun would take a lock on what it is just making for another's
 * clean-up. */
static int look(struct instance_view *v, int all, struct err *e)
{
	v->running = faccessat(v->dir, "state.json", F_OK, 0) < 0;
	if (v->running)
		return instance_place(all, v->id, &v->cgroup, e) < 0 ? -1 : find_process(v, e);
	if (sys_flock(v->dir, LOCK_SH | LOCK_NB) == 0)
		return 0;
	if (errno != EWOULDBLOCK)
		return err_sys(e, "lock container %s", v->id);
	err_set(e, ERR_EXISTS, "container %s is just starting, or being removed", v->id);
	return err_hint(e, "try again");
}

int instance_open(int root, const char *id, struct instance_view *v, struct err *e)
{
	auto_fd int all = sys_openat(root, "instances", O_RDONLY | O_DIRECTORY, 0);

	*v = (struct instance_view){.dir = open_one(all, id, e), .pidfd = -1};
	if (v->dir < 0)
		return -1;
	snprintf(v->id, sizeof(v->id), "%s", id);
	if (look(v, all, e) == 0)
		return 0;
	instance_close(v);
	return -1;
}

void instance_close(struct instance_view *v)
{
	sys_close_ref(&v->dir);
	sys_close_ref(&v->pidfd);
}

static pid_t parent_of(pid_t pid)
{
	char path[32], line[128];
	int parent = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "PPid: %d", &parent) == 1)
			break;
	if (f)
		fclose(f);
	return parent;
}

int instance_supervisor(const struct instance_view *v)
{
	auto_buf struct buf text = BUF_INIT(64);
	const char *second;
	uint64_t pid;

	if (v->pid <= 0 || file_read(v->dir, "pid", &text, NULL) < 0 || !text.len ||
		!(second = strchr(text.data, '\n')))
		return -1;
	text.data[strlen(text.data) - 1] = '\0';
	if (str_u64(second + 1, INT32_MAX, &pid) < 0)
		return -1;
	auto_fd int fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
	/* it is its parent as long as both are there: whoever has the number now is not */
	return fd >= 0 && parent_of(v->pid) == (pid_t)pid ? steal_fd(&fd) : -1;
}

int instance_remove(int root, const char *id, struct err *e)
{
	auto_fd int all = sys_openat(root, "instances", O_RDONLY | O_DIRECTORY, 0);
	auto_fd int dir = open_one(all, id, e);

	if (dir < 0)
		return -1;
	if (sys_flock(dir, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK)
			return err_sys(e, "lock container %s", id);
		err_set(e, ERR_EXISTS, "container %s is running", id);
		return err_hint(e, "svrun stop %s ends it", id);
	}
	return sys_remove_tree(all, id) < 0 ? err_sys(e, "remove container %s", id) : 0;
}
