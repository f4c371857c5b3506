/* The tests of a manifest: what can be said of a plan and of an image without running it. Those
 * that run are svrun/test-run.c's. */
#ifndef BUILDER_IMAGE_TEST_H
#define BUILDER_IMAGE_TEST_H

#include "builder/lint.h"
#include "builder/lock.h"
#include "images/image.h"
#include "images/pool.h"

enum test_verdict { TEST_PASSED, TEST_FAILED, TEST_SKIPPED };

struct test_result {
	const struct manifest_test *test;
	enum test_verdict verdict; /* a required test that is skipped has failed */
	double seconds;
	char *text; /* what was expected and found, or why it was skipped; malloc'ed; may be NULL */
};

/* file, metadata, lint, elf, python-guard, size: of an image in the store. */
int image_test(struct test_result *r, const struct manifest_test *t, const struct manifest *m,
	const struct lock *l, struct image *im, struct tree *tree, struct pool *pool,
	struct err *e) must_check;

/* Does an output or an answer meet what is expected? NULL, or what is wrong; malloc'ed. */
char *test_check_text(const struct test_expect *x, const char *text, size_t n);
char *test_check_json(const struct test_expect *x, const char *text, size_t n);

/* Reports: JUnit XML (one testsuite; escaped), JSON, and lines for people. */
void test_junit(const struct test_result *v, size_t n, const char *suite, struct buf *out);
void test_json_report(const struct test_result *v, size_t n, const char *image, struct buf *out);

#endif
