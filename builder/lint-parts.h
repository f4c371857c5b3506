/* What the files builder/lint-*.c share. */
#ifndef BUILDER_LINT_PARTS_H
#define BUILDER_LINT_PARTS_H

#include "builder/compose.h"
#include "builder/elf-needs.h"
#include "builder/lint.h"

/* One look at one manifest. */
struct lint_pass {
	struct lint *out;
	const struct manifest *m;
	const struct lock *l;         /* or NULL */
	const struct composed *c;     /* TREE */
	struct pool *pool;            /* TREE */
	const struct lint_rule *rule; /* that is looked at */
	size_t found, more;           /* of the rule; more: not kept */
	/* TREE: libraries that are not found, which three rules report */
	struct elf_unresolved *missing;
	size_t nmissing;
	bool searched;
};

/* A finding of the rule that is looked at. pointer is one of the merged document; expected may be
 * NULL. */
void lint_found(struct lint_pass *p, const char *pointer, const char *expected, const char *fmt,
	...) printf_like(4, 5);
/* "fmt" in the arena: for pointers. */
#define lint_text(p, ...) arena_printf(&(p)->out->arena, __VA_ARGS__)
/* pointer and one more key, escaped. */
const char *lint_below(struct lint_pass *p, const char *pointer, const char *key);

/* ---- what is asked for more than once ---- */

/* The name in "name=version" or "name/suite". */
const char *lint_deb_name(struct lint_pass *p, const char *package);
/* A package of the manifest or the lock that matches, or NULL. Globs of names end with NULL. */
const char *lint_has_deb(struct lint_pass *p, const char *const *globs);
const char *lint_has_wheel(struct lint_pass *p, const char *const *names);
const char *lint_has_npm(struct lint_pass *p, const char *const *globs);
/* Does one of globs match? */
bool lint_matches(const char *s, const char *const *globs);
bool lint_listed(const char *s, const char *const *words);
/* Words with a blank between them. */
const char *lint_join(struct lint_pass *p, const struct strings *words);
/* Is the file's name one of weights? */
bool lint_is_weights(const char *path);
/* Weights that are Python pickles, which run code when they are loaded. */
bool lint_is_pickle(const char *path);

/* ---- rules, by code ---- */

/* builder/lint-inputs.c */
void lint_010(struct lint_pass *p);
void lint_011(struct lint_pass *p);
void lint_012(struct lint_pass *p);
void lint_017(struct lint_pass *p);
void lint_018(struct lint_pass *p);
void lint_040(struct lint_pass *p);
void lint_041(struct lint_pass *p);
void lint_042(struct lint_pass *p);
void lint_043(struct lint_pass *p);
void lint_044(struct lint_pass *p);
void lint_045(struct lint_pass *p);
void lint_046(struct lint_pass *p);
/* builder/lint-serve.c */
void lint_021(struct lint_pass *p);
void lint_022(struct lint_pass *p);
void lint_023(struct lint_pass *p);
void lint_024(struct lint_pass *p);
void lint_025(struct lint_pass *p);
void lint_070(struct lint_pass *p);
void lint_073(struct lint_pass *p);
void lint_074(struct lint_pass *p);
void lint_132(struct lint_pass *p);
void lint_160(struct lint_pass *p);
/* builder/lint-gpu.c */
void lint_030(struct lint_pass *p);
void lint_031(struct lint_pass *p);
void lint_032(struct lint_pass *p);
void lint_033(struct lint_pass *p);
void lint_034(struct lint_pass *p);
void lint_035(struct lint_pass *p);
void lint_036(struct lint_pass *p);
void lint_037(struct lint_pass *p);
void lint_038(struct lint_pass *p);
void lint_039(struct lint_pass *p);
/* builder/lint-python.c */
void lint_050(struct lint_pass *p);
void lint_052(struct lint_pass *p);
void lint_056(struct lint_pass *p);
void lint_057(struct lint_pass *p);
/* builder/lint-steps.c */
void lint_060(struct lint_pass *p);
void lint_062(struct lint_pass *p);
void lint_063(struct lint_pass *p);
void lint_064(struct lint_pass *p);
void lint_066(struct lint_pass *p);
void lint_071(struct lint_pass *p);
void lint_072(struct lint_pass *p);
void lint_110(struct lint_pass *p);
void lint_111(struct lint_pass *p);
void lint_112(struct lint_pass *p);
void lint_113(struct lint_pass *p);
void lint_114(struct lint_pass *p);
/* builder/lint-models.c */
void lint_140(struct lint_pass *p);
void lint_141(struct lint_pass *p);
void lint_142(struct lint_pass *p);
void lint_143(struct lint_pass *p);
void lint_144(struct lint_pass *p);
void lint_145(struct lint_pass *p);
void lint_146(struct lint_pass *p);
void lint_147(struct lint_pass *p);
/* builder/lint-tests.c */
void lint_150(struct lint_pass *p);
void lint_151(struct lint_pass *p);
void lint_152(struct lint_pass *p);
void lint_153(struct lint_pass *p);
/* builder/lint-tree.c, builder/lint-elf.c */
int lint_tree_071(struct lint_pass *p, struct err *e) must_check;
int lint_tree_072(struct lint_pass *p, struct err *e) must_check;
int lint_tree_101(struct lint_pass *p, struct err *e) must_check;
int lint_tree_110(struct lint_pass *p, struct err *e) must_check;
int lint_tree_111(struct lint_pass *p, struct err *e) must_check;
int lint_tree_120(struct lint_pass *p, struct err *e) must_check;
int lint_tree_121(struct lint_pass *p, struct err *e) must_check;
int lint_tree_122(struct lint_pass *p, struct err *e) must_check;
int lint_tree_123(struct lint_pass *p, struct err *e) must_check;
int lint_tree_140(struct lint_pass *p, struct err *e) must_check;

#endif
