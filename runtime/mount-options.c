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
} attrs[] = {{"ro", MOUNT_ATTR_RDONLY, 0}, {"rw", 0, MOUNT_ATTR_RDONLY},
	{"nosuid", MOUNT_ATTR_NOSUID, 0}, {"suid", 0, MOUNT_ATTR_NOSUID},
	{"nodev", MOUNT_ATTR_NODEV, 0}, {"dev", 0, MOUNT_ATTR_NODEV},
	{"noexec", MOUNT_ATTR_NOEXEC, 0}, {"exec", 0, MOUNT_ATTR_NOEXEC},
	{"noatime", MOUNT_ATTR_NOATIME, ATIME}, {"atime", MOUNT_ATTR_RELATIME, ATIME},
	{"relatime", MOUNT_ATTR_RELATIME, ATIME}, {"norelatime", MOUNT_ATTR_STRICTATIME, ATIME},
	{"strictatime", MOUNT_ATTR_STRICTATIME, ATIME},
	{"nostrictatime", MOUNT_ATTR_RELATIME, ATIME}, {"nodiratime", MOUNT_ATTR_NODIRATIME, 0},
	{"diratime", 0, MOUNT_ATTR_NODIRATIME}, {"nosymfollow", MOUNT_ATTR_NOSYMFOLLOW, 0},
	{"symfollow", 0, MOUNT_ATTR_NOSYMFOLLOW}};

static const struct fields_word propagations[] = {{"private", MS_PRIVATE}, {"slave", MS_SLAVE},
	{"shared", MS_SHARED}, {"unbindable", MS_UNBINDABLE}};

static const struct {
	const char *name;
	size_t off; /* of a bool */
} switches[] = {
#define SWITCH(f) offsetof(struct mount_options, f)
	{"bind", SWITCH(bind)}, {"rbind", SWITCH(bind_all)}, {"remount", SWITCH(remount)},
	{"tmpcopyup", SWITCH(tmpcopyup)}, {"idmap", SWITCH(idmap)}, {"ridmap", SWITCH(idmap_all)},
	{"src-nofollow", SWITCH(src_nofollow)}, {"dest-nofollow", SWITCH(dest_nofollow)},
	{"copy-symlink", SWITCH(copy_symlink)}
#undef SWITCH
};

/* What every mount is anyway, or what only changes the kernel's log. */
static const char *const nothing[] = {
	"defaults", "async", "nolazytime", "nomand", "noiversion", "silent", "loud"};

/* Flags of a file system, which fsconfig(2) knows by these names for every type. */
static const char *const super[] = {"sync", "dirsync", "lazytime"};

/* Known, and would have to be dropped: mandatory locks left the kernel with 5.15, and to move a
 * mount of the host away is no way to make a container. */
static const char *const refused[] = {"mand", "move", "rmove"};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static bool is_in(const char *const *list, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(list[i], name))
			return true;
	return false;
}

static bool find_switch(struct mount_options *o, const char *name)
{
	for (size_t i = 0; i < COUNT(switches); i++) {
		if (!str_eq(switches[i].name, name))
			continue;
		*(bool *)((char *)o + switches[i].off) = true;
		o->bind |= o->bind_all;
		o->idmap |= o->idmap_all;
		return true;
	}
	return false;
}

static bool find_attr(struct mount_options *o, const char *name)
{
	for (size_t i = 0; i < COUNT(attrs); i++) {
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
	for (size_t i = 0; i < COUNT(propagations); i++) {
		if (str_eq(propagations[i].name, name))
			o->propagation = propagations[i].value;
		else if (name[0] == 'r' && str_eq(propagations[i].name, name + 1))
			o->propagation_all = propagations[i].value;
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

		if (is_in(refused, COUNT(refused), s))
			return err_set(e, ERR_UNSUPPORTED, "mount option '%s' is not supported", s);
		if (!*s || is_in(nothing, COUNT(nothing), s))
			continue;
		if (!find_switch(o, s) && !find_attr(o, s) && !find_propagation(o, s))
			o->data.v[o->data.n++] = s;
	}
	return 0;
}

bool mount_options_name(size_t i, char out[32])
{
	const char *name = NULL;
	size_t n = 0;
	bool all = false;

	if (i < (n += COUNT(nothing)))
		name = nothing[i];
	else if (i < (n += COUNT(super)))
		name = super[i + COUNT(super) - n];
	else if (i < (n += COUNT(switches)))
		name = switches[i + COUNT(switches) - n].name;
	else if (i < (n += 2 * COUNT(attrs)))
		name = attrs[(i + 2 * COUNT(attrs) - n) / 2].name, all = (n - i) % 2;
	else if (i < (n += 2 * COUNT(propagations)))
		name = propagations[(i + 2 * COUNT(propagations) - n) / 2].name, all = (n - i) % 2;
	if (name)
		snprintf(out, 32, "%s%s", all ? "r" : "", name);
	return name != NULL;
}
