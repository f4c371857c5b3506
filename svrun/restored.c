/* What criu has made of image files, looked at before it runs: see checkpoint.h. All threads are
 * stopped, so that nothing changes meanwhile. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "runtime/ns.h"
#include "svrun/checkpoint.h"

enum { TEXT_MAX = 16 << 20, DEV_SIZE = 24, PROCESSES_MAX = 1 << 20 };

struct pids {
	pid_t *v;
	size_t n, cap;
};

struct checking {
	const struct spec *s;
	const struct cgroup *cgroup;
	pid_t *members; /* of the cgroup, sorted */
	size_t nmembers;
	char (*devs)[DEV_SIZE]; /* "8:1": what the root and the binds are on */
	size_t ndevs;
	ino_t ours[NS_KINDS], theirs[NS_KINDS]; /* the host's; what the config names by path */
	ino_t user;                             /* the container's user namespace */
	ino_t checked;                          /* mount namespace */
};

/* Files of /proc/PID/ns, in the order of enum ns_kind. */
static const char *const ns_files[NS_KINDS] = {
	"mnt", "pid", "net", "ipc", "uts", "cgroup", "user", "time"};

/* ---- what to compare with ---- */

/* The device of the mount that path is on, as mountinfo has it; st_dev is another one on some file
 * systems. */
static int device_of(const char *dir, const char *path, char out[DEV_SIZE], struct err *e)
{
	auto_buf struct buf info = BUF_INIT(4096);
	auto_buf struct buf mounts = BUF_INIT(TEXT_MAX);
	auto_fd int at = sys_open(dir, O_PATH | O_DIRECTORY, 0);
	auto_fd int fd = at < 0 ? -1 : sys_openat(at, path, O_PATH, 0);
	char name[48], id[32];
	const char *p;

	if (fd < 0)
		return err_sys(e, "%s", path);
	snprintf(name, sizeof(name), "/proc/self/fdinfo/%d", fd);
	if (file_read(AT_FDCWD, name, &info, e) < 0 ||
		file_read(AT_FDCWD, "/proc/self/mountinfo", &mounts, e) < 0)
		return -1;
	p = strstr(info.data, "mnt_id:\t");
	if (!p)
		return err_set(e, ERR_SYSTEM, "%s: no mnt_id", name);
	snprintf(id, sizeof(id), "%lu ", strtoul(p + strlen("mnt_id:\t"), NULL, 10));
	for (char *rest = mounts.data, *line; (line = strsep(&rest, "\n")) != NULL;) {
		if (!str_starts(line, id))
			continue;
		strsep(&line, " ");
		strsep(&line, " ");
		return str_copy(out, DEV_SIZE, line ? strsep(&line, " ") : "");
	}
	return err_set(e, ERR_SYSTEM, "%s is on no mount", path);
}

static int read_devices(struct checking *c, const char *rootfs, const char *bundle, struct err *e)
{
	c->devs = mem_array(c->s->nmounts + 1, sizeof(*c->devs));
	if (device_of("/", rootfs, c->devs[c->ndevs++], e) < 0)
		return -1;
	for (size_t i = 0; i < c->s->nmounts; i++) {
		const struct spec_mount *m = &c->s->mounts[i];

		if (checkpoint_is_bind(m) &&
			device_of(bundle, m->source, c->devs[c->ndevs++], e) < 0)
			return -1;
	}
	return 0;
}

static int read_namespaces(struct checking *c, pid_t first, struct err *e)
{
	auto_free char *user = mem_printf("/proc/%d/ns/user", (int)first);
	struct stat in;

	if (stat(user, &in) < 0)
		return err_sys(e, "%s", user);
	c->user = in.st_ino;
	for (enum ns_kind k = 0; k < NS_KINDS; k++) {
		const char *path = c->s->namespaces[k].path;
		char own[48];
		struct stat st;

		snprintf(own, sizeof(own), "/proc/self/ns/%s", ns_files[k]);
		if (stat(own, &st) == 0) /* else the kernel has none of that kind */
			c->ours[k] = st.st_ino;
		if (path && stat(path, &st) < 0)
			return err_sys(e, "%s namespace %s", ns_name(k), path);
		if (path)
			c->theirs[k] = st.st_ino;
	}
	return 0;
}

static int by_number(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return x < y ? -1 : x > y;
}

