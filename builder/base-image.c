#include "builder/base-image.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/sys.h"
#include "builder/image-input.h"
#include "builder/local.h"

enum { KEY_PATH = 64 };

/* ---- locking ---- */

/* The public key beside the manifest, open, and its path; -1. */
static int open_key(const struct manifest *m, char path[KEY_PATH], struct err *e)
{
	int fd = local_open(m->dir, m->base.key, NULL, e);

	snprintf(path, KEY_PATH, "/proc/self/fd/%d", fd);
	return fd;
}

static int check_signature(const struct manifest *m, struct store *s, struct err *e)
{
	char path[KEY_PATH];

	if (m->base.identity)
		return image_input_verify_identity(s, &m->base, e) < 0
			       ? err_ctx(e, "/base/verify/identity")
			       : 0;
	if (!m->base.key)
		return 0;

	auto_fd int fd = open_key(m, path, e);

	if (fd < 0 || image_input_verify(s, m->base.ref, &m->base.digest, path, e) < 0)
		return err_ctx(e, "/base/verify/key: %s", m->base.key);
	return 0;
}

bool base_image_admitted(
	const struct manifest *m, const struct lock *l, const struct config *c, struct store *s)
{
	char path[KEY_PATH];
	bool asked = m->base.key || m->base.identity || (c && c->policy);
	auto_fd int fd = m->base.key ? open_key(m, path, NULL) : -1;

	if (m->base.type != BASE_OCI || !asked)
		return true;
	return (!m->base.key || fd >= 0) && store_has(s, &l->base.manifest) &&
	       image_input_recheck(
		       s, &m->base, m->base.key ? path : NULL, &l->base.manifest, NULL) == 0;
}

/* Layers that carry files: an index of ours in the last one speaks of this image alone. */
static size_t data_layers(const struct image *im)
{
	return im->nlayers - (im->has_index ? 1 : 0);
}

static int fill(struct lock *l, const char *ref, const struct image *im, struct err *e)
{
	struct lock_base *b = &l->base;

	*b = (struct lock_base){.present = true,
		.ref = arena_strdup(&l->arena, ref),
		.manifest = im->manifest_digest,
		.config = im->config_digest,
		.nlayers = data_layers(im)};
	if (b->nlayers == 0)
		return err_set(e, ERR_UNSUPPORTED, "it has no layer with files");
	b->layers = arena_alloc(&l->arena, b->nlayers * sizeof(*b->layers));
	for (size_t i = 0; i < b->nlayers; i++)
		b->layers[i] = (struct lock_layer){.digest = im->layers[i].digest,
			.diff_id = im->layers[i].diff_id,
			.size = im->layers[i].size};
	return 0;
}

static int lock_base(struct lock *l, const struct manifest *m, struct store *s, struct progress *p,
	struct err *e)
{
	static const struct digest none;
	struct digest manifest;
	struct image im;
	int rc;

	if (!m->base.ref || digest_eq(&m->base.digest, &none)) {
		err_set(e, ERR_USAGE, "SV010 /base: missing key '%s'",
			m->base.ref ? "digest" : "ref");
		return err_hint(e, "a base is an image by digest, so that it stays what it is");
	}
	if (check_signature(m, s, e) < 0 ||
		image_input(s, m->base.ref, &m->base.digest, p, &manifest, e) < 0 ||
		image_load(&im, s, &manifest, e) < 0)
		return -1;
	rc = image_check_platform(im.config, m->platform, e);
	if (rc == 0)
		rc = fill(l, m->base.ref, &im, e);
	image_fini(&im);
	return rc;
}

int base_image_lock(struct lock *l, const struct manifest *m, struct store *s, struct progress *p,
	struct err *e)
{
	l->base = (struct lock_base){0};
	if (m->base.type == BASE_SCRATCH)
		return 0;
	return lock_base(l, m, s, p, e) < 0 ? err_ctx(e, "base %s", m->base.ref) : 0;
}

/* ---- opening ---- */

/* The image pins all of this, too; this is about a lock that was edited. */
static int check_lock(const struct lock_base *l, const struct image *im, struct err *e)
{
	if (digest_check(&l->config, &im->config_digest, e, "lock: /base/config") < 0)
		return -1;
	if (l->nlayers != data_layers(im))
		return err_set(e, ERR_CORRUPT, "lock: /base/layers: expected %zu, found %zu",
			data_layers(im), l->nlayers);
	for (size_t i = 0; i < l->nlayers; i++)
		if (digest_check(&l->layers[i].digest, &im->layers[i].digest, e,
			    "lock: /base/layers/%zu/digest", i) < 0 ||
			digest_check(&l->layers[i].diff_id, &im->layers[i].diff_id, e,
				"lock: /base/layers/%zu/diffId", i) < 0)
			return -1;
	return 0;
}

int base_image_open(struct base_image *b, const struct manifest *m, const struct lock *l,
	struct store *s, struct progress *p, struct err *e)
{
	struct digest manifest;

	*b = (struct base_image){0};
	if (m->base.type != BASE_OCI)
		return err_set(e, ERR_USAGE, "lock: /base: the manifest has no base image");
	if (check_signature(m, s, e) < 0 ||
		image_input(s, m->base.ref, &m->base.digest, p, &manifest, e) < 0 ||
		digest_check(&manifest, &l->base.manifest, e, "lock: /base/manifest") < 0 ||
		image_load(&b->image, s, &manifest, e) < 0)
		return -1;
	if (check_lock(&l->base, &b->image, e) == 0)
		b->tree = image_tree(&b->image, s, &b->layers, &b->nlayers, e);
	if (b->tree)
		return 0;
	base_image_close(b);
	return -1;
}

void base_image_close(struct base_image *b)
{
	tree_free(b->tree);
	free(b->layers);
	image_fini(&b->image);
	*b = (struct base_image){0};
}
