/* base64 as RFC 4648 section 4 has it: padded, nothing else between. */
#ifndef IMAGES_BASE64_H
#define IMAGES_BASE64_H

#include <stddef.h>

#include "base/err.h"

/* To free(). */
char *base64_encode(const void *p, size_t n);
/* The bytes of text, with a NUL behind them; to free(). NULL when it is not base64. */
char *base64_decode(const char *text, size_t *n) must_check;

#endif
