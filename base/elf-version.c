/* Symbol versions and notes. */
#include <stdio.h>
#include <string.h>

#include "base/elf-reader.h"
#include "base/str.h"

enum {
	VERSIONS_FIRST = 1 << 12, /* bytes of the version section that are read first, */
	VERSIONS_MAX = 1 << 18,   /* and at most: eight times as much each time */
	STRINGS_MAX = 16 << 20,   /* of the table of names */
	LINKS_MAX = 4096,         /* steps along one of its lists: a list may bite its tail */
	SECTIONS_MAX = 1024,
	NAMES_MAX = 1 << 16,
	NOTE_MAX = 1 << 16,
};

/* ---- versions ---- */

struct versions {
	uint64_t strtab, strsz, need, define;
	bool has_strtab, has_need, has_define;
	char *strings;
};

static int take_entry(
	void *ctx, const struct elf_reader *r __attribute__((unused)), uint64_t tag, uint64_t value)
{
	struct versions *v = ctx;

	switch (tag) {
	case DT_STRTAB:
		v->strtab = value;
		v->has_strtab = true;
		break;
	case DT_STRSZ:
		v->strsz = value;
		break;
	case DT_VERNEED:
		v->need = value;
		v->has_need = true;
		break;
	case DT_VERDEF:
		v->define = value;
		v->has_define = true;
		break;
	default:
		break;
	}
	return 0;
}

/* Keep "GLIBC_2.34" if it is newer. GLIBC_PRIVATE and others' versions do not count. */
static void take_version(const struct versions *v, uint64_t name, char newest[ELF_GLIBC_MAX])
{
	const char *text = v->strings + name;
	size_t n;

	if (name >= v->strsz || !str_starts(text, "GLIBC_"))
		return;
	text += strlen("GLIBC_");
	n = strspn(text, "0123456789.");
	if (n == 0 || text[n] || n >= ELF_GLIBC_MAX || str_version_compare(text, newest) <= 0)
		return;
	memcpy(newest, text, n + 1);
}

/* Both lists are lists of lists with offsets from each entry to the next; the two differ in where
 * the fields are. */
struct list {
	size_t size, first, next; /* of an entry: its bytes, where its list begins, the next one */
	size_t aux_size, name, aux_next;
};
static const struct list needs = {sizeof(Elf64_Verneed), offsetof(Elf64_Verneed, vn_aux),
	offsetof(Elf64_Verneed, vn_next), sizeof(Elf64_Vernaux), offsetof(Elf64_Vernaux, vna_name),
	offsetof(Elf64_Vernaux, vna_next)};
static const struct list defines = {sizeof(Elf64_Verdef), offsetof(Elf64_Verdef, vd_aux),
	offsetof(Elf64_Verdef, vd_next), sizeof(Elf64_Verdaux), offsetof(Elf64_Verdaux, vda_name),
	offsetof(Elf64_Verdaux, vda_next)};

/* 1; 0: the list goes on behind the n bytes at b. */
static int walk(const struct elf_reader *r, const struct versions *v, const struct list *l,
	const unsigned char *b, size_t n, char newest[ELF_GLIBC_MAX])
{
	uint64_t at = 0, aux, next;
	size_t steps = 0;

	do {
		if (at + l->size > n)
			return 0;
		aux = at + elf_number(&r->kind, b + at + l->first, 4);
		do {
			if (steps++ == LINKS_MAX)
				return elf_damaged(r->e, "a list of versions without an end");
			if (aux + l->aux_size > n)
				return 0;
			take_version(v, elf_number(&r->kind, b + aux + l->name, 4), newest);
			next = elf_number(&r->kind, b + aux + l->aux_next, 4);
			aux += next;
		} while (next);
		next = elf_number(&r->kind, b + at + l->next, 4);
		at += next;
	} while (next);
	return 1;
}

/* How long the section is stands in no segment: a little is read, and more when that was not all.
 */
static int find_newest(const struct elf_reader *r, const struct versions *v, const struct list *l,
	uint64_t address, char newest[ELF_GLIBC_MAX])
{
	auto_free unsigned char *b = NULL;
	uint64_t start = 0, left;
	int rc = 0;

	if (elf_offset(r, address, &start) < 0)
		return -1;
	left = start < r->in->size ? r->in->size - start : 0;
	for (size_t n = VERSIONS_FIRST; rc == 0 && n <= VERSIONS_MAX; n *= 8) {
		size_t part = left < n ? (size_t)left : n;

		free(b);
		b = mem_alloc(part + 1);
		if (elf_read_at(r, start, b, part) < 0)
			return -1;
		rc = walk(r, v, l, b, part, newest);
		if (part == left)
			break;
	}
	return rc > 0   ? 0
	       : rc < 0 ? -1
			: elf_damaged(r->e, "a list of versions that leads out of it");
}

