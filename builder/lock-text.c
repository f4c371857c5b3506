/* The lock as text. */
#include "builder/lock-keys.h"

#include <fcntl.h>
#include <isa-l.h>
#include <stdio.h>
#include <string.h>
#include <zstd.h>

#include "base/file.h"

enum { TEXT_MAX = 32 << 20 };

static json_t *sha256_json(const struct digest *d)
{
	char hex[DIGEST_HEX + 1];

	return json_string(digest_hex(d, hex));
}

static json_t *digest_json(const struct digest *d)
{
	char text[DIGEST_TEXT + 1];

	return json_string(digest_text(d, text));
}

static json_t *strings_json(const struct strings *s)
{
	json_t *a = json_array();

	for (size_t i = 0; i < s->n; i++)
		json_array_append_new(a, json_string(s->v[i]));
	return a;
}

static json_t *index_json(const void *p)
{
	const struct lock_index *x = p;
	json_t *o = json_pack("{s:s, s:s, s:s}", "uri", x->uri, "suite", x->suite, "date", x->date);

	json_object_set_new(o, "signedBy", strings_json(&x->signed_by));
	json_object_set_new(o, "sha256", sha256_json(&x->release));
	return o;
}

static json_t *deb_json(const void *p)
{
	const struct lock_deb *d = p;
	json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:b}", "name", d->name, "version",
		d->version, "arch", d->arch, "url", d->url, "source", d->source, "size",
		(json_int_t)d->size, "essential", (int)d->essential);

	json_object_set_new(o, "sha256", sha256_json(&d->sha256));
	json_object_set_new(o, "why", strings_json(&d->why));
	return o;
}

static json_t *npm_json(const void *p)
{
	const struct lock_npm *n = p;
	json_t *bin = json_object(),
	       *o = json_pack("{s:s, s:s, s:s, s:s, s:s}", "path", n->path, "name", n->name,
		       "version", n->version, "url", n->url, "integrity", n->integrity);

	for (size_t i = 0; i < n->bin.n; i++)
		json_object_set_new(bin, n->bin.v[i].name, json_string(n->bin.v[i].value));
	json_object_set_new(o, "bin", bin);
	return o;
}

static json_t *file_json(const void *p)
{
	const struct lock_file *f = p;
	json_t *o = json_pack("{s:s, s:I}", "path", f->path, "size", (json_int_t)f->size);

	json_object_set_new(o, "sha256", sha256_json(&f->sha256));
	return o;
}

static json_t *wheel_json(const void *p)
{
	const struct lock_wheel *w = p;
	json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:I}", "name", w->name, "version", w->version,
		"file", w->file, "url", w->url, "size", (json_int_t)w->size);

	json_object_set_new(o, "sha256", sha256_json(&w->sha256));
	json_object_set_new(o, "why", strings_json(&w->why));
	if (w->extras.n)
		json_object_set_new(o, "extras", strings_json(&w->extras));
	return o;
}

static json_t *source_json(const void *p)
{
	static const struct digest none;
	const struct lock_source *s = p;
	json_t *o = json_pack("{s:s, s:s*, s:s*}", "id", s->id, "url", s->url, "commit", s->commit);

	if (s->has_tree)
		json_object_set_new(o, "treeSha256", sha256_json(&s->tree_sha256));
	if (!digest_eq(&s->sha256, &none))
		json_object_set_new(o, "sha256", sha256_json(&s->sha256));
	if (s->size)
		json_object_set_new(o, "size", json_integer((json_int_t)s->size));
	return o;
}

static json_t *model_file_json(const void *p)
{
	const struct model_file *f = p;
	json_t *o = json_pack("{s:s, s:I}", "path", f->path, "size", (json_int_t)f->size);

	json_object_set_new(o, "sha256", sha256_json(&f->sha256));
	return o;
}

static json_t *layer_json(const struct lock_layer *l)
{
	json_t *o = json_pack("{s:I}", "size", (json_int_t)l->size);

	json_object_set_new(o, "digest", digest_json(&l->digest));
	json_object_set_new(o, "diffId", digest_json(&l->diff_id));
	return o;
}

/* In the image's own order. */
static json_t *base_json(const struct lock_base *b)
{
	json_t *o = json_pack("{s:s}", "ref", b->ref), *layers = json_array();

	for (size_t i = 0; i < b->nlayers; i++)
		json_array_append_new(layers, layer_json(&b->layers[i]));
	json_object_set_new(o, "manifest", digest_json(&b->manifest));
	json_object_set_new(o, "config", digest_json(&b->config));
	json_object_set_new(o, "layers", layers);
	return o;
}

