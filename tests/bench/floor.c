/* What pulling an image of ours costs at least: every chunk of it decoded from its frame (in the
 * page cache), hashed and written to a new file, by all cores, without a network, a database or a
 * tree.
 *
 *   floor STORE IMAGE FILE      prints seconds and bytes */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/sys.h"
#include "images/workers.h"
#include "images/frame.h"
#include "images/image.h"
#include "images/tree-chunks.h"

enum { BATCH = 64 };

struct floor {
	struct layer *layers;
	int *blobs; /* by layer */
	struct chunk **v;
	size_t n;
	int out;
	atomic_size_t next;
	atomic_ullong at; /* in out, bytes */
};

static int one(struct floor *f, struct decoder **x, const struct chunk *c, char *stored, char *data,
	struct err *e)
{
	const struct layer *l = &f->layers[c->layer];
	struct digest d;

	if (sys_pread_all(f->blobs[c->layer], stored, c->stored, (off_t)c->offset) < 0)
		return err_sys(e, "read");
	if (!x[l->codec])
		x[l->codec] = decoder_new(l->codec);
	if (decoder_frame(x[l->codec], stored, c->stored, data, c->length, e) < 0)
		return -1;
	d = digest_of(data, c->length);
	return digest_check(&c->digest, &d, e, "chunk");
}

static int work(void *ctx, size_t i, struct err *e)
{
	struct floor *f = ctx;
	struct decoder *x[3] = {NULL};
	auto_free char *stored = mem_alloc(2 * CHUNK_SIZE), *data = mem_alloc(2 * CHUNK_SIZE);
	size_t used = 0;
	int rc = 0;

	(void)i;
	while (rc == 0) {
		size_t k = atomic_fetch_add(&f->next, BATCH), end = k + BATCH;

		for (; rc == 0 && k < end && k < f->n; k++) {
			uint32_t room = (f->v[k]->length + 4095u) & ~4095u;

			rc = one(f, x, f->v[k], stored, data + used, e);
			memset(data + used + f->v[k]->length, 0, room - f->v[k]->length);
			used += room;
			if (rc == 0 && (used >= CHUNK_SIZE || k + 1 == f->n || k + 1 == end)) {
				off_t at = (off_t)atomic_fetch_add(&f->at, used);

				rc = sys_pwrite_all(f->out, data, used, at) < 0
					     ? err_sys(e, "write")
					     : 0;
				used = 0;
			}
		}
		if (k >= f->n)
			break;
	}
	for (int c = 0; c < 3; c++)
		decoder_free(x[c]);
	return rc;
}

static int by_place(const void *a, const void *b)
{
	const struct chunk *x = *(struct chunk *const *)a, *y = *(struct chunk *const *)b;

	if (x->layer != y->layer)
		return x->layer < y->layer ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int run(char **argv, struct err *e)
{
	struct floor f = {0};
	struct tree_chunks c;
	struct store s;
	struct image im;
	struct digest d;
	struct tree *t;
	size_t nlayers;
	double begun;

	if (store_open(&s, argv[1], false, e) < 0 || store_resolve(&s, argv[2], &d, e) < 0 ||
		image_load(&im, &s, &d, e) < 0)
		return -1;
	t = image_tree(&im, &s, &f.layers, &nlayers, e);
	if (!t)
		return -1;
	f.blobs = mem_array(nlayers + 1, sizeof(int));
	for (size_t i = 0; i < nlayers; i++) {
		f.blobs[i] = store_blob_open(&s, &f.layers[i].digest, NULL, e);
		if (f.blobs[i] < 0)
			return -1;
	}
	f.out = sys_open(argv[3], O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (f.out < 0)
		return err_sys(e, "create %s", argv[3]);
	tree_chunks_init(&c, t);
	f.v = c.v;
	f.n = c.n;
	qsort(f.v, f.n, sizeof(struct chunk *), by_place);
	begun = sys_now_ms();
	if (workers_each(workers_cores(), 0, work, &f, e) < 0)
		return -1;
	printf("%.3f %llu\n", (sys_now_ms() - begun) / 1e3, (unsigned long long)f.at);
	return 0;
}

int main(int argc, char **argv)
{
	struct err e = {0};

	if (argc != 4) {
		fprintf(stderr, "usage: floor STORE IMAGE FILE\n");
		return 2;
	}
	if (run(argv, &e) == 0)
		return 0;
	err_print(&e, "floor");
	return 1;
}
