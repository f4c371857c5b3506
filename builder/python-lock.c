#include "builder/python.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "builder/local.h"
#include "builder/pep440.h"
#include "builder/pylock.h"
#include "builder/python-index.h"
#include "builder/python-scheme.h"
#include "builder/requirements.h"
#include "builder/wheel.h"

enum { LOCK_FILE_MAX = 32 << 20, FOLDER_FILES_MAX = 10000, PROJECT_FILES_MAX = 100000 };

struct locking {
	const struct manifest *m;
	struct lock *l;
	struct python_target target;
	struct python_index index;
	struct wheel_list list;
	char *folder; /* of the lock file, relative to the manifest; "" when it is beside it */
};

/* ---- wheels of the manifest ---- */

static const char *normal_version(struct arena *a, const char *text)
{
	struct pep440 v;
	char normal[PEP440_TEXT];

	return pep440_parse(&v, text, strlen(text)) < 0 ? NULL
							: arena_strdup(a, pep440_text(&v, normal));
}

/* The address of a wheel that the manifest gives none for: the index knows it by its digest. */
static const char *ask_address(
	struct locking *k, const struct wheel_pin *w, const char *name, struct err *e)
{
	struct wheel_offer *v;
	size_t n;

	if (python_index_list(&k->index, name, &v, &n, e) < 0)
		return NULL;
	for (size_t i = 0; i < n; i++)
		if (digest_eq(&v[i].sha256, &w->sha256))
			return v[i].url;
	err_set(e, ERR_NOT_FOUND,
		"SV053: the mirror 'pypi' has no file of %s with the digest of %s", name, w->file);
	return NULL;
}

static int check_local(const struct manifest *m, const struct wheel_pin *w, struct err *e)
{
	struct digest found;
	uint64_t size;

	if (local_digest(m->dir, w->path, NULL, &found, &size, e) < 0 ||
		digest_check(&w->sha256, &found, e, "%s", w->path) < 0)
		return -1;
	if (size != w->size)
		return err_set(e, ERR_CORRUPT, "%s: expected %" PRIu64 " bytes, found %" PRIu64,
			w->path, w->size, size);
	return 0;
}

static int take_pin(struct locking *k, size_t i, struct err *e)
{
	const struct wheel_pin *w = &k->m->python.wheels[i];
	struct arena *a = &k->l->arena;
	const struct wheel_offer offer = {.file = w->file};
	const char *version = normal_version(a, w->version);
	struct wheel_name name;
	struct lock_wheel *out;

	if (wheel_name_parse(&name, a, w->file, e) < 0)
		return -1;
	if (!python_same_name(name.name, w->name) || !version ||
		!pep440_same(name.version, version))
		return err_set(e, ERR_USAGE, "SV174: %s is %s %s, not %s %s", w->file, name.name,
			name.version, w->name, w->version);
	if (python_target_pick(&k->target, w->name, version, &offer, 1, e) < 0 ||
		(w->path && check_local(k->m, w, e) < 0))
		return -1;
	out = wheel_list_add(&k->list);
	*out = (struct lock_wheel){.name = name.name,
		.version = name.version,
		.file = arena_strdup(a, w->file),
		.sha256 = w->sha256,
		.size = w->size};
	out->why.v = arena_alloc(a, sizeof(char *));
	out->why.v[out->why.n++] = arena_printf(a, "manifest:/python/wheels/%zu", i);
	out->url = w->path  ? arena_printf(a, "file:%s", w->path)
		   : w->url ? arena_strdup(a, w->url)
			    : ask_address(k, w, name.name, e);
	return out->url ? 0 : -1;
}

/* ---- pinned requirements ---- */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_hash_of(const struct pinned *p, const struct digest *d)
{
	for (size_t i = 0; i < p->nhashes; i++)
		if (digest_eq(&p->hashes[i], d))
			return true;
	return false;
}

static bool is_wheel_of(struct arena *a, const char *file, const struct pinned *p)
{
	struct wheel_name w;

	return wheel_name_parse(&w, a, file, NULL) == 0 && str_eq(w.name, p->name) &&
	       pep440_same(w.version, p->version);
}

