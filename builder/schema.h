/* Reading a JSON document into structs by static tables: one table per kind of object, one line per
 * key. The manifest and the lock are read this way.
 *
 * A value that is wrong is reported and its field keeps its default, so that reading goes on and
 * every error is found in one go. */
#ifndef BUILDER_SCHEMA_H
#define BUILDER_SCHEMA_H

#include "builder/report.h"

enum { SCHEMA_ITEMS = 10000 }; /* members of one object, elements of one array */

enum value_kind {
	V_STRING = 1, /* const char * */
	V_STRINGS,    /* struct strings */
	V_PAIRS,      /* struct pairs, sorted by name; member -> string */
	V_WORD,       /* const char *, one of choices */
	V_ENUM,       /* an enum, one of choices */
	V_BOOL,       /* bool */
	V_INTEGER,    /* uint32_t, int, uint64_t or int64_t: min to max */
	V_SIGNED,     /* int64_t, of any sign */
	V_NUMBER,     /* double */
	V_INTEGERS,   /* a pointer to an array of uint32_t, and their number: min to max */
	V_MODE,       /* uint32_t from four octal digits */
	V_SHA256,     /* struct digest from 64 hex digits, not all zero */
	V_DIGEST,     /* the same from "sha256:" and the digits */
	V_JSON,       /* const json_t *, whatever it is; borrowed from the document */
	V_OBJECT,     /* a struct inside this one; at 0: more members of this one */
	V_OBJECTS,    /* a pointer to an array of structs, and their number */
	V_NAMED,      /* the same from an object: each struct begins with its name; sorted */
};

/* What a string must be. */
struct rule {
	bool (*ok)(const char *s);
	const char *expected;
	int code;   /* SV_VALUE when 0 */
	size_t max; /* bytes; 4096 when 0 */
	enum {
		VARS_REFUSED,
		VARS_RUNTIME, /* ${runtime:cpus}, ${runtime:gpus}, ${runtime:memMiB} are kept */
		VARS_TEXT,    /* variables of the manifest; any other "${" means nothing */
		VARS_NEVER,   /* a program's text: "${" means nothing at all */
	} vars;
	/* It names a file beside the manifest: resolve.h rewrites those of a parent. */
	enum {
		LOCAL_NOT,
		LOCAL_PATH,
		LOCAL_URL,     /* when it begins with "file:" */
		LOCAL_KEYRING, /* when it does not begin with "keyring:" */
	} local;
};

struct choice {
	const char *name; /* the last one is NULL */
	int value;
};

struct schema;

struct key {
	const char *name; /* the last one is NULL */
	enum value_kind kind;
	bool required;
	bool keep;               /* has a field; else the value is only checked */
	bool set;                /* V_STRINGS: merging takes each text once */
	bool one;                /* V_STRINGS: a string alone is a list of one */
	bool scalars;            /* numbers and booleans are taken as their text */
	bool partial;            /* V_NAMED: in it, no key is required */
	size_t at;               /* of the field in the struct */
	size_t width;            /* of the field */
	size_t count;            /* arrays of structs and integers: of the number of elements */
	size_t present;          /* of a bool to set when the key is there; 0: none */
	int present_as;          /* not 0: it is an enum, which gets this value; may be at 0 */
	const struct rule *rule; /* of the string, of each, of the pairs' values */
	const struct rule *name_rule; /* of the pairs' names */
	const struct choice *choices; /* V_STRINGS: words that stand for an empty list */
	uint64_t min,
		max; /* V_INTEGER(S); of other arrays and pairs: how many (max 0: SCHEMA_ITEMS) */
	const struct schema *of;
};

struct schema {
	const struct key *keys;
	size_t size;          /* V_OBJECTS: of one element */
	const void *defaults; /* V_OBJECTS: an element's, or NULL: zero */
};

struct reader {
	struct arena *arena; /* strings and arrays are made here */
	struct report *r;
	struct buf pointer; /* of the value being read */
	bool partial;       /* missing keys are no mistake */
};

/* Read object o into the struct `out`. */
void schema_read(struct reader *r, const struct schema *s, const json_t *o, void *out);

/* Complain about the value being read, or about its member `key` (not NULL). */
void reader_fault(struct reader *r, const char *key, struct fault f, const char *fmt, ...)
	printf_like(4, 5);

/* By what the member `name` of an object that k reads is read, or the elements of an array (name
 * is NULL); of kind 0: by nothing. */
struct key schema_child(const struct key *k, const char *name);

/* Do keys of this kind hold text? A variable of another type becomes text there. */
bool schema_is_text(const struct key *k);

#define SCHEMA_FIELD(type, member)                                                                 \
	.keep = true, .at = offsetof(type, member), .width = sizeof(((type *)0)->member)

#endif
