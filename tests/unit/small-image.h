/* Small images in a store: as many files as there are seeds, of 5000 bytes each. Images that have a
 * seed in common share its chunk. */
#ifndef SMALL_IMAGE_H
#define SMALL_IMAGE_H

#include "base/str.h"
#include "images/image.h"
#include "images/mount-image.h"
#include "images/mount.h"
#include "tests/unit/fixture.h"

struct small_image {
	struct digest manifest;
	uint64_t size;
	struct layer layer;
};

/* The pool is open for writing. name NULL: none. Clears f->t. */
static MAYBE_UNUSED void small_image(
	struct fixture *f, struct small_image *b, const char *name, const uint32_t *seeds, size_t n)
{
	auto_json json_t *c =
		json_pack("{s:s, s:s, s:{}}", "architecture", "amd64", "os", "linux", "config");
	struct image_plan plan = {
		.layers = &b->layer, .nlayers = 1, .config = c, .created = "2026-01-02T03:04:05Z"};
	const struct attr plain = {.mode = 0644};
	auto_free struct node **nodes = mem_array(n + 2, sizeof(struct node *));
	size_t count = 0;

	tree_free(f->t);
	plan.tree = f->t = tree_new();
	*b = (struct small_image){.layer = {.id = "all", .codec = CODEC_ZSTD, .level = 1}};
	for (size_t i = 0; i < n; i++) {
		char path[32];

		snprintf(path, sizeof(path), "file-%u", seeds[i]);
		put_file(f, path, 5000, seeds[i], &plain);
	}
	tree_sort(f->t);
	for (struct node *x = tree_root(f->t); x; x = tree_next(x))
		nodes[count++] = x;
	need(layer_write(&b->layer, 0, nodes, count, f->p, &f->s, NULL, &f->e));
	need(pool_commit(f->p, &f->e));
	need(image_publish(&f->s, &plan, &b->manifest, &b->size, &f->e));
	need(mount_prepare(&f->s, &b->manifest, f->t, &f->e));
	if (name)
		need(store_name_set(&f->s, name, &b->manifest, b->size, NULL, &f->e));
}

static MAYBE_UNUSED void close_pool(struct fixture *f)
{
	pool_close(f->p);
	f->p = NULL;
}

static MAYBE_UNUSED void open_pool(struct fixture *f)
{
	f->p = pool_open(f->s.fd, true, &f->e);
	if (!f->p)
		fail_msg("%s", f->e.text);
}

/* The pool is closed. */
static MAYBE_UNUSED int small_verify(struct fixture *f, const struct small_image *b)
{
	struct image_verify v = {0};
	struct image im;
	int rc;

	f->e = (struct err){0};
	if (image_load(&im, &f->s, &b->manifest, &f->e) < 0)
		return -1;
	rc = image_verify(&im, &f->s, &v, NULL, &f->e);
	image_fini(&im);
	return rc;
}

static MAYBE_UNUSED void small_verify_well(struct fixture *f, const struct small_image *b)
{
	if (small_verify(f, b) < 0)
		fail_msg("%s", f->e.text);
}

/* As svrun image rm does. */
static MAYBE_UNUSED void small_remove(
	struct fixture *f, const struct small_image *b, const char *name)
{
	auto_fd int claim = image_claim(&f->s, &b->manifest, &f->e);

	if (claim < 0)
		fail_msg("%s", f->e.text);
	need(store_name_remove(&f->s, name, &f->e));
	need(image_delete(&f->s, &b->manifest, &f->e));
}

static MAYBE_UNUSED bool in_store(
	struct fixture *f, const char *folder, const struct digest *d, const char *end)
{
	char path[128], hex[DIGEST_HEX + 1];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s%s", folder, digest_hex(d, hex), end);
	return sys_fstatat(f->s.fd, path, &st, 0) == 0;
}

static MAYBE_UNUSED uint64_t pool_disk_bytes(struct fixture *f)
{
	struct stat st;

	assert_int_equal(sys_fstatat(f->s.fd, "pool/data", &st, 0), 0);
	return (uint64_t)st.st_blocks * 512;
}

#endif
