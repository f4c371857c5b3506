/* A compressed blob as a stream: bytes of a source in, what they unpack to out. gzip (isa-l):
 * several members, zeros behind them. zstd: several frames, skippable ones among them, windows up
 * to 128 MiB. Source: RFC 1952, RFC 8878. */
#ifndef IMAGES_DECOMPRESS_H
#define IMAGES_DECOMPRESS_H

#include "images/layer.h"
#include "images/source.h"

struct decompress;

/* Unless the codec is NONE, a span that it gives stays as it is for so many calls after the next.
 */
enum { DECOMPRESS_LAG = 2 };

/* `in` (read to its end) and name must stay. Errors of the stream: CORRUPT for more than max bytes,
 * for what ends early, for a wrong checksum and anything else that is not as it should be. */
struct decompress *decompress_new(
	enum codec c, struct source *in, uint64_t max, const char *name, struct err *e) must_check;
void decompress_free(struct decompress *d);
struct source *decompress_source(struct decompress *d);

#endif
