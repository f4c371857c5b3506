/* Digests and hashing (libcrypto's plain functions: no provider is loaded, nothing to set up).
 * Source: image-spec descriptor.md "Digests". */
#ifndef IMAGES_DIGEST_H
#define IMAGES_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { DIGEST_SIZE = 32, DIGEST_HEX = 64, DIGEST_TEXT = 7 + 64 };

/* A sha256. */
struct digest {
	uint8_t b[DIGEST_SIZE];
};

/* 64 lower-case hex digits and a NUL. Returns out. */
char *digest_hex(const struct digest *d, char out[DIGEST_HEX + 1]);
/* "sha256:" + hex and a NUL. Returns out. */
char *digest_text(const struct digest *d, char out[DIGEST_TEXT + 1]);
/* Exactly 64 lower-case hex digits. */
int digest_from_hex(struct digest *d, const char *hex) must_check;
/* Exactly "sha256:" and 64 lower-case hex digits; CORRUPT otherwise. */
int digest_parse(struct digest *d, const char *text, struct err *e) must_check;
bool digest_eq(const struct digest *a, const struct digest *b);
struct digest digest_of(const void *p, size_t n);
/* 0 when the two are equal, else CORRUPT: "fmt: expected sha256:..., found sha256:...". */
int digest_check(const struct digest *want, const struct digest *found, struct err *e,
	const char *fmt, ...) printf_like(4, 5) must_check;

/* Streaming hash. */
enum hash_kind { HASH_SHA256, HASH_SHA384, HASH_SHA512, HASH_MD5 };
enum { HASH_MAX = 64 };

struct hash {
	enum hash_kind kind;
	_Alignas(16) unsigned char state[256];
};

void hash_init(struct hash *h, enum hash_kind kind);
void hash_add(struct hash *h, const void *p, size_t n);
/* Returns the length: 32, 48, 64 or 16. h must be initialised again before more use. */
size_t hash_final(struct hash *h, uint8_t out[HASH_MAX]);
struct digest hash_digest(struct hash *h);              /* SHA256 only */
void hex_encode(const uint8_t *p, size_t n, char *out); /* 2n characters and a NUL */

/* Add all of fd, from its start, to h. The position of fd stays. */
int hash_add_file(int fd, const char *name, struct hash *h, struct err *e) must_check;

#endif
