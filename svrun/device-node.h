/* svrun run --device /dev/PATH[:PATH[:rwm]]: a character device of the host. */
#ifndef SVRUN_DEVICE_NODE_H
#define SVRUN_DEVICE_NODE_H

#include "gpu/edits.h"

/* As docker has it: where in the container (the same path), which of read, write and mknod ("rw").
 * Texts are in mem. Errors: USAGE, NOT_FOUND; DENIED: what is the host itself
 * (gpu/refused.h), or a GPU that nobody reserved. */
int device_node_parse(
	struct edit_node *n, const char *text, struct arena *mem, struct err *e) must_check;

#endif
