/* A JSON document as a tree that remembers where each value was written, and that can be merged:
 * what resolve.h works on. Everything lives in the arena it was made in. */
#ifndef BUILDER_VALUE_H
#define BUILDER_VALUE_H

#include "base/json.h"
#include "builder/report.h"

/* A document of several. */
struct origin {
	const char *folder; /* of a parent: NAME; "" of the document that was asked for */
	struct json_doc doc;
	struct report report;
	size_t *lines; /* offset of each line's first byte */
	size_t nlines;
};

struct value {
	json_type kind;
	const char *key;    /* its name in an object; else NULL */
	const char *text;   /* JSON_STRING */
	json_int_t integer; /* JSON_INTEGER */
	double real;        /* JSON_REAL */
	struct value **v;   /* JSON_OBJECT, JSON_ARRAY: its members, in the order of the text */
	size_t n, cap;
	struct origin *from;
	size_t at, key_at; /* offsets in its document's text */
	const struct value *up;
	size_t index;  /* in up, when it was read: for value_pointer() */
	bool expanded; /* its text is no longer what the document says */
	bool settled;  /* nothing is left to do in it */
};

/* The tree of a document that document_parse() accepted. Of a key that is there twice the last one
 * counts. */
struct value *value_read(struct arena *a, struct origin *from);

/* A member by name, or NULL. */
struct value *value_member(const struct value *object, const char *key);
/* The text of a string, or of the string member of an object; NULL when it is none. */
const char *value_text(const struct value *v);
const char *value_text_of(const struct value *object, const char *key);
/* The scalar as text: "true", "42", or the string; NULL of others. */
const char *value_as_text(struct arena *a, const struct value *v);

/* Append; the member's key is its own. */
void value_add(struct arena *a, struct value *to, struct value *v);
void value_drop(struct value *object, const char *key);

/* Where the members of an object or array are, for many lookups: by their names, by the "id" of
 * each that is an object, or by their text. n of them, sorted, to be freed; those without one are
 * not there. Adding members makes it worthless. */
enum slot_kind { SLOT_KEY, SLOT_ID, SLOT_TEXT };
struct value_slot {
	const char *key;
	struct value **at;
};
struct value_slot *value_slots(const struct value *v, enum slot_kind kind, size_t *n);
/* NULL: not there. */
struct value **value_slot_find(const struct value_slot *slots, size_t n, const char *key);

/* The JSON pointer of v in the document that it was written in. */
void value_pointer(const struct value *v, struct buf *out);

/* A new reference. */
json_t *value_json(const struct value *v);

/* Complain about v in its document: f's pointer and place are v's, unless f->at says another. */
void value_fault(const struct value *v, struct fault f, const char *fmt, ...) printf_like(3, 4);

/* Line and column of an offset in a document's text. */
void origin_place(struct origin *o, size_t at, int *line, int *col);

#endif
