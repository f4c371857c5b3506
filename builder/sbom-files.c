#include "builder/sbom-files.h"

#include <openssl/sha.h>
#include <string.h>

#include "images/image.h"
#include "images/workers.h"

/* SHA1_*(): as base/digest.c does, libcrypto's plain functions. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

struct summing {
	const struct bill *b;
	struct pool *pool;
	const struct node **nodes; /* by b->files; NULL: no file */
	struct sbom_sums *sums;
};

static int sum_file(void *ctx, size_t i, struct err *e)
{
	struct summing *x = ctx;
	const struct node *n = x->nodes[i];
	auto_free unsigned char *chunk = NULL;
	uint8_t out[HASH_MAX];
	struct hash sha256;
	SHA_CTX sha1;

	if (!n)
		return 0;
	chunk = mem_alloc(CHUNK_SIZE);
	hash_init(&sha256, HASH_SHA256);
	SHA1_Init(&sha1);
	for (uint32_t k = 0; k < n->a.nchunks; k++) {
		if (pool_read(x->pool, &n->a.chunks[k], chunk, e) < 0)
			return err_ctx(e, "/%s", x->b->files[i].path);
		hash_add(&sha256, chunk, n->a.chunks[k].length);
		SHA1_Update(&sha1, chunk, n->a.chunks[k].length);
	}
	hash_final(&sha256, out);
	hex_encode(out, DIGEST_SIZE, x->sums[i].sha256);
	SHA1_Final(out, &sha1);
	hex_encode(out, SHA_DIGEST_LENGTH, x->sums[i].sha1);
	return 0;
}

static int find_chunks(struct summing *x, struct err *e)
{
	auto_free struct chunk **v = NULL;
	size_t n = 0, cap = 0;

	for (size_t i = 0; i < x->b->nfiles; i++)
		for (uint32_t k = 0; x->nodes[i] && k < x->nodes[i]->a.nchunks; k++) {
			mem_grow(&v, &cap, n);
			v[n++] = &x->nodes[i]->a.chunks[k];
		}
	if (n && pool_find_all(x->pool, v, n, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		if (v[i]->block == CHUNK_NO_BLOCK) {
			err_set(e, ERR_CORRUPT, "the pool lacks data of the image");
			return err_hint(e, "svrun image verify --repair");
		}
	return 0;
}

static int sum_tree(struct summing *x, struct tree *t, struct err *e)
{
	for (size_t i = 0; i < x->b->nfiles; i++) {
		const struct node *n = tree_find(t, x->b->files[i].path);

		if (!n)
			return err_set(e, ERR_CORRUPT,
				"the bill has a file that the image lacks: /%s",
				x->b->files[i].path);
		n = n->link ? n->link : n;
		x->nodes[i] = n->a.type == NODE_FILE ? n : NULL;
	}
	if (find_chunks(x, e) < 0)
		return -1;
	return workers_each(x->b->nfiles, 0, sum_file, x, e);
}

int sbom_sum_files(const struct bill *b, struct store *s, const struct digest *manifest,
	struct sbom_sums **sums, struct err *e)
{
	auto_free const struct node **nodes = mem_array(b->nfiles, sizeof(*nodes));
	auto_free struct sbom_sums *out = mem_array(b->nfiles, sizeof(*out));
	struct summing x = {.b = b, .nodes = nodes, .sums = out};
	struct tree *t = NULL;
	struct image im;
	int rc = -1;

	if (image_load(&im, s, manifest, e) < 0)
		return -1;
	x.pool = pool_open(s->fd, false, e);
	t = x.pool ? image_tree(&im, s, NULL, NULL, e) : NULL;
	if (t)
		rc = sum_tree(&x, t, e);
	tree_free(t);
	pool_close(x.pool);
	image_fini(&im);
	if (rc == 0)
		*sums = steal_ptr(&out);
	return rc;
}
