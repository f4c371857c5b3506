#include "builder/vuln.h"

#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "builder/archive.h"
#include "builder/unpacked.h"
#include "builder/vuln-debian.h"
#include "builder/vuln-osv.h"

#define FOLDER "cache/vuln"

enum {
	BLOCK = 256 << 10,
	MEMBERS_MAX = 4 << 20,
	MEMBER_HEAD = 512,     /* bytes that a member counts beside its own */
	RATIO_MAX = 100,       /* unpacked to packed: records come to some 10, in a tar to 40 */
	RATIO_FREE = 64 << 20, /* bytes that any archive may have */
	FORMAT = 1,            /* of what is made out of the data: part of the key */
};

/* ---- which files there are ---- */

struct data_file {
	const char *path; /* below the folder */
	struct digest digest;
};

struct data {
	struct arena arena;
	const char *dir;
	int fd;
	struct data_file *v;
	size_t n, cap;
};

struct packing {
	const char *end;
	bool zip;
	int filter; /* exactly this one: bidding would take a filter in a filter in ... */
};

/* By its name; NULL: it is no archive. */
static const struct packing *packing_of(const char *name)
{
	static const struct packing all[] = {{".zip", true, 0},
		{".tar", false, ARCHIVE_FILTER_NONE}, {".tar.gz", false, ARCHIVE_FILTER_GZIP},
		{".tgz", false, ARCHIVE_FILTER_GZIP}, {".tar.xz", false, ARCHIVE_FILTER_XZ},
		{".tar.zst", false, ARCHIVE_FILTER_ZSTD},
		{".tar.bz2", false, ARCHIVE_FILTER_BZIP2}};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (str_ends(name, all[i].end))
			return &all[i];
	return NULL;
}

static int list(struct data *x, const char *path, unsigned depth, struct err *e);

static int take_entry(struct data *x, const char *path, int dirfd, const char *name, unsigned depth,
	struct err *e)
{
	struct stat st;
	const char *full = *path ? arena_printf(&x->arena, "%s/%s", path, name)
				 : arena_strdup(&x->arena, name);

	if (sys_fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, "%s/%s", x->dir, full);
	if (S_ISDIR(st.st_mode))
		return list(x, full, depth + 1, e);
	if (!S_ISREG(st.st_mode) || !(str_ends(name, ".json") || packing_of(name)))
		return 0;
	if (x->n >= VULN_FILES_MAX)
		return err_set(e, ERR_USAGE, "%s: more than the limit of %d files", x->dir,
			VULN_FILES_MAX);
	mem_grow(&x->v, &x->cap, x->n);
	x->v[x->n++] = (struct data_file){.path = full};
	return 0;
}

static int list(struct data *x, const char *path, unsigned depth, struct err *e)
{
	int fd =
		sys_open_beneath(x->fd, *path ? path : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *d;
	int rc = 0;

	if (!dir) {
		err_sys(e, "open %s/%s", x->dir, path);
		sys_close_ref(&fd);
		return -1;
	}
	if (depth > VULN_DEPTH_MAX)
		rc = err_set(e, ERR_USAGE, "%s/%s: more than %d folders deep", x->dir, path,
			VULN_DEPTH_MAX);
	while (rc == 0 && (d = readdir(dir)))
		if (d->d_name[0] != '.')
			rc = take_entry(x, path, fd, d->d_name, depth, e);
	closedir(dir);
	return rc;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct data_file *)a)->path, ((const struct data_file *)b)->path);
}

static int open_file(const struct data *x, const struct data_file *f, struct err *e)
{
	int fd = sys_open_beneath(x->fd, f->path, O_RDONLY | O_NOFOLLOW, 0);

	return fd < 0 ? err_sys(e, "open %s/%s", x->dir, f->path) : fd;
}

static int hash_fd(int fd, struct digest *d, struct err *e)
{
	auto_free unsigned char *block = mem_alloc(BLOCK);
	struct hash h;
	off_t at = 0;
	ssize_t n;

	hash_init(&h, HASH_SHA256);
	while ((n = sys_pread(fd, block, BLOCK, at)) > 0) {
		hash_add(&h, block, (size_t)n);
		at += n;
	}
	if (n < 0)
		return err_sys(e, "read");
	*d = hash_digest(&h);
	return 0;
}

