/* The names of a built image, and of the folder with its logs. */
#include <string.h>

#include "base/str.h"
#include "builder/build.h"
#include "images/image.h"

void build_names(const struct manifest *m, char **versioned, char **plain)
{
	bool first = !m->matrix || (m->nentries && str_eq(m->matrix, m->entries[0].id));

	*versioned = mem_printf("%s:%s%s%s%s%s", m->name, m->version, m->matrix ? "-" : "",
		m->matrix ? m->matrix : "", m->mode ? "-" : "", m->mode ? m->mode : "");
	for (char *c = *versioned + strlen(m->name) + 1; *c; c++) /* a tag may hold neither */
		if (*c == '+' || *c == '~')
			*c = '_';
	*plain = first && !m->mode &&
				 str_eq(m->platform ? m->platform : manifest_platform(),
					 manifest_platform())
			 ? mem_strdup(m->name)
			 : NULL;
}

char *build_log_folder(const struct manifest *m)
{
	return mem_printf("logs/%s%s%s%s%s", m->name, m->matrix || m->mode ? ":" : "",
		m->matrix ? m->matrix : "", m->mode ? "-" : "", m->mode ? m->mode : "");
}

static bool is_of_base(const struct lock *l, const struct digest *layer)
{
	for (size_t i = 0; l->base.present && i < l->base.nlayers; i++)
		if (digest_eq(&l->base.layers[i].digest, layer))
			return true;
	return false;
}

/* Where layers that are not here can be had: those of a base that was pulled, or all of an image
 * that came out of a shared cache. *lost: one of them cannot be had. */
static char *source_of(struct store *s, const struct lock *l, const struct image *im, bool *lost)
{
	bool base = false, own = !store_has(s, &im->config_digest);

	for (size_t i = 0; i < im->nlayers; i++)
		if (!store_has(s, &im->layers[i].digest)) {
			bool inherited = is_of_base(l, &im->layers[i].digest);

			base = base || inherited;
			own = own || !inherited;
		}
	char *source = own    ? store_source(s, &im->manifest_digest)
		       : base ? store_source(s, &l->base.manifest)
			      : NULL;

	*lost = (own || base) && !source;
	return source;
}

static bool same_source(const char *a, const char *b)
{
	return a && b ? str_eq(a, b) : a == b;
}

/* A name that is right already is left alone: writing it again waits for the disk. */
static int set_name(struct store *s, const char *name, const struct digest *manifest, uint64_t size,
	const char *source, struct err *e)
{
	char plain[STORE_NAME];
	struct store_name *v;
	size_t n;
	bool there = false;

	if (store_name_parse(name, plain, e) < 0 || store_names(s, &v, &n, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		there = there || (str_eq(v[i].name, plain) && digest_eq(&v[i].manifest, manifest) &&
					 v[i].size == size && same_source(v[i].source, source));
	store_names_free(v, n);
	return there ? 0 : store_name_set(s, name, manifest, size, source, e);
}

int build_name(const struct manifest *m, const struct lock *l, struct store *s,
	const struct digest *manifest, bool unnamed, struct err *e)
{
	auto_free char *versioned = NULL, *plain = NULL, *source = NULL;
	struct image im;
	uint64_t size;
	bool lost;

	if (image_load(&im, s, manifest, e) < 0)
		return -1;
	source = source_of(s, l, &im, &lost);
	size = im.manifest_size;
	image_fini(&im);
	if (lost || unnamed)
		return !lost;
	build_names(m, &versioned, &plain);
	if (set_name(s, versioned, manifest, size, source, e) < 0 ||
		(plain && set_name(s, plain, manifest, size, source, e) < 0))
		return -1;
	return 1;
}

int build_set_names(const struct manifest *m, const struct lock *l, struct store *s,
	const struct digest *manifest, struct err *e)
{
	int rc = store_has(s, manifest) ? build_name(m, l, s, manifest, false, e) : 0;

	if (rc != 0)
		return rc < 0 ? -1 : 0;
	err_set(e, ERR_NOT_FOUND, "the image was removed before it got its names");
	return err_hint(e, "svrun image gc ran meanwhile: build it again");
}
