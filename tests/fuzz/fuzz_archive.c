/* Whatever the bytes: reading an archive does not crash, and what it accepts is an image whose
 * blobs are all there; what it refuses leaves no blob. */
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "images/archive-load.h"
#include "images/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct store store;
static char path[] = "/dev/shm/svrun-fuzz-XXXXXX"; /* in memory: syncing costs nothing there */

static void remove_store(void)
{
	sys_remove_tree(AT_FDCWD, path);
}

static void open_store(void)
{
	struct err e = {0};

	if (!mkdtemp(path) || store_open(&store, path, true, &e) < 0) {
		fprintf(stderr, "%s: %s\n", path, e.text);
		abort();
	}
	atexit(remove_store);
}

static void check_images(const struct archive_images *l)
{
	for (size_t i = 0; i < l->n; i++) {
		struct image im;

		if (image_load(&im, &store, &l->v[i].manifest, NULL) < 0)
			continue; /* it is checked more closely than before */
		for (size_t k = 0; k < im.nlayers; k++)
			assert(store_has(&store, &im.layers[k].digest));
		image_fini(&im);
	}
}

static void read_archive(int fd)
{
	struct archive_images l = {0};
	struct intake in;
	struct intake_file f;
	struct err e = {0};

	if (intake_stream(&in, &store, fd, "input", NULL, &e) == 0) {
		int rc = intake_find(&in, "index.json", &f, &e);

		rc = rc > 0   ? oci_archive_images(&in, NULL, &l, &e)
		     : rc < 0 ? -1
			      : docker_archive_images(&in, &l, &e);
		if (rc == 0)
			check_images(&l);
		else
			assert(e.kind == ERR_CORRUPT || e.kind == ERR_UNSUPPORTED ||
				e.kind == ERR_NOT_FOUND);
	} else {
		assert(e.kind == ERR_CORRUPT);
	}
	archive_images_fini(&l);
	intake_fini(&in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	int fd = memfd_create("input", MFD_CLOEXEC);

	if (!store.path)
		open_store();
	if (fd < 0 || sys_write_all(fd, data, n) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		abort();
	read_archive(fd);
	close(fd);
	return 0;
}
