/* System calls that an architecture also has as one call of many: i386's socketcall and ipc, whose
 * first argument says which of the socket and System V IPC calls is meant. The others of theirs are
 * behind a pointer, where a filter cannot look. */
#ifndef RUNTIME_SECCOMP_MUX_H
#define RUNTIME_SECCOMP_MUX_H

#include "runtime/seccomp.h"

struct seccomp_mux {
	const char *name;
	int direct;             /* its own number; -1: it has none */
	uint32_t mux;           /* number of the call of many */
	struct seccomp_arg arg; /* holds when that one means this call */
};

/* NULL: the name has its own number only, or none. */
const struct seccomp_mux *seccomp_mux(uint32_t audit_arch, const char *name);
enum { SECCOMP_MUXES_MAX = 32 };
/* All of an architecture; *n receives how many. */
const struct seccomp_mux *seccomp_muxes(uint32_t audit_arch, size_t *n);

#endif
