/* Byte ranges as HTTP writes them. Source: RFC 9110 14.1.2 (Range), 14.4 (Content-Range). */
#ifndef IMAGES_RANGE_H
#define IMAGES_RANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* What an answer says of the bytes it carries. */
struct range {
	bool satisfied;       /* false: "bytes *" + "/1234", which carries none (416) */
	uint64_t first, last; /* both inclusive */
	bool has_total;
	uint64_t total; /* the whole's length */
};

enum { RANGE_TEXT = 80 };

/* The value of Content-Range: "bytes 100-199/200", "bytes 100-199" + "/" + "*". Case of the unit
 * and blanks around do not matter. -1 for other units, and for what RFC 9110 14.4 calls invalid:
 * last before first, or total not beyond last. */
int range_parse(struct range *r, const char *s) must_check;
/* A whole header line, ending as it may. 1 and the range, 0 when it is another header, -1. */
int range_header(struct range *r, const char *line, size_t n) must_check;
/* As Content-Range has it: what range_parse() reads. Returns out. */
char *range_print(const struct range *r, char out[RANGE_TEXT]);
/* "100-199", for CURLOPT_RANGE. Returns out. */
char *range_ask(uint64_t first, uint64_t last, char out[RANGE_TEXT]);

#endif
