/* Any bytes as a layer blob, the first one says of which codec: unpacking ends, and gives the same
 * list as its tar does alone; a list can be laid over a tree. */
#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "images/decompress.h"
#include "images/unpack.h"
#include "tests/unit/tar-make.h"

enum { PLAIN_MAX = 4 << 20, SESSION = 2000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[] = "/tmp/svrun-fuzz-XXXXXX";
static int folder_fd = -1;
static struct pool *pool;
static struct sink *sink;

static void end_session(void)
{
	sink_free(sink);
	pool_close(pool);
	sink = NULL;
	pool = NULL;
}

static void clean_up(void)
{
	end_session();
	(void)sys_remove_tree(AT_FDCWD, folder);
}

/* What a session has put is given back when it ends. */
static void have_session(void)
{
	static unsigned n;
	struct err e = {0};

	if (folder_fd < 0) {
		if (!mkdtemp(folder))
			abort();
		folder_fd = sys_open(folder, O_RDONLY | O_DIRECTORY, 0);
		atexit(clean_up);
	}
	if (n++ % SESSION == 0)
		end_session();
	if (!pool)
		pool = pool_open(folder_fd, true, &e);
	if (!pool)
		abort();
	if (!sink)
		sink = sink_new(pool, 1, 4 << 20);
}

/* 0 and the plain bytes. */
static int plain(enum codec c, const uint8_t *p, size_t n, size_t step, struct buf *out)
{
	struct err e = {0};
	struct mem_source m;
	struct decompress *d;
	const void *q;
	size_t k;
	int rc;

	mem_source_init(&m, p, n, step);
	d = decompress_new(c, &m.source, PLAIN_MAX, "fuzz", &e);
	if (!d)
		abort();
	while ((rc = source_next(decompress_source(d), &q, &k, &e)) > 0)
		buf_put(out, q, k);
	assert(rc == 0 || e.kind == ERR_CORRUPT);
	decompress_free(d);
	mem_source_fini(&m);
	return rc;
}

/* Unpack into bytes that stand for the list. A sink that failed would fail for ever. */
static int unpack(enum codec c, const void *p, size_t n, size_t step, struct buf *out)
{
	struct unpack u = {.name = "fuzz", .codec = c, .size = n, .digest = digest_of(p, n)};
	struct entries l = {0};
	struct err e = {0};
	struct mem_source m;
	int rc;

	mem_source_init(&m, p, n, step);
	rc = unpack_layer(&u, &m.source, sink, &l, &e);
	mem_source_fini(&m);
	assert(rc == 0 || e.kind == ERR_CORRUPT || e.kind == ERR_UNSUPPORTED);
	if (rc == 0) {
		struct tree *t = tree_new();

		assert(entries_encode(&l, out, &e) == 0);
		assert(entries_apply(t, &l, 0, &e) == 0 || e.kind == ERR_CORRUPT);
		tree_sort(t);
		tree_free(t);
	}
	entries_fini(&l);
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf tar = BUF_INIT(PLAIN_MAX), one = BUF_INIT(256 << 20), two = BUF_INIT(256 << 20);
	enum codec c;

	if (size < 2)
		return 0;
	have_session();
	c = (enum codec)(data[0] % 3);
	data++;
	size--;
	if (plain(c, data, size, 0, &tar) == 0) {
		int rc = unpack(CODEC_NONE, tar.data, tar.len, 0, &one);

		/* the limits of what it adds up to depend on the blob's size: both are small */
		assert(unpack(c, data, size, 100, &two) == rc);
		assert(one.len == two.len &&
			(one.len == 0 || memcmp(one.data, two.data, one.len) == 0));
	}
	buf_fini(&tar);
	buf_fini(&one);
	buf_fini(&two);
	return 0;
}
