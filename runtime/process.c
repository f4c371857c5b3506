#include "runtime/process.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/keyctl.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "runtime/idmap.h"
#include "runtime/lsm.h"
#include "runtime/passwd.h"
#include "runtime/procfs.h"
#include "runtime/rootfs.h"
#include "runtime/sched.h"

static const char default_path[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

static void print_limit(char *out, size_t size, rlim_t v)
{
	if (v == RLIM_INFINITY)
		snprintf(out, size, "unlimited");
	else
		snprintf(out, size, "%llu", (unsigned long long)v);
}

int process_rlimit(const struct spec_rlimit *r, struct err *e)
{
	struct rlimit want = {r->soft, r->hard}, now;
	char asked[24], have[24];

	if (setrlimit((__rlimit_resource_t)r->resource, &want) == 0)
		return 0;
	if (errno != EPERM || getrlimit((__rlimit_resource_t)r->resource, &now) < 0)
		return err_sys(e, "%s", r->name);
	print_limit(asked, sizeof(asked), r->hard);
	print_limit(have, sizeof(have), now.rlim_max);
	err_set(e, ERR_DENIED, "%s: cannot raise the hard limit to %s", r->name, asked);
	return err_hint(
		e, "this host allows at most %s to a process without CAP_SYS_RESOURCE", have);
}

static const char score_file[] = "self/oom_score_adj";

int process_score(const struct spec_process *p, char before[PROCESS_SCORE_SIZE], struct err *e)
{
	char want[PROCESS_SCORE_SIZE];

	before[0] = '\0';
	if (!p->oom_score_adj.set)
		return 0;
	auto_fd int proc = procfs_host(e);
	if (proc < 0 || procfs_read(proc, score_file, before, PROCESS_SCORE_SIZE, e) < 0)
		return -1;
	snprintf(want, sizeof(want), "%d", (int)p->oom_score_adj.v);
	/* Who may not lower it may still ask for what it is. */
	if (str_eq(before, want)) {
		before[0] = '\0';
		return 0;
	}
	return procfs_write(proc, score_file, want, e) < 0 ? err_ctx(e, "process.oomScoreAdj") : 0;
}

int process_score_back(const char *before, struct err *e)
{
	if (!*before)
		return 0;
	auto_fd int proc = procfs_host(e);
	return proc < 0 ? -1 : procfs_write(proc, score_file, before, e);
}

static int set_limits(const struct spec_process *p, struct err *e)
{
	for (size_t i = 0; i < p->nrlimits; i++)
		if (process_rlimit(&p->rlimits[i], e) < 0)
			return -1;
	return 0;
}

/* In a user namespace whose owner may not map groups, the kernel refuses setgroups; the process
 * then keeps the runtime's own, which it cannot use for more than the caller could. */
static bool groups_are_denied(int proc)
{
	char text[16];

	return procfs_read(proc, "self/setgroups", text, sizeof(text), NULL) == 0 &&
	       str_eq(text, "deny");
}

static int set_groups(const struct spec_user *u, int proc, struct err *e)
{
	/* Exactly the config's: what svrun was started with must not stay (CVE-2022-2989). */
	if (setgroups(u->ngroups, u->groups) == 0)
		return 0;
	if (errno == EPERM && groups_are_denied(proc)) {
		if (u->ngroups == 0)
			return 0;
		err_set(e, ERR_DENIED, "supplementary groups: this user namespace has none");
		return err_hint(e, "more ids can be granted in /etc/subuid and /etc/subgid");
	}
	return err_sys(e, "supplementary groups");
}

/* The user's file permissions apply from here on, but no capability is lost yet. */
static int set_user(const struct spec_user *u, int proc, struct err *e)
{
	gid_t gid = u->gid;
	uid_t uid = u->uid;

	if (set_groups(u, proc, e) < 0)
		return -1;
	if (syscall(SYS_setresgid, gid, gid, gid) < 0)
		return err_sys(e, "group %u", gid);
	/* The capability sets come right after, in full: keep the permitted ones until then. */
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
		return err_sys(e, "keep capabilities");
	if (syscall(SYS_setresuid, uid, uid, uid) < 0)
		return err_sys(e, "user %u", uid);
	if (prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) < 0)
		return err_sys(e, "keep capabilities");
	return 0;
}

