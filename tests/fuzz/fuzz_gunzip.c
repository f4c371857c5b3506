/* Any bytes as a gzip: it ends, within the limit, and the same way when it is read again. */
#include <assert.h>
#include <sys/mman.h>

#include "base/sys.h"
#include "builder/gunzip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_fd int fd = memfd_create("gzip", MFD_CLOEXEC);
	int rc[2];

	assert(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
	if (sys_pwrite_all(fd, data, size, 0) < 0)
		return 0;
	for (int i = 0; i < 2; i++) {
		struct gunzip *z = gunzip_new(fd, "gzip", 4 << 20);
		struct err e = {0};

		rc[i] = gunzip_finish(z, &e);
		assert(rc[i] == 0 || e.kind == ERR_CORRUPT);
		gunzip_free(z);
	}
	assert(rc[0] == rc[1]);
	return 0;
}
