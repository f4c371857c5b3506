#include "tests/unit/test.h"

#include "base/mem.h"
#include "svrun/models-volume.h"

static const struct {
	const char *target, *folder, *below; /* below NULL: no volume has it */
} cases[] = {
	{"/models/a/b", "/h/deep", "b"},
	{"/models/a", "/h/deep", ""},
	{"/models/x/y", "/h/top", "x/y"},
	{"/modelsx", NULL, NULL},
	{"/slash/z", "/h/slash", "z"},
	{"/other", NULL, NULL},
};

TEST(the_deepest_volume_that_covers_a_path_has_it)
{
	const char *const volumes[] = {
		"/h/top:/models", "/h/deep:/models/a:ro", "/h/slash:/slash/", "/h/root:/", "bad"};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_free char *folder = NULL;
		const char *below = models_volume(cases[i].target, volumes, 5, &folder);

		if (!cases[i].below) {
			assert_null(below);
			continue;
		}
		assert_non_null(below);
		assert_string_equal(below, cases[i].below);
		assert_string_equal(folder, cases[i].folder);
	}
}

RUN_TESTS(cmocka_unit_test(the_deepest_volume_that_covers_a_path_has_it))
