#include "builder/step-conflict.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "images/tree-attr.h"

static int by_path(const void *a, const void *b)
{
	const struct entry *const *x = a, *const *y = b;

	return strcmp((*x)->path, (*y)->path);
}

/* The first whose path is not before text. */
static size_t lower_bound(const struct entry *const *v, size_t n, const char *text)
{
	size_t from = 0, to = n;

	while (from < to) {
		size_t mid = from + (to - from) / 2;

		if (strcmp(v[mid]->path, text) < 0)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

static bool is_folder(const struct entry *en)
{
	return en->kind == ENTRY_PUT && en->a.type == NODE_DIR;
}

static bool same_folder(const struct entry *a, const struct entry *b)
{
	return is_folder(a) && is_folder(b) && a->a.mode == b->a.mode && a->a.uid == b->a.uid &&
	       a->a.gid == b->a.gid && attr_same_xattrs(&a->a, &b->a);
}

/* Of sorted others, one at the path of en, or below it where that matters; NULL: none. */
static const struct entry *meets(const struct entry *const *v, size_t n, const struct entry *en)
{
	auto_free char *below = mem_printf("%s%s", en->path, en->path[0] ? "/" : "");
	size_t at = lower_bound(v, n, en->path);

	/* One path may be there twice: opaque, and with new attributes. */
	for (size_t i = at; i < n && str_eq(v[i]->path, en->path); i++)
		if (!same_folder(v[i], en))
			return v[i];
	if (is_folder(en))
		return NULL;
	at = lower_bound(v, n, below);
	return at < n && str_starts(v[at]->path, below) ? v[at] : NULL;
}

static const struct entry **sorted(const struct entries *l)
{
	const struct entry **v = mem_array(l->n, sizeof(*v));

	for (size_t i = 0; i < l->n; i++)
		v[i] = &l->v[i];
	if (l->n)
		qsort(v, l->n, sizeof(*v), by_path);
	return v;
}

const char *step_conflict(const struct entries *a, const struct entries *b)
{
	auto_free const struct entry **x = sorted(a), **y = sorted(b);
	const struct entry *found = NULL;

	for (size_t i = 0; !found && i < b->n; i++)
		found = meets(x, a->n, y[i]) ? y[i] : NULL;
	for (size_t i = 0; !found && i < a->n; i++)
		found = is_folder(x[i]) ? NULL : meets(y, b->n, x[i]);
	return found ? found->path : NULL;
}
