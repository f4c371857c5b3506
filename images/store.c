#include "images/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"

static const char layout_text[] = "{\"imageLayoutVersion\":\"1.0.0\"}";

#define REF_NAME "org.opencontainers.image.ref.name"
#define SOURCE "run.svrun.source"

enum {
	BLOB_PATH = sizeof("blobs/sha256/") + DIGEST_HEX,
	INDEX_MAX = 16 << 20,
	MANIFEST_MAX = 8 << 20,
};

static char *blob_path(const struct digest *d, char out[BLOB_PATH])
{
	char hex[DIGEST_HEX + 1];

	snprintf(out, BLOB_PATH, "blobs/sha256/%s", digest_hex(d, hex));
	return out;
}

/* ---- opening ---- */

/* The file has nothing but its version: whoever lost it can write it again. */
static int hint_layout(const struct store *s, struct err *e)
{
	return err_hint(e, "write it again: echo '%s' >%s/oci-layout", layout_text, s->path);
}

/* May a store be made here? Only in a folder with nothing in it: it becomes mode 0700, which would
 * be a bad surprise for /tmp. What a killed store_open() left is nothing. */
static int check_empty(const struct store *s, struct err *e)
{
	int fd = sys_openat(s->fd, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *d;
	int rc = 0;

	if (!dir) {
		err_sys(e, "list %s", s->path);
		sys_close_ref(&fd);
		return -1;
	}
	while (rc == 0 && (d = readdir(dir)))
		if (!str_eq(d->d_name, ".") && !str_eq(d->d_name, "..") &&
			!str_eq(d->d_name, "lost+found") && !str_starts(d->d_name, ".tmp."))
			rc = err_set(e, ERR_EXISTS, "%s is neither empty nor a store: it holds %s",
				s->path, d->d_name);
	closedir(dir);
	if (rc == 0)
		return 0;
	if (faccessat(s->fd, "blobs/sha256", F_OK, 0) == 0 &&
		faccessat(s->fd, "index.json", F_OK, 0) == 0)
		return hint_layout(s, e); /* it was a store */
	return err_hint(e, "set SVRUN_ROOT to a folder of its own");
}

/* 1 when it is a layout of our version, 0 when there is none. */
static int check_layout(struct store *s, struct err *e)
{
	enum { LAYOUT_MAX = 4096 };
	auto_buf struct buf b = BUF_INIT(LAYOUT_MAX);
	auto_json json_t *doc = NULL;
	const char *version;
	auto_fd int fd = sys_openat(s->fd, "oci-layout", O_RDONLY, 0);

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return err_sys(e, "open %s/oci-layout", s->path);
	if (file_read_fd(fd, "oci-layout", &b, e) < 0) {
		err_ctx(e, "%s", s->path);
		return hint_layout(s, e);
	}
	doc = json_parse(b.data, b.len, e);
	version = doc ? json_str(doc, "imageLayoutVersion", e) : NULL;
	if (!version) {
		err_ctx(e, "%s/oci-layout", s->path);
		return hint_layout(s, e);
	}
	if (str_eq(version, "1.0.0"))
		return 1;
	err_set(e, ERR_CORRUPT, "%s/oci-layout: expected imageLayoutVersion 1.0.0, found '%.40s'",
		s->path, version);
	return hint_layout(s, e);
}

static int make_layout(struct store *s, struct err *e)
{
	struct err fault = {0};

	if (check_empty(s, &fault) < 0) {
		int rc = check_layout(s, e); /* another process may just have made it */

		if (rc == 0 && e)
			*e = fault;
		return rc == 1 ? 0 : -1;
	}
	if (fchmod(s->fd, 0700) < 0)
		return err_sys(e, "chmod %s", s->path);
	return file_write(s->fd, "oci-layout", layout_text, sizeof(layout_text) - 1, 0644, e);
}

/* Another tool may have made the folder, wider open. */
static int close_to_others(const struct store *s, struct err *e)
{
	struct stat st;

	if (sys_fstat(s->fd, &st) < 0)
		return err_sys(e, "stat %s", s->path);
	if ((st.st_mode & 077) && fchmod(s->fd, 0700) < 0)
		return err_sys(e, "chmod %s", s->path);
	return 0;
}

static int open_root(struct store *s, bool create, struct err *e)
{
	int rc;

	if (create && sys_mkdir_p(AT_FDCWD, s->path, 0700) < 0)
		return err_sys(e, "create %s", s->path);
	s->fd = sys_open(s->path, O_RDONLY | O_DIRECTORY, 0);
	if (s->fd < 0) {
		rc = errno;
		err_sys(e, "open the store %s", s->path);
		if (rc == EACCES)
			return err_hint(e, "it is another user's: use sudo, or set SVRUN_ROOT");
		return rc == ENOENT ? err_hint(e, "svrun image build makes it") : -1;
	}
	rc = check_layout(s, e);
	if (rc == 0 && !create) {
		err_set(e, ERR_NOT_FOUND, "%s is no store: it has no oci-layout", s->path);
		return err_hint(e, "svrun image build makes it, in an empty folder");
	}
	if (rc == 0)
		rc = make_layout(s, e);
	if (rc < 0 || !create)
		return rc < 0 ? -1 : 0;
	if (sys_mkdir_p(s->fd, "blobs/sha256", 0755) < 0)
		return err_sys(e, "create %s/blobs/sha256", s->path);
	return close_to_others(s, e);
}

int store_open(struct store *s, const char *path, bool create, struct err *e)
{
	*s = (struct store){.fd = -1, .path = mem_strdup(path)};
	if (open_root(s, create, e) == 0)
		return 0;
	if (s->fd >= 0)
		sys_hint_space(e, s->fd, 0);
	store_close(s);
	return -1;
}

void store_close(struct store *s)
{
	sys_close_ref(&s->fd);
	free(s->path);
	s->path = NULL;
}

int store_lock(struct store *s, struct err *e)
{
	auto_fd int fd = sys_openat(s->fd, "lock", O_RDWR | O_CREAT, 0600);

	if (fd < 0 || sys_flock(fd, LOCK_EX) < 0) {
		err_sys(e, "lock %s/lock", s->path);
		return sys_hint_space(e, s->fd, 0);
	}
	return steal_fd(&fd);
}

int store_folder(struct store *s, const char *name, DIR **dir, struct err *e)
{
	int fd = sys_openat(s->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, "open %s/%s", s->path, name);
	*dir = fdopendir(fd);
	if (*dir)
		return 1;
	err_sys(e, "list %s/%s", s->path, name);
	sys_close_ref(&fd);
	return -1;
}

int store_folder_each(struct store *s, const char *name,
	int (*fn)(void *ctx, int dirfd, const char *name, struct err *e), void *ctx, struct err *e)
{
	struct dirent *d;
	DIR *dir;
	int rc = store_folder(s, name, &dir, e);

	if (rc <= 0)
		return rc;
	rc = 0;
	while (rc == 0 && (d = readdir(dir)))
		if (d->d_name[0] != '.')
			rc = fn(ctx, dirfd(dir), d->d_name, e);
	closedir(dir);
	return rc;
}

int store_work_lock(struct store *s, const struct digest *d, struct err *e)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
	auto_fd int fd = sys_openat(s->fd, "work", O_RDWR | O_CREAT, 0600);
	int rc;

	/* a byte of a file that has none: nothing to clean up, whatever ends us */
	for (int i = 0; i < 7; i++)
		l.l_start = l.l_start << 8 | d->b[i];
	do
		rc = fd < 0 ? -1 : fcntl(fd, F_OFD_SETLKW, &l);
	while (rc < 0 && fd >= 0 && errno == EINTR);
	if (rc < 0) {
		err_sys(e, "lock %s/work", s->path);
		return sys_hint_space(e, s->fd, 0);
	}
	return steal_fd(&fd);
}

