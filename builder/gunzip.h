/* A tar in gzip, inflated by isa-l, which is several times faster than zlib.
 * Source: RFC 1952 (members one after the other are one stream). */
#ifndef BUILDER_GUNZIP_H
#define BUILDER_GUNZIP_H

#include <stdint.h>

#include "base/err.h"

struct archive;
struct gunzip;

/* Read the whole of fd, from its beginning; it stays the caller's. More than `max` bytes of output,
 * a truncated stream and a wrong checksum are CORRUPT. */
struct gunzip *gunzip_new(int fd, const char *name, uint64_t max) __attribute__((returns_nonnull));
void gunzip_free(struct gunzip *z);

#define auto_gunzip __attribute__((cleanup(gunzip_free_ref)))
void gunzip_free_ref(struct gunzip **z);

/* A libarchive reader of the tar in z, which must stay. */
struct archive *gunzip_tar(struct gunzip *z, struct err *e) must_check;

/* Inflate what the reader left behind the end of the tar: proves the checksum of all. */
int gunzip_finish(struct gunzip *z, struct err *e) must_check;

#endif
