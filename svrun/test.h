/* `svrun image test`, and what `svrun image build --test` calls when it has built. */
#ifndef SVRUN_TEST_H
#define SVRUN_TEST_H

#include <stdio.h>

#include "svrun/app.h"

struct test_options {
	const char *stage;                  /* "plan", "image", "run"; NULL: all */
	const struct option_list *only;     /* ids; NULL or empty: all */
	const struct option_list *accepted; /* licences of models; NULL: none */
	const char *junit;                  /* a file to write; NULL: none */
	bool json;                          /* a document instead of lines */
	FILE *out;                          /* NULL: standard output */
	bool quiet;                         /* only what failed, and no summary */
	const struct digest *image;         /* of the choice, which has no name yet; NULL: named */
	bool allow_skip;                    /* a required test that is skipped has not failed */
};

/* Call it first in a command that will call test_app(): containers must not see our program's file
 * (self.h). argv is the command's, which follows the program's name and "image". Does not return
 * when it starts the program again. */
int test_protect(char *const *argv, struct err *e) must_check;

/* Run the tests of an app, or of an image that was built here. *status: 0 all passed, 1 some did
 * not, 128 + signal when one ended it. Errors: USAGE (no such test, another build), NOT_FOUND. */
int test_app(const char *app, const struct app_choice *choice, const struct test_options *o,
	int *status, struct err *e) must_check;

#endif
