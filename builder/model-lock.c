/* The files of models in the lock. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "builder/model.h"

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct model_file *)a)->path, ((const struct model_file *)b)->path);
}

static int by_id(const void *a, const void *b)
{
	return strcmp(((const struct lock_model *)a)->id, ((const struct lock_model *)b)->id);
}

static struct digest set_of(const struct model_file *v, size_t n)
{
	auto_free struct models_file *files = mem_array(n, sizeof(*files));

	for (size_t i = 0; i < n; i++)
		files[i] = (struct models_file){.path = v[i].path, .sha256 = v[i].sha256};
	return models_set(files, n);
}

static int lock_one(
	struct lock *l, const struct model_job *j, const struct manifest_model *m, struct err *e)
{
	struct model_listing list = {.a = &l->arena};
	struct lock_model *x = &l->models[l->nmodels];

	if (model_list(&list, j, m, e) < 0)
		return -1;
	qsort(list.v, list.n, sizeof(*list.v), by_path);
	for (size_t i = 1; i < list.n; i++)
		if (str_eq(list.v[i - 1].path, list.v[i].path))
			return err_set(e, ERR_CORRUPT, "'%.300s' is listed twice", list.v[i].path);
	*x = (struct lock_model){.id = arena_strdup(&l->arena, m->id),
		.set = set_of(list.v, list.n),
		.files = list.v,
		.nfiles = list.n};
	l->nmodels++;
	return 0;
}

int model_lock(struct lock *l, const struct model_job *j, struct err *e)
{
	l->nmodels = 0;
	l->models = arena_alloc(&l->arena, j->m->nmodels * sizeof(*l->models));
	for (size_t i = 0; i < j->m->nmodels; i++) {
		const struct manifest_model *m = &j->m->models[i];

		if (m->nfiles || m->delivery == DELIVERY_VOLUME)
			continue;
		if (lock_one(l, j, m, e) < 0)
			return err_ctx(e, "/models/%zu (%s)", i, m->id);
	}
	if (l->nmodels)
		qsort(l->models, l->nmodels, sizeof(*l->models), by_id);
	return 0;
}
