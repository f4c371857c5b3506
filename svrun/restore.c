#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "runtime/hooks.h"
#include "runtime/mount-point.h"
#include "runtime/ns.h"
#include "svrun/checkpoint.h"

enum { REQUEST_MAX = 1 << 20, DESCRIPTORS_MAX = 64 << 10 };
#define LOG "restore.log"

struct restoring {
	struct restore *r;
	struct cgroup cgroup;
	struct checkpoint_folders folders;
	struct buf *opts; /* until it is sent */
	bool checked;
};

/* ---- in criu's process, before it is criu ---- */

/* Version 1 by "tasks"; version 2 by the folder that others are cloned into. With systemd there is
 * no folder yet: it moves us. */
static int enter_cgroup(const struct cgroup *c, struct err *e)
{
	int dir = cgroup_clone_fd(c);

	if (dir < 0)
		return cgroup_join(c, e);
	auto_fd int fd = sys_openat(dir, "cgroup.procs", O_WRONLY, 0);
	if (fd < 0 || sys_write_all(fd, "0", 1) < 0)
		return err_sys(e, "enter the container's cgroup");
	return 0;
}

static bool starts_below(const char *path, const char *top)
{
	size_t n = strlen(top);

	return strncmp(path, top, n) == 0 && path[n] == '/';
}

/* Is it on a mount that criu makes or that comes from outside? Then the place is there already, or
 * not ours to make. */
static bool covered(const struct spec *s, const struct spec_mount *m)
{
	for (size_t i = 0; i < s->nmounts; i++)
		if (&s->mounts[i] != m && starts_below(m->destination, s->mounts[i].destination))
			return true;
	return false;
}

static int kind_of_bind(
	const struct spec_mount *m, int bundle, enum point_kind *kind, struct err *e)
{
	struct stat st;

	if (sys_fstatat(bundle, m->source, &st, 0) < 0)
		return err_sys(e, "mount %s: source %s", m->destination, m->source);
	*kind = S_ISDIR(st.st_mode) ? POINT_DIR : POINT_FILE;
	return 0;
}

/* A root that is another one than that which was saved may lack places to mount on. */
static int make_places(const struct restore *r, int root, struct err *e)
{
	struct own_mounts own = {.n = 0};
	auto_fd int bundle = sys_open(r->bundle, O_PATH | O_DIRECTORY, 0);

	if (bundle < 0)
		return err_sys(e, "bundle %s", r->bundle);
	if (own_mounts_add(&own, root, e) < 0)
		return -1;
	for (size_t i = 0; i < r->spec->nmounts; i++) {
		const struct spec_mount *m = &r->spec->mounts[i];
		enum point_kind kind = POINT_DIR;

		if (covered(r->spec, m))
			continue;
		if (checkpoint_is_bind(m) && kind_of_bind(m, bundle, &kind, e) < 0)
			return -1;
		auto_fd int at = mount_point(root, m->destination, kind, false, &own, e);
		if (at < 0)
			return err_ctx(e, "mount %s", m->destination);
	}
	return 0;
}

/* The folders again, at the same numbers, as this mount namespace has them: criu mounts in WORK. */
static int reopen_folders(const struct restoring *a, struct err *e)
{
	struct checkpoint_folders f;
	int rc = 0;

	if (checkpoint_folders(a->r->o, &f, e) < 0)
		return -1;
	if (sys_dup3(f.images, a->folders.images, O_CLOEXEC) < 0 ||
		sys_dup3(f.work, a->folders.work, O_CLOEXEC) < 0)
		rc = err_sys(e, "the folders for criu");
	checkpoint_folders_close(&f);
	return rc;
}

/* criu wants a root that is a mount point, below a folder that nothing covers: made in a mount
 * namespace of its own, so that the host never has it, whatever happens to us. */
