/* Which members of a source are wanted, and where they go. */
#include <string.h>

#include "base/str.h"
#include "builder/source-type.h"
#include "images/glob.h"

/* The path, or a folder that it is in. */
static bool matches(const struct strings *globs, const char *path)
{
	auto_free char *part = mem_strdup(path);

	for (;;) {
		char *slash = strrchr(part, '/');

		for (size_t i = 0; i < globs->n; i++)
			if (glob_matches(globs->v[i], part))
				return true;
		if (!slash)
			return false;
		*slash = '\0';
	}
}

bool source_keeps(const struct manifest_source *ms, const char *path)
{
	return (!ms->include.n || matches(&ms->include, path)) &&
	       !(ms->exclude.n && matches(&ms->exclude, path));
}

const char *source_strip(const struct manifest_source *ms, const char *name)
{
	for (unsigned i = 0; i < ms->strip; i++) {
		name = strchr(name, '/');
		if (!name)
			return NULL;
		name++;
	}
	return name;
}

int source_path(const struct manifest_source *ms, const char *path, char out[TREE_PATH_MAX + 1],
	struct err *e)
{
	char text[STR_SHOWN];
	int n = snprintf(out, TREE_PATH_MAX + 1, "%s%s%s", ms->dest + 1, *path ? "/" : "", path);

	if (n > TREE_PATH_MAX)
		return err_set(e, ERR_CORRUPT, "'%s': its path is longer than the limit of %d",
			str_shown(path, text), TREE_PATH_MAX);
	return tree_check_path(out, e) < 0 ? err_ctx(e, "'%s'", str_shown(path, text)) : 0;
}

struct entry *source_put(
	const struct source_unpack *u, const char *path, const struct attr *a, struct err *e)
{
	char full[TREE_PATH_MAX + 1];
	struct entry *en;

	if (source_path(u->ms, path, full, e) < 0)
		return NULL;
	en = entries_add(u->out, full);
	en->a = *a;
	en->a.uid = u->ms->uid;
	en->a.gid = u->ms->gid;
	en->a.mode &= a->type == NODE_DIR ? 01777 : 0777;
	return en;
}

const char *source_local(const struct manifest_source *ms)
{
	return ms->url && str_starts(ms->url, "file:") ? ms->url + strlen("file:") : NULL;
}
