/* Any text as the annotation of an image's models: what is taken names places within the image, and
 * never more than the limits. */
#include <assert.h>
#include <string.h>

#include "base/str.h"
#include "images/models.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_entry(const struct models_entry *x)
{
	assert(x->target[0] == '/' && tree_check_path(x->target + 1, NULL) == 0);
	assert(x->nfiles <= MODEL_FILES_MAX);
	for (size_t i = 0; i < x->nfiles; i++)
		assert(*x->files[i].path && tree_check_path(x->files[i].path, NULL) == 0);
	for (size_t i = 0; i < x->nlinks; i++)
		assert(tree_check_path(x->links[i].path, NULL) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_json json_t *text = json_stringn((const char *)data, size), *doc = NULL;
	struct models m;
	struct err e = {0};

	if (!text)
		return 0;
	doc = json_pack("{s:{s:O}}", "annotations", MODELS_ANNOTATION, text);
	if (models_read(&m, doc, &e) < 0) {
		assert(e.kind != ERR_NONE);
		return 0;
	}
	assert(m.n <= MODELS_MAX);
	for (size_t i = 0; i < m.n; i++)
		check_entry(&m.v[i]);
	models_fini(&m);
	return 0;
}
