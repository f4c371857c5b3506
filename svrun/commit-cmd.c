/* svrun image commit: a container's changes as an image. */
#include "svrun/command.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "base/err.h"
#include "base/str.h"
#include "base/sys.h"
#include "builder/commit.h"
#include "gpu/edits.h"
#include "runtime/fs-mount.h"
#include "svrun/enter.h"
#include "svrun/instance.h"
#include "svrun/options.h"

enum { CONFIG_MAX = 8 << 20, SHOWN = 20 };

struct request {
	const char *instance, *message;
	struct option_list changes;
	struct progress *progress;
	char name[STORE_NAME];
	size_t left_out;
	const struct cgroup *frozen; /* of a container that runs; NULL */
};

/* ---- standing still ---- */

/* Somebody who thaws the container, whatever becomes of us: it has nothing but the cgroup and a
 * pipe, and goes when our end of that is closed. */
struct guard {
	pid_t pid;
	int pipe;
};

static void stand_guard(const struct cgroup *c, int pipe)
{
	struct err e = {0};
	sigset_t all;
	char byte;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	setsid();
	while (sys_read(pipe, &byte, 1) > 0)
		;
	_exit(cgroup_freeze(c, false, &e) < 0);
}

/* Ends the guard, which thaws. */
static int thaw(struct guard *g, struct err *e)
{
	int status = 0;

	sys_close_ref(&g->pipe);
	while (waitpid(g->pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_sys(e, "wait for the thaw");
	g->pid = 0;
	return status == 0 ? 0 : err_set(e, ERR_SYSTEM, "the container could not be thawed");
}

static int freeze(struct guard *g, const struct cgroup *c, struct err *e)
{
	int p[2];

	*g = (struct guard){.pipe = -1};
	if (sys_pipe(p) < 0)
		return err_sys(e, "pipe");
	g->pid = fork();
	if (g->pid == 0) {
		close(p[1]);
		stand_guard(c, p[0]);
	}
	close(p[0]);
	g->pipe = p[1];
	if (g->pid < 0) {
		g->pid = 0;
		sys_close_ref(&g->pipe);
		return err_sys(e, "fork");
	}
	if (cgroup_freeze(c, true, e) == 0)
		return 0;
	(void)!thaw(g, NULL);
	return -1;
}

/* ---- the container ---- */

/* What it was started from. */
static int read_config(
	const struct instance_view *i, struct commit *c, char **name, bool *gpus, struct err *e)
{
	struct json_doc doc;
	const json_t *notes;
	const char *digest, *image;
	int rc = 0;

	if (json_doc_load(&doc, i->dir, "config.json", CONFIG_MAX, e) < 0)
		return err_ctx(e, "container %s", i->id);
	notes = json_object_get(doc.root, "annotations");
	digest = json_string_value(json_object_get(notes, INSTANCE_MANIFEST));
	image = json_string_value(json_object_get(notes, INSTANCE_IMAGE));
	if (!digest || digest_parse(&c->image, digest, NULL) < 0)
		rc = err_set(e, ERR_CORRUPT, "container %s: its config.json names no image", i->id);
	*name = mem_strdup(image ? image : "");
	*gpus = json_object_get(notes, INSTANCE_GPUS) != NULL;
	json_doc_fini(&doc);
	return rc;
}

static void warn_left_out(void *ctx, const char *path, const char *what)
{
	struct request *r = ctx;
	char shown[STR_SHOWN];

	if (r->left_out++ < SHOWN)
		warn("/%s is %s, which no image holds: left out", str_shown(path, shown), what);
}

/* Somebody may have killed it, and with --rm its folder goes with it: then half was read. */
static int check_still(const struct instance_view *i, const struct cgroup *frozen, struct err *e)
{
	struct pollfd p = {.fd = i->pidfd, .events = POLLIN};
	int rc = poll(&p, 1, 0) == 0 ? cgroup_frozen(frozen, e) : 0;

	return rc != 0 ? (rc < 0 ? -1 : 0)
		       : err_set(e, ERR_EXISTS, "container %s ended while it was read", i->id);
}

static int write_image(struct request *r, struct store *s, const struct instance_view *i,
	const struct commit *c, struct err *e)
{
	char text[DIGEST_TEXT + 1];
	auto_free char *source = NULL;
	struct pool *p = pool_open(s->fd, true, e);
	struct digest d;
	uint64_t size;
	int rc;

	if (!p)
		return -1;
	rc = commit_image(s, p, c, &d, &size, &source, e);
	if (rc == 0 && r->frozen)
		rc = check_still(i, r->frozen, e);
	if (rc == 0)
		rc = store_name_set(s, r->name, &d, size, source, e);
	pool_close(p);
	if (r->left_out > SHOWN)
		warn("%zu more were left out", r->left_out - SHOWN);
	if (rc == 0)
		puts(digest_text(&d, text));
	return rc;
}

static int commit_view(
	struct request *r, struct store *s, const struct instance_view *i, struct err *e)
{
	auto_free char *name = NULL;
	bool gpus = false;
	auto_fd int upper = sys_openat(i->dir, "upper", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	struct commit c = {.upper = upper,
		.message = r->message,
		.changes = {r->changes.v, r->changes.n},
		.progress = r->progress,
		.left_out = warn_left_out,
		.ctx = r};

	if (read_config(i, &c, &name, &gpus, e) < 0)
		return -1;
	if (upper < 0)
		return err_sys(e, "container %s: what it changed", i->id);
	/* what its GPUs put there is the host's, and made anew at every start */
	auto_fd int clean =
		fs_mount("tmpfs", "svrun-commit", NULL, 0, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, e);
	if (clean < 0 || gpu_edits_left(upper, clean, gpus, &c.others, e) < 0)
		return err_ctx(e, "container %s", i->id);
	c.instead = clean;
	c.name = name;
	return write_image(r, s, i, &c, e);
}

/* It stands still while its files are read: a change among them would be half of one. */
static int commit_running(
	struct request *r, struct store *s, const struct instance_view *i, struct err *e)
{
	struct cgroup cgroup;
	struct guard g;
	int rc = -1;

	if (!i->pid) {
		err_set(e, ERR_EXISTS, "container %s is just starting or ending", i->id);
		return err_hint(e, "try again");
	}
	if (cgroup_open(&cgroup, &i->cgroup, NULL, e) < 0)
		return -1;
	if (freeze(&g, &cgroup, e) == 0) {
		r->frozen = &cgroup;
		rc = commit_view(r, s, i, e);
		if (thaw(&g, rc < 0 ? NULL : e) < 0)
			rc = -1;
	}
	cgroup_fini(&cgroup);
	return rc;
}

static int commit(struct request *r, struct err *e)
{
	struct instance_view i;
	struct store s;
	int rc = -1;

	if (store_enter(&s, e) < 0)
		return -1;
	if (instance_open(s.fd, r->instance, &i, e) == 0) {
		rc = i.running ? commit_running(r, &s, &i, e) : commit_view(r, &s, &i, e);
		instance_close(&i);
	}
	store_close(&s);
	return rc;
}

int cmd_image_commit(const struct command *self, int argc, char **argv, struct err *e)
{
	struct request r = {.instance = NULL};
	const char *mode = NULL;
	const struct option_spec options[] = {
		{"message", 'm', OPTION_STRING, "TEXT", "for the image's history", &r.message},
		{"change", 'c', OPTION_LIST, "LINE",
			"ENV, CMD, ENTRYPOINT, WORKDIR, USER, LABEL or EXPOSE, as 'ENV A=B'",
			&r.changes},
		{"progress", 0, OPTION_STRING, "MODE", "auto, plain, json or none", &mode},
		{0},
	};
	int rc = -1, n = options_parse(self, options, argc, argv, false, e);

	if (n >= 0 && r.message && !str_utf8(r.message, strlen(r.message)))
		err_set(e, ERR_USAGE, "--message is not UTF-8");
	else if (n >= 0 && store_name_parse(argv[n + 1], r.name, e) == 0 &&
		 options_progress(mode, false, &r.progress, e) == 0) {
		r.instance = argv[n];
		rc = commit(&r, e);
		progress_free(r.progress);
	}
	option_list_fini(&r.changes);
	return rc;
}
