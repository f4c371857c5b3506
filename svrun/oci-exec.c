/* svrun-oci exec */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/json.h"
#include "base/str.h"
#include "base/sys.h"
#include "runtime/exec.h"
#include "runtime/lsm.h"
#include "svrun/console.h"
#include "svrun/oci.h"
#include "svrun/supervise.h"

enum { PROCESS_MAX = 8 << 20, GROUPS_MAX = 65536, FAILED = 255 };
/* Beyond this, ids are negative to some, and -1 means "no change" to the kernel. */
static const uint64_t id_max = INT32_MAX;

struct request {
	const char *id, *process, *user, *cwd, *console_socket, *pid_file, *preserve_fds;
	const char *apparmor, *process_label;
	struct option_list env, groups, caps, cgroups;
	bool tty, detach, no_new_privs, ignore_paused, no_subreaper;
	char *const *args; /* ends with NULL */
	unsigned preserve;
};

/* What it is to be, and to be run in. */
struct plan {
	const struct request *r;
	struct state s;
	struct spec spec; /* the container's */
	struct arena mem;
	struct json_doc file; /* --process */
	struct spec_process process;
	struct seccomp_prog filter;
	struct cgroup cgroup;
	int pidfd, console;
};

/* ---- options ---- */

static int parse(
	struct request *r, const struct command *self, int argc, char **argv, struct err *e)
{
	const struct option_spec options[] = {
		{"process", 'p', OPTION_STRING, "FILE",
			"the process as JSON, instead of the config's", &r->process},
		{"detach", 'd', OPTION_FLAG, NULL, "do not wait for its end", &r->detach},
		{"pid-file", 0, OPTION_STRING, "FILE", "write its pid there", &r->pid_file},
		{"tty", 't', OPTION_FLAG, NULL, "give it a terminal", &r->tty},
		{"console-socket", 0, OPTION_STRING, "PATH",
			"unix socket that gets the terminal's master", &r->console_socket},
		{"user", 'u', OPTION_STRING, "UID[:GID]", "run as this user", &r->user},
		{"additional-gids", 'g', OPTION_LIST, "GID", "one more group, may be repeated",
			&r->groups},
		{"cwd", 0, OPTION_STRING, "DIR", "working directory", &r->cwd},
		{"env", 'e', OPTION_LIST, "NAME=VALUE", "environment, may be repeated", &r->env},
		{"cap", 'c', OPTION_LIST, "CAP_NAME", "one more capability, may be repeated",
			&r->caps},
		{"no-new-privs", 0, OPTION_FLAG, NULL, "set no_new_privs", &r->no_new_privs},
		{"apparmor", 0, OPTION_STRING, "PROFILE", "AppArmor profile", &r->apparmor},
		{"process-label", 0, OPTION_STRING, "LABEL", "SELinux label", &r->process_label},
		{"cgroup", 0, OPTION_LIST, "[CONTROLLER,...:]PATH",
			"a cgroup below the container's", &r->cgroups},
		{"preserve-fds", 0, OPTION_STRING, "N", "pass on N descriptors from 3 on",
			&r->preserve_fds},
		{"ignore-paused", 0, OPTION_FLAG, NULL, "also when it is paused: it waits",
			&r->ignore_paused},
		/* We are none: the container's processes are reaped by its own first one. */
		{"no-subreaper", 0, OPTION_FLAG, NULL, "nothing changes: there is none",
			&r->no_subreaper},
		{0},
	};
	int first = options_parse(self, options, argc, argv, true, e);
	unsigned listen;

	if (first < 0)
		return -1;
	r->id = argv[first];
	r->args = argv + first + 1;
	if (!r->process == !r->args[0])
		return err_set(e, ERR_USAGE,
			r->process ? "both --process and a command"
				   : "neither a command nor --process");
	if (r->console_socket && !r->detach)
		return err_set(e, ERR_USAGE, "--console-socket needs --detach");
	unsetenv("LISTEN_FDS"); /* those are for a container's first process */
	return oci_preserved(r->preserve_fds, &r->preserve, &listen, e);
}

/* Strict: what is no number must not become one (CVE-2026-30892). */
static int read_id(const char *text, const char *what, uint32_t *id, struct err *e)
{
	uint64_t v;

	if (str_u64(text, id_max, &v) < 0) {
		err_set(e, ERR_USAGE, "%s '%.100s': expected a number from 0 to %d", what, text,
			INT32_MAX);
		return err_hint(e, "names are the engine's to look up");
	}
	*id = (uint32_t)v;
	return 0;
}

