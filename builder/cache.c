#include "builder/cache.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/file.h"
#include "base/sys.h"
#include "builder/fetch.h"

static const struct {
	const char *name;
	size_t size;
} kinds[] = {[HASH_SHA256] = {"sha256", 32}, [HASH_SHA512] = {"sha512", 64}};

static const char *kind_name(const struct input *in)
{
	assert((size_t)in->kind < sizeof(kinds) / sizeof(kinds[0]));
	return kinds[in->kind].name;
}

char *cache_name(const struct input *in, char out[CACHE_NAME])
{
	int n = snprintf(out, CACHE_NAME, "cache/%s/", kind_name(in));

	hex_encode(in->digest, kinds[in->kind].size, out + n);
	return out;
}

bool cache_has(struct store *s, const struct input *in)
{
	char name[CACHE_NAME];

	return faccessat(s->fd, cache_name(in, name), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int cache_open(struct store *s, const struct input *in, struct err *e)
{
	char name[CACHE_NAME];
	int fd = sys_openat(s->fd, cache_name(in, name), O_RDONLY | O_NOFOLLOW, 0);

	return fd < 0 ? err_sys(e, "%s: open %s/%s", in->name, s->path, name) : fd;
}

int cache_fetch(
	struct store *s, const struct input *in, size_t n, struct progress *p, struct err *e)
{
	return fetch_all(s, in, n, &fetch_defaults, p, e);
}

/* ---- verifying ---- */

/* Out of the cache, so that the next run fetches it again. */
static int drop(struct store *s, const char *name, struct err *e)
{
	if (sys_unlinkat(s->fd, name, 0) < 0 && errno != ENOENT)
		return err_hint(e, "delete %s/%s and try again", s->path, name);
	return err_hint(e, "it was deleted; the next run fetches it again");
}

int cache_check_digest(const struct input *in, struct hash *h, const char *where, struct err *e)
{
	char want[2 * HASH_MAX + 1], got[2 * HASH_MAX + 1];
	uint8_t found[HASH_MAX];
	size_t n = hash_final(h, found);

	if (memcmp(found, in->digest, n) == 0)
		return 0;
	hex_encode(in->digest, n, want);
	hex_encode(found, n, got);
	return err_set(e, ERR_CORRUPT, "%s: %s: expected %s:%s, found %s:%s", in->name, where,
		kind_name(in), want, kind_name(in), got);
}

int cache_verify(struct store *s, const struct input *in, int fd, struct err *e)
{
	char name[CACHE_NAME];
	auto_free char *where = mem_printf("%s/%s", s->path, cache_name(in, name));
	struct stat st;
	struct hash h;

	if (sys_fstat(fd, &st) < 0)
		return err_sys(e, "stat %s", where);
	if (in->size && (uint64_t)st.st_size != in->size) {
		err_set(e, ERR_CORRUPT, "%s: %s: expected %" PRIu64 " bytes, found %" PRIu64,
			in->name, where, in->size, (uint64_t)st.st_size);
		return drop(s, name, e);
	}
	hash_init(&h, in->kind);
	if (hash_add_file(fd, where, &h, e) < 0)
		return -1;
	return cache_check_digest(in, &h, where, e) < 0 ? drop(s, name, e) : 0;
}