/* Wheels of one version that lie in a folder beside the manifest. */
static int look_in_folder(const struct locking *k, const char *named, const struct pinned *p,
	struct wheel_offer *v, size_t *n, struct err *e)
{
	const char *url = wheel_local_url(k->target.a, "", named);
	bool top = strspn(named, "./") == strlen(named) && !strstr(named, "..");
	/* which nothing beneath is: ".." */
	const char *folder = url ? url + strlen("file:") : top ? "." : "..";
	auto_free char *path = mem_printf("%s/%s", k->m->dir, folder);
	auto_fd int dirfd = sys_open(k->m->dir, O_RDONLY | O_DIRECTORY, 0);
	int fd = dirfd < 0 ? -1 : sys_open_beneath(dirfd, folder, O_RDONLY | O_DIRECTORY, 0);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *en;
	int rc = 0;

	if (!d) {
		sys_close_ref(&fd);
		return err_sys(e, "open %s", path);
	}
	while (rc == 0 && *n < FOLDER_FILES_MAX && (en = readdir(d))) {
		struct wheel_offer *o = &v[*n];
		auto_free char *file =
			mem_printf("%s%s%s", top ? "" : folder, top ? "" : "/", en->d_name);

		if (!is_wheel_of(k->target.a, en->d_name, p))
			continue;
		rc = local_digest(k->m->dir, file, NULL, &o->sha256, &o->size, e);
		if (rc < 0 || !is_hash_of(p, &o->sha256))
			continue;
		o->file = arena_strdup(k->target.a, en->d_name);
		o->url = arena_printf(k->target.a, "file:%s", file);
		(*n)++;
	}
	closedir(d);
	return rc;
}

/* What the index has of it: wheels into v; something to build is refused by name, when that is all
 * that the hashes are of. */
static int look_in_index(
	struct locking *k, const struct pinned *p, struct wheel_offer *v, size_t *n, struct err *e)
{
	struct wheel_offer *all;
	const char *other = NULL;
	size_t count;

	if (python_index_list(&k->index, p->name, &all, &count, e) < 0)
		return -1;
	for (size_t i = 0; i < count && *n < FOLDER_FILES_MAX; i++) {
		if (!is_hash_of(p, &all[i].sha256))
			continue;
		if (is_wheel_of(k->target.a, all[i].file, p))
			v[(*n)++] = all[i];
		else
			other = all[i].file;
	}
	if (*n > 0)
		return 0;
	if (!other)
		return err_set(e, ERR_NOT_FOUND,
			"SV053: the mirror 'pypi' has no file of %s %s with one of its hashes",
			p->name, p->version);
	err_set(e, ERR_USAGE, "SV051: %s %s has no wheel, only %.200s: it would have to be built",
		p->name, p->version, other);
	return err_hint(e, "build a wheel of it once, and name that");
}

/* A wheel beside the file, named by its path. */
static int take_path(
	struct locking *k, const struct pinned *p, struct wheel_offer *o, struct err *e)
{
	const char *path;

	o->url = wheel_local_url(k->target.a, "", p->path);
	if (!o->url)
		return err_set(
			e, ERR_DENIED, "SV053: %s leads out of the manifest's folder", p->path);
	path = o->url + strlen("file:");
	o->file = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	if (local_digest(k->m->dir, path, NULL, &o->sha256, &o->size, e) < 0)
		return -1;
	return is_hash_of(p, &o->sha256)
		       ? 0
		       : err_set(e, ERR_CORRUPT, "SV053: %s has none of its hashes", path);
}

static int find_offers(struct locking *k, const struct requirements *r, const struct pinned *p,
	struct wheel_offer *v, size_t *n, struct err *e)
{
	if (p->path) {
		*n = 1;
		return take_path(k, p, v, e);
	}
	for (size_t i = 0; i < r->folders.n; i++)
		if (look_in_folder(k, r->folders.v[i], p, v, n, e) < 0)
			return -1;
	if (*n > 0 || !r->no_index)
		return *n > 0 ? 0 : look_in_index(k, p, v, n, e);
	return err_set(e, ERR_NOT_FOUND,
		"SV053: no folder of --find-links has a wheel of %s %s with one of its hashes",
		p->name, p->version);
}

