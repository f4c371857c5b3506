/* The tests of a manifest: what can be said of a plan and of an image without running it. Those
 * that run are svrun/test-run.h's. What each type expects: docs/tests.md. */
#ifndef BUILDER_IMAGE_TEST_H
#define BUILDER_IMAGE_TEST_H

#include "builder/bill.h"
#include "builder/lint.h"
#include "builder/lock.h"
#include "images/image.h"
#include "images/pool.h"

enum test_verdict { TEST_PASSED, TEST_FAILED, TEST_SKIPPED };

struct test_result {
	const struct manifest_test *test;
	enum test_verdict verdict; /* a required test that is skipped has failed */
	bool unseen;               /* it has failed because it was skipped */
	double seconds;
	char *text; /* what was expected and found, or why it was skipped; malloc'ed; may be NULL */
	char *log;  /* of one that failed: the last lines of its container; may be NULL */
};

/* What is tested. In the stage plan there is neither image nor tree, pool and bill. */
struct tested {
	const struct manifest *m;
	const struct lock *l; /* NULL: there is none */
	struct image *image;
	struct tree *tree;       /* sorted, every chunk has its block */
	struct pool *pool;       /* of these chunks */
	const struct bill *bill; /* which input brought which file */
};

/* Anything but exec, http and port: whether it holds is in the result, whose test is set by the
 * caller. -1 only when it could not be found out (the store is damaged, a system call failed). */
int image_test(struct test_result *r, const struct tested *x, struct err *e) must_check;
void test_result_fini(struct test_result *r);

/* The result becomes a failed one; the first text stays. */
void test_fail(struct test_result *r, const char *fmt, ...) printf_like(2, 3);
void test_skip(struct test_result *r, const char *fmt, ...) printf_like(2, 3);

/* "plan", "image", "run"; "file", "python-guard" ... */
const char *test_stage_name(enum test_stage s);
const char *test_type_name(enum test_type t);
const char *test_verdict_name(enum test_verdict v); /* "passed" */

/* Does an output or an answer meet what is expected? NULL, or what is wrong; malloc'ed. The text
 * may hold anything, NUL too; it is quoted without control characters. */
char *test_check_text(const struct test_expect *x, const char *text, size_t n);
char *test_check_json(const struct test_expect *x, const char *text, size_t n);
/* Does text match an extended regular expression, in which ^ and $ are the ends of lines? */
bool test_matches(const char *regex, const char *text, size_t n);

/* Reports: JUnit XML (one testsuite; what XML cannot hold becomes U+FFFD), JSON, and lines for
 * people. Their size is bounded by the caller's buffer: what is beyond aborts, so texts and logs
 * are cut to TEST_TEXT_MAX first. */
enum { TEST_TEXT_MAX = 64 << 10 };
void test_junit(const struct test_result *v, size_t n, const char *suite, struct buf *out);
void test_json_report(const struct test_result *v, size_t n, const char *image, struct buf *out);
void test_lines(const struct test_result *r, struct buf *out); /* of one test */

/* ---- parts, one file each ---- */

/* image-test-file.c */
int test_file(struct test_result *r, const struct tested *x, struct err *e) must_check;
int test_size(struct test_result *r, const struct tested *x, struct err *e) must_check;
/* image-test-config.c: config is the image's whole config document. */
void test_metadata(struct test_result *r, const json_t *config);

#endif
