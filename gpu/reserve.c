#include "gpu/reserve.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/file.h>
#include <sys/random.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "gpu/reserve-choose.h"

enum { KEY_SIZE = 64, WHO_MAX = 256, TEXT_MAX = 64 * 1024 };

/* One go at taking: the folder of the lock files is open and guarded. */
struct taking {
	struct gpu_reservation *v;
	const struct gpu_reserve_terms *t;
	int dir;
	bool shared;
};

char *gpu_grant_text(const struct gpu_grant *g)
{
	const struct gpu_device *d = g->device;
	const char *model = d->model ? d->model : d->bus;

	if (g->mig)
		return mem_printf(
			"MIG device %" PRIu32 ":%" PRIu32 " (%s)", d->index, g->mig->index, model);
	return mem_printf(
		"%sGPU %" PRIu32 " (%s)", d->maker == GPU_MAKER_AMD ? "AMD " : "", d->index, model);
}

/* ---- lock files ---- */

/* By bus: it has no two GPUs in one place, and every driver tells it. The parts of a partitioned
 * GPU of AMD are devices of one place: these have render nodes of their own. */
static void make_key(
	char key[KEY_SIZE], const char *prefix, const struct gpu_device *d, const struct gpu_mig *m)
{
	if (m)
		snprintf(key, KEY_SIZE, "%s%s.gi%" PRIu32 ".ci%" PRIu32, prefix, d->bus, m->gi,
			m->ci);
	else if (d->maker == GPU_MAKER_AMD)
		snprintf(key, KEY_SIZE, "%s%s.render%" PRIu32, prefix, d->bus, d->minor);
	else
		snprintf(key, KEY_SIZE, "%s%s", prefix, d->bus);
}

struct key {
	char name[KEY_SIZE];
	short type; /* F_WRLCK, F_RDLCK */
};

/* The files that stand for a grant; to free(). */
static struct key *keys_of(const struct gpu_grant *g, bool shared, size_t *n)
{
	const struct gpu_device *d = g->device;
	short type = shared ? F_RDLCK : F_WRLCK;
	struct key *v = mem_array(d->nmigs + 2, sizeof(*v));

	*n = 1;
	make_key(v[0].name, "", d, NULL);
	v[0].type = g->mig ? F_RDLCK : type;
	for (size_t i = 0; i < d->nmigs; i++) {
		if (g->mig && g->mig != &d->migs[i])
			continue;
		make_key(v[*n].name, "", d, &d->migs[i]);
		v[(*n)++].type = type;
	}
	return v;
}

static int open_key(int dir, const char *name, struct err *e)
{
	int fd = sys_openat(dir, name, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);

	return fd < 0 ? err_sys(e, "lock file %s", name) : fd;
}

/* Would a lock of this type have to wait? Nothing is locked for the question: a launch at the same
 * time must not take it for another's reservation. *held: of which type the other one is. */
static int is_held(int fd, short type, short *held, struct err *e)
{
	struct flock l = {.l_type = type, .l_whence = SEEK_SET};

	if (fcntl(fd, F_OFD_GETLK, &l) < 0)
		return err_sys(e, "ask for a lock");
	if (held)
		*held = l.l_type;
	return l.l_type != F_UNLCK;
}

static void keep(struct gpu_reservation *v, int own_fd)
{
	int *more = mem_array(v->n + 1, sizeof(*more));

	if (v->n)
		memcpy(more, v->fds, v->n * sizeof(*more));
	free(v->fds);
	v->fds = more;
	v->fds[v->n++] = own_fd;
}

/* 1; 0: another has it. */
static int lock_key(struct taking *t, const struct key *k, struct err *e)
{
	struct flock l = {.l_type = k->type, .l_whence = SEEK_SET};
	auto_free char *text = mem_printf("%.*s\n", WHO_MAX, t->t->who);
	auto_fd int fd = open_key(t->dir, k->name, e);

	if (fd < 0)
		return -1;
	if (fcntl(fd, F_OFD_SETLK, &l) < 0)
		return errno == EAGAIN || errno == EACCES ? 0 : err_sys(e, "lock %s", k->name);
	if (sys_ftruncate(fd, 0) < 0 || sys_pwrite_all(fd, text, strlen(text), 0) < 0)
		return err_sys(e, "lock file %s", k->name);
	keep(t->v, steal_fd(&fd));
	return 1;
}

/* 1; 0: another has it, or a part. What was locked before that is left to gpu_release(). */
static int lock_grant(struct taking *t, const struct gpu_grant *g, struct err *e)
{
	size_t n;
	auto_free struct key *keys = keys_of(g, t->shared, &n);

	for (size_t i = 0; i < n; i++) {
		int rc = lock_key(t, &keys[i], e);

		if (rc <= 0)
			return rc;
	}
	return 1;
}

