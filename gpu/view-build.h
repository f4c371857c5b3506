/* Making a view (view.h), under a lock. Private to gpu/view*.c. */
#ifndef GPU_VIEW_BUILD_H
#define GPU_VIEW_BUILD_H

#include <jansson.h>

#include "gpu/view.h"

#define VIEW_LIB "lib64"
#define VIEW_LIB32 "lib32"

enum { VIEW_NAME_MAX = 96, VIEW_JSON_MAX = 1 << 20 };

/* RUN/views.lock, how: LOCK_EX for whoever makes views or lets go of them, LOCK_SH while one must
 * stay. Returns an fd. */
int views_lock(const struct gpu_host *h, int how, struct err *e) must_check;
/* Does view.json describe the files that the host has now? 1 with *doc, which the caller owns; 0:
 * there is no whole one. */
int view_load(const struct gpu_host *h, const char *name, json_t **doc, struct err *e) must_check;
/* Make the view of that name, unless somebody else just did; views of other versions go. */
int view_build(const struct gpu_host *h, const char *name, const char *version, unsigned caps,
	struct err *e) must_check;

#endif