/* Names and bytes, in order. */
static int hash_all(struct data *x, struct digest *out, struct err *e)
{
	char hex[DIGEST_HEX + 1], line[DIGEST_HEX + 32];
	struct hash h;

	hash_init(&h, HASH_SHA256);
	hash_add(&h, line, (size_t)snprintf(line, sizeof(line), "svrun.vuln %d\n", FORMAT));
	for (size_t i = 0; i < x->n; i++) {
		auto_fd int fd = open_file(x, &x->v[i], e);

		if (fd < 0 || hash_fd(fd, &x->v[i].digest, e) < 0)
			return err_ctx(e, "%s/%s", x->dir, x->v[i].path);
		hash_add(&h, digest_hex(&x->v[i].digest, hex), DIGEST_HEX);
		hash_add(&h, x->v[i].path, strlen(x->v[i].path) + 1);
	}
	*out = hash_digest(&h);
	return 0;
}

/* ---- reading ---- */

static int add_text(struct vuln_index_maker *m, const char *text, size_t n, struct err *e)
{
	auto_json json_t *doc = n <= OSV_MAX ? json_parse(text, n, NULL) : NULL;

	return doc && osv_is_record(doc) ? osv_add(m, doc, e) : tracker_add(m, text, n, e);
}

static int read_json(struct vuln_index_maker *m, const char *name, int fd, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(VULN_DOCUMENT_MAX);

	if (file_read_fd(fd, name, &b, e) < 0 || add_text(m, b.data ? b.data : "", b.len, e) < 0)
		return err_ctx(e, "neither a record of OSV nor Debian's tracker");
	return 0;
}

static int archive_fault(struct archive *a, struct err *e)
{
	char shown[STR_SHOWN];
	const char *text = archive_error_string(a);

	return err_set(e, ERR_CORRUPT, "%s", str_shown(text ? text : "not an archive", shown));
}

/* What an archive may still unpack to: of its own, and of the folder's. */
struct budget {
	uint64_t own, *all;
};

static int spend(struct budget *g, uint64_t n, struct err *e)
{
	if (n > g->own)
		return err_set(e, ERR_CORRUPT, "the archive unpacks to more than %d times its size",
			RATIO_MAX);
	if (n > *g->all)
		return err_set(e, ERR_CORRUPT, "the folder's data are more than %d GiB, unpacked",
			(int)(VULN_DATA_MAX >> 30));
	g->own -= n;
	*g->all -= n;
	return 0;
}

/* All of a member, which is one record. */
static int read_member(
	struct vuln_index_maker *m, struct archive *a, struct budget *g, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(OSV_MAX);
	auto_free char *block = mem_alloc(BLOCK);
	auto_json json_t *doc = NULL;
	la_ssize_t n;

	while ((n = archive_read_data(a, block, BLOCK)) > 0) {
		if (spend(g, (uint64_t)n, e) < 0)
			return -1;
		if (buf_add(&b, block, (size_t)n, e) < 0)
			return err_ctx(e, "a record of more than %d MiB", OSV_MAX >> 20);
	}
	if (n < 0)
		return archive_fault(a, e);
	doc = json_parse(b.data ? b.data : "", b.len, e);
	if (!doc)
		return -1;
	return osv_is_record(doc) ? osv_add(m, doc, e)
				  : err_set(e, ERR_CORRUPT, "not a record of OSV");
}

/* Skipping unpacks, too. */
static int skip_member(struct archive_entry *entry, struct budget *g, struct err *e)
{
	la_int64_t size = archive_entry_size_is_set(entry) ? archive_entry_size(entry) : 0;

	return spend(g, size > 0 ? (uint64_t)size : 0, e);
}

static int read_members(
	struct vuln_index_maker *m, struct archive *a, struct budget *g, struct err *e)
{
	struct archive_entry *entry;
	char shown[STR_SHOWN];
	size_t n = 0;
	int rc;

	while ((rc = archive_read_next_header(a, &entry)) == ARCHIVE_OK || rc == ARCHIVE_WARN) {
		const char *name = archive_entry_pathname(entry);

		if (++n > MEMBERS_MAX)
			return err_set(
				e, ERR_CORRUPT, "more than the limit of %d members", MEMBERS_MAX);
		bool wanted = name && str_ends(name, ".json") &&
			      archive_entry_filetype(entry) == AE_IFREG;

		str_shown(name ? name : "", shown);
		if (spend(g, MEMBER_HEAD, e) < 0 ||
			(wanted ? read_member(m, a, g, e) : skip_member(entry, g, e)) < 0)
			return err_ctx(e, "%s", shown);
	}
	return rc == ARCHIVE_EOF ? 0 : archive_fault(a, e);
}

