/* svrun-oci checkpoint and restore */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "svrun/checkpoint.h"
#include "svrun/console.h"
#include "svrun/oci.h"
#include "svrun/supervise.h"

#define MOUNT_POINT "criu-root"

/* ---- options that both have ---- */

struct words {
	struct checkpoint_options c;
	const char *page_server, *cgroups_mode, *status_fd;
	struct option_list empty_ns;
};

/* "ADDRESS:PORT", where an address may have colons: the last one counts. */
static int parse_page_server(const char *text, char **address, uint16_t *port, struct err *e)
{
	const char *colon = strrchr(text, ':');
	uint64_t v;

	if (!colon || colon == text || str_u64(colon + 1, UINT16_MAX, &v) < 0 || v == 0)
		return err_set(
			e, ERR_USAGE, "--page-server: expected ADDRESS:PORT, got '%.100s'", text);
	*address = mem_printf("%.*s", (int)(colon - text), text);
	*port = (uint16_t)v;
	return 0;
}

static int parse_cgroups_mode(const char *text, enum checkpoint_cgroups *mode, struct err *e)
{
	static const struct {
		const char *name;
		enum checkpoint_cgroups mode;
	} modes[] = {
		{"soft", CHECKPOINT_CGROUPS_SOFT},
		{"full", CHECKPOINT_CGROUPS_FULL},
		{"strict", CHECKPOINT_CGROUPS_STRICT},
		{"ignore", CHECKPOINT_CGROUPS_IGNORE},
	};

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (str_eq(text, modes[i].name)) {
			*mode = modes[i].mode;
			return 0;
		}
	return err_set(e, ERR_USAGE,
		"--manage-cgroups-mode: expected soft, full, strict or ignore, got '%.40s'", text);
}

static int parse_status_fd(const char *text, int *fd, struct err *e)
{
	uint64_t v;
	int flags;

	if (str_u64(text, INT_MAX, &v) < 0)
		return err_set(e, ERR_USAGE, "--status-fd: expected a number, got '%.40s'", text);
	flags = fcntl((int)v, F_GETFL);
	if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
		return err_set(e, ERR_USAGE, "--status-fd: %s is not open for writing", text);
	*fd = (int)v;
	return 0;
}

static int read_words(struct words *w, char **address, struct err *e)
{
	w->c.cgroups = CHECKPOINT_CGROUPS_SOFT;
	w->c.status_fd = -1;
	for (size_t i = 0; i < w->empty_ns.n; i++) {
		if (!str_eq(w->empty_ns.v[i], "network"))
			return err_set(e, ERR_USAGE, "--empty-ns: expected network, got '%.40s'",
				w->empty_ns.v[i]);
		w->c.empty_net = true;
	}
	if (w->cgroups_mode && parse_cgroups_mode(w->cgroups_mode, &w->c.cgroups, e) < 0)
		return -1;
	if (w->status_fd && parse_status_fd(w->status_fd, &w->c.status_fd, e) < 0)
		return -1;
	if (w->page_server && parse_page_server(w->page_server, address, &w->c.page_port, e) < 0)
		return -1;
	w->c.page_address = *address;
	if (!w->c.images)
		w->c.images = "checkpoint"; /* runc's default */
	return 0;
}

/* ---- checkpoint ---- */

static int check_parent(const struct checkpoint_options *c, struct err *e)
{
	auto_free char *path = NULL;
	struct stat st;

	if (!c->parent)
		return 0;
	if (c->parent[0] == '/')
		return err_set(e, ERR_USAGE, "--parent-path must be relative to --image-path");
	if (sys_mkdir_p(AT_FDCWD, c->images, 0700) < 0)
		return err_sys(e, "--image-path %s", c->images);
	path = mem_printf("%s/%s", c->images, c->parent);
	if (sys_fstatat(AT_FDCWD, path, &st, 0) < 0)
		return err_sys(e, "--parent-path %s", path);
	return S_ISDIR(st.st_mode) ? 0
				   : err_set(e, ERR_USAGE, "--parent-path %s is no folder", path);
}

