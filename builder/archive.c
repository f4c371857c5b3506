#include "builder/archive.h"

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

enum {
	READ_BLOCK = 256 << 10,
	NAMES_BYTES = 128 << 20, /* names and link targets of one archive */
};

/* ---- opening ---- */

/* libarchive's client data: a range of a file. */
struct range {
	int fd;
	uint64_t at, left;
	unsigned char buf[READ_BLOCK];
};

static ssize_t range_read(struct archive *a, void *ctx, const void **out)
{
	struct range *r = ctx;
	size_t want = r->left < READ_BLOCK ? (size_t)r->left : READ_BLOCK;
	ssize_t n = want ? sys_pread(r->fd, r->buf, want, (off_t)r->at) : 0;

	if (n < 0) {
		archive_set_error(a, errno, "%s", strerror(errno));
		return ARCHIVE_FATAL;
	}
	r->at += (uint64_t)n;
	r->left -= (uint64_t)n;
	*out = r->buf;
	return n;
}

static int range_close(struct archive *a __attribute__((unused)), void *ctx)
{
	free(ctx);
	return ARCHIVE_OK;
}

/* What libarchive says is about the data, unless the system let it down. */
static int archive_err(struct archive *a, const char *name, struct err *e)
{
	const char *text = archive_error_string(a);
	int sys = archive_errno(a);

	return err_set(e, sys == EIO || sys == ENOMEM ? ERR_SYSTEM : ERR_CORRUPT, "%s: %s", name,
		text ? text : "unreadable archive");
}

void archive_close_ref(struct archive **a)
{
	if (*a)
		archive_read_free(*a);
	*a = NULL;
}

/* Exactly one filter: with bidding, a filter inside a filter inside ... would be accepted. */
static struct archive *new_reader(int filter, const char *name, struct err *e)
{
	auto_archive struct archive *a = archive_read_new();

	if (!a) {
		err_set(e, ERR_SYSTEM, "%s: out of memory", name);
		return NULL;
	}
	if (archive_read_support_format_tar(a) != ARCHIVE_OK ||
		archive_read_append_filter(a, filter) != ARCHIVE_OK) {
		archive_err(a, name, e);
		return NULL;
	}
	return steal_ptr(&a);
}

struct archive *archive_open_fd(
	int fd, uint64_t offset, uint64_t length, int filter, const char *name, struct err *e)
{
	auto_archive struct archive *a = new_reader(filter, name, e);
	struct range *r;

	if (!a)
		return NULL;
	r = mem_alloc(sizeof(*r));
	*r = (struct range){.fd = fd, .at = offset, .left = length};
	if (archive_read_open(a, r, NULL, range_read, range_close) != ARCHIVE_OK) {
		archive_err(a, name, e);
		return NULL;
	}
	return steal_ptr(&a);
}

struct archive *archive_open_mem(
	const void *data, size_t n, int filter, const char *name, struct err *e)
{
	auto_archive struct archive *a = new_reader(filter, name, e);

	if (!a)
		return NULL;
	if (archive_read_open_memory(a, data, n) != ARCHIVE_OK) {
		archive_err(a, name, e);
		return NULL;
	}
	return steal_ptr(&a);
}

/* ---- members ---- */

struct unpack {
	struct archive *archive;
	const struct archive_rules *rules;
	struct entries *out;
	struct content sink;
	size_t first;   /* of out: entries before are not ours */
	size_t members; /* seen, those left out included */
	uint64_t bytes; /* of file data */
	uint64_t names; /* bytes of names and targets */
	char path[TREE_PATH_MAX + 1], target[TREE_PATH_MAX + 1];
};

static int refuse(const struct unpack *u, const char *member, const char *why, struct err *e)
{
	char text[STR_SHOWN];

	return err_set(
		e, ERR_CORRUPT, "%s: member '%s' %s", u->rules->name, str_shown(member, text), why);
}

static int refuse_limit(
	const struct unpack *u, const char *member, const char *what, uint64_t limit, struct err *e)
{
	char why[128];

	snprintf(why, sizeof(why), "%s, more than the limit of %" PRIu64, what, limit);
	return refuse(u, member, why, e);
}

