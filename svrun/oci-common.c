/* What the verbs of svrun-oci share. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "runtime/hooks.h"
#include "svrun/oci.h"

enum { PRESERVED_MAX = 65536, FIRST_FD = 3 };

int oci_root(const struct oci *o, struct err *e)
{
	auto_free char *path = o->root_path ? mem_strdup(o->root_path) : state_default_root(e);

	return path ? state_root(path, e) : -1;
}

int oci_open(const struct oci *o, const char *id, bool lock, struct state *s, struct err *e)
{
	auto_fd int root = oci_root(o, e);

	return root < 0 ? -1 : state_open(s, root, id, lock, e);
}

int oci_pid_file(const char *path, pid_t pid, struct err *e)
{
	auto_free char *tmp = mem_printf("%s.tmp", path);
	char text[16];
	int n = snprintf(text, sizeof(text), "%d", (int)pid);

	/* Never what somebody else has put there: a pipe to wait at, a file to keep the owner of.
	 */
	sys_unlinkat(AT_FDCWD, tmp, 0);
	auto_fd int fd = sys_open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644);
	if (fd < 0)
		return err_sys(e, "pid file %s", path);
	if (sys_write_all(fd, text, (size_t)n) == 0 &&
		sys_renameat(AT_FDCWD, tmp, AT_FDCWD, path) == 0)
		return 0;
	err_sys(e, "pid file %s", path);
	sys_unlinkat(AT_FDCWD, tmp, 0);
	return -1;
}

/* ---- a new container ---- */

