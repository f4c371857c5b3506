/* The rules about what a manifest may say and should say better: the codes of docs/lint.md, each
 * with a hint. A manifest that the parser refuses is not looked at. */
#ifndef BUILDER_LINT_H
#define BUILDER_LINT_H

#include "builder/lock.h"
#include "builder/report.h"

enum lint_level { LINT_INFO, LINT_WARNING, LINT_ERROR };
const char *lint_level_name(enum lint_level l); /* "info", "warning", "error" */

struct lint_finding {
	int code; /* SVnnn */
	enum lint_level level;
	const char *file; /* as errors show it */
	int line, col;
	const char *pointer, *text, *expected, *hint; /* expected may be NULL; hint never is */
};

/* Findings live as long as the lint, not as long as the manifest. */
struct lint {
	struct arena arena;
	struct lint_finding *v; /* in the order of the document; of one rule at most 100 */
	size_t n, cap;
};

/* What the manifest alone shows, and with a lock (may be NULL) what that adds. Findings that the
 * manifest allows are left out ("x-lint": {"allow": [{"id": "SV070", "reason": "..."}]}; with
 * "pointer", only below it). May be called again for another mode of the manifest: what is there
 * already is not added twice. */
void lint_manifest(struct lint *out, const struct manifest *m, const struct lock *l);
/* Of a built tree: SV071 setuid, SV072 world-writable, SV101 not merged-usr, SV110 and SV111 the
 * layers (when the nodes know theirs), SV120 to SV123 libraries, SV140 weights outside models.
 * Of c, tree and origins (with their number) are looked at: without origins, findings do not say
 * which key brought a file. pool: to read ELF files. */
struct composed;
struct pool;
int lint_tree(struct lint *out, const struct manifest *m, const struct composed *c,
	struct pool *pool, struct err *e) must_check;
void lint_fini(struct lint *l);

/* FILE:LINE:COL: SVnnn /pointer: text; expected ...; hint [level], and a newline. */
void lint_line(const struct lint_finding *f, struct buf *out);

/* ---- the rules ---- */

/* Who finds it: the parser, whoever locks or builds, lint_manifest(), lint_tree(), or the last two.
 */
enum lint_by { LINT_BY_PARSER, LINT_BY_LOCK, LINT_BY_BUILD, LINT_BY_LINT, LINT_BY_TREE };

struct lint_pass;

/* "SV041", its level, title, why, and what to do: for `svrun image lint --explain SV041` and
 * docs/lint.md (a test compares). todo is the hint of a finding. */
struct lint_rule {
	int code;
	enum lint_level level;
	enum lint_by by;
	const char *title, *why, *todo;
	void (*check)(struct lint_pass *p); /* lint.c's own */
	int (*tree)(struct lint_pass *p, struct err *e);
};
/* Sorted by code. */
const struct lint_rule *lint_rules(size_t *n);
/* NULL: no such code. */
const struct lint_rule *lint_rule(int code);
/* "### SV041 ..." for a terminal, and for docs/lint.md. */
void lint_explain(const struct lint_rule *r, struct buf *out);

#endif