/* Member name -> path in the image: 1, or 0 when strip leaves nothing. */
static int map_path(
	const struct unpack *u, const char *name, char out[TREE_PATH_MAX + 1], struct err *e)
{
	char clean[TREE_PATH_MAX + 1], text[STR_SHOWN];
	const char *rest = clean;
	int n;

	if (name[0] == '/')
		return refuse(u, name, "has an absolute name", e);
	if (tree_clean_path(name, clean, e) < 0)
		return err_ctx(e, "%s: member '%s'", u->rules->name, str_shown(name, text));
	for (unsigned i = 0; i < u->rules->strip; i++) {
		rest = strchr(rest, '/');
		if (!rest)
			return 0;
		rest++;
	}
	if (!u->rules->prefix)
		n = snprintf(out, TREE_PATH_MAX + 1, "%s", rest);
	else
		n = snprintf(
			out, TREE_PATH_MAX + 1, "%s%s%s", u->rules->prefix, *rest ? "/" : "", rest);
	if (n > TREE_PATH_MAX)
		return refuse_limit(u, name, "has a long path", TREE_PATH_MAX, e);
	if (tree_check_path(out, e) < 0)
		return err_ctx(e, "%s: member '%s'", u->rules->name, str_shown(name, text));
	return 1;
}

static void copy_capability(struct archive_entry *en, struct arena *arena, struct attr *a)
{
	const char *name;
	const void *value;
	size_t len;

	archive_entry_xattr_reset(en);
	while (archive_entry_xattr_next(en, &name, &value, &len) == ARCHIVE_OK)
		if (name && str_eq(name, "security.capability") && len <= TREE_XATTR_VALUE_MAX) {
			a->xattrs = arena_alloc(arena, sizeof(*a->xattrs));
			a->xattrs[0] = (struct xattr){.name = "security.capability",
				.value = arena_dup(arena, value, len),
				.len = len};
			a->nxattrs = 1;
		}
}

static uint32_t plain_mode(const struct attr *a)
{
	return a->type == NODE_DIR || (a->mode & 0111) ? 0755 : 0644;
}

static int fill_owner(const struct unpack *u, struct archive_entry *en, const char *name,
	struct attr *a, struct err *e)
{
	int64_t uid = archive_entry_uid(en), gid = archive_entry_gid(en);

	if (!u->rules->keep_owner)
		return 0;
	if (uid < 0 || gid < 0 || uid >= UINT32_MAX || gid >= UINT32_MAX)
		return refuse(u, name, "has an owner that is no 32-bit number", e);
	a->uid = (uint32_t)uid;
	a->gid = (uint32_t)gid;
	return 0;
}

static int fill_type(const struct unpack *u, struct archive_entry *en, const char *name,
	struct attr *a, struct err *e)
{
	if (archive_entry_hardlink(en)) {
		a->type = NODE_HARDLINK;
	} else {
		switch (archive_entry_filetype(en)) {
		case AE_IFREG:
			a->type = NODE_FILE;
			break;
		case AE_IFDIR:
			a->type = NODE_DIR;
			break;
		case AE_IFLNK:
			a->type = NODE_SYMLINK;
			break;
		case AE_IFIFO:
			a->type = NODE_FIFO;
			break;
		case AE_IFCHR:
		case AE_IFBLK:
			return refuse(u, name, "is a device node", e);
		default:
			return refuse(u, name, "is of an unknown type", e);
		}
	}
	if (u->rules->no_links && a->type != NODE_FILE && a->type != NODE_DIR)
		return refuse(u, name, "is neither a file nor a folder", e);
	/* libarchive would skip data of other types by unpacking them: unbounded work */
	if (a->type != NODE_FILE && archive_entry_size_is_set(en) && archive_entry_size(en) > 0)
		return refuse(u, name, "is no file, but has data", e);
	return 0;
}

static int fill_attr(const struct unpack *u, struct archive_entry *en, const char *name,
	struct attr *a, struct err *e)
{
	int64_t mtime = u->rules->mtime >= 0 ? u->rules->mtime : archive_entry_mtime(en);

