/* Zip archives, read from their central directory; every local header must say the same, and no two
 * members may share bytes, so that no other reader can see other files in it.
 *
 * Refused as CORRUPT (SV170): encryption, several disks, methods other than stored and deflate,
 * anything between the end record and the end of the file, sizes and CRCs that disagree. SV172:
 * more members or more bytes than the limits. Source: PKWARE APPNOTE 6.3 4.3, 4.4, 4.5.3 (zip64).
 */
#ifndef BUILDER_ZIP_H
#define BUILDER_ZIP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

struct zip_member {
	const char *name; /* without NUL; nothing else is checked of it */
	uint16_t method, flags;
	uint32_t crc, external; /* external: attributes; Unix modes are in the high half */
	uint64_t size, packed;
	uint64_t header, data; /* offsets of its local header and of its bytes */
};

struct zip {
	struct arena arena;
	int fd;           /* borrowed */
	const char *name; /* as errors show it; borrowed */
	uint64_t length;
	struct zip_member *v; /* in the order of the central directory */
	size_t n;
};

struct zip_limits {
	size_t members;
	uint64_t file, all; /* bytes, unpacked */
};

#define auto_zip __attribute__((cleanup(zip_close)))
/* fd must be a regular file and stay open. */
int zip_open(struct zip *z, int fd, const char *name, const struct zip_limits *l,
	struct err *e) must_check;
void zip_close(struct zip *z);

/* Unpack one member piece by piece, to `take`; -1 of it ends the reading. Size and CRC are checked.
 * Thread-safe for one zip. */
int zip_read(const struct zip *z, const struct zip_member *m,
	int (*take)(void *ctx, const void *data, size_t n, struct err *e), void *ctx,
	struct err *e) must_check;
/* A whole small member, at most b->max. */
int zip_read_all(
	const struct zip *z, const struct zip_member *m, struct buf *b, struct err *e) must_check;

/* Is it a regular file, said in so many bits, with one of 0111? */
bool zip_is_executable(const struct zip_member *m);
/* S_IFLNK and the like; 0: not said. */
uint32_t zip_type(const struct zip_member *m);

#endif
