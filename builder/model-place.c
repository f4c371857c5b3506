#include "builder/model-place.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "builder/archive.h"
#include "images/url.h"

enum { DOCUMENT_MAX = 8 << 20, COPY = 1 << 20 };

/* ---- folders that somebody else may write to ---- */

/* The folder at path below dirfd, made where it is missing; no link is followed. */
static int open_folder(int dirfd, const char *path, struct err *e)
{
	auto_free char *copy = mem_strdup(path);
	char *rest = copy, *part;
	auto_fd int fd = sys_openat(dirfd, ".", O_RDONLY | O_DIRECTORY, 0);

	while (fd >= 0 && (part = strsep(&rest, "/"))) {
		int next;

		if (!*part)
			continue;
		if (sys_mkdirat(fd, part, 0755) < 0 && errno != EEXIST)
			return err_sys(e, "create %s", path);
		next = sys_openat(fd, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
		sys_close_ref(&fd);
		fd = next;
	}
	return fd < 0 ? err_sys(e, "open %s", path) : steal_fd(&fd);
}

/* The folder of a file below dirfd, and its name in it. */
static int open_parent(int dirfd, const char *path, const char **name, struct err *e)
{
	const char *slash = strrchr(path, '/');
	auto_free char *dir = mem_printf("%.*s", slash ? (int)(slash - path) : 0, path);

	*name = slash ? slash + 1 : path;
	return open_folder(dirfd, dir, e);
}

/* ---- one file ---- */

static int copy_to(int dirfd, const char *path, int from, struct err *e)
{
	auto_free unsigned char *buf = mem_alloc(COPY);
	const char *name;
	auto_fd int dir = open_parent(dirfd, path, &name, e);
	auto_fd int fd = -1;
	char tmp[64];
	off_t at = 0;
	ssize_t n;

	fd = dir < 0 ? -1 : file_tmp(dir, tmp, 0444, e);
	if (fd < 0)
		return -1;
	while ((n = sys_pread(from, buf, COPY, at)) > 0) {
		if (sys_write_all(fd, buf, (size_t)n) < 0)
			return err_sys(e, "write %s", path);
		at += n;
	}
	if (n < 0)
		return err_sys(e, "read %s", path);
	return file_publish(dir, fd, tmp, name, true, e);
}

/* The same inode, which nobody who can reach it may write to. */
static int link_to(struct store *s, int dirfd, const char *path, const char *source, struct err *e)
{
	const char *name;
	auto_fd int dir = open_parent(dirfd, path, &name, e);

	if (dir < 0)
		return -1;
	if (fchmodat(s->fd, source, 0444, 0) < 0 || sys_linkat(s->fd, source, dir, name, 0) < 0)
		return err_sys(e, "link %s to %s/%s", path, s->path, source);
	return 0;
}

static struct input input_of(const struct models_file *f)
{
	struct input in = {.name = f->path,
		.kind = HASH_SHA256,
		.url = f->url,
		.size = f->size,
		.max = f->size};

	memcpy(in.digest, f->sha256.b, DIGEST_SIZE);
	return in;
}

/* ---- artifacts ---- */

struct bundle {
	const struct models_entry *x;
	int dirfd;
	bool *done; /* by x->files */
};

static const struct models_file *find_file(const struct models_entry *x, const char *path)
{
	for (size_t i = 0; i < x->nfiles; i++)
		if (str_eq(x->files[i].path, path))
			return &x->files[i];
	return NULL;
}

static int write_member(int dirfd, const struct models_file *f, struct archive *a, struct err *e)
{
	auto_free unsigned char *buf = mem_alloc((size_t)f->size + 1);
	const char *name;
	auto_fd int dir = -1;
	struct digest d;
	la_ssize_t n = archive_read_data(a, buf, (size_t)f->size + 1);

	if (n < 0 || (uint64_t)n != f->size)
		return err_set(e, ERR_CORRUPT, "'%.300s' has another size than the manifest says",
			f->path);
	d = digest_of(buf, (size_t)n);
	if (digest_check(&f->sha256, &d, e, "%s", f->path) < 0)
		return -1;
	dir = open_parent(dirfd, f->path, &name, e);
	return dir < 0 ? -1 : file_write(dir, name, buf, (size_t)n, 0444, e);
}

static int read_bundle(struct bundle *b, struct archive *a, struct err *e)
{
	struct archive_entry *en;
	char text[STR_SHOWN];
	int rc;

	while ((rc = archive_read_next_header(a, &en)) == ARCHIVE_OK || rc == ARCHIVE_WARN) {
		const char *name = archive_entry_pathname(en);
		const struct models_file *f = name ? find_file(b->x, name) : NULL;

		if (!f || archive_entry_filetype(en) != AE_IFREG || f->size > 64 << 20)
			return err_set(e, ERR_CORRUPT,
				"the bundle has '%s', which is no file of it",
				str_shown(name ? name : "", text));
		if (write_member(b->dirfd, f, a, e) < 0)
			return -1;
		b->done[f - b->x->files] = true;
	}
	return rc == ARCHIVE_EOF ? 0 : err_set(e, ERR_CORRUPT, "%s", archive_error_string(a));
}

static int unpack_bundle(
	struct store *s, const struct digest *blob, struct bundle *b, struct err *e)
{
	uint64_t size;
	auto_fd int fd = store_blob_open(s, blob, &size, e);
	auto_archive struct archive *a = NULL;

	if (fd < 0)
		return -1;
	a = archive_open_fd(fd, 0, size, ARCHIVE_FILTER_NONE, "bundle", e);
	return a ? read_bundle(b, a, e) : -1;
}

static int unpack_bundles(struct store *s, const json_t *manifest, struct bundle *b, struct err *e)
{
	const json_t *o;
	size_t i;

	json_array_foreach (json_object_get(manifest, "layers"), i, o) {
		struct descriptor d;

		if (descriptor_read(&d, o, e) < 0)
			return err_ctx(e, "/layers/%zu", i);
		if (d.media_type && str_eq(d.media_type, MODEL_BUNDLE_TYPE) &&
			unpack_bundle(s, &d.digest, b, e) < 0)
			return err_ctx(e, "/layers/%zu", i);
	}
	return 0;
}

static int check_blob_size(struct store *s, const struct models_file *f, struct err *e)
{
	uint64_t size;
	auto_fd int fd = store_blob_open(s, &f->sha256, &size, e);

	if (fd < 0)
		return -1;
	return size == f->size ? 0
			       : err_set(e, ERR_CORRUPT,
					 "'%.300s': expected %" PRIu64 " bytes, found %" PRIu64,
					 f->path, f->size, size);
}

/* A big file is a blob, whose name is its digest. */
static int link_blobs(struct store *s, const struct bundle *b, struct err *e)
{
	for (size_t i = 0; i < b->x->nfiles; i++) {
		const struct models_file *f = &b->x->files[i];
		char source[32 + DIGEST_HEX], hex[DIGEST_HEX + 1];

		if (b->done[i])
			continue;
		if (!store_has(s, &f->sha256))
			return err_set(
				e, ERR_CORRUPT, "the artifact does not have '%.300s'", f->path);
		if (check_blob_size(s, f, e) < 0)
			return -1;
		snprintf(source, sizeof(source), "blobs/sha256/%s", digest_hex(&f->sha256, hex));
		if (link_to(s, b->dirfd, f->path, source, e) < 0)
			return -1;
	}
	return 0;
}

static int place_artifact(
	const struct model_place *j, const struct models_entry *x, int dirfd, struct err *e)
{
	auto_buf struct buf b = {0};
	auto_free bool *done = mem_array(x->nfiles + 1, sizeof(*done));
	struct bundle bundle = {x, dirfd, done};
	auto_json json_t *doc = NULL;

	if (store_blob_read(j->s, &x->artifact, DOCUMENT_MAX, &b, e) < 0)
		return err_hint(e, "svrun image pull fetches it with its image");
	doc = json_parse(b.data ? b.data : "", b.len, e);
	if (!doc || unpack_bundles(j->s, doc, &bundle, e) < 0)
		return -1;
	return link_blobs(j->s, &bundle, e);
}

/* ---- at run time ---- */

/* An image names the address: people must see where their machine and their secret go. Plain http
 * would let an image ask the hosts of an internal network, and anybody read along. */
static int check_address(
	const struct model_place *j, const struct models_entry *x, const char *url, struct err *e)
{
	char where[512];

	if (!url)
		return err_set(e, ERR_CORRUPT, "the image does not say where from");
	url_show(url, where, sizeof(where));
	if (!str_starts(url, "mirror:") && !str_starts(url, "https://"))
		return err_set(e, ERR_DENIED, "'%s': expected mirror:NAME/path or https", where);
	progress_note(j->p, "model %s: %s%s%s", x->id, where, x->secret ? ", with the secret " : "",
		x->secret ? x->secret : "");
	return 0;
}

static int fetch(const struct model_place *j, const struct models_entry *x, struct err *e)
{
	struct arena a = {0};
	struct input *v = arena_alloc(&a, x->nfiles * sizeof(*v));
	size_t n = 0;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < x->nfiles; i++) {
		struct input in = input_of(&x->files[i]);

		if (cache_has(j->s, &in))
			continue;
		rc = check_address(j, x, in.url, e);
		in.url = rc == 0 ? mirror_url(j->mirrors, in.url, e) : NULL;
		rc = in.url ? model_authorize(&in, x->secret, x->s3, j->secrets, j->nsecrets, &a, e)
			    : -1;
		v[n++] = in;
	}
	if (rc == 0 && n)
		rc = cache_fetch(j->s, v, n, j->p, e);
	arena_fini(&a);
	return rc;
}

