#include "builder/wheel.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/str.h"
#include "base/sys.h"
#include "builder/pep440.h"
#include "builder/wheel-meta.h"
#include "images/tree.h"

enum {
	MEMBERS_MAX = 200000,
	RATIO_MAX = 200, /* unpacked to packed, of a whole wheel; real ones stay below 20 */
	WHEEL_FILE_MAX = 64 << 10,
	FLAG_UTF8 = 1 << 11,
};
#define ALWAYS (64ull << 20)   /* bytes that any wheel may have */
#define ALL_MAX (64ull << 30)  /* of all files */
#define FILE_MAX (16ull << 30) /* of one */

/* ---- members ---- */

static int refuse(const struct wheel *w, const char *member, const char *why, struct err *e)
{
	char text[STR_SHOWN];

	return err_set(e, ERR_CORRUPT, "SV171: %s: member '%s' %s", w->zip.name,
		str_shown(member, text), why);
}

static bool is_folder(const char *name)
{
	return name[0] && name[strlen(name) - 1] == '/';
}

/* Names are taken as they are, or not at all: what would be cleaned is not what RECORD names. */
static int check_name(const struct wheel *w, const struct zip_member *m, struct err *e)
{
	char clean[TREE_PATH_MAX + 1], text[STR_SHOWN];
	size_t n = strlen(m->name);

	if (m->name[0] == '/')
		return refuse(w, m->name, "has an absolute name", e);
	if (!str_utf8(m->name, n))
		return refuse(w, m->name, "has a name that is not UTF-8", e);
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)m->name[i];

		if (c < ' ' || c == 0x7f || c == '\\')
			return refuse(w, m->name, "has a control character or a backslash", e);
		if (c >= 0x80 && !(m->flags & FLAG_UTF8))
			return refuse(w, m->name, "has letters of an unknown code page", e);
	}
	if (tree_clean_path(m->name, clean, e) < 0)
		return err_ctx(e, "SV171: %s: member '%s'", w->zip.name, str_shown(m->name, text));
	n -= is_folder(m->name);
	if (strlen(clean) != n || strncmp(clean, m->name, n) != 0)
		return refuse(w, m->name, "has a name that is not clean", e);
	return 0;
}

static int check_type(const struct wheel *w, const struct zip_member *m, struct err *e)
{
	uint32_t type = zip_type(m);

	if (type == S_IFLNK)
		return refuse(w, m->name, "is a link", e);
	if (is_folder(m->name)) {
		if (m->size)
			return refuse(w, m->name, "is a folder, but has data", e);
		return type == 0 || type == S_IFDIR
			       ? 0
			       : refuse(w, m->name, "is a folder by its name only", e);
	}
	return type == 0 || type == S_IFREG ? 0 : refuse(w, m->name, "is no regular file", e);
}

static int by_text(const void *a, const void *b)
{
	return strcasecmp(*(const char *const *)a, *(const char *const *)b);
}

/* Also two that differ by case only: one of them is gone where file systems do not tell. */
static int check_duplicates(const struct wheel *w, struct err *e)
{
	auto_free const char **v = mem_array(w->zip.n + 1, sizeof(char *));

	for (size_t i = 0; i < w->zip.n; i++)
		v[i] = w->zip.v[i].name;
	qsort(v, w->zip.n, sizeof(char *), by_text);
	for (size_t i = 1; i < w->zip.n; i++)
		if (strcasecmp(v[i - 1], v[i]) == 0)
			return refuse(w, v[i],
				str_eq(v[i - 1], v[i]) ? "is there twice"
						       : "is there in another case, too",
				e);
	return 0;
}

static int check_members(const struct wheel *w, struct err *e)
{
	for (size_t i = 0; i < w->zip.n; i++)
		if (check_name(w, &w->zip.v[i], e) < 0 || check_type(w, &w->zip.v[i], e) < 0)
			return -1;
	return check_duplicates(w, e);
}

/* ---- folders ---- */

static int check_folder(struct wheel *w, const char *name, size_t n, const char *tail,
	const char **out, struct err *e)
{
	const char *project, *version, *folder = arena_strndup(&w->arena, name, n);
	char text[STR_SHOWN];

	if (*out && str_eq(*out, folder))
		return 0;
	if (*out)
		return err_set(e, ERR_CORRUPT, "SV174: %s has two %s folders, '%s' too",
			w->zip.name, tail, str_shown(folder, text));
	if (!metadata_folder(&w->arena, folder, n - strlen(tail), &project, &version) ||
		!str_eq(project, w->name.name) || !pep440_same(version, w->name.version))
		return err_set(e, ERR_CORRUPT,
			"SV174: %s has the folder '%s', which is not the file's name and version",
			w->zip.name, str_shown(folder, text));
	*out = folder;
	return 0;
}