static int checkpoint(const struct checkpoint_options *c, const struct state *s, struct err *e)
{
	enum state_status status;
	struct spec spec = {.json = NULL};
	int rc;

	if (state_status(s, &status, e) < 0)
		return -1;
	if (status != STATE_RUNNING && status != STATE_PAUSED)
		return err_set(e, ERR_USAGE, "container %s is %s, and cannot be checkpointed",
			s->id, state_status_name(status));
	if (geteuid() != 0)
		return err_set(e, ERR_DENIED, "checkpointing needs root");
	rc = state_config(s, &spec, e);
	if (rc == 0)
		rc = checkpoint_save(c, &spec, s, e);
	spec_fini(&spec);
	if (rc == 0 && !c->leave_running && !c->pre_dump)
		rc = oci_remove(s, e);
	return rc;
}

int oci_checkpoint(
	const struct oci *o, const struct command *self, int argc, char **argv, struct err *e)
{
	struct words w = {.c = {.criu = o->criu}};
	auto_free char *address = NULL;
	struct state s;
	const struct option_spec options[] = {
		{"image-path", 0, OPTION_STRING, "DIR", "where it is saved (checkpoint)",
			&w.c.images},
		{"work-path", 0, OPTION_STRING, "DIR", "where the log goes", &w.c.work},
		{"parent-path", 0, OPTION_STRING, "DIR",
			"images of an earlier --pre-dump, relative to --image-path", &w.c.parent},
		{"leave-running", 0, OPTION_FLAG, NULL, "let it run on", &w.c.leave_running},
		{"tcp-established", 0, OPTION_FLAG, NULL, "save open TCP connections",
			&w.c.tcp_established},
		{"ext-unix-sk", 0, OPTION_FLAG, NULL, "it may have unix sockets to outside",
			&w.c.ext_unix_sk},
		{"shell-job", 0, OPTION_FLAG, NULL, "it may use our terminal", &w.c.shell_job},
		{"lazy-pages", 0, OPTION_FLAG, NULL, "memory is fetched as it is used",
			&w.c.lazy_pages},
		{"status-fd", 0, OPTION_STRING, "FD", "gets a NUL when lazy pages are ready",
			&w.status_fd},
		{"page-server", 0, OPTION_STRING, "ADDRESS:PORT", "where memory goes",
			&w.page_server},
		{"file-locks", 0, OPTION_FLAG, NULL, "save file locks", &w.c.file_locks},
		{"pre-dump", 0, OPTION_FLAG, NULL, "save memory only, and let it run on",
			&w.c.pre_dump},
		{"manage-cgroups-mode", 0, OPTION_STRING, "MODE", "soft, full, strict or ignore",
			&w.cgroups_mode},
		{"empty-ns", 0, OPTION_LIST, "network", "do not save what is in it", &w.empty_ns},
		{"auto-dedup", 0, OPTION_FLAG, NULL, "punch holes into earlier images",
			&w.c.auto_dedup},
		{0},
	};
	int first = options_parse(self, options, argc, argv, false, e), rc;

	rc = first < 0 ? -1 : read_words(&w, &address, e);
	option_list_fini(&w.empty_ns);
	if (rc < 0 || check_parent(&w.c, e) < 0 || oci_open(o, argv[first], true, &s, e) < 0)
		return -1;
	rc = checkpoint(&w.c, &s, e);
	state_close(&s);
	return rc;
}

/* ---- restore ---- */

struct request {
	const struct oci *o;
	struct words w;
	const char *bundle, *console_socket, *pid_file, *id;
	bool detach, no_pivot, no_subreaper;
};

struct restoring {
	const struct request *r;
	struct state s;
	struct spec spec;
	struct oci_cdi cdi;
	struct seccomp_prog filter; /* for exec */
	struct restore restore;
	int console;
};

