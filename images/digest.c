/* The low-level functions are deprecated in favour of EVP, which loads providers (milliseconds) and
 * drags all of libcrypto into a static binary. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "images/digest.h"

#include <assert.h>
#include <openssl/md5.h>
#include <openssl/sha.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/sys.h"

static_assert(sizeof(SHA512_CTX) <= sizeof(((struct hash *)0)->state), "state fits");
static_assert(sizeof(SHA256_CTX) <= sizeof(((struct hash *)0)->state), "state fits");
static_assert(sizeof(MD5_CTX) <= sizeof(((struct hash *)0)->state), "state fits");

void hex_encode(const uint8_t *p, size_t n, char *out)
{
	static const char hex[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		out[2 * i] = hex[p[i] >> 4];
		out[2 * i + 1] = hex[p[i] & 15];
	}
	out[2 * n] = '\0';
}

char *digest_hex(const struct digest *d, char out[DIGEST_HEX + 1])
{
	hex_encode(d->b, DIGEST_SIZE, out);
	return out;
}

char *digest_text(const struct digest *d, char out[DIGEST_TEXT + 1])
{
	memcpy(out, "sha256:", 7);
	digest_hex(d, out + 7);
	return out;
}

static int nibble(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

int digest_from_hex(struct digest *d, const char *hex)
{
	for (size_t i = 0; i < DIGEST_SIZE; i++) {
		int hi = nibble(hex[2 * i]), lo = hi < 0 ? -1 : nibble(hex[2 * i + 1]);

		if (lo < 0)
			return -1;
		d->b[i] = (uint8_t)(hi << 4 | lo);
	}
	return hex[DIGEST_HEX] == '\0' ? 0 : -1;
}

int digest_parse(struct digest *d, const char *text, struct err *e)
{
	if (strncmp(text, "sha256:", 7) != 0 || digest_from_hex(d, text + 7) < 0)
		return err_set(e, ERR_CORRUPT,
			"'%.80s' is not sha256: and 64 lower-case hex digits", text);
	return 0;
}

bool digest_eq(const struct digest *a, const struct digest *b)
{
	return memcmp(a->b, b->b, DIGEST_SIZE) == 0;
}

struct digest digest_of(const void *p, size_t n)
{
	SHA256_CTX c; /* not SHA256(): that one goes through EVP */
	struct digest d;

	SHA256_Init(&c);
	SHA256_Update(&c, p, n);
	SHA256_Final(d.b, &c);
	return d;
}

int digest_check(
	const struct digest *want, const struct digest *found, struct err *e, const char *fmt, ...)
{
	char w[DIGEST_TEXT + 1], f[DIGEST_TEXT + 1], what[1024];
	va_list ap;

	if (digest_eq(want, found))
		return 0;
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return err_set(e, ERR_CORRUPT, "%s: expected %s, found %s", what, digest_text(want, w),
		digest_text(found, f));
}

void hash_init(struct hash *h, enum hash_kind kind)
{
	h->kind = kind;
	switch (kind) {
	case HASH_SHA256:
		SHA256_Init((SHA256_CTX *)(void *)h->state);
		return;
	case HASH_SHA384:
		SHA384_Init((SHA512_CTX *)(void *)h->state);
		return;
	case HASH_SHA512:
		SHA512_Init((SHA512_CTX *)(void *)h->state);
		return;
	case HASH_MD5:
		MD5_Init((MD5_CTX *)(void *)h->state);
		return;
	}
}

void hash_add(struct hash *h, const void *p, size_t n)
{
	switch (h->kind) {
	case HASH_SHA256:
		SHA256_Update((SHA256_CTX *)(void *)h->state, p, n);
		return;
	case HASH_SHA384:
		SHA384_Update((SHA512_CTX *)(void *)h->state, p, n);
		return;
	case HASH_SHA512:
		SHA512_Update((SHA512_CTX *)(void *)h->state, p, n);
		return;
	case HASH_MD5:
		MD5_Update((MD5_CTX *)(void *)h->state, p, n);
		return;
	}
}

size_t hash_final(struct hash *h, uint8_t out[HASH_MAX])
{
	switch (h->kind) {
	case HASH_SHA256:
		SHA256_Final(out, (SHA256_CTX *)(void *)h->state);
		return 32;
	case HASH_SHA384:
		SHA384_Final(out, (SHA512_CTX *)(void *)h->state);
		return 48;
	case HASH_SHA512:
		SHA512_Final(out, (SHA512_CTX *)(void *)h->state);
		return 64;
	case HASH_MD5:
		MD5_Final(out, (MD5_CTX *)(void *)h->state);
		return 16;
	}
	return 0;
}

struct digest hash_digest(struct hash *h)
{
	uint8_t out[HASH_MAX];
	struct digest d;

	assert(h->kind == HASH_SHA256);
	hash_final(h, out);
	memcpy(d.b, out, DIGEST_SIZE);
	return d;
}

int hash_add_file(int fd, const char *name, struct hash *h, struct err *e)
{
	enum { READ_BLOCK = 256 << 10 };
	auto_free unsigned char *buf = mem_alloc(READ_BLOCK);
	off_t at = 0;
	ssize_t n;

	while ((n = sys_pread(fd, buf, READ_BLOCK, at)) > 0) {
		hash_add(h, buf, (size_t)n);
		at += n;
	}
	return n < 0 ? err_sys(e, "read %s", name) : 0;
}