static int check_limits(const struct requirements *r, const struct wheel_name *w, struct err *e)
{
	const struct requirement_limit *l = requirements_forbid(r, w->name, w->version);

	return l ? err_set(e, ERR_USAGE, "SV053: %s %s is not what %s:%zu allows: %.200s", w->name,
			   w->version, l->file, l->line, l->specifiers)
		 : 0;
}

static struct strings sorted_extras(const struct pinned *p)
{
	if (p->extras.n)
		qsort(p->extras.v, p->extras.n, sizeof(*p->extras.v), by_text);
	return p->extras;
}

static int take_pinned(
	struct locking *k, const struct requirements *r, const struct pinned *p, struct err *e)
{
	auto_free struct wheel_offer *v = mem_array(FOLDER_FILES_MAX, sizeof(*v));
	const char *who = p->path ? p->path : p->name;
	struct wheel_name name;
	struct lock_wheel *out;
	size_t n = 0;
	int best;

	if (find_offers(k, r, p, v, &n, e) < 0)
		return err_ctx(e, "%s:%zu", p->file, p->line);
	best = python_target_pick(&k->target, who, p->version, v, n, e);
	if (best < 0 || wheel_name_parse(&name, k->target.a, v[best].file, e) < 0 ||
		check_limits(r, &name, e) < 0)
		return err_ctx(e, "%s:%zu", p->file, p->line);
	if (!v[best].size && python_index_size(&k->index, v[best].url, &v[best].size, e) < 0)
		return err_ctx(e, "%s %s", name.name, name.version);
	out = wheel_list_add(&k->list);
	*out = (struct lock_wheel){.name = name.name,
		.version = name.version,
		.file = v[best].file,
		.url = v[best].url,
		.sha256 = v[best].sha256,
		.size = v[best].size,
		.why = p->why,
		.extras = sorted_extras(p)};
	if (out->why.n == 0) {
		out->why.v = arena_alloc(k->target.a, sizeof(char *));
		out->why.v[out->why.n++] = arena_strdup(k->target.a, p->file);
	}
	return 0;
}

static int take_requirements(struct locking *k, struct err *e)
{
	struct requirements_files f;
	struct requirements r;
	int rc;

	if (requirements_files(&f, k->target.a, k->m->dir, k->m->python.lock, e) < 0 ||
		requirements_read(&r, k->target.a, &k->target.env, &f, e) < 0)
		return -1;
	rc = 0;
	for (size_t i = 0; i < r.n && rc == 0; i++)
		rc = take_pinned(k, &r, &r.v[i], e);
	requirements_fini(&r);
	return rc;
}

/* ---- the lock file ---- */

static int take_lock(struct locking *k, struct err *e)
{
	const char *name = k->m->python.lock;
	auto_buf struct buf text = BUF_INIT(LOCK_FILE_MAX);
	bool json = str_ends(name, ".json");
	auto_fd int fd = -1;

	if (requirements_are(name))
		return take_requirements(k, e);
	fd = local_open(k->m->dir, name, NULL, e);
	if (fd < 0 || file_read_fd(fd, name, &text, e) < 0)
		return -1;
	buf_put(&text, "", 0);
	if (pylock_read(&k->target, name, k->folder, text.data, text.len, json, &k->list, e) < 0)
		return -1;
	for (size_t i = 0; i < k->list.n; i++) {
		struct lock_wheel *w = &k->list.v[i];

		if (w->size)
			continue;
		if (str_starts(w->url, "file:")) {
			auto_fd int file = local_open(k->m->dir, w->url + 5, &w->size, e);

			if (file < 0)
				return -1;
		} else if (python_index_size(&k->index, w->url, &w->size, e) < 0) {
			return err_ctx(e, "%s %s", w->name, w->version);
		}
	}
	return 0;
}

/* ---- all of them ---- */

static int by_name(const void *a, const void *b)
{
	const struct lock_wheel *x = a, *y = b;
	int c = strcmp(x->name, y->name);

	return c ? c : strcmp(x->file, y->file);
}

