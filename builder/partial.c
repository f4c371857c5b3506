#include "builder/partial.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#include "base/mem.h"
#include "base/sys.h"

int partial_prepare(struct store *s, struct err *e)
{
	static const char *const dirs[] = {"cache/partial", "cache/sha256", "cache/sha512"};

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		if (sys_mkdir_p(s->fd, dirs[i], 0755) < 0) {
			err_sys(e, "create %s/%s", s->path, dirs[i]);
			return sys_hint_space(e, s->fd, 0);
		}
	return 0;
}

/* "cache/sha256/HEX" -> "cache/partial/sha256-HEX" */
static void partial_name(struct partial *p)
{
	char final[CACHE_NAME];
	const char *rest = strchr(cache_name(p->in, final), '/') + 1;
	const char *slash = strchr(rest, '/');

	snprintf(p->name, sizeof(p->name), "cache/partial/%.*s-%s", (int)(slash - rest), rest,
		slash + 1);
}

/* Does the name still belong to the open file? Who held the lock before us may have published or
 * deleted it. */
static bool still_named(const struct partial *p, const struct stat *st)
{
	struct stat now;

	return sys_fstatat(p->s->fd, p->name, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
	       now.st_ino == st->st_ino && now.st_dev == st->st_dev;
}

uint64_t partial_limit(const struct partial *p)
{
	return p->in->size ? p->in->size : p->in->max;
}

static int fail(const struct partial *p, const char *verb, struct err *e)
{
	return err_sys(e, "%s: %s %s/%s", p->in->name, verb, p->s->path, p->name);
}

static int take(struct partial *p, struct err *e)
{
	struct stat st;

	if (sys_flock(p->fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? 0 : fail(p, "lock", e);
	if (sys_fstat(p->fd, &st) < 0)
		return fail(p, "stat", e);
	if (!still_named(p, &st))
		return 0;
	p->size = (uint64_t)st.st_size;
	hash_init(&p->hash, p->in->kind);
	if (p->size > partial_limit(p) && partial_restart(p, e) < 0)
		return -1;
	return 1;
}

int partial_open(struct partial *p, struct store *s, const struct input *in, struct err *e)
{
	int rc;

	*p = (struct partial){.s = s, .in = in, .fd = -1};
	partial_name(p);
	p->fd = sys_openat(s->fd, p->name, O_RDWR | O_CREAT | O_NOFOLLOW, 0644);
	if (p->fd < 0) {
		fail(p, "create", e);
		return sys_hint_space(e, s->fd, in->size);
	}
	rc = take(p, e);
	if (rc <= 0)
		partial_close(p);
	return rc;
}

void partial_close(struct partial *p)
{
	sys_close_ref(&p->fd);
}

void partial_discard(struct partial *p)
{
	if (p->fd >= 0)
		(void)sys_unlinkat(p->s->fd, p->name, 0);
	partial_close(p);
}

int partial_rehash(struct partial *p, uint64_t budget, struct err *e)
{
	enum { READ_BLOCK = 256 << 10 };
	auto_free unsigned char *buf = p->hashed < p->size ? mem_alloc(READ_BLOCK) : NULL;

	for (uint64_t did = 0; did < budget && p->hashed < p->size;) {
		ssize_t n = sys_pread(p->fd, buf, READ_BLOCK, (off_t)p->hashed);

		if (n < 0)
			return fail(p, "read", e);
		if (n == 0) /* shorter than it was: somebody else's hand */
			return partial_restart(p, e) < 0 ? -1 : 1;
		hash_add(&p->hash, buf, (size_t)n);
		p->hashed += (uint64_t)n;
		did += (uint64_t)n;
	}
	return p->hashed >= p->size;
}

bool partial_complete(const struct partial *p)
{
	struct hash h = p->hash;

	if (p->in->size)
		return p->size == p->in->size;
	return p->size > 0 && cache_check_digest(p->in, &h, "", NULL) == 0;
}

int partial_add(struct partial *p, const void *data, size_t n, struct err *e)
{
	uint64_t limit = partial_limit(p);

	if (n > limit - p->size)
		return err_set(e, ERR_CORRUPT, "%s: longer than %s of %" PRIu64 " bytes",
			p->in->name, p->in->size ? "its size" : "the limit", limit);
	if (sys_pwrite_all(p->fd, data, n, (off_t)p->size) < 0)
		return fail(p, "write", e);
	hash_add(&p->hash, data, n);
	p->size += n;
	p->hashed += n;
	return 0;
}

int partial_restart(struct partial *p, struct err *e)
{
	if (sys_ftruncate(p->fd, 0) < 0)
		return fail(p, "truncate", e);
	p->size = p->hashed = 0;
	hash_init(&p->hash, p->in->kind);
	return 0;
}

int partial_publish(struct partial *p, const char *where, struct err *e)
{
	char final[CACHE_NAME];
	struct hash h = p->hash;

	if (cache_check_digest(p->in, &h, where, e) < 0)
		return -1;
	if (sys_fdatasync(p->fd) < 0) {
		fail(p, "sync", e);
		return sys_hint_space(e, p->fd, 0);
	}
	if (sys_renameat(p->s->fd, p->name, p->s->fd, cache_name(p->in, final)) < 0)
		return fail(p, "publish", e);
	partial_close(p);
	return 0;
}
