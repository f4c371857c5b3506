/* Any state.json: it is read or refused, and what was read is written and read again the same. */
#include <assert.h>
#include <string.h>

#include "base/str.h"
#include "svrun/state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void close_parsed(struct state *s)
{
	s->root = s->dir = -1;
	state_close(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_buf struct buf first = BUF_INIT(16 << 20);
	auto_buf struct buf second = BUF_INIT(16 << 20);
	struct state s = {.pid = 0}, again = {.pid = 0};
	struct err e = {0};
	json_t *shown;

	if (size > 1 << 20)
		return 0;
	if (state_parse(&s, (const char *)data, size, &e) < 0) {
		assert(e.kind == ERR_CORRUPT && *e.text);
		close_parsed(&s);
		return 0;
	}
	assert(s.pid >= 0 && s.created_nanosecs < 1000000000);
	shown = state_json(&s, STATE_RUNNING, true);
	assert(shown);
	json_decref(shown);
	state_text(&s, &first);
	assert(state_parse(&again, first.data, first.len, &e) == 0);
	state_text(&again, &second);
	assert(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
	close_parsed(&again);
	close_parsed(&s);
	return 0;
}
