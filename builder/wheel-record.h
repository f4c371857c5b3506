/* RECORD: every file of a distribution with its hash and size, as CSV.
 * Source: PyPA "Recording installed projects"; PEP 376, 427; csv as Python's csv module writes it.
 */
#ifndef BUILDER_WHEEL_RECORD_H
#define BUILDER_WHEEL_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "images/digest.h"
#include "base/err.h"
#include "base/mem.h"

enum { RECORD_MAX = 64 << 20 };

struct record_row {
	const char *path, *hash, *size; /* hash: "sha256=...", or ""; size: digits, or "" */
	bool seen;                      /* the caller's: the file was there */
};

struct record {
	struct arena arena;
	struct record_row *v; /* sorted by path */
	size_t n, cap;
};

void record_fini(struct record *r);
/* CORRUPT: SV173, with the line. name is for errors. A row twice is refused. */
int record_parse(
	struct record *r, const char *name, const char *text, size_t n, struct err *e) must_check;
struct record_row *record_find(const struct record *r, const char *path);

/* A new row; strings are copied. Call record_sort() before record_find() or record_text(). */
struct record_row *record_add(
	struct record *r, const char *path, const char *hash, const char *size);
void record_sort(struct record *r);
/* The text of a RECORD: lines end as Python's csv writer ends them. */
void record_text(const struct record *r, struct buf *out);

/* "sha256=BASE64" of a digest's bytes, in the arena. */
char *record_hash(struct arena *a, const char *algorithm, const uint8_t *p, size_t n);
/* Does a row's hash name an algorithm that we have? Its kind, else UNSUPPORTED or CORRUPT. */
int record_hash_kind(const struct record_row *row, enum hash_kind *kind, struct err *e) must_check;
/* Is what was read what the row says? CORRUPT: SV173. Uses h up. */
int record_check(
	const struct record_row *row, struct hash *h, uint64_t size, struct err *e) must_check;

#endif