int elf_glibc(struct elf_glibc *g, const struct elf_input *in, struct err *e)
{
	struct elf_reader r;
	struct versions v = {0};
	const unsigned char *h;
	auto_free char *strings = NULL;
	uint64_t at = 0;
	int rc = elf_open(&r, in, e);

	*g = (struct elf_glibc){0};
	h = rc > 0 ? elf_header(&r, PT_DYNAMIC) : NULL;
	if (!h)
		return rc < 0 ? -1 : 0;
	if (elf_each_dynamic(&r, h, take_entry, &v) < 0)
		return -1;
	if (!v.has_strtab || (!v.has_need && !v.has_define))
		return 1;
	if (elf_offset(&r, v.strtab, &at) < 0)
		return -1;
	if (v.strsz > STRINGS_MAX)
		return elf_damaged(e, "a table of strings of more than 16 MiB");
	strings = mem_alloc((size_t)v.strsz + 1);
	if (elf_read_at(&r, at, strings, (size_t)v.strsz) < 0)
		return -1;
	v.strings = strings;
	if (v.has_need && find_newest(&r, &v, &needs, v.need, g->needed) < 0)
		return -1;
	return v.has_define && find_newest(&r, &v, &defines, v.define, g->defined) < 0 ? -1 : 1;
}

/* ---- notes ---- */

/* The header of the section of that name and type. 1, 0, -1. */
static int find_section(
	const struct elf_reader *r, const char *name, uint32_t type, unsigned char *out)
{
	size_t size = SIZE_OF(r, Shdr);
	auto_free unsigned char *headers = NULL;
	auto_free char *names = NULL;
	uint64_t n;

	if (!r->nsections || r->section_names >= r->nsections)
		return 0;
	if (r->nsections > SECTIONS_MAX)
		return elf_damaged(r->e, "more than 1024 sections");
	headers = mem_alloc(r->nsections * size);
	if (elf_read_at(r, r->sections, headers, r->nsections * size) < 0)
		return -1;
	n = FIELD(r, headers + r->section_names * size, Shdr, sh_size);
	if (n > NAMES_MAX)
		return elf_damaged(r->e, "names of sections of more than 64 KiB");
	names = mem_alloc((size_t)n + 1);
	if (elf_read_at(r, FIELD(r, headers + r->section_names * size, Shdr, sh_offset), names,
		    (size_t)n) < 0)
		return -1;
	for (size_t i = 0; i < r->nsections; i++) {
		const unsigned char *h = headers + i * size;
		uint64_t at = FIELD(r, h, Shdr, sh_name);

		if (FIELD(r, h, Shdr, sh_type) != type || at >= n || !str_eq(names + at, name))
			continue;
		memcpy(out, h, size);
		return 1;
	}
	return 0;
}

int elf_note(const struct elf_input *in, const char *section, const char *owner, struct buf *out,
	struct err *e)
{
	struct elf_reader r;
	unsigned char h[sizeof(Elf64_Shdr)];
	auto_free unsigned char *b = NULL;
	uint64_t n, align, name, desc, at;
	int rc = elf_open(&r, in, e);

	rc = rc > 0 ? find_section(&r, section, SHT_NOTE, h) : rc;
	if (rc <= 0)
		return rc;
	n = FIELD(&r, h, Shdr, sh_size);
	align = FIELD(&r, h, Shdr, sh_addralign) == 8 ? 8 : 4;
	if (n > NOTE_MAX)
		return elf_damaged(e, "a note of more than 64 KiB");
	b = mem_alloc((size_t)n + 1);
	if (elf_read_at(&r, FIELD(&r, h, Shdr, sh_offset), b, (size_t)n) < 0)
		return -1;
	if (n < sizeof(Elf64_Nhdr))
		return elf_damaged(e, "a note without its beginning");
	name = elf_number(&r.kind, b, 4);
	desc = elf_number(&r.kind, b + 4, 4);
	at = sizeof(Elf64_Nhdr);
	if (name > n - at)
		return elf_damaged(e, "a note that ends beyond its section");
	if (strnlen((const char *)b + at, (size_t)name) != strlen(owner) ||
		memcmp(b + at, owner, strlen(owner)) != 0)
		return 0;
	at += (name + align - 1) & ~(align - 1);
	/* Some are padded otherwise than their section says, and end a little too late. */
	if (at > n)
		return elf_damaged(e, "a note that ends beyond its section");
	if (desc > n - at)
		desc = n - at;
	return buf_add(out, b + at, strnlen((const char *)b + at, (size_t)desc), e) < 0 ? -1 : 1;
}
