/* Whatever the bytes: decoding does not crash, and what it accepts is stable: encoded and decoded
 * again it is the same document.
 *
 *   clang -fsanitize=fuzzer,address,undefined -I. -D_GNU_SOURCE tests/fuzz/fuzz_index.c \
 *       images/index-decode.c images/index-encode.c images/tree*.c base/mem.c base/err.c base/str.c
 * base/digest.c \ -lzstd -lcrypto -o fuzz_index
 *
 * Without libFuzzer, -DFUZZ_MAIN gives a main() that runs the files named on its command line. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "images/index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Decode, and encode what came out: 0; 1 when the bytes are refused. */
static int pass(const void *p, size_t n, struct buf *out, size_t *count, struct err *e)
{
	struct layer *layers = NULL;
	size_t nlayers;
	struct tree *t = index_decode(p, n, &layers, &nlayers, e);
	int rc;

	if (!t)
		return 1;
	*count = tree_count(t);
	rc = index_encode(t, layers, nlayers, out, e);
	/* the decoder does not look for one digest with two lengths */
	assert(rc == 0 || strstr(e->text, "two chunks of one digest"));
	tree_free(t);
	free(layers);
	return rc < 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	auto_buf struct buf one = BUF_INIT(INDEX_BYTES_MAX), two = BUF_INIT(INDEX_BYTES_MAX);
	struct err e = {0};
	size_t a, b;

	if (pass(data, n, &one, &a, &e)) {
		assert(e.kind == ERR_CORRUPT || e.kind == ERR_UNSUPPORTED);
		return 0;
	}
	if (pass(one.data, one.len, &two, &b, &e)) {
		fprintf(stderr, "%s\n", e.text);
		abort();
	}
	assert(a == b && one.len == two.len && memcmp(one.data, two.data, one.len) == 0);
	return 0;
}

#ifdef FUZZ_MAIN
int main(int argc, char **argv)
{
	static uint8_t data[16 << 20];

	for (int i = 1; i < argc; i++) {
		FILE *f = fopen(argv[i], "rb");
		size_t n = f ? fread(data, 1, sizeof(data), f) : 0;

		if (f)
			fclose(f);
		LLVMFuzzerTestOneInput(data, n);
	}
	return 0;
}
#endif
