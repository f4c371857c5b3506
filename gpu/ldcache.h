/* The dynamic loader's cache, /etc/ld.so.cache, in its binary form "glibc-ld.so.cache1.1" (and with
 * the old form before it): read, merged with the libraries of further folders, written in the
 * cache's own order, so that neither ldconfig nor anything else of an image has to run. Images
 * without glibc get their musl path file. The image's file is hostile. Source: glibc
 * sysdeps/generic/dl-cache.h, elf/cache.c; gpu.md 1.5. */
#ifndef GPU_LDCACHE_H
#define GPU_LDCACHE_H

#include <stdbool.h>

#include "base/elf.h"
#include "base/mem.h"
#include "gpu/root-file.h"

struct ld_entry {
	const char *soname, *path; /* "libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1" */
	uint32_t flags;            /* FLAG_ELF_LIBC6 | FLAG_X8664_LIB64, ... */
	uint64_t hwcap;
};

enum { LDCACHE_MAX = 16 << 20, LDCACHE_ENTRIES_MAX = 1 << 15 };

/* A cache's entries, in its order. Strings are of the bytes that it was read from. */
struct ldcache {
	struct ld_entry *v;
	size_t n;
	const char **hwcaps; /* names of folders below glibc-hwcaps, which hwcap values count */
	size_t nhwcaps;
	const char
		*generator; /* which ldconfig wrote it, not ended by a NUL; NULL: it does not say */
	size_t ngenerator;
};
/* p[n] is NUL. Errors: CORRUPT: it is none, or ends before its end. */
int ldcache_read(struct ldcache *c, const char *p, size_t n, struct err *e) must_check;
void ldcache_fini(struct ldcache *c);

/* Leave out the entries of these paths, and of all that lies in these folders themselves. */
void ldcache_drop(struct ldcache *c, const struct strings *without);
bool ldcache_lies_in(const char *path, const char *dir);
/* The cache with the entries of v before others of their name, and still of who wrote it: what is
 * left of it when ours have gone is what it was. out stays empty when there is no
 * entry at all. c is sorted by this. */
int ldcache_write(struct ldcache *c, const struct ld_entry *v, size_t nv, struct buf *out,
	struct err *e) must_check;
/* flags for a library of this kind; 0: not known here. */
uint32_t ldcache_flags(const struct elf_kind *k);

/* What a start adds. */
struct ld_dirs {
	struct strings dirs; /* folders in the root, the first one first */
	const char *compat;  /* a folder of the image that comes before them; or NULL */
	/* The libraries of folders that need not be looked through; their paths tell which. */
	const struct ld_entry *known;
	size_t nknown;
	const char *notes; /* lines "# ..." that the file below keeps for the caller; or NULL */
};
/* What the last start added: the lines of /etc/ld.so.conf.d/00-svrun-gpu.conf, added to b. 1, 0:
 * nothing, -1. */
int ldcache_last(int root, struct buf *b, struct err *e) must_check;

/* In a container's root: put the libraries of the folders first: a merged /etc/ld.so.cache (written
 * beside and renamed), /etc/ld.so.conf.d/00-svrun-gpu.conf so that an ldconfig run inside keeps
 * them, and a later start knows them; /etc/ld.so.conf with its include when the image has none;
 * /etc/ld-musl-ARCH.path when the loader is musl's. On a read-only file system the cache is bound
 * from a tmpfs over what is there; where there is nothing to bind on, it is left out with a
 * warning. A folder that the image's cache has libraries of is the system's: only what is mounted
 * in it is added, name by name. Idempotent: an instance may start again with these folders, others,
 * or (dirs.n 0) none, which takes back what it did. last: from ldcache_last(). */
int ldcache_add_dirs(
	struct root_files *f, const struct ld_dirs *d, const char *last, struct err *e) must_check;

#endif