/* ---- its processes ---- */

static int add_children(struct pids *all, const char *task, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(TEXT_MAX);
	auto_free char *path = mem_printf("%s/children", task);

	if (file_read(AT_FDCWD, path, &text, e) < 0)
		return -1;
	for (char *rest = text.data, *word; (word = strsep(&rest, " ")) != NULL;) {
		uint64_t pid;

		if (str_u64(word, INT32_MAX, &pid) < 0)
			continue;
		if (all->n >= PROCESSES_MAX)
			return err_set(e, ERR_CORRUPT, "too many processes");
		mem_grow(&all->v, &all->cap, all->n);
		all->v[all->n++] = (pid_t)pid;
	}
	return 0;
}

static int each_thread(
	pid_t pid, int (*fn)(void *ctx, const char *task, struct err *e), void *ctx, struct err *e)
{
	auto_free char *path = mem_printf("/proc/%d/task", (int)pid);
	DIR *d = opendir(path);
	struct dirent *entry;
	int rc = 0;

	if (!d)
		return err_sys(e, "%s", path);
	while (rc == 0 && (entry = readdir(d))) {
		auto_free char *task = mem_printf("%s/%s", path, entry->d_name);

		if (entry->d_name[0] != '.')
			rc = fn(ctx, task, e);
	}
	closedir(d);
	return rc;
}

static int family_of(void *ctx, const char *task, struct err *e)
{
	return add_children(ctx, task, e);
}

/* ---- one thread ---- */

/* The number behind "NAME:\t" in /proc/PID/status; -1 without. */
static int64_t status_number(const char *text, const char *name, int base)
{
	auto_free char *head = mem_printf("\n%s:\t", name);
	const char *p = strstr(text, head);

	return p ? (int64_t)strtoll(p + strlen(head), NULL, base) : -1;
}

