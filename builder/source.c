#include "builder/source.h"

#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "builder/content.h"
#include "builder/local.h"
#include "builder/source-type.h"

/* ---- archives and files: one blob, by its digest ---- */

enum { BLOB_MAX_SHIFT = 46 }; /* bytes of one, as the language allows */

static struct input blob_input(const struct lock_source *ls)
{
	struct input in = {.name = ls->id,
		.kind = HASH_SHA256,
		.url = ls->url,
		.size = ls->size,
		.max = ls->size ? ls->size : 1ull << BLOB_MAX_SHIFT};

	memcpy(in.digest, ls->sha256.b, DIGEST_SIZE);
	return in;
}

/* What lies beside the manifest is pinned as it is, unless the manifest says what it is to be. */
static int lock_local(const struct source_job *j, const struct manifest_source *ms,
	struct lock_source *ls, bool pinned, struct err *e)
{
	struct digest d;
	uint64_t size;

	if (local_digest(j->dir, source_local(ms), NULL, &d, &size, e) < 0)
		return err_ctx(e, "%s/url", j->pointer);
	if (pinned && digest_check(&ms->sha256, &d, e, "%s/sha256: %s", j->pointer, ms->url) < 0)
		return -1;
	if (ms->size && size != ms->size)
		return err_set(e, ERR_CORRUPT,
			"%s/size: %s: expected %" PRIu64 " bytes, found %" PRIu64, j->pointer,
			ms->url, ms->size, size);
	ls->sha256 = d;
	ls->size = size;
	return 0;
}

static int lock_blob(const struct source_job *j, const struct manifest_source *ms,
	struct lock_source *ls, struct arena *a, struct err *e)
{
	static const struct digest none;
	bool pinned = !digest_eq(&ms->sha256, &none);

	if (!ms->url)
		return err_set(e, ERR_USAGE, "%s: missing key 'url'", j->pointer);
	ls->url = arena_strdup(a, ms->url);
	if (source_local(ms))
		return lock_local(j, ms, ls, pinned, e);
	if (!pinned) {
		err_set(e, ERR_USAGE,
			"SV011 %s/sha256: missing: what is fetched is named by its "
			"digest",
			j->pointer);
		return err_hint(e, "add sha256 and size of the file");
	}
	ls->sha256 = ms->sha256;
	ls->size = ms->size;
	return 0;
}

static int fetch_blob(const struct source_job *j, const struct manifest_source *ms,
	const struct lock_source *ls, struct err *e)
{
	struct input in = blob_input(ls);

	if (source_local(ms) || cache_has(j->s, &in))
		return 0;
	in.url = mirror_url(j->mirrors, in.url, e);
	return in.url ? cache_fetch(j->s, &in, 1, j->p, e) : -1;
}

static int open_blob(const struct source_unpack *u, struct err *e)
{
	struct input in = blob_input(u->ls);
	const char *local = source_local(u->ms);
	auto_fd int fd = local ? local_open(u->dir, local, NULL, e) : cache_open(u->s, &in, e);
	struct hash h;

	if (fd < 0)
		return -1;
	if (!local)
		return cache_verify(u->s, &in, fd, e) < 0 ? -1 : steal_fd(&fd);
	hash_init(&h, HASH_SHA256);
	if (hash_add_file(fd, local, &h, e) < 0)
		return -1;
	if (cache_check_digest(&in, &h, local, e) < 0)
		return err_hint(e, "when the change is meant: svrun image lock %s", u->dir);
	return steal_fd(&fd);
}

static int unpack_archive(const struct source_unpack *u, struct err *e)
{
	auto_fd int fd = open_blob(u, e);

	return fd < 0 ? -1 : source_archive(u, fd, e);
}

/* ---- one file ---- */

static struct entry *one_file(const struct source_unpack *u, struct err *e)
{
	struct attr a = {.type = NODE_FILE, .mode = u->ms->mode, .mtime = u->epoch};

	return source_put(u, "", &a, e);
}

static int unpack_file(const struct source_unpack *u, struct err *e)
{
	auto_fd int fd = open_blob(u, e);
	struct entry *en = fd < 0 ? NULL : one_file(u, e);

	return en ? content_from_fd(fd, u->ls->id, u->pool, &u->out->arena, &en->a, NULL, e) : -1;
}

static int lock_inline(const struct source_job *j, const struct manifest_source *ms,
	struct lock_source *ls, struct arena *a, struct err *e)
{
	(void)a;
	if (!ms->inline_text)
		return err_set(e, ERR_USAGE, "%s: missing key 'inline'", j->pointer);
	ls->size = strlen(ms->inline_text);
	ls->sha256 = digest_of(ms->inline_text, (size_t)ls->size);
	return 0;
}

static int unpack_inline(const struct source_unpack *u, struct err *e)
{
	struct entry *en = one_file(u, e);

	return en ? content_from_mem(u->ms->inline_text, strlen(u->ms->inline_text), u->pool,
			    &u->out->arena, &en->a, e)
		  : -1;
}

/* ---- all types ---- */

static const struct source_ops archive_type = {lock_blob, fetch_blob, unpack_archive},
			       file_type = {lock_blob, fetch_blob, unpack_file},
			       inline_type = {lock_inline, NULL, unpack_inline};

