#include "builder/lock-pins.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "builder/local.h"
#include "builder/lock-keys.h"
#include "builder/npm.h"
#include "builder/pep440.h"
#include "builder/python-name.h"
#include "builder/requirements-files.h"

enum { PYTHON_LOCK_MAX = 32 << 20 };
static const struct digest none;

static int by_digest(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct digest));
}

/* Is a file beside the manifest the one that the lock pins? */
static bool is_as_pinned(const struct lock *l, const struct manifest *m, const char *path)
{
	const struct lock_file key = {.path = path},
			       *pin = l->nfiles ? bsearch(&key, l->files, l->nfiles, sizeof(key),
							  lock_file_compare)
						: NULL;
	struct digest d;

	return pin && local_digest(m->dir, path, NULL, &d, NULL, NULL) == 0 &&
	       digest_eq(&d, &pin->sha256);
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && str_eq(a, b));
}

/* ---- sources ---- */

static bool same_source(const struct manifest_source *m, const struct lock_source *l)
{
	bool blob = m->type == SOURCE_ARCHIVE || m->type == SOURCE_FILE;
	struct digest d;

	if (m->type == SOURCE_INLINE) {
		if (!m->inline_text)
			return false;
		d = digest_of(m->inline_text, strlen(m->inline_text));
		return digest_eq(&d, &l->sha256);
	}
	if (!same_text(m->url, l->url))
		return false;
	if (m->type == SOURCE_GIT)
		return same_text(m->commit, l->commit) &&
		       (!m->has_tree || digest_eq(&m->tree_sha256, &l->tree_sha256));
	return !blob || ((digest_eq(&m->sha256, &none) || digest_eq(&m->sha256, &l->sha256)) &&
				(!m->size || m->size == l->size));
}

static const char *source_differs(const struct lock *l, const struct manifest *m, struct arena *a)
{
	for (size_t i = 0; i < m->nsources; i++) {
		const struct lock_source key = {.id = m->sources[i].id};
		const struct lock_source *ls = l->nsources
						       ? bsearch(&key, l->sources, l->nsources,
								 sizeof(key), lock_source_compare)
						       : NULL;

		if (!ls)
			return arena_printf(a, "the source '%s'", m->sources[i].id);
		if (!same_source(&m->sources[i], ls))
			return arena_printf(
				a, "the source '%s' as /sources/%zu has it", m->sources[i].id, i);
	}
	return NULL;
}

/* ---- wheels ---- */

static bool same_wheel(const struct wheel_pin *m, const struct lock_wheel *l)
{
	const char *path = str_starts(l->url, "file:") ? l->url + strlen("file:") : NULL;

	return python_same_name(m->name, l->name) && pep440_same(m->version, l->version) &&
	       str_eq(m->file, l->file) && digest_eq(&m->sha256, &l->sha256) &&
	       m->size == l->size && (!m->path || same_text(m->path, path)) &&
	       (!m->url || str_eq(m->url, l->url));
}

/* Every sha256 in the text of a lock file of Python's, whatever its format. */
static void add_digests(struct digest **v, size_t *n, size_t *cap, const char *text, size_t len)
{
	for (size_t i = 0, end; i < len; i = end + 1) {
		char hex[DIGEST_HEX + 1];

		for (end = i; end < len && isxdigit((unsigned char)text[end]); end++)
			;
		if (end - i != DIGEST_HEX)
			continue;
		for (size_t k = 0; k < DIGEST_HEX; k++)
			hex[k] = (char)tolower((unsigned char)text[i + k]);
		hex[DIGEST_HEX] = '\0';
		mem_grow(v, cap, *n);
		if (digest_from_hex(&(*v)[*n], hex) == 0)
			++*n;
	}
}

/* Those of python.lock and of what it includes, sorted. False: a file is not what the lock pins. */
static bool digests_of(const struct lock *l, const struct manifest *m, struct arena *a,
	struct digest **v, size_t *n)
{
	const char *path = m->python.lock;
	auto_buf struct buf text = BUF_INIT(PYTHON_LOCK_MAX);
	struct requirements_files f = {0};
	struct requirements_text alone;
	auto_fd int fd = -1;
	size_t cap = 0;

	if (requirements_are(path)) {
		if (requirements_files(&f, a, m->dir, path, NULL) < 0)
			return false;
	} else {
		fd = local_open(m->dir, path, NULL, NULL);
		if (fd < 0 || file_read_fd(fd, path, &text, NULL) < 0)
			return false;
		alone = (struct requirements_text){path, text.data, text.len};
		f = (struct requirements_files){&alone, 1};
	}
	for (size_t i = 0; i < f.n; i++) {
		if (!is_as_pinned(l, m, f.v[i].name))
			return false;
		add_digests(v, n, &cap, f.v[i].text, f.v[i].n);
	}
	if (*n)
		qsort(*v, *n, sizeof(**v), by_digest);
	return true;
}

/* A wheel that the manifest does not list must be one that python.lock names. When that is not the
 * file that the lock pins, local_check() tells of it. */
static const char *foreign_wheel(const struct lock *l, const struct manifest *m, struct arena *a)
{
	const char *path = m->python.lock, *found = NULL;
	auto_free struct digest *known = NULL;
	size_t n = 0;

	if (!digests_of(l, m, a, &known, &n))
		return NULL;
	for (size_t k = 0; k < l->nwheels && !found; k++) {
		const struct lock_wheel *w = &l->wheels[k];
		bool listed = n && bsearch(&w->sha256, known, n, sizeof(*known), by_digest);

		for (size_t i = 0; i < m->python.nwheels && !listed; i++)
			listed = same_wheel(&m->python.wheels[i], w);
		if (!listed)
			found = arena_printf(
				a, "the wheels of %s: '%s' is none of them", path, w->name);
	}
	return found;
}

