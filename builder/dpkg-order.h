/* The packages in dpkg's database of a tree, each after what it needs. */
#ifndef BUILDER_DPKG_ORDER_H
#define BUILDER_DPKG_ORDER_H

#include "builder/rootfs.h"

struct dpkg_package {
	const char *name, *arch;
	const char *file; /* NAME, or NAME:ARCH: in /var/lib/dpkg/info, and for dpkg's commands */
	bool essential;
	bool preinst; /* has such a script */
	/* Its postinst script mentions Python, or it needs, directly or not, a package whose does.
	 */
	bool python;
};

struct dpkg_order {
	struct dpkg_package *v;
	size_t n;
	struct arena arena;
};

/* base-passwd, what is essential, then the rest, each after what it Pre-Depends and Depends on (a
 * circle is cut where it is met). Names are plain: a shell reads them as they are. Errors: CORRUPT.
 * *o is to be freed with dpkg_order_fini(), after an error, too.
 * Source: deb-control(5); Debian policy, chapter 7. */
int dpkg_order_read(struct dpkg_order *o, const struct rootfs *r, struct err *e) must_check;
void dpkg_order_fini(struct dpkg_order *o);

#endif
