/* What an ELF file of a tree asks of the dynamic loader. The file is hostile: every offset and
 * count is checked, nothing is read but what the headers name, in bounded memory. 32 and 64 bit,
 * both byte orders. Source: System V ABI, chapters 4 and 5; elf(5). */
#ifndef BUILDER_ELF_FILE_H
#define BUILDER_ELF_FILE_H

#include <stdbool.h>

#include "images/pool.h"
#include "images/tree.h"

enum { ELF_NEEDS_MAX = 512 }; /* libraries that one file may need */

/* What a library must have in common with what loads it. */
struct elf_kind {
	uint16_t machine; /* EM_X86_64 */
	uint8_t bits;     /* 32, 64 */
	bool big_endian;
};

struct elf_file {
	struct elf_kind kind;
	const char *interpreter;     /* of a program; or NULL */
	const char *rpath, *runpath; /* or NULL; with `runpath`, rpath means nothing */
	bool no_default_lib;         /* linked with -z nodefaultlib */
	struct strings needs;
};

/* Is the file a program or shared library, and of which kind? Reads 20 bytes. 1, 0, -1. */
int elf_kind_of(
	const struct attr *file, struct pool *pool, struct elf_kind *k, struct err *e) must_check;
/* Strings are made in the arena. 1; 0: it is neither a program nor a shared library, or a static
 * one; -1: CORRUPT says what is wrong with it, other kinds that it could not be read. */
int elf_file_read(struct elf_file *f, const struct attr *file, struct pool *pool, struct arena *a,
	struct err *e) must_check;

#endif
