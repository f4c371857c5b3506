/* The folders of /etc/ld.so.conf and what it includes. Source: ldconfig(8). */
#ifndef BUILDER_LD_CONF_H
#define BUILDER_LD_CONF_H

#include "builder/rootfs.h"

/* In their order, absolute, each once, in the arena; at most 256 folders of 256 files, nested at
 * most 8 deep: what is beyond is left out. None without the file. */
int ld_conf_folders(
	const struct rootfs *r, struct arena *a, struct strings *out, struct err *e) must_check;

#endif