int process_follow(int alive, struct err *e)
{
	struct pollfd p = {.fd = alive, .events = POLLIN};

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return err_sys(e, "PR_SET_PDEATHSIG");
	if (poll(&p, 1, 0) > 0 && p.revents & (POLLHUP | POLLERR))
		return err_set(e, ERR_SYSTEM, "svrun is gone");
	return 0;
}

int process_session(bool keep_keyring, struct err *e)
{
	if (setsid() < 0)
		return err_sys(e, "setsid");
	if (!keep_keyring && syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 &&
		errno != ENOSYS)
		return err_sys(e, "new session keyring");
	return 0;
}

int process_unfollow(struct err *e)
{
	if (prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0) < 0)
		return err_sys(e, "PR_SET_PDEATHSIG");
	return 0;
}

/* ---- CAP_MKNOD ---- */

/* What every container may use. tun is in the rules that older engines give to all of theirs. */
static const struct {
	int64_t major, minor; /* -1: all */
} common_devices[] = {
	{1, 3}, {1, 5}, {1, 7}, {1, 8}, {1, 9}, {5, 0}, {5, 1}, {5, 2}, {136, -1}, {10, 200}};

static bool is_common(int type, const struct opt_i64 *major, const struct opt_i64 *minor)
{
	for (size_t i = 0; i < sizeof(common_devices) / sizeof(common_devices[0]); i++)
		if (type == 'c' && major->set && major->v == common_devices[i].major &&
			(common_devices[i].minor < 0 ||
				(minor->set && minor->v == common_devices[i].minor)))
			return true;
	return false;
}

bool process_withholds_mknod(const struct spec *s)
{
	bool granted = false;

	for (size_t i = 0; i < s->ndevices; i++) {
		const struct spec_device *d = &s->devices[i];
		struct opt_i64 major = {true, d->major}, minor = {true, d->minor};

		if (d->type != S_IFIFO &&
			!is_common(d->type == S_IFBLK ? 'b' : 'c', &major, &minor))
			granted = true;
	}
	for (size_t i = 0; i < s->resources.ndevices; i++) {
		const struct spec_device_rule *r = &s->resources.devices[i];

		if (!r->allow || !(r->access & (DEVICE_READ | DEVICE_WRITE)))
			continue; /* to make a node opens nothing */
		if (r->type == 'a' && !r->major.set && !r->minor.set)
			return false;
		if (!is_common(r->type, &r->major, &r->minor))
			granted = true;
	}
	return granted;
}

static struct caps caps_of(const struct process_confinement *c)
{
	struct caps caps = c->process->caps;
	uint64_t mknod = UINT64_C(1) << CAP_MKNOD;

	if (process_withholds_mknod(c->spec)) {
		caps.bounding &= ~mknod;
		caps.permitted &= ~mknod;
		caps.effective &= ~mknod;
		caps.inheritable &= ~mknod;
		caps.ambient &= ~mknod;
	}
	return caps;
}

/* ---- in their order ---- */

static int install_filter(const struct process_confinement *c, struct err *e)
{
	auto_fd int listener = -1;

	if (!c->filter)
		return 0;
	if (c->filter->notifies && !c->listener)
		return err_set(e, ERR_UNSUPPORTED, "seccomp: nobody takes its notifications");
	if (seccomp_install(c->filter, &listener, e) < 0)
		return -1;
	return listener < 0 ? 0 : c->listener(c->ctx, listener, e);
}

/* First with all rights, then with those of the user: a network file system may know root as
 * nobody. */
static int enter_cwd(const struct process_confinement *c, bool *entered, struct err *e)
{
	struct err denied = {0};

	*entered = rootfs_chdir(c->process->cwd, &denied) == 0;
	if (*entered || denied.sys == EACCES)
		return 0;
	if (e)
		*e = denied;
	return -1;
}