static const struct source_ops *type_of(const struct manifest_source *ms)
{
	static const struct source_ops *const types[] = {
		[SOURCE_GIT] = &source_git,
		[SOURCE_ARCHIVE] = &archive_type,
		[SOURCE_FILE] = &file_type,
		[SOURCE_INLINE] = &inline_type,
		[SOURCE_OCI] = &source_oci,
	};

	return types[ms->type];
}

static struct source_job job_of(const struct manifest *m, struct mirrors *mirrors, struct store *s,
	struct progress *p, size_t i)
{
	struct source_job j = {.dir = m->dir, .mirrors = mirrors, .s = s, .p = p};

	snprintf(j.pointer, sizeof(j.pointer), "/sources/%zu", i);
	return j;
}

static int by_id(const void *a, const void *b)
{
	return strcmp(((const struct lock_source *)a)->id, ((const struct lock_source *)b)->id);
}

int source_lock(struct lock *l, const struct manifest *m, struct mirrors *mirrors, struct store *s,
	struct progress *p, struct err *e)
{
	l->nsources = 0;
	l->sources = arena_alloc(&l->arena, m->nsources * sizeof(*l->sources));
	for (size_t i = 0; i < m->nsources; i++) {
		const struct manifest_source *ms = &m->sources[i];
		struct source_job j = job_of(m, mirrors, s, p, i);
		struct lock_source *ls = &l->sources[l->nsources++];

		ls->id = arena_strdup(&l->arena, ms->id);
		if (type_of(ms)->lock(&j, ms, ls, &l->arena, e) < 0) {
			err_ctx(e, "source %s", ms->id);
			return manifest_at(m, j.pointer, e);
		}
	}
	if (l->nsources)
		qsort(l->sources, l->nsources, sizeof(*l->sources), by_id);
	return 0;
}

static const struct lock_source *find(const struct lock *l, const char *id, struct err *e)
{
	for (size_t i = 0; i < l->nsources; i++)
		if (str_eq(l->sources[i].id, id))
			return &l->sources[i];
	err_set(e, ERR_USAGE, "source %s is not in the lock", id);
	err_hint(e, "svrun image lock");
	return NULL;
}

int source_fetch(const struct manifest *m, const struct lock *l, struct mirrors *mirrors,
	struct store *s, struct progress *p, struct err *e)
{
	for (size_t i = 0; i < m->nsources; i++) {
		const struct manifest_source *ms = &m->sources[i];
		const struct lock_source *ls = find(l, ms->id, e);
		struct source_job j = job_of(m, mirrors, s, p, i);

		if (!ls)
			return -1;
		if (type_of(ms)->fetch && type_of(ms)->fetch(&j, ms, ls, e) < 0) {
			err_ctx(e, "source %s", ms->id);
			return manifest_at(m, j.pointer, e);
		}
	}
	return 0;
}

/* ---- unpacking ---- */

static int by_path(const void *a, const void *b)
{
	const struct entry *const *x = a, *const *y = b;

	return strcmp((*x)->path, (*y)->path);
}

/* Is a folder part of path something else in this source? What is put there would land where the
 * link leads, outside of dest. */
static const struct entry *blocked_by(const struct entry *const *sorted, size_t n, const char *path)
{
	auto_free char *part = mem_strdup(path);

	for (char *slash = strrchr(part, '/'); slash; slash = strrchr(part, '/')) {
		struct entry key = {.path = part};
		const struct entry *k = &key, *const * found;

		*slash = '\0';
		found = bsearch(&k, sorted, n, sizeof(k), by_path);
		if (found && (*found)->a.type != NODE_DIR)
			return *found;
	}
	return NULL;
}

/* Two programs would not agree on what a path is that comes twice. */
static int check_paths(const struct source_unpack *u, size_t first, struct err *e)
{
	size_t n = u->out->n - first;
	auto_free const struct entry **v = mem_array(n, sizeof(const struct entry *));
	char text[STR_SHOWN], by[STR_SHOWN];

	for (size_t i = 0; i < n; i++)
		v[i] = &u->out->v[first + i];
	qsort(v, n, sizeof(const struct entry *), by_path);
	for (size_t i = 0; i < n; i++) {
		const struct entry *block = blocked_by(v, n, v[i]->path);

		if (block)
			return err_set(e, ERR_CORRUPT, "%s: '%s' is below '%s', which is no folder",
				u->ls->id, str_shown(v[i]->path, text), str_shown(block->path, by));
		if (i > 0 && str_eq(v[i - 1]->path, v[i]->path) && v[i]->a.type != NODE_DIR &&
			v[i - 1]->a.type != NODE_FILE)
			return err_set(e, ERR_CORRUPT, "%s: '%s' is there twice", u->ls->id,
				str_shown(v[i]->path, text));
	}
	return 0;
}

int source_unpack(const struct manifest_source *ms, const struct lock_source *ls, const char *dir,
	struct store *s, struct pool *pool, int64_t epoch, struct entries *out, struct err *e)
{
	struct source_unpack u = {
		.ms = ms, .ls = ls, .dir = dir, .s = s, .pool = pool, .epoch = epoch, .out = out};
	size_t first = out->n;

	if (type_of(ms)->unpack(&u, e) < 0)
		return -1;
	if (out->n == first && (ms->strip || ms->include.n || ms->exclude.n)) {
		err_set(e, ERR_USAGE, "nothing of it is left");
		return err_hint(e,
			"strip takes %" PRIu32 " folders off each path; look at strip, "
			"include and exclude",
			ms->strip);
	}
	return check_paths(&u, first, e);
}