static struct archive *open_zip(int fd, struct err *e)
{
	struct archive *a = archive_read_new();

	if (a && archive_read_support_format_zip(a) >= ARCHIVE_WARN &&
		archive_read_open_fd(a, fd, BLOCK) == ARCHIVE_OK)
		return a;
	if (a)
		archive_fault(a, e);
	archive_read_free(a);
	return NULL;
}

int vuln_read(struct vuln_index_maker *m, const char *name, int fd, uint64_t *left, struct err *e)
{
	const struct packing *k = packing_of(name);
	auto_archive struct archive *a = NULL;
	struct budget g = {.all = left};
	struct stat st;

	if (sys_fstat(fd, &st) < 0)
		return err_sys(e, "stat");
	g.own = RATIO_FREE + RATIO_MAX * (uint64_t)st.st_size;
	if (!k)
		return spend(&g, (uint64_t)st.st_size, e) < 0 ? -1 : read_json(m, name, fd, e);
	a = k->zip ? open_zip(fd, e)
		   : archive_open_fd(fd, 0, (uint64_t)st.st_size, k->filter, "archive", e);
	return a ? read_members(m, a, &g, e) : -1;
}

static int read_file(const struct data *x, const struct data_file *f, struct vuln_index_maker *m,
	uint64_t *left, struct err *e)
{
	auto_fd int fd = open_file(x, f, e);
	struct digest d;

	if (fd < 0 || vuln_read(m, f->path, fd, left, e) < 0 || hash_fd(fd, &d, e) < 0)
		return -1;
	if (digest_eq(&d, &f->digest))
		return 0;
	err_set(e, ERR_CORRUPT, "it changed while it was read");
	return err_hint(e, "run it again; who fetches the data should rename it into place");
}

static int make_index(const struct data *x, struct buf *out, struct err *e)
{
	struct vuln_index_maker m;
	uint64_t left = VULN_DATA_MAX;

	vuln_index_begin(&m);
	for (size_t i = 0; i < x->n; i++)
		if (read_file(x, &x->v[i], &m, &left, e) < 0) {
			vuln_index_abort(&m);
			return err_ctx(e, "%s/%s", x->dir, x->v[i].path);
		}
	return vuln_index_end(&m, out, e);
}

/* ---- opening ---- */

static int find_index(struct vuln *v, struct store *s, struct err *e)
{
	int rc = cache_file_get(s, FOLDER, &v->digest, &v->index, e);

	v->cached = rc > 0 && vuln_index_check(&v->index);
	if (rc > 0 && !v->cached)
		v->index.len = 0; /* torn by a crash: it is made again */
	return rc < 0 ? -1 : v->cached;
}

static int open_data(struct vuln *v, struct store *s, struct data *x, struct err *e)
{
	int rc = list(x, "", 0, e);

	if (rc < 0)
		return -1;
	if (x->n == 0) {
		err_set(e, ERR_USAGE, "%s: no data about vulnerabilities in it", x->dir);
		return err_hint(e, "put dumps of OSV records (*.zip, *.json) or the document of "
				   "Debian's security tracker there");
	}
	qsort(x->v, x->n, sizeof(*x->v), by_path);
	if (hash_all(x, &v->digest, e) < 0)
		return -1;
	rc = find_index(v, s, e);
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	return make_index(x, &v->index, e) < 0
		       ? -1
		       : cache_file_put(s, FOLDER, &v->digest, v->index.data, v->index.len, e);
}

int vuln_open(struct vuln *v, struct store *s, const char *dir, struct err *e)
{
	struct data x = {.dir = dir};
	int rc;

	*v = (struct vuln){.index = BUF_INIT(VULN_INDEX_MAX)};
	x.fd = sys_open(dir, O_RDONLY | O_DIRECTORY, 0);
	if (x.fd < 0) {
		err_sys(e, "open %s", dir);
		if (e)
			e->kind = ERR_USAGE; /* callers take NOT_FOUND for a missing image */
		return err_hint(e, "a folder with data about vulnerabilities: docs/scan.md");
	}
	rc = open_data(v, s, &x, e);
	sys_close_ref(&x.fd);
	free(x.v);
	arena_fini(&x.arena);
	if (rc < 0)
		vuln_close(v);
	return rc;
}

void vuln_close(struct vuln *v)
{
	buf_fini(&v->index);
	*v = (struct vuln){0};
}
