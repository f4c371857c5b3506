/* Small files and folders of the host, read with limits and without a way out of where they are.
 * path begins with "proc/", "sys/" or "dev/": below the host's folder of that name (host.h). What
 * is not there is no error: 0. */
#ifndef GPU_HOST_FILES_H
#define GPU_HOST_FILES_H

#include "base/mem.h"
#include "gpu/host.h"

struct stat;

/* All of a file of at most b->max bytes. 1; 0: it is not there. Errors: CORRUPT (larger, no regular
 * file), SYSTEM. */
int host_text(const struct gpu_host *h, const char *path, struct buf *b, struct err *e) must_check;

/* Its first line without the line's end. 1, 0; CORRUPT when it does not fit. */
int host_line(const struct gpu_host *h, const char *path, char *out, size_t size,
	struct err *e) must_check;

/* The names in a folder, without those that begin with a dot, numbers within in their order (gi2
 * before gi10); at most max of them. 1, 0; CORRUPT: there are more. */
int host_names(const struct gpu_host *h, const char *path, size_t max, struct strings *names,
	struct arena *mem, struct err *e) must_check;

/* lstat of a path. 1, 0. */
int host_stat(
	const struct gpu_host *h, const char *path, struct stat *st, struct err *e) must_check;

/* Where a link in sys leads, as realpath(3) has it below sys: "devices/pci0000:00/0000:00:1e.0". 1,
 * 0. */
int host_real(const struct gpu_host *h, const char *path, char *out, size_t size,
	struct err *e) must_check;

#endif
