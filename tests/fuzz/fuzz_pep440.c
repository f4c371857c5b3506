/* Two lines of any text: versions whose normal form is their own, whose order is one, and that fit
 * what they are; specifiers and markers that are read or refused. */
#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "builder/marker.h"
#include "builder/pep440.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_version(const struct pep440 *v)
{
	char text[PEP440_TEXT], again[PEP440_TEXT];
	struct pep440 w;

	pep440_text(v, text);
	if (strlen(text) > PEP440_MAX) /* "r" becomes ".post0" */
		return;
	assert(pep440_parse(&w, text, strlen(text)) == 0);
	assert(pep440_compare(v, &w) == 0);
	assert(strcmp(pep440_text(&w, again), text) == 0);

	auto_free char *same = mem_printf("==%s,===%s", text, text);
	auto_free char *other = mem_printf("!=%s", text);

	assert(pep440_fits(text, same) == 1);
	assert(pep440_fits(text, other) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct marker_env env = {.python_version = "3.11", .machine = "x86_64", .extra = ""};
	auto_free char *text = mem_alloc(size + 2);
	struct arena a = {0};
	struct requirement q;
	struct pep440 v, w;
	char *second;
	bool one, two;

	memcpy(text, data, size);
	second = strchr(text, '\n');
	if (second)
		*second++ = '\0';
	else
		second = text + size + 1;
	one = pep440_parse(&v, text, strlen(text)) == 0;
	two = pep440_parse(&w, second, strlen(second)) == 0;
	if (one)
		check_version(&v);
	if (one && two)
		assert((pep440_compare(&v, &w) < 0) == (pep440_compare(&w, &v) > 0));
	if (one)
		(void)pep440_fits(text, second);
	assert(marker_holds(text, &env, NULL) <= 1);
	if (requirement_parse(&q, &a, second, NULL) == 0)
		assert(q.name && q.specifiers);
	arena_fini(&a);
	return 0;
}