static int open_fetched(const struct model_place *j, const struct models_entry *x,
	const struct models_file *f, struct err *e)
{
	struct input in = input_of(f);
	auto_fd int fd = cache_open(j->s, &in, e);

	return fd < 0 || cache_verify(j->s, &in, fd, e) < 0 ||
			       model_check(fd, x->id, f->path, x->allow_pickle, e) < 0
		       ? -1
		       : steal_fd(&fd);
}

static int place_fetched(
	const struct model_place *j, const struct models_entry *x, int dirfd, struct err *e)
{
	if (fetch(j, x, e) < 0)
		return -1;
	for (size_t i = 0; i < x->nfiles; i++) {
		struct input in = input_of(&x->files[i]);
		char source[CACHE_NAME];
		auto_fd int fd = open_fetched(j, x, &x->files[i], e);

		if (fd < 0 ||
			link_to(j->s, dirfd, x->files[i].path, cache_name(&in, source), e) < 0)
			return -1;
	}
	return 0;
}

/* ---- into the store ---- */

static int make_links(int dirfd, const struct models_entry *x, struct err *e)
{
	for (size_t i = 0; i < x->nlinks; i++) {
		const char *name;
		auto_fd int dir = open_parent(dirfd, x->links[i].path, &name, e);

		if (dir < 0)
			return -1;
		if (sys_symlinkat(x->links[i].target, dir, name) < 0 && errno != EEXIST)
			return err_sys(e, "link %s", x->links[i].path);
	}
	return 0;
}

