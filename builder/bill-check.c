/* Is a bill that of an image? One that came out of a shared cache, or that somebody put into the
 * store, may say anything; what can be compared is. */
#include <string.h>

#include "base/str.h"
#include "builder/bill.h"
#include "images/image.h"

static int misfit(struct err *e, const char *what)
{
	return err_set(e, ERR_CORRUPT, "the bill is not that of the image: %s", what);
}

/* All but the layer with the index, which no bill knows. */
static int check_layers(const struct bill *b, const struct image *im, struct err *e)
{
	size_t n = im->nlayers - (im->has_index ? 1 : 0);

	if (b->nlayers != n)
		return misfit(e, "another number of layers");
	for (size_t i = 0; i < n; i++)
		if (!digest_eq(&b->layers[i].diff_id, &im->layers[i].diff_id))
			return misfit(e, "other layers");
	return 0;
}

/* Both are in the order of a walk. */
static int check_files(const struct bill *b, struct tree *t, struct err *e)
{
	char path[TREE_PATH_MAX + 1], shown[STR_SHOWN];
	size_t i = 0;

	for (struct node *n = tree_root(t); n; n = tree_next(n)) {
		if (!n->parent)
			continue;
		node_path(n, path);
		if (i >= b->nfiles || !str_eq(b->files[i].path, path)) {
			err_set(e, ERR_CORRUPT,
				"the bill is not that of the image: it lacks /%s, or has another "
				"there",
				str_shown(path, shown));
			return -1;
		}
		i++;
	}
	if (i < b->nfiles)
		return err_set(e, ERR_CORRUPT,
			"the bill is not that of the image: it has /%s, which the image lacks",
			str_shown(b->files[i].path, shown));
	return 0;
}

/* The digests that provenance tells are of the documents that it tells. */
static int check_documents(const struct bill *b, struct err *e)
{
	struct digest document = digest_of(b->document, strlen(b->document));

	if (!digest_eq(&document, &b->manifest_doc))
		return misfit(e, "the manifest in it has another digest");
	return 0;
}

int bill_check(const struct bill *b, struct store *s, const struct digest *manifest, struct err *e)
{
	struct image im;
	struct tree *t = NULL;
	int rc = -1;

	if (check_documents(b, e) < 0 || image_load(&im, s, manifest, e) < 0)
		return -1;
	if (check_layers(b, &im, e) == 0)
		t = image_tree(&im, s, NULL, NULL, e);
	if (t)
		rc = check_files(b, t, e);
	tree_free(t);
	image_fini(&im);
	return rc;
}
