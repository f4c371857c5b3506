#include "builder/python.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "builder/content.h"
#include "builder/pep440.h"
#include "builder/python-scheme.h"
#include "builder/wheel.h"

enum {
	SCRIPT_MAX = 16 << 20, /* of a script whose first line is mended */
	HEAD_BYTES = 8,        /* "#!python" */
};
/* Zip's own time is of no zone, and programs that pack installed files again cannot take one before
 * this. */
static const int64_t unpack_time = 315532800; /* 1980-01-01 */

struct unpack {
	struct wheel *w;
	const struct lock_wheel *lock;
	const struct python_scheme *scheme;
	struct pool *pool;
	struct entries *out;
	size_t first; /* of out: entries before are not ours */
	struct record installed;
	struct content sink;

	/* of the file that is being read */
	struct hash hash; /* as the archive has it */
	unsigned char head[HEAD_BYTES];
	size_t nhead;
	bool is_script, mended;
	struct buf text; /* of a script that is mended */
};

/* ---- paths ---- */

/* Where a member goes, absolute; SV176 when its data folder is none that the format has. */
static char *destination(const struct unpack *u, const char *name, struct err *e)
{
	const struct wheel *w = u->w;
	const struct python_scheme *s = u->scheme;
	auto_free char *headers = mem_printf("%s/%s", s->headers, w->project);
	const struct {
		const char *name, *folder;
	} kinds[] = {{"purelib/", s->lib}, {"platlib/", s->lib}, {"scripts/", s->scripts},
		{"headers/", headers}, {"data/", s->data}};
	size_t n = w->data ? strlen(w->data) : 0;
	char text[STR_SHOWN];

	if (!w->data || strncmp(name, w->data, n) != 0 || name[n] != '/')
		return mem_printf("%s/%s", s->lib, name);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (str_starts(name + n + 1, kinds[i].name))
			return mem_printf(
				"%s/%s", kinds[i].folder, name + n + 1 + strlen(kinds[i].name));
	err_set(e, ERR_CORRUPT,
		"SV176: %s: member '%s' is in none of purelib, platlib, scripts, headers, data",
		w->zip.name, str_shown(name, text));
	return NULL;
}

static bool is_in_scripts(const struct wheel *w, const char *name)
{
	size_t n = w->data ? strlen(w->data) : 0;

	return n && strncmp(name, w->data, n) == 0 && str_starts(name + n, "/scripts/");
}

/* What RECORD calls a path: relative to the libraries. */
static char *record_path(const struct unpack *u, const char *path)
{
	const char *lib = u->scheme->lib;
	auto_buf struct buf up = BUF_INIT(TREE_PATH_MAX + 1);
	size_t same = 0;

	for (size_t i = 0;; i++) {
		bool end_a = !lib[i] || lib[i] == '/', end_b = !path[i] || path[i] == '/';

		if (end_a && end_b)
			same = i;
		if (lib[i] != path[i] || !lib[i])
			break;
	}
	buf_put(&up, "", 0);
	for (const char *c = lib + same; *c; c++)
		if (*c == '/')
			buf_put(&up, "../", 3);
	return mem_printf("%s%s", up.data, path + same + (path[same] == '/'));
}

static struct entry *add_entry(struct unpack *u, const char *path, uint32_t mode, struct err *e)
{
	struct entry *en;
	char text[STR_SHOWN];

	if (python_scheme_owns(u->scheme, path)) {
		err_set(e, ERR_CORRUPT, "SV177: %s brings '%s', which is the interpreter's",
			u->w->zip.name, str_shown(path, text));
		return NULL;
	}
	if (tree_check_path(path + 1, e) < 0) {
		err_ctx(e, "SV171: %s: '%s'", u->w->zip.name, str_shown(path, text));
		return NULL;
	}
	en = entries_add(u->out, path + 1);
	en->a = (struct attr){.type = NODE_FILE, .mode = mode, .mtime = unpack_time};
	return en;
}

/* ---- files of the archive ---- */

static int take(void *ctx, const void *data, size_t n, struct err *e)
{
	struct unpack *u = ctx;
	const unsigned char *p = data;

	hash_add(&u->hash, data, n);
	while (u->is_script && u->nhead < HEAD_BYTES && n > 0) {
		u->head[u->nhead++] = *p++;
		n--;
		if (u->nhead < HEAD_BYTES)
			continue;
		u->mended = memcmp(u->head, "#!python", HEAD_BYTES) == 0;
		if ((u->mended ? buf_add(&u->text, u->head, HEAD_BYTES, e)
			       : content_add(&u->sink, u->head, HEAD_BYTES, e)) < 0)
			return -1;
	}
	return u->mended ? buf_add(&u->text, p, n, e) : content_add(&u->sink, p, n, e);
}

