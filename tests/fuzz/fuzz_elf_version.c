/* Any bytes as a library of the driver, or of an image's compat folder: versions, names and the
 * note are read, or the file is damaged. */
#include <assert.h>

#include "base/elf.h"
#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_memory(void *ctx, uint64_t at, void *out, size_t n, struct err *e)
{
	const uint8_t *data = *(const uint8_t **)ctx;

	(void)e;
	memcpy(out, data + at, n); /* ASan sees what is beyond the end */
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct elf_input in = {.read = read_memory, .ctx = &data, .size = size};
	auto_buf struct buf note = BUF_INIT(1 << 16);
	struct arena a = {0};
	struct elf_glibc g;
	struct elf_file f;
	struct err e = {0};

	if (elf_glibc(&g, &in, &e) < 0)
		assert(e.kind == ERR_CORRUPT);
	else
		assert(strlen(g.needed) < ELF_GLIBC_MAX && strlen(g.defined) < ELF_GLIBC_MAX);
	if (elf_note(&in, ".note.cuda.fwd_compatibility", "NVIDIA Corporation", &note, &e) < 0)
		assert(e.kind == ERR_CORRUPT);
	if (elf_read(&f, &in, &a, &e) < 0)
		assert(e.kind == ERR_CORRUPT);
	arena_fini(&a);
	return 0;
}
