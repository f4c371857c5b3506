/* Objects of a JSON document read by table. Every value is passed together with where it stands,
 * for errors such as "config.json: /process/rlimits/2/hard: expected a number". Keys that no table
 * names are ignored, as runtime-spec config.md "Extensibility" demands; keys that this version
 * knows but does not do are FIELD_REFUSE rows, and refuse the document. null counts as absent.
 * Errors: CORRUPT, UNSUPPORTED. */
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
	const char *key; /* member of parent; NULL: element number index. The root: the file's */
	size_t index;
	json_t *v;
	struct arena *mem; /* for what is read; strings are borrowed from the document */
};

struct opt_i64 {
	bool set;
	int64_t v;
};

/* A table of the words that a string may be; the last row has NULL. */
struct fields_word {
	const char *name;
	uint32_t value;
};
#define FIELDS_WORD(word)                                                                          \
	{                                                                                          \
#word, word                                                                        \
	}
const struct fields_word *fields_word(const struct fields_word *t, const char *name);

enum field_kind {
	FIELD_BOOL,     /* bool */
	FIELD_STR,      /* const char *; min, max: its length */
	FIELD_OPT_STR,  /* the same; "" counts as absent, as Go programs write it */
	FIELD_PATH,     /* FIELD_STR, absolute */
	FIELD_OPT_PATH, /* FIELD_OPT_STR, absolute */
	FIELD_RANGES,   /* FIELD_OPT_STR, numbers and ranges: "0-3,5" */
	FIELD_U32,      /* uint32_t of at most max */
	FIELD_U64,      /* uint64_t; the whole range when the text came through spec_doc_parse() */
	FIELD_INT,      /* int, min to max */
	FIELD_I64,      /* int64_t */
	FIELD_OPT,      /* struct opt_i64, min to max */
	FIELD_WORD,     /* uint32_t: the value of one of `words` */
	FIELD_WORDS,    /* uint32_t: an array of words, or-ed together */
	FIELD_STRS,     /* struct strings of at least min; v[n] is NULL */
	FIELD_PATHS,    /* the same, all absolute */
	FIELD_OBJECT,   /* by `rows` */
	FIELD_ARRAY, /* a pointer, and a size_t behind it: elements of `size`, by rows and each() */
	FIELD_MAP,   /* the same of an object: an element's first member gets its name */
	FIELD_EACH,  /* what each() makes of all elements of an array */
	FIELD_READ,  /* what check() makes of it */
	FIELD_REFUSE, /* known, not done: UNSUPPORTED unless absent, null, false, 0 or empty */
};

typedef int field_check(const struct at *a, void *out, struct err *e);

struct field {
	const char *name; /* the last row has NULL */
	enum field_kind kind;
	size_t off; /* of the member that it goes to */
	bool required;
	bool given;       /* an object whose first member is a bool that says that it is there */
	int64_t min, max; /* max 0: no limits but those of the type; ARRAY: elements */
	size_t size;
	const struct fields_word *words;
	const struct field *rows;
	field_check *each, *check; /* after an element, after all of it was read */
};

#define FIELD(kind_, name_, type_, member_, ...)                                                   \
	{                                                                                          \
		.name = (name_), .kind = FIELD_##kind_, .off = offsetof(type_, member_),           \
		__VA_ARGS__                                                                        \
	}
/* ARRAY and MAP, of what the member points to. */
#define FIELD_LIST(kind_, name_, type_, member_, ...)                                              \
	FIELD(kind_, name_, type_, member_, .size = sizeof(*((type_ *)0)->member_), __VA_ARGS__)
/* An object whose members go where its parent's do. */
#define FIELD_PART(name_, ...)                                                                     \
	{                                                                                          \
		.name = (name_), .kind = FIELD_OBJECT, __VA_ARGS__                                 \
	}

/* The rows of an object or of an element, where it stands in the table. At file scope only. */
#define ROWS(...) .rows = ((const struct field[]){__VA_ARGS__, {0}})

enum { FIELDS_ELEMENTS_MAX = 4096, FIELDS_STRING_MAX = 128 * 1024 };

/* Read one value into base + f->off; f->required and f->name have no meaning. */
int field_read(const struct at *a, const struct field *f, void *base, struct err *e) must_check;
/* Read the object a->v. */
int fields_read(const struct at *a, const struct field *rows, void *base, struct err *e) must_check;

/* "config.json: /a/b/0: ..." */
int at_fail(const struct at *a, enum err_kind kind, struct err *e, const char *fmt, ...)
	printf_like(4, 5);
#define at_error(a, e, ...) at_fail(a, ERR_CORRUPT, e, __VA_ARGS__)
#define at_unsupported(a, e, ...) at_fail(a, ERR_UNSUPPORTED, e, __VA_ARGS__)

/* How an integer beyond INT64_MAX, which jansson lacks, stands in a document: as a string, this
 * mark and 16 hexadecimal digits, which is not longer than it was. at_string() refuses such
 * strings. */
#define FIELDS_BIG_MARK '\177'
enum { FIELDS_BIG_SIZE = 17 };

/* A string without NUL of at most FIELDS_STRING_MAX bytes. */
const char *at_string(const struct at *a, struct err *e) must_check;
/* The value of a word. Errors: UNSUPPORTED for one that is not in the table. */
int at_word(
	const struct at *a, const struct fields_word *t, uint32_t *out, struct err *e) must_check;

#endif
