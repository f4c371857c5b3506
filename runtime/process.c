#include "runtime/process.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "runtime/procfs.h"
#include "runtime/rootfs.h"

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

static int set_limits(const struct spec_process *p, int proc, struct err *e)
{
	char text[16];

	for (size_t i = 0; i < p->nrlimits; i++)
		if (process_rlimit(&p->rlimits[i], e) < 0)
			return -1;
	if (!p->oom_score_adj.set)
		return 0;
	snprintf(text, sizeof(text), "%d", (int)p->oom_score_adj.v);
	return procfs_write(proc, "self/oom_score_adj", text, e);
}

static int set_user(const struct spec_user *u, struct err *e)
{
	gid_t gid = u->gid;
	uid_t uid = u->uid;

	/* Exactly the config's: what svrun was started with must not stay (CVE-2022-2989). */
	if (setgroups(u->ngroups, u->groups) < 0)
		return err_sys(e, "supplementary groups");
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

int process_confine(
	const struct spec *s, const struct seccomp_prog *filter, int proc, int alive, struct err *e)
{
	const struct spec_process *p = &s->process;

	/* Limits may need CAP_SYS_RESOURCE, the way to the working directory CAP_DAC_OVERRIDE. */
	if (set_limits(p, proc, e) < 0 || rootfs_chdir(p->cwd, e) < 0)
		return -1;
	umask(p->user.umask.set ? (mode_t)p->user.umask.v : 022);
	/* Without no_new_privs a filter needs CAP_SYS_ADMIN, which is about to go. */
	if (!p->no_new_privs && filter && seccomp_install(filter, e) < 0)
		return -1;
	/* The bounding set needs CAP_SETPCAP; the user change would empty the other sets. */
	if (caps_apply_bounding(&p->caps, e) < 0 || set_user(&p->user, e) < 0 ||
		caps_apply(&p->caps, e) < 0)
		return -1;
	if (p->no_new_privs && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(e, "no_new_privs");
	if (process_follow(alive, e) < 0) /* a change of user has cleared it */
		return -1;
	if (p->no_new_privs && filter && seccomp_install(filter, e) < 0)
		return -1;
	return 0;
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

int process_exec(const struct strings *args, const struct strings *env, int *status, struct err *e)
{
	const char *name = args->v[0], *p = path_of(env);
	char file[PATH_MAX], denied[PATH_MAX] = "";
	size_t n;

	if (strchr(name, '/')) {
		execve(name, list(args), list(env));
		return exec_failed(name, name, status, e);
	}
	for (; *name && *p; p += n + (p[n] == ':')) {
		int len;

		n = strcspn(p, ":");
		len = snprintf(file, sizeof(file), "%.*s%s%s", (int)n, p, n ? "/" : "", name);
		if (len < 0 || (size_t)len >= sizeof(file))
			continue;
		execve(file, list(args), list(env));
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
	return err_set(
		e, ERR_NOT_FOUND, "exec '%.200s': not found in PATH (%.500s)", name, path_of(env));
}
