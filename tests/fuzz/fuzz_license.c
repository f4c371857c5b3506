/* Any text as a licence, and as a copyright file: nothing, or an expression that reads as itself.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/str.h"
#include "builder/license.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct arena *a, const char *expression)
{
	int depth = 0;

	if (!expression)
		return;
	assert(*expression && str_utf8(expression, strlen(expression)));
	for (const char *c = expression; *c; c++) {
		assert(strchr(
			"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-+() ",
			*c));
		depth += *c == '(' ? 1 : *c == ')' ? -1 : 0;
		assert(depth >= 0);
	}
	assert(depth == 0);
	(void)a;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char head[] = "Format: copyright-format/1.0\nLicense: ";
	auto_free char *text = mem_alloc(size + sizeof(head));
	struct arena a = {0};

	memcpy(text, head, sizeof(head) - 1);
	memcpy(text + sizeof(head) - 1, data, size);
	check(&a, license_of_debian(&a, text, size + sizeof(head) - 1));
	check(&a, license_of_text(&a, text + sizeof(head) - 1));
	check(&a, license_of_classifier(&a, text + sizeof(head) - 1));
	arena_fini(&a);
	return 0;
}
