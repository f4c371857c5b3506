#include "images/intake.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/sys.h"
#include "images/image.h"
#include "images/progress.h"
#include "images/unpack.h"

enum { READ_BLOCK = 256 << 10, MAGIC_BYTES = 6 };

static const char blob_folder[] = "blobs/sha256/";

/* ---- errors ---- */

static int refuse(const struct intake *in, const char *member, const char *why, struct err *e)
{
	char text[STR_SHOWN];

	return err_set(e, ERR_CORRUPT, "%s: '%s' %s", in->name, str_shown(member, text), why);
}

/* ---- files ---- */

static enum codec sniff(const unsigned char *p, size_t n)
{
	static const struct {
		unsigned char magic[4];
		size_t n;
		enum codec codec;
	} magics[] = {
		{{0x1f, 0x8b}, 2, CODEC_GZIP},
		{{0x28, 0xb5, 0x2f, 0xfd}, 4, CODEC_ZSTD},
	};

	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++)
		if (n >= magics[i].n && memcmp(p, magics[i].magic, magics[i].n) == 0)
			return magics[i].codec;
	return CODEC_NONE;
}

static struct intake_file *lookup(struct intake *in, const char *name)
{
	const json_t *i = json_object_get(in->by_name, name);

	return i ? &in->v[json_integer_value(i)] : NULL;
}

/* The name is in the arena, and counted, when name is not NULL. */
static struct intake_file *add_file(struct intake *in, const char *name, struct err *e)
{
	struct intake_file *f;

	if (in->n >= INTAKE_FILES_MAX) {
		err_set(e, ERR_CORRUPT, "%s: more than %d files", in->name, INTAKE_FILES_MAX);
		return NULL;
	}
	in->names += name ? strlen(name) : 0;
	if (in->names > INTAKE_NAMES_BYTES) {
		err_set(e, ERR_CORRUPT, "%s: names of more than %d bytes", in->name,
			INTAKE_NAMES_BYTES);
		return NULL;
	}
	mem_grow(&in->v, &in->cap, in->n);
	f = &in->v[in->n];
	*f = (struct intake_file){.name = name ? arena_strdup(&in->arena, name) : NULL};
	if (name)
		json_object_set_new_nocheck(in->by_name, f->name, json_integer((json_int_t)in->n));
	in->n++;
	return f;
}

/* The digest of what was written so far tells whether the blob is new. */
static int commit(struct intake *in, struct blob_writer *w, struct intake_file *f, struct err *e)
{
	struct hash h = w->hash;

	f->digest = hash_digest(&h);
	f->size = w->size;
	f->added = !store_has(in->s, &f->digest);
	return store_blob_commit(w, &f->digest, e);
}

/* A blob whose name is its digest. */
static int check_name(const struct intake *in, const struct intake_file *f, struct err *e)
{
	struct digest want;

	if (!str_starts(f->name, blob_folder))
		return 0;
	if (digest_from_hex(&want, f->name + sizeof(blob_folder) - 1) < 0)
		return refuse(in, f->name, "is no blob's name", e);
	return digest_check(&want, &f->digest, e, "%s: %s", in->name, f->name);
}

int intake_add_blob(struct intake *in, const void *p, size_t n, struct digest *d, struct err *e)
{
	struct intake_file *f = add_file(in, NULL, e);

	if (!f)
		return -1;
	f->digest = digest_of(p, n);
	f->size = n;
	f->added = !store_has(in->s, &f->digest);
	return store_blob_put(in->s, p, n, d, e);
}

/* ---- a tar ---- */

struct stream {
	struct intake *in;
	struct archive *archive;
	int fd;
	bool compressed;
	uint64_t read; /* bytes from fd */
	size_t ahead;  /* of buf: read, but not handed on */
	unsigned char buf[READ_BLOCK];
	char path[TREE_PATH_MAX + 1], target[TREE_PATH_MAX + 1];
};

static int stream_fill(struct stream *x)
{
	ssize_t n = sys_read(x->fd, x->buf + x->ahead, READ_BLOCK - x->ahead);

	if (n <= 0)
		return (int)n;
	x->ahead += (size_t)n;
	x->read += (uint64_t)n;
	progress_add(x->in->progress, (uint64_t)n);
	return 1;
}

static ssize_t stream_read(struct archive *a, void *ctx, const void **out)
{
	struct stream *x = ctx;
	size_t n;

	if (x->ahead == 0 && stream_fill(x) < 0) {
		archive_set_error(a, errno, "%s", strerror(errno));
		return ARCHIVE_FATAL;
	}
	n = x->ahead;
	x->ahead = 0;
	*out = x->buf;
	return (ssize_t)n;
}

