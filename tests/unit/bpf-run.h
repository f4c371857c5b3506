/* Classic BPF as the kernel runs it on a system call's data: the instructions that filters use. */
#ifndef BPF_RUN_H
#define BPF_RUN_H

#include <linux/bpf_common.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tests/unit/test.h"

static __attribute__((unused)) uint32_t bpf_run(
	const struct sock_filter *code, size_t n, const struct seccomp_data *d)
{
	uint32_t a = 0, x = 0, mem[BPF_MEMWORDS] = {0};

	for (size_t pc = 0; pc < n; pc++) {
		const struct sock_filter *i = &code[pc];

		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			assert_true(i->k <= sizeof(*d) - 4 && i->k % 4 == 0);
			memcpy(&a, (const char *)d + i->k, 4);
			break;
		case BPF_LD | BPF_IMM:
			a = i->k;
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= i->k;
			break;
		case BPF_JMP | BPF_JA:
			pc += i->k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			pc += a == i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JGT | BPF_K:
			pc += a > i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			pc += a >= i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			pc += a & i->k ? i->jt : i->jf;
			break;
		case BPF_ST:
			mem[i->k % BPF_MEMWORDS] = a;
			break;
		case BPF_LD | BPF_MEM:
			a = mem[i->k % BPF_MEMWORDS];
			break;
		case BPF_MISC | BPF_TAX:
			x = a;
			break;
		case BPF_MISC | BPF_TXA:
			a = x;
			break;
		case BPF_RET | BPF_K:
			return i->k;
		default:
			fail_msg("instruction %zu: code %#x", pc, i->code);
		}
	}
	fail_msg("ran off the end");
	return 0;
}

#endif