/* An empty folder of ours, by its path: a child of criu mounts there, in its own namespace. */
static char *make_mount_point(const struct state *s, struct err *e)
{
	char link[48], dir[PATH_MAX];
	ssize_t n;

	if (sys_mkdirat(s->dir, MOUNT_POINT, 0700) < 0) {
		err_sys(e, MOUNT_POINT);
		return NULL;
	}
	snprintf(link, sizeof(link), "/proc/self/fd/%d", s->dir);
	n = readlink(link, dir, sizeof(dir));
	if (n <= 0 || (size_t)n == sizeof(dir)) {
		err_sys(e, "%s", link);
		return NULL;
	}
	return mem_printf("%.*s/" MOUNT_POINT, (int)n, dir);
}

static int restore_from_images(struct restoring *m, struct err *e)
{
	auto_free char *place = make_mount_point(&m->s, e);
	struct restore *x = &m->restore;
	int rc;

	if (!place)
		return -1;
	x->o = &m->r->w.c;
	x->spec = &m->spec;
	x->id = m->s.id;
	x->bundle = m->s.bundle;
	x->rootfs = m->s.rootfs;
	x->mount_point = place;
	x->place = m->s.cgroup;
	rc = checkpoint_restore(x, e);
	if (sys_unlinkat(m->s.dir, MOUNT_POINT, AT_REMOVEDIR) < 0 && rc == 0)
		rc = err_sys(e, MOUNT_POINT);
	return rc;
}

static int publish(struct restoring *m, struct err *e)
{
	m->s.cgroup = m->restore.place;
	if (state_set_process(&m->s, m->restore.pid, e) < 0 || state_write(&m->s, e) < 0)
		return -1;
	if (m->console >= 0) {
		if (m->restore.terminal < 0)
			return err_set(e, ERR_SYSTEM, "the container has no terminal");
		if (console_send(m->console, m->restore.terminal, e) < 0)
			return -1;
		sys_close_ref(&m->restore.terminal);
	}
	return m->r->pid_file ? oci_pid_file(m->r->pid_file, m->s.pid, e) : 0;
}

static int restore_detached(struct restoring *m, struct err *e)
{
	memcpy(m->restore.stdio, (int[3]){0, 1, 2}, sizeof(m->restore.stdio));
	if (m->r->console_socket) {
		m->console = console_connect(m->r->console_socket, e);
		if (m->console < 0)
			return -1;
	}
	return restore_from_images(m, e) < 0 ? -1 : publish(m, e);
}

static int restore_foreground(struct restoring *m, int *status, struct err *e)
{
	const struct supervise_options o = {
		.interactive = true, .as_is = true, .terminal = m->spec.process.terminal};
	struct supervised p = {.pidfd = -1};
	struct supervise sup;
	int rc;

	if (supervise_init(&sup, &o, e) < 0)
		return -1;
	memcpy(m->restore.stdio, sup.stdio, sizeof(m->restore.stdio));
	rc = restore_from_images(m, e);
	if (rc == 0)
		rc = publish(m, e);
	if (rc == 0) {
		auto_fd int pidfd = state_pidfd(&m->s);

		p = (struct supervised){m->s.pid, pidfd, steal_fd(&m->restore.terminal)};
		rc = pidfd < 0 ? err_sys(e, "the restored process")
			       : supervise_run(&sup, &p, status, e);
	}
	supervise_fini(&sup);
	return rc;
}

static int restore(struct restoring *m, int *status, struct err *e)
{
	const struct request *r = m->r;
	bool terminal;

	if (oci_read_bundle(r->o, &m->s, &m->spec, &m->cdi, &m->filter, r->bundle, "config.json",
		    e) < 0)
		return -1;
	terminal = m->spec.process.given && m->spec.process.terminal;
	if (terminal && r->detach && !r->console_socket)
		return err_set(e, ERR_USAGE,
			"process.terminal needs --console-socket, or restore "
			"without --detach");
	if (oci_describe(r->o, &m->s, &m->spec, r->console_socket, e) < 0)
		return -1;
	return r->detach ? restore_detached(m, e) : restore_foreground(m, status, e);
}

