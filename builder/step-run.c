/* One step: its key, its result from the cache, or a run. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "builder/cache-share.h"
#include "builder/engine.h"
#include "builder/steps-private.h"
#include "builder/unpacked.h"
#include "builder/upper.h"

#define LOGS "cache/step-logs"
enum { KEPT_LOG_MAX = 16 << 20, PIECE = 64 << 10 };

/* What is there while one runs. */
struct running {
	struct steps *s;
	const struct step *st;
	struct tree *view;
	struct sandbox_step box;
	struct sandbox_bind *binds;
	struct sandbox_file *files;
	int *locks; /* of the cache folders */
	size_t nlocks;
	struct build_secret *secrets; /* those that it gets; borrowed values */
	size_t nsecrets;
	struct secret_scan *scan;
	const char *log_path;
	time_t begun;
};

/* ---- the key ---- */

static struct digest key_of(const struct steps *s, const struct step *st, struct tree *view)
{
	auto_buf struct buf b = BUF_INIT(64 << 20), doc = BUF_INIT(32 << 20);
	struct digest tree = step_tree_digest(view);
	char hex[DIGEST_HEX + 1];

	json_text(st->doc, true, &doc);
	buf_printf(&b, "step %s %s %s %jd %s %s", ENGINE_VERSION, SANDBOX_VERSION,
		s->x->l->platform, (intmax_t)s->x->m->build.epoch, digest_hex(&tree, hex),
		doc.data);
	return digest_of(b.data, b.len);
}

/* ---- the cache ---- */

static int load(struct steps *s, const struct step *st, const struct digest *key,
	struct entries *out, struct err *e)
{
	auto_buf struct buf log = BUF_INIT(KEPT_LOG_MAX);
	int rc;

	if (s->x->no_cache)
		return 0;
	rc = unpacked_load(s->x->s, s->x->pool, key, NULL, out, e);
	if (rc == 0)
		rc = cache_share_step(s->x->share, s->x->s, s->x->pool, key, e);
	if (rc > 0 && out->n == 0)
		rc = unpacked_load(s->x->s, s->x->pool, key, NULL, out, e);
	if (rc <= 0)
		return rc;
	progress_note(s->x->p, "step %s: done before", st->id);
	if (cache_file_get(s->x->s, LOGS, key, &log, NULL) > 0 &&
		file_write(AT_FDCWD, step_log_path(s, st), log.data ? log.data : "", log.len, 0600,
			e) < 0)
		return -1;
	return 1;
}

static int save(struct steps *s, const struct step *st, const struct digest *key,
	const struct entries *out, struct err *e)
{
	auto_buf struct buf log = BUF_INIT(KEPT_LOG_MAX);
	struct unpacked_queue q;
	int rc;

	unpacked_queue_init(&q, s->x->s, s->x->pool);
	rc = unpacked_add(&q, key, NULL, out, e);
	if (rc == 0)
		rc = unpacked_flush(&q, e);
	unpacked_queue_fini(&q);
	/* A log that is too long to be kept twice is where it was written. */
	if (rc == 0 && file_read(AT_FDCWD, step_log_path(s, st), &log, NULL) == 0)
		rc = cache_file_put(s->x->s, LOGS, key, log.data ? log.data : "", log.len, e);
	return rc;
}

/* ---- cache folders ---- */

/* ROOT/cache/mounts/ID, for us alone until the lock is closed. */
static int open_cache(struct running *r, const struct run_cache *c, struct err *e)
{
	struct store *s = r->s->x->s;
	auto_free char *folder = mem_printf("cache/mounts/%s", c->id);
	auto_free char *lock = mem_printf("cache/mounts/%s.lock", c->id);

	/* For whatever user the step has; nobody else gets into the store. */
	if (sys_mkdir_p(s->fd, folder, 0755) < 0 || fchmodat(s->fd, folder, 01777, 0) < 0)
		return err_sys(e, "make %s/%s", s->path, folder);

	auto_fd int fd = sys_openat(s->fd, lock, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);

	if (fd < 0 || sys_flock(fd, LOCK_EX) < 0)
		return err_sys(e, "lock %s/%s", s->path, lock);
	r->locks[r->nlocks++] = steal_fd(&fd);
	r->binds[r->box.nbinds++] = (struct sandbox_bind){
		arena_printf(&r->s->arena, "%s/%s", s->path, folder), c->target, true};
	return 0;
}

