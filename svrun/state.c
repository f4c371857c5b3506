#include "svrun/state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "runtime/door.h"
#include "runtime/cgroup-file.h"

enum {
	STATE_TEXT_MAX = 16 << 20,
	FILTER_MAX = 64 << 10,
	CREATE_TRIES = 16,
	LOCK_MS = 10000 /* who works on a container is done long before */
};

static const char state_file[] = "state.json", config_file[] = "config.json",
		  filter_file[] = "filter";

/* ---- the root ---- */

char *state_default_root(struct err *e)
{
	const char *run = getenv("XDG_RUNTIME_DIR");

	/* Engines that run without root call us as root of a user namespace: /run is not theirs. */
	if (run && run[0] == '/' && !cgroup_privileged())
		return mem_printf("%s/svrun-oci", run);
	if (geteuid() == 0)
		return mem_strdup("/run/svrun-oci");
	err_set(e, ERR_USAGE, "XDG_RUNTIME_DIR is not set");
	err_hint(e, "set it, or say where the state is kept: --root DIR");
	return NULL;
}

int state_root(const char *path, struct err *e)
{
	struct stat st;

	if (sys_mkdir_p(AT_FDCWD, path, 0700) < 0)
		return err_sys(e, "make %s", path);
	/* Who could put a link, or a folder, of his own there would tell us what to kill. */
	auto_fd int fd = sys_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0 || sys_fstat(fd, &st) < 0)
		return err_sys(e, "open %s", path);
	if (st.st_uid != geteuid())
		return err_set(e, ERR_DENIED, "%s belongs to user %u, not to us", path, st.st_uid);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return err_set(e, ERR_DENIED, "%s can be written to by others", path);
	return steal_fd(&fd);
}

int state_check_id(const char *id, struct err *e)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_+-.";
	size_t n = strlen(id);

	if (n > 0 && n <= STATE_ID_MAX && strspn(id, letters) == n && !str_eq(id, ".") &&
		!str_eq(id, "..") && !str_eq(id, STATE_FILTERS))
		return 0;
	err_set(e, ERR_USAGE, "'%.100s': invalid container ID format", id);
	return err_hint(e, "letters, digits and _ + - . make an id");
}

/* ---- folders ---- */

static int not_found(const char *id, struct err *e)
{
	return err_set(e, ERR_NOT_FOUND, "%s: container does not exist", id);
}

int state_lock(struct state *s, struct err *e)
{
	static const struct timespec pause = {.tv_nsec = 10000000};
	double until = sys_now_ms() + LOCK_MS;
	struct stat st;

	while (sys_flock(s->dir, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK)
			return err_sys(e, "lock container %s", s->id);
		if (sys_now_ms() > until) {
			err_set(e, ERR_EXISTS, "%s: another svrun-oci works on the container",
				s->id);
			return err_hint(e, "it may wait for a hook, or a console socket: when it "
					   "is ended, delete --force removes what it made");
		}
		nanosleep(&pause, NULL);
	}
	if (sys_fstat(s->dir, &st) < 0)
		return err_sys(e, "lock container %s", s->id);
	s->locked = true;
	return st.st_nlink > 0;
}

void state_unlock(struct state *s)
{
	if (s->locked)
		sys_flock(s->dir, LOCK_UN);
	s->locked = false;
}

