#include "builder/npm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "builder/gunzip.h"

enum {
	PACKAGE_BYTES = 1 << 30,  /* file data of one package */
	PACKAGE_ENTRIES = 100000, /* members of one tarball */
	TAR_OVERHEAD = 256 << 20, /* headers and padding of that many members */
	SCRIPT_BYTES = 16 << 20,  /* of a command whose first line is mended */
	FIRST_LINE_BYTES = 2048,
};

/* ---- .gitignore ---- */

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_file(const struct entry *en, const char *name)
{
	return en->a.type == NODE_FILE && str_eq(base_of(en->path), name);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* npm installs .gitignore as .npmignore, unless the package has one: then it leaves it out. */
static void rename_ignores(struct entries *out, size_t first)
{
	auto_free const char **have = mem_array(out->n - first, sizeof(char *));
	size_t nhave = 0, kept = first;

	for (size_t i = first; i < out->n; i++)
		if (is_file(&out->v[i], ".npmignore"))
			have[nhave++] = out->v[i].path;
	qsort(have, nhave, sizeof(char *), by_text);
	for (size_t i = first; i < out->n; i++) {
		struct entry en = out->v[i];

		if (is_file(&en, ".gitignore")) {
			en.path = arena_printf(&out->arena, "%.*s.npmignore",
				(int)(base_of(en.path) - en.path), en.path);
			if (bsearch(&en.path, have, nhave, sizeof(char *), by_text))
				continue;
		}
		out->v[kept++] = en;
	}
	out->n = kept;
}

/* ---- commands ---- */

/* A package's script with the line ends of Windows would be "node\r: not found": npm mends the
 * first line of commands. */
static int mend_script(
	struct entry *en, struct pool *p, struct arena *arena, unsigned char *data, struct err *e)
{
	size_t size = 0, first = en->a.size < FIRST_LINE_BYTES ? en->a.size : FIRST_LINE_BYTES;
	unsigned char *end;

	if (en->a.nchunks == 0 || en->a.size > SCRIPT_BYTES)
		return 0;
	if (pool_read(p, &en->a.chunks[0], data, e) < 0)
		return -1;
	end = memchr(data, '\n', first);
	if (memcmp(data, "#!", first < 2 ? first : 2) != 0 || !end || end - data < 4 ||
		end[-1] != '\r')
		return 0;
	for (uint32_t i = 0; i < en->a.nchunks; size += en->a.chunks[i++].length)
		if (pool_read(p, &en->a.chunks[i], data + size, e) < 0)
			return -1;
	memmove(end - 1, end, size - (size_t)(end - data));
	return content_from_mem(data, size - 1, p, arena, &en->a, e);
}

static int mend_scripts(const struct lock_npm *n, const char *place, struct pool *p,
	struct entries *out, size_t first, struct err *e)
{
	auto_free unsigned char *data = n->bin.n ? mem_alloc(SCRIPT_BYTES + CHUNK_SIZE) : NULL;
	char file[TREE_PATH_MAX + 1];

	if (n->bin.n > NPM_BINS_MAX)
		return err_set(e, ERR_CORRUPT, "%zu commands, more than the limit of %d", n->bin.n,
			NPM_BINS_MAX);
	for (size_t k = 0; k < n->bin.n; k++) {
		auto_free char *path = NULL;

		if (npm_check_bin(&n->bin.v[k], e) < 0 ||
			tree_clean_path(n->bin.v[k].value, file, e) < 0)
			return -1;
		path = mem_printf("%s/%s", place, file);
		for (size_t i = first; i < out->n; i++)
			if (out->v[i].a.type == NODE_FILE && str_eq(out->v[i].path, path) &&
				mend_script(&out->v[i], p, &out->arena, data, e) < 0)
				return err_ctx(e, "%s", path);
	}
	return 0;
}

/* ---- the tarball ---- */

int npm_unpack(const struct lock_npm *n, const char *prefix, int fd, struct pool *p,
	struct entries *out, struct err *e)
{
	auto_free char *name = mem_printf("%s %s", n->name, n->version);
	auto_free char *place = npm_place(prefix, n->path);
	auto_gunzip struct gunzip *z = gunzip_new(fd, name, (uint64_t)PACKAGE_BYTES + TAR_OVERHEAD);
	auto_archive struct archive *a = NULL;
	struct archive_rules rules = {.name = name,
		.prefix = place,
		.strip = 1,
		.plain_modes = true,
		.no_links = true,
		.same_twice = true,
		.max_bytes = PACKAGE_BYTES,
		.max_file = PACKAGE_BYTES,
		.max_entries = PACKAGE_ENTRIES,
		.mtime = -1};
	size_t first = out->n;

	if (npm_check_path(n->path, e) < 0)
		return -1;
	a = gunzip_tar(z, e);
	if (!a || archive_unpack(a, &rules, p, out, e) < 0 || gunzip_finish(z, e) < 0)
		return -1;
	rename_ignores(out, first);
	return mend_scripts(n, place, p, out, first, e);
}
