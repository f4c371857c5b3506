/* What an ELF file says to the dynamic loader. The file is hostile: every offset and count is
 * checked, nothing is read but what the headers name, in bounded memory. 32 and 64 bit, both byte
 * orders. Errors: CORRUPT says what is wrong with the file, others are the input's.
 * Source: System V ABI, chapters 4 and 5; LSB "Symbol Versioning"; elf(5). */
#ifndef BASE_ELF_H
#define BASE_ELF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"

enum { ELF_NEEDS_MAX = 512 }; /* libraries that one file may need */

/* Where the bytes come from: n of them at `at`, which lie in the file. */
struct elf_input {
	int (*read)(void *ctx, uint64_t at, void *out, size_t n, struct err *e);
	void *ctx;
	uint64_t size; /* of the file */
};
/* An open regular file; *fd must live as long as the input. Errors: SYSTEM. */
int elf_input_fd(struct elf_input *in, int *fd, struct err *e) must_check;

/* What a library must have in common with what loads it. */
struct elf_kind {
	uint16_t machine; /* EM_X86_64 */
	uint8_t bits;     /* 32, 64 */
	bool big_endian;
};

struct elf_file {
	struct elf_kind kind;
	const char *interpreter;     /* of a program; or NULL */
	const char *soname;          /* of a library; or NULL */
	const char *rpath, *runpath; /* or NULL; with `runpath`, rpath means nothing */
	bool no_default_lib;         /* linked with -z nodefaultlib */
	struct strings needs;
};

/* Is the file a program or shared library, and of which kind? Reads 20 bytes. 1, 0, -1. */
int elf_kind(struct elf_kind *k, const struct elf_input *in, struct err *e) must_check;
/* Strings are made in the arena. 1; 0: it is neither a program nor a shared library, or a static
 * one. */
int elf_read(
	struct elf_file *f, const struct elf_input *in, struct arena *a, struct err *e) must_check;

/* The newest version of glibc's symbols: "2.34"; "" where there is none. */
enum { ELF_GLIBC_MAX = 16 };
struct elf_glibc {
	char needed[ELF_GLIBC_MAX];  /* that the file asks of others */
	char defined[ELF_GLIBC_MAX]; /* that the file has: it is a libc */
};
/* 1, 0 as elf_read(). */
int elf_glibc(struct elf_glibc *g, const struct elf_input *in, struct err *e) must_check;

/* The description of the first note in a section of that name, if its owner is this one. Added to
 * out, whose max bounds it. 1, 0: there is none, -1. */
int elf_note(const struct elf_input *in, const char *section, const char *owner, struct buf *out,
	struct err *e) must_check;

#endif