/* ---- blobs ---- */

bool store_has(struct store *s, const struct digest *d)
{
	char path[BLOB_PATH];
	struct stat st;

	return sys_fstatat(s->fd, blob_path(d, path), &st, 0) == 0 && S_ISREG(st.st_mode);
}

int store_blob_open(struct store *s, const struct digest *d, uint64_t *size, struct err *e)
{
	char path[BLOB_PATH];
	struct stat st;
	auto_fd int fd = sys_openat(s->fd, blob_path(d, path), O_RDONLY | O_NOFOLLOW, 0);

	if (fd < 0 && errno == ENOENT) {
		err_set(e, ERR_NOT_FOUND, "blob sha256:%s is not in %s",
			path + sizeof("blobs/sha256/") - 1, s->path);
		return err_hint(e, "svrun image build makes it again");
	}
	if (fd < 0 || sys_fstat(fd, &st) < 0)
		return err_sys(e, "open %s/%s", s->path, path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_CORRUPT, "%s/%s is no regular file", s->path, path);
	if (size)
		*size = (uint64_t)st.st_size;
	return steal_fd(&fd);
}

int store_blob_read(
	struct store *s, const struct digest *d, size_t max, struct buf *b, struct err *e)
{
	char path[BLOB_PATH];
	struct digest found;
	auto_fd int fd = store_blob_open(s, d, NULL, e);

