/* Whole small files: read with a ceiling, published atomically. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/mem.h"

/* Append the whole of a file of ours to b, whose max bounds it. */
int file_read(int dirfd, const char *path, struct buf *b, struct err *e) must_check;
int file_read_fd(int fd, const char *name, struct buf *b, struct err *e) must_check;

/* Write to a temporary file in the same folder, sync, rename over path: after a crash there is the
 * old file or the new one. */
int file_write(int dirfd, const char *path, const void *p, size_t n, mode_t mode,
	struct err *e) must_check;

/* An unnamed file in the folder dirfd for file_publish(). Falls back to a temporary name on file
 * systems without O_TMPFILE: `tmp` then holds it, else it is "". */
enum { FILE_TMP_NAME = 64 };
int file_tmp(int dirfd, char tmp[FILE_TMP_NAME], mode_t mode, struct err *e) must_check;
/* fdatasync and give it its name. An existing file of that name is replaced or (content addressed)
 * left. path has no folder part. */
int file_publish(int dirfd, int fd, const char *tmp, const char *path, bool replaces,
	struct err *e) must_check;
/* The same without waiting for the disk: for what is checked when it is read. */
int file_name(int dirfd, int fd, const char *tmp, const char *path, bool replaces,
	struct err *e) must_check;

#endif