static int set_user(struct plan *x, struct err *e)
{
	struct spec_user *u = &x->process.user;
	const struct request *r = x->r;

	if (r->user) {
		auto_free char *text = mem_strdup(r->user);
		char *colon = strchr(text, ':');

		if (colon)
			*colon++ = '\0';
		if (read_id(text, "--user", &u->uid, e) < 0 ||
			(colon && read_id(colon, "--user: group", &u->gid, e) < 0))
			return -1;
		u->ngroups = 0; /* they were the other user's */
	}
	if (u->ngroups + r->groups.n > GROUPS_MAX)
		return err_set(e, ERR_USAGE, "more than %d groups", GROUPS_MAX);
	if (r->groups.n) {
		uint32_t *v = arena_alloc(&x->mem, (u->ngroups + r->groups.n) * sizeof(*v));

		if (u->ngroups)
			memcpy(v, u->groups, u->ngroups * sizeof(*v));
		u->groups = v;
		for (size_t i = 0; i < r->groups.n; i++)
			if (read_id(r->groups.v[i], "--additional-gids", &v[u->ngroups++], e) < 0)
				return -1;
	}
	return 0;
}

/* As runc since CVE-2022-29162: never inheritable, and so never ambient. */
static void add_caps(struct plan *x)
{
	for (size_t i = 0; i < x->r->caps.n; i++) {
		int cap = caps_number(x->r->caps.v[i]);

		if (cap < 0) { /* as in config.json */
			warn("--cap: unknown capability '%.100s' is left out", x->r->caps.v[i]);
			continue;
		}
		x->process.caps.bounding |= UINT64_C(1) << cap;
		x->process.caps.permitted |= UINT64_C(1) << cap;
		x->process.caps.effective |= UINT64_C(1) << cap;
	}
}

/* A name that is there already gets the new value. */
static int add_env(struct plan *x, struct err *e)
{
	struct strings *env = &x->process.env;
	const char **v = arena_alloc(&x->mem, (env->n + x->r->env.n + 1) * sizeof(*v));
	size_t n = env->n;

	if (n)
		memcpy(v, env->v, n * sizeof(*v));
	for (size_t i = 0; i < x->r->env.n; i++) {
		const char *pair = x->r->env.v[i], *eq = strchr(pair, '=');
		size_t at = 0;

		if (!eq || eq == pair)
			return err_set(e, ERR_USAGE, "--env '%.100s': expected NAME=VALUE", pair);
		while (at < n && strncmp(v[at], pair, (size_t)(eq - pair) + 1) != 0)
			at++;
		v[at] = pair;
		n += at == n;
	}
	*env = (struct strings){v, n};
	return 0;
}

static int apply_options(struct plan *x, struct err *e)
{
	const struct request *r = x->r;
	struct spec_process *p = &x->process;

	if (r->cwd && r->cwd[0] != '/')
		return err_set(e, ERR_USAGE, "--cwd '%.100s': expected an absolute path", r->cwd);
	if (r->cwd)
		p->cwd = r->cwd;
	if (r->apparmor)
		p->apparmor = r->apparmor;
	if (r->process_label)
		p->selinux = r->process_label;
	if (r->no_new_privs)
		p->no_new_privs = true;
	if (r->tty)
		p->terminal = true;
	add_caps(x);
	return set_user(x, e) < 0 || add_env(x, e) < 0 ? -1 : 0;
}

/* ---- what is to be run ---- */

static struct strings command_of(struct plan *x)
{
	struct strings args = {NULL, 0};

	while (x->r->args[args.n])
		args.n++;
	args.v = arena_dup(&x->mem, x->r->args, (args.n + 1) * sizeof(*args.v));
	return args;
}

/* The config's process with another command, or another one altogether. */
static int read_process(struct plan *x, struct err *e)
{
	const struct request *r = x->r;

	if (r->process) {
		if (spec_doc_load(&x->file, AT_FDCWD, r->process, PROCESS_MAX, e) < 0 ||
			spec_read_process(&x->process, x->file.root, r->process, &x->mem, e) < 0)
			return -1;
	} else {
		if (!x->spec.process.given)
			return err_set(e, ERR_USAGE,
				"the container's config has no process: --process is needed");
		x->process = x->spec.process;
		x->process.args = command_of(x);
		x->process.terminal = false;
	}
	if (apply_options(x, e) < 0)
		return -1;
	if (x->process.terminal && r->detach && !r->console_socket)
		return err_set(e, ERR_USAGE, "a terminal and --detach need --console-socket");
	if (!x->process.terminal && r->console_socket)
		return err_set(e, ERR_USAGE, "--console-socket needs --tty, or process.terminal");
	return lsm_check(&x->process, e);
}

static int refuse(const char *status, struct err *e)
{
	return err_set(e, ERR_USAGE, "cannot exec in a %s container", status);
}

/* Created, running, or paused: by the process and the cgroup that are needed anyway, not by
 * state_status(), which opens both again. */