	if (fd < 0)
		return -1;
	b->len = 0;
	b->max = max;
	if (file_read_fd(fd, blob_path(d, path), b, e) < 0)
		return err_ctx(e, "%s", s->path);
	found = digest_of(b->data, b->len);
	if (digest_check(d, &found, e, "%s/%s", s->path, path) == 0)
		return 0;
	return err_hint(e, "svrun image build --no-cache writes it again");
}

int store_blob_begin(struct store *s, struct blob_writer *w, struct err *e)
{
	*w = (struct blob_writer){.s = s, .fd = -1};
	w->dirfd = sys_openat(s->fd, "blobs/sha256", O_RDONLY | O_DIRECTORY, 0);
	if (w->dirfd < 0)
		return err_sys(e, "open %s/blobs/sha256", s->path);
	w->fd = file_tmp(w->dirfd, w->tmp, 0644, e);
	if (w->fd < 0) {
		sys_close_ref(&w->dirfd);
		return err_ctx(e, "%s/blobs/sha256", s->path);
	}
	hash_init(&w->hash, HASH_SHA256);
	return 0;
}

int store_blob_add(struct blob_writer *w, const void *p, size_t n, struct err *e)
{
	enum { WRITEBACK_BYTES = 16 << 20 };

	if (sys_write_all(w->fd, p, n) < 0) {
		err_sys(e, "write a blob in %s", w->s->path);
		return sys_hint_space(e, w->fd, n);
	}
	hash_add(&w->hash, p, n);
	if ((w->size + n) / WRITEBACK_BYTES != w->size / WRITEBACK_BYTES)
		sys_start_writeback(w->fd); /* store_blob_commit() waits for the rest */
	w->size += n;
	return 0;
}

/* Has the blob of that name in dirfd the bytes that fd has? 1, 0, -1; *there: is there one? */
static int same_bytes(int dirfd, const char *hex, int fd, uint64_t size, bool *there, struct err *e)
{
	enum { STEP = 1 << 20 };
	auto_fd int old = sys_openat(dirfd, hex, O_RDONLY | O_NOFOLLOW, 0);
	auto_free char *a = NULL;
	struct stat st;

	*there = old >= 0 || errno != ENOENT;
	if (!*there)
		return 0;
	if (old < 0 || sys_fstat(old, &st) < 0)
		return err_sys(e, "open blob %s", hex);
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != size)
		return 0;
	a = mem_alloc(2 * STEP);
	for (uint64_t at = 0; at < size; at += STEP) {
		size_t n = size - at < STEP ? (size_t)(size - at) : STEP;

		if (sys_pread_all(fd, a, n, (off_t)at) < 0)
			return err_sys(e, "read a new blob");
		/* not all there, or unreadable: what we have is better */
		if (sys_pread_all(old, a + STEP, n, (off_t)at) < 0 || memcmp(a, a + STEP, n) != 0)
			return 0;
	}
	return 1;
}

struct digest store_blob_digest(const struct blob_writer *w)
{
	struct hash h = w->hash;

	return hash_digest(&h);
}

