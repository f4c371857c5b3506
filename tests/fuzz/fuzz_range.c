/* Any bytes as Content-Range: what is accepted holds RFC 9110's rules, and printed and read again
 * it is the same. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "images/range.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *text = mem_alloc(size + 1);
	char printed[RANGE_TEXT], again[RANGE_TEXT];
	struct range r, two;
	int rc;

	memcpy(text, data, size);
	rc = range_header(&r, text, size);
	assert(rc >= -1 && rc <= 1);
	if (range_parse(&r, text) < 0)
		return 0;
	assert(r.satisfied || r.has_total);
	assert(r.first <= r.last && (!r.satisfied || !r.has_total || r.last < r.total));
	range_print(&r, printed);
	if (range_parse(&two, printed) < 0)
		abort();
	assert(strcmp(range_print(&two, again), printed) == 0);
	return 0;
}