	a->mode = archive_entry_perm(en) & 07777;
	a->mtime = mtime < 0 ? 0 : mtime;
	if (fill_type(u, en, name, a, e) < 0 || fill_owner(u, en, name, a, e) < 0)
		return -1;
	if (a->type == NODE_SYMLINK)
		a->mode = 0777;
	else if (u->rules->plain_modes)
		a->mode = plain_mode(a);
	if (a->type == NODE_FILE || a->type == NODE_DIR)
		copy_capability(en, &u->out->arena, a);
	return 0;
}

/* Link targets: a hard link's is a member's name, a symlink's is data. */
static int fill_target(
	struct unpack *u, struct archive_entry *en, const char *name, struct attr *a, struct err *e)
{
	const char *target =
		a->type == NODE_HARDLINK ? archive_entry_hardlink(en) : archive_entry_symlink(en);
	size_t len;
	int rc;

	if (!target || !*target)
		return refuse(u, name, "is a link to nothing", e);
	if (a->type == NODE_HARDLINK) {
		if (target[0] == '/')
			return refuse(u, name, "is a hard link to an absolute name", e);
		rc = map_path(u, target, u->target, e);
		if (rc < 0)
			return -1;
		if (rc == 0 || !u->target[0])
			return refuse(u, name, "is a hard link to nothing", e);
		target = u->target;
	}
	len = strlen(target);
	if (len > TREE_PATH_MAX)
		return refuse_limit(u, name, "has a long target", TREE_PATH_MAX, e);
	u->names += len;
	a->target = arena_strdup(&u->out->arena, target);
	return 0;
}

/* A whole member's data into the sink, holes filled with zeros. */
static int read_data(struct unpack *u, struct archive_entry *en, const char *name, struct err *e)
{
	uint64_t left = u->rules->max_bytes - u->bytes;
	uint64_t limit = left < u->rules->max_file ? left : u->rules->max_file;
	const char *which = left < u->rules->max_file ? "makes all files too big" : "is too big";
	uint64_t number = left < u->rules->max_file ? u->rules->max_bytes : u->rules->max_file;
	bool known = archive_entry_size_is_set(en) != 0;
	uint64_t size = known ? (uint64_t)archive_entry_size(en) : UINT64_MAX;
	const void *block;
	size_t n;
	int64_t at;
	int rc;

	/* what it claims is refused before any of it is unpacked */
	if (known && size > limit)
		return refuse_limit(u, name, which, number, e);
	content_begin(&u->sink);
	while ((rc = archive_read_data_block(u->archive, &block, &n, &at)) == ARCHIVE_OK) {
		if (at < 0 || (uint64_t)at < u->sink.size)
			return refuse(u, name, "has overlapping pieces", e);
		if ((uint64_t)at > limit || n > limit - (uint64_t)at)
			return refuse_limit(u, name, which, number, e);
		if (content_add(&u->sink, NULL, (uint64_t)at - u->sink.size, e) < 0 ||
			content_add(&u->sink, block, n, e) < 0)
			return -1;
	}
	if (rc != ARCHIVE_EOF)
		return archive_err(u->archive, u->rules->name, e);
	if (known && u->sink.size > size)
		return refuse(u, name, "has more data than its size says", e);
	if (known &&
		content_add(&u->sink, NULL, size - u->sink.size, e) < 0) /* a hole at its end */
		return -1;
	u->bytes += u->sink.size;
	return 0;
}

/* Of a member that is left out; libarchive unpacks to skip, so the limits hold here, too. */
static int skip_data(struct unpack *u, struct archive_entry *en, const char *name, struct err *e)
{
	uint64_t size = archive_entry_size_is_set(en) ? (uint64_t)archive_entry_size(en) : 0;

	if (size > u->rules->max_bytes - u->bytes)
		return refuse_limit(u, name, "makes all files too big", u->rules->max_bytes, e);
	u->bytes += size;
	return 0;
}

