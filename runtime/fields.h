/* Objects of a JSON document read by table, with errors that name the place: every value is passed
 * together with where it stands, so that "config.json: /process/rlimits/2/hard: expected a number"
 * needs no bookkeeping in the readers.
 *
 * Keys that no table names are ignored, as runtime-spec config.md "Extensibility" demands; keys
 * that this version knows but does not do are FIELD_REFUSE rows, and refuse the document. */
#ifndef RUNTIME_FIELDS_H
#define RUNTIME_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "base/mem.h"

/* A value and the way to it. Lives on the stack of the reader. */
struct at {
	const struct at *parent;
	const char
		*key; /* member of parent; NULL: element number index. The root: the file's name */
	size_t index;
	json_t *v;
};

struct opt_i64 {
	bool set;
	int64_t v;
};

enum field_kind {
	FIELD_BOOL,    /* bool */
	FIELD_STR,     /* const char * */
	FIELD_OPT_STR, /* the same; "" counts as absent, as Go programs write it */
	FIELD_PATH,    /* const char *, absolute */
	FIELD_PATHS,   /* struct strings, all absolute */
	FIELD_RANGES,  /* const char *, numbers and ranges: "0-3,5"; "" counts as absent */
	FIELD_U32,     /* uint32_t */
	FIELD_U64,     /* uint64_t; the whole range when the text came through spec_doc_parse() */
	FIELD_OPT_I64, /* struct opt_i64 */
	FIELD_OPT_U63, /* the same, not negative */
	FIELD_OPT_U32, /* the same, 0 to UINT32_MAX */
	FIELD_STRS,    /* struct strings; v[n] is NULL */
	FIELD_READ,    /* read() gets base + off */
	FIELD_REFUSE,  /* known, not done: UNSUPPORTED unless absent, null, false, 0 or empty */
};

struct field {
	const char *name; /* the last row has NULL */
	enum field_kind kind;
	size_t off;
	bool required;
	int (*read)(const struct at *a, void *out, struct arena *mem, struct err *e);
};

enum { FIELDS_ELEMENTS_MAX = 4096, FIELDS_STRING_MAX = 128 * 1024 };

/* Read the object a->v into base. null counts as absent. Errors: CORRUPT, UNSUPPORTED. */
int fields_read(const struct at *a, const struct field *table, void *base, struct arena *mem,
	struct err *e) must_check;

/* Read an array of objects, elements of `size` bytes; *v and *n receive them (arena). At most
 * FIELDS_ELEMENTS_MAX. */
int fields_read_array(const struct at *a, size_t size, void *v, size_t *n,
	int (*read)(const struct at *a, void *out, struct arena *mem, struct err *e),
	struct arena *mem, struct err *e) must_check;

/* CORRUPT: "config.json: /a/b/0: ...". */
int at_error(const struct at *a, struct err *e, const char *fmt, ...) printf_like(3, 4);
/* UNSUPPORTED: the same. */
int at_unsupported(const struct at *a, struct err *e, const char *fmt, ...) printf_like(3, 4);

/* How an integer beyond INT64_MAX, which jansson lacks, stands in a document: as a string with this
 * mark before its digits. at_string() refuses such strings. */
#define FIELDS_BIG_MARK '\001'

/* A string without NUL of at most FIELDS_STRING_MAX bytes, borrowed from the document. */
const char *at_string(const struct at *a, struct err *e) must_check;

/* A table of the words that a string may be; the last row has NULL. */
struct fields_word {
	const char *name;
	uint64_t value;
};
const struct fields_word *fields_word(const struct fields_word *t, const char *name);
/* The value of a word. Errors: UNSUPPORTED for one that is not in the table. */
int at_word(
	const struct at *a, const struct fields_word *t, uint64_t *out, struct err *e) must_check;
/* An array of words: their values or-ed together. */
int at_words(
	const struct at *a, const struct fields_word *t, uint64_t *out, struct err *e) must_check;

#endif
