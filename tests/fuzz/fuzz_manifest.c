/* Any text: every complaint has a place inside it; a manifest without variables and modes that is
 * accepted, printed and parsed again is the same manifest. Seeds: tests/data/manifest. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "builder/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_complaints(const struct complaints *c, size_t size)
{
	const char *line = c->text.data;
	size_t lines = 0;

	for (; *line; line = strchr(line, '\n') + 1, lines++) {
		size_t row, col;
		int code;

		for (const char *p = line; *p != '\n'; p++)
			assert((unsigned char)*p >= 0x20 && *p != 0x7f);
		if (sscanf(line, "m.json:%zu:%zu: SV%d ", &row, &col, &code) == 3)
			assert(row >= 1 && col >= 1 && row <= size + 1 && col <= size + 1);
		else
			assert(lines == 100); /* "N more errors are not shown" */
	}
	assert(lines >= 1 && lines <= 101 && c->count >= (lines > 100 ? 100 : lines));
}

static void check_again(const struct manifest *m)
{
	struct buf b = BUF_INIT(32 << 20);
	struct complaints c = {0};
	struct manifest again;

	json_text(m->doc.root, true, &b);
	/* inputs and tests may name what resolving takes away */
	if (b.len <= 1 << 20 && !m->nvars && !m->nmodes) {
		int rc = manifest_parse(&again, "m.json", b.data, b.len, NULL, &c, NULL);

		assert(rc == 0 && digest_eq(&m->digest, &again.digest));
		manifest_fini(&again);
	}
	buf_fini(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct complaints c = {0};
	struct manifest m;
	struct err e = {0};

	if (manifest_parse(&m, "m.json", data, size, NULL, &c, &e) == 0) {
		check_again(&m);
		manifest_fini(&m);
	} else if (e.kind == ERR_USAGE) {
		check_complaints(&c, size);
	}
	complaints_fini(&c);
	return 0;
}
