/* An input on its way into the cache: ROOT/cache/partial/KIND-HEX. It is named after what it is to
 * become, so that the next run goes on where this one was stopped, kill -9 included; and locked
 * (flock) by who fetches it, so that two processes do the work once. Nothing gets its final name
 * before its digest matched and its data are on the disk. */
#ifndef BUILDER_PARTIAL_H
#define BUILDER_PARTIAL_H

#include "builder/cache.h"

struct partial {
	struct store *s;
	const struct input *in;
	int fd;
	uint64_t size;   /* bytes in the file */
	uint64_t hashed; /* bytes of it that hash has seen */
	struct hash hash;
	char name[CACHE_NAME + 16];
};

/* Make the folders of the cache. */
int partial_prepare(struct store *s, struct err *e) must_check;

/* 1: open and locked, with what an earlier run left in it. 0: another process has it; try again. */
int partial_open(
	struct partial *p, struct store *s, const struct input *in, struct err *e) must_check;
/* Unlock; the file stays. Fine twice. */
void partial_close(struct partial *p);
/* Close and delete. */
void partial_discard(struct partial *p);

/* Hash up to `budget` bytes of what was left by an earlier run. 1: all is hashed, 0: not yet. */
int partial_rehash(struct partial *p, uint64_t budget, struct err *e) must_check;
/* The most bytes it may have. */
uint64_t partial_limit(const struct partial *p);
/* Needs no more bytes? By size; with an unknown size by digest. */
bool partial_complete(const struct partial *p);

/* Append. CORRUPT beyond the limit; SYSTEM leaves errno. */
int partial_add(struct partial *p, const void *data, size_t n, struct err *e) must_check;
/* Start over with an empty file. */
int partial_restart(struct partial *p, struct err *e) must_check;

/* Verify, sync, give it its final name and close. `where` is the address, for the error. CORRUPT
 * leaves it open. */
int partial_publish(struct partial *p, const char *where, struct err *e) must_check;

#endif