/* Sorted. One that is in both is checked twice, which does no harm. */
static struct strings both(struct arena *a, const struct strings *x, const struct strings *y)
{
	struct strings out = {.v = arena_alloc(a, (x->n + y->n + 1) * sizeof(char *))};

	for (size_t i = 0; i < x->n; i++)
		out.v[out.n++] = x->v[i];
	for (size_t i = 0; i < y->n; i++)
		out.v[out.n++] = y->v[i];
	if (out.n)
		qsort(out.v, out.n, sizeof(*out.v), by_text);
	return out;
}

/* One of each: the manifest's own wheel and the lock file's may be the same file. */
static int merge_doubles(struct locking *k, struct err *e)
{
	struct wheel_list *l = &k->list;
	size_t kept = 0;

	if (l->n)
		qsort(l->v, l->n, sizeof(*l->v), by_name);
	for (size_t i = 0; i < l->n; i++) {
		struct lock_wheel *w = &l->v[i], *old = kept ? &l->v[kept - 1] : NULL;

		if (!old || !str_eq(old->name, w->name)) {
			l->v[kept++] = *w;
			continue;
		}
		if (!digest_eq(&old->sha256, &w->sha256))
			return err_set(e, ERR_USAGE, "SV055: %s is there twice: %s and %s", w->name,
				old->file, w->file);
		struct strings extras = both(k->target.a, &old->extras, &w->extras);

		if (str_starts(w->why.v[0], "manifest:"))
			*old = *w;
		old->extras = extras;
	}
	l->n = kept;
	return 0;
}

/* What must hold at the end, as far as it can be said now: before anything is fetched. */
static int check_guard(const struct locking *k, struct err *e)
{
	const struct pairs *guard = &k->m->python.guard;

	for (size_t g = 0; g < guard->n; g++)
		for (size_t i = 0; i < k->list.n; i++) {
			const struct lock_wheel *w = &k->list.v[i];

			if (!python_same_name(guard->v[g].name, w->name) ||
				str_eq(guard->v[g].value, "compatible") ||
				python_version_fits(w->version, guard->v[g].value) == 1)
				continue;
			err_set(e, ERR_USAGE, "SV050: /python/guard: %s would be %s, not %s",
				w->name, w->version, guard->v[g].value);
			err_hint(e, "lock a version that fits, or change what the guard asks for");
			return manifest_at(k->m,
				arena_printf(k->target.a, "/python/guard/%s", guard->v[g].name), e);
		}
	return 0;
}

static int lock_all(struct locking *k, struct err *e)
{
	if (k->m->python.lock && take_lock(k, e) < 0)
		return -1;
	for (size_t i = 0; i < k->m->python.nwheels; i++)
		if (take_pin(k, i, e) < 0) {
			const char *pointer = arena_printf(k->target.a, "/python/wheels/%zu", i);

			err_ctx(e, "%s", pointer);
			return manifest_at(k->m, pointer, e);
		}
	if (merge_doubles(k, e) < 0 || check_guard(k, e) < 0)
		return -1;
	k->l->nwheels = k->list.n;
	if (k->list.n)
		k->l->wheels = arena_dup(&k->l->arena, k->list.v, k->list.n * sizeof(*k->list.v));
	return 0;
}

int python_lock(struct lock *l, const struct manifest *m, struct mirrors *mirrors, struct store *s,
	struct err *e)
{
	struct locking k = {.m = m, .l = l};
	const char *slash = m->python.lock ? strrchr(m->python.lock, '/') : NULL;
	int rc;

	if (!m->python.present || (!m->python.lock && !m->python.nwheels))
		return 0;
	if (python_target_init(&k.target, l, m, s, e) < 0)
		return -1;
	k.folder =
		slash ? arena_strndup(&l->arena, m->python.lock, (size_t)(slash - m->python.lock))
		      : arena_strdup(&l->arena, "");
	python_index_open(&k.index, mirrors, &l->arena);
	rc = lock_all(&k, e);
	python_index_close(&k.index);
	free(k.list.v);
	return rc;
}