/* What libarchive says is about the data, unless the system let it down. */
static int archive_err(const struct stream *x, struct err *e)
{
	const char *text = archive_error_string(x->archive);
	int sys = archive_errno(x->archive);
	char plain[STR_SHOWN];

	return err_set(e, sys == EIO || sys == ENOMEM ? ERR_SYSTEM : ERR_CORRUPT, "%s: %s",
		x->in->name, str_shown(text ? text : "unreadable archive", plain));
}

/* The filter that the first bytes ask for: with libarchive's bidding, a filter inside a filter
 * inside ... would be accepted. */
static int choose_filter(const struct stream *x)
{
	static const struct {
		unsigned char magic[MAGIC_BYTES];
		size_t n;
		int filter;
	} filters[] = {
		{{0x1f, 0x8b}, 2, ARCHIVE_FILTER_GZIP},
		{{0x28, 0xb5, 0x2f, 0xfd}, 4, ARCHIVE_FILTER_ZSTD},
		{{0xfd, '7', 'z', 'X', 'Z', 0}, 6, ARCHIVE_FILTER_XZ},
		{{'B', 'Z', 'h'}, 3, ARCHIVE_FILTER_BZIP2},
	};

	for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++)
		if (x->ahead >= filters[i].n && memcmp(x->buf, filters[i].magic, filters[i].n) == 0)
			return filters[i].filter;
	return ARCHIVE_FILTER_NONE;
}

static int stream_open(struct stream *x, struct err *e)
{
	int rc = 1, filter;

	while (x->ahead < MAGIC_BYTES && (rc = stream_fill(x)) > 0)
		;
	if (rc < 0)
		return err_sys(e, "read %s", x->in->name);
	if (x->read == 0)
		return err_set(e, ERR_CORRUPT, "%s is empty", x->in->name);
	filter = choose_filter(x);
	x->compressed = filter != ARCHIVE_FILTER_NONE;
	x->archive = archive_read_new();
	if (!x->archive)
		return err_set(e, ERR_SYSTEM, "out of memory");
	if (archive_read_support_format_tar(x->archive) != ARCHIVE_OK ||
		archive_read_append_filter(x->archive, filter) != ARCHIVE_OK ||
		archive_read_open(x->archive, x, NULL, stream_read, NULL) != ARCHIVE_OK)
		return archive_err(x, e);
	return 0;
}

static int check_limit(const struct stream *x, const char *member, struct err *e)
{
	uint64_t limit = unpack_limit(x->read);
	char why[128];

	if (!x->compressed || x->in->bytes <= limit)
		return 0;
	snprintf(why, sizeof(why), "makes it unpack to more than %" PRIu64 " bytes, from %" PRIu64,
		limit, x->read);
	return refuse(x->in, member, why, e);
}

static int copy_data(struct stream *x, struct blob_writer *w, unsigned char head[MAGIC_BYTES],
	size_t *nhead, struct err *e)
{
	const void *block;
	size_t n;
	int64_t at;
	int rc;

	while ((rc = archive_read_data_block(x->archive, &block, &n, &at)) == ARCHIVE_OK) {
		if (at < 0 || (uint64_t)at != w->size)
			return refuse(x->in, x->path, "has holes", e);
		for (size_t i = 0; i < n && *nhead < MAGIC_BYTES; i++)
			head[(*nhead)++] = ((const unsigned char *)block)[i];
		x->in->bytes += n;
		if (check_limit(x, x->path, e) < 0 || store_blob_add(w, block, n, e) < 0)
			return -1;
	}
	return rc == ARCHIVE_EOF ? 0 : archive_err(x, e);
}

/* The same file twice is no question of which one is meant. */
static int check_twice(struct intake *in, const struct intake_file *old,
	const struct intake_file *f, struct err *e)
{
	if (!old || (!old->target && !f->target && digest_eq(&old->digest, &f->digest)) ||
		(old->target && f->target && str_eq(old->target, f->target)))
		return 0;
	return refuse(in, f->name, "is there twice", e);
}

static int take_file(struct stream *x, struct archive_entry *en, struct err *e)
{
	struct intake *in = x->in;
	struct intake_file f = {.name = x->path}, *old = lookup(in, x->path), *made;
	unsigned char head[MAGIC_BYTES];
	size_t nhead = 0;
	struct blob_writer w;
	int rc;

	if (archive_entry_sparse_count(en) > 0)
		return refuse(in, x->path, "has holes", e);
	if (store_blob_begin(in->s, &w, e) < 0)
		return -1;
	rc = copy_data(x, &w, head, &nhead, e);
	if (rc == 0 && archive_entry_size_is_set(en) && (uint64_t)archive_entry_size(en) != w.size)
		rc = refuse(in, x->path, "is shorter than its size says", e);
	if (rc == 0)
		rc = commit(in, &w, &f, e);
	store_blob_abort(&w);
	if (rc < 0)
		return -1;
	f.codec = sniff(head, nhead);
	made = add_file(
		in, old ? NULL : x->path, e); /* noted before it is judged: it must go again */
	if (!made)
		return -1;
	f.name = old ? old->name : made->name;
	old = old ? lookup(in, x->path) : NULL; /* it may have moved */
	*made = f;
	return check_twice(in, old, &f, e) < 0 ? -1 : check_name(in, &f, e);
}

