/* The rules about what a manifest may say and should say better: codes SV010 to SV160 of
 * docs/lint.md, each with a hint. Errors are what the parser refuses, too; warnings are not. */
#ifndef BUILDER_LINT_H
#define BUILDER_LINT_H

#include "builder/lock.h"
#include "builder/report.h"

enum lint_level { LINT_INFO, LINT_WARNING, LINT_ERROR };

struct lint_finding {
	int code; /* SVnnn */
	enum lint_level level;
	const char *file; /* as errors show it */
	int line, col;
	const char *pointer, *text, *expected, *hint; /* expected, hint: may be NULL */
};

struct lint {
	struct arena arena;
	struct lint_finding *v; /* in the order of the document */
	size_t n, cap;
};

/* What the manifest alone shows, and with a lock (may be NULL) what that adds. Findings that the
 * manifest allows ("x-lint": {"allow": [{"id": "SV070", "reason": "..."}]}) are left out. */
void lint_manifest(struct lint *out, const struct manifest *m, const struct lock *l);
/* Of a built tree: SV071 setuid, SV072 world-writable, SV101 not merged-usr, SV120 unresolved
 * DT_NEEDED, SV140 weights outside models (needs a pool to read ELF files). */
struct composed;
struct pool;
int lint_tree(struct lint *out, const struct manifest *m, const struct composed *c,
	struct pool *pool, struct err *e) must_check;
void lint_fini(struct lint *l);

/* "SV041", its default level, title, why, and what to do: for `svrun image lint --explain SV041`
 * and docs/lint.md (a test compares). NULL: no such code. */
struct lint_rule {
	int code;
	enum lint_level level;
	const char *title, *why, *todo;
};
const struct lint_rule *lint_rules(size_t *n);

#endif
