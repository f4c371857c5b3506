#include "images/base64.h"

#include <stdint.h>
#include <string.h>

#include "base/mem.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *base64_encode(const void *data, size_t n)
{
	const uint8_t *p = data;
	char *text = mem_alloc((n + 2) / 3 * 4 + 1), *out = text;

	for (; n > 0; p += 3) {
		size_t have = n < 3 ? n : 3;
		uint32_t bits = (uint32_t)p[0] << 16 | (have > 1 ? (uint32_t)p[1] << 8 : 0) |
				(have > 2 ? p[2] : 0);

		for (unsigned i = 0; i < 4; i++)
			*out++ = (char)(i <= have ? digits[bits >> (18 - 6 * i) & 63] : '=');
		n -= have;
	}
	return text;
}

/* Four digits into at most three bytes. Returns how many, 0 when they are none. */
static size_t decode_group(const char *s, char *out)
{
	uint32_t bits = 0;
	size_t pad = s[3] == '=' ? 1 + (s[2] == '=') : 0;

	for (size_t i = 0; i < 4; i++) {
		const char *digit = i + pad < 4 ? memchr(digits, s[i], 64) : digits;

		if (!digit)
			return 0;
		bits = bits << 6 | (uint32_t)(digit - digits);
	}
	if (bits & ((1U << 8 * pad) - 1))
		return 0; /* bits that no encoder sets */
	for (size_t i = 0; i < 3 - pad; i++)
		out[i] = (char)(bits >> (16 - 8 * i) & 255);
	return 3 - pad;
}

char *base64_decode(const char *text, size_t *n)
{
	size_t len = strlen(text);
	char *out = len % 4 == 0 ? mem_alloc(len / 4 * 3 + 1) : NULL;

	*n = 0;
	for (size_t i = 0; out && i < len; i += 4) {
		size_t got = decode_group(text + i, out + *n);

		if (got == 0 || (got < 3 && i + 4 < len)) {
			explicit_bzero(out, *n);
			free(out);
			*n = 0;
			return NULL;
		}
		*n += got;
	}
	return out;
}
