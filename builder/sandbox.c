#include "builder/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "builder/sandbox-folder.h"
#include "builder/sandbox-spec.h"
#include "builder/sandbox-watch.h"
#include "builder/upper.h"
#include "runtime/container.h"

enum { HOST_FILE_MAX = 1 << 20, OUTPUT_LINE = 200 };

struct run {
	const struct sandbox_step *step;
	struct tree *tree;
	struct store *s;
	struct pool *pool;
	struct sandbox_end *end;
	struct sandbox_folder folder;
	struct sandbox_targets targets;
	struct passwd_ids *ids;
	uint64_t max_bytes, spare_bytes;
};

/* ---- small files ---- */

/* The host's names count where its network does: copies, so that nothing of the host is mounted. */
static int host_file(const char *path, struct buf *b, struct err *e)
{
	if (access(path, F_OK) < 0)
		return 0;
	return file_read(AT_FDCWD, path, b, e);
}

/* The step's, then /etc/hosts, then with a network /etc/resolv.conf: as sandbox_spec() counts. */
static int put_files(struct run *r, struct err *e)
{
	static const char names[] = "127.0.0.1\tlocalhost svrun\n::1\tlocalhost\n";
	const struct sandbox_step *s = r->step;
	auto_free struct sandbox_file *v = mem_array(s->nfiles + 2, sizeof(*v));
	auto_buf struct buf hosts = BUF_INIT(HOST_FILE_MAX), resolv = BUF_INIT(HOST_FILE_MAX);

	for (size_t i = 0; i < s->nfiles; i++)
		v[i] = s->files[i];
	if (s->network && (host_file("/etc/hosts", &hosts, e) < 0 ||
				  host_file("/etc/resolv.conf", &resolv, e) < 0))
		return -1;
	v[s->nfiles] = (struct sandbox_file){"/etc/hosts", s->network ? hosts.data : names,
		s->network ? hosts.len : strlen(names), 0444};
	v[s->nfiles + 1] = (struct sandbox_file){"/etc/resolv.conf", resolv.data, resolv.len, 0444};
	return sandbox_folder_files(
		&r->folder, v, s->nfiles + 1 + s->network, r->ids->uid, r->ids->gid, e);
}

/* ---- the container ---- */

static int make_filter(
	struct run *r, const struct spec *spec, struct seccomp_prog *filter, struct err *e)
{
	auto_fd int dir = -1;

