/* The dynamic loader's cache, /etc/ld.so.cache, in its binary form "glibc-ld.so.cache1.1" (and with
 * the old form before it): read, merged with the libraries of further folders, written in the
 * cache's own order, so that neither ldconfig nor anything else of an image has to run. Images
 * without glibc get their musl path file. The image's file is hostile. Source: glibc
 * sysdeps/generic/dl-cache.h, elf/cache.c; gpu.md 1.5. */
#ifndef GPU_LDCACHE_H
#define GPU_LDCACHE_H

#include "base/mem.h"
#include "base/str.h"

struct ld_entry {
	const char *soname, *path; /* "libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1" */
	uint32_t flags;            /* FLAG_ELF_LIBC6 | FLAG_X8664_LIB64, ... */
	uint64_t hwcap;
};

/* old (n 0: there is none) with the entries before those of the same name. *out is the caller's to
 * buf_fini(). Errors: CORRUPT: old is none; the caller then makes a new one of entries alone. */
int ldcache_merge(const void *old, size_t n, const struct ld_entry *v, size_t nv, struct buf *out,
	struct err *e) must_check;
/* flags for a library of this ELF class and machine; 0: not known here. */
uint32_t ldcache_flags(uint8_t elf_class, uint16_t machine);

/* In a container's root: put the libraries of dirs (folders in the root) first: a merged
 * /etc/ld.so.cache (written beside and renamed), /etc/ld.so.conf.d/00-svrun-gpu.conf so that an
 * ldconfig run inside keeps them, /etc/ld.so.conf with its include when the image has none;
 * /etc/ld-musl-ARCH.path when the loader is musl's. On a read-only file system the same
 * files are bound from a tmpfs over what is there; where there is nothing to bind on, they are left
 * out. Idempotent: an instance may start again with these folders, others, or (dirs->n 0) none,
 * which takes back what it did. */
int ldcache_add_dirs(int root, const struct strings *dirs, struct err *e) must_check;

#endif