static int by_id(const void *a, const void *b)
{
	const struct run_cache *x = a, *y = b;

	return strcmp(x->id, y->id);
}

/* In the order of their names: two builds that want the same two never wait for each other. */
static int open_caches(struct running *r, struct err *e)
{
	size_t n = r->st->ncaches;
	auto_free struct run_cache *v = mem_dup(r->st->caches, n * sizeof(*v));

	if (n)
		qsort(v, n, sizeof(*v), by_id);
	for (size_t i = 0; i < n; i++)
		if ((i == 0 || !str_eq(v[i].id, v[i - 1].id)) && open_cache(r, &v[i], e) < 0)
			return -1;
	return 0;
}

/* ---- secrets ---- */

static const struct build_secret *find_secret(const struct step_context *x, const char *id)
{
	for (size_t i = 0; i < x->nsecrets; i++)
		if (str_eq(x->secrets[i].id, id))
			return &x->secrets[i];
	return NULL;
}

static int give_secrets(struct running *r, struct err *e)
{
	for (size_t i = 0; i < r->st->nsecrets; i++) {
		const struct run_secret *want = &r->st->secrets[i];
		const struct build_secret *have = find_secret(r->s->x, want->id);

		if (!have && !want->required)
			continue;
		if (!have) {
			auto_free char *at = mem_printf("/secrets/%zu", i);

			step_fault(r->s, r->st, at, 131, e, "step %s needs the secret '%s'",
				r->st->id, want->id);
			return err_hint(e, "--secret %s=FILE", want->id);
		}
		r->secrets[r->nsecrets++] = *have;
		r->files[r->box.nfiles++] = (struct sandbox_file){
			want->target ? want->target
				     : arena_printf(&r->s->arena, "/run/secrets/%s", want->id),
			have->value, have->n, 0400};
	}
	return 0;
}

static int leaked(struct running *r, const char *id, const char *where, struct err *e)
{
	step_fault(r->s, r->st, r->st->nsecrets ? "/secrets" : "", 131, e,
		"step %s: the secret '%s' is in %.700s", r->st->id, id, where);
	return err_hint(e, "nothing of the step was kept: a secret may be read, never written");
}

/* The log must not have it either: then there is no log. */
static int scan_log(struct running *r, struct err *e)
{
	static const char gone[] = "svrun: a secret was in this log, which is why it is empty\n";
	auto_free char *piece = mem_alloc(PIECE);
	auto_fd int fd = r->scan ? sys_open(r->log_path, O_RDWR, 0) : -1;
	ssize_t n;

	if (!r->scan)
		return 0;
	if (fd < 0)
		return err_sys(e, "open %s", r->log_path);
	secret_scan_begin(r->scan);
	while ((n = sys_read(fd, piece, PIECE)) > 0) {
		const char *id = secret_scan_add(r->scan, piece, (size_t)n);

		if (!id)
			continue;
		if (sys_ftruncate(fd, 0) < 0 || sys_pwrite_all(fd, gone, strlen(gone), 0) < 0)
			return err_sys(e, "empty %s", r->log_path);
		return leaked(r, id, "what it printed", e);
	}
	return n < 0 ? err_sys(e, "read %s", r->log_path) : 0;
}

