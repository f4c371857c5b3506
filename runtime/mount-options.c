#include "runtime/mount-options.h"

#include <linux/mount.h>

#include "base/str.h"

#ifndef MOUNT_ATTR_NOSYMFOLLOW
#define MOUNT_ATTR_NOSYMFOLLOW 0x00200000
#endif

#define ATIME MOUNT_ATTR__ATIME
#define SWITCH(name, member)                                                                       \
	{                                                                                          \
		name, IS_SWITCH, offsetof(struct mount_options, member), 0                         \
	}

static const struct word {
	const char *name;
	enum {
		IS_NOTHING, /* what every mount is anyway, or what only changes the kernel's log */
		IS_REFUSED, /* known, and would have to be dropped */
		IS_DATA,    /* a file system's flag, which fsconfig(2) knows for every type */
		IS_SWITCH,  /* set: the offset of a bool */
		IS_ATTR,    /* "r" before the name means: and of all mounts below */
		IS_SPREAD,  /* the same, of propagation */
	} kind;
	uint64_t set, clear;
} words[] = {{"defaults", IS_NOTHING, 0, 0}, {"async", IS_NOTHING, 0, 0},
	{"nolazytime", IS_NOTHING, 0, 0}, {"nomand", IS_NOTHING, 0, 0},
	{"noiversion", IS_NOTHING, 0, 0}, {"silent", IS_NOTHING, 0, 0}, {"loud", IS_NOTHING, 0, 0},
	/* Mandatory locks left the kernel with 5.15, and to move a mount of the host away is no
	 * way to make a container. */
	{"mand", IS_REFUSED, 0, 0}, {"move", IS_REFUSED, 0, 0}, {"rmove", IS_REFUSED, 0, 0},
	{"sync", IS_DATA, 0, 0}, {"dirsync", IS_DATA, 0, 0}, {"lazytime", IS_DATA, 0, 0},
	SWITCH("bind", bind), SWITCH("rbind", bind_all), SWITCH("remount", remount),
	SWITCH("tmpcopyup", tmpcopyup), SWITCH("idmap", idmap), SWITCH("ridmap", idmap_all),
	SWITCH("src-nofollow", src_nofollow), SWITCH("dest-nofollow", dest_nofollow),
	SWITCH("copy-symlink", copy_symlink), {"ro", IS_ATTR, MOUNT_ATTR_RDONLY, 0},
	{"rw", IS_ATTR, 0, MOUNT_ATTR_RDONLY}, {"nosuid", IS_ATTR, MOUNT_ATTR_NOSUID, 0},
	{"suid", IS_ATTR, 0, MOUNT_ATTR_NOSUID}, {"nodev", IS_ATTR, MOUNT_ATTR_NODEV, 0},
	{"dev", IS_ATTR, 0, MOUNT_ATTR_NODEV}, {"noexec", IS_ATTR, MOUNT_ATTR_NOEXEC, 0},
	{"exec", IS_ATTR, 0, MOUNT_ATTR_NOEXEC}, {"noatime", IS_ATTR, MOUNT_ATTR_NOATIME, ATIME},
	{"atime", IS_ATTR, MOUNT_ATTR_RELATIME, ATIME},
	{"relatime", IS_ATTR, MOUNT_ATTR_RELATIME, ATIME},
	{"norelatime", IS_ATTR, MOUNT_ATTR_STRICTATIME, ATIME},
	{"strictatime", IS_ATTR, MOUNT_ATTR_STRICTATIME, ATIME},
	{"nostrictatime", IS_ATTR, MOUNT_ATTR_RELATIME, ATIME},
	{"nodiratime", IS_ATTR, MOUNT_ATTR_NODIRATIME, 0},
	{"diratime", IS_ATTR, 0, MOUNT_ATTR_NODIRATIME},
	{"nosymfollow", IS_ATTR, MOUNT_ATTR_NOSYMFOLLOW, 0},
	{"symfollow", IS_ATTR, 0, MOUNT_ATTR_NOSYMFOLLOW}, {"private", IS_SPREAD, MS_PRIVATE, 0},
	{"slave", IS_SPREAD, MS_SLAVE, 0}, {"shared", IS_SPREAD, MS_SHARED, 0},
	{"unbindable", IS_SPREAD, MS_UNBINDABLE, 0}};

enum { WORDS = sizeof(words) / sizeof(words[0]) };

static const struct word *find(const char *name, bool *all)
{
	*all = false;
	for (size_t i = 0; i < WORDS; i++)
		if (str_eq(words[i].name, name))
			return &words[i];
	*all = true;
	for (size_t i = 0; name[0] == 'r' && i < WORDS; i++)
		if (words[i].kind >= IS_ATTR && str_eq(words[i].name, name + 1))
			return &words[i];
	return NULL;
}

static void apply(struct mount_options *o, const struct word *w, bool all)
{
	uint64_t *set = all ? &o->set_all : &o->set, *clear = all ? &o->clear_all : &o->clear;

	if (w->kind == IS_ATTR) { /* the last word wins */
		*set = (*set & ~w->clear) | w->set;
		*clear = (*clear & ~w->set) | w->clear;
	} else if (w->kind == IS_SPREAD) {
		*(all ? &o->propagation_all : &o->propagation) = w->set;
	} else if (w->kind == IS_SWITCH) {
		*(bool *)((char *)o + w->set) = true;
		o->bind |= o->bind_all;
		o->idmap |= o->idmap_all;
	}
}

int mount_options_parse(
	struct mount_options *o, const struct strings *options, struct arena *mem, struct err *e)
{
	*o = (struct mount_options){0};
	o->data.v = arena_alloc(mem, (options->n + 1) * sizeof(*o->data.v));
	for (size_t i = 0; i < options->n; i++) {
		const char *s = options->v[i];
		bool all;
		const struct word *w = find(s, &all);

		if (w && w->kind == IS_REFUSED)
			return err_set(e, ERR_UNSUPPORTED, "mount option '%s' is not supported", s);
		if (w && w->kind != IS_DATA)
			apply(o, w, all);
		else if (*s)
			o->data.v[o->data.n++] = s;
	}
	return 0;
}

bool mount_options_name(size_t i, char out[32])
{
	for (const struct word *w = words; w < words + WORDS; w++) {
		size_t names = w->kind >= IS_ATTR ? 2 : w->kind != IS_REFUSED;

		if (i < names) {
			snprintf(out, 32, "%s%s", i ? "r" : "", w->name);
			return true;
		}
		i -= names;
	}
	return false;
}
