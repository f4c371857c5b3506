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
	FIELD_PATH,    /* const char *, absolute */
	FIELD_U32,     /* uint32_t */
	FIELD_U64,     /* uint64_t */
	FIELD_OPT_I64, /* struct opt_i64 */
	FIELD_STRS,    /* struct strings; v[n] is NULL */
	FIELD_READ,    /* read() gets base + off */
	FIELD_REFUSE, /* known, not supported: UNSUPPORTED unless absent, null, false, 0 or empty */
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

/* A string without NUL of at most FIELDS_STRING_MAX bytes, borrowed from the document. */
const char *at_string(const struct at *a, struct err *e) must_check;

#endif
