/* Parts of the ELF reader that its files share. Private to base/elf*.c. */
#ifndef BASE_ELF_READER_H
#define BASE_ELF_READER_H

#include <elf.h>
#include <stddef.h>

#include "base/elf.h"

enum {
	PROGRAM_HEADERS_MAX = 256,
	DYNAMIC_MAX = 1 << 16, /* bytes of the dynamic section: 4096 entries */
};

/* A file being read. Offsets are of the file, in bytes. */
struct elf_reader {
	const struct elf_input *in;
	struct elf_kind kind;
	unsigned char headers[PROGRAM_HEADERS_MAX * sizeof(Elf64_Phdr)];
	size_t count, size; /* of program headers */
	uint64_t sections;  /* offset of their headers */
	size_t nsections, section_names;
	struct err *e;
};

int elf_damaged(struct err *e, const char *what);
int elf_read_at(const struct elf_reader *r, uint64_t at, void *out, size_t n) must_check;
uint64_t elf_number(const struct elf_kind *k, const unsigned char *p, size_t n);

/* A field of both classes' structures. */
#define FIELD(r, p, type, field)                                                                   \
	((r)->kind.bits == 64 ? elf_number(&(r)->kind, (p) + offsetof(Elf64_##type, field),        \
					sizeof(((Elf64_##type *)0)->field))                        \
			      : elf_number(&(r)->kind, (p) + offsetof(Elf32_##type, field),        \
					sizeof(((Elf32_##type *)0)->field)))
#define SIZE_OF(r, type) ((r)->kind.bits == 64 ? sizeof(Elf64_##type) : sizeof(Elf32_##type))

/* Read what is at the beginning. 1, 0: no program or library. */
int elf_open(struct elf_reader *r, const struct elf_input *in, struct err *e) must_check;
/* The program header of that type, or NULL. */
const unsigned char *elf_header(const struct elf_reader *r, uint32_t type);
/* Where in the file an address of memory is from. */
int elf_offset(const struct elf_reader *r, uint64_t address, uint64_t *at) must_check;
/* Give each entry of the dynamic section that h describes to take(), up to the last. */
int elf_each_dynamic(const struct elf_reader *r, const unsigned char *h,
	int (*take)(void *ctx, const struct elf_reader *r, uint64_t tag, uint64_t value),
	void *ctx) must_check;

#endif
