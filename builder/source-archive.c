/* Archives as sources: tar in any of the usual compressions, and zip. */
#include <string.h>
#include <sys/stat.h>

#include <archive.h>

#include "base/str.h"
#include "base/sys.h"
#include "builder/archive.h"
#include "builder/gunzip.h"
#include "builder/source-type.h"
#include "builder/zip.h"

enum { MAGIC = 264, RATIO = 256, ZIP_LINK_MAX = TREE_PATH_MAX };
static const uint64_t free_bytes = 1ull << 30, most_bytes = 1ull << 40;

/* What an archive of so many bytes may unpack to. */
static uint64_t limit_of(uint64_t size)
{
	uint64_t n = size > most_bytes / RATIO ? most_bytes : size * RATIO;

	return n < most_bytes - free_bytes ? n + free_bytes : most_bytes;
}

/* ---- tar ---- */

static bool keep(const void *ctx, const char *path)
{
	return source_keeps(ctx, path);
}

/* What was unpacked from `first` on gets its place. */
static int place(const struct source_unpack *u, size_t first, struct err *e)
{
	char path[TREE_PATH_MAX + 1];

	for (size_t i = first; i < u->out->n; i++) {
		struct entry *en = &u->out->v[i];

		if (en->a.type == NODE_HARDLINK) {
			if (source_path(u->ms, en->a.target, path, e) < 0)
				return -1;
			en->a.target = arena_strdup(&u->out->arena, path);
		}
		if (source_path(u->ms, en->path, path, e) < 0)
			return -1;
		en->path = arena_strdup(&u->out->arena, path);
		en->a.uid = u->ms->uid;
		en->a.gid = u->ms->gid;
		en->a.mode &= en->a.type == NODE_DIR ? 01777 : 0777;
		en->a.nxattrs = 0;
	}
	return 0;
}

static int unpack_tar(
	const struct source_unpack *u, int fd, uint64_t size, int filter, struct err *e)
{
	struct archive_rules rules = {.name = u->ls->id,
		.strip = u->ms->strip,
		.keep = keep,
		.keep_ctx = u->ms,
		.same_twice = true,
		.max_bytes = limit_of(size),
		.max_file = limit_of(size),
		.max_entries = SOURCE_ENTRIES_MAX,
		.mtime = -1};
	auto_gunzip struct gunzip *z =
		filter == ARCHIVE_FILTER_GZIP ? gunzip_new(fd, u->ls->id, limit_of(size)) : NULL;
	auto_archive struct archive *a =
		z ? gunzip_tar(z, e) : archive_open_fd(fd, 0, size, filter, u->ls->id, e);
	size_t first = u->out->n;

	if (!a || archive_unpack(a, &rules, u->pool, u->out, e) < 0 ||
		(z && gunzip_finish(z, e) < 0))
		return -1;
	return place(u, first, e);
}

/* ---- zip ---- */

static int take(void *ctx, const void *data, size_t n, struct err *e)
{
	return content_add(ctx, data, n, e);
}

static int zip_link(const struct source_unpack *u, const struct zip *z, const struct zip_member *m,
	struct attr *a, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(ZIP_LINK_MAX);

	if (zip_read_all(z, m, &b, e) < 0)
		return -1;
	if (!b.len || strlen(b.data) != b.len)
		return err_set(e, ERR_CORRUPT, "a link to nothing");
	a->type = NODE_SYMLINK;
	a->mode = 0777;
	a->target = arena_strdup(&u->out->arena, b.data);
	return 0;
}

static int zip_file(const struct source_unpack *u, const struct zip *z, const struct zip_member *m,
	struct content *c, struct attr *a, struct err *e)
{
	content_begin(c);
	if (zip_read(z, m, take, c, e) < 0)
		return -1;
	a->type = NODE_FILE;
	a->mode = zip_is_executable(m) ? 0755 : 0644;
	return content_end(c, &u->out->arena, a, e);
}

static int zip_put(const struct source_unpack *u, const struct zip *z, const struct zip_member *m,
	struct content *c, struct err *e)
{
	char clean[TREE_PATH_MAX + 1];
	struct attr a = {.type = NODE_DIR, .mode = 0755, .mtime = u->epoch};
	uint32_t type = zip_type(m);
	const char *path;

	if (m->name[0] == '/')
		return err_set(e, ERR_CORRUPT, "an absolute name");
	if (tree_clean_path(m->name, clean, e) < 0)
		return -1;
	path = source_strip(u->ms, clean);
	if (!path || !source_keeps(u->ms, path))
		return 0;
	if (type && type != S_IFREG && type != S_IFDIR && type != S_IFLNK)
		return err_set(e, ERR_CORRUPT, "neither a file, a folder nor a link");
	if (type == S_IFLNK && zip_link(u, z, m, &a, e) < 0)
		return -1;
	if (type != S_IFLNK && !str_ends(m->name, "/") && zip_file(u, z, m, c, &a, e) < 0)
		return -1;
	return source_put(u, path, &a, e) ? 0 : -1;
}

static int unpack_zip(const struct source_unpack *u, int fd, uint64_t size, struct err *e)
{
	struct zip_limits limits = {
		.members = SOURCE_ENTRIES_MAX, .file = limit_of(size), .all = limit_of(size)};
	auto_content struct content c = {0};
	auto_zip struct zip z = {0};

	if (zip_open(&z, fd, u->ls->id, &limits, e) < 0)
		return -1;
	content_init(&c, u->pool);
	for (size_t i = 0; i < z.n; i++) {
		char text[STR_SHOWN];

		if (zip_put(u, &z, &z.v[i], &c, e) < 0)
			return err_ctx(
				e, "%s: member '%s'", u->ls->id, str_shown(z.v[i].name, text));
	}
	return 0;
}

/* ---- which it is ---- */

static const struct {
	const char *magic;
	size_t n, at;
	int filter;
} formats[] = {
	{"\x1f\x8b", 2, 0, ARCHIVE_FILTER_GZIP},
	{"BZh", 3, 0, ARCHIVE_FILTER_BZIP2},
	{"\xfd"
	 "7zXZ",
		6, 0, ARCHIVE_FILTER_XZ},
	{"\x28\xb5\x2f\xfd", 4, 0, ARCHIVE_FILTER_ZSTD},
	{"ustar", 5, 257, ARCHIVE_FILTER_NONE},
};

int source_archive(const struct source_unpack *u, int fd, struct err *e)
{
	char head[MAGIC] = {0};
	struct stat st;

	if (sys_fstat(fd, &st) < 0 || sys_pread(fd, head, sizeof(head), 0) < 0)
		return err_sys(e, "%s: read", u->ls->id);
	if (memcmp(head, "PK\3\4", 4) == 0 || memcmp(head, "PK\5\6", 4) == 0)
		return unpack_zip(u, fd, (uint64_t)st.st_size, e);
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (memcmp(head + formats[i].at, formats[i].magic, formats[i].n) == 0)
			return unpack_tar(u, fd, (uint64_t)st.st_size, formats[i].filter, e);
	err_set(e, ERR_UNSUPPORTED, "%s: neither a tar nor a zip", u->ls->id);
	return err_hint(e, "tar, alone or in gzip, bzip2, xz or zstd, and zip work; for one file, "
			   "\"type\": \"file\"");
}