static int mend(struct unpack *u, struct attr *a, struct record_row *row, struct err *e)
{
	auto_free char *first = wheel_shebang(u->scheme->executable);
	auto_buf struct buf text = BUF_INIT(SCRIPT_MAX + 2 * TREE_PATH_MAX);
	const char *nl = memchr(u->text.data, '\n', u->text.len);
	size_t used = nl ? (size_t)(nl - u->text.data) + 1 : u->text.len;
	struct digest d;

	buf_put(&text, first, strlen(first));
	buf_put(&text, u->text.data + used, u->text.len - used);
	d = digest_of(text.data, text.len);
	row->hash = record_hash(&u->installed.arena, "sha256", d.b, DIGEST_SIZE);
	row->size = arena_printf(&u->installed.arena, "%zu", text.len);
	return content_from_mem(text.data, text.len, u->pool, &u->out->arena, a, e);
}

static int unpack_member(struct unpack *u, const struct zip_member *m, struct err *e)
{
	const struct record_row *row = record_find(&u->w->record, m->name);
	auto_free char *path = destination(u, m->name, e);
	auto_free char *recorded = path ? record_path(u, path) : NULL;
	struct record_row *installed;
	struct entry *en;
	enum hash_kind kind;

	if (!path || record_hash_kind(row, &kind, e) < 0)
		return -1;
	u->is_script = is_in_scripts(u->w, m->name);
	en = add_entry(u, path, u->is_script || zip_is_executable(m) ? 0755 : 0644, e);
	if (!en)
		return -1;
	u->mended = false;
	u->nhead = 0;
	u->text.len = 0;
	content_begin(&u->sink);
	hash_init(&u->hash, kind);
	if (zip_read(&u->w->zip, m, take, u, e) < 0)
		return -1;
	if (!u->mended && u->nhead < HEAD_BYTES && content_add(&u->sink, u->head, u->nhead, e) < 0)
		return -1;
	if (record_check(row, &u->hash, m->size, e) < 0)
		return -1;
	installed = record_add(&u->installed, recorded, row->hash, row->size);
	return u->mended ? mend(u, &en->a, installed, e)
			 : content_end(&u->sink, &u->out->arena, &en->a, e);
}

/* What the installer writes itself, whatever the archive has by that name. */
static bool is_ours(const struct wheel *w, const char *name)
{
	static const char *const files[] = {"RECORD", "RECORD.jws", "RECORD.p7s", "INSTALLER",
		"REQUESTED", "direct_url.json", NULL};
	size_t n = strlen(w->info);

	if (strncmp(name, w->info, n) != 0 || name[n] != '/')
		return false;
	for (size_t i = 0; files[i]; i++)
		if (strcasecmp(name + n + 1, files[i]) == 0)
			return true;
	return false;
}

static int unpack_members(struct unpack *u, struct err *e)
{
	const struct wheel *w = u->w;

	for (size_t i = 0; i < w->zip.n; i++) {
		const struct zip_member *m = &w->zip.v[i];
		const char *base = strrchr(m->name, '/');

		if (m->name[strlen(m->name) - 1] == '/' || is_ours(w, m->name) ||
			(is_in_scripts(w, m->name) && wheel_scripts_make(&w->scripts, base + 1)))
			continue;
		if (unpack_member(u, m, e) < 0)
			return -1;
	}
	return 0;
}

/* ---- files that are written here ---- */

static int write_file(struct unpack *u, const char *path, uint32_t mode, const char *text, size_t n,
	bool recorded, struct err *e)
{
	auto_free char *name = record_path(u, path);
	struct entry *en = add_entry(u, path, mode, e);
	struct digest d = digest_of(text, n);
	char size[24];

	if (!en)
		return -1;
	snprintf(size, sizeof(size), "%zu", n);
	if (recorded)
		record_add(&u->installed, name,
			record_hash(&u->installed.arena, "sha256", d.b, DIGEST_SIZE), size);
	return content_from_mem(text, n, u->pool, &u->out->arena, &en->a, e);
}

static int write_info(struct unpack *u, const char *name, const char *text, size_t n, bool recorded,
	struct err *e)
{
	auto_free char *path = mem_printf("%s/%s/%s", u->scheme->lib, u->w->info, name);

	return write_file(u, path, 0644, text, n, recorded, e);
}