static int make(const struct model_place *j, const struct models_entry *x, const char *tmp,
	const char *final, struct err *e)
{
	auto_fd int dirfd = -1;

	if (sys_mkdir_p(j->s->fd, "models", 0755) < 0 || sys_remove_tree(j->s->fd, tmp) < 0 ||
		sys_mkdirat(j->s->fd, tmp, 0755) < 0)
		return err_sys(e, "create %s/%s", j->s->path, tmp);
	dirfd = sys_openat(j->s->fd, tmp, O_RDONLY | O_DIRECTORY, 0);
	if (dirfd < 0)
		return err_sys(e, "open %s/%s", j->s->path, tmp);
	if ((x->delivery == MODELS_ARTIFACT ? place_artifact : place_fetched)(j, x, dirfd, e) < 0 ||
		make_links(dirfd, x, e) < 0)
		return -1;
	return sys_renameat(j->s->fd, tmp, j->s->fd, final) < 0
		       ? err_sys(e, "rename %s/%s", j->s->path, tmp)
		       : 0;
}

int model_place(const struct model_place *j, const struct models_entry *x, struct err *e)
{
	char final[MODELS_PATH];
	auto_free char *tmp = NULL;
	auto_fd int turn = -1;

	if (!models_path(x, final))
		return 0;
	turn = store_work_lock(j->s, x->delivery == MODELS_ARTIFACT ? &x->artifact : &x->set, e);
	if (turn < 0)
		return -1;
	if (models_are_placed(j->s, x))
		return 0;
	tmp = mem_printf("models/.new-%s", final + strlen("models/"));
	if (make(j, x, tmp, final, e) == 0)
		return 0;
	(void)!sys_remove_tree(j->s->fd, tmp);
	return err_ctx(e, "model %s", x->id);
}

/* ---- into a volume ---- */

static bool is_there(int dirfd, const struct models_file *f)
{
	auto_fd int fd = sys_open_beneath(dirfd, f->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	struct stat st;
	struct hash h;
	struct digest d;

	if (fd < 0 || sys_fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
		(uint64_t)st.st_size != f->size)
		return false;
	hash_init(&h, HASH_SHA256);
	if (hash_add_file(fd, f->path, &h, NULL) < 0)
		return false;
	d = hash_digest(&h);
	return digest_eq(&d, &f->sha256);
}

/* What is there already need not be fetched. */
static int fill(const struct model_place *j, const struct models_entry *x, int dirfd, struct err *e)
{
	struct models_entry missing = *x;
	auto_free struct models_file *v = mem_array(x->nfiles + 1, sizeof(*v));

	missing.files = v;
	missing.nfiles = 0;
	for (size_t i = 0; i < x->nfiles; i++)
		if (!is_there(dirfd, &x->files[i]))
			v[missing.nfiles++] = x->files[i];
	if (fetch(j, &missing, e) < 0)
		return -1;
	for (size_t i = 0; i < missing.nfiles; i++) {
		auto_fd int fd = open_fetched(j, x, &v[i], e);

		if (fd < 0 || copy_to(dirfd, v[i].path, fd, e) < 0)
			return -1;
	}
	return make_links(dirfd, x, e);
}

int model_place_in(const struct model_place *j, const struct models_entry *x, int dirfd,
	const char *below, struct err *e)
{
	char mark[sizeof(MODELS_MARK) + DIGEST_HEX];
	auto_fd int turn = store_work_lock(j->s, &x->set, e);
	auto_fd int dir = turn < 0 ? -1 : open_folder(dirfd, below, e);

	if (dir < 0)
		return -1;
	if (faccessat(dir, models_mark(x, mark), F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	if (fill(j, x, dir, e) < 0)
		return err_ctx(e, "model %s", x->id);
	return file_write(dir, mark, "", 0, 0444, e);
}
