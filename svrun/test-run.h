/* The tests that run: exec, http, port. docs/tests.md. */
#ifndef SVRUN_TEST_RUN_H
#define SVRUN_TEST_RUN_H

#include "builder/image-test.h"
#include "svrun/test-container.h"

/* What the tests of one image share: its service, started for the first test that needs it and kept
 * for the next ones. */
struct test_run {
	struct store *s;
	int signals;      /* of test_container_start() */
	const char *logs; /* folder, with a slash at its end: LOGS/TEST.log, LOGS/service.log */
	const struct manifest *m;           /* in the mode of the image */
	const char *image;                  /* by its digest */
	const struct option_list *accepted; /* licences; NULL: none */
	bool has_gpu;                       /* of test_has_gpu() */
	struct test_container service;
	uint32_t gpus; /* that the service has */
	bool has_service, ready;
	char *failure; /* why it did not become ready: for the tests that come after */
};

/* The verdict of r->test goes into r, with the log's last lines when it failed. -1 when it could
 * not be found out, and when somebody wants us to stop. */
int test_run_one(struct test_run *x, struct test_result *r, struct err *e) must_check;
/* End the service. */
void test_run_fini(struct test_run *x);

/* Is there a GPU on this host? 1, 0, -1: its facts cannot be read. */
int test_has_gpu(struct err *e) must_check;

#endif
