/* Inside of the steps that run code. Only builder/steps*.c include this. */
#ifndef BUILDER_STEPS_PRIVATE_H
#define BUILDER_STEPS_PRIVATE_H

#include "builder/sandbox.h"
#include "builder/steps.h"

/* One step, made ready by its kind's file; all of it lives in the arena of the run. */
struct step {
	struct sandbox_step box;        /* without log and scan */
	const char *id;                 /* "dpkg", "npm:NAME", "bytecode", "run:ID" */
	const char *name;               /* in the `inputs` of later ones; NULL: of none */
	const char *pointer;            /* where the manifest asks for it: "/run/2" */
	json_t *doc;                    /* what decides its result, besides the tree; owned */
	uint32_t sees;                  /* bits: kinds of origins that it sees; 0: everything */
	const struct strings *inputs;   /* the sources, files and steps before it that it sees;
					   NULL: all */
	const struct strings *writes;   /* NULL: keep() decides */
	const struct run_cache *caches; /* folders kept from build to build */
	size_t ncaches;
	const struct run_secret *secrets;
	size_t nsecrets;
	struct origin origin; /* of what it changes */
	/* Does what it did at path belong to the image? NULL: all of it. */
	bool (*keep)(const struct step *s, const struct entry *en);
	struct prune *prune;
};

struct steps {
	const struct step_context *x;
	struct composed *c;
	struct arena arena;
};

/* Each appends the steps of its kind, in their order. */
struct step_list {
	struct step *v;
	size_t n, cap;
};
int steps_add_dpkg(struct steps *s, struct step_list *l, struct err *e) must_check;
int steps_add_npm(struct steps *s, struct step_list *l, struct err *e) must_check;
int steps_add_bytecode(struct steps *s, struct step_list *l, struct err *e) must_check;
int steps_add_runs(struct steps *s, struct step_list *l, struct err *e) must_check;
/* The same; reads the manifest alone. */
void steps_list_runs(struct steps *s, struct step_list *l);
void steps_free_list(struct step_list *l);

/* For those: a zeroed step, an array of strings and pairs in the arena, the strings as JSON. */
struct step *steps_new(struct step_list *l, const char *id, const char *pointer);
struct strings steps_words(struct steps *s, size_t n, const char *const *v);
json_t *steps_json(const struct strings *v);
json_t *steps_json_pairs(const struct pairs *v);

/* A program for Python, which makes byte code in the folders behind it. */
extern const char steps_bytecode_script[];

/* ---- what a step sees (steps-view.c) ---- */

/* What the step sees of c->tree: itself, or a copy of all (copy) or a part of it, which is to be
 * freed. */
int step_view(struct steps *s, const struct step *st, bool copy, struct tree **t, bool *own,
	struct err *e) must_check;
/* Digest of all that a program can see of a tree. */
struct digest step_tree_digest(struct tree *t);

/* ---- running one (step-run.c) ---- */

/* Append what it changed when it ran over such a tree before to out: 1; 0: it did not. */
int step_find(struct steps *s, const struct step *st, struct tree *view, struct digest *key,
	struct entries *out, struct err *e) must_check;

/*	step_prepare -> step_start -> sandbox_wait() -> step_end, or step_abandon */
struct running;
/* Get all that it needs: 1. 0: another build, or step, has one of its cache folders, and wait is
 * not set. */
int step_prepare(struct running **r, struct steps *s, const struct step *st, struct tree *view,
	bool wait, struct err *e) must_check;
/* On failure it is freed, too. */
int step_start(struct running *r, struct err *e) must_check;
struct sandbox *step_sandbox(struct running *r); /* borrowed */
/* It has ended: append what it changed to out, keep that by its key, free it. */
int step_end(
	struct running *r, const struct digest *key, struct entries *out, struct err *e) must_check;
/* It was stopped, and has ended: tidy up, and say why in its log. */
void step_abandon(struct running *r, const char *why);

/* ---- all of a list (steps-graph.c) ---- */

/* Each as soon as what it sees is done, and lay what they changed over c->tree. USAGE SV068: two
 * that do not see each other write the same. */
int steps_run_list(struct steps *s, const struct step_list *l, struct err *e) must_check;
/* v[i][k]: does step i see what step k before it did? By what it names, and what that sees. */
bool **steps_seen(const struct step_list *l, struct arena *a);

/* For that (steps.c): SV061, and one's changes over c->tree. view: what it ran over. */
int steps_check_writes(struct steps *s, const struct step *st, const struct entries *l,
	struct tree *view, struct err *e) must_check;
int steps_apply(
	struct steps *s, const struct step *st, const struct entries *l, struct err *e) must_check;

/* ---- how one failed (step-report.c) ---- */

/* A name with control characters, and bytes that are no text, as \xNN. To free(). */
char *step_shown(const char *name);
/* Path of its log. In the arena. */
const char *step_log_path(struct steps *s, const struct step *st);
/* Its last lines to the progress, and the error. Returns -1. */
int step_failed(
	struct steps *s, const struct step *st, const struct sandbox_end *end, struct err *e);
/* Append a line to its log. */
void step_log_line(struct steps *s, const struct step *st, const char *text);
/* Append paths, one a line. */
void step_log_paths(
	struct steps *s, const struct step *st, const char *what, const struct strings *paths);
/* "FILE:LINE:COL: SVnnn POINTER: " before what is said, when the manifest knows the place. -1. */
int step_fault(struct steps *s, const struct step *st, const char *member, int code, struct err *e,
	const char *fmt, ...) printf_like(6, 7);

#endif