/* Where a symbolic link in the folder of `from` leads to: out (TREE_PATH_MAX + 1 bytes). */
static int link_target(
	const struct intake *in, const char *from, const char *target, char *out, struct err *e)
{
	const char *slash = strrchr(from, '/');
	size_t n = slash ? (size_t)(slash - from) : 0;

	if (target[0] == '/')
		return refuse(in, from, "is a link to an absolute name", e);
	memcpy(out, from, n);
	for (const char *p = target; *p;) {
		const char *end = strchrnul(p, '/');
		size_t len = (size_t)(end - p);

		if (len == 2 && p[0] == '.' && p[1] == '.') {
			if (n == 0)
				return refuse(in, from, "is a link that leads outside", e);
			while (n > 0 && out[--n] != '/')
				;
		} else if (len > 0 && !(len == 1 && p[0] == '.')) {
			if (n + len + 1 > TREE_PATH_MAX)
				return refuse(in, from, "is a link to a name that is too long", e);
			if (n > 0)
				out[n++] = '/';
			memcpy(out + n, p, len);
			n += len;
		}
		p = *end ? end + 1 : end;
	}
	out[n] = '\0';
	return 0;
}

static int take_link(struct stream *x, struct archive_entry *en, struct err *e)
{
	const char *hard = archive_entry_hardlink(en), *soft = archive_entry_symlink(en);
	struct intake_file f = {.name = x->path}, *old = lookup(x->in, x->path), *made;

	if (!hard && !soft)
		return refuse(x->in, x->path, "is a link to nothing", e);
	if (hard ? tree_clean_path(hard, x->target, e) < 0
		 : link_target(x->in, x->path, soft, x->target, e) < 0)
		return hard ? err_ctx(e, "%s: hard link", x->in->name) : -1;
	f.target = x->target;
	if (old)
		return check_twice(x->in, old, &f, e);
	x->in->names += strlen(x->target);
	made = add_file(x->in, x->path, e);
	if (!made)
		return -1;
	made->target = arena_strdup(&x->in->arena, x->target);
	return 0;
}

static int take_member(struct stream *x, struct archive_entry *en, struct err *e)
{
	const char *name = archive_entry_pathname(en);
	int64_t size = archive_entry_size_is_set(en) ? archive_entry_size(en) : 0;
	bool link = archive_entry_hardlink(en) || archive_entry_filetype(en) == AE_IFLNK;

	if (!name || !*name)
		return refuse(x->in, "", "is a member without a name", e);
	if (tree_clean_path(name, x->path, e) < 0)
		return err_ctx(e, "%s", x->in->name);
	/* libarchive would skip data of other types by unpacking them: unbounded work */
	if ((link || archive_entry_filetype(en) != AE_IFREG) && size > 0)
		return refuse(x->in, name, "is no file, but has data", e);
	if (link)
		return take_link(x, en, e);
	if (archive_entry_filetype(en) == AE_IFDIR)
		return 0;
	if (archive_entry_filetype(en) != AE_IFREG)
		return refuse(x->in, name, "is neither a file, a folder nor a link", e);
	return take_file(x, en, e);
}

/* Whoever writes into our pipe may have more to say than the tar: it must not die of that. */
static int drain(struct stream *x, struct err *e)
{
	int rc;

	do {
		x->ahead = 0;
		rc = stream_fill(x);
	} while (rc > 0);
	return rc < 0 ? err_sys(e, "read %s", x->in->name) : 0;
}

static int take_all(struct stream *x, struct err *e)
{
	struct archive_entry *en;
	int rc;

	if (stream_open(x, e) < 0)
		return -1;
	/* a warning is about a conversion of names that the C locale does not have: they stay bytes
	 */
	while ((rc = archive_read_next_header(x->archive, &en)) == ARCHIVE_OK || rc == ARCHIVE_WARN)
		if (take_member(x, en, e) < 0)
			return -1;
	return rc == ARCHIVE_EOF ? drain(x, e) : archive_err(x, e);
}

static void init(struct intake *in, struct store *s, const char *name, struct progress *p)
{
	*in = (struct intake){
		.s = s, .name = name, .dirfd = -1, .by_name = json_object(), .progress = p};
}

