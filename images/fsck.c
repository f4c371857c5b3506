#include "images/fsck.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/sys.h"
#include "images/fsck-private.h"
#include "images/pool-sweep.h"
#include "images/progress.h"
#include "images/reach.h"
#include "images/workers.h"

enum { BATCH = 64, LINE = 2048 };

/* ---- saying ---- */

void fsck_say(struct fsck *f, const char *fmt, ...)
{
	char line[LINE];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (f->say)
		f->say(f->ctx, line);
}

void fsck_fault(struct fsck *f, const char *fmt, ...)
{
	char line[LINE];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	f->faults++;
	if (f->say)
		f->say(f->ctx, line);
}

static int by_digest(const void *a, const void *b)
{
	const struct fault *x = a, *y = b;

	return memcmp(x->c.digest.b, y->c.digest.b, DIGEST_SIZE);
}

void fsck_sort(struct check *k)
{
	if (k->n)
		qsort(k->v, k->n, sizeof(*k->v), by_digest);
}

/* ---- the pool ---- */

static int add_chunk(void *ctx, const struct chunk *c, struct err *e)
{
	struct check *k = ctx;

	(void)e;
	mem_grow(&k->chunks, &k->cap, k->nchunks);
	k->chunks[k->nchunks++] = *c;
	return 1;
}

static int by_block(const void *a, const void *b)
{
	const struct chunk *x = a, *y = b;

	return (x->block > y->block) - (x->block < y->block);
}

static int list_chunks(struct check *k, struct err *e)
{
	if (pool_each(k->pool, false, add_chunk, k, e) < 0)
		return -1;
	k->nrecords = k->nchunks;
	if (pool_each(k->pool, true, add_chunk, k, e) < 0)
		return -1;
	if (k->nrecords) /* as a disk likes to be read */
		qsort(k->chunks, k->nrecords, sizeof(*k->chunks), by_block);
	k->f->chunks = k->nchunks;
	k->bad = mem_array(k->nchunks + 1, sizeof(*k->bad));
	return 0;
}

static int hash_batch(void *ctx, size_t i, struct err *e)
{
	struct check *k = ctx;
	auto_free void *data = mem_alloc(CHUNK_SIZE);
	uint64_t bytes = 0;

	(void)e;
	for (size_t n = i * BATCH; n < k->nchunks && n < (i + 1) * BATCH; n++) {
		k->bad[n] = pool_check(k->pool, &k->chunks[n], data, NULL) < 0;
		bytes += k->chunks[n].length;
	}
	progress_add(k->f->progress, bytes);
	return 0;
}

static int hash_chunks(struct check *k, struct err *e)
{
	uint64_t total = 0;

	if (list_chunks(k, e) < 0)
		return -1;
	for (size_t i = 0; i < k->nchunks; i++)
		total += k->chunks[i].length;
	progress_begin(k->f->progress, "pool", total);
	if (workers_each((k->nchunks + BATCH - 1) / BATCH, 0, hash_batch, k, e) < 0)
		return -1;
	progress_end(k->f->progress);
	for (size_t i = 0; i < k->nchunks; i++)
		if (k->bad[i]) {
			mem_grow(&k->v, &k->vcap, k->n);
			k->v[k->n++] = (struct fault){.c = k->chunks[i], .twin = i >= k->nrecords};
		}
	fsck_sort(k);
	return 0;
}

static int check_pool(struct check *k, struct err *e)
{
	struct err fault = {0};
	char text[DIGEST_TEXT + 1];

	if (!k->pool)
		return 0;
	if (pool_check_space(k->pool, &fault) < 0) {
		if (fault.kind != ERR_CORRUPT) {
			if (e)
				*e = fault;
			return -1;
		}
		fsck_fault(k->f, "%s", fault.text);
	}
	if (hash_chunks(k, e) < 0)
		return -1;
	for (size_t i = 0; i < k->n; i++)
		fsck_fault(k->f, "pool/data: %s of %u bytes at block %lld is damaged: %s",
			k->v[i].twin ? "a second copy" : "a chunk", k->v[i].c.length,
			(long long)k->v[i].c.block, digest_text(&k->v[i].c.digest, text));
	return 0;
}

/* ---- blobs ---- */

struct blobs {
	struct check *k;
	struct digest *v;
	size_t n, cap;
	uint64_t bytes;
	pthread_mutex_t lock;   /* of the caller's say() */
	struct digest_map away; /* layers of images that can be fetched again */
	struct digest_map used;
};

