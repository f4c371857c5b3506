/* Texts in lines of progress. Only images/progress.c includes this. */
#ifndef IMAGES_PROGRESS_JSON_H
#define IMAGES_PROGRESS_JSON_H

#include "base/mem.h"

/* "key":"text", with a comma behind it. What is not UTF-8 (a line of a log that was cut, say) is
 * shown as '?'. */
void progress_json_string(struct buf *b, const char *key, const char *text);

#endif
