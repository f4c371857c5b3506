#include "base/elf.h"

#include <string.h>
#include <sys/stat.h>

#include "base/elf-reader.h"
#include "base/sys.h"

enum { STRING_MAX = 4096 }; /* bytes of one name or path */

/* ---- bytes ---- */

int elf_damaged(struct err *e, const char *what)
{
	return err_set(e, ERR_CORRUPT, "damaged ELF file: %s", what);
}

static int read_fd(void *ctx, uint64_t at, void *out, size_t n, struct err *e)
{
	const int *fd = ctx;

	return sys_pread_all(*fd, out, n, (off_t)at) < 0 ? err_sys(e, "read an ELF file") : 0;
}

int elf_input_fd(struct elf_input *in, int *fd, struct err *e)
{
	struct stat st;

	if (sys_fstat(*fd, &st) < 0)
		return err_sys(e, "look at an ELF file");
	*in = (struct elf_input){.read = read_fd, .ctx = fd, .size = (uint64_t)st.st_size};
	return 0;
}

int elf_read_at(const struct elf_reader *r, uint64_t at, void *out, size_t n)
{
	if (at > r->in->size || n > r->in->size - at)
		return elf_damaged(r->e, "an offset beyond the end of the file");
	return n ? r->in->read(r->in->ctx, at, out, n, r->e) : 0;
}

uint64_t elf_number(const struct elf_kind *k, const unsigned char *p, size_t n)
{
	uint64_t v = 0;

	for (size_t i = 0; i < n; i++)
		v = v << 8 | p[k->big_endian ? i : n - 1 - i];
	return v;
}

/* ---- headers ---- */

int elf_kind(struct elf_kind *k, const struct elf_input *in, struct err *e)
{
	const struct elf_reader r = {.in = in, .e = e};
	unsigned char h[20] = {0};
	uint64_t type;

	if (in->size < sizeof(Elf32_Ehdr))
		return 0;
	if (elf_read_at(&r, 0, h, sizeof(h)) < 0)
		return -1;
	if (memcmp(h, ELFMAG, SELFMAG) != 0 ||
		(h[EI_CLASS] != ELFCLASS32 && h[EI_CLASS] != ELFCLASS64) ||
		(h[EI_DATA] != ELFDATA2LSB && h[EI_DATA] != ELFDATA2MSB) ||
		(h[EI_OSABI] != ELFOSABI_SYSV && h[EI_OSABI] != ELFOSABI_LINUX))
		return 0;
	*k = (struct elf_kind){.bits = h[EI_CLASS] == ELFCLASS64 ? 64 : 32,
		.big_endian = h[EI_DATA] == ELFDATA2MSB};
	type = elf_number(k, h + offsetof(Elf64_Ehdr, e_type), 2);
	k->machine = (uint16_t)elf_number(k, h + offsetof(Elf64_Ehdr, e_machine), 2);
	return type == ET_EXEC || type == ET_DYN;
}

static int read_headers(struct elf_reader *r)
{
	unsigned char h[sizeof(Elf64_Ehdr)] = {0};
	uint64_t at;

	if (elf_read_at(r, 0, h, SIZE_OF(r, Ehdr)) < 0)
		return -1;
	at = FIELD(r, h, Ehdr, e_phoff);
	r->count = FIELD(r, h, Ehdr, e_phnum);
	r->size = SIZE_OF(r, Phdr);
	r->sections = FIELD(r, h, Ehdr, e_shoff);
	r->section_names = FIELD(r, h, Ehdr, e_shstrndx);
	r->nsections =
		FIELD(r, h, Ehdr, e_shentsize) == SIZE_OF(r, Shdr) ? FIELD(r, h, Ehdr, e_shnum) : 0;
	if (!r->count)
		return 0;
	if (FIELD(r, h, Ehdr, e_phentsize) != r->size)
		return elf_damaged(r->e, "program headers of another size");
	if (r->count > PROGRAM_HEADERS_MAX)
		return elf_damaged(r->e, "more than 256 program headers");
	return elf_read_at(r, at, r->headers, r->count * r->size);
}

int elf_open(struct elf_reader *r, const struct elf_input *in, struct err *e)
{
	int rc;

	r->in = in;
	r->e = e;
	r->kind = (struct elf_kind){0};
	rc = elf_kind(&r->kind, in, e);
	return rc <= 0 ? rc : read_headers(r) < 0 ? -1 : 1;
}

const unsigned char *elf_header(const struct elf_reader *r, uint32_t type)
{
	for (size_t i = 0; i < r->count; i++)
		if (FIELD(r, r->headers + i * r->size, Phdr, p_type) == type)
			return r->headers + i * r->size;
	return NULL;
}

int elf_offset(const struct elf_reader *r, uint64_t address, uint64_t *at)
{
	for (size_t i = 0; i < r->count; i++) {
		const unsigned char *h = r->headers + i * r->size;
		uint64_t start = FIELD(r, h, Phdr, p_vaddr);

		if (FIELD(r, h, Phdr, p_type) != PT_LOAD || address < start ||
			address - start >= FIELD(r, h, Phdr, p_filesz))
			continue;
		*at = FIELD(r, h, Phdr, p_offset);
		if (*at > UINT64_MAX - (address - start))
			break;
		*at += address - start;
		return 0;
	}
	return elf_damaged(r->e, "an address that is in no segment");
}

/* ---- the dynamic section ---- */