int store_blob_commit(struct blob_writer *w, struct digest *d, struct err *e)
{
	char hex[DIGEST_HEX + 1];
	bool there;
	int same;

	*d = hash_digest(&w->hash);
	same = same_bytes(w->dirfd, digest_hex(d, hex), w->fd, w->size, &there, e);
	/* one that appears from now on is another process's, and right */
	if (same < 0 || (same == 0 && there && sys_remove_tree(w->dirfd, hex) < 0 &&
				(err_sys(e, "remove the damaged blob %s", hex), true)))
		return -1;
	if (same == 0 && file_publish(w->dirfd, w->fd, w->tmp, hex, false, e) < 0)
		return err_ctx(e, "%s/blobs/sha256", w->s->path);
	if (same == 0)
		w->tmp[0] = '\0';
	store_blob_abort(w);
	return 0;
}

void store_blob_abort(struct blob_writer *w)
{
	if (w->dirfd >= 0 && w->tmp[0])
		sys_unlinkat(w->dirfd, w->tmp, 0);
	w->tmp[0] = '\0';
	sys_close_ref(&w->fd);
	sys_close_ref(&w->dirfd);
}

int store_blob_put(struct store *s, const void *p, size_t n, struct digest *d, struct err *e)
{
	struct blob_writer w;
	int rc;

	if (store_blob_begin(s, &w, e) < 0)
		return -1;
	rc = store_blob_add(&w, p, n, e) < 0 ? -1 : store_blob_commit(&w, d, e);
	store_blob_abort(&w);
	return rc;
}

int store_blob_remove(struct store *s, const struct digest *d, struct err *e)
{
	char path[BLOB_PATH];

	if (sys_unlinkat(s->fd, blob_path(d, path), 0) < 0 && errno != ENOENT)
		return err_sys(e, "remove %s/%s", s->path, path);
	return 0;
}

/* ---- names: index.json ---- */

/* The document, or one without manifests when there is none. Callers hold the lock, or are content
 * with what stands there: it is only ever replaced as a whole. */
static json_t *load_index(struct store *s, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(INDEX_MAX);
	auto_fd int fd = sys_openat(s->fd, "index.json", O_RDONLY, 0);
	json_t *doc;

	if (fd < 0 && errno == ENOENT)
		return json_pack("{s:i, s:s, s:[]}", "schemaVersion", 2, "mediaType",
			OCI_INDEX_TYPE, "manifests");
	if (fd < 0)
		return err_sys(e, "open %s/index.json", s->path), NULL;
	if (file_read_fd(fd, "index.json", &b, e) < 0)
		return err_ctx(e, "%s", s->path), NULL;
	doc = json_parse(b.data, b.len, e);
	if (doc && json_array_of(doc, "manifests", e))
		return doc;
	json_decref(doc);
	err_ctx(e, "%s/index.json", s->path);
	err_hint(e, "move it aside; svrun image build gives images their names again");
	return NULL;
}

static int save_index(struct store *s, const json_t *doc, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(INDEX_MAX);

	json_text(doc, false, &b);
	if (file_write(s->fd, "index.json", b.data, b.len, 0644, e) < 0)
		return err_ctx(e, "%s", s->path);
	return 0;
}

static const char *annotation(const json_t *descriptor, const char *key)
{
	return json_string_value(json_object_get(json_object_get(descriptor, "annotations"), key));
}

static const char *name_of(const json_t *descriptor)
{
	return annotation(descriptor, REF_NAME);
}

static int parse_descriptor(const json_t *o, struct digest *d, uint64_t *size, struct err *e)
{
	const char *text = json_str(o, "digest", e);

	if (!text || digest_parse(d, text, e) < 0 || json_u64(o, "size", INT64_MAX, size, e) < 0)
		return -1;
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const struct store_name *x = a, *y = b;

	return strcmp(x->name, y->name);
}

