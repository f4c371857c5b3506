#include "runtime/mount-options.h"

#include <linux/mount.h>

#include "base/str.h"

#ifndef MOUNT_ATTR_NOSYMFOLLOW
#define MOUNT_ATTR_NOSYMFOLLOW 0x00200000
#endif

#define ATIME MOUNT_ATTR__ATIME

/* "r" before a name means: and of all mounts below. */
static const struct {
	const char *name;
	uint64_t set, clear;
} attrs[] = {
	{"ro", MOUNT_ATTR_RDONLY, 0},
	{"rw", 0, MOUNT_ATTR_RDONLY},
	{"nosuid", MOUNT_ATTR_NOSUID, 0},
	{"suid", 0, MOUNT_ATTR_NOSUID},
	{"nodev", MOUNT_ATTR_NODEV, 0},
	{"dev", 0, MOUNT_ATTR_NODEV},
	{"noexec", MOUNT_ATTR_NOEXEC, 0},
	{"exec", 0, MOUNT_ATTR_NOEXEC},
	{"noatime", MOUNT_ATTR_NOATIME, ATIME},
	{"atime", MOUNT_ATTR_RELATIME, ATIME},
	{"relatime", MOUNT_ATTR_RELATIME, ATIME},
	{"norelatime", MOUNT_ATTR_STRICTATIME, ATIME},
	{"strictatime", MOUNT_ATTR_STRICTATIME, ATIME},
	{"nostrictatime", MOUNT_ATTR_RELATIME, ATIME},
	{"nodiratime", MOUNT_ATTR_NODIRATIME, 0},
	{"diratime", 0, MOUNT_ATTR_NODIRATIME},
	{"nosymfollow", MOUNT_ATTR_NOSYMFOLLOW, 0},
	{"symfollow", 0, MOUNT_ATTR_NOSYMFOLLOW},
};

static const struct {
	const char *name;
	uint64_t flag;
} propagations[] = {
	{"private", MS_PRIVATE},
	{"slave", MS_SLAVE},
	{"shared", MS_SHARED},
	{"unbindable", MS_UNBINDABLE},
};

/* Would have to be silently dropped: refused instead. */
static const char *const refused[] = {
	"idmap", "ridmap", "tmpcopyup", "remount", "move", "rmove", "loud", NULL};

static bool find_attr(struct mount_options *o, const char *name)
{
	for (size_t i = 0; i < sizeof(attrs) / sizeof(attrs[0]); i++) {
		bool same = str_eq(attrs[i].name, name);
		bool all = !same && name[0] == 'r' && str_eq(attrs[i].name, name + 1);
		uint64_t *set = all ? &o->set_all : &o->set,
			 *clear = all ? &o->clear_all : &o->clear;

		if (!same && !all)
			continue;
		*set = (*set & ~attrs[i].clear) | attrs[i].set; /* the last word wins */
		*clear = (*clear & ~attrs[i].set) | attrs[i].clear;
		return true;
	}
	return false;
}

static bool find_propagation(struct mount_options *o, const char *name)
{
	for (size_t i = 0; i < sizeof(propagations) / sizeof(propagations[0]); i++) {
		if (str_eq(propagations[i].name, name))
			o->propagation = propagations[i].flag;
		else if (name[0] == 'r' && str_eq(propagations[i].name, name + 1))
			o->propagation_all = propagations[i].flag;
		else
			continue;
		return true;
	}
	return false;
}

int mount_options_parse(
	struct mount_options *o, const struct strings *options, struct arena *mem, struct err *e)
{
	*o = (struct mount_options){0};
	o->data.v = arena_alloc(mem, (options->n + 1) * sizeof(*o->data.v));
	for (size_t i = 0; i < options->n; i++) {
		const char *s = options->v[i];

		for (size_t k = 0; refused[k]; k++)
			if (str_eq(refused[k], s))
				return err_set(e, ERR_UNSUPPORTED,
					"mount option '%s' is not supported by this version", s);
		if (!*s || str_eq(s, "defaults"))
			continue;
		if (str_eq(s, "bind"))
			o->bind = true;
		else if (str_eq(s, "rbind"))
			o->bind = o->bind_all = true;
		else if (!find_attr(o, s) && !find_propagation(o, s))
			o->data.v[o->data.n++] = s;
	}
	return 0;
}
