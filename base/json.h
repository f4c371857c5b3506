/* JSON through jansson, plus what it lacks: where in the text a value stands, and typed access
 * whose errors name the key. Duplicate keys are refused everywhere. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

#define auto_json __attribute__((cleanup(json_decref_ref)))
void json_decref_ref(json_t **j);

/* A parsed text that remembers itself, to turn a JSON pointer into line and column. */
struct json_doc {
	char *name; /* as errors show it */
	struct buf text;
	json_t *root;
};

/* Parse text of at most max bytes, nesting at most 64 deep. Errors are CORRUPT,
 * "name:line:col: message". */
int json_doc_load(
	struct json_doc *d, int dirfd, const char *path, size_t max, struct err *e) must_check;
int json_doc_parse(
	struct json_doc *d, const char *name, const void *p, size_t n, struct err *e) must_check;
void json_doc_fini(struct json_doc *d);

/* Line and column (both from 1, columns in bytes) of the value at a JSON pointer (RFC 6901), or of
 * its key when at_key and the value is an object member. The nearest existing ancestor answers for
 * a missing one. */
void json_doc_locate(
	const struct json_doc *d, const char *pointer, bool at_key, int *line, int *col);

/* One reference token of a JSON pointer, unescaped, into out; p stands on its slash. Returns what
 * follows it. */
const char *json_pointer_token(const char *p, char *out, size_t size);

/* The value of a member of a member ..., by its keys (the last is NULL), in a text that nobody has
 * parsed yet: *from and *to, or false when there is none to be seen. */
bool json_find(
	const char *text, size_t n, const char *const *keys, const char **from, const char **to);

/* Parse machine-written text without positions. CORRUPT on error. */
json_t *json_parse(const void *p, size_t n, struct err *e) must_check;

/* Member of an object. The plain forms require it (CORRUPT "missing key" / "key: expected string");
 * the _opt forms give NULL or def when it is absent, and still fail on a wrong type. */
const char *json_str(const json_t *o, const char *key, struct err *e) must_check;
int json_str_opt(const json_t *o, const char *key, const char **v, struct err *e) must_check;
int json_u64(const json_t *o, const char *key, uint64_t max, uint64_t *v, struct err *e) must_check;
json_t *json_array_of(const json_t *o, const char *key, struct err *e) must_check; /* borrowed */
json_t *json_object_of(const json_t *o, const char *key, struct err *e) must_check;
int json_bool_opt(const json_t *o, const char *key, bool def, bool *v, struct err *e) must_check;

/* Deterministic text: sorted keys. Compact (digests, wire) or indented by two with a final newline
 * (files that people read). b is emptied first. */
void json_text(const json_t *j, bool compact, struct buf *b);
/* The compact text of what others had a part in: CORRUPT when it is longer than b may be. */
int json_text_bounded(const json_t *j, struct buf *b, struct err *e) must_check;

#endif