static int unpack_member(struct unpack *u, struct archive_entry *en, struct err *e)
{
	const char *name = archive_entry_pathname(en);
	struct attr a = {0};
	bool pruned;
	int mapped;

	if (!name)
		return refuse(u, "", "has no name", e);
	if (++u->members > u->rules->max_entries)
		return refuse_limit(u, name, "is one too many", u->rules->max_entries, e);
	u->names += strlen(name);
	mapped = map_path(u, name, u->path, e);
	if (mapped > 0 && u->rules->keep && !u->rules->keep(u->rules->keep_ctx, u->path))
		mapped = 0;
	if (mapped < 0 || fill_attr(u, en, name, &a, e) < 0)
		return -1;
	if (mapped && !u->path[0] && a.type != NODE_DIR)
		return refuse(u, name, "is the root, but no folder", e);
	if ((a.type == NODE_SYMLINK || a.type == NODE_HARDLINK) &&
		fill_target(u, en, name, &a, e) < 0)
		return -1;
	if (u->names > NAMES_BYTES)
		return refuse_limit(u, name, "makes all names too long", NAMES_BYTES, e);
	pruned = mapped && u->rules->prune && (a.type == NODE_FILE || a.type == NODE_HARDLINK) &&
		 prune_matches(u->rules->prune, u->path);
	if (a.type == NODE_FILE && (!mapped || pruned) && skip_data(u, en, name, e) < 0)
		return -1;
	if (a.type == NODE_FILE && mapped && !pruned &&
		(read_data(u, en, name, e) < 0 || content_end(&u->sink, &u->out->arena, &a, e) < 0))
		return -1;
	if (mapped) {
		struct entry *made = entries_add(u->out, u->path);

		made->a = a;
		made->pruned = pruned;
	}
	return 0;
}

static int by_path(const void *a, const void *b)
{
	const struct entry *const *x = a, *const *y = b;

	return strcmp((*x)->path, (*y)->path);
}

static bool same_file(const struct attr *a, const struct attr *b)
{
	if (a->type != NODE_FILE || b->type != NODE_FILE || a->mode != b->mode ||
		a->size != b->size || a->nchunks != b->nchunks || a->nxattrs || b->nxattrs)
		return false;
	for (uint32_t i = 0; i < a->nchunks; i++)
		if (!digest_eq(&a->chunks[i].digest, &b->chunks[i].digest))
			return false;
	return true;
}

static bool may_come_again(
	const struct archive_rules *r, const struct attr *a, const struct attr *b)
{
	return (a->type == NODE_DIR && b->type == NODE_DIR) || (r->same_twice && same_file(a, b));
}

/* One path twice: two programs would not agree on what it is. Folders may come again. */
static int check_duplicates(const struct unpack *u, struct err *e)
{
	size_t n = u->out->n - u->first;
	auto_free const struct entry **v = mem_array(n, sizeof(const struct entry *));

	for (size_t i = 0; i < n; i++)
		v[i] = &u->out->v[u->first + i];
	qsort(v, n, sizeof(const struct entry *), by_path);
	for (size_t i = 1; i < n; i++)
		if (str_eq(v[i - 1]->path, v[i]->path) &&
			!may_come_again(u->rules, &v[i - 1]->a, &v[i]->a))
			return refuse(u, v[i]->path, "is there twice", e);
	return 0;
}

static int unpack_all(struct unpack *u, struct err *e)
{
	struct archive_entry *en;
	int rc;

	/* a warning is about a conversion of names that the C locale does not have: they stay bytes
	 */
	while ((rc = archive_read_next_header(u->archive, &en)) == ARCHIVE_OK || rc == ARCHIVE_WARN)
		if (unpack_member(u, en, e) < 0)
			return -1;
	if (rc != ARCHIVE_EOF)
		return archive_err(u->archive, u->rules->name, e);
	return check_duplicates(u, e);
}

int archive_unpack(struct archive *a, const struct archive_rules *r, struct pool *p,
	struct entries *out, struct err *e)
{
	struct unpack *u = mem_alloc(sizeof(*u));
	locale_t old = uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
	int rc;

	*u = (struct unpack){.archive = a, .rules = r, .out = out, .first = out->n};
	content_init(&u->sink, p);
	rc = unpack_all(u, e);
	content_fini(&u->sink);
	free(u);
	uselocale(old);
	return rc;
}
