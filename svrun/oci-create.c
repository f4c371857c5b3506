/* svrun-oci create, and run: create, start, wait, delete in one process. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "runtime/container.h"
#include "runtime/door.h"
#include "runtime/hooks.h"
#include "svrun/console.h"
#include "svrun/oci.h"
#include "svrun/supervise.h"

struct request {
	const struct oci *o;
	const char *bundle, *config, *console_socket, *pid_file, *preserve_fds, *id;
	bool no_pivot, no_new_keyring, no_subreaper, keep, detach;
	unsigned preserve, listen; /* descriptors; listen of them are LISTEN_FDS */
	bool run;
};

/* A container in the making. */
struct making {
	const struct request *r;
	struct state s;
	struct spec spec;
	struct oci_cdi cdi;
	struct container *c;
	struct seccomp_prog filter;
	int door, console;
	int stdio[3];
	bool begun; /* its hooks may have run */
};

/* ---- options ---- */

static int parse(
	struct request *r, const struct command *self, int argc, char **argv, struct err *e)
{
	const struct option_spec options[] = {
		{"bundle", 'b', OPTION_STRING, "DIR", "folder with config.json (.)", &r->bundle},
		{"config", 'f', OPTION_STRING, "FILE", "another name than config.json", &r->config},
		{"console-socket", 0, OPTION_STRING, "PATH",
			"unix socket that gets the terminal's master", &r->console_socket},
		{"pid-file", 0, OPTION_STRING, "FILE", "write the process's pid there",
			&r->pid_file},
		{"preserve-fds", 0, OPTION_STRING, "N", "pass on N descriptors from 3 on",
			&r->preserve_fds},
		{"no-pivot", 0, OPTION_FLAG, NULL, "chroot, for a root on an initramfs",
			&r->no_pivot},
		{"no-new-keyring", 0, OPTION_FLAG, NULL, "stay in this session keyring",
			&r->no_new_keyring},
		/* We are none: the container's processes are reaped by its own first one. */
		{"no-subreaper", 0, OPTION_FLAG, NULL, "nothing changes: there is none",
			&r->no_subreaper},
		{r->run ? "detach" : NULL, 'd', OPTION_FLAG, NULL, "do not wait for its end",
			&r->detach},
		{"keep", 0, OPTION_FLAG, NULL, "do not delete it at its end", &r->keep},
		{0},
	};
	int first = options_parse(self, options, argc, argv, false, e);

	if (first < 0)
		return -1;
	r->id = argv[first];
	if (!r->bundle)
		r->bundle = ".";
	if (!r->config)
		r->config = "config.json";
	return oci_preserved(r->preserve_fds, &r->preserve, &r->listen, e);
}

/* ---- what is known before there is a process ---- */

/* Who shows the terminal must be known before it is made. */
static int check_terminal(const struct making *m, struct err *e)
{
	bool terminal = m->spec.process.given && m->spec.process.terminal;
	bool waits = m->r->run && !m->r->detach;

	if (terminal && !waits && !m->r->console_socket)
		return err_set(e, ERR_USAGE,
			"process.terminal needs --console-socket, or run without --detach");
	if (m->r->console_socket && (!terminal || waits))
		return err_set(e, ERR_USAGE,
			"--console-socket needs process.terminal, and create or run --detach");
	/* Its end could not be told from silence, and what is typed comes before the shell listens.
	 */
	if (terminal && waits && !isatty(0)) {
		err_set(e, ERR_USAGE, "process.terminal, but our standard input is no terminal");
		return err_hint(
			e, "set process.terminal to false, or use --detach with --console-socket");
	}
	return 0;
}

static int open_ends(struct making *m, struct err *e)
{
	if (!m->r->run) {
		m->door = door_make(m->s.dir, STATE_DOOR, e);
		if (m->door < 0)
			return -1;
	}
	if (m->r->console_socket) {
		m->console = console_connect(m->r->console_socket, e);
		if (m->console < 0)
			return -1;
	}
	return 0;
}

/* ---- the container ---- */

/* Say where it is, everywhere that is looked at. */
static int publish(struct making *m, struct err *e)
{
	m->s.cgroup = *container_cgroup(m->c);
	if (state_set_process(&m->s, container_pid(m->c), e) < 0 || state_write(&m->s, e) < 0)
		return -1;
	if (m->console >= 0) {
		auto_fd int master = container_take_terminal(m->c);

		if (master < 0)
			return err_set(e, ERR_SYSTEM, "the container has no terminal");
		if (console_send(m->console, master, e) < 0)
			return -1;
	}
	return m->r->pid_file ? oci_pid_file(m->r->pid_file, m->s.pid, e) : 0;
}

static int create(struct making *m, struct err *e)
{
	struct container_options o = {
		.spec = &m->spec,
		.id = m->s.id,
		.bundle = m->s.bundle,
		.cgroup = m->s.cgroup,
		.root = -1,
		.preserve_fds = m->r->preserve,
		.filter = m->spec.has_seccomp ? &m->filter : NULL,
		.door = m->door,
		.no_pivot = m->r->no_pivot,
		.keep_keyring = m->r->no_new_keyring,
		/* One that outlives us is to be found before it runs. */
		.at_once = m->r->run && !m->r->detach,
		.detach = !m->r->run || m->r->detach,
	};

	memcpy(o.stdio, m->stdio, sizeof(o.stdio));
	oci_cdi_fill(&m->cdi, &o);
	m->begun = true;
	if (container_create(&m->c, &o, e) < 0) {
		m->c = NULL;
		return -1;
	}
	return publish(m, e);
}