static int add_blob(void *ctx, int dirfd, const char *name, const struct digest *d, struct err *e)
{
	struct blobs *b = ctx;
	struct stat st;

	(void)e;
	mem_grow(&b->v, &b->cap, b->n);
	b->v[b->n++] = *d;
	if (sys_fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		b->bytes += (uint64_t)st.st_size;
	return 0;
}

static int add_away(struct blobs *b, struct err *e)
{
	struct store_name *v;
	size_t n;

	if (store_names(b->k->s, &v, &n, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		struct image im;

		if (reach_blobs(b->k->s, &v[i].manifest, &b->used, NULL) < 0 || !v[i].source ||
			image_load(&im, b->k->s, &v[i].manifest, NULL) < 0)
			continue;
		for (size_t x = 0; x < im.nlayers; x++)
			if (!im.has_index || !digest_eq(&im.layers[x].digest, &im.index.layer))
				digest_map_add(&b->away, &im.layers[x].digest);
		image_fini(&im);
	}
	store_names_free(v, n);
	return 0;
}

/* A damaged blob that can be had again, or that nobody needs, is better not there. */
static void damaged_blob(struct blobs *b, const struct digest *d, const char *what)
{
	struct fsck *f = b->k->f;
	char hex[DIGEST_HEX + 1];
	bool spare = digest_map_find(&b->away, d) || !digest_map_find(&b->used, d);

	fsck_fault(f, "blobs/sha256/%s %s", digest_hex(d, hex), what);
	if (!f->repair)
		return;
	if (spare && store_blob_remove(b->k->s, d, NULL) == 0) {
		fsck_say(f, "blobs/sha256/%s was removed: it can be had again, or no image has it",
			hex);
		f->repaired++;
	} else {
		fsck_say(f, "blobs/sha256/%s: build or pull its image again", hex);
	}
}

static int hash_blob(void *ctx, size_t i, struct err *e)
{
	struct blobs *b = ctx;
	uint64_t size = 0;
	struct digest found;
	struct hash h;
	int rc;
	auto_fd int fd = store_blob_open(b->k->s, &b->v[i], &size, NULL);

	(void)e;
	if (fd < 0) /* `image rm` was faster */
		return 0;
	hash_init(&h, HASH_SHA256);
	rc = hash_add_file(fd, "a blob", &h, NULL);
	found = hash_digest(&h);
	progress_add(b->k->f->progress, size);
	pthread_mutex_lock(&b->lock);
	b->k->f->blobs++;
	if (rc < 0)
		damaged_blob(b, &b->v[i], "cannot be read");
	else if (!digest_eq(&found, &b->v[i]))
		damaged_blob(b, &b->v[i], "is not what its name says");
	pthread_mutex_unlock(&b->lock);
	return 0;
}

static int check_blobs(struct check *k, struct err *e)
{
	struct blobs b = {.k = k};
	int rc;

	pthread_mutex_init(&b.lock, NULL);
	rc = reach_files(k->s, "blobs/sha256", "", add_blob, &b, e) < 0 ? -1 : add_away(&b, e);
	progress_begin(k->f->progress, "blobs", b.bytes);
	if (rc == 0)
		rc = workers_each(b.n, 0, hash_blob, &b, e);
	progress_end(k->f->progress);
	digest_map_fini(&b.away);
	digest_map_fini(&b.used);
	pthread_mutex_destroy(&b.lock);
	free(b.v);
	return rc;
}

/* ---- all of it ---- */

static int look(struct check *k, struct err *e)
{
	uint8_t id[POOL_IDENTITY];
	int there = pool_identity(k->s->fd, id, e), rc;
	auto_fd int hold = -1;

	if (there < 0)
		return -1;
	if (there) {
		hold = pool_hold(k->s->fd, e);
		k->pool = hold < 0 ? NULL : pool_open(k->s->fd, false, e);
		if (!k->pool)
			return -1;
	}
	rc = check_pool(k, e) < 0 || check_blobs(k, e) < 0 || fsck_images(k, e) < 0 ||
			     fsck_metadata(k, e) < 0
		     ? -1
		     : 0;
	pool_close(k->pool);
	k->pool = NULL;
	return rc;
}

int fsck_run(struct store *s, struct fsck *f, struct err *e)
{
	struct check k = {.s = s, .f = f};
	int rc;

	f->images = f->chunks = f->blobs = f->faults = f->repaired = 0;
	rc = look(&k, e);
	if (rc == 0 && f->repair && k.n)
		rc = fsck_repair(&k, e);
	free(k.chunks);
	free(k.bad);
	free(k.v);
	return rc;
}
