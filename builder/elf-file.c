#include "builder/elf-file.h"

#include "base/sys.h"

struct pool_file {
	const struct attr *file;
	struct pool *pool;
};

/* n bytes at `at`, across chunks. */
static int read_pool(void *ctx, uint64_t at, void *out, size_t n, struct err *e)
{
	const struct pool_file *f = ctx;
	char *to = out;

	while (n) {
		struct chunk c = at / CHUNK_SIZE < f->file->nchunks
					 ? f->file->chunks[at / CHUNK_SIZE]
					 : (struct chunk){0};
		uint64_t skip = at % CHUNK_SIZE;
		size_t part = n < c.length - skip ? n : (size_t)(c.length - skip);
		int found = c.block == CHUNK_NO_BLOCK ? pool_find(f->pool, &c, e) : 1;

		if (skip >= c.length)
			return err_set(e, ERR_CORRUPT,
				"damaged ELF file: it has fewer bytes than its size says");
		if (found < 0)
			return -1;
		if (!found)
			return err_set(e, ERR_NOT_FOUND, "a chunk is not in the pool");
		if (sys_pread_all(pool_fd(f->pool), to, part,
			    (off_t)((uint64_t)c.block * POOL_BLOCK + skip)) < 0)
			return err_sys(e, "read pool/data");
		at += part;
		to += part;
		n -= part;
	}
	return 0;
}

int elf_kind_of(const struct attr *file, struct pool *pool, struct elf_kind *k, struct err *e)
{
	struct pool_file f = {file, pool};
	const struct elf_input in = {.read = read_pool, .ctx = &f, .size = file->size};

	return file->type == NODE_FILE ? elf_kind(k, &in, e) : 0;
}

int elf_file_read(struct elf_file *f, const struct attr *file, struct pool *pool, struct arena *a,
	struct err *e)
{
	struct pool_file p = {file, pool};
	const struct elf_input in = {.read = read_pool, .ctx = &p, .size = file->size};

	*f = (struct elf_file){0};
	return file->type == NODE_FILE ? elf_read(f, &in, a, e) : 0;
}
