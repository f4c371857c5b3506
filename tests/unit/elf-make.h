/* ELF files as small as they can be: headers, a dynamic section, its strings. */
#ifndef ELF_MAKE_H
#define ELF_MAKE_H

#include <elf.h>

#include "tests/unit/fixture.h"

enum { ELF_BYTES = 1024, ELF_ADDRESS = 0x10000 };

struct elf_spec {
	const char *needs[6], *rpath, *runpath, *interpreter;
	uint16_t machine; /* 0: EM_X86_64 */
	int bits;         /* 0: 64 */
	bool big_endian, no_default_lib;
	uint8_t osabi;
};

struct elf_out {
	const struct elf_spec *s;
	unsigned char b[ELF_BYTES];
	size_t strings, nstrings, dynamic, ndynamic;
};

static MAYBE_UNUSED void elf_number(struct elf_out *o, size_t at, uint64_t v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		o->b[at + (o->s->big_endian ? n - 1 - i : i)] = (unsigned char)(v >> 8 * i);
}

#define ELF_PUT(o, at, type, field, v)                                                             \
	((o)->s->bits == 32 ? elf_number(o, (at) + offsetof(Elf32_##type, field), v,               \
				      sizeof(((Elf32_##type *)0)->field))                          \
			    : elf_number(o, (at) + offsetof(Elf64_##type, field), v,               \
				      sizeof(((Elf64_##type *)0)->field)))

static MAYBE_UNUSED void elf_dynamic(struct elf_out *o, uint64_t tag, uint64_t v)
{
	size_t word = o->s->bits == 32 ? 4 : 8, at = o->dynamic + 2 * word * o->ndynamic++;

	elf_number(o, at, tag, word);
	elf_number(o, at + word, v, word);
}

static MAYBE_UNUSED uint64_t elf_string(struct elf_out *o, const char *s)
{
	size_t at = o->nstrings;

	assert_true(o->strings + at + strlen(s) < ELF_BYTES);
	memcpy(o->b + o->strings + at, s, strlen(s) + 1);
	o->nstrings += strlen(s) + 1;
	return at;
}

static MAYBE_UNUSED void elf_program_header(
	struct elf_out *o, size_t i, uint32_t type, uint64_t at, uint64_t n)
{
	size_t h = (o->s->bits == 32 ? sizeof(Elf32_Ehdr) : sizeof(Elf64_Ehdr)) +
		   i * (o->s->bits == 32 ? sizeof(Elf32_Phdr) : sizeof(Elf64_Phdr));

	ELF_PUT(o, h, Phdr, p_type, type);
	ELF_PUT(o, h, Phdr, p_offset, at);
	ELF_PUT(o, h, Phdr, p_vaddr, ELF_ADDRESS + at);
	ELF_PUT(o, h, Phdr, p_filesz, n);
}

static MAYBE_UNUSED void elf_make(struct elf_out *o, const struct elf_spec *s)
{
	size_t interpreter = 0;

	*o = (struct elf_out){.s = s, .dynamic = 256, .strings = 512, .nstrings = 1};
	memcpy(o->b, ELFMAG, SELFMAG);
	o->b[EI_CLASS] = s->bits == 32 ? ELFCLASS32 : ELFCLASS64;
	o->b[EI_DATA] = s->big_endian ? ELFDATA2MSB : ELFDATA2LSB;
	o->b[EI_VERSION] = EV_CURRENT;
	o->b[EI_OSABI] = s->osabi;
	ELF_PUT(o, 0, Ehdr, e_type, ET_DYN);
	ELF_PUT(o, 0, Ehdr, e_machine, s->machine ? s->machine : EM_X86_64);
	ELF_PUT(o, 0, Ehdr, e_phoff, s->bits == 32 ? sizeof(Elf32_Ehdr) : sizeof(Elf64_Ehdr));
	ELF_PUT(o, 0, Ehdr, e_phentsize, s->bits == 32 ? sizeof(Elf32_Phdr) : sizeof(Elf64_Phdr));
	ELF_PUT(o, 0, Ehdr, e_phnum, s->interpreter ? 3 : 2);
	for (size_t i = 0; i < 6 && s->needs[i]; i++)
		elf_dynamic(o, DT_NEEDED, elf_string(o, s->needs[i]));
	if (s->rpath)
		elf_dynamic(o, DT_RPATH, elf_string(o, s->rpath));
	if (s->runpath)
		elf_dynamic(o, DT_RUNPATH, elf_string(o, s->runpath));
	if (s->no_default_lib)
		elf_dynamic(o, DT_FLAGS_1, DF_1_NODEFLIB);
	if (s->interpreter)
		interpreter = elf_string(o, s->interpreter);
	elf_dynamic(o, DT_STRTAB, ELF_ADDRESS + o->strings);
	elf_dynamic(o, DT_STRSZ, o->nstrings);
	elf_dynamic(o, DT_NULL, 0);
	elf_program_header(o, 0, PT_LOAD, 0, ELF_BYTES);
	elf_program_header(o, 1, PT_DYNAMIC, o->dynamic, 256);
	if (s->interpreter)
		elf_program_header(
			o, 2, PT_INTERP, o->strings + interpreter, strlen(s->interpreter) + 1);
}

/* n bytes as a file of the fixture's tree. */
static MAYBE_UNUSED struct node *put_bytes(
	struct fixture *f, const char *path, const void *p, uint32_t n, uint32_t mode)
{
	struct chunk c = {0};
	struct attr a = {.type = NODE_FILE, .mode = mode, .size = n, .nchunks = 1, .chunks = &c};

	need(pool_put(f->p, p, n, &c, &f->e));
	c.layer = CHUNK_NO_LAYER;
	return put_node(f, path, &a);
}

static MAYBE_UNUSED struct node *put_elf(
	struct fixture *f, const char *path, const struct elf_spec *s)
{
	struct elf_out o;

	elf_make(&o, s);
	return put_bytes(f, path, o.b, ELF_BYTES, 0755);
}

#endif
