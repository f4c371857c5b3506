#include "images/progress-json.h"

#include <jansson.h>

#include "base/json.h"

void progress_json_string(struct buf *b, const char *key, const char *text)
{
	auto_buf struct buf quoted = BUF_INIT(1 << 20);
	auto_free char *copy = mem_strdup(text);
	json_t *j = json_string(copy);

	for (char *c = copy; !j && *c; c++)
		if ((unsigned char)*c >= 0x80)
			*c = '?';
	if (!j)
		j = json_string(copy);
	json_text(j, true, &quoted);
	buf_printf(b, "\"%s\":%s,", key, quoted.data);
	json_decref(j);
}