static int is_free(struct taking *t, const struct gpu_grant *g, struct err *e)
{
	size_t n;
	auto_free struct key *keys = keys_of(g, t->shared, &n);

	for (size_t i = 0; i < n; i++) {
		auto_fd int fd = open_key(t->dir, keys[i].name, e);
		int rc = fd < 0 ? -1 : is_held(fd, keys[i].type, NULL, e);

		if (rc)
			return rc < 0 ? -1 : 0;
	}
	return 1;
}

/* ---- who ---- */

static char *who_has(int fd)
{
	auto_buf struct buf b = BUF_INIT(TEXT_MAX);

	if (file_read_fd(fd, "lock file", &b, NULL) < 0 || !b.len)
		return mem_strdup("somebody");
	b.data[strcspn(b.data, "\n")] = '\0';
	str_plain(b.data, "");
	return steal_ptr(&b.data);
}

static int reserved_in(int dir, const struct gpu_grant *g, char **who, bool *shared, struct err *e)
{
	char key[KEY_SIZE];
	short held = F_UNLCK;
	int rc;

	make_key(key, "", g->device, g->mig);
	auto_fd int fd = sys_openat(dir, key, O_RDONLY | O_NOFOLLOW, 0);
	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, "lock file %s", key);
	rc = is_held(fd, F_WRLCK, &held, e);
	if (rc > 0 && who)
		*who = who_has(fd);
	if (rc > 0 && shared)
		*shared = held == F_RDLCK;
	return rc;
}

int gpu_reserved(const struct gpu_host *h, const struct gpu_grant *g, char **who, bool *shared,
	struct err *e)
{
	auto_free char *path = mem_printf("%s/locks", h->run);
	auto_fd int dir = sys_open(path, O_RDONLY | O_DIRECTORY, 0);

	if (who)
		*who = NULL;
	if (shared)
		*shared = false;
	if (dir < 0)
		return errno == ENOENT ? 0 : err_sys(e, "open %s", path);
	return reserved_in(dir, g, who, shared, e);
}

/* ", GPU 0 (NVIDIA H200) by instance x" of each that cannot be had. */
static int tell_taken(struct taking *t, const struct gpu_grants *g, struct buf *out, struct err *e)
{
	for (size_t i = 0; i < g->n; i++) {
		auto_free char *what = gpu_grant_text(&g->v[i]), *who = NULL;
		int rc = is_free(t, &g->v[i], e);

		if (rc < 0 || (rc == 0 && reserved_in(t->dir, &g->v[i], &who, NULL, e) < 0))
			return -1;
		if (rc == 0 && out->len < TEXT_MAX / 2)
			buf_printf(out, "%s%s by %s", out->len ? ", " : "", what,
				who ? who : "who has a part of it");
	}
	return 0;
}

static int refuse_taken(
	struct taking *t, const struct gpu_grants *g, const char *asked, struct err *e)
{
	auto_buf struct buf list = BUF_INIT(TEXT_MAX);

	if (tell_taken(t, g, &list, e) < 0)
		return -1;
	err_set(e, ERR_EXISTS, "%staken: %s", asked, list.len ? list.data : "one asked for twice");
	return err_hint(e, "svrun gpu ls tells who has which; --gpus-shared lets those share that "
			   "all ask for it");
}

/* ---- a number of them ---- */

static bool has(const struct gpu_grants *g, const struct gpu_grant *x)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->v[i].device == x->device && (!g->v[i].mig || g->v[i].mig == x->mig))
			return true;
	return false;
}

