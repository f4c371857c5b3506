/* The site's Python package index, the mirror "pypi": mirror:pypi/simple/NAME/ lists the files of a
 * project. Only `svrun image lock` asks it. One thread at a time.
 * Source: PEP 503, 629, 691; PyPA "Simple repository API". */
#ifndef BUILDER_PYTHON_INDEX_H
#define BUILDER_PYTHON_INDEX_H

#include "builder/mirror.h"
#include "builder/python-target.h"
#include "images/http.h"

struct python_index {
	struct mirrors *mirrors;
	struct http http;
	struct arena *a;
};

void python_index_open(struct python_index *x, struct mirrors *mirrors, struct arena *a);
void python_index_close(struct python_index *x);

/* Wheels and sdists of a project (its normal name) that have a sha256. NOT_FOUND, NETWORK, CORRUPT.
 */
int python_index_list(struct python_index *x, const char *project, struct wheel_offer **v,
	size_t *n, struct err *e) must_check;
/* The same from a page that was read from `at`; base: what "mirror:pypi" is. */
int python_index_parse(struct arena *a, const char *base, const char *at, const char *page,
	size_t len, struct wheel_offer **v, size_t *n, struct err *e) must_check;

/* How many bytes the file at a locked address has. */
int python_index_size(
	struct python_index *x, const char *url, uint64_t *size, struct err *e) must_check;

#endif