static int write_scripts(struct unpack *u, struct err *e)
{
	for (size_t i = 0; i < u->w->scripts.n; i++) {
		const struct wheel_script *s = &u->w->scripts.v[i];
		auto_free char *path = mem_printf("%s/%s", u->scheme->scripts, s->name);
		auto_free char *text = wheel_script_text(s, u->scheme->executable);

		if (write_file(u, path, 0755, text, strlen(text), true, e) < 0)
			return -1;
	}
	return 0;
}

/* Of a wheel beside the manifest, whose folder is not the same everywhere: its path from there.
 * Source: PEP 610; the text is what pip's json.dumps(sort_keys=True) would make of it. */
static int write_direct_url(struct unpack *u, struct err *e)
{
	const char *path = str_starts(u->lock->url, "file:") ? u->lock->url + 5 : NULL;
	auto_buf struct buf url = BUF_INIT(4 * TREE_PATH_MAX);
	auto_free char *text = NULL;
	char hex[DIGEST_HEX + 1];

	if (!path)
		return 0;
	for (buf_put(&url, "", 0); *path; path++)
		if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/",
			    *path))
			buf_put(&url, path, 1);
		else
			buf_printf(&url, "%%%02X", (unsigned char)*path);
	digest_hex(&u->lock->sha256, hex);
	text = mem_printf("{\"archive_info\": {\"hash\": \"sha256=%s\", \"hashes\": "
			  "{\"sha256\": \"%s\"}}, \"url\": \"file:///%s\"}",
		hex, hex, url.data);
	return write_info(u, "direct_url.json", text, strlen(text), true, e);
}

static bool is_requested(const struct lock_wheel *w)
{
	for (size_t i = 0; i < w->why.n; i++)
		if (str_starts(w->why.v[i], "manifest:"))
			return true;
	return false;
}

static int write_record(struct unpack *u, struct err *e)
{
	auto_free char *path = mem_printf("%s/%s/RECORD", u->scheme->lib, u->w->info);
	auto_free char *name = record_path(u, path);
	auto_buf struct buf text = BUF_INIT(2u * RECORD_MAX);

	record_add(&u->installed, name, "", "");
	record_sort(&u->installed);
	record_text(&u->installed, &text);
	return write_file(u, path, 0644, text.data, text.len, false, e);
}

/* ---- all of it ---- */

static int by_path(const void *a, const void *b)
{
	return strcasecmp(*(const char *const *)a, *(const char *const *)b);
}

/* Two members may have come to one place: "x.data/purelib/a" and "a". */
static int check_places(const struct unpack *u, struct err *e)
{
	size_t n = u->out->n - u->first;
	auto_free const char **v = mem_array(n + 1, sizeof(char *));
	char text[STR_SHOWN];

	for (size_t i = 0; i < n; i++)
		v[i] = u->out->v[u->first + i].path;
	qsort(v, n, sizeof(char *), by_path);
	for (size_t i = 1; i < n; i++)
		if (strcasecmp(v[i - 1], v[i]) == 0)
			return err_set(e, ERR_CORRUPT, "SV171: %s brings '/%s' twice",
				u->w->zip.name, str_shown(v[i], text));
	return 0;
}

static int unpack_wheel(struct unpack *u, struct err *e)
{
	if (unpack_members(u, e) < 0 || write_scripts(u, e) < 0 ||
		write_info(u, "INSTALLER", "svrun\n", 6, true, e) < 0 ||
		(is_requested(u->lock) && write_info(u, "REQUESTED", "", 0, true, e) < 0) ||
		write_direct_url(u, e) < 0 || write_record(u, e) < 0)
		return -1;
	return check_places(u, e);
}

int wheel_unpack(const struct lock_wheel *l, const struct manifest_python *p, const char *python,
	int fd, struct pool *pool, struct entries *out, struct err *e)
{
	struct arena arena = {0};
	auto_wheel struct wheel w = {0};
	struct python_scheme scheme;
	struct unpack u = {.w = &w,
		.lock = l,
		.scheme = &scheme,
		.pool = pool,
		.out = out,
		.first = out->n,
		.text = BUF_INIT(SCRIPT_MAX)};
	int rc = -1;

	content_init(&u.sink, pool);
	if (python_scheme(&scheme, &arena, p, python, e) == 0 &&
		wheel_open(&w, fd, l->file, scheme.python, e) == 0) {
		if (!str_eq(w.name.name, l->name) || !pep440_same(w.name.version, l->version))
			err_set(e, ERR_CORRUPT, "SV174: %s is %s %s, the lock has %s %s", l->file,
				w.name.name, w.name.version, l->name, l->version);
		else
			rc = unpack_wheel(&u, e);
	}
	content_fini(&u.sink);
	buf_fini(&u.text);
	record_fini(&u.installed);
	arena_fini(&arena);
	return rc;
}
