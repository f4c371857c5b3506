#include "builder/local.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"
#include "builder/requirements-files.h"

static int open_beneath(const char *dir, const char *path, int flags, struct err *e)
{
	bool parent = str_starts(path, "../");
	auto_free char *from = mem_printf("%s%s", dir, parent ? "/.." : "");
	auto_fd int dirfd = sys_open(from, O_RDONLY | O_DIRECTORY, 0);

	if (dirfd < 0)
		return err_sys(e, "open %s", from);

	auto_fd int fd = sys_open_beneath(dirfd, parent ? path + 3 : path, flags, 0);

	if (fd < 0 && errno == EXDEV)
		return err_set(
			e, ERR_DENIED, "%s/%s: leads out of the manifest's folder", dir, path);
	return fd < 0 ? err_sys(e, "open %s/%s", dir, path) : steal_fd(&fd);
}

int local_open(const char *dir, const char *path, uint64_t *size, struct err *e)
{
	struct stat st;
	auto_fd int fd = open_beneath(dir, path, O_RDONLY | O_NONBLOCK, e);

	if (fd < 0)
		return -1;
	if (sys_fstat(fd, &st) < 0)
		return err_sys(e, "open %s/%s", dir, path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_USAGE, "%s/%s: not a regular file", dir, path);
	if (size)
		*size = (uint64_t)st.st_size;
	return steal_fd(&fd);
}

int local_open_dir(const char *dir, const char *path, struct err *e)
{
	return open_beneath(dir, path, O_RDONLY | O_DIRECTORY, e);
}

/* What identifies an unchanged file, as a key of the pool's notes. */
static struct digest stat_key(const struct stat *st)
{
	char id[256];
	int n = snprintf(id, sizeof(id), "file %ju %ju %jd %jd.%09ld %jd.%09ld",
		(uintmax_t)st->st_dev, (uintmax_t)st->st_ino, (intmax_t)st->st_size,
		(intmax_t)st->st_mtim.tv_sec, st->st_mtim.tv_nsec, (intmax_t)st->st_ctim.tv_sec,
		st->st_ctim.tv_nsec);

	return digest_of(id, (size_t)n);
}

int local_digest(const char *dir, const char *path, struct pool *p, struct digest *d,
	uint64_t *size, struct err *e)
{
	enum {
		SETTLED_S = 2
	}; /* a file changed just now may change again within the clock's tick */
	char hex[DIGEST_HEX + 1];
	struct stat st;
	struct digest key;
	struct hash h;
	int known;
	auto_free char *note = NULL;
	auto_fd int fd = local_open(dir, path, size, e);

	if (fd < 0)
		return -1;
	if (sys_fstat(fd, &st) < 0)
		return err_sys(e, "stat %s/%s", dir, path);
	key = stat_key(&st);
	known = p ? pool_note_get(p, &key, &note, e) : 0;
	if (known < 0)
		return -1;
	if (known == 1 && digest_from_hex(d, note) == 0)
		return 0;
	hash_init(&h, HASH_SHA256);
	if (hash_add_file(fd, path, &h, e) < 0)
		return -1;
	*d = hash_digest(&h);
	if (p && st.st_ctim.tv_sec + SETTLED_S < time(NULL))
		return pool_note_put(p, &key, digest_hex(d, hex), e);
	return 0;
}

char *local_model_path(
	struct arena *a, const struct manifest_model *model, const struct model_file *f)
{
	/* source.path is the file itself, or the folder that files[].path starts from */
	if (model->nfiles <= 1 && (str_eq(model->source_path, f->path) ||
					  (str_ends(model->source_path, f->path) &&
						  model->source_path[strlen(model->source_path) -
								     strlen(f->path) - 1] == '/')))
		return arena_strdup(a, model->source_path);
	return arena_printf(a, "%s/%s", model->source_path, f->path);
}

static int compare_files(const void *a, const void *b)
{
	return strcmp(((const struct lock_file *)a)->path, ((const struct lock_file *)b)->path);
}

static void add_path(struct lock *l, size_t *cap, const char *path)
{
	for (size_t i = 0; i < l->nfiles; i++)
		if (str_eq(l->files[i].path, path))
			return;
	if (l->nfiles == *cap) { /* the old array stays in the arena: few and small */
		struct lock_file *v = l->files;

		*cap = *cap ? *cap * 2 : 16;
		l->files = arena_alloc(&l->arena, *cap * sizeof(*v));
		if (v)
			memcpy(l->files, v, l->nfiles * sizeof(*v));
	}
	l->files[l->nfiles++] = (struct lock_file){.path = arena_strdup(&l->arena, path)};
}

/* The lock file of Python's, and what it includes. */
static int add_python(struct lock *l, size_t *cap, const struct manifest *m, struct err *e)
{
	struct requirements_files f;

	if (!requirements_are(m->python.lock)) {
		add_path(l, cap, m->python.lock);
		return 0;
	}
	if (requirements_files(&f, &l->arena, m->dir, m->python.lock, e) < 0)
		return -1;
	for (size_t i = 0; i < f.n; i++)
		add_path(l, cap, f.v[i].name);
	return 0;
}

int local_lock(struct lock *l, const struct manifest *m, struct err *e)
{
	size_t cap = 0;

	l->nfiles = 0;
	l->files = NULL;
	for (size_t i = 0; i < m->nfiles; i++)
		if (m->files[i].from)
			add_path(l, &cap, m->files[i].from);
	if (m->node.present)
		add_path(l, &cap, m->node.lock);
	if (m->python.present && m->python.lock && add_python(l, &cap, m, e) < 0)
		return -1;
	for (size_t i = 0; i < m->nmodels; i++)
		for (size_t k = 0; m->models[i].source == MODEL_FILE && k < m->models[i].nfiles;
			k++)
			add_path(l, &cap,
				local_model_path(&l->arena, &m->models[i], &m->models[i].files[k]));
	for (size_t i = 0; i < l->nfiles; i++)
		if (local_digest(m->dir, l->files[i].path, NULL, &l->files[i].sha256,
			    &l->files[i].size, e) < 0)
			return -1;
	if (l->nfiles)
		qsort(l->files, l->nfiles, sizeof(*l->files), compare_files);
	return 0;
}

int local_check(const struct lock *l, const struct manifest *m, struct pool *p, struct err *e)
{
	for (size_t i = 0; i < l->nfiles; i++) {
		char want[DIGEST_TEXT + 1], got[DIGEST_TEXT + 1];
		struct digest d;
		uint64_t size;

		if (local_digest(m->dir, l->files[i].path, p, &d, &size, e) < 0)
			return -1;
		if (digest_eq(&d, &l->files[i].sha256))
			continue;
		err_set(e, ERR_CORRUPT, "%s/%s: expected %s, found %s (%" PRIu64 " bytes)", m->dir,
			l->files[i].path, digest_text(&l->files[i].sha256, want),
			digest_text(&d, got), size);
		return err_hint(e, "when the change is meant: svrun image lock --files %s", m->dir);
	}
	return 0;
}
