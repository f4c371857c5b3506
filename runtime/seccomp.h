/* System call filters: the rules of config.json's linux.seccomp, made into a BPF program by
 * seccomp-bpf.c. Numbers of system calls come from libseccomp; the program does not, because
 * libseccomp takes milliseconds for it and cannot express "allow ioctl but for TIOCSTI".
 *
 * The first rule that fits decides. Calls with a number above every one that the rules name get
 * ENOSYS instead of an error as the default action, so that programs fall back as on an old kernel.
 * So do those of architectures outside the list, also where the default is to allow.
 *
 * A rule holds for a system call however it is made: i386 has socket and System V IPC calls also as
 * socketcall and ipc, whose other arguments are behind a pointer, where no filter can look. There a
 * rule with arguments counts as one that fits when it is stricter than what would decide without
 * it, and else as one that does not. Arguments of 32-bit calls are compared as the 32 bits that the
 * kernel takes. Source: runtime-spec config-linux.md "Seccomp"; seccomp(2). */
#ifndef RUNTIME_SECCOMP_H
#define RUNTIME_SECCOMP_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/fields.h"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

enum { SECCOMP_ARGS = 6 };

enum seccomp_op { OP_NE, OP_LT, OP_LE, OP_EQ, OP_GE, OP_GT, OP_MASKED_EQ };

struct seccomp_arg {
	uint32_t index; /* < SECCOMP_ARGS */
	enum seccomp_op op;
	uint64_t value, value2; /* MASKED_EQ: (arg & value) == value2 */
};

struct seccomp_rule {
	struct strings names;
	uint32_t action;          /* SECCOMP_RET_*, with its data */
	struct opt_i64 ret;       /* the data, as written */
	struct seccomp_arg *args; /* all must hold */
	size_t nargs;
};

struct spec_seccomp {
	uint32_t default_action;
	struct opt_i64 default_ret;
	uint32_t *archs; /* AUDIT_ARCH_*, as libseccomp's are; the native one is always in */
	size_t narchs;
	unsigned flags; /* SECCOMP_FILTER_FLAG_* */
	struct seccomp_rule *rules;
	size_t nrules;
	const json_t *source; /* the object it was read from, borrowed: what a cache can go by */
	bool notifies;        /* some action is SCMP_ACT_NOTIFY */
	const char *listener_path, *listener_metadata; /* NULL: none */
};

/* The words of config.json, with the kernel's values. */
extern const struct fields_word seccomp_actions[], seccomp_archs[], seccomp_ops[], seccomp_flags[];
/* Does this kernel know the flag? */
bool seccomp_flag_works(unsigned flag);

/* Read the object /linux/seccomp. */
int seccomp_read(const struct at *a, struct spec_seccomp *s, struct err *e) must_check;

/* A compiled filter. Names that an architecture lacks are left out of it, as are those that none
 * knows: the kernel that has them is newer than the filter. */
struct seccomp_prog {
	struct sock_filter *code;
	size_t n;
	unsigned flags;
	bool notifies;
};
int seccomp_compile(struct seccomp_prog *p, const struct spec_seccomp *s, struct err *e) must_check;
void seccomp_prog_fini(struct seccomp_prog *p);

/* Compiled programs kept in the folder `dir` (0700; -1: none) by the text that they were made from:
 * 1 when there is one of it, whole and ours, else 0. A folder that cannot be used does no harm. */
int seccomp_recall(struct seccomp_prog *p, int dir, const char *text, size_t n);
void seccomp_remember(const struct seccomp_prog *p, int dir, const char *text, size_t n);
/* Both, with the text of s->source, compiling in between. */
int seccomp_cached(
	struct seccomp_prog *p, int dir, const struct spec_seccomp *s, struct err *e) must_check;

/* A compiled filter as bytes, and back. *out is the caller's to buf_fini(). Errors: CORRUPT. */
void seccomp_pack(const struct seccomp_prog *p, struct buf *out);
int seccomp_unpack(struct seccomp_prog *p, const void *data, size_t n, struct err *e) must_check;

/* Put it on this process: needs no_new_privs or CAP_SYS_ADMIN. *listener receives the descriptor
 * that notifications come from, when the filter has any, else -1. */
int seccomp_install(const struct seccomp_prog *p, int *listener, struct err *e) must_check;

/* Hand a listener to the agent at s->listener_path: `state` is the container process state (JSON)
 * of runtime-spec config-linux.md "Container Process State", the descriptor goes with it. */
int seccomp_send_listener(
	const struct spec_seccomp *s, int listener, const char *state, struct err *e) must_check;

#endif
