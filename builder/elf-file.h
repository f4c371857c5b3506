/* ELF files of a tree, read from the pool (base/elf.h). */
#ifndef BUILDER_ELF_FILE_H
#define BUILDER_ELF_FILE_H

#include "base/elf.h"
#include "images/pool.h"
#include "images/tree.h"

/* As elf_kind(): 1, 0, -1. */
int elf_kind_of(
	const struct attr *file, struct pool *pool, struct elf_kind *k, struct err *e) must_check;
/* As elf_read(): 1, 0, -1: CORRUPT says what is wrong with the file, other kinds that it could not
 * be read. */
int elf_file_read(struct elf_file *f, const struct attr *file, struct pool *pool, struct arena *a,
	struct err *e) must_check;

#endif
