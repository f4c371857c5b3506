/* What ELF files of a tree need (DT_NEEDED, DT_RPATH, DT_RUNPATH, $ORIGIN) and where the dynamic
 * loader of the image would find it: RPATH, LD_LIBRARY_PATH of the manifest's env, RUNPATH,
 * /etc/ld.so.conf with its includes, the default folders of glibc and of Debian's multiarch.
 * Source: ld.so(8), System V ABI chapter 5. Files are hostile: every offset is checked. */
#ifndef BUILDER_ELF_NEEDS_H
#define BUILDER_ELF_NEEDS_H

#include "builder/rootfs.h"

struct elf_unresolved {
	const char *path, *library; /* the file, and the name it needs */
};

/* All of the files that match one of globs (absolute; none: every ELF file). library_path: the
 * image's LD_LIBRARY_PATH or NULL. Sorted; in the arena. */
int elf_unresolved(const struct rootfs *r, const struct strings *globs, const char *library_path,
	struct arena *a, struct elf_unresolved **v, size_t *n, struct err *e) must_check;

#endif