static int open_container(struct plan *x, struct err *e)
{
	int frozen = 0;

	x->pidfd = state_pidfd(&x->s);
	if (x->pidfd < 0 && errno != ESRCH)
		return err_sys(e, "%s: its first process", x->s.id);
	if (x->pidfd < 0)
		return refuse("stopped", e);
	if (cgroup_open(&x->cgroup, &x->s.cgroup, x->r->cgroups.n ? NULL : "freezer", e) < 0)
		return -1;
	if (x->cgroup.ndirs && !x->r->ignore_paused)
		frozen = cgroup_frozen(&x->cgroup, e);
	if (frozen <= 0)
		return frozen;
	refuse("paused", e);
	return err_hint(e, "resume it, or use --ignore-paused to wait until that is done");
}

static int prepare(struct plan *x, struct err *e)
{
	if (open_container(x, e) < 0 || state_config(&x->s, &x->spec, e) < 0 ||
		read_process(x, e) < 0)
		return -1;
	if (x->spec.has_seccomp && state_filter(&x->s, &x->filter, e) < 0)
		return -1;
	if (x->r->console_socket) {
		x->console = console_connect(x->r->console_socket, e);
		if (x->console < 0)
			return -1;
	}
	return 0;
}

/* ---- running it ---- */

static void plan_fini(struct plan *x)
{
	sys_close_ref(&x->console);
	sys_close_ref(&x->pidfd);
	cgroup_fini(&x->cgroup);
	seccomp_prog_fini(&x->filter);
	json_doc_fini(&x->file);
	arena_fini(&x->mem);
	spec_fini(&x->spec);
	state_close(&x->s);
}

static int publish(const struct plan *x, const struct exec *run, struct err *e)
{
	if (x->console >= 0 && console_send(x->console, run->terminal, e) < 0)
		return -1;
	return x->r->pid_file ? oci_pid_file(x->r->pid_file, run->pid, e) : 0;
}

static int start(struct plan *x, const int stdio[3], struct exec *run, int *status, struct err *e)
{
	struct exec_options o = {.spec = &x->spec,
		.process = &x->process,
		.pidfd = x->pidfd,
		.first = x->s.pid,
		.cgroup = &x->cgroup,
		.sub_cgroups = {x->r->cgroups.v, x->r->cgroups.n},
		.filter = x->spec.has_seccomp ? &x->filter : NULL,
		.stdio = {stdio[0], stdio[1], stdio[2]},
		.preserve_fds = x->r->preserve,
		.detach = x->r->detach,
		.id = x->s.id,
		.bundle = x->s.bundle};

	if (exec_start(run, &o, status, e) < 0)
		return -1;
	if (publish(x, run, e) == 0) {
		plan_fini(x); /* while the process runs, not after it */
		return 0;
	}
	exec_kill(run);
	exec_fini(run);
	return -1;
}

static int run_detached(struct plan *x, int *status, struct err *e)
{
	const int stdio[3] = {0, 1, 2};
	struct exec run;

	if (start(x, stdio, &run, status, e) < 0)
		return -1;
	exec_fini(&run);
	*status = 0;
	return 0;
}

static int run_foreground(struct plan *x, int *status, struct err *e)
{
	const struct supervise_options o = {
		.interactive = true, .as_is = true, .terminal = x->process.terminal};
	struct supervise sup;
	struct exec run;
	int rc;

	if (supervise_init(&sup, &o, e) < 0)
		return -1;
	rc = start(x, sup.stdio, &run, status, e);
	if (rc == 0) {
		struct supervised p = {run.pid, run.pidfd, steal_fd(&run.terminal)};

		*status = FAILED;
		rc = supervise_run(&sup, &p, status, e);
		if (rc < 0)
			exec_kill(&run);
		exec_fini(&run);
	}
	supervise_fini(&sup);
	return rc;
}

static int exec_in(const struct oci *o, const struct request *r, int *status, struct err *e)
{
	struct plan x = {.r = r, .pidfd = -1, .console = -1};
	int rc;

	if (oci_open(o, r->id, false, &x.s, e) < 0)
		return -1;
	rc = prepare(&x, e);
	if (rc == 0)
		rc = r->detach ? run_detached(&x, status, e) : run_foreground(&x, status, e);
	plan_fini(&x);
	return rc;
}

int oci_exec(const struct oci *o, const struct command *self, int argc, char **argv, struct err *e)
{
	struct request r = {.id = NULL};
	int rc, status = FAILED;

	rc = parse(&r, self, argc, argv, e);
	/* With e set the status stands, and the error is shown. */
	if (rc == 0 && exec_in(o, &r, &status, e) < 0)
		rc = status ? status : FAILED;
	else if (rc == 0)
		rc = status;
	option_list_fini(&r.env);
	option_list_fini(&r.groups);
	option_list_fini(&r.caps);
	option_list_fini(&r.cgroups);
	return rc;
}
