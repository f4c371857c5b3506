/* Forward compatibility: an image's /usr/local/cuda/compat/libcuda.so.X.Y, used instead of the
 * host's user-space driver where the rule allows it. The file is hostile: read by descriptor,
 * without following its last link out of the root, bounded. Source: gpu.md 1.7. */
#ifndef GPU_COMPAT_H
#define GPU_COMPAT_H

#include "base/err.h"
#include "base/str.h"

/* 1: put /usr/local/cuda/compat first (with `dir` its path in the root), 0: do not, and why (static
 * text). choice: 1 whatever the note says, -1 never, 0 by the rule: the ELF note
 * .note.cuda.fwd_compatibility lists the host driver's major and its CUDA is newer than the host's;
 * without a note, when its driver version is newer. host_cuda: "12.4", or NULL. */
int compat_decide(int root, const char *host_driver, const char *host_cuda, int choice,
	const char **dir, const char **why, struct err *e) must_check;

#endif
