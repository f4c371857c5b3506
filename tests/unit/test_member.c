#include "tests/unit/test.h"

#include <string.h>

#include "images/member.h"

static void refused(struct members_total *t, const struct entries *l, const char *text)
{
	struct err e = {0};

	assert_int_equal(members_total_add(t, l, &e), -1);
	assert_int_equal(e.kind, ERR_CORRUPT);
	if (!strstr(e.text, text))
		fail_msg("'%s' lacks '%s'", e.text, text);
}

TEST(small_layers_have_a_million_members_together)
{
	enum { N = 1 << 16 };
	struct entries l = {.v = mem_array(N, sizeof(struct entry)), .n = N};
	struct members_total t;

	for (size_t i = 0; i < N; i++)
		l.v[i].path = "a";
	members_total_init(&t, 0);
	for (int i = 0; i < 16; i++)
		assert_int_equal(members_total_add(&t, &l, NULL), 0);
	refused(&t, &l, "more members than the limit of 1048576");
	members_total_fini(&t);

	members_total_init(&t, 16 * N); /* their blobs pay for one layer more */
	for (int i = 0; i < 17; i++)
		assert_int_equal(members_total_add(&t, &l, NULL), 0);
	refused(&t, &l, "members");
	members_total_fini(&t);
	free(l.v);
}

TEST(names_targets_and_attributes_of_all_layers_are_limited)
{
	enum { MANY = 20 << 20 };
	char *text = mem_alloc(MANY + 1);
	struct xattr x = {.name = "user.a", .value = text, .len = MANY};
	struct entry v[] = {
		{.path = "a", .a = {.target = text, .xattrs = &x, .nxattrs = 1}}, {.path = text}};
	struct entries l = {.v = v, .n = 2}, name = {.v = v + 1, .n = 1};
	struct members_total t;

	memset(text, 'x', MANY);
	text[MANY] = '\0';
	members_total_init(&t, 0);
	assert_int_equal(members_total_add(&t, &l, NULL), 0);
	refused(&t, &name, "limit of 67108864 bytes");
	members_total_fini(&t);
	free(text);
}

RUN_TESTS(cmocka_unit_test(small_layers_have_a_million_members_together),
	cmocka_unit_test(names_targets_and_attributes_of_all_layers_are_limited))
