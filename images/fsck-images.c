/* What the images need, against what is there. */
#include <fcntl.h>
#include <string.h>

#include "base/sys.h"
#include "images/fsck-private.h"
#include "images/mount-image.h"
#include "images/mount.h"
#include "images/reach.h"

struct looking {
	struct check *k;
	const char *name; /* of the image, for people */
	struct image *im;
	const struct node *last; /* said already */
	size_t lacking;          /* faults from here on were added by this image */
	struct digest_map missing;
};

static struct fault *find_fault(const struct check *k, size_t n, const struct digest *d)
{
	size_t from = 0, to = n;

	while (from < to) {
		size_t mid = from + (to - from) / 2;
		int x = memcmp(k->v[mid].c.digest.b, d->b, DIGEST_SIZE);

		if (x == 0)
			return &k->v[mid];
		if (x < 0)
			from = mid + 1;
		else
			to = mid;
	}
	return NULL;
}

static void own(struct looking *l, struct fault *x)
{
	if (x->owned)
		return;
	x->owned = true;
	x->manifest = l->im->manifest_digest;
}

/* All faults of one digest stand side by side: its record and twins. */
static void own_all(struct looking *l, struct fault *x)
{
	struct check *k = l->k;
	size_t i = (size_t)(x - k->v);

	while (i > 0 && digest_eq(&k->v[i - 1].c.digest, &x->c.digest))
		i--;
	for (; i < l->lacking && digest_eq(&k->v[i].c.digest, &x->c.digest); i++)
		own(l, &k->v[i]);
}

static void say_file(struct looking *l, const struct node *n, const char *what)
{
	char path[TREE_PATH_MAX + 1];

	if (n == l->last)
		return;
	l->last = n;
	fsck_say(l->k->f, "%s: '%.500s' %s", l->name, node_path(n, path), what);
}

static void lacks(struct looking *l, const struct chunk *c)
{
	struct check *k = l->k;

	if (digest_map_find(&l->missing, &c->digest)) /* said of another file */
		return;
	digest_map_add(&l->missing, &c->digest);
	mem_grow(&k->v, &k->vcap, k->n);
	k->v[k->n] = (struct fault){.c = *c};
	k->v[k->n].c.block = CHUNK_NO_BLOCK;
	own(l, &k->v[k->n++]);
	k->f->faults++;
}

static int check_chunk(void *ctx, const struct node *n, struct chunk *c, struct err *e)
{
	struct looking *l = ctx;
	struct fault *x = find_fault(l->k, l->lacking, &c->digest);
	struct chunk found = *c;
	int rc;

	if (x) {
		own_all(l, x);
		say_file(l, n,
			x->c.block == CHUNK_NO_BLOCK ? "is not whole: the pool lacks data of it"
						     : "is damaged");
		return 0;
	}
	rc = l->k->pool ? pool_find(l->k->pool, &found, e) : 0;
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	say_file(l, n, "is not whole: the pool lacks data of it");
	lacks(l, c);
	return 0;
}

/* A layer may be away only when it can be fetched. */
static void check_layers(struct looking *l, const char *source)
{
	char hex[DIGEST_HEX + 1];

	for (size_t i = 0; !source && i < l->im->nlayers; i++)
		if (!store_has(l->k->s, &l->im->layers[i].digest))
			fsck_fault(l->k->f, "%s: layer %zu is not in the store: blobs/sha256/%s",
				l->name, i, digest_hex(&l->im->layers[i].digest, hex));
}

struct visiting {
	struct check *k;
	const char *name, *source;
};

static int check_image(void *ctx, struct image *im, struct err *e)
{
	struct visiting *v = ctx;
	struct looking l = {.k = v->k, .name = v->name, .im = im, .lacking = v->k->n};
	struct err fault = {0};
	int rc;

	v->k->f->images++;
	check_layers(&l, v->source);
	rc = reach_tree_chunks(v->k->s, im, check_chunk, &l, &fault);
	digest_map_fini(&l.missing);
	fsck_sort(v->k);
	if (rc == 0)
		return 0;
	if (fault.kind == ERR_CORRUPT || fault.kind == ERR_NOT_FOUND) {
		fsck_fault(v->k->f, "%s: %s", v->name, fault.text);
		return 0;
	}
	if (e)
		*e = fault;
	return -1;
}

struct names {
	struct check *k;
	struct store_name *v;
	size_t n;
};

static int check_manifest(void *ctx, const struct digest *manifest, struct err *e)
{
	struct names *names = ctx;
	struct check *k = names->k;
	char hex[DIGEST_HEX + 1];
	struct visiting v = {.k = k, .name = digest_hex(manifest, hex)};
	struct err fault = {0};

	for (size_t i = names->n; i-- > 0;)
		if (digest_eq(&names->v[i].manifest, manifest)) {
			v.name = names->v[i].name;
			if (names->v[i].source)
				v.source = names->v[i].source;
		}
	if (reach_images(k->s, manifest, check_image, &v, &fault) == 0)
		return 0;
	if (fault.kind == ERR_CORRUPT || fault.kind == ERR_NOT_FOUND) {
		fsck_fault(k->f, "%s: %s", v.name, fault.text);
		return 0;
	}
	if (e)
		*e = fault;
	return -1;
}

int fsck_images(struct check *k, struct err *e)
{
	struct names names = {.k = k};
	int rc;

	if (store_names(k->s, &names.v, &names.n, e) < 0)
		return -1;
	rc = reach_roots(k->s, check_manifest, &names, e);
	store_names_free(names.v, names.n);
	return rc;
}

/* ---- metadata images ---- */

/* It is only a cache of the index and the pool: the next start makes it again. */
static int check_metadata(
	void *ctx, int dirfd, const char *name, const struct digest *d, struct err *e)
{
	struct check *k = ctx;
	struct err fault = {0};

	(void)dirfd;
	if (mount_image_check(k->s, d, &fault) == 0 || fault.kind == ERR_NOT_FOUND)
		return 0;
	if (fault.kind != ERR_CORRUPT) {
		if (e)
			*e = fault;
		return -1;
	}
	fsck_fault(k->f, "%s", fault.text);
	if (!k->f->repair)
		return 0;
	if (mount_image_remove(k->s, d, e) < 0)
		return -1;
	fsck_say(k->f, "erofs/%s was removed: it is made again when the image is run", name);
	k->f->repaired++;
	return 0;
}

int fsck_metadata(struct check *k, struct err *e)
{
	return reach_files(k->s, "erofs", ".img", check_metadata, k, e);
}
