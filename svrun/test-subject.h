/* What tests look at: an app's image in one of its modes, or an image of the store that was built
 * here, with the manifest and the lock that it was built from. */
#ifndef SVRUN_TEST_SUBJECT_H
#define SVRUN_TEST_SUBJECT_H

#include "builder/image-test.h"
#include "images/store.h"
#include "svrun/app.h"

struct test_subject {
	struct app app;
	struct bill bill;
	struct lock lock;
	struct digest digest;
	struct image image;
	struct tree *tree;
	struct pool *pool;
	const char *name; /* of the image, for people */
	char *own_name;
	bool has_app, has_bill, has_lock, has_image;
	bool built;             /* digest is the image that was built just now, without a name */
	struct manifest parsed; /* of an image: what its bill says */
	bool has_parsed;
};

/* Where the manifest comes from. */
struct test_source {
	const char *word; /* APP or IMAGE */
	bool is_app;
	struct app_choice choice;   /* of an app */
	const struct digest *image; /* of that choice, whatever names there are; or NULL */
};

/* Is it an app, by what there is in the file system? */
bool test_word_is_app(const char *word);

/* The manifest and the lock, in a mode (NULL: that of the choice). s is NULL for an app of which
 * only the plan is wanted. 1; 0 when there is none in that mode: it is not locked, or of an image,
 * it was not built; -1.
 * Errors: NOT_FOUND (no such image; it was not built here), USAGE, CORRUPT. */
int test_subject_open(struct test_subject *x, const struct test_source *from, const char *mode,
	struct store *s, struct err *e) must_check;
void test_subject_close(struct test_subject *x);
const struct manifest *test_subject_manifest(const struct test_subject *x);

/* Have the image of an app be there, as the manifest and the lock are now: 1; 0: it was not built;
 * -1: USAGE, it was built from others. */
int test_subject_find(struct test_subject *x, struct store *s, struct err *e) must_check;
/* The image's tree, with the pool open: for image_test(). test_subject_unload() before anything
 * forks. */
int test_subject_load(struct test_subject *x, struct store *s, struct err *e) must_check;
void test_subject_unload(struct test_subject *x);
struct tested test_subject_tested(struct test_subject *x);

#endif
