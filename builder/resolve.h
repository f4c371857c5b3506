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

/* Read and merge. Complaints about any of the documents go to c with that document's name, line and
 * column; -1 then, with e as manifest_load() says. */
int resolve(struct resolved **out, const char *path, const void *text, size_t n,
	const struct manifest_choice *choice, struct complaints *c, struct err *e) must_check;
void resolved_free(struct resolved *r);

/* The merged document: variables substituted, `from`, `vars`, `matrix` and `modes` gone. Borrowed.
 */
json_t *resolved_root(const struct resolved *r);
/* Where the value at a JSON pointer of the merged document came from: the file as errors show it,
 * line and column (key's with at_key). The nearest ancestor answers for what is not there. */
void resolved_place(const struct resolved *r, const char *pointer, bool at_key, const char **file,
	int *line, int *col);
/* `svrun image resolve`: the merged document, one line a value, with "FILE:LINE" of each behind it
 * (a comment after two blanks and "#"); json: {"document": ..., "origins": {POINTER:
 * "FILE:LINE:COL"}}. */
void resolved_print(const struct resolved *r, bool json, struct buf *out);

/* Names of all entries of the matrix, and of all modes; none: n is 0. Borrowed. */
struct strings resolved_matrix(const struct resolved *r);
struct strings resolved_modes(const struct resolved *r);

#endif