	if (sys_mkdirat(r->s->fd, "filters", 0700) == 0 || errno == EEXIST)
		dir = sys_openat(r->s->fd, "filters", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	return seccomp_cached(filter, dir, &spec->seccomp, e);
}

static int watch_container(struct run *r, struct container *c, int *output, struct err *e)
{
	int status;

	/* It has its binds: nobody else shall see the files. */
	sandbox_folder_hide(&r->folder);
	if (container_start(c, &status, e) < 0)
		return -1;

	auto_fd int upper = sys_openat(r->folder.dir, ".", O_RDONLY | O_DIRECTORY, 0);
	struct watch w = {.c = c,
		.output = steal_fd(output),
		.log = r->step->log,
		.upper = upper,
		.timeout_ms = r->step->timeout_ms,
		.max_bytes = r->max_bytes,
		.spare_bytes = r->spare_bytes};

	if (upper < 0) {
		sys_close_ref(&w.output);
		return err_sys(e, "open %s", r->folder.path);
	}
	return watch_run(&w, r->end, e);
}

static int run_container(struct run *r, const struct spec *spec, int root, struct err *e)
{
	__attribute__((cleanup(seccomp_prog_fini))) struct seccomp_prog filter = {0};
	struct container_options o = {.spec = spec,
		.id = r->folder.id,
		.bundle = r->folder.path,
		.root = root,
		.filter = &filter,
		.door = -1};
	struct container *c;
	int p[2], rc;
	auto_fd int null = sys_open("/dev/null", O_RDONLY, 0);

	if (null < 0 || sys_pipe(p) < 0)
		return err_sys(e, "its streams");

	auto_fd int output = p[0], input = p[1];

	o.stdio[0] = null;
	o.stdio[1] = o.stdio[2] = input;
	if (make_filter(r, spec, &filter, e) < 0 ||
		sandbox_folder_cgroup(&r->folder, &o.cgroup, e) < 0 ||
		container_create(&c, &o, e) < 0)
		return -1;
	sys_close_ref(&input); /* the program alone keeps it: its end is the end of the output */
	rc = watch_container(r, c, &output, e);
	if (container_delete(c, rc ? NULL : e) < 0)
		rc = -1;
	return rc;
}

/* root: the overlay. Gone when this returns, so that nobody writes any more. */
static int run_on(struct run *r, int *root, struct err *e)
{
	struct sandbox_request q = {.step = r->step,
		.folder = &r->folder,
		.targets = &r->targets,
		.ids = r->ids,
		.max_bytes = r->max_bytes};
	auto_json json_t *config = NULL;
	struct spec spec;
	int rc;

	if (passwd_resolve(*root, r->step->user ? r->step->user : "0:0", r->ids, e) < 0 ||
		put_files(r, e) < 0)
		return -1;
	config = sandbox_spec(&q);
	if (!config)
		return err_set(e, ERR_USAGE, "an argument or variable is not UTF-8");
	if (spec_read(&spec, config, "step", e) < 0)
		return -1;
	rc = run_container(r, &spec, *root, e);
	spec_fini(&spec);
	sys_close_ref(root);
	return rc;
}

/* ---- what it wrote ---- */

static bool was_good(const struct sandbox_end *end)
{
	return end->status == 0 && !end->timed_out && !end->out_of_memory && !end->out_of_disk &&
	       !end->out_of_pids && !end->too_much_output;
}

static int read_changes(struct run *r, struct entries *changed, struct err *e)
{
	auto_fd int dir = sys_openat(r->folder.dir, "upper", O_RDONLY | O_DIRECTORY, 0);
	struct upper u = {.dir = dir,
		.tree = r->tree,
		.pool = r->pool,
		.max_bytes = r->max_bytes,
		.scan = r->step->scan};

	if (dir < 0)
		return err_sys(e, "open %s/upper", r->folder.path);
	if (upper_read(&u, changed, e) < 0)
		return -1;
	r->end->secret = u.secret;
	memcpy(r->end->secret_path, u.secret_path, sizeof(u.secret_path));
	return 0;
}

static int run_in_folder(struct run *r, struct entries *changed, struct err *e)
{
	auto_fd int root = -1;

	if (watch_space(r->folder.dir, r->step->max_bytes, &r->max_bytes, &r->spare_bytes, e) < 0 ||
		sandbox_targets_make(&r->targets, r->step, r->tree, e) < 0)
		return -1;
	root = sandbox_folder_overlay(&r->folder, r->tree, r->s, &r->targets.points, e);
	if (root < 0 || run_on(r, &root, e) < 0)
		return -1;
	return was_good(r->end) ? read_changes(r, changed, e) : 0;
}

int sandbox_run(const struct sandbox_step *step, struct tree *t, struct store *s, struct pool *pool,
	struct entries *changed, struct sandbox_end *end, struct err *e)
{
	struct run r = {.step = step, .tree = t, .s = s, .pool = pool, .end = end};
	size_t before = changed->n;
	int rc;

	*end = (struct sandbox_end){0};
	if (sandbox_sweep(s, e) < 0 || sandbox_folder_make(&r.folder, s, e) < 0)
		return -1;
	r.ids = mem_alloc(sizeof(*r.ids));
	rc = run_in_folder(&r, changed, e);
	if (rc < 0 || end->secret)
		changed->n = before;
	free(r.ids);
	sandbox_targets_fini(&r.targets);
	if (sandbox_folder_remove(&r.folder, rc < 0 ? NULL : e) < 0)
		rc = -1;
	return rc;
}