/* Is it of the allocation that we run within? Its folder has what that holds. */
static bool is_within(const struct taking *t, const struct gpu_grant *g)
{
	char key[KEY_SIZE];

	if (!t->t->within)
		return true;
	make_key(key, "holds.", g->device, g->mig);
	return faccessat(t->dir, key, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Those of a kind that fit and were not taken; *there counts those that only others have, too. */
static int usable(struct taking *t, const struct gpu_grants *all, const struct gpu_grants *got,
	int kind, struct gpu_grants *out, size_t *there, struct err *e)
{
	*there = 0;
	out->n = 0;
	for (size_t i = 0; i < all->n; i++) {
		const struct gpu_grant *x = &all->v[i];
		int rc;

		if (reserve_kind(x) != kind || has(got, x) || !is_within(t, x) ||
			(t->t->fits && !t->t->fits(t->t->ctx, x)))
			continue;
		++*there;
		rc = is_free(t, x, e);
		if (rc < 0)
			return -1;
		if (rc)
			out->v[out->n++] = *x;
	}
	return 0;
}

/* What the kind with the most of them has, and how many of these are free. */
struct supply {
	size_t there, free;
};

static int too_few(struct taking *t, const struct gpu_grants *all, uint32_t want,
	const struct supply *most, bool dxg, struct err *e)
{
	auto_free char *asked = mem_printf(
		"%" PRIu32 " GPU%s asked for, %zu free; ", want, want == 1 ? "" : "s", most->free);

	if (most->there >= want)
		return refuse_taken(t, all, asked, e);
	if (!all->n) {
		err_set(e, ERR_NOT_FOUND, "%" PRIu32 " GPU%s asked for, and the host has none",
			want, want == 1 ? "" : "s");
		return err_hint(e, dxg ? "on WSL2 --gpus all gives what Windows has"
				       : "svrun doctor looks for the reason");
	}
	err_set(e, ERR_NOT_FOUND, "%" PRIu32 " GPU%s asked for, and %s has %zu%s", want,
		want == 1 ? "" : "s", t->t->within ? "the allocation" : "the host", most->there,
		t->t->fits && all->n ? " that fit" : "");
	return err_hint(e, "svrun gpu ls lists them%s",
		t->t->fits ? "; svrun gpu fits IMAGE tells what it needs" : "");
}

static int take_count(struct taking *t, const struct gpu_inventory *i, uint32_t want,
	struct gpu_grants *g, struct err *e)
{
	struct gpu_grants all = {0}, free_ones = {0};
	struct supply most = {0};
	int rc = 0;

	reserve_list(i, &all);
	free_ones.v = mem_array(all.n + 1, sizeof(*free_ones.v));
	for (int kind = 0; rc == 0 && kind < RESERVE_KINDS; kind++) {
		size_t there;

		rc = usable(t, &all, g, kind, &free_ones, &there, e);
		if (there > most.there)
			most = (struct supply){there, free_ones.n};
		if (rc == 0 && free_ones.n >= want) {
			reserve_choose(&free_ones, want, g);
			rc = 1;
		}
	}
	if (rc == 0)
		rc = too_few(t, &all, want, &most, i->dxg, e);
	free(all.v);
	free(free_ones.v);
	return rc < 0 ? -1 : 0;
}

/* ---- taking ---- */

static int take_named(struct taking *t, const struct gpu_inventory *i, const struct gpu_request *r,
	struct gpu_grants *g, struct err *e)
{
	size_t n = 0;

	if (gpu_request_match(r, i, g, e) < 0)
		return -1;
	for (size_t k = 0; k < g->n; k++) {
		if (is_within(t, &g->v[k])) {
			g->v[n++] = g->v[k];
		} else if (!r->all) {
			auto_free char *what = gpu_grant_text(&g->v[k]);

			err_set(e, ERR_DENIED, "%s is not of the allocation %s", what,
				t->t->within);
			return err_hint(e, "unset " GPU_ALLOCATION_ENV " to ask for another one");
		}
	}
	g->n = n;
	return 0;
}

static int by_place(const void *a, const void *b)
{
	const struct gpu_grant *x = a, *y = b;

	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	return (x->mig > y->mig) - (x->mig < y->mig);
}

static int take(struct taking *t, const struct gpu_inventory *i, const struct gpu_request *r,
	struct gpu_grants *g, struct err *e)
{
	if ((r->all || r->names.n) && take_named(t, i, r, g, e) < 0)
		return -1;
	if (r->count && take_count(t, i, r->count, g, e) < 0)
		return -1;
	if (g->n)
		qsort(g->v, g->n, sizeof(*g->v), by_place);
	for (size_t k = 0; k < g->n; k++) {
		int rc = lock_grant(t, &g->v[k], e);

		if (rc == 0) {
			gpu_release(t->v);
			return refuse_taken(t, g, "GPUs that were asked for are ", e);
		}
		if (rc < 0)
			return -1;
	}
	return 0;
}

static int open_folder(const struct gpu_host *h, const char *name, struct err *e)
{
	auto_free char *path = mem_printf("%s/%s", h->run, name);
	int fd;

	if (sys_mkdir_p(AT_FDCWD, h->run, 0755) < 0 ||
		(sys_mkdirat(AT_FDCWD, path, 0700) < 0 && errno != EEXIST))
		return err_sys(e, "make %s", path);
	fd = sys_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	return fd < 0 ? err_sys(e, "open %s", path) : fd;
}

static int open_allocation(const struct gpu_host *h, const char *name, struct err *e)
{
	auto_free char *path = mem_printf("%s/allocations/%s", h->run, name);
	bool plain = *name && *name != '.' && !strchr(name, '/');
	auto_fd int fd = plain ? sys_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0) : -1;

	/* whoever holds it has it exclusively */
	if (fd >= 0 && sys_flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		return steal_fd(&fd);
	err_set(e, ERR_NOT_FOUND, "the allocation '%.60s' of GPUs has ended", name);
	return err_hint(e, "it is named by " GPU_ALLOCATION_ENV " in the environment");
}

int gpu_reserve(struct gpu_reservation *v, const struct gpu_host *h, const struct gpu_inventory *i,
	const struct gpu_request *r, const struct gpu_reserve_terms *terms, struct gpu_grants *g,
	struct err *e)
{
	/* one at a time: two who ask at once must not each get half of what they need */
	auto_fd int guard = open_folder(h, "locks", e);
	auto_fd int within =
		guard >= 0 && terms->within ? open_allocation(h, terms->within, e) : -1;
	struct taking t = {v, terms, terms->within ? within : guard, r->shared};

	*v = (struct gpu_reservation){0};
	*g = (struct gpu_grants){0};
	if (t.dir < 0)
		return -1;
	if (sys_flock(guard, LOCK_EX) < 0)
		return err_sys(e, "lock %s/locks", h->run);
	if (take(&t, i, r, g, e) == 0)
		return 0;
	gpu_release(v);
	free(g->v);
	*g = (struct gpu_grants){0};
	return -1;
}

void gpu_release(struct gpu_reservation *v)
{
	for (size_t i = 0; i < v->n; i++)
		sys_close_ref(&v->fds[i]);
	free(v->fds);
	*v = (struct gpu_reservation){0};
}

int gpu_reservation_inherit(const struct gpu_reservation *v, struct err *e)
{
	for (size_t i = 0; i < v->n; i++)
		if (fcntl(v->fds[i], F_SETFD, 0) < 0)
			return err_sys(e, "keep a lock open");
	return 0;
}

/* ---- allocations ---- */

static void sweep(int all)
{
	int fd = sys_openat(all, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *d;

	while (dir && (d = readdir(dir))) {
		auto_fd int one = d->d_name[0] == '.'
					  ? -1
					  : sys_openat(all, d->d_name,
						    O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

		/* what cannot be removed is tried again by the next one */
		if (one >= 0 && sys_flock(one, LOCK_EX | LOCK_NB) == 0 &&
			sys_remove_tree(all, d->d_name) < 0)
			break;
	}
	if (dir)
		closedir(dir);
}

static int add_held(int dir, const struct gpu_device *d, const struct gpu_mig *m, struct err *e)
{
	char key[KEY_SIZE];

	make_key(key, "holds.", d, m);
	auto_fd int fd = open_key(dir, key, e);
	return fd < 0 ? -1 : 0;
}

/* A whole GPU, and whatever there is of it. */
static int add_grant(int dir, const struct gpu_grant *g, struct err *e)
{
	int rc = add_held(dir, g->device, g->mig, e);

	for (size_t i = 0; rc == 0 && !g->mig && i < g->device->nmigs; i++)
		rc = add_held(dir, g->device, &g->device->migs[i], e);
	return rc;
}

int gpu_allocation_make(struct gpu_reservation *v, const struct gpu_host *h,
	const struct gpu_grants *g, char **name, struct err *e)
{
	auto_fd int guard = open_folder(h, "locks", e);
	auto_fd int all = guard < 0 ? -1 : open_folder(h, "allocations", e);
	auto_fd int dir = -1;
	char made[24];
	uint64_t r;

	if (all < 0)
		return -1;
	if (sys_flock(guard, LOCK_EX) < 0)
		return err_sys(e, "lock %s/locks", h->run);
	sweep(all);
	if (getrandom(&r, sizeof(r), 0) != (ssize_t)sizeof(r))
		return err_sys(e, "getrandom");
	snprintf(made, sizeof(made), "%016" PRIx64, r);
	if (sys_mkdirat(all, made, 0700) < 0)
		return err_sys(e, "make an allocation");
	dir = sys_openat(all, made, O_RDONLY | O_DIRECTORY, 0);
	if (dir < 0 || sys_flock(dir, LOCK_EX | LOCK_NB) < 0)
		return err_sys(e, "make an allocation");
	for (size_t i = 0; i < g->n; i++)
		if (add_grant(dir, &g->v[i], e) < 0)
			return -1;
	keep(v, steal_fd(&dir));
	*name = mem_strdup(made);
	return 0;
}
