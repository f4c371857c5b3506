#include "builder/build.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/str.h"
#include "base/sys.h"
#include "builder/apt.h"
#include "builder/compose.h"
#include "builder/group.h"
#include "builder/image-config.h"
#include "builder/local.h"
#include "builder/npm.h"
#include "images/image.h"
#include "images/mount.h"

/* Part of every cache key: raise it when the same inputs give another image. */
static const char engine_epoch[] = "svrun-build/1";

/* ---- lock ---- */

static int lock_debs(struct lock *l, const struct manifest *m, struct mirrors *mirrors,
	struct progress *p, struct err *e)
{
	char tmp[] = "/tmp/svrun-apt-XXXXXX";
	int rc;

	if (!m->apt.present)
		return 0;
	if (!mkdtemp(tmp))
		return err_sys(e, "create %s", tmp);
	rc = apt_lock(l, m, mirrors, tmp, p, e);
	if (sys_remove_tree(AT_FDCWD, tmp) < 0 && rc == 0)
		rc = err_sys(e, "remove %s", tmp);
	return rc;
}

int build_lock(const struct manifest *m, struct mirrors *mirrors, struct progress *p, struct err *e)
{
	struct lock l = {.platform = "linux/amd64", .manifest = lock_manifest_digest(m)};
	int rc;

#if defined(__aarch64__)
	l.platform = "linux/arm64";
#endif
	progress_begin(p, "lock", 0);
	rc = local_lock(&l, m, e) < 0 || lock_debs(&l, m, mirrors, p, e) < 0 ||
			     (m->node.present && npm_lock(&l, m, e) < 0) ||
			     lock_save(&l, m->dir, e) < 0
		     ? -1
		     : 0;
	progress_end(p);
	lock_fini(&l);
	return rc;
}

int build_lock_files(const struct manifest *m, struct err *e)
{
	struct lock l = {0};
	int rc;

	if (lock_load(&l, m->dir, e) < 0)
		return -1;
	rc = lock_check(&l, m, e) < 0 || local_lock(&l, m, e) < 0 || lock_save(&l, m->dir, e) < 0
		     ? -1
		     : 0;
	lock_fini(&l);
	return rc;
}

/* ---- build ---- */

struct build {
	const struct manifest *m;
	const struct lock *l;
	struct mirrors *mirrors;
	struct store *s;
	struct pool *pool;
	struct progress *p;
	struct manifest_build how; /* the manifest's, with the options' codec */
	struct digest key;
};

/* Everything that decides the bytes of the image. */
static struct digest action_key(const struct build *b)
{
	char hex[DIGEST_HEX + 1];
	auto_buf struct buf t = BUF_INIT(4096);

	buf_printf(&t, "%s zstd-%s", engine_epoch, ZSTD_versionString());
	buf_printf(&t, " manifest %s", digest_hex(&b->m->digest, hex));
	buf_printf(&t, " lock %s", digest_hex(&b->l->digest, hex));
	buf_printf(&t, " codec %s/%d/%s", codec_name(b->how.codec), b->how.level,
		codec_name(b->how.models_codec));
	return digest_of(t.data, t.len);
}

static int set_names(struct build *b, const struct digest *manifest, uint64_t size, struct err *e)
{
	auto_free char *versioned = mem_printf("%s:%s", b->m->name, b->m->version);

	for (char *c = versioned; *c; c++) /* a tag may hold neither */
		if (*c == '+' || *c == '~')
			*c = '_';
	if (store_name_set(b->s, versioned, manifest, size, NULL, e) < 0)
		return -1;
	return store_name_set(b->s, b->m->name, manifest, size, NULL, e);
}

static bool blobs_complete(struct store *s, const struct image *im)
{
	if (!store_has(s, &im->config_digest))
		return false;
	for (size_t i = 0; i < im->nlayers; i++)
		if (!store_has(s, &im->layers[i].digest))
			return false;
	return true;
}