/* What a step leaves in a cache folder comes back to other steps. */
static int scan_caches(struct running *r, struct err *e)
{
	struct tree *nothing = r->scan ? tree_new() : NULL;
	int rc = 0;

	for (size_t i = 0; r->scan && rc == 0 && i < r->st->ncaches; i++) {
		auto_free char *folder = mem_printf("cache/mounts/%s", r->st->caches[i].id);
		struct entries none = {0};
		auto_fd int dir =
			sys_openat(r->s->x->s->fd, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
		struct upper u = {.dir = dir,
			.tree = nothing,
			.max_bytes = UINT64_MAX,
			.scan = r->scan,
			.since = r->begun};

		rc = dir < 0 ? err_sys(e, "open %s", folder) : upper_read(&u, &none, e);
		entries_fini(&none);
		if (rc == 0 && u.secret) {
			auto_free char *where = mem_printf(
				"cache folder '%s', file %s", r->st->caches[i].id, u.secret_path);

			rc = sys_remove_tree(r->s->x->s->fd, folder) < 0
				     ? err_sys(e, "remove %s", folder)
				     : leaked(r, u.secret, where, e);
		}
	}
	tree_free(nothing);
	return rc;
}

/* ---- the run ---- */

static int prepare(struct running *r, struct err *e)
{
	const struct step *st = r->st;
	struct arena *a = &r->s->arena;

	r->box = st->box;
	r->box.epoch = r->s->x->m->build.epoch;
	r->binds = arena_alloc(a, (st->box.nbinds + st->ncaches) * sizeof(*r->binds));
	r->files = arena_alloc(a, (st->box.nfiles + st->nsecrets) * sizeof(*r->files));
	r->locks = arena_alloc(a, st->ncaches * sizeof(*r->locks));
	r->secrets = arena_alloc(a, st->nsecrets * sizeof(*r->secrets));
	for (size_t i = 0; i < st->box.nbinds; i++)
		r->binds[i] = st->box.binds[i];
	for (size_t i = 0; i < st->box.nfiles; i++)
		r->files[i] = st->box.files[i];
	r->box.binds = r->binds;
	r->box.files = r->files;
	if (open_caches(r, e) < 0 || give_secrets(r, e) < 0)
		return -1;
	/* A secret of another step may come by a cache folder. */
	if (r->s->x->nsecrets)
		r->scan = secret_scan_new(r->s->x->secrets, r->s->x->nsecrets);
	r->box.scan = r->scan;
	r->log_path = step_log_path(r->s, st);
	r->box.log =
		sys_open(r->log_path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW, 0600);
	return r->box.log < 0 ? err_sys(e, "create %s", r->log_path) : 0;
}

static bool went_well(const struct sandbox_end *end)
{
	return end->status == 0 && !end->timed_out && !end->out_of_memory && !end->out_of_disk &&
	       !end->out_of_pids;
}

static int run_prepared(struct running *r, struct entries *out, struct err *e)
{
	auto_free struct sandbox_end *end = mem_alloc(sizeof(*end));

	r->begun = time(NULL);
	if (sandbox_run(&r->box, r->view, r->s->x->s, r->s->x->pool, out, end, e) < 0)
		return err_ctx(e, "step %s", r->st->id);
	if (scan_log(r, e) < 0 || scan_caches(r, e) < 0)
		return -1;
	if (end->secret) {
		auto_free char *where = mem_printf("/%s", end->secret_path);

		return leaked(r, end->secret, where, e);
	}
	if (!went_well(end))
		return step_failed(r->s, r->st, end, e);
	progress_note(r->s->x->p, "step %s: %.1f s", r->st->id, end->seconds);
	return 0;
}

static int run_now(struct steps *s, const struct step *st, struct tree *view, struct entries *out,
	struct err *e)
{
	struct running r = {.s = s, .st = st, .view = view, .box.log = -1};
	int rc = prepare(&r, e);

	if (rc == 0) {
		progress_begin(s->x->p, st->id, 0);
		rc = run_prepared(&r, out, e);
		progress_end(s->x->p);
	}
	secret_scan_free(r.scan);
	sys_close_ref(&r.box.log);
	for (size_t i = 0; i < r.nlocks; i++)
		sys_close_ref(&r.locks[i]);
	return rc;
}

static void note_key(struct steps *s, const struct digest *key)
{
	struct step_keys *k = s->x->keys;

	if (!k)
		return;
	mem_grow(&k->v, &k->cap, k->n);
	k->v[k->n++] = *key;
}

int step_changes(struct steps *s, const struct step *st, struct tree *view, struct entries *out,
	struct err *e)
{
	struct digest key = key_of(s, st, view);
	int rc = load(s, st, &key, out, e);

	if (rc > 0)
		note_key(s, &key);
	if (rc > 0 && s->x->count)
		s->x->count->steps_reused++;
	if (rc != 0)
		return rc < 0 ? err_ctx(e, "step %s", st->id) : 0;
	if (run_now(s, st, view, out, e) < 0)
		return -1;
	if (s->x->count)
		s->x->count->steps_run++;
	note_key(s, &key);
	return save(s, st, &key, out, e) < 0 ? err_ctx(e, "keep step %s", st->id) : 0;
}