static int open_dir(struct state *s, int root, const char *id)
{
	s->dir = sys_openat(root, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	return s->dir;
}

static void init(struct state *s, const char *id)
{
	*s = (struct state){.root = -1, .dir = -1, .id = mem_strdup(id)};
}

/* Make the folder and lock it. 0: a `delete` was faster, between the two. */
static int make_locked(struct state *s, int root, const char *id, struct err *e)
{
	if (sys_mkdirat(root, id, 0700) < 0) {
		if (errno == EEXIST) {
			err_set(e, ERR_EXISTS, "%s: container with given ID already exists", id);
			return err_hint(e, "delete it first, or use another name");
		}
		return err_sys(e, "make the folder of container %s", id);
	}
	if (open_dir(s, root, id) < 0)
		return errno == ENOENT ? 0 : err_sys(e, "open the folder of container %s", id);
	return state_lock(s, e);
}

int state_create(struct state *s, int root, const char *id, struct err *e)
{
	struct timespec now;
	int rc = 0;

	init(s, id);
	rc = state_check_id(id, e);
	for (int tries = 0; rc == 0 && tries < CREATE_TRIES; tries++) {
		sys_close_ref(&s->dir);
		rc = make_locked(s, root, id, e);
	}
	if (rc > 0 && (s->root = fcntl(root, F_DUPFD_CLOEXEC, 3)) < 0) {
		rc = err_sys(e, "open the folder of container %s", id);
		sys_remove_tree(root, id);
	}
	if (rc <= 0) {
		state_close(s);
		return rc < 0 ? -1 : err_set(e, ERR_SYSTEM, "container %s: removed at once", id);
	}
	clock_gettime(CLOCK_REALTIME, &now);
	s->created = now.tv_sec;
	s->created_nanosecs = (uint32_t)now.tv_nsec;
	s->owner = geteuid();
	return 0;
}

void state_close(struct state *s)
{
	sys_close_ref(&s->dir);
	sys_close_ref(&s->root);
	free(s->id);
	free(s->bundle);
	free(s->rootfs);
	free(s->console);
	json_decref(s->annotations);
	*s = (struct state){.root = -1, .dir = -1};
}

int state_remove(const struct state *s, struct err *e)
{
	if (sys_remove_tree(s->root, s->id) < 0)
		return err_sys(e, "remove the folder of container %s", s->id);
	return 0;
}

/* ---- files in the folder ---- */

/* Replaced at once. Not synced: no container outlives the boot that it was started in. */
static int put_file(const struct state *s, const char *name, const char *p, size_t n, struct err *e)
{
	char tmp[32];

	snprintf(tmp, sizeof(tmp), "%s.new", name);
	auto_fd int fd = sys_openat(s->dir, tmp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
	if (fd < 0 || sys_write_all(fd, p, n) < 0 || sys_renameat(s->dir, tmp, s->dir, name) < 0) {
		err_sys(e, "container %s: write %s", s->id, name);
		return sys_hint_space(e, s->dir, n);
	}
	return 0;
}

int state_write(const struct state *s, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(STATE_TEXT_MAX);

	state_text(s, &text);
	return put_file(s, state_file, text.data, text.len, e);
}

/* What cannot be read was written by a runtime that died at once: there is nothing but a folder. */
static int read_state(struct state *s, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(STATE_TEXT_MAX);
	struct err why = {0};

	if (file_read(s->dir, state_file, &text, &why) < 0) {
		if (why.sys == 0 || why.sys == ENOENT)
			return 0;
		if (e)
			*e = why;
		return err_ctx(e, "container %s", s->id);
	}
	if (state_parse(s, text.data ? text.data : "", text.len, NULL) < 0) {
		s->pid = 0;
		s->cgroup = (struct cgroup_place){.may_lack = true};
	}
	return 0;
}

int state_open(struct state *s, int root, const char *id, bool locked, struct err *e)
{
	int rc;

	init(s, id);
	if (state_check_id(id, e) < 0) {
		state_close(s);
		return -1;
	}
	rc = open_dir(s, root, id);
	if (rc < 0)
		rc = errno == ENOENT ? not_found(id, e) : err_sys(e, "container %s", id);
	if (rc >= 0 && locked) {
		rc = state_lock(s, e);
		if (rc == 0)
			rc = not_found(id, e);
	}
	if (rc >= 0 && (s->root = fcntl(root, F_DUPFD_CLOEXEC, 3)) < 0)
		rc = err_sys(e, "container %s", id);
	if (rc >= 0)
		rc = read_state(s, e);
	if (rc < 0)
		state_close(s);
	return rc < 0 ? -1 : 0;
}

/* A copy of the object at `key` of `parent`, in its place: shallow copies all the way down leave
 * the document that they are made of as it is. */
static json_t *own_member(json_t *parent, const char *key)
{
	json_t *copy = json_copy(json_object_get(parent, key));

	json_object_set_new(parent, key, copy);
	return copy;
}

int state_keep_config(const struct state *s, const struct spec *spec, struct err *e)
{
	auto_json json_t *config = json_copy(spec->json);
	auto_free char *text = NULL;
	size_t n;

	if (spec->has_seccomp)
		json_object_del(own_member(own_member(config, "linux"), "seccomp"), "syscalls");
	text = json_dumps(config, JSON_COMPACT);
	n = text ? strlen(text) : 0;
	/* Numbers may be longer than they were written. */
	if (!text || n > SPEC_MAX)
		return err_set(e, ERR_CORRUPT, "%s: more than %d bytes", config_file, SPEC_MAX);
	return put_file(s, config_file, text, n, e);
}

int state_keep_filter(const struct state *s, const struct seccomp_prog *p, struct err *e)
{
	auto_buf struct buf bytes;

	seccomp_pack(p, &bytes);
	return put_file(s, filter_file, bytes.data, bytes.len, e);
}

int state_config(const struct state *s, struct spec *spec, struct err *e)
{
	return spec_load(spec, s->dir, config_file, e);
}

int state_filter(const struct state *s, struct seccomp_prog *p, struct err *e)
{
	auto_buf struct buf bytes = BUF_INIT(FILTER_MAX);

	if (file_read(s->dir, filter_file, &bytes, e) < 0)
		return -1;
	return seccomp_unpack(p, bytes.data ? bytes.data : "", bytes.len, e);
}

/* ---- the process ---- */

/* State letter and start time of /proc/PID/stat; -1 when there is no such process. The name in it,
 * in brackets, may hold anything. */
static int read_stat(pid_t pid, char *letter, uint64_t *started)
{
	enum { STATE_FIELD = 3, STARTED_FIELD = 22 };
	auto_buf struct buf text = BUF_INIT(4096);
	char path[32], *p, *end;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (file_read(AT_FDCWD, path, &text, NULL) < 0)
		return -1;
	p = strrchr(text.data, ')');
	if (!p || p[1] != ' ')
		return -1;
	p += 2;
	*letter = *p;
	for (int field = STATE_FIELD; field < STARTED_FIELD; field++) {
		p = strchr(p, ' ');
		if (!p)
			return -1;
		p++;
	}
	end = p + strcspn(p, " ");
	*end = '\0';
	return str_u64(p, UINT64_MAX, started);
}

int state_set_process(struct state *s, pid_t pid, struct err *e)
{
	char letter;

	if (read_stat(pid, &letter, &s->started) < 0)
		return err_set(e, ERR_SYSTEM, "process %d has ended", (int)pid);
	s->pid = pid;
	return 0;
}

int state_pidfd(const struct state *s)
{
	uint64_t started;
	char letter;
	int fd;

	errno = ESRCH;
	if (s->pid <= 0)
		return -1;
	fd = (int)syscall(SYS_pidfd_open, s->pid, 0);
	if (fd < 0) {
		/* What older kernels say of one that is just being reaped. */
		if (errno == EINVAL)
			errno = ESRCH;
		return -1;
	}
	/* Read after the descriptor was had: what it says is of the same process, or of none. */
	if (read_stat(s->pid, &letter, &started) == 0 && started == s->started && letter != 'Z' &&
		letter != 'X')
		return fd;
	close(fd);
	errno = ESRCH;
	return -1;
}

/* Is somebody making it now? Not when we hold the lock, or could. */
static bool in_the_making(const struct state *s)
{
	if (s->locked || sys_flock(s->dir, LOCK_SH | LOCK_NB) < 0)
		return !s->locked;
	sys_flock(s->dir, LOCK_UN);
	return false;
}

static int look_frozen(const struct state *s, bool thaw, struct err *e)
{
	struct cgroup c;
	int rc;

	if (cgroup_open(&c, &s->cgroup, "freezer", e) < 0)
		return -1;
	rc = c.ndirs ? cgroup_frozen(&c, e) : 0;
	if (rc > 0 && thaw && cgroup_freeze(&c, false, e) < 0)
		rc = -1;
	cgroup_fini(&c);
	return rc;
}

int state_frozen(const struct state *s, bool thaw, struct err *e)
{
	struct err why = {0};
	int rc = 0;

	if (s->cgroup.path[0] || s->cgroup.unit[0])
		rc = look_frozen(s, thaw, &why);
	if (rc < 0 && (why.sys == ENOENT || why.sys == ENODEV))
		return 0;
	if (rc < 0 && e)
		*e = why;
	return rc;
}

/* The door goes when the container is started; what a `start` that was killed has left of it opens
 * to nobody. */
static bool waits_at_door(const struct state *s)
{
	return faccessat(s->dir, STATE_DOOR, F_OK, 0) == 0 &&
	       (door_is_open(s->dir, STATE_DOOR) || in_the_making(s));
}

int state_status(const struct state *s, enum state_status *status, struct err *e)
{
	auto_fd int fd = state_pidfd(s);
	int frozen;

	if (fd < 0) {
		if (errno != ESRCH)
			return err_sys(e, "container %s: process %d", s->id, (int)s->pid);
		*status = s->pid == 0 && in_the_making(s) ? STATE_CREATING : STATE_STOPPED;
		return 0;
	}
	/* A created one can be paused, too, and does not answer at its door then. */
	frozen = state_frozen(s, false, e);
	if (frozen > 0)
		*status = STATE_PAUSED;
	else
		*status = waits_at_door(s) ? STATE_CREATED : STATE_RUNNING;
	return frozen < 0 ? err_ctx(e, "container %s", s->id) : 0;
}

int state_close_door(const struct state *s, struct err *e)
{
	if (sys_unlinkat(s->dir, STATE_DOOR, 0) < 0 && errno != ENOENT)
		return err_sys(e, "container %s: remove its door", s->id);
	return 0;
}

const char *state_status_name(enum state_status status)
{
	static const char *const names[] = {"creating", "created", "running", "paused", "stopped"};

	return names[status];
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int state_list(int root, char ***ids, size_t *n, struct err *e)
{
	int fd = sys_openat(root, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *d;
	size_t cap = 0;

	*ids = NULL;
	*n = 0;
	if (!dir) {
		err_sys(e, "list containers");
		sys_close_ref(&fd);
		return -1;
	}
	while ((d = readdir(dir))) {
		if ((d->d_type != DT_DIR && d->d_type != DT_UNKNOWN) ||
			state_check_id(d->d_name, NULL) < 0)
			continue;
		mem_grow(ids, &cap, *n);
		(*ids)[(*n)++] = mem_strdup(d->d_name);
	}
	closedir(dir);
	if (*n)
		qsort(*ids, *n, sizeof(**ids), by_name);
	return 0;
}