int elf_each_dynamic(const struct elf_reader *r, const unsigned char *h,
	int (*take)(void *ctx, const struct elf_reader *r, uint64_t tag, uint64_t value), void *ctx)
{
	uint64_t at = FIELD(r, h, Phdr, p_offset), n = FIELD(r, h, Phdr, p_filesz);
	size_t size = SIZE_OF(r, Dyn);
	auto_free unsigned char *entries = NULL;

	if (n > DYNAMIC_MAX)
		return elf_damaged(r->e, "a dynamic section of more than 64 KiB");
	entries = mem_alloc((size_t)n + 1);
	if (elf_read_at(r, at, entries, (size_t)n) < 0)
		return -1;
	for (size_t i = 0; i + size <= n; i += size) {
		uint64_t tag = FIELD(r, entries + i, Dyn, d_tag);

		if (tag == DT_NULL)
			break;
		if (take(ctx, r, tag, FIELD(r, entries + i, Dyn, d_un)) < 0)
			return -1;
	}
	return 0;
}

struct dynamic {
	uint64_t strtab, strsz, rpath, runpath, soname;
	bool has_strtab, has_rpath, has_runpath, has_soname, no_default_lib;
	uint64_t needs[ELF_NEEDS_MAX];
	size_t n;
};

static int take_entry(void *ctx, const struct elf_reader *r, uint64_t tag, uint64_t value)
{
	struct dynamic *d = ctx;

	switch (tag) {
	case DT_NEEDED:
		if (d->n == ELF_NEEDS_MAX)
			return elf_damaged(r->e, "it needs more than 512 libraries");
		d->needs[d->n++] = value;
		break;
	case DT_STRTAB:
		d->strtab = value;
		d->has_strtab = true;
		break;
	case DT_STRSZ:
		d->strsz = value;
		break;
	case DT_SONAME:
		d->soname = value;
		d->has_soname = true;
		break;
	case DT_RPATH:
		d->rpath = value;
		d->has_rpath = true;
		break;
	case DT_RUNPATH:
		d->runpath = value;
		d->has_runpath = true;
		break;
	case DT_FLAGS_1:
		d->no_default_lib = value & DF_1_NODEFLIB;
		break;
	default:
		break;
	}
	return 0;
}

/* The NUL-terminated text at `at`, which ends before `end`. */
static char *read_string(const struct elf_reader *r, struct arena *a, uint64_t at, uint64_t end)
{
	char text[STRING_MAX];
	size_t n = sizeof(text);

	if (end > r->in->size)
		end = r->in->size;
	if (at >= end) {
		elf_damaged(r->e, "a string beyond its table");
		return NULL;
	}
	if (n > end - at)
		n = (size_t)(end - at);
	if (elf_read_at(r, at, text, n) < 0)
		return NULL;
	if (!memchr(text, '\0', n)) {
		elf_damaged(r->e, "a string without an end");
		return NULL;
	}
	return arena_strdup(a, text);
}

/* The string of an entry, where there is one. */
static int read_name(const struct elf_reader *r, const struct dynamic *d, struct arena *a,
	uint64_t table, bool has, uint64_t offset, const char **out)
{
	if (!has)
		return 0;
	if (offset > d->strsz)
		return elf_damaged(r->e, "a string beyond its table");
	*out = read_string(r, a, table + offset, table + d->strsz);
	return *out ? 0 : -1;
}

static int read_names(
	const struct elf_reader *r, const struct dynamic *d, struct arena *a, struct elf_file *f)
{
	uint64_t at = 0;

	if (!d->n && !d->has_rpath && !d->has_runpath && !d->has_soname)
		return 0;
	if (!d->has_strtab)
		return elf_damaged(r->e, "names without a table of strings");
	if (elf_offset(r, d->strtab, &at) < 0)
		return -1;
	if (d->strsz > r->in->size || at > r->in->size)
		return elf_damaged(r->e, "a table of strings beyond the end of the file");
	f->needs.v = arena_alloc(a, d->n * sizeof(*f->needs.v));
	for (size_t i = 0; i < d->n; i++) {
		if (read_name(r, d, a, at, true, d->needs[i], &f->needs.v[i]) < 0)
			return -1;
		f->needs.n++;
	}
	if (read_name(r, d, a, at, d->has_rpath, d->rpath, &f->rpath) < 0 ||
		read_name(r, d, a, at, d->has_runpath, d->runpath, &f->runpath) < 0)
		return -1;
	return read_name(r, d, a, at, d->has_soname, d->soname, &f->soname);
}

int elf_read(struct elf_file *f, const struct elf_input *in, struct arena *a, struct err *e)
{
	struct elf_reader r;
	struct dynamic d = {0};
	const unsigned char *h;
	int rc = elf_open(&r, in, e);

	*f = (struct elf_file){.kind = r.kind};
	if (rc <= 0)
		return rc;
	h = elf_header(&r, PT_INTERP);
	if (h) {
		uint64_t at = FIELD(&r, h, Phdr, p_offset), n = FIELD(&r, h, Phdr, p_filesz);

		if (at > in->size || n > in->size - at)
			return elf_damaged(e, "an interpreter beyond the end of the file");
		f->interpreter = read_string(&r, a, at, at + n);
		if (!f->interpreter)
			return -1;
	}
	h = elf_header(&r, PT_DYNAMIC);
	if (!h)
		return 0;
	if (elf_each_dynamic(&r, h, take_entry, &d) < 0 || read_names(&r, &d, a, f) < 0)
		return -1;
	f->no_default_lib = d.no_default_lib;
	return 1;
}