/* The array of n structs as JSON, in the order that lock_check_order() wants. */
static json_t *sorted_json(const void *v, size_t n, size_t size,
	int (*compare)(const void *, const void *), json_t *(*element)(const void *))
{
	auto_free char *copy = mem_dup(v ? v : "", n * size);
	json_t *a = json_array();

	if (n)
		qsort(copy, n, size, compare);
	for (size_t i = 0; i < n; i++)
		json_array_append_new(a, element(copy + i * size));
	return a;
}

static json_t *model_json(const void *p)
{
	const struct lock_model *m = p;
	json_t *o = json_pack("{s:s}", "id", m->id);

	json_object_set_new(o, "setSha256", sha256_json(&m->set));
	json_object_set_new(o, "files",
		sorted_json(m->files, m->nfiles, sizeof(*m->files), lock_model_file_compare,
			model_file_json));
	return o;
}

/* {KEY: list} */
static json_t *wrapped(const char *key, json_t *own_list)
{
	json_t *o = json_object();

	json_object_set_new(o, key, own_list);
	return o;
}

#define SORTED(member, n, compare, element)                                                        \
	sorted_json(l->member, l->n, sizeof(*l->member), compare, element)

static json_t *python_json(const struct lock *l)
{
	json_t *o = wrapped("wheels", SORTED(wheels, nwheels, lock_wheel_compare, wheel_json));

	if (l->python)
		json_object_set_new(o, "version", json_string(l->python));
	return o;
}

/* What the manifest does not ask for is left out, so that a lock of the first version stays as it
 * is but for the envelope. */
static json_t *lock_json(const struct lock *l)
{
	static const struct digest none;
	json_t *apt = wrapped("indexes", SORTED(indexes, nindexes, lock_index_compare, index_json));
	json_t *o = json_pack("{s:s, s:s}", "schema", "svrun.lock/1", "platform", l->platform);

	json_object_set_new(apt, "packages", SORTED(debs, ndebs, lock_deb_compare, deb_json));
	json_object_set_new(o, "manifestDigest", digest_json(&l->manifest));
	if (!digest_eq(&l->envelope, &none))
		json_object_set_new(o, "envelope", digest_json(&l->envelope));
	json_object_set_new(o, "apt", apt);
	json_object_set_new(
		o, "node", wrapped("packages", SORTED(npms, nnpms, lock_npm_compare, npm_json)));
	json_object_set_new(o, "files", SORTED(files, nfiles, lock_file_compare, file_json));
	if (l->nwheels)
		json_object_set_new(o, "python", python_json(l));
	if (l->nsources)
		json_object_set_new(
			o, "sources", SORTED(sources, nsources, lock_source_compare, source_json));
	if (l->nmodels)
		json_object_set_new(
			o, "models", SORTED(models, nmodels, lock_model_compare, model_json));
	if (l->base.present)
		json_object_set_new(o, "base", base_json(&l->base));
	return o;
}

void lock_text(const struct lock *l, struct buf *b)
{
	auto_json json_t *o = lock_json(l);

	json_text(o, false, b);
}

static bool same_counts(const struct lock *a, const struct lock *b)
{
	return a->nindexes == b->nindexes && a->ndebs == b->ndebs && a->nnpms == b->nnpms &&
	       a->nwheels == b->nwheels && a->nsources == b->nsources && a->nmodels == b->nmodels &&
	       a->nfiles == b->nfiles && a->base.nlayers == b->base.nlayers;
}

static int save_path(const struct lock *l, const char *path, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(4 * (size_t)TEXT_MAX);
	struct lock sealed = *l, again;
	bool same;

	sealed.envelope = lock_envelope();
	lock_text(&sealed, &b);
	/* what a build would refuse must not become a lock */
	if (lock_parse(&again, path, b.data, b.len, e) < 0)
		return err_ctx(e, "the new lock");
	same = same_counts(&again, l);
	lock_fini(&again);
	if (!same)
		return err_set(e, ERR_CORRUPT, "%s: a text that is not UTF-8", path);
	return file_write(AT_FDCWD, path, b.data, b.len, 0644, e);
}

int lock_save(const struct lock *l, const char *dir, struct err *e)
{
	auto_free char *path = mem_printf("%s/lock.json", dir);

	return save_path(l, path, e);
}

int lock_save_of(const struct lock *l, const struct manifest *m, struct err *e)
{
	auto_free char *path = lock_path(m);

	return save_path(l, path, e);
}

/* Everything but the inputs that decides the bytes of a layer. */
struct digest lock_envelope(void)
{
	char text[128];
	int n = snprintf(text, sizeof(text), "svrun-pax/1 zstd-%s isa-l-%d.%d.%d",
		ZSTD_versionString(), ISAL_MAJOR_VERSION, ISAL_MINOR_VERSION, ISAL_PATCH_VERSION);

	return digest_of(text, (size_t)n);
}
