/* Any bytes as a Debian package: it is refused, or its entries can be merged into a tree and make a
 * database. The first byte chooses between the outer ar and a plain control.tar + data.tar cut in
 * two, which reaches further. */
#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "base/sys.h"
#include "builder/dpkg.h"

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

static void put_member(int fd, const char *name, const uint8_t *p, size_t n)
{
	char h[61];

	snprintf(h, sizeof(h), "%-16s%-12d%-6d%-6d%-8s%-10zu`\n", name, 0, 0, 0, "100644", n);
	assert(sys_write_all(fd, h, 60) == 0 && sys_write_all(fd, p, n) == 0);
	assert((n & 1) == 0 || sys_write_all(fd, "\n", 1) == 0);
}

static int make_file(const uint8_t *data, size_t size)
{
	int fd = memfd_create("deb", MFD_CLOEXEC);
	size_t half = size / 2 / 512 * 512;

	assert(fd >= 0);
	if (data[0] & 1) {
		assert(sys_write_all(fd, data + 1, size - 1) == 0);
		return fd;
	}
	assert(sys_write_all(fd, "!<arch>\n", 8) == 0);
	put_member(fd, "debian-binary", (const uint8_t *)"2.0\n", 4);
	put_member(fd, "control.tar", data + 1, half);
	put_member(fd, "data.tar", data + 1 + half, size - 1 - half);
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct manifest_apt apt = {.present = true, .merge_usr = true};
	auto_fd int fd = size < 2 ? -1 : make_file(data, size);
	const struct deb *all[1];
	struct err e = {0};
	struct deb d;

	if (fd < 0)
		return 0;
	all[0] = &d;
	if (deb_unpack(&d, fd, "deb", NULL, get_pool(), &e) < 0) {
		assert(e.kind == ERR_CORRUPT || e.kind == ERR_UNSUPPORTED);
	} else {
		struct tree *t = tree_new();

		if (dpkg_prepare(t, &apt, &e) == 0 && dpkg_merge(t, &d, 1, all, 1, &e) == 0 &&
			dpkg_finish(t, &apt, all, 1, pool, 1, 0, &e) == 0)
			tree_sort(t);
		tree_free(t);
	}
	deb_fini(&d);
	return 0;
}
