/* One judgement of requirements: the candidates, what is known of them, and one file's rules. */
#ifndef GPU_REQUIRE_PARTS_H
#define GPU_REQUIRE_PARTS_H

#include "gpu/require-label.h"
#include "gpu/require.h"

enum gpu_answer { GPU_NO, GPU_YES, GPU_UNKNOWN };

struct candidate {
	struct gpu_grant grant;
	struct gpu_facts facts;
	bool fits; /* all rules so far */
};

struct judge {
	struct gpu_verdict *v;
	struct gpu_label label;
	const struct strings *env;
	const struct gpu_inventory *i;
	const struct gpu_probe *probe;
	struct candidate *c;
	size_t n;
	bool given;       /* the candidates are what would be granted: all have to fit */
	uint32_t need;    /* else this many */
	bool spare;       /* else it works without, too: what is not met refuses nothing */
	const char *cuda; /* that the driver serves; NULL: unknown */
	bool cuda_or_newer;
};

/* Does c meet it? *found: what it has, in the verdict's memory; *hint may be set. -1: CORRUPT. */
struct rule {
	const char *what, *needed, *value; /* value: what check compares with */
	int (*check)(struct judge *j, const struct rule *r, const struct candidate *c,
		const char **found, const char **hint, struct err *e);
};
/* Ask all candidates, and add the line. */
int judge_rule(struct judge *j, const struct rule *r, struct err *e) must_check;
/* A line that is not about single GPUs. */
void judge_line(struct judge *j, const char *what, const char *needed, const char *found, bool met,
	const char *hint);

/* require-rules.c: the label's rules, and the variables'. */
int judge_label(struct judge *j, struct err *e) must_check;
int judge_env(struct judge *j, struct err *e) must_check;

#define GPU_ASK_HINT "svrun doctor --cuda asks the driver, and keeps the answer"

#endif