static int find_folders(struct wheel *w, struct err *e)
{
	for (size_t i = 0; i < w->zip.n; i++) {
		const char *name = w->zip.v[i].name;
		auto_free char *first = mem_printf("%.*s", (int)strcspn(name, "/"), name);

		if (str_ends(first, ".dist-info") &&
			check_folder(w, name, strlen(first), ".dist-info", &w->info, e) < 0)
			return -1;
		if (str_ends(first, ".data") &&
			check_folder(w, name, strlen(first), ".data", &w->data, e) < 0)
			return -1;
	}
	if (!w->info)
		return err_set(e, ERR_CORRUPT, "SV174: %s has no .dist-info folder", w->zip.name);
	return 0;
}

/* A member of the .dist-info folder: appended to b. 1, 0 when there is none, -1. */
static int read_member(const struct wheel *w, const char *name, struct buf *b, struct err *e)
{
	auto_free char *path = mem_printf("%s/%s", w->info, name);

	for (size_t i = 0; i < w->zip.n; i++)
		if (str_eq(w->zip.v[i].name, path))
			return zip_read_all(&w->zip, &w->zip.v[i], b, e) < 0 ? -1 : 1;
	return 0;
}

/* ---- what it says of itself ---- */

static int need_info(const struct wheel *w, const char *name, struct buf *b, struct err *e)
{
	int rc = read_member(w, name, b, e);

	if (rc == 0)
		return err_set(
			e, ERR_CORRUPT, "SV174: %s has no %s/%s", w->zip.name, w->info, name);
	return rc < 0 ? -1 : 0;
}

static int read_info(struct wheel *w, const char *python, struct err *e)
{
	auto_buf struct buf wheel = BUF_INIT(WHEEL_FILE_MAX), meta = BUF_INIT(METADATA_MAX),
			    record = BUF_INIT(RECORD_MAX), points = BUF_INIT(ENTRY_POINTS_MAX);
	int rc;

	if (need_info(w, "WHEEL", &wheel, e) < 0 ||
		wheel_version_check(wheel.data, wheel.len, e) < 0 ||
		need_info(w, "METADATA", &meta, e) < 0 ||
		metadata_check(meta.data, meta.len, &w->name, &w->arena, &w->project, e) < 0 ||
		need_info(w, "RECORD", &record, e) < 0 ||
		record_parse(&w->record, "RECORD", record.data, record.len, e) < 0)
		return -1;
	rc = read_member(w, "entry_points.txt", &points, e);
	if (rc <= 0)
		return rc;
	return wheel_scripts_parse(&w->scripts, &w->arena, points.data, points.len, python, e);
}

/* RECORD itself and its signatures are what it cannot have. */
static bool is_unrecorded(const struct wheel *w, const char *name)
{
	static const char *const files[] = {"RECORD", "RECORD.jws", "RECORD.p7s", NULL};
	size_t n = strlen(w->info);

	if (strncmp(name, w->info, n) != 0 || name[n] != '/')
		return false;
	for (size_t i = 0; files[i]; i++)
		if (str_eq(name + n + 1, files[i]))
			return true;
	return false;
}

/* Both ways: no file without its line, no line without its file. */
static int check_record(struct wheel *w, struct err *e)
{
	char text[STR_SHOWN];

	for (size_t i = 0; i < w->zip.n; i++) {
		const char *name = w->zip.v[i].name;
		struct record_row *row = record_find(&w->record, name);
		enum hash_kind kind;

		if (row)
			row->seen = true;
		if (is_folder(name) || is_unrecorded(w, name))
			continue;
		if (!row)
			return err_set(
				e, ERR_CORRUPT, "SV173: RECORD lacks '%s'", str_shown(name, text));
		if (record_hash_kind(row, &kind, e) < 0)
			return -1;
	}
	for (size_t i = 0; i < w->record.n; i++)
		if (!w->record.v[i].seen)
			return err_set(e, ERR_CORRUPT, "SV173: RECORD has '%s', which is not there",
				str_shown(w->record.v[i].path, text));
	return 0;
}

/* ---- opening ---- */

static int open_wheel(struct wheel *w, int fd, const char *file, const char *python, struct err *e)
{
	struct zip_limits limits = {.members = MEMBERS_MAX, .file = FILE_MAX};
	struct stat st;

	if (wheel_name_parse(&w->name, &w->arena, file, e) < 0)
		return -1;
	if (sys_fstat(fd, &st) < 0)
		return err_sys(e, "stat %s", file);
	limits.all = ALWAYS + RATIO_MAX * (uint64_t)st.st_size;
	if (limits.all > ALL_MAX)
		limits.all = ALL_MAX;
	if (zip_open(&w->zip, fd, arena_strdup(&w->arena, file), &limits, e) < 0)
		return -1;
	if (check_members(w, e) < 0 || find_folders(w, e) < 0)
		return -1;
	if (read_info(w, python, e) < 0 || check_record(w, e) < 0)
		return err_ctx(e, "%s", file);
	return 0;
}

int wheel_open(struct wheel *w, int fd, const char *file, const char *python, struct err *e)
{
	*w = (struct wheel){0};
	if (open_wheel(w, fd, file, python, e) == 0)
		return 0;
	wheel_close(w);
	return -1;
}

void wheel_close(struct wheel *w)
{
	wheel_scripts_fini(&w->scripts);
	record_fini(&w->record);
	zip_close(&w->zip);
	arena_fini(&w->arena);
	*w = (struct wheel){0};
}
