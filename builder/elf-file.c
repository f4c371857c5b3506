#include "builder/elf-file.h"

#include <elf.h>
#include <string.h>

#include "base/sys.h"

enum {
	PROGRAM_HEADERS_MAX = 256,
	DYNAMIC_MAX = 1 << 16, /* bytes of the dynamic section: 4096 entries */
	STRING_MAX = 4096,     /* bytes of one name or path */
};

/* A file being read. Offsets are of the file, in bytes. */
struct reader {
	const struct attr *file;
	struct pool *pool;
	struct arena *arena;
	struct elf_kind kind;
	unsigned char headers[PROGRAM_HEADERS_MAX * sizeof(Elf64_Phdr)];
	size_t count, size; /* of program headers */
	struct err *e;
};

/* ---- bytes ---- */

static int damaged(struct err *e, const char *what)
{
	return err_set(e, ERR_CORRUPT, "damaged ELF file: %s", what);
}

/* n bytes at `at`, across chunks. */
static int read_at(
	const struct attr *file, struct pool *pool, uint64_t at, void *out, size_t n, struct err *e)
{
	char *to = out;

	if (at > file->size || n > file->size - at)
		return damaged(e, "an offset beyond the end of the file");
	while (n) {
		struct chunk c = at / CHUNK_SIZE < file->nchunks ? file->chunks[at / CHUNK_SIZE]
								 : (struct chunk){0};
		uint64_t skip = at % CHUNK_SIZE;
		size_t part = n < c.length - skip ? n : (size_t)(c.length - skip);
		int found = c.block == CHUNK_NO_BLOCK ? pool_find(pool, &c, e) : 1;

		if (skip >= c.length)
			return damaged(e, "it has fewer bytes than its size says");

		if (found < 0)
			return -1;
		if (!found)
			return err_set(e, ERR_NOT_FOUND, "a chunk is not in the pool");
		if (sys_pread_all(pool_fd(pool), to, part,
			    (off_t)((uint64_t)c.block * POOL_BLOCK + skip)) < 0)
			return err_sys(e, "read pool/data");
		at += part;
		to += part;
		n -= part;
	}
	return 0;
}

static uint64_t number(const struct elf_kind *k, const unsigned char *p, size_t n)
{
	uint64_t v = 0;

	for (size_t i = 0; i < n; i++)
		v = v << 8 | p[k->big_endian ? i : n - 1 - i];
	return v;
}

