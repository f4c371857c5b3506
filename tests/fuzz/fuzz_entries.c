/* Any bytes as a layer's list: decoding ends, what it accepts is the same list after another round,
 * and can be laid over a tree. Bytes that are no list as a whole are tried as the body of one. */
#include <assert.h>
#include <string.h>

#include "images/entries.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const void *p, size_t n)
{
	struct buf one = BUF_INIT(256 << 20), two = BUF_INIT(256 << 20);
	struct entries a, b;
	struct err e = {0};
	struct tree *t;

	if (entries_decode(&a, p, n, &e) < 0) {
		assert(e.kind == ERR_CORRUPT || e.kind == ERR_UNSUPPORTED);
		assert(!a.v && a.n == 0);
		return;
	}
	assert(entries_encode(&a, &one, &e) == 0);
	assert(entries_decode(&b, one.data, one.len, &e) == 0);
	assert(entries_encode(&b, &two, &e) == 0);
	assert(a.n == b.n && one.len == two.len && memcmp(one.data, two.data, one.len) == 0);
	t = tree_new();
	for (int32_t i = 0; i < 2; i++)
		if (entries_apply(t, &a, i, &e) < 0) {
			assert(e.kind == ERR_CORRUPT);
			break;
		}
	tree_sort(t);
	tree_free(t);
	entries_fini(&a);
	entries_fini(&b);
	buf_fini(&one);
	buf_fini(&two);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf whole = BUF_INIT(256 << 20);
	uint64_t head[4] = {0, 1, 0, 0};
	struct digest d;

	check(data, size);
	if (size < 2)
		return 0;
	memcpy(head, "svrunlst", 8);
	head[2] = size - 1;
	head[3] = data[0];
	d = digest_of(data + 1, size - 1);
	buf_put(&whole, head, sizeof(head));
	buf_put(&whole, d.b, DIGEST_SIZE);
	buf_put(&whole, data + 1, size - 1);
	check(whole.data, whole.len);
	buf_fini(&whole);
	return 0;
}
