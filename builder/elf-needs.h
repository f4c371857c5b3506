/* What ELF files of a tree need (DT_NEEDED, DT_RPATH, DT_RUNPATH, $ORIGIN) and where the dynamic
 * loader of the image would find it: RPATH, LD_LIBRARY_PATH of the manifest's env, RUNPATH,
 * /etc/ld.so.conf with its includes (when the image has the ld.so.cache that ldconfig makes of it),
 * the default folders of glibc, Debian's multiarch and musl. Each file is asked for itself, as
 * ldd(1) does: a library that finds its own only because the program has loaded them before is
 * reported, with the place where they are.
 *
 * Not looked at: files of machines that the image has no loader for (and that are not this one's),
 * files of other systems, and /usr/lib/debug.
 * Source: ld.so(8), ldconfig(8), System V ABI chapter 5. Files are hostile: every offset is
 * checked. */
#ifndef BUILDER_ELF_NEEDS_H
#define BUILDER_ELF_NEEDS_H

#include "builder/rootfs.h"

struct elf_unresolved {
	const char *path;      /* of the file, absolute */
	const char *library;   /* the name it needs; of a damaged file, what is wrong with it */
	const char *elsewhere; /* where a library of that name is, but nobody looks; or NULL */
	bool damaged;
};

/* All of the files that match one of globs (absolute; none: every ELF file). library_path: the
 * image's LD_LIBRARY_PATH or NULL. Sorted; in the arena. CORRUPT: more than 10,000 of them, or more
 * than 2,000,000 look-ups. */
int elf_unresolved(const struct rootfs *r, const struct strings *globs, const char *library_path,
	struct arena *a, struct elf_unresolved **v, size_t *n, struct err *e) must_check;

#endif
