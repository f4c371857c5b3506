/* Two documents, the second a parent of the first, with a mode, a matrix entry and variables: every
 * complaint has a place inside one of the two; what is accepted prints, and every value of it has a
 * place. The input is the two texts with a NUL between them. */
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/sys.h"
#include "builder/manifest.h"
#include "builder/resolve.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[] = "/tmp/svrun-fuzz-XXXXXX", child[64], parent[64];

static void clean(void)
{
	(void)!sys_remove_tree(AT_FDCWD, dir);
}

static void make_folders(void)
{
	if (*child)
		return;
	if (!mkdtemp(dir) || atexit(clean) != 0)
		abort();
	snprintf(child, sizeof(child), "%s/app/manifest.json", dir);
	snprintf(parent, sizeof(parent), "%s/base", dir);
	if (sys_mkdirat(AT_FDCWD, parent, 0755) < 0)
		abort();
	snprintf(parent, sizeof(parent), "%s/base/manifest.json", dir);
}

static void check_complaints(const struct complaints *c, size_t size)
{
	for (const char *line = c->text.data; *line; line = strchr(line, '\n') + 1) {
		size_t row, col;
		int code, n = 0;

		sscanf(line, "%*[^:]:%zu:%zu: SV%d %n", &row, &col, &code, &n);
		assert(n == 0 || (row >= 1 && col >= 1 && row <= size + 1 && col <= size + 1));
		assert(n || strstr(line, "more errors are not shown"));
	}
	assert(c->count);
}

static void check_places(const struct resolved *r, size_t size)
{
	struct buf text = BUF_INIT(1 << 30), json = BUF_INIT(1 << 30);
	const char *file;
	int line, col;

	resolved_print(r, false, &text);
	resolved_print(r, true, &json);
	assert(text.len && json.len);
	resolved_place(r, "/env/A/0/~1~0/x", true, &file, &line, &col);
	assert(line >= 1 && col >= 1 && (size_t)line <= size + 1);
	buf_fini(&text);
	buf_fini(&json);
}

static void run(const char *text, size_t n, const struct manifest_choice *choice, size_t size)
{
	struct complaints c = {0};
	struct manifest m;
	struct err e = {0};

	if (manifest_parse(&m, child, text, n, choice, &c, &e) == 0) {
		check_places(m.source, size);
		manifest_fini(&m);
	} else if (e.kind == ERR_USAGE && c.count) {
		check_complaints(&c, size);
	}
	complaints_fini(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = memchr(data, 0, size);
	size_t n = end ? (size_t)(end - data) : size, rest = end ? size - n - 1 : 0;
	struct pair vars[] = {{"a", "7"}};
	const struct manifest_choice choices[] = {
		{0}, {.mode = "cpu"}, {.matrix = "b", .vars = {vars, 1}}};

	make_folders();
	if (file_write(AT_FDCWD, parent, data + size - rest, rest, 0644, NULL) < 0)
		abort();
	for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++)
		run((const char *)data, n, &choices[i], size);
	return 0;
}