int store_names(struct store *s, struct store_name **v, size_t *n, struct err *e)
{
	auto_json json_t *doc = load_index(s, e);
	json_t *list = json_object_get(doc, "manifests"), *o;
	size_t i;

	*v = NULL;
	*n = 0;
	if (!doc)
		return -1;
	*v = mem_array(json_array_size(list), sizeof(**v));
	json_array_foreach (list, i, o) {
		struct store_name *x = &(*v)[*n];
		const char *name = name_of(o);

		if (!name) /* other tools may leave some without */
			continue;
		if (parse_descriptor(o, &x->manifest, &x->size, e) < 0) {
			store_names_free(*v, *n);
			*v = NULL;
			*n = 0;
			return err_ctx(e, "%s/index.json: /manifests/%zu", s->path, i);
		}
		x->name = mem_strdup(name);
		x->source = annotation(o, SOURCE) ? mem_strdup(annotation(o, SOURCE)) : NULL;
		(*n)++;
	}
	if (*n)
		qsort(*v, *n, sizeof(**v), by_name);
	return 0;
}

void store_names_free(struct store_name *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].name);
		free(v[i].source);
	}
	free(v);
}

bool store_index_names(
	struct store *s, const struct digest *index, const struct digest *manifest, size_t max)
{
	auto_buf struct buf b = {0};
	auto_json json_t *doc = NULL;
	char text[DIGEST_TEXT + 1];
	const json_t *o;
	size_t i;

	if (store_blob_read(s, index, max, &b, NULL) < 0)
		return false;
	doc = json_parse(b.data ? b.data : "", b.len, NULL);
	digest_text(manifest, text);
	json_array_foreach (json_object_get(doc, "manifests"), i, o) {
		const char *is = json_string_value(json_object_get(o, "digest"));

		if (is && str_eq(is, text))
			return true;
	}
	return false;
}

char *store_source(struct store *s, const struct digest *manifest)
{
	struct store_name *v;
	char *source = NULL;
	size_t n;

	if (store_names(s, &v, &n, NULL) < 0)
		return NULL;
	for (size_t i = 0; !source && i < n; i++)
		if (v[i].source &&
			(digest_eq(&v[i].manifest, manifest) ||
				store_index_names(s, &v[i].manifest, manifest, MANIFEST_MAX)))
			source = steal_ptr(&v[i].source);
	store_names_free(v, n);
	return source;
}

int store_manifests(struct store *s, struct digest **v, size_t *n, struct err *e)
{
	auto_json json_t *doc = load_index(s, e);
	json_t *list = json_object_get(doc, "manifests"), *o;
	auto_free struct digest *out = NULL;
	uint64_t size;
	size_t i;

	if (!doc)
		return -1;
	out = mem_array(json_array_size(list), sizeof(*out));
	json_array_foreach (list, i, o) {
		if (parse_descriptor(o, &out[i], &size, e) < 0)
			return err_ctx(e, "%s/index.json: /manifests/%zu", s->path, i);
	}
	*n = json_array_size(list);
	*v = steal_ptr(&out);
	return 0;
}

/* Take the descriptor of name out of the list. Returns whether there was one. */
static bool drop_name(json_t *list, const char *name)
{
	bool found = false;

	for (size_t i = json_array_size(list); i-- > 0;) {
		const char *is = name_of(json_array_get(list, i));

		if (is && str_eq(is, name)) {
			json_array_remove(list, i);
			found = true;
		}
	}
	return found;
}

static int has_blob(struct store *s, const json_t *descriptor, bool optional, struct err *e)
{
	struct digest d;
	uint64_t n;

	if (parse_descriptor(descriptor, &d, &n, e) < 0)
		return -1;
	return optional || store_has(s, &d) ? 0 : store_blob_open(s, &d, NULL, e);
}

/* Does every blob that the manifest names exist? `image rm` may have deleted one since it was
 * written, because another image that shared it went. Layers that can be had elsewhere need not. */
static int check_manifest(struct store *s, const json_t *m, bool has_source, struct err *e)
{
	const json_t *layers = json_array_of(m, "layers", e), *o;
	size_t i;

	o = layers ? json_object_of(m, "config", e) : NULL;
	if (!o || has_blob(s, o, false, e) < 0)
		return o ? -1 : err_ctx(e, "manifest");
	json_array_foreach (layers, i, o)
		if (has_blob(s, o, has_source, e) < 0)
			return err_ctx(e, "manifest: /layers/%zu", i);
	return 0;
}

