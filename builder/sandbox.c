#include "builder/sandbox.h"

#include <errno.h>
#include <fcntl.h>
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

enum { HOST_FILE_MAX = 1 << 20, LOOK_MS = 100 };

struct sandbox {
	const struct sandbox_step *step;
	struct tree *tree;
	struct store *s;
	struct sandbox_end end;
	struct sandbox_folder folder;
	struct sandbox_targets targets;
	struct passwd_ids ids;
	struct spec spec;
	struct seccomp_prog filter;
	struct container *c;
	struct watch watch;
	int root, upper;
	uint64_t max_bytes, spare_bytes;
	bool has_spec;
	struct sandbox *const *beside;
	size_t nbeside;
	double next_look; /* at those */
	struct err fault; /* of watching it */
	bool failed;
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
static int put_files(struct sandbox *b, struct err *e)
{
	static const char names[] = "127.0.0.1\tlocalhost svrun\n::1\tlocalhost\n";
	const struct sandbox_step *s = b->step;
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
		&b->folder, v, s->nfiles + 1 + s->network, b->ids.uid, b->ids.gid, e);
}

/* ---- the container ---- */

static int make_filter(struct sandbox *b, struct err *e)
{
	auto_fd int dir = -1;

	if (sys_mkdirat(b->s->fd, "filters", 0700) == 0 || errno == EEXIST)
		dir = sys_openat(b->s->fd, "filters", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	return seccomp_cached(&b->filter, dir, &b->spec.seccomp, e);
}

static int make_spec(struct sandbox *b, struct err *e)
{
	struct sandbox_request q = {.step = b->step,
		.folder = &b->folder,
		.targets = &b->targets,
		.ids = &b->ids,
		.max_bytes = b->max_bytes};
	auto_json json_t *config = sandbox_spec(&q);

	if (!config)
		return err_set(e, ERR_USAGE, "an argument or variable is not UTF-8");
	if (spec_read(&b->spec, config, "step", e) < 0)
		return -1;
	b->has_spec = true;
	return 0;
}

static int start_container(struct sandbox *b, struct err *e)
{
	int status;

	/* It has its binds: nobody else shall see the files. */
	sandbox_folder_hide(&b->folder);
	b->upper = sys_openat(b->folder.dir, ".", O_RDONLY | O_DIRECTORY, 0);
	if (b->upper < 0)
		return err_sys(e, "open %s", b->folder.path);
	b->watch.c = b->c;
	b->watch.log = b->step->log;
	b->watch.upper = b->upper;
	b->watch.timeout_ms = b->step->timeout_ms;
	b->watch.max_bytes = b->max_bytes;
	b->watch.spare_bytes = b->spare_bytes;
	b->watch.exact = b->step->max_bytes && b->max_bytes == b->step->max_bytes;
	b->watch.binds = b->step->binds;
	b->watch.nbinds = b->step->nbinds;
	b->watch.end = &b->end;
	return watch_begin(&b->watch, e) < 0 ? -1 : container_start(b->c, &status, e);
}

static int make_container(struct sandbox *b, struct err *e)
{
	struct container_options o = {.spec = &b->spec,
		.id = b->folder.id,
		.bundle = b->folder.path,
		.root = b->root,
		.filter = &b->filter,
		.door = -1};
	int p[2];
	auto_fd int null = sys_open("/dev/null", O_RDONLY, 0);

	if (null < 0 || sys_pipe(p) < 0)
		return err_sys(e, "its streams");
	b->watch.output = p[0];

	/* The program alone keeps it: its end is the end of the output. */
	auto_fd int input = p[1];

	o.stdio[0] = null;
	o.stdio[1] = o.stdio[2] = input;
	if (make_filter(b, e) < 0 || sandbox_folder_cgroup(&b->folder, &o.cgroup, e) < 0)
		return -1;
	return container_create(&b->c, &o, e);
}

static int start_in_folder(struct sandbox *b, struct err *e)
{
	const char *user = b->step->user ? b->step->user : "0:0";

	if (watch_space(b->folder.dir, b->step->max_bytes, &b->max_bytes, &b->spare_bytes, e) < 0 ||
		sandbox_targets_make(&b->targets, b->step, b->tree, e) < 0)
		return -1;
	b->root = sandbox_folder_overlay(&b->folder, b->tree, b->s, &b->targets.points, e);
	if (b->root < 0 || passwd_resolve(b->root, user, &b->ids, e) < 0 || put_files(b, e) < 0)
		return -1;
	if (make_spec(b, e) < 0 || make_container(b, e) < 0)
		return -1;
	return start_container(b, e);
}

/* Gone when this returns, so that nobody writes any more. */
static int remove_container(struct sandbox *b, struct err *e)
{
	int rc = b->c ? container_delete(b->c, e) : 0;

	b->c = NULL;
	watch_fini(&b->watch);
	sys_close_ref(&b->root);
	sys_close_ref(&b->upper);
	return rc;
}

static int discard(struct sandbox *b, struct err *e)
{
	int rc = remove_container(b, e);

	if (b->has_spec)
		spec_fini(&b->spec);
	seccomp_prog_fini(&b->filter);
	sandbox_targets_fini(&b->targets);
	if (sandbox_folder_remove(&b->folder, rc < 0 ? NULL : e) < 0)
		rc = -1;
	free(b);
	return rc;
}

int sandbox_start(struct sandbox **out, const struct sandbox_step *step, struct tree *t,
	struct store *s, struct err *e)
{
	struct sandbox *b;

	if (sandbox_sweep(s, e) < 0)
		return -1;
	b = mem_alloc(sizeof(*b));
	*b = (struct sandbox){
		.step = step, .tree = t, .s = s, .root = -1, .upper = -1, .watch = {.output = -1}};
	if (sandbox_folder_make(&b->folder, s, e) < 0) {
		free(b);
		return -1;
	}
	if (start_in_folder(b, e) < 0) {
		if (discard(b, NULL) < 0)
			warn("step %s left something in %s/steps", step->id, s->path);
		return -1;
	}
	*out = b;
	return 0;
}

/* ---- waiting ---- */

static int sooner(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* Where one filled the disk, that one before those that were stopped with it. */
static int find_ended(struct sandbox *const *v, size_t n)
{
	int at = -1;

	for (size_t i = 0; i < n; i++) {
		bool ended = v[i]->failed || watch_over(&v[i]->watch);

		if (v[i]->watch.killed && v[i]->end.out_of_disk)
			return ended ? (int)i : -1;
		if (ended && at < 0)
			at = (int)i;
	}
	return at;
}

/* The disk gets short: all that write there are stopped at once, as the next moment may fill it,
 * and the one that wrote most is why. */
static void look_at_disk(struct sandbox *const *v, size_t n)
{
	struct watch *most = NULL;
	uint64_t bytes = 0;
	bool is_short = false;

	for (size_t i = 0; i < n; i++)
		is_short = is_short || v[i]->watch.disk_short;
	for (size_t i = 0; is_short && i < n; i++) {
		struct watch *w = &v[i]->watch;

		w->disk_short = !w->killed && !w->ended;
		watch_stop(w);
	}
	for (size_t i = 0; is_short && i < n; i++) {
		struct watch *w = &v[i]->watch;
		uint64_t its = w->disk_short && n > 1 ? watch_written(w) : 0;

		if (w->disk_short && (!most || its > bytes)) {
			most = w;
			bytes = its;
		}
		w->disk_short = false;
	}
	if (most)
		most->end->out_of_disk = true;
}

/* Wait until something happens, at most so many ms (-1: no limit), and see to it. */
static void look_once(struct sandbox *const *v, size_t n, int ms)
{
	auto_free struct pollfd *p = mem_array(WATCH_FDS * n, sizeof(*p));

	for (size_t i = 0; i < n; i++) {
		watch_poll(&v[i]->watch, p + WATCH_FDS * i);
		ms = sooner(ms, watch_timeout(&v[i]->watch));
	}
	if (poll(p, WATCH_FDS * n, ms) < 0) /* a signal, or no memory: look again */
		memset(p, 0, WATCH_FDS * n * sizeof(*p));
	for (size_t i = 0; i < n; i++)
		if (!v[i]->failed)
			v[i]->failed =
				watch_handle(&v[i]->watch, p + WATCH_FDS * i, &v[i]->fault) < 0;
	look_at_disk(v, n);
}

int sandbox_wait(struct sandbox *const *v, size_t n, int ms)
{
	double until = sys_now_ms() + ms;
	int at;

	while ((at = find_ended(v, n)) < 0) {
		double left = until - sys_now_ms();

		if (ms >= 0 && left <= 0)
			return -1;
		look_once(v, n, ms < 0 ? -1 : (int)left + 1);
	}
	return at;
}

void sandbox_beside(struct sandbox *b, struct sandbox *const *v, size_t n)
{
	b->beside = v;
	b->nbeside = n;
}

/* What runs beside it must not fill the disk meanwhile. */
static void look_beside(void *ctx)
{
	struct sandbox *b = ctx;

	if (sys_now_ms() < b->next_look)
		return;
	look_once(b->beside, b->nbeside, 0);
	b->next_look = sys_now_ms() + LOOK_MS;
}

void sandbox_stop(struct sandbox *b)
{
	watch_stop(&b->watch);
}

/* ---- what it wrote ---- */

bool sandbox_went_well(const struct sandbox_end *end)
{
	return end->status == 0 && !end->timed_out && !end->out_of_memory && !end->out_of_disk &&
	       !end->out_of_pids && !end->too_much_output && !end->wrote_too_much;
}

static int read_changes(
	struct sandbox *b, struct pool *pool, struct entries *changed, struct err *e)
{
	auto_fd int dir = sys_openat(b->folder.dir, "upper", O_RDONLY | O_DIRECTORY, 0);
	struct upper u = {.dir = dir,
		.tree = b->tree,
		.pool = pool,
		.max_bytes = b->max_bytes,
		.scan = b->step->scan,
		.tick = b->nbeside ? look_beside : NULL,
		.tick_ctx = b};

	if (dir < 0)
		return err_sys(e, "open %s/upper", b->folder.path);
	if (upper_read(&u, changed, e) < 0) {
		if (!u.too_much)
			return -1;
		/* Holes, which took no place until somebody read them. */
		*(b->watch.exact ? &b->end.wrote_too_much : &b->end.out_of_disk) = true;
		return 0;
	}
	b->end.secret = u.secret;
	memcpy(b->end.secret_path, u.secret_path, sizeof(u.secret_path));
	return 0;
}

static int collect(struct sandbox *b, struct pool *pool, struct entries *changed, struct err *e)
{
	if (b->failed) {
		if (e)
			*e = b->fault;
		return -1;
	}
	if (!watch_over(&b->watch))
		return err_set(e, ERR_SYSTEM, "it was stopped");
	if (watch_finish(&b->watch, e) < 0 || remove_container(b, e) < 0)
		return -1;
	return sandbox_went_well(&b->end) ? read_changes(b, pool, changed, e) : 0;
}

int sandbox_end(struct sandbox *b, struct pool *pool, struct entries *changed,
	struct sandbox_end *end, struct err *e)
{
	size_t before = changed->n;
	struct err fault = {0};
	int rc = collect(b, pool, changed, &fault);

	if (rc < 0 && e)
		*e = fault;
	*end = b->end;
	if (rc < 0 || end->secret || !sandbox_went_well(end))
		changed->n = before;
	if (discard(b, rc < 0 ? NULL : e) < 0)
		rc = -1;
	return rc;
}

int sandbox_run(const struct sandbox_step *step, struct tree *t, struct store *s, struct pool *pool,
	struct entries *changed, struct sandbox_end *end, struct err *e)
{
	struct sandbox *b;

	*end = (struct sandbox_end){0};
	if (sandbox_start(&b, step, t, s, e) < 0)
		return -1;
	while (sandbox_wait(&b, 1, -1) < 0)
		continue;
	return sandbox_end(b, pool, changed, end, e);
}
