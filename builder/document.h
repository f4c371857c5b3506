/* A JSON text that people write or may have edited: parsed with every duplicate key, and the place
 * of what is wrong, in a report. */
#ifndef BUILDER_DOCUMENT_H
#define BUILDER_DOCUMENT_H

#include "builder/report.h"

enum { DOCUMENT_DEPTH = 32 };

/* Parse n bytes into d (copied). A syntax error or a nesting of more than DOCUMENT_DEPTH is
 * reported and gives -1; so is a duplicate key, but then d is there, and the last value counts. r
 * is initialised here and borrows d and name: both must outlive it. */
int document_parse(struct json_doc *d, const char *name, const void *p, size_t n,
	size_t max_complaints, struct report *r) must_check;

/* Append "/key" to a JSON pointer, escaped; returns the old length, to cut it back. */
size_t pointer_push(struct buf *pointer, const char *key);
size_t pointer_push_index(struct buf *pointer, size_t i);
void pointer_pop(struct buf *pointer, size_t len);

#endif
