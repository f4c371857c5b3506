/* The words of a mount's "options" (runtime-spec config.md "Linux mount options", mount(8)), sorted
 * into what the kernel takes in different ways. */
#ifndef RUNTIME_MOUNT_OPTIONS_H
#define RUNTIME_MOUNT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/fields.h"

struct mount_options {
	uint64_t set, clear;                   /* MOUNT_ATTR_*, of the mount itself */
	uint64_t set_all, clear_all;           /* of it and all below it: "rro" */
	uint64_t propagation, propagation_all; /* MS_PRIVATE ...; 0: as it is */
	bool bind, bind_all;                   /* "bind", "rbind" */
	bool remount;          /* change the mount that is at the destination already */
	bool tmpcopyup;        /* a tmpfs that starts with what it covers */
	bool idmap, idmap_all; /* by the mount's maps, or by the container's */
	bool src_nofollow;     /* a link is the source, not what it leads to */
	bool dest_nofollow;    /* the destination may not be a link */
	bool copy_symlink;     /* a source that is a link: make the same link instead */
	struct strings data; /* the file system's own: "size=64m", "newinstance", and the flags that
				every one has: "sync". A bind takes none. */
};

/* Errors: UNSUPPORTED names the option. data points into `options`; mem owns the array. */
int mount_options_parse(struct mount_options *o, const struct strings *options, struct arena *mem,
	struct err *e) must_check;

/* The i-th name of those that are known whatever the file system, for `features`; false beyond the
 * last. */
bool mount_options_name(size_t i, char out[32]);

#endif