static int check_status(const struct checking *c, const char *task, bool nested, struct err *e)
{
	static const char *const sets[] = {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", NULL};
	const struct spec_process *p = &c->s->process;
	uint64_t may = p->caps.bounding | p->caps.permitted | p->caps.effective |
		       p->caps.inheritable | p->caps.ambient;
	auto_buf struct buf text = BUF_INIT(64 << 10);
	auto_free char *path = mem_printf("%s/status", task);

	if (file_read(AT_FDCWD, path, &text, e) < 0)
		return -1;
	if (c->s->has_seccomp && status_number(text.data, "Seccomp", 10) != 2)
		return err_set(e, ERR_DENIED, "a process without the config's seccomp filter");
	if (p->no_new_privs && status_number(text.data, "NoNewPrivs", 10) != 1)
		return err_set(e, ERR_DENIED, "a process without no_new_privs");
	/* Those of a user namespace that it has made inside mean nothing outside of that. */
	for (size_t i = 0; !nested && sets[i]; i++)
		if ((uint64_t)status_number(text.data, sets[i], 16) & ~may)
			return err_set(e, ERR_DENIED,
				"a process has capabilities that the config does not grant");
	return 0;
}

/* What the config wants read-only at this place, is. */
static int check_flags(
	const struct checking *c, const char *place, const char *flags, struct err *e)
{
	bool ro = str_eq(flags, "ro") || str_starts(flags, "ro,"), wanted = false;

	if (str_eq(place, "/"))
		wanted = c->s->root_readonly;
	for (size_t i = 0; i < c->s->nmounts; i++) {
		const struct spec_mount *m = &c->s->mounts[i];

		for (size_t k = 0; str_eq(m->destination, place) && k < m->options.n; k++)
			wanted = wanted || str_eq(m->options.v[k], "ro");
	}
	if (wanted && !ro)
		return err_set(e, ERR_DENIED, "%.200s is not read-only", place);
	return 0;
}

/* A line: ID PARENT MAJOR:MINOR ROOT PLACE OPTIONS... - TYPE SOURCE ... */
static int check_mount(const struct checking *c, char *line, struct err *e)
{
	static const char *const kernel[] = {"proc", "sysfs", "tmpfs", "devpts", "mqueue",
		"devtmpfs", "cgroup", "cgroup2", NULL};
	char *type = strstr(line, " - "), *field[6] = {NULL};
	size_t i = 0, n = strlen(c->cgroup->place.path);

	if (!type)
		return 0;
	type[0] = '\0';
	type += strlen(" - ");
	type[strcspn(type, " ")] = '\0';
	for (size_t f = 0; f < 6; f++)
		field[f] = strsep(&line, " ");
	if (!field[5])
		return err_set(e, ERR_CORRUPT, "mountinfo is cut off");
	if (check_flags(c, field[4], field[5], e) < 0)
		return -1;
	for (i = 0; i < c->ndevs; i++)
		if (str_eq(c->devs[i], field[2]))
			return 0;
	for (i = 0; kernel[i] && !str_eq(kernel[i], type); i++)
		;
	if (!kernel[i])
		return err_set(e, ERR_DENIED, "a mount that is not the config's: %s on %.200s",
			type, field[4]);
	if (str_eq(type, "devtmpfs") && str_eq(field[3], "/"))
		return err_set(e, ERR_DENIED, "the host's devices on %.200s", field[4]);
	if (str_starts(type, "cgroup") && (strncmp(field[3], c->cgroup->place.path, n) != 0 ||
						  (field[3][n] && field[3][n] != '/')))
		return err_set(e, ERR_DENIED, "cgroups of others on %.200s", field[4]);
	return 0;
}

static int check_mounts(const struct checking *c, const char *task, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(TEXT_MAX);
	auto_free char *path = mem_printf("%s/mountinfo", task);

	if (file_read(AT_FDCWD, path, &text, e) < 0)
		return -1;
	for (char *rest = text.data, *line; (line = strsep(&rest, "\n")) != NULL;)
		if (check_mount(c, line, e) < 0)
			return -1;
	return 0;
}

static int check_thread(void *ctx, const char *task, struct err *e)
{
	struct checking *c = ctx;
	bool nested = false;

	for (enum ns_kind k = 0; k < NS_KINDS; k++) {
		auto_free char *path = mem_printf("%s/ns/%s", task, ns_files[k]);
		bool fresh = spec_new_ns(c->s, k);
		struct stat st;

		if (!c->ours[k])
			continue;
		if (stat(path, &st) < 0)
			return err_sys(e, "%s", path);
		if (fresh ? st.st_ino == c->ours[k] : c->theirs[k] && st.st_ino != c->theirs[k])
			return err_set(
				e, ERR_DENIED, "a process in another %s namespace", ns_name(k));
		if (k == NS_USER)
			nested = st.st_ino != c->user;
		if (k != NS_MOUNT || st.st_ino == c->checked)
			continue;
		if (check_mounts(c, task, e) < 0)
			return -1;
		c->checked = st.st_ino;
	}
	return check_status(c, task, nested, e);
}

/* ---- all ---- */

static int check_process(struct checking *c, pid_t pid, struct err *e)
{
	if (!bsearch(&pid, c->members, c->nmembers, sizeof(pid), by_number))
		return err_set(e, ERR_DENIED, "a process outside of the container's cgroup");
	return each_thread(pid, check_thread, c, e);
}

static int check_all(struct checking *c, struct pids *all, struct err *e)
{
	if (c->cgroup->ndirs && cgroup_pids(c->cgroup, &c->members, &c->nmembers, e) < 0)
		return -1;
	if (c->nmembers)
		qsort(c->members, c->nmembers, sizeof(*c->members), by_number);
	/* Grows while it is walked through. */
	for (size_t i = 0; i < all->n; i++)
		if (each_thread(all->v[i], family_of, all, e) < 0 ||
			check_process(c, all->v[i], e) < 0)
			return -1;
	return 0;
}

int restored_check(const struct spec *s, const char *rootfs, const char *bundle,
	const struct cgroup *cgroup, pid_t first, struct err *e)
{
	struct checking c = {.s = s, .cgroup = cgroup};
	struct pids all = {.n = 0};
	int rc = 0;

	mem_grow(&all.v, &all.cap, all.n);
	all.v[all.n++] = first;
	if (read_devices(&c, rootfs, bundle, e) < 0 || read_namespaces(&c, first, e) < 0 ||
		check_all(&c, &all, e) < 0)
		rc = err_ctx(e, "the images are refused");
	for (size_t i = 0; rc < 0 && i < all.n; i++)
		kill(all.v[i], SIGKILL); /* stopped, so the pids are theirs */
	free(all.v);
	free(c.members);
	free(c.devs);
	return rc;
}
