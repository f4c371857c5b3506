/* One HTTP request to a service in a container, over its loopback: HTTP/1.1, no redirect followed,
 * no proxy, no cookie, and nothing of the host within reach. */
#ifndef SVRUN_TEST_HTTP_H
#define SVRUN_TEST_HTTP_H

#include "svrun/test-container.h"

enum { TEST_BODY_MAX = 16 << 20 };

struct test_request {
	const char *method, *path; /* "GET", "/" */
	uint32_t port;
	struct pairs headers;
	const char *body; /* NULL: none */
	size_t body_len;
	bool json; /* the body is JSON: said in a header unless there is one */
};

struct test_answer {
	long status;
	struct buf body; /* at most TEST_BODY_MAX */
	bool refused;    /* there is none, because nobody listens */
};

/* 1: there is an answer. 0: there is none, *why (malloc'ed) says what went wrong: nobody listens,
 * the deadline came, it is no HTTP, the body is too long. -1. */
int test_http(struct test_container *c, const struct test_request *q, double deadline,
	struct test_answer *a, char **why, struct err *e) must_check;
void test_answer_fini(struct test_answer *a);

/* Does anybody accept a connection on a TCP port? 1, 0, -1. */
int test_connect(
	struct test_container *c, uint32_t port, double deadline, struct err *e) must_check;

#endif