/* The earlier result of the same build, when all of it is still there: 1, else 0. */
static int cached_result(struct build *b, struct digest *manifest, struct err *e)
{
	auto_free char *note = NULL;
	struct image im;
	bool complete;
	int rc = pool_note_get(b->pool, &b->key, &note, e);

	if (rc <= 0)
		return rc;
	if (digest_from_hex(manifest, note) < 0 || !store_has(b->s, manifest) ||
		image_load(&im, b->s, manifest, NULL) < 0)
		return 0;
	complete = blobs_complete(b->s, &im);
	rc = complete ? set_names(b, manifest, im.manifest_size, e) : 0;
	image_fini(&im);
	return rc < 0 ? -1 : complete;
}

static int write_layers(struct build *b, struct groups *g, struct err *e)
{
	uint64_t total = 0;

	for (size_t i = 0; i < g->n; i++)
		total += g->v[i].bytes;
	progress_begin(b->p, "compose", total);
	for (size_t i = 0; i < g->n; i++)
		if (layer_write(&g->v[i].layer, (int32_t)i, g->v[i].nodes, g->v[i].n, b->pool, b->s,
			    b->p, e) < 0)
			return err_ctx(e, "layer %s", g->v[i].layer.id);
	progress_end(b->p);
	return 0;
}

static int publish(struct build *b, struct composed *c, const struct groups *g,
	struct digest *manifest, struct err *e)
{
	auto_json json_t *config = image_config(b->m), *annotations = image_annotations(b->m);
	auto_free struct layer *layers = mem_array(g->n, sizeof(*layers));
	char created[32], hex[DIGEST_HEX + 1];
	struct image_plan plan = {.tree = c->tree,
		.layers = layers,
		.nlayers = g->n,
		.config = config,
		.annotations = annotations,
		.created = created};
	uint64_t size;

	for (size_t i = 0; i < g->n; i++)
		layers[i] = g->v[i].layer;
	image_created(b->m, created);
	/* the chunks must be there before anything refers to them, the name comes last */
	if (pool_commit(b->pool, e) < 0 || image_publish(b->s, &plan, manifest, &size, e) < 0 ||
		mount_prepare(b->s, manifest, c->tree, e) < 0 ||
		pool_note_put(b->pool, &b->key, digest_hex(manifest, hex), e) < 0)
		return -1;
	return set_names(b, manifest, size, e);
}

static int compose_and_publish(struct build *b, struct digest *manifest, struct err *e)
{
	struct composed c;
	struct groups g;
	int rc = -1;

	if (compose_fetch(b->m, b->l, b->mirrors, b->s, b->p, e) < 0 ||
		compose_tree(&c, b->m, b->l, b->s, b->pool, b->p, e) < 0)
		return -1;
	if (group_tree(&g, &c, &b->how, e) == 0) {
		rc = write_layers(b, &g, e);
		if (rc == 0)
			rc = publish(b, &c, &g, manifest, e);
		groups_fini(&g);
	}
	compose_fini(&c);
	return rc;
}

int build_run(const struct manifest *m, const struct lock *l, struct mirrors *mirrors,
	struct store *s, const struct build_options *o, struct progress *p, struct digest *manifest,
	bool *cached, struct err *e)
{
	struct build b = {.m = m, .l = l, .mirrors = mirrors, .s = s, .p = p, .how = m->build};
	int rc;

	*cached = false;
	if (o->codec)
		b.how.codec = *o->codec;
	if (lock_check(l, m, e) < 0)
		return -1;
	b.pool = pool_open(s->fd, true, e);
	if (!b.pool)
		return -1;
	b.key = action_key(&b);
	rc = local_check(l, m, b.pool, e);
	if (rc == 0 && !o->no_cache)
		rc = cached_result(&b, manifest, e);
	*cached = rc == 1;
	if (rc == 0)
		rc = compose_and_publish(&b, manifest, e);
	pool_close(b.pool);
	return rc < 0 ? -1 : 0;
}
