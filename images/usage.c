#include "images/usage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/sys.h"
#include "images/digest-map.h"
#include "images/pool-sweep.h"
#include "images/reach.h"

enum { UNIT = 512, SHARED = UINT32_MAX };

/* A thing is in the map before images are looked at, with its size; it is its first user's until
 * there is a second. Chunks and files are told apart by the map they are in. */
struct counting {
	struct store *s;
	struct usage *u;
	struct digest_map chunks; /* by their digest */
	struct digest_map blobs;  /* by theirs */
	struct digest_map files[3];
	struct digest_map reached; /* of one image: digests of documents and layers */
	size_t cap;                /* of u->images */
	uint32_t image;            /* number of the one that is looked at, from 1 */
};

static const struct {
	const char *folder, *suffix;
} folders[3] = {{"erofs", ".img"}, {"indexes", ""}, {"layers", ""}};

/* ---- what there is ---- */

static int add_chunk(void *ctx, const struct chunk *c, struct err *e)
{
	struct counting *k = ctx;
	uint32_t blocks = (c->length + POOL_BLOCK - 1) / POOL_BLOCK;

	(void)e;
	digest_map_add(&k->chunks, &c->digest)->units += blocks * (POOL_BLOCK / UNIT);
	k->u->pool += (uint64_t)blocks * POOL_BLOCK;
	return 1;
}

static int add_pool(struct counting *k, struct err *e)
{
	uint8_t id[POOL_IDENTITY];
	struct pool *p;
	struct stat st;
	int rc = pool_identity(k->s->fd, id, e);

	if (rc <= 0)
		return rc;
	if (sys_fstatat(k->s->fd, "pool/db/data.mdb", &st, 0) == 0)
		k->u->records = (uint64_t)st.st_blocks * UNIT;
	p = pool_open(k->s->fd, false, e);
	if (!p)
		return -1;
	rc = pool_each(p, false, add_chunk, k, e) < 0 ? -1 : pool_each(p, true, add_chunk, k, e);
	pool_close(p);
	return rc;
}

struct adding {
	struct digest_map *map;
	uint64_t *bytes;
};

static int add_file(void *ctx, int dirfd, const char *name, const struct digest *d, struct err *e)
{
	struct adding *a = ctx;
	struct stat st;

	if (sys_fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_sys(e, "stat %s", name);
	digest_map_add(a->map, d)->units += (uint32_t)st.st_blocks;
	*a->bytes += (uint64_t)st.st_blocks * UNIT;
	return 0;
}

static int add_files(struct counting *k, struct err *e)
{
	struct adding blobs = {&k->blobs, &k->u->blobs};
	int rc = reach_files(k->s, "blobs/sha256", "", add_file, &blobs, e);

	for (size_t i = 0; i < 3 && rc == 0; i++) {
		struct adding a = {&k->files[i], &k->u->others};

		rc = reach_files(k->s, folders[i].folder, folders[i].suffix, add_file, &a, e);
	}
	return rc;
}

static int add_cache(struct counting *k, struct err *e)
{
	static const char *const caches[] = {"cache/sha256", "cache/sha512"};

	for (size_t i = 0; i < 2; i++) {
		int fd = sys_openat(k->s->fd, caches[i], O_RDONLY | O_DIRECTORY, 0);
		DIR *dir = fd < 0 ? NULL : fdopendir(fd);
		struct stat st;

		if (!dir && fd >= 0)
			sys_close_ref(&fd);
		if (!dir && errno != ENOENT)
			return err_sys(e, "list %s/%s", k->s->path, caches[i]);
		for (struct dirent *x; dir && (x = readdir(dir));)
			if (sys_fstatat(fd, x->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
				S_ISREG(st.st_mode))
				k->u->cache += (uint64_t)st.st_blocks * UNIT;
		if (dir)
			closedir(dir);
	}
	return 0;
}

/* ---- who uses it ---- */

/* Count it for the image, once. */
static bool use(struct counting *k, struct digest_slot *x)
{
	if (!x || x->last == k->image)
		return false;
	x->last = k->image;
	x->owner = x->owner == 0 ? k->image : SHARED;
	k->u->images[k->image - 1].total += (uint64_t)x->units * UNIT;
	return true;
}

static int use_chunk(void *ctx, const struct node *n, struct chunk *c, struct err *e)
{
	struct counting *k = ctx;

	(void)n;
	(void)e;
	k->u->images[k->image - 1].chunks += use(k, digest_map_find(&k->chunks, &c->digest));
	return 0;
}

static int use_chunks(void *ctx, struct image *im, struct err *e)
{
	struct counting *k = ctx;

	return reach_chunks(k->s, im, use_chunk, k, e);
}

/* What is in `map` of what the image reaches. */
static void use_reached(struct counting *k, struct digest_map *map)
{
	for (size_t i = 0; i < map->nslots; i++) {
		struct digest d = {{0}};

		if (!map->slots[i].key)
			continue;
		memcpy(d.b, &map->slots[i].key, sizeof(map->slots[i].key));
		if (digest_map_find(&k->reached, &d))
			use(k, &map->slots[i]);
	}
}

static int use_image(void *ctx, const struct digest *manifest, struct err *e)
{
	struct counting *k = ctx;
	char hex[DIGEST_HEX + 1];
	int rc;

	mem_grow(&k->u->images, &k->cap, k->u->n);
	k->u->images[k->u->n++] = (struct usage_image){.manifest = *manifest};
	k->image = (uint32_t)k->u->n;
	rc = reach_blobs(k->s, manifest, &k->reached, e);
	if (rc == 0)
		rc = reach_images(k->s, manifest, use_chunks, k, e);
	if (rc == 0)
		use_reached(k, &k->blobs);
	for (size_t i = 0; i < 3 && rc == 0; i++)
		use_reached(k, &k->files[i]);
	digest_map_fini(&k->reached);
	return rc < 0 ? err_ctx(e, "image %.12s", digest_hex(manifest, hex)) : 0;
}

static void divide(struct usage *u, const struct digest_map *m)
{
	for (size_t i = 0; i < m->nslots; i++) {
		const struct digest_slot *x = &m->slots[i];
		uint64_t bytes = (uint64_t)x->units * UNIT;

		if (!x->key)
			continue;
		if (x->owner == 0)
			u->unused += bytes;
		else if (x->owner == SHARED)
			u->shared += bytes;
		else
			u->images[x->owner - 1].unique += bytes;
	}
}

int usage_read(struct store *s, struct usage *u, struct err *e)
{
	struct counting k = {.s = s, .u = u};
	int rc;

	*u = (struct usage){0};
	rc = add_pool(&k, e) < 0 || add_files(&k, e) < 0 || add_cache(&k, e) < 0 ||
			     reach_roots(s, use_image, &k, e) < 0
		     ? -1
		     : 0;
	if (rc == 0) {
		divide(u, &k.chunks);
		divide(u, &k.blobs);
		for (size_t i = 0; i < 3; i++)
			divide(u, &k.files[i]);
	}
	digest_map_fini(&k.chunks);
	digest_map_fini(&k.blobs);
	for (size_t i = 0; i < 3; i++)
		digest_map_fini(&k.files[i]);
	if (rc < 0)
		usage_fini(u);
	return rc;
}

void usage_fini(struct usage *u)
{
	free(u->images);
	*u = (struct usage){0};
}