int process_confine(const struct process_confinement *c, struct err *e)
{
	const struct spec_process *p = c->process;
	struct caps caps = caps_of(c);
	bool entered;

	/* All that may need more rights than the process will have: CAP_SYS_NICE, CAP_SYS_RESOURCE,
	 * CAP_DAC_OVERRIDE on the way to the working directory. */
	if (sched_apply(c->spec, p, e) < 0 || set_limits(p, e) < 0 ||
		lsm_apply(p, c->proc, e) < 0 || enter_cwd(c, &entered, e) < 0)
		return -1;
	umask(p->user.umask.set ? (mode_t)p->user.umask.v : 022);
	/* Without no_new_privs a filter needs CAP_SYS_ADMIN, which is about to go. */
	if (!p->no_new_privs && install_filter(c, e) < 0)
		return -1;
	/* The bounding set needs CAP_SETPCAP; the user change would empty the other sets. */
	if (caps_apply_bounding(&caps, e) < 0 || set_user(&p->user, c->proc, e) < 0)
		return -1;
	if (!entered && rootfs_chdir(p->cwd, e) < 0)
		return -1;
	if (caps_apply(&caps, e) < 0)
		return -1;
	if (p->no_new_privs && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(e, "no_new_privs");
	/* A change of user has cleared it. */
	if (c->follow >= 0 && process_follow(c->follow, e) < 0)
		return -1;
	return p->no_new_privs ? install_filter(c, e) : 0;
}

void process_reset_signals(void)
{
	static const unsigned long by_default[4] = {0}; /* the kernel's struct sigaction */
	sigset_t none;

	/* libc keeps two signals for itself, and would leave them ignored. */
	for (int sig = 1; sig <= _NSIG - 1; sig++)
		syscall(SYS_rt_sigaction, sig, by_default, NULL, _NSIG / 8);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* ---- descriptors ---- */

int process_close_others(unsigned preserve, int **keep, size_t nkeep, struct err *e)
{
	int first, next;

	if (preserve > INT_MAX / 2)
		return err_set(e, ERR_USAGE, "%u descriptors to preserve", preserve);
	next = first = 3 + (int)preserve;
	/* Above all places that they go to, and then down: none may be written over before it has
	 * been moved. */
	for (size_t i = 0; i < nkeep; i++)
		if (*keep[i] >= 0) {
			*keep[i] = fcntl(*keep[i], F_DUPFD_CLOEXEC, first + (int)nkeep);
			if (*keep[i] < 0)
				return err_sys(e, "move a descriptor");
		}
	for (size_t i = 0; i < nkeep; i++)
		if (*keep[i] >= 0) {
			if (sys_dup3(*keep[i], next, O_CLOEXEC) < 0)
				return err_sys(e, "move a descriptor");
			*keep[i] = next++;
		}
	if (sys_close_range((unsigned)next, ~0U, 0) < 0)
		return err_sys(e, "close_range");
	return 0;
}

/* A pipe of another user can't be opened again through /dev/stdout. Pipes only: chown of a file or
 * of a terminal would reach out of the container. */
static void give_pipe(int fd, const struct spec_user *u)
{
	struct statfs fs;

	if (u->uid && fstatfs(fd, &fs) == 0 && fs.f_type == PIPEFS_MAGIC &&
		fchown(fd, u->uid, u->gid) < 0)
		return; /* it can be used all the same, only not opened again */
}

int process_streams(const int fds[3], const struct spec_user *u, struct err *e)
{
	int copy[3];

	/* Copies first: any of the three may stand where another one goes. */
	for (int i = 0; i < 3; i++) {
		copy[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
		if (copy[i] < 0)
			return err_sys(e, "standard stream %d", i);
	}
	for (int i = 0; i < 3; i++) {
		if (sys_dup3(copy[i], i, 0) < 0)
			return err_sys(e, "standard stream %d", i);
		close(copy[i]);
		give_pipe(i, u);
	}
	return 0;
}

int process_terminal(int slave, const struct spec_process *p, struct err *e)
{
	struct winsize size = {
		.ws_row = (unsigned short)p->rows, .ws_col = (unsigned short)p->columns};

	if (p->rows && ioctl(slave, TIOCSWINSZ, &size) < 0)
		return err_sys(e, "terminal size");
	if (ioctl(slave, TIOCSCTTY, 0) < 0)
		return err_sys(e, "controlling terminal");
	if (fchown(slave, p->user.uid, (gid_t)-1) < 0)
		return err_sys(e, "owner of the terminal");
	return 0;
}

int process_become_root(const struct spec *s, struct err *e)
{
	bool mapped = !s->uids.n || idmap_host(&s->uids, 0) >= 0;

	if (!spec_has_ns(s, NS_USER) || !mapped)
		return 0;
	/* Where the ids were mapped without root the kernel forbids it; there is none to drop then
	 * that our user does not have anyway. */
	if (setgroups(0, NULL) < 0 && errno != EPERM)
		return err_sys(e, "drop groups");
	if (syscall(SYS_setresgid, 0, 0, 0) < 0 || syscall(SYS_setresuid, 0, 0, 0) < 0)
		return err_sys(e, "become root of the user namespace");
	/* The change of ids has made us dumpable by what fs.suid_dumpable says. */
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? err_sys(e, "PR_SET_DUMPABLE") : 0;
}

/* ---- exec ---- */

static char *const *list(const struct strings *s)
{
	return (char *const *)(uintptr_t)s->v;
}

static int exec_failed(const char *path, const char *name, int *status, struct err *e)
{
	int saved = errno;
	bool there = access(path, F_OK) == 0;

	errno = saved;
	*status = saved == ENOENT || saved == ENOTDIR ? EXEC_NOT_FOUND : EXEC_DENIED;
	err_sys(e, "exec '%s'", name);
	if (saved == ENOENT && there)
		err_hint(e, "the file is there: its interpreter (#! line or ELF loader) is not");
	if (saved == ENOEXEC)
		err_hint(e, "not a program of this architecture, or a script without a #! line");
	return -1;
}

static const char *path_of(const struct strings *env)
{
	for (size_t i = 0; i < env->n; i++)
		if (str_starts(env->v[i], "PATH="))
			return env->v[i] + strlen("PATH=");
	return default_path;
}

static int run_file(const char *file, const struct strings *args, const struct strings *env)
{
	return execve(file, list(args), list(env));
}

static int look_at_file(const char *file, const struct strings *args, const struct strings *env)
{
	struct stat st;

	(void)args;
	(void)env;
	/* The working directory is entered later. */
	if (file[0] != '/')
		return 0;
	if (stat(file, &st) < 0)
		return -1;
	if (S_ISREG(st.st_mode))
		return access(file, X_OK);
	errno = EACCES;
	return -1;
}

/* try: run a file, or only look whether that would do; -1 with errno when not. */
static int try_files(const struct strings *args, const struct strings *env,
	int (*try)(const char *file, const struct strings *args, const struct strings *env),
	int *status, struct err *e)
{
	const char *name = args->v[0], *p = path_of(env);
	char file[PATH_MAX], denied[PATH_MAX] = "";
	size_t n;

	if (strchr(name, '/'))
		return try(name, args, env) == 0 ? 0 : exec_failed(name, name, status, e);
	for (; *name && *p; p += n + (p[n] == ':')) {
		int len;

		n = strcspn(p, ":");
		len = snprintf(file, sizeof(file), "%.*s%s%s", (int)n, p, n ? "/" : "", name);
		if (len < 0 || (size_t)len >= sizeof(file))
			continue;
		if (try(file, args, env) == 0)
			return 0;
		if (errno == EACCES)
			memcpy(denied, file, sizeof(denied));
		else if (errno != ENOENT && errno != ENOTDIR)
			return exec_failed(file, file, status, e);
		else if (access(file, F_OK) == 0) {
			errno = ENOENT;
			return exec_failed(file, file, status, e);
		}
	}
	if (*denied) {
		errno = EACCES;
		return exec_failed(denied, denied, status, e);
	}
	*status = EXEC_NOT_FOUND;
	/* Words that engines look for. */
	return err_set(e, ERR_NOT_FOUND,
		"exec '%.200s': executable file not found in PATH (%.500s)", name, path_of(env));
}

/* Programs rely on HOME, and engines on the runtime to set it. Looked up as the confined process
 * that we are by now: the file is the image's. */
static struct strings with_home(const struct strings *env, struct arena *mem)
{
	const char **v = arena_alloc(mem, (env->n + 2) * sizeof(*v));
	char home[PASSWD_HOME_MAX];
	size_t n = 0;

	for (size_t i = 0; i < env->n; i++)
		if (!str_eq(env->v[i], "HOME="))
			v[n++] = env->v[i];
	for (size_t i = 0; i < n; i++)
		if (str_starts(v[i], "HOME="))
			return (struct strings){v, n};
	auto_fd int root = sys_open("/", O_PATH | O_DIRECTORY, 0);
	passwd_home(root, geteuid(), home);
	v[n++] = arena_printf(mem, "HOME=%s", home);
	return (struct strings){v, n};
}

int process_exec(const struct strings *args, const struct strings *env, int *status, struct err *e)
{
	struct arena mem = {NULL};
	struct strings all = with_home(env, &mem);
	int rc = try_files(args, &all, run_file, status, e);

	arena_fini(&mem);
	return rc;
}

int process_find(const struct strings *args, const struct strings *env, int *status, struct err *e)
{
	return try_files(args, env, look_at_file, status, e);
}
