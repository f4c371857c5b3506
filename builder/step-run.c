/* One step: its key, its result from the cache, or a run. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "builder/cache-share.h"
#include "builder/engine.h"
#include "builder/step-mounts.h"
#include "builder/steps-private.h"
#include "builder/unpacked.h"
#include "builder/upper.h"

#define LOGS "cache/step-logs"
enum { KEPT_LOG_MAX = 16 << 20, PIECE = 64 << 10 };

/* What is there while one runs. */
struct running {
	struct sandbox *sandbox;
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
	int log; /* box.log, too, when there is nothing to look for */
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

static int open_cache(struct running *r, const struct run_cache *c, bool wait, struct err *e)
{
	struct store *s = r->s->x->s;
	auto_free char *folder = step_mount_folder(c->id);
	int lock, rc = step_mount_open(s, c->id, wait, &lock, e);

	if (rc <= 0)
		return rc;
	r->locks[r->nlocks++] = lock;
	r->binds[r->box.nbinds++] = (struct sandbox_bind){
		arena_printf(&r->s->arena, "%s/%s", s->path, folder), c->target, true};
	return 1;
}

static int by_id(const void *a, const void *b)
{
	const struct run_cache *x = a, *y = b;

	return strcmp(x->id, y->id);
}

/* In the order of their names, and waiting only where no step runs: two builds that want the same
 * two never wait for each other. 1; 0: another has one of them. */
static int open_caches(struct running *r, bool wait, struct err *e)
{
	size_t n = r->st->ncaches;
	auto_free struct run_cache *v = mem_dup(r->st->caches, n * sizeof(*v));
	int rc = 1;

	if (n)
		qsort(v, n, sizeof(*v), by_id);
	for (size_t i = 0; rc > 0 && i < n; i++)
		if (i == 0 || !str_eq(v[i].id, v[i - 1].id))
			rc = open_cache(r, &v[i], wait, e);
	return rc;
}

static int mark_caches(struct running *r, bool set, struct err *e)
{
	for (size_t i = 0; i < r->nlocks; i++)
		if (step_mount_mark(r->locks[i], set, e) < 0)
			return -1;
	return 0;
}

/* What is in the way of that stays marked, and is removed by the next who comes. */
static void remove_caches(struct running *r)
{
	struct err fault = {0};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < r->st->ncaches; i++)
		rc = step_mount_remove(r->s->x->s, r->st->caches[i].id, &fault);
	if (rc < 0 || mark_caches(r, false, &fault) < 0)
		warn("%s", fault.text);
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

static int scan_log(struct running *r, struct err *e)
{
	auto_free char *piece = mem_alloc(PIECE);
	off_t at = 0;
	ssize_t n;

	secret_scan_begin(r->scan);
	while ((n = sys_pread(r->box.log, piece, PIECE, at)) > 0) {
		const char *id = secret_scan_add(r->scan, piece, (size_t)n);

		if (id)
			return leaked(r, id, "what it printed", e);
		at += n;
	}
	return n < 0 ? err_sys(e, "read its output") : 0;
}

/* What a step leaves in a cache folder comes back to other steps. */
static int scan_cache(struct running *r, const char *id, struct tree *nothing, struct err *e)
{
	auto_free char *folder = step_mount_folder(id);
	struct entries none = {0};
	auto_fd int dir =
		sys_openat(r->s->x->s->fd, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	struct upper u = {.dir = dir,
		.tree = nothing,
		.max_bytes = UINT64_MAX,
		.scan = r->scan,
		.since = r->begun};
	int rc = dir < 0 ? err_sys(e, "open %s", folder) : upper_read(&u, &none, e);

	entries_fini(&none);
	if (rc < 0) {
		err_ctx(e, "step %s: cache folder '%s' cannot be searched for secrets", r->st->id,
			id);
		return err_hint(e, "the folder was removed");
	}
	if (!u.secret)
		return 0;

	auto_free char *file = step_shown(u.secret_path);
	auto_free char *where = mem_printf("cache folder '%s', file %s", id, file);

	return leaked(r, u.secret, where, e);
}

static int scan_caches(struct running *r, struct err *e)
{
	struct tree *nothing = tree_new();
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < r->st->ncaches; i++)
		rc = scan_cache(r, r->st->caches[i].id, nothing, e);
	tree_free(nothing);
	return rc;
}

static int find_leaks(struct running *r, const struct sandbox_end *end, struct err *e)
{
	if (scan_log(r, e) < 0 || scan_caches(r, e) < 0)
		return -1;
	if (!end->secret)
		return 0;

	auto_free char *file = step_shown(end->secret_path);
	auto_free char *where = mem_printf("/%s", file);

	return leaked(r, end->secret, where, e);
}

/* The output that was looked through becomes the log. */
static int publish_log(struct running *r, struct err *e)
{
	auto_free char *piece = mem_alloc(PIECE);
	off_t at = 0;
	ssize_t n;

	for (; (n = sys_pread(r->box.log, piece, PIECE, at)) > 0; at += n)
		if (sys_write_all(r->log, piece, (size_t)n) < 0)
			return err_sys(e, "write %s", r->log_path);
	return n < 0 ? err_sys(e, "read its output") : 0;
}

/* Whatever became of the step: what it printed and what it left in cache folders is looked through
 * before anybody has it. When anything goes wrong, nothing is kept. */
static int check_secrets(struct running *r, bool ran, const struct sandbox_end *end, struct err *e)
{
	static const char gone[] =
		"svrun: a secret was in this log, or may have been, which is why it is empty\n";
	struct err fault = {0};
	int rc = find_leaks(r, end, &fault);

	if (rc < 0 && e)
		*e = fault; /* says more than that it failed */
	if (rc == 0 && ran)
		return publish_log(r, e) < 0 ? -1 : mark_caches(r, false, e);
	if (sys_write_all(r->log, gone, strlen(gone)) < 0)
		warn("%s cannot be written", r->log_path);
	remove_caches(r);
	return -1;
}

/* ---- the run ---- */

/* Where there are secrets, output stays in memory that dies with us until it was looked through. */
static int open_log(struct running *r, struct err *e)
{
	r->log_path = step_log_path(r->s, r->st);
	r->log = sys_open(r->log_path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW, 0600);
	if (r->log < 0)
		return err_sys(e, "create %s", r->log_path);
	r->box.log = r->scan ? memfd_create("log", MFD_CLOEXEC) : r->log;
	return r->box.log < 0 ? err_sys(e, "memory for its output") : 0;
}

static int prepare(struct running *r, bool wait, struct err *e)
{
	const struct step *st = r->st;
	struct arena *a = &r->s->arena;
	int rc;

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
	rc = open_caches(r, wait, e);
	if (rc <= 0 || give_secrets(r, e) < 0)
		return rc > 0 ? -1 : rc;
	/* A secret of another step may come by a cache folder. */
	if (r->s->x->nsecrets)
		r->scan = secret_scan_new(r->s->x->secrets, r->s->x->nsecrets);
	r->box.scan = r->scan;
	return open_log(r, e) < 0 || (r->scan && mark_caches(r, true, e) < 0) ? -1 : 1;
}

static void free_running(struct running *r)
{
	secret_scan_free(r->scan);
	if (r->box.log != r->log)
		sys_close_ref(&r->box.log);
	sys_close_ref(&r->log);
	for (size_t i = 0; i < r->nlocks; i++)
		sys_close_ref(&r->locks[i]);
	free(r);
}

int step_prepare(struct running **out, struct steps *s, const struct step *st, struct tree *view,
	bool wait, struct err *e)
{
	struct running *r = mem_alloc(sizeof(*r));
	int rc;

	*r = (struct running){.s = s, .st = st, .view = view, .box.log = -1, .log = -1};
	rc = prepare(r, wait, e);
	if (rc > 0)
		*out = r;
	else
		free_running(r);
	return rc;
}

int step_start(struct running *r, struct err *e)
{
	struct sandbox_end nothing = {0};
	int rc;

	r->begun = time(NULL);
	rc = sandbox_start(&r->sandbox, &r->box, r->view, r->s->x->s, e);
	if (rc == 0)
		return 0;
	err_ctx(e, "step %s", r->st->id);
	if (r->scan)
		rc = check_secrets(r, false, &nothing, e);
	free_running(r);
	return rc;
}

struct sandbox *step_sandbox(struct running *r)
{
	return r->sandbox;
}

static int end_run(struct running *r, struct sandbox_end *end, struct entries *out, struct err *e)
{
	struct err fault = {0};
	int rc = sandbox_end(r->sandbox, r->s->x->pool, out, end, &fault);

	if (rc < 0 && fault.kind == ERR_CORRUPT)
		step_fault(r->s, r->st, "", 69, e, "step %s: %.900s", r->st->id, fault.text);
	else if (rc < 0 && e)
		*e = fault;
	if (rc < 0 && fault.kind != ERR_CORRUPT)
		err_ctx(e, "step %s", r->st->id);
	if (r->scan && check_secrets(r, rc == 0, end, e) < 0)
		return -1;
	if (rc == 0 && end->out_of_disk) /* they may be what fills it */
		remove_caches(r);
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

int step_find(struct steps *s, const struct step *st, struct tree *view, struct digest *key,
	struct entries *out, struct err *e)
{
	int rc;

	*key = key_of(s, st, view);
	rc = load(s, st, key, out, e);
	if (rc > 0)
		note_key(s, key);
	if (rc > 0 && s->x->count)
		s->x->count->steps_reused++;
	return rc < 0 ? err_ctx(e, "step %s", st->id) : rc;
}

int step_end(struct running *r, const struct digest *key, struct entries *out, struct err *e)
{
	auto_free struct sandbox_end *end = mem_alloc(sizeof(*end));
	const struct step *st = r->st;
	struct steps *s = r->s;
	int rc = end_run(r, end, out, e);

	if (rc == 0 && !sandbox_went_well(end))
		rc = step_failed(s, st, end, e);
	free_running(r);
	if (rc < 0)
		return -1;
	progress_note(s->x->p, "step %s: %.1f s", st->id, end->seconds);
	if (s->x->count)
		s->x->count->steps_run++;
	note_key(s, key);
	return save(s, st, key, out, e) < 0 ? err_ctx(e, "keep step %s", st->id) : 0;
}

void step_abandon(struct running *r, const char *why)
{
	auto_free struct sandbox_end *end = mem_alloc(sizeof(*end));
	struct entries nothing = {0};
	struct err fault = {0};

	if (end_run(r, end, &nothing, &fault) < 0)
		warn("%s", fault.text);
	step_log_line(r->s, r->st, why);
	entries_fini(&nothing);
	free_running(r);
}
