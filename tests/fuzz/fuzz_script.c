/* Any bytes as a maintainer script: reading ends, and every command has a word. */
#include <assert.h>
#include <string.h>

#include "builder/script.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct script *s = script_new((const char *)data, size);
	struct command c;

	while (script_next(s, &c)) {
		assert(c.words.n > 0);
		for (size_t i = 0; i < c.words.n; i++)
			assert(strlen(c.words.v[i]) <= size + 100000);
	}
	script_free(s);
	return 0;
}