static int enter(void *ctx, struct err *e)
{
	const struct restoring *a = ctx;
	const struct restore *r = a->r;

	if (enter_cgroup(&a->cgroup, e) < 0)
		return -1;
	if (unshare(CLONE_NEWNS) < 0 || sys_mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return err_sys(e, "a mount namespace for criu");
	/* Inherited: criu 3.17 does not save it. */
	if (r->spec->process.no_new_privs && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(e, "no_new_privs");
	if (reopen_folders(a, e) < 0)
		return -1;
	if (sys_mount(r->rootfs, r->mount_point, NULL, MS_BIND | MS_REC, NULL) < 0)
		return err_sys(e, "root %s", r->rootfs);
	auto_fd int root = sys_open(r->mount_point, O_PATH | O_DIRECTORY, 0);
	if (root < 0)
		return err_sys(e, "root %s", r->rootfs);
	return make_places(r, root, e);
}

/* The cgroups in the images are below another one; and they may be mounted. */
static void put_cgroups(const struct cgroup *c, struct buf *b)
{
	char path[PATH_MAX];

	if (c->place.path[0])
		criu_put_pair(b, CRIU_CGROUP_ROOT, NULL, c->place.path, 0);
	for (size_t i = 0; i < c->ndirs; i++) {
		auto_free char *name = mem_printf(CHECKPOINT_CGROUP "%s", c->dirs[i].hierarchy);

		if (checkpoint_path_of(c->dirs[i].dir, path))
			criu_put_pair(b, CRIU_EXT_MOUNT, name, path, 0);
	}
}

static int ready(void *ctx, pid_t pid, struct err *e)
{
	struct restoring *a = ctx;
	const struct spec_resources *limits = &a->r->spec->resources;

	if (cgroup_scope(&a->cgroup, pid, limits, e) < 0)
		return -1;
	put_cgroups(&a->cgroup, a->opts);
	return cgroup_limit(&a->cgroup, limits, e);
}

/* ---- on the way ---- */

static int run_hooks(const struct restore *r, pid_t pid, struct err *e)
{
	auto_free char *state = hook_state_text(r->spec, r->id, "creating", pid, r->bundle);

	if (hooks_run(r->spec, HOOK_PRESTART, state, e) < 0)
		return -1;
	return hooks_run(r->spec, HOOK_CREATE_RUNTIME, state, e);
}

static int note(void *ctx, const struct criu_note *n, struct err *e)
{
	struct restoring *a = ctx;
	struct restore *r = a->r;

	if (n->pid > 0)
		r->pid = n->pid;
	if (str_eq(n->script, "setup-namespaces"))
		return run_hooks(r, r->pid, e);
	if (str_eq(n->script, "orphan-pts-master") && n->fd >= 0) {
		sys_close_ref(&r->terminal);
		r->terminal = fcntl(n->fd, F_DUPFD_CLOEXEC, 3);
		return r->terminal < 0 ? err_sys(e, "the terminal's master") : 0;
	}
	if (str_eq(n->script, "pre-resume")) {
		a->checked = true;
		return restored_check(r->spec, r->rootfs, r->bundle, &a->cgroup, r->pid, e);
	}
	return checkpoint_note(r->o, n, e);
}

/* ---- the request ---- */

/* What criu gets open: folders, namespaces, the null device. */
struct files {
	int v[2 + 3 + NS_KINDS];
	size_t n;
};

static int put_file(
	struct files *f, const char *path, int flags, const char *key, struct buf *b, struct err *e)
{
	int fd = sys_open(path, flags, 0);

	if (fd < 0)
		return err_sys(e, "%s", path);
	criu_put_pair(b, CRIU_INHERIT_FD, key, NULL, CRIU_FIRST_FD + f->n);
	f->v[f->n++] = fd;
	return 0;
}

/* "pipe:[123]", and nothing else. */
static bool is_pipe(const char *s)
{
	uint64_t n;
	char number[24];
	int end = 0;

	return sscanf(s, "pipe:[%20[0-9]]%n", number, &end) == 1 && end && !s[end] &&
	       str_u64(number, UINT64_MAX, &n) == 0;
}

/* "file[18:4]": how checkpoint called the host's null device. */
static bool is_null(const char *s)
{
	char mount[20], inode[20];
	int end = 0;

	return sscanf(s, "file[%16[0-9a-f]:%16[0-9a-f]]%n", mount, inode, &end) == 2 && end &&
	       !s[end];
}

static int put_stream(unsigned i, const char *s, struct files *f, struct buf *b, struct err *e)
{
	if (is_pipe(s))
		criu_put_pair(b, CRIU_INHERIT_FD, s, NULL, i);
	/* criu takes the first letter for a slash. */
	return is_null(s) ? put_file(f, "/dev/null", O_RDWR, s + 1, b, e) : 0;
}

/* Pipes that were its standard streams become ours, and the host's null device the host's. */
static int put_streams(struct files *f, struct buf *b, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(DESCRIPTORS_MAX);
	auto_json json_t *all = NULL;

	if (file_read(f->v[0], CHECKPOINT_DESCRIPTORS, &text, e) < 0)
		return -1;
	all = json_parse(text.data ? text.data : "", text.len, e);
	if (!all)
		return err_ctx(e, CHECKPOINT_DESCRIPTORS);
	if (!json_is_array(all) || json_array_size(all) > 3)
		return err_set(
			e, ERR_CORRUPT, CHECKPOINT_DESCRIPTORS ": expected an array of at most 3");
	for (size_t i = 0; i < json_array_size(all); i++) {
		const char *s = json_string_value(json_array_get(all, i));

		if (!s)
			return err_set(e, ERR_CORRUPT, CHECKPOINT_DESCRIPTORS ": expected strings");
		if (put_stream((unsigned)i, s, f, b, e) < 0)
			return -1;
	}
	return 0;
}

/* Sources come from the config, and from what every container has: images name them only. */
static void put_mounts(const struct restore *r, struct buf *b)
{
	static const char *const devices[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random",
		"/dev/urandom", "/dev/tty", NULL};
	const struct spec *s = r->spec;

	for (size_t i = 0; i < s->nmounts; i++) {
		const struct spec_mount *m = &s->mounts[i];
		auto_free char *source = NULL;

		if (!checkpoint_is_bind(m))
			continue;
		source = m->source[0] == '/' ? mem_strdup(m->source)
					     : mem_printf("%s/%s", r->bundle, m->source);
		criu_put_pair(b, CRIU_EXT_MOUNT, m->destination, source, 0);
	}
	for (size_t i = 0; devices[i]; i++)
		criu_put_pair(b, CRIU_EXT_MOUNT, devices[i], devices[i], 0);
	for (size_t i = 0; i < s->ndevices; i++)
		criu_put_pair(b, CRIU_EXT_MOUNT, s->devices[i].path, s->devices[i].path, 0);
}

/* Namespaces of others. */
static int put_namespaces(const struct spec *s, struct buf *b, struct files *f, struct err *e)
{
	for (enum ns_kind k = 0; k < NS_KINDS; k++) {
		const char *path = s->namespaces[k].path, *key = checkpoint_ns_key(k);

		if (!path)
			continue;
		if (k == NS_CGROUP || k == NS_USER || k == NS_MOUNT)
			return err_set(e, ERR_UNSUPPORTED, "restoring into another's %s namespace",
				ns_name(k));
		if (!key) {
			criu_put_pair(b, CRIU_JOIN_NS, ns_name(k), path, 0);
			continue;
		}
		if (put_file(f, path, O_RDONLY, key, b, e) < 0)
			return err_ctx(e, "%s namespace", ns_name(k));
	}
	return 0;
}

static void put_options(const struct restore *r, struct buf *b)
{
	criu_put_int(b, CRIU_RESTORE_SIBLING, true);
	criu_put_int(b, CRIU_EVASIVE_DEVICES, true);
	/* Its newer way of making mounts loses flags of those that have one source, "ro" too. */
	criu_put_int(b, CRIU_MOUNTS_COMPAT, true);
	criu_put_str(b, CRIU_ROOT, r->mount_point);
	if (r->o->lsm_profile)
		criu_put_str(b, CRIU_LSM_PROFILE, r->o->lsm_profile);
	if (r->o->lsm_mount_context)
		criu_put_str(b, CRIU_LSM_MOUNT_CONTEXT, r->o->lsm_mount_context);
}

static int ask(struct restoring *a, struct err *e)
{
	struct restore *r = a->r;
	struct files files = {.v = {a->folders.images, a->folders.work}, .n = 2};
	auto_buf struct buf opts = BUF_INIT(REQUEST_MAX);
	struct criu_options run = {
		.program = r->o->criu,
		.kind = CRIU_RESTORE,
		.opts = &opts,
		.log_dir = a->folders.work,
		.log = LOG,
		.stdio = {r->stdio[0], r->stdio[1], r->stdio[2]},
		.fds = files.v,
		.enter = enter,
		.ready = ready,
		.note = note,
		.ctx = a,
	};
	int rc;

	a->opts = &opts;
	checkpoint_common(r->o, LOG, &opts);
	put_options(r, &opts);
	put_mounts(r, &opts);
	rc = put_streams(&files, &opts, e);
	if (rc == 0)
		rc = put_namespaces(r->spec, &opts, &files, e);
	run.nfds = files.n;
	if (rc == 0)
		rc = criu_run(&run, &r->pid, e);
	for (size_t i = 2; i < files.n; i++)
		sys_close_ref(&files.v[i]);
	return rc;
}

int checkpoint_restore(struct restore *r, struct err *e)
{
	struct restoring a = {.r = r};
	struct err late = {0};
	int rc;

	r->pid = 0;
	r->terminal = -1;
	if (cgroup_create(&a.cgroup, &r->place, &r->spec->resources, e) < 0)
		return -1;
	r->place = a.cgroup.place;
	rc = checkpoint_folders(r->o, &a.folders, e);
	if (rc == 0) {
		rc = ask(&a, e);
		checkpoint_folders_close(&a.folders);
	}
	if (rc == 0 && !a.checked) {
		rc = err_set(e, ERR_SYSTEM, "criu restored without asking");
		if (r->pid > 0)
			kill(r->pid, SIGKILL);
	}
	r->place = a.cgroup.place;
	cgroup_fini(&a.cgroup);
	if (rc == 0)
		return 0;
	sys_close_ref(&r->terminal);
	if (cgroup_destroy(&r->place, &late) < 0)
		warn("%s", late.text);
	return -1;
}
