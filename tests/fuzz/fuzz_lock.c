/* Any text: a lock that is accepted, written and read again is written the same. */
#include <assert.h>
#include <string.h>

#include "builder/lock.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf one = BUF_INIT(256 << 20), two = BUF_INIT(256 << 20);
	struct lock l, again;
	struct err e = {0};
	int rc = lock_parse(&l, "lock.json", data, size, &e);

	if (rc < 0) {
		assert(e.kind == ERR_CORRUPT && strlen(e.text) > 0);
		return 0;
	}
	lock_text(&l, &one);
	rc = lock_parse(&again, "lock.json", one.data, one.len, &e);
	assert(rc == 0);
	lock_text(&again, &two);
	assert(one.len == two.len && memcmp(one.data, two.data, one.len) == 0);
	lock_fini(&again);
	lock_fini(&l);
	buf_fini(&one);
	buf_fini(&two);
	return 0;
}