static int start(struct making *m, struct err *e)
{
	int status;

	if (container_start(m->c, &status, e) < 0)
		return -1;
	oci_late_hooks(&m->spec, HOOK_POSTSTART, &m->s, STATE_RUNNING);
	return 0;
}

/* It lives on: until `start` at its door, or as it is. */
static int create_detached(struct making *m, struct err *e)
{
	if (create(m, e) < 0 || (m->r->run && start(m, e) < 0))
		return -1;
	if (container_release(m->c, e) < 0)
		return -1;
	m->c = NULL;
	return 0;
}

/* What goes wrong behind the program's end: its own status matters more. */
static void warn_of(struct err *e)
{
	warn("%s", e->text);
	*e = (struct err){0};
}

/* Unless somebody else has done it. */
static int clean_up(struct making *m, struct err *e)
{
	int rc = state_lock(&m->s, e);

	if (rc <= 0)
		return rc;
	oci_late_hooks(&m->spec, HOOK_POSTSTOP, &m->s, STATE_STOPPED);
	return state_remove(&m->s, e);
}

static int run_started(struct making *m, struct supervise *sup, int *status, struct err *e)
{
	struct supervised p = {container_pid(m->c), container_pidfd(m->c), -1};
	struct err late = {0};

	p.terminal = container_take_terminal(m->c);
	state_unlock(&m->s);
	if (supervise_run(sup, &p, status, e) < 0)
		return -1;
	if (m->r->keep) /* all of it, until delete */
		return container_release(steal_ptr(&m->c), e);
	if (container_delete(steal_ptr(&m->c), &late) < 0)
		warn_of(&late);
	if (clean_up(m, &late) < 0)
		warn_of(&late);
	return 0;
}

static int run_foreground(struct making *m, int *status, struct err *e)
{
	const struct supervise_options o = {
		.interactive = true, .as_is = true, .terminal = m->spec.process.terminal};
	struct supervise sup;
	int rc;

	if (supervise_init(&sup, &o, e) < 0)
		return -1;
	memcpy(m->stdio, sup.stdio, sizeof(m->stdio));
	rc = create(m, e) < 0 || start(m, e) < 0 ? -1 : run_started(m, &sup, status, e);
	supervise_fini(&sup);
	return rc;
}

static int make(struct making *m, int *status, struct err *e)
{
	if (oci_read_bundle(m->r->o, &m->s, &m->spec, &m->cdi, &m->filter, m->r->bundle,
		    m->r->config, e) < 0 ||
		check_terminal(m, e) < 0)
		return -1;
	if (m->r->run && !m->spec.process.given)
		return err_set(e, ERR_USAGE, "%s: config.json has no process to run", m->s.id);
	oci_listen_env(&m->spec, m->r->listen);
	if (oci_describe(m->r->o, &m->s, &m->spec, m->r->console_socket, e) < 0 ||
		open_ends(m, e) < 0)
		return -1;
	if (m->r->run && !m->r->detach)
		return run_foreground(m, status, e);
	return create_detached(m, e);
}

/* Nothing of it stays, as if it had never been asked for; hooks that may have heard of its
 * beginning hear of its end. */
static void undo(struct making *m)
{
	struct err e = {0};

	if (container_delete(m->c, &e) < 0)
		warn_of(&e);
	if (!m->s.locked && state_lock(&m->s, &e) <= 0)
		return;
	if (m->begun)
		oci_late_hooks(&m->spec, HOOK_POSTSTOP, &m->s, STATE_STOPPED);
	if (state_remove(&m->s, &e) < 0)
		warn_of(&e);
}

static int create_or_run(const struct request *r, int *status, struct err *e)
{
	struct making m = {.r = r, .door = -1, .console = -1, .stdio = {0, 1, 2}};
	auto_fd int root = oci_root(r->o, e);
	int rc;

	if (root < 0 || state_create(&m.s, root, r->id, e) < 0)
		return -1;
	rc = make(&m, status, e);
	if (rc < 0)
		undo(&m);
	sys_close_ref(&m.door);
	sys_close_ref(&m.console);
	seccomp_prog_fini(&m.filter);
	oci_cdi_fini(&m.cdi);
	spec_fini(&m.spec);
	state_close(&m.s);
	return rc;
}

int oci_create(
	const struct oci *o, const struct command *self, int argc, char **argv, struct err *e)
{
	struct request r = {.o = o};
	int status = 0;

	if (parse(&r, self, argc, argv, e) < 0)
		return -1;
	return create_or_run(&r, &status, e);
}

int oci_run(const struct oci *o, const struct command *self, int argc, char **argv, struct err *e)
{
	struct request r = {.o = o, .run = true};
	int status = 0;

	if (parse(&r, self, argc, argv, e) < 0)
		return -1;
	return create_or_run(&r, &status, e) < 0 ? -1 : status;
}