int intake_stream(struct intake *in, struct store *s, int fd, const char *name, struct progress *p,
	struct err *e)
{
	struct stream *x = mem_alloc(sizeof(*x));
	locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0), old = uselocale(c);
	int rc;

	init(in, s, name, p);
	x->in = in;
	x->fd = fd;
	rc = take_all(x, e);
	if (x->archive)
		archive_read_free(x->archive);
	uselocale(old);
	freelocale(c);
	free(x);
	return rc;
}

/* ---- a folder ---- */

int intake_folder(
	struct intake *in, struct store *s, const char *path, struct progress *p, struct err *e)
{
	init(in, s, path, p);
	in->dirfd = sys_open(path, O_RDONLY | O_DIRECTORY, 0);
	return in->dirfd < 0 ? err_sys(e, "open %s", path) : 0;
}

static int copy_file(struct intake *in, int fd, const char *name, struct intake_file *f,
	struct blob_writer *w, struct err *e)
{
	auto_free unsigned char *buf = mem_alloc(READ_BLOCK);
	ssize_t n;

	while ((n = sys_read(fd, buf, READ_BLOCK)) > 0) {
		if (w->size == 0)
			f->codec = sniff(buf, (size_t)n);
		if (store_blob_add(w, buf, (size_t)n, e) < 0)
			return -1;
		progress_add(in->progress, (uint64_t)n);
	}
	return n < 0 ? err_sys(e, "read %s/%s", in->name, name) : commit(in, w, f, e);
}

/* 1 when it was taken out of the folder, 0 when there is no such file, -1. */
static int take_from_folder(struct intake *in, const char *name, struct err *e)
{
	struct intake_file f = {0}, *made;
	struct blob_writer w;
	struct stat st;
	/* a FIFO would wait for its writer */
	auto_fd int fd = sys_open_beneath(in->dirfd, name, O_RDONLY | O_NONBLOCK, 0);
	int rc;

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, "open %s/%s", in->name, name);
	if (sys_fstat(fd, &st) < 0)
		return err_sys(e, "stat %s/%s", in->name, name);
	if (!S_ISREG(st.st_mode))
		return refuse(in, name, "is no regular file", e);
	if (store_blob_begin(in->s, &w, e) < 0)
		return -1;
	rc = copy_file(in, fd, name, &f, &w, e);
	store_blob_abort(&w);
	made = rc < 0 ? NULL : add_file(in, name, e);
	if (!made)
		return -1;
	f.name = made->name;
	*made = f;
	return check_name(in, made, e) < 0 ? -1 : 1;
}

/* ---- finding ---- */

int intake_find(struct intake *in, const char *name, struct intake_file *f, struct err *e)
{
	char clean[TREE_PATH_MAX + 1];
	const struct intake_file *found;
	int rc = 0;

	if (tree_clean_path(name, clean, e) < 0)
		return err_ctx(e, "%s", in->name);
	found = lookup(in, clean);
	if (!found && in->dirfd >= 0 && (rc = take_from_folder(in, clean, e)) > 0)
		found = lookup(in, clean);
	if (rc < 0)
		return -1;
	for (size_t links = 0; found && found->target; links++) {
		if (links == INTAKE_LINKS_MAX)
			return refuse(in, name, "is a link in a circle", e);
		found = lookup(in, found->target);
	}
	if (!found)
		return 0;
	*f = *found;
	return 1;
}

int intake_get(struct intake *in, const char *name, struct intake_file *f, struct err *e)
{
	int rc = intake_find(in, name, f, e);

	return rc == 0 ? refuse(in, name, "is missing", e) : rc < 0 ? -1 : 0;
}

json_t *intake_document(struct intake *in, const struct intake_file *f, size_t max, struct err *e)
{
	auto_buf struct buf b = {0};
	json_t *doc;

	if (store_blob_read(in->s, &f->digest, max, &b, e) < 0)
		return err_ctx(e, "%s: %s", in->name, f->name ? f->name : "document"), NULL;
	doc = json_parse(b.data, b.len, e);
	if (!doc)
		err_ctx(e, "%s: %s", in->name, f->name ? f->name : "document");
	return doc;
}

/* ---- the end ---- */

void intake_fini(struct intake *in)
{
	auto_free struct digest *added = mem_array(in->n, sizeof(*added));
	struct err fault = {0};
	size_t n = 0;

	for (size_t i = 0; i < in->n; i++)
		if (in->v[i].added && !in->v[i].target)
			added[n++] = in->v[i].digest;
	if (n && image_drop_blobs(in->s, added, n, &fault) < 0)
		warn("%s; svrun image gc removes what is left", fault.text);
	json_decref(in->by_name);
	sys_close_ref(&in->dirfd);
	arena_fini(&in->arena);
	free(in->v);
	*in = (struct intake){.dirfd = -1};
}