/* ROOT/.seccomp, made when missing; -1: none. */
static int open_filters(const struct state *s)
{
	if (sys_mkdirat(s->root, STATE_FILTERS, 0700) < 0 && errno != EEXIST)
		return -1;
	return sys_openat(s->root, STATE_FILTERS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
}

/* The config's text. Most of it are the rules of its filter, which engines make the same each time:
 * of a filter that was compiled before, their text is enough, and `cut` is the config without them.
 */
static int recall_filter(struct seccomp_prog *filter, int filters, const struct buf *text,
	const char *from, const char *to, struct buf *cut)
{
	static const char instead[] = "{\"defaultAction\":\"SCMP_ACT_ERRNO\"}";

	if (*from != '{' || !seccomp_recall(filter, filters, from, (size_t)(to - from)))
		return 0;
	if (filter->notifies) { /* the agent's address is needed, too */
		seccomp_prog_fini(filter);
		return 0;
	}
	*cut = BUF_INIT(text->len + sizeof(instead));
	buf_put(cut, text->data, (size_t)(from - text->data));
	buf_put(cut, instead, sizeof(instead) - 1);
	buf_put(cut, to, (size_t)(text->data + text->len - to));
	return 1;
}

static int read_config(const struct oci *o, struct oci_cdi *d, struct spec *spec,
	struct seccomp_prog *filter, int filters, const struct buf *text, const char *name,
	struct err *e)
{
	static const char *const keys[] = {"linux", "seccomp", NULL};
	auto_buf struct buf cut = BUF_INIT(0);
	const char *from, *to;
	bool seen = json_find(text->data, text->len, keys, &from, &to);

	if (seen && recall_filter(filter, filters, text, from, to, &cut)) {
		if (oci_cdi_parse(o, d, spec, name, cut.data, cut.len, NULL) == 0)
			return 0;
		seccomp_prog_fini(filter); /* read again, so that places in errors are right */
	}
	if (oci_cdi_parse(o, d, spec, name, text->data, text->len, e) < 0)
		return -1;
	if (!spec->has_seccomp)
		return 0;
	if (seccomp_compile(filter, &spec->seccomp, e) < 0)
		return -1;
	if (seen)
		seccomp_remember(filter, filters, from, (size_t)(to - from));
	return 0;
}

int oci_read_bundle(const struct oci *o, struct state *s, struct spec *spec, struct oci_cdi *d,
	struct seccomp_prog *filter, const char *folder, const char *config, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(SPEC_MAX);
	auto_free char *bundle = realpath(folder, NULL);
	auto_fd int dir = bundle ? sys_open(bundle, O_PATH | O_DIRECTORY, 0) : -1;
	auto_fd int filters = open_filters(s);

	if (dir < 0)
		return err_sys(e, "bundle %s", folder);
	s->bundle = steal_ptr(&bundle);
	if (file_read(dir, config, &text, e) < 0) {
		if (e->kind == ERR_NOT_FOUND)
			err_hint(e, "a bundle is a folder with it, and the root file system that "
				    "it names; "
				    "`svrun-oci spec` writes one to begin with");
		return err_ctx(e, "bundle %s", s->bundle);
	}
	if (!text.data)
		return err_set(e, ERR_CORRUPT, "%s: empty", config);
	if (read_config(o, d, spec, filter, filters, &text, config, e) < 0)
		return -1;
	if (spec->has_seccomp && state_keep_filter(s, filter, e) < 0)
		return -1;
	return state_keep_config(s, spec, e);
}

int oci_describe(const struct oci *o, struct state *s, const struct spec *spec,
	const char *console_socket, struct err *e)
{
	const char *root = spec->root;

	if (root && root[0] != '/')
		s->rootfs = str_eq(s->bundle, "/") ? mem_printf("/%s", root)
						   : mem_printf("%s/%s", s->bundle, root);
	else
		s->rootfs = mem_strdup(root ? root : "");
	s->annotations = json_incref(json_object_get(spec->json, "annotations"));
	if (console_socket)
		s->console = mem_strdup(console_socket);
	if (!o->no_cgroup &&
		cgroup_place(&s->cgroup, spec->cgroups_path, s->id, o->systemd_cgroup, e) < 0)
		return -1;
	return state_write(s, e);
}

/* ---- descriptors that are passed on ---- */

/* Source: sd_listen_fds(3): they are ours only when LISTEN_PID says so. */
static int listen_fds(unsigned *n, struct err *e)
{
	const char *fds = getenv("LISTEN_FDS"), *pid = getenv("LISTEN_PID");
	uint64_t v;

	*n = 0;
	if (!fds || !pid || str_u64(pid, INT32_MAX, &v) < 0 || v != (uint64_t)getpid())
		return 0;
	if (str_u64(fds, PRESERVED_MAX, &v) < 0)
		return err_set(e, ERR_USAGE, "LISTEN_FDS: expected a number, got '%.40s'", fds);
	*n = (unsigned)v;
	return 0;
}

int oci_preserved(const char *preserve_fds, unsigned *n, unsigned *listen, struct err *e)
{
	uint64_t v = 0;

	if (preserve_fds && str_u64(preserve_fds, PRESERVED_MAX, &v) < 0)
		return err_set(e, ERR_USAGE, "--preserve-fds: expected a number up to %d, got '%s'",
			PRESERVED_MAX, preserve_fds);
	if (listen_fds(listen, e) < 0)
		return -1;
	*n = (unsigned)v + *listen;
	for (unsigned i = 0; i < *n; i++) {
		int fd = FIRST_FD + (int)i;

		if (fcntl(fd, F_GETFD) < 0)
			return err_set(e, ERR_USAGE,
				"descriptor %d is to be passed on, and is not open", fd);
	}
	return 0;
}

void oci_listen_env(struct spec *s, unsigned listen)
{
	const char *names = getenv("LISTEN_FDNAMES");
	struct strings *env = &s->process.env;
	const char **v;

	if (!listen || !s->process.given)
		return;
	v = arena_alloc(&s->mem, (env->n + 3) * sizeof(*v));
	for (size_t i = 0; i < env->n; i++)
		v[i] = env->v[i];
	v[env->n++] = arena_printf(&s->mem, "LISTEN_FDS=%u", listen);
	v[env->n++] = "LISTEN_PID=1";
	if (names)
		v[env->n++] = arena_printf(&s->mem, "LISTEN_FDNAMES=%s", names);
	env->v = v;
}

/* ---- hooks ---- */

void oci_late_hooks(const struct spec *s, enum hook_kind kind, const struct state *state,
	enum state_status status)
{
	auto_free char *text = NULL;
	struct spec one = *s;

	if (!s->hooks[kind].n)
		return;
	text = hook_state_text(s, state->id, state_status_name(status),
		status == STATE_STOPPED ? 0 : state->pid, state->bundle);
	for (size_t i = 0; i < s->hooks[kind].n; i++) {
		struct err e = {0};

		one.hooks[kind] = (struct spec_hooks){s->hooks[kind].v + i, 1};
		if (hooks_run(&one, kind, text, &e) < 0)
			warn("%s", e.text);
	}
}
