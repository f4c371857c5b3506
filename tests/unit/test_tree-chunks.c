#include "tests/unit/test.h"

#include <string.h>

#include "images/tree-chunks.h"

/* Two files of one chunk each, of one digest. */
static struct tree *make(uint32_t length, uint32_t twin)
{
	struct chunk a = {.length = length, .block = CHUNK_NO_BLOCK, .digest.b[0] = 7},
		     b = {.length = twin, .block = CHUNK_NO_BLOCK, .digest.b[0] = 7};
	struct attr first = {.type = NODE_FILE, .size = length, .chunks = &a, .nchunks = 1},
		    second = {.type = NODE_FILE, .size = twin, .chunks = &b, .nchunks = 1};
	struct tree *t = tree_new();

	assert_non_null(tree_put(t, "a", &first, 0, NULL));
	assert_non_null(tree_put(t, "b", &second, 0, NULL));
	return t;
}

TEST(chunks_of_one_digest_get_one_block)
{
	struct tree *t = make(10, 10);
	struct tree_chunks c;

	tree_chunks_init(&c, t);
	assert_int_equal(c.nall, 2);
	assert_int_equal(c.n, 1);
	c.v[0]->block = 5;
	assert_int_equal(tree_chunks_spread(&c, NULL), 0);
	assert_int_equal(c.all[0]->block, 5);
	assert_int_equal(c.all[1]->block, 5);
	tree_chunks_fini(&c);
	tree_free(t);
}

TEST(a_chunk_that_claims_another_length_than_its_twin_is_refused)
{
	for (uint32_t twin = 9; twin <= 11; twin += 2) {
		struct tree *t = make(10, twin);
		struct tree_chunks c;
		struct err e = {0};

		tree_chunks_init(&c, t);
		c.v[0]->block = 5;
		assert_int_equal(tree_chunks_spread(&c, &e), -1);
		assert_int_equal(e.kind, ERR_CORRUPT);
		assert_non_null(strstr(e.text, "bytes long"));
		tree_chunks_fini(&c);
		tree_free(t);
	}
}

RUN_TESTS(cmocka_unit_test(chunks_of_one_digest_get_one_block),
	cmocka_unit_test(a_chunk_that_claims_another_length_than_its_twin_is_refused))