/* A field of both classes' structures. */
#define FIELD(r, p, type, field)                                                                   \
	((r)->kind.bits == 64 ? number(&(r)->kind, (p) + offsetof(Elf64_##type, field),            \
					sizeof(((Elf64_##type *)0)->field))                        \
			      : number(&(r)->kind, (p) + offsetof(Elf32_##type, field),            \
					sizeof(((Elf32_##type *)0)->field)))
#define SIZE_OF(r, type) ((r)->kind.bits == 64 ? sizeof(Elf64_##type) : sizeof(Elf32_##type))

/* ---- headers ---- */

int elf_kind_of(const struct attr *file, struct pool *pool, struct elf_kind *k, struct err *e)
{
	unsigned char h[20] = {0};
	uint64_t type;

	if (file->type != NODE_FILE || file->size < sizeof(Elf32_Ehdr))
		return 0;
	if (read_at(file, pool, 0, h, sizeof(h), e) < 0)
		return -1;
	if (memcmp(h, ELFMAG, SELFMAG) != 0 ||
		(h[EI_CLASS] != ELFCLASS32 && h[EI_CLASS] != ELFCLASS64) ||
		(h[EI_DATA] != ELFDATA2LSB && h[EI_DATA] != ELFDATA2MSB) ||
		(h[EI_OSABI] != ELFOSABI_SYSV && h[EI_OSABI] != ELFOSABI_LINUX))
		return 0;
	*k = (struct elf_kind){.bits = h[EI_CLASS] == ELFCLASS64 ? 64 : 32,
		.big_endian = h[EI_DATA] == ELFDATA2MSB};
	type = number(k, h + offsetof(Elf64_Ehdr, e_type), 2);
	k->machine = (uint16_t)number(k, h + offsetof(Elf64_Ehdr, e_machine), 2);
	return type == ET_EXEC || type == ET_DYN;
}

static int read_headers(struct reader *r)
{
	unsigned char h[sizeof(Elf64_Ehdr)] = {0};
	uint64_t at;

	if (read_at(r->file, r->pool, 0, h, SIZE_OF(r, Ehdr), r->e) < 0)
		return -1;
	at = FIELD(r, h, Ehdr, e_phoff);
	r->count = FIELD(r, h, Ehdr, e_phnum);
	r->size = SIZE_OF(r, Phdr);
	if (!r->count)
		return 0;
	if (FIELD(r, h, Ehdr, e_phentsize) != r->size)
		return damaged(r->e, "program headers of another size");
	if (r->count > PROGRAM_HEADERS_MAX)
		return damaged(r->e, "more than 256 program headers");
	return read_at(r->file, r->pool, at, r->headers, r->count * r->size, r->e);
}

/* The i-th header of that type, or NULL. */
static const unsigned char *header(const struct reader *r, uint32_t type)
{
	for (size_t i = 0; i < r->count; i++)
		if (FIELD(r, r->headers + i * r->size, Phdr, p_type) == type)
			return r->headers + i * r->size;
	return NULL;
}

/* Where in the file an address of memory is from. */
static int file_offset(const struct reader *r, uint64_t address, uint64_t *at)
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
	return damaged(r->e, "an address that is in no segment");
}

/* ---- strings ---- */

/* The NUL-terminated text at `at`, which ends before `end`. */
static char *read_string(const struct reader *r, uint64_t at, uint64_t end)
{
	char text[STRING_MAX];
	size_t n = sizeof(text);

	if (end > r->file->size)
		end = r->file->size;
	if (at >= end) {
		damaged(r->e, "a string beyond its table");
		return NULL;
	}
	if (n > end - at)
		n = (size_t)(end - at);
	if (read_at(r->file, r->pool, at, text, n, r->e) < 0)
		return NULL;
	if (!memchr(text, '\0', n)) {
		damaged(r->e, "a string without an end");
		return NULL;
	}
	return arena_strdup(r->arena, text);
}

/* ---- the dynamic section ---- */

struct dynamic {
	uint64_t strtab, strsz, rpath, runpath;
	bool has_strtab, has_rpath, has_runpath, no_default_lib;
	uint64_t needs[ELF_NEEDS_MAX];
	size_t n;
};

static int take_entry(const struct reader *r, struct dynamic *d, uint64_t tag, uint64_t value)
{
	switch (tag) {
	case DT_NEEDED:
		if (d->n == ELF_NEEDS_MAX)
			return damaged(r->e, "it needs more than 512 libraries");
		d->needs[d->n++] = value;
		break;
	case DT_STRTAB:
		d->strtab = value;
		d->has_strtab = true;
		break;
	case DT_STRSZ:
		d->strsz = value;
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

static int read_dynamic(const struct reader *r, const unsigned char *h, struct dynamic *d)
{
	uint64_t at = FIELD(r, h, Phdr, p_offset), n = FIELD(r, h, Phdr, p_filesz);
	size_t size = SIZE_OF(r, Dyn);
	auto_free unsigned char *entries = NULL;

	if (n > DYNAMIC_MAX)
		return damaged(r->e, "a dynamic section of more than 64 KiB");
	entries = mem_alloc((size_t)n + 1);
	if (read_at(r->file, r->pool, at, entries, (size_t)n, r->e) < 0)
		return -1;
	for (size_t i = 0; i + size <= n; i += size) {
		uint64_t tag = FIELD(r, entries + i, Dyn, d_tag);

		if (tag == DT_NULL)
			break;
		if (take_entry(r, d, tag, FIELD(r, entries + i, Dyn, d_un)) < 0)
			return -1;
	}
	return 0;
}

static int read_names(const struct reader *r, const struct dynamic *d, struct elf_file *f)
{
	uint64_t at = 0, end;

	if (!d->n && !d->has_rpath && !d->has_runpath)
		return 0;
	if (!d->has_strtab)
		return damaged(r->e, "names without a table of strings");
	if (file_offset(r, d->strtab, &at) < 0)
		return -1;
	if (d->strsz > r->file->size || at > r->file->size)
		return damaged(r->e, "a table of strings beyond the end of the file");
	end = at + d->strsz;
	f->needs.v = arena_alloc(r->arena, d->n * sizeof(*f->needs.v));
	for (size_t i = 0; i < d->n; i++) {
		if (d->needs[i] > d->strsz)
			return damaged(r->e, "a string beyond its table");
		f->needs.v[i] = read_string(r, at + d->needs[i], end);
		if (!f->needs.v[i])
			return -1;
		f->needs.n++;
	}
	if (d->rpath > d->strsz || d->runpath > d->strsz)
		return damaged(r->e, "a string beyond its table");
	if (d->has_rpath && !(f->rpath = read_string(r, at + d->rpath, end)))
		return -1;
	if (d->has_runpath && !(f->runpath = read_string(r, at + d->runpath, end)))
		return -1;
	return 0;
}

int elf_file_read(struct elf_file *f, const struct attr *file, struct pool *pool, struct arena *a,
	struct err *e)
{
	struct reader r = {.file = file, .pool = pool, .arena = a, .e = e};
	struct dynamic d = {0};
	const unsigned char *h;
	int rc = elf_kind_of(file, pool, &r.kind, e);

	*f = (struct elf_file){.kind = r.kind};
	if (rc <= 0)
		return rc;
	if (read_headers(&r) < 0)
		return -1;
	h = header(&r, PT_INTERP);
	if (h) {
		uint64_t at = FIELD(&r, h, Phdr, p_offset), n = FIELD(&r, h, Phdr, p_filesz);

		if (at > file->size || n > file->size - at)
			return damaged(e, "an interpreter beyond the end of the file");
		f->interpreter = read_string(&r, at, at + n);
		if (!f->interpreter)
			return -1;
	}
	h = header(&r, PT_DYNAMIC);
	if (!h)
		return 0;
	if (read_dynamic(&r, h, &d) < 0 || read_names(&r, &d, f) < 0)
		return -1;
	f->no_default_lib = d.no_default_lib;
	return 1;
}
