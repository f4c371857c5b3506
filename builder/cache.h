/* The content cache of inputs: ROOT/cache/sha256/HEX and ROOT/cache/sha512/HEX. A file there was
 * verified before it got its name. */
#ifndef BUILDER_CACHE_H
#define BUILDER_CACHE_H

#include "images/digest.h"
#include "images/progress.h"
#include "images/store.h"

/* One thing to have. Either digest is what it is verified against. */
struct input {
	const char *name;    /* for people: "libc6 2.36-9" */
	const char *url;     /* resolved address */
	enum hash_kind kind; /* HASH_SHA256 or HASH_SHA512 */
	uint8_t digest[HASH_MAX];
	uint64_t size; /* exact; 0: unknown, then max bounds it */
	uint64_t max;
	/* What authorises the fetch, never sent to another host: the value of the header
	 * Authorization, or for S3 "KEY:SECRET", with which requests are signed. NULL: nothing. */
	const char *authorization, *s3_key;
};

/* Where the verified file of an input lies, below the store: "cache/sha256/HEX". Returns out. */
enum { CACHE_NAME = 16 + 2 * HASH_MAX };
char *cache_name(const struct input *in, char out[CACHE_NAME]);

/* Is it there? Opens it: fd, -1 with NOT_FOUND. */
int cache_open(struct store *s, const struct input *in, struct err *e) must_check;
bool cache_has(struct store *s, const struct input *in);

/* Fetch what is missing of in[0..n), in parallel (libcurl multi, keep-alive), resuming partial
 * files of an earlier run, verified before use. Retries 5xx, 429 (Retry-After) and broken
 * transfers. Errors: NOT_FOUND (404; hint: lock again), CORRUPT (name, address, expected and found
 * digest), NETWORK, SYSTEM (full disk: which, how much). Nothing that did not verify is left. */
int cache_fetch(struct store *s, const struct input *in, size_t n, struct progress *p,
	struct err *e) must_check;

/* Re-hash an open cached file and drop it from the cache when it is not what it should be (CORRUPT;
 * the next run fetches it again). */
int cache_verify(struct store *s, const struct input *in, int fd, struct err *e) must_check;

/* Is what h saw what in is to be? CORRUPT names it, `where` it came from, the expected and the
 * found digest. Uses h up. */
int cache_check_digest(
	const struct input *in, struct hash *h, const char *where, struct err *e) must_check;

#endif