static const char *wheel_differs(const struct lock *l, const struct manifest *m, struct arena *a)
{
	const struct manifest_python *p = &m->python;

	for (size_t i = 0; p->present && i < p->nwheels; i++) {
		bool found = false;

		for (size_t k = 0; k < l->nwheels && !found; k++)
			found = same_wheel(&p->wheels[i], &l->wheels[k]);
		if (!found)
			return arena_printf(a, "the wheel '%s' as /python/wheels/%zu has it",
				p->wheels[i].name, i);
	}
	if (p->present && p->lock)
		return foreign_wheel(l, m, a);
	for (size_t k = 0; k < l->nwheels; k++) {
		bool found = false;

		for (size_t i = 0; p->present && i < p->nwheels && !found; i++)
			found = python_same_name(p->wheels[i].name, l->wheels[k].name);
		if (!found)
			return arena_printf(a,
				"the wheels of the manifest alone: '%s' is none of them",
				l->wheels[k].name);
	}
	return NULL;
}

/* ---- packages that are asked for by version ---- */

static bool has_deb(const struct lock *l, const char *name, size_t n, const char *version)
{
	for (size_t i = 0; i < l->ndebs; i++)
		if (strlen(l->debs[i].name) == n && strncmp(l->debs[i].name, name, n) == 0 &&
			str_eq(l->debs[i].version, version))
			return true;
	return false;
}

static const char *deb_differs(const struct lock *l, const struct manifest *m, struct arena *a)
{
	for (size_t i = 0; m->apt.present && i < m->apt.packages.n; i++) {
		const char *text = m->apt.packages.v[i], *is = strchr(text, '=');

		if (is && !strpbrk(is, "*?[") && !has_deb(l, text, strcspn(text, ":="), is + 1))
			return arena_printf(a, "the package '%s'", text);
	}
	return NULL;
}

/* ---- npm ---- */

static bool same_npm(const struct lock_npm *x, const struct lock_npm *y)
{
	if (!str_eq(x->path, y->path) || !str_eq(x->name, y->name) ||
		!str_eq(x->version, y->version) || !str_eq(x->url, y->url) ||
		!str_eq(x->integrity, y->integrity) || x->bin.n != y->bin.n)
		return false;
	for (size_t i = 0; i < x->bin.n; i++)
		if (!str_eq(x->bin.v[i].name, y->bin.v[i].name) ||
			!str_eq(x->bin.v[i].value, y->bin.v[i].value))
			return false;
	return true;
}

static bool same_npms(const struct lock *l, const struct lock *own)
{
	bool same = l->nnpms == own->nnpms;

	for (size_t i = 0; same && i < l->nnpms; i++) {
		bool found = false;

		for (size_t k = 0; k < own->nnpms && !found; k++) /* nearly always the i-th */
			found = same_npm(&l->npms[i], &own->npms[(i + k) % own->nnpms]);
		same = found;
	}
	return same;
}

/* package-lock.json is read again: it has all that the lock says of its packages. When it is not
 * the file that the lock pins, local_check() tells of that. */
static const char *npm_differs(const struct lock *l, const struct manifest *m, struct arena *a)
{
	struct lock own = {.platform = l->platform};
	bool same;

	if (!m->node.present)
		return l->nnpms ? "the manifest's packages alone: it has none of npm" : NULL;
	if (!is_as_pinned(l, m, m->node.lock))
		return NULL;
	same = npm_lock(&own, m, NULL) == 0 && same_npms(l, &own);
	arena_fini(&own.arena);
	return same ? NULL : arena_printf(a, "the packages of %s as that has them", m->node.lock);
}

/* ---- models ---- */

static bool same_files(const struct manifest_model *m, const struct lock_model *l)
{
	bool same = m->nfiles == l->nfiles;

	for (size_t i = 0; same && i < m->nfiles; i++) {
		bool found = false;

		for (size_t k = 0; k < l->nfiles && !found; k++)
			found = str_eq(m->files[i].path, l->files[k].path) &&
				digest_eq(&m->files[i].sha256, &l->files[k].sha256) &&
				m->files[i].size == l->files[k].size;
		same = found;
	}
	return same;
}

static const char *model_differs(const struct lock *l, const struct manifest *m, struct arena *a)
{
	for (size_t i = 0; i < m->nmodels; i++)
		for (size_t k = 0; m->models[i].nfiles && k < l->nmodels; k++)
			if (str_eq(m->models[i].id, l->models[k].id) &&
				!same_files(&m->models[i], &l->models[k]))
				return arena_printf(a,
					"the files of the model '%s' as "
					"/models/%zu/files has them",
					m->models[i].id, i);
	return NULL;
}

/* ---- all of them ---- */

const char *lock_pins_differ(const struct lock *l, const struct manifest *m, struct arena *a)
{
	const char *what = NULL;

	if (m->base.type == BASE_OCI && l->base.present && !same_text(m->base.ref, l->base.ref))
		what = "the base image as /base/ref has it";
	if (!what)
		what = source_differs(l, m, a);
	if (!what)
		what = deb_differs(l, m, a);
	if (!what)
		what = wheel_differs(l, m, a);
	if (!what)
		what = npm_differs(l, m, a);
	return what ? what : model_differs(l, m, a);
}
