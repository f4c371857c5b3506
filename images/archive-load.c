#include "images/archive-load.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "images/adopt.h"
#include "images/progress.h"

/* ---- lists ---- */

void archive_images_fini(struct archive_images *l)
{
	for (size_t i = 0; i < l->n; i++)
		json_decref(l->v[i].names);
	free(l->v);
	*l = (struct archive_images){0};
}

static void add_name(struct archive_image *a, const char *name)
{
	char canonical[STORE_NAME];
	const json_t *old;
	size_t i;

	if (store_name_parse(name, canonical, NULL) < 0) {
		auto_free char *text = mem_strdup(name);

		for (char *c = text; *c; c++)
			if ((unsigned char)*c < ' ' || *c == 0x7f)
				*c = '?';
		warn("'%.200s' in the archive is not an image name", text);
		return;
	}
	json_array_foreach (a->names, i, old)
		if (str_eq(json_string_value(old), canonical))
			return;
	json_array_append_new(a->names, json_string(canonical));
}

int archive_images_add(struct archive_images *l, const struct digest *manifest, uint64_t size,
	const char *name, struct err *e)
{
	struct archive_image *a = NULL;

	for (size_t i = 0; i < l->n; i++)
		if (digest_eq(&l->v[i].manifest, manifest))
			a = &l->v[i];
	if (!a) {
		mem_grow(&l->v, &l->cap, l->n);
		a = &l->v[l->n++];
		*a = (struct archive_image){
			.manifest = *manifest, .size = size, .names = json_array()};
	}
	if (!name)
		return 0;
	if (l->names++ == ARCHIVE_NAMES_MAX)
		return err_set(
			e, ERR_CORRUPT, "more than the limit of %d names", ARCHIVE_NAMES_MAX);
	add_name(a, name);
	return 0;
}

/* ---- loading ---- */

static int find_images(struct intake *in, const struct archive_load *how,
	struct archive_images *out, struct err *e)
{
	struct intake_file f;
	int rc = intake_find(in, "index.json", &f, e);

	if (rc > 0)
		return oci_archive_images(in, how->platform, out, e);
	if (rc == 0)
		rc = intake_find(in, "manifest.json", &f, e);
	if (rc > 0)
		return docker_archive_images(in, out, e);
	if (rc < 0)
		return -1;
	err_set(e, ERR_CORRUPT,
		"%s: neither an OCI layout nor an archive of docker save: it has no "
		"index.json and no manifest.json",
		in->name);
	return err_hint(e, "svrun image import makes an image of a root file system's tar");
}

/* Every image gets a name, or none does. */
static int settle_names(const struct intake *in, const struct archive_load *how,
	struct archive_images *l, struct err *e)
{
	size_t named = 0;

	if (l->n == 0)
		return err_set(e, ERR_CORRUPT, "%s: no image in it", in->name);
	if (how->rename) {
		if (l->n > 1)
			return err_set(e, ERR_USAGE, "--name: %s holds %zu images", in->name, l->n);
		json_array_clear(l->v[0].names);
		json_array_append_new(l->v[0].names, json_string(how->rename));
		return 0;
	}
	for (size_t i = 0; i < l->n; i++)
		named += json_array_size(l->v[i].names) > 0;
	if (named > 0)
		return 0;
	err_set(e, ERR_USAGE, "%s: its image has no name", in->name);
	return err_hint(e, "give it one: --name NAME[:TAG]");
}

static int adopt_one(struct store *s, struct pool *p, const struct archive_image *a,
	const struct archive_load *how, struct err *e)
{
	const char *name = json_string_value(json_array_get(a->names, 0));
	struct image im;
	int rc;

	if (image_load(&im, s, &a->manifest, e) < 0)
		return -1;
	rc = image_adopt(&im, s, p, how->progress, e);
	image_fini(&im);
	return rc < 0 ? err_ctx(e, "image %s", name) : 0;
}

static int set_names(struct store *s, const struct archive_image *a, struct err *e)
{
	const json_t *name;
	size_t i;

	json_array_foreach (a->names, i, name)
		if (store_name_set(s, json_string_value(name), &a->manifest, a->size, NULL, e) < 0)
			return -1;
	return 0;
}

static int load(struct intake *in, struct store *s, struct pool *p, const struct archive_load *how,
	struct archive_images *out, struct err *e)
{
	size_t n = 0;

	if (find_images(in, how, out, e) < 0 || settle_names(in, how, out, e) < 0)
		return -1;
	for (size_t i = 0; i < out->n; i++) {
		if (json_array_size(out->v[i].names) == 0) { /* nobody could ever ask for it */
			progress_note(how->progress, "an image without a name was left out");
			json_decref(out->v[i].names);
			continue;
		}
		out->v[n++] = out->v[i];
	}
	out->n = n;
	for (size_t i = 0; i < out->n; i++)
		if (adopt_one(s, p, &out->v[i], how, e) < 0)
			return -1;
	for (size_t i = 0; i < out->n; i++)
		if (set_names(s, &out->v[i], e) < 0)
			return -1;
	return 0;
}

int archive_load(struct store *s, const char *path, int fd, const char *name,
	const struct archive_load *how, struct archive_images *out, struct err *e)
{
	struct pool *p = pool_open(s->fd, true, e); /* keeps garbage collection away, too */
	struct intake in;
	int rc;

	*out = (struct archive_images){0};
	if (!p)
		return -1;
	progress_begin(how->progress, "read", 0);
	rc = path ? intake_folder(&in, s, path, how->progress, e)
		  : intake_stream(&in, s, fd, name, how->progress, e);
	progress_end(how->progress);
	if (rc == 0)
		rc = load(&in, s, p, how, out, e);
	if (rc == 0)
		rc = pool_settle(p, e);
	pool_close(p);
	intake_fini(&in); /* with the names set: what has one stays */
	if (rc < 0)
		archive_images_fini(out);
	return rc;
}
