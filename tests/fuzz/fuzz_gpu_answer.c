/* gpu_answer_read(): what a driver's library said through the probe. What is taken, once printed,
 * is taken again and is the same. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/json.h"
#include "svrun/gpu-answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e = {0};
	auto_json json_t *once = gpu_answer_read((const char *)data, size, &e), *again = NULL;
	auto_buf struct buf text = BUF_INIT(4 * GPU_ANSWER_MAX);
	struct gpu_failure f;

	if (!once) {
		assert(e.kind == ERR_CORRUPT);
		return 0;
	}
	if (gpu_answer_failure(once, &f))
		assert(f.call && f.name && f.means && f.advice && f.code != 0);
	json_text(once, true, &text);
	again = gpu_answer_read(text.data, text.len, &e);
	assert(again && json_equal(once, again));
	return 0;
}
