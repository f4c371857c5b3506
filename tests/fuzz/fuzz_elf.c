/* Any bytes as a program, a library, and the loader's configuration: what is needed is read and
 * looked for, or the file is damaged. */
#include <assert.h>
#include <fcntl.h>
#include <string.h>

#include "base/str.h"
#include "base/sys.h"
#include "builder/elf-file.h"
#include "builder/elf-needs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[] = "/tmp/svrun-fuzz-XXXXXX";
static struct pool *pool;

static void clean_up(void)
{
	pool_close(pool);
	if (sys_remove_tree(AT_FDCWD, dir) < 0)
		abort();
}

static struct pool *get_pool(void)
{
	if (!pool) {
		auto_fd int fd = -1;

		assert(mkdtemp(dir));
		fd = sys_open(dir, O_RDONLY | O_DIRECTORY, 0);
		pool = pool_open(fd, true, NULL);
		assert(pool);
		atexit(clean_up);
	}
	return pool;
}

static void put(struct tree *t, const char *path, const void *p, size_t n)
{
	struct chunk c = {.layer = CHUNK_NO_LAYER};
	struct attr a = {.type = NODE_FILE, .mode = 0755, .size = n, .nchunks = 1, .chunks = &c};

	assert(pool_put(get_pool(), p, (uint32_t)n, &c, NULL) == 0);
	assert(tree_put(t, path, &a, 0, NULL));
}

static void check(const struct elf_unresolved *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		assert(v[i].path[0] == '/');
		assert(!v[i].damaged || str_starts(v[i].library, "damaged ELF file: "));
		assert(strlen(v[i].library) < 2 * STR_SHOWN);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tree *t = tree_new();
	const struct rootfs r = {.tree = t, .pool = get_pool()};
	struct arena a = {0};
	struct elf_unresolved *v;
	struct err e = {0};
	size_t n;

	if (size > 0 && size <= CHUNK_SIZE) {
		put(t, "bin/x", data, size);
		put(t, "usr/lib/liba.so", data, size);
		put(t, "etc/ld.so.cache", data, size);
		put(t, "etc/ld.so.conf", data, size);
		put(t, "lib/ld-linux.so.2", data, size);
		tree_sort(t);
		if (elf_unresolved(&r, NULL, "/opt", &a, &v, &n, &e) == 0)
			check(v, n);
		else
			assert(e.kind == ERR_CORRUPT);
	}
	arena_fini(&a);
	tree_free(t);
	return 0;
}
