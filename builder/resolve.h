/* From files to one document: `from`, vars, matrix, mode, merged by the rules of the language
 * (docs/manifest.md "Inheritance"), with the place that every value came from.
 *
 *   objects merge deep, scalars replace, arrays of objects with "id" merge by id, other arrays
 *   append; {"$replace": [...]} replaces an array, {"$remove": ["id"]} takes elements out
 *
 * `from` names manifests of the same repository (NAME is ../NAME/manifest.json beside the folder of
 * the manifest) or NAME@sha256:HEX, where HEX is the canonical digest of that document; at most 8
 * deep, cycles refused. Paths beside a parent manifest are rewritten, relative to the child's
 * folder
 * ("../base/x"): they stay within the folder that holds all manifests. */
#ifndef BUILDER_RESOLVE_H
#define BUILDER_RESOLVE_H

#include "builder/report.h"

struct resolved; /* documents, merged value, places */

/* Read and merge. Complaints about the documents wait in *out, which is there even then, and take
 * more from those who read it (resolved_fault); resolved_finish() gives them out. -1: what was
 * chosen does not exist (USAGE), a document is too long (CORRUPT), or the system failed. */
int resolve(struct resolved **out, const char *path, const void *text, size_t n,
	const struct manifest_choice *choice, struct err *e) must_check;
void resolved_free(struct resolved *r);

/* Is something of the documents missing (a parent, a syntax error)? What depends on all of it, like
 * a key that is not there, is then no mistake. */
bool resolved_is_partial(const struct resolved *r);
/* Complain about the merged document: f's pointer is one of it. What the line shows is the document
 * that the value is from, its place and pointer there. */
void resolved_fault(struct resolved *r, struct fault f, const char *message);
/* Move all complaints to c: those about the document that was asked for first, then about its
 * parents in the order of `from`. Returns their number. */
size_t resolved_finish(struct resolved *r, struct complaints *c);

/* The merged document: variables substituted, `from`, `vars`, `matrix` and `modes` gone; NULL when
 * it has a syntax error. Borrowed. */
json_t *resolved_root(const struct resolved *r);
/* The same with `vars`, `matrix` and `modes`: what the tables read. */
json_t *resolved_whole(const struct resolved *r);
/* What was chosen: an entry of the matrix, a mode; or NULL. */
const char *resolved_entry(const struct resolved *r);
const char *resolved_mode(const struct resolved *r);
/* What a variable is, or NULL. Borrowed. */
const json_t *resolved_var(const struct resolved *r, const char *name);
/* Where the value at a JSON pointer of the merged document came from: the file as errors show it,
 * line and column (key's with at_key). The nearest ancestor answers for what is not there. */
void resolved_place(const struct resolved *r, const char *pointer, bool at_key, const char **file,
	int *line, int *col);
/* `svrun image resolve`: the merged document, one line a value, with "FILE:LINE" of each behind it
 * (a comment after two blanks and "#"); json: {"document": ..., "origins": {POINTER:
 * "FILE:LINE:COL"}}. */
void resolved_print(const struct resolved *r, bool json, struct buf *out);

/* The folder that holds the folders of all manifests, of that of one: "manifests/ocr" is in
 * "manifests". To be freed. */
char *manifests_folder(const char *dir);

/* Names of all entries of the matrix, and of all modes; none: n is 0. Borrowed. */
struct strings resolved_matrix(const struct resolved *r);
struct strings resolved_modes(const struct resolved *r);

#endif
