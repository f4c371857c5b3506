/* The code generator of seccomp.c: rules by number, for several architectures, to classic BPF. */
#ifndef RUNTIME_SECCOMP_BPF_H
#define RUNTIME_SECCOMP_BPF_H

#include "runtime/seccomp.h"

/* One rule for one number. */
struct bpf_rule {
	uint32_t nr;
	size_t order; /* in the document */
	uint32_t action;
	const struct seccomp_arg *args;
	size_t nargs;
};

struct bpf_arch {
	uint32_t audit;         /* AUDIT_ARCH_* */
	struct bpf_rule *rules; /* sorted by nr; those of one nr in their order */
	size_t nrules;
	uint32_t first_newer;
};

struct bpf_actions {
	uint32_t fallback; /* no rule fits */
	uint32_t newer;    /* numbers from first_newer on */
	uint32_t foreign;  /* an architecture that is not in the list; x32 */
};

/* Generate the program. CORRUPT when it would exceed the kernel's BPF_MAXINSNS. *code is the
 * caller's to free. */
int seccomp_bpf(const struct bpf_arch *archs, size_t narchs, const struct bpf_actions *actions,
	struct sock_filter **code, size_t *n, struct err *e) must_check;

#endif
