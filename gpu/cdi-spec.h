/* One CDI document: what its members may be, by the version that brought each. Private to gpu/cdi*.
 * Source: the CDI specification, SPEC.md "CDI JSON Specification" and its schema. */
#ifndef GPU_CDI_SPEC_H
#define GPU_CDI_SPEC_H

#include "gpu/cdi.h"

enum {
	CDI_DEVICES_MAX = 16384, /* in one document */
	CDI_LIST_MAX = 4096,     /* elements of any other list */
	CDI_TEXT_MAX = 32768,
	CDI_VALUES_MAX = 400000, /* values of all sorts in one document */
};

/* Every thing that is wrong with it, in the order of the document, each with its JSON pointer;
 * report returns false when it has heard enough. Returns how many were reported. */
typedef bool cdi_report(void *ctx, const char *pointer, const char *text);
size_t cdi_check(const json_t *spec, cdi_report *report, void *ctx);

/* A text (by the ending of its name) that is a valid document, or CORRUPT with line and column. */
json_t *cdi_read(const char *name, const char *text, size_t n, struct err *e) must_check;
/* "FILE:LINE:COL: POINTER: TEXT" of a fault in it; to free(). */
char *cdi_place(
	const char *name, const char *text, size_t n, const char *pointer, const char *fault);

/* Faults in names; NULL: none. */
const char *cdi_kind_fault(const char *s, size_t n); /* of a vendor or a class */
const char *cdi_device_fault(const char *s, size_t n);

/* One containerEdits object of a valid document, added to x; what its texts are stays borrowed.
 * Errors: DENIED (what no container may have, hooks), CORRUPT (arguments of hooks). */
int cdi_edits_add(struct gpu_edits *x, const json_t *edits, const struct cdi_policy *p,
	struct err *e) must_check;

/* A program that a policy names: it, and every folder above, belong to root (or to who we are) and
 * nobody else may write to them; then nothing changes between this and its start. *resolved (in the
 * arena): without links. Errors: NOT_FOUND, DENIED. */
int cdi_program(
	const char *path, const char **resolved, struct arena *mem, struct err *e) must_check;

/* Private to cdi-edits.c: with the pointer on a list of texts, its texts. */
struct strings cdi_texts(const json_t *list, struct arena *mem);

#endif
