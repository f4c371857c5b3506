/* A bill of materials from anywhere. The first byte says whether the rest is what a bill looks like
 * when it is unpacked, which is then packed, or the packed bytes themselves. What is taken can be
 * written again, to the same bytes each time, and asked about. */
#include <assert.h>
#include <string.h>
#include <zstd.h>

#include "base/str.h"
#include "builder/bill.h"
#include "builder/provenance.h"
#include "builder/sbom.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(const struct bill *b)
{
	static const enum sbom_format formats[] = {SBOM_SPDX, SBOM_CYCLONEDX_1_6};
	const struct digest image = {{1}};
	auto_buf struct buf text = BUF_INIT(SBOM_TEXT_MAX), more = BUF_INIT(PROVENANCE_MAX);

	for (size_t i = 0; i < b->nfiles; i++) {
		const struct bill_file *f = bill_find(b, b->files[i].path);

		/* files in another order than a walk's are not found, or as one another */
		assert(!f || str_eq(f->path, b->files[i].path));
		assert(b->files[i].item < b->nitems && b->files[i].layer < b->nlayers);
	}
	for (size_t i = 0; i < b->nitems; i++) {
		assert(b->items[i].via < b->nitems && b->items[i].name);
		for (size_t k = 0; k < b->items[i].nlayers; k++)
			assert(b->items[i].layers[k] < b->nlayers);
	}
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		sbom_text(formats[i], b, &image, NULL, &text);
	if (provenance_text(b, &image, &more, NULL) < 0)
		return;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_buf struct buf first = BUF_INIT(1 << 26), second = BUF_INIT(1 << 26);
	auto_free char *packed = NULL;
	struct bill b;

	if (size == 0)
		return 0;
	if (data[0] % 2) {
		size_t room = ZSTD_compressBound(size - 1), n;

		packed = mem_alloc(room);
		n = ZSTD_compress(packed, room, data + 1, size - 1, 1);
		assert(!ZSTD_isError(n));
		if (bill_decode(&b, packed, n, NULL) < 0)
			return 0;
	} else if (bill_decode(&b, data + 1, size - 1, NULL) < 0) {
		return 0;
	}
	ask(&b);
	assert(bill_encode(&b, &first, NULL) == 0);
	bill_fini(&b);
	assert(bill_decode(&b, first.data, first.len, NULL) == 0);
	assert(bill_encode(&b, &second, NULL) == 0);
	assert(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
	bill_fini(&b);
	return 0;
}