static int restore_request(const struct request *r, int *status, struct err *e)
{
	struct restoring m = {.r = r, .console = -1, .restore = {.terminal = -1}};
	auto_fd int root = oci_root(r->o, e);
	struct err late = {0};
	int rc;

	if (root < 0 || state_create(&m.s, root, r->id, e) < 0)
		return -1;
	rc = restore(&m, status, e);
	/* In the foreground it has ended; or it never was. */
	if ((rc < 0 || !r->detach) && oci_remove(&m.s, &late) < 0)
		warn("%s", late.text);
	sys_close_ref(&m.console);
	sys_close_ref(&m.restore.terminal);
	seccomp_prog_fini(&m.filter);
	oci_cdi_fini(&m.cdi);
	spec_fini(&m.spec);
	state_close(&m.s);
	return rc;
}

int oci_restore(
	const struct oci *o, const struct command *self, int argc, char **argv, struct err *e)
{
	struct request r = {.o = o, .w = {.c = {.criu = o->criu}}, .bundle = "."};
	struct checkpoint_options *c = &r.w.c;
	auto_free char *address = NULL;
	const struct option_spec options[] = {
		{"console-socket", 0, OPTION_STRING, "PATH",
			"unix socket that gets the terminal's master", &r.console_socket},
		{"image-path", 0, OPTION_STRING, "DIR", "where it was saved (checkpoint)",
			&c->images},
		{"work-path", 0, OPTION_STRING, "DIR", "where the log goes", &c->work},
		{"bundle", 'b', OPTION_STRING, "DIR", "folder with config.json (.)", &r.bundle},
		{"pid-file", 0, OPTION_STRING, "FILE", "write the process's pid there",
			&r.pid_file},
		{"detach", 'd', OPTION_FLAG, NULL, "do not wait for its end", &r.detach},
		{"tcp-established", 0, OPTION_FLAG, NULL, "restore open TCP connections",
			&c->tcp_established},
		{"ext-unix-sk", 0, OPTION_FLAG, NULL, "it may have unix sockets to outside",
			&c->ext_unix_sk},
		{"shell-job", 0, OPTION_FLAG, NULL, "it may use our terminal", &c->shell_job},
		{"file-locks", 0, OPTION_FLAG, NULL, "restore file locks", &c->file_locks},
		{"manage-cgroups-mode", 0, OPTION_STRING, "MODE", "soft, full, strict or ignore",
			&r.w.cgroups_mode},
		{"empty-ns", 0, OPTION_LIST, "network", "do not restore what is in it",
			&r.w.empty_ns},
		{"auto-dedup", 0, OPTION_FLAG, NULL, "punch holes into the images", &c->auto_dedup},
		{"lazy-pages", 0, OPTION_FLAG, NULL, "memory is fetched as it is used",
			&c->lazy_pages},
		{"lsm-profile", 0, OPTION_STRING, "TYPE:NAME", "instead of the saved one",
			&c->lsm_profile},
		{"lsm-mount-context", 0, OPTION_STRING, "CONTEXT", "instead of the saved one",
			&c->lsm_mount_context},
		/* criu enters the root as it does, and nothing is reaped but the first process. */
		{"no-pivot", 0, OPTION_FLAG, NULL, "nothing changes", &r.no_pivot},
		{"no-subreaper", 0, OPTION_FLAG, NULL, "nothing changes: there is none",
			&r.no_subreaper},
		{0},
	};
	int first = options_parse(self, options, argc, argv, false, e), rc, status = 0;

	rc = first < 0 ? -1 : read_words(&r.w, &address, e);
	option_list_fini(&r.w.empty_ns);
	if (rc < 0)
		return -1;
	if (geteuid() != 0)
		return err_set(e, ERR_DENIED, "restoring needs root");
	r.id = argv[first];
	return restore_request(&r, &status, e) < 0 ? -1 : status;
}