static json_t *load_manifest(struct store *s, const struct digest *d, uint64_t size, struct err *e)
{
	auto_buf struct buf b = {0};

	if (store_blob_read(s, d, MANIFEST_MAX, &b, e) < 0)
		return NULL;
	if (b.len == size)
		return json_parse(b.data, b.len, e);
	err_set(e, ERR_CORRUPT, "manifest: expected %" PRIu64 " bytes, found %zu", size, b.len);
	return NULL;
}

/* Of an index, the platforms whose manifests are here. *type: of the document. */
static int check_complete(struct store *s, const struct digest *manifest, uint64_t size,
	bool has_source, const char **type, struct err *e)
{
	auto_json json_t *m = load_manifest(s, manifest, size, e);
	const json_t *nested = json_object_get(m, "manifests"), *o;
	bool docker = str_starts(json_string_value(json_object_get(m, "mediaType")) ?: "",
		"application/vnd.docker.");
	size_t i;

	if (!m)
		return -1;
	if (!nested) {
		*type = docker ? DOCKER_MANIFEST_TYPE : OCI_MANIFEST_TYPE;
		return check_manifest(s, m, has_source, e);
	}
	*type = docker ? DOCKER_LIST_TYPE : OCI_INDEX_TYPE;
	json_array_foreach (nested, i, o) {
		auto_json json_t *one = NULL;
		struct digest d;
		uint64_t n;

		if (parse_descriptor(o, &d, &n, e) < 0)
			return err_ctx(e, "index: /manifests/%zu", i);
		if (!store_has(s, &d))
			continue;
		one = load_manifest(s, &d, n, e);
		if (!one || check_manifest(s, one, has_source, e) < 0)
			return err_ctx(e, "index: /manifests/%zu", i);
	}
	return 0;
}

int store_name_set(struct store *s, const char *name, const struct digest *manifest, uint64_t size,
	const char *source, struct err *e)
{
	char canonical[STORE_NAME], text[DIGEST_TEXT + 1];
	const char *type;
	auto_json json_t *doc = NULL;
	auto_fd int lock = -1;
	json_t *list, *o;

	if (store_name_parse(name, canonical, e) < 0)
		return -1;
	lock = store_lock(s, e);
	if (lock < 0)
		return -1;
	if (check_complete(s, manifest, size, source, &type, e) < 0)
		return err_ctx(e, "name %s", canonical);
	doc = load_index(s, e);
	if (!doc)
		return -1;
	list = json_object_get(doc, "manifests");
	drop_name(list, canonical);
	o = json_pack("{s:s, s:s, s:I, s:{s:s}}", "mediaType", type, "digest",
		digest_text(manifest, text), "size", (json_int_t)size, "annotations", REF_NAME,
		canonical);
	if (source)
		json_object_set_new(json_object_get(o, "annotations"), SOURCE, json_string(source));
	json_array_append_new(list, o);
	return save_index(s, doc, e);
}

int store_name_remove(struct store *s, const char *name, struct err *e)
{
	char canonical[STORE_NAME];
	auto_json json_t *doc = NULL;
	auto_fd int lock = -1;

	if (store_name_parse(name, canonical, e) < 0)
		return -1;
	lock = store_lock(s, e);
	doc = lock < 0 ? NULL : load_index(s, e);
	if (!doc)
		return -1;
	if (!drop_name(json_object_get(doc, "manifests"), canonical))
		return err_set(e, ERR_NOT_FOUND, "no image '%s' in the store", canonical);
	return save_index(s, doc, e);
}

int store_unnamed_remove(struct store *s, const struct digest *manifest, struct err *e)
{
	auto_fd int lock = store_lock(s, e);
	auto_json json_t *doc = lock < 0 ? NULL : load_index(s, e);
	json_t *list = json_object_get(doc, "manifests");
	bool found = false;

	if (!doc)
		return -1;
	for (size_t i = json_array_size(list); i-- > 0;) {
		const json_t *o = json_array_get(list, i);
		struct digest d;
		uint64_t size;

		if (name_of(o))
			continue;
		if (parse_descriptor(o, &d, &size, e) < 0)
			return err_ctx(e, "%s/index.json: /manifests/%zu", s->path, i);
		if (!digest_eq(&d, manifest))
			continue;
		json_array_remove(list, i);
		found = true;
	}
	return found ? save_index(s, doc, e) : 0;
}
