#include "builder/content.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "base/sys.h"

void content_init(struct content *c, struct pool *p)
{
	*c = (struct content){.pool = p, .buf = mem_alloc(CHUNK_SIZE)};
}

void content_fini(struct content *c)
{
	free(c->buf);
	free(c->chunks);
}

void content_begin(struct content *c)
{
	c->fill = 0;
	c->size = 0;
	c->n = 0;
}

static int content_flush(struct content *c, struct err *e)
{
	if (c->fill == 0)
		return 0;
	if (c->n >= UINT32_MAX)
		return err_set(e, ERR_CORRUPT, "more than %" PRIu32 " chunks", UINT32_MAX);
	mem_grow(&c->chunks, &c->cap, c->n);
	c->chunks[c->n] = (struct chunk){.block = CHUNK_NO_BLOCK, .layer = CHUNK_NO_LAYER};
	if (pool_put(c->pool, c->buf, c->fill, &c->chunks[c->n], e) < 0)
		return -1;
	c->n++;
	c->fill = 0;
	return 0;
}

int content_add(struct content *c, const void *data, uint64_t n, struct err *e)
{
	const unsigned char *p = data;

	while (n > 0) {
		uint32_t room = CHUNK_SIZE - c->fill;
		uint32_t k = n < room ? (uint32_t)n : room;

		if (p) {
			memcpy(c->buf + c->fill, p, k);
			p += k;
		} else {
			memset(c->buf + c->fill, 0, k);
		}
		c->fill += k;
		c->size += k;
		n -= k;
		if (c->fill == CHUNK_SIZE && content_flush(c, e) < 0)
			return -1;
	}
	return 0;
}

int content_end(struct content *c, struct arena *arena, struct attr *a, struct err *e)
{
	if (content_flush(c, e) < 0)
		return -1;
	a->size = c->size;
	a->nchunks = (uint32_t)c->n;
	a->chunks = c->n ? arena_dup(arena, c->chunks, c->n * sizeof(*c->chunks)) : NULL;
	return 0;
}

int content_from_fd(int fd, const char *name, struct pool *p, struct arena *arena, struct attr *a,
	struct digest *sha256, struct err *e)
{
	auto_content struct content c;
	struct hash h;
	ssize_t n;

	content_init(&c, p);
	hash_init(&h, HASH_SHA256);
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	while ((n = sys_read(fd, c.buf + c.fill, CHUNK_SIZE - c.fill)) > 0) {
		if (sha256)
			hash_add(&h, c.buf + c.fill, (size_t)n);
		c.fill += (uint32_t)n;
		c.size += (uint64_t)n;
		if (c.fill == CHUNK_SIZE && content_flush(&c, e) < 0)
			return err_ctx(e, "%s", name);
	}
	if (n < 0)
		return err_sys(e, "read %s", name);
	if (sha256)
		*sha256 = hash_digest(&h);
	return content_end(&c, arena, a, e) < 0 ? err_ctx(e, "%s", name) : 0;
}

int content_from_mem(const void *data, size_t n, struct pool *p, struct arena *arena,
	struct attr *a, struct err *e)
{
	const unsigned char *bytes = data;
	size_t count = n / CHUNK_SIZE + (n % CHUNK_SIZE != 0);

	a->size = n;
	a->nchunks = (uint32_t)count;
	a->chunks = count ? arena_alloc(arena, count * sizeof(*a->chunks)) : NULL;
	for (size_t i = 0; i < count; i++) {
		size_t at = i * CHUNK_SIZE, k = n - at < CHUNK_SIZE ? n - at : CHUNK_SIZE;

		a->chunks[i] = (struct chunk){.block = CHUNK_NO_BLOCK, .layer = CHUNK_NO_LAYER};
		if (pool_put(p, bytes + at, (uint32_t)k, &a->chunks[i], e) < 0)
			return -1;
	}
	return 0;
}
