#include "builder/writes.h"

#include <string.h>

#include "base/str.h"
#include "images/glob.h"

static bool matches(const char *glob, const char *path)
{
	size_t n = strlen(glob);

	if (glob_matches(glob, path))
		return true;
	/* "/x/" "**" is /x, too. */
	if (n > 3 && str_eq(glob + n - 3, "/**")) {
		auto_free char *folder = mem_printf("%.*s", (int)(n - 3), glob);

		return glob_matches(folder, path);
	}
	return false;
}

/* Is path a folder on the way to something that the glob names? As many components of the glob as
 * the path has, or up to the first that reaches across. */
static bool leads_to(const char *glob, const char *path)
{
	size_t depth = 0, n = 0;
	bool across = false;

	for (const char *p = path; *p; p++)
		depth += *p == '/';
	while (glob[n] && depth > 0 && !across) {
		size_t k = 1 + strcspn(glob + n + 1, "/");

		across = memmem(glob + n, k, "**", 2) != NULL;
		n += k;
		depth--;
	}
	if (!glob[n])
		return false;

	auto_free char *head = mem_printf("%.*s", (int)n, glob);

	return glob_matches(head, path);
}

static bool is_allowed(
	const struct strings *globs, const struct entry *en, const char *path, struct tree *below)
{
	bool new_folder =
		en->kind == ENTRY_PUT && en->a.type == NODE_DIR && !tree_find(below, en->path);

	for (size_t i = 0; i < globs->n; i++)
		if (matches(globs->v[i], path) || (new_folder && leads_to(globs->v[i], path)))
			return true;
	return false;
}

struct strings writes_outside(
	const struct strings *globs, const struct entries *l, struct tree *below, struct arena *a)
{
	struct strings out = {0};
	size_t cap = 0;
	const char **v = NULL;

	for (size_t i = 0; i < l->n; i++) {
		const struct entry *en = &l->v[i];
		const char *path = arena_printf(a, "/%s", en->path);

		if (is_allowed(globs, en, path, below) || (out.n && str_eq(v[out.n - 1], path)))
			continue;
		mem_grow(&v, &cap, out.n);
		v[out.n++] = path;
	}
	out.v = out.n ? arena_dup(a, v, out.n * sizeof(*v)) : NULL;
	free(v);
	return out;
}
