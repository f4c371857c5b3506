#include "svrun/device-node.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/str.h"
#include "base/sys.h"
#include "gpu/refused.h"

enum { NVIDIA_MAJOR = 195 };

static int check(const char *path, const struct stat *st, struct err *e)
{
	const char *what;

	if (S_ISBLK(st->st_mode)) {
		err_set(e, ERR_DENIED, "--device %s: a disk is not given to containers", path);
		return err_hint(e, "mount it on the host, and give the folder: --volume");
	}
	if (S_ISLNK(st->st_mode))
		return err_set(e, ERR_DENIED, "--device %s is a link; name what it leads to", path);
	if (!S_ISCHR(st->st_mode))
		return err_set(e, ERR_USAGE, "--device %s is no device", path);
	what = refused_device('c', major(st->st_rdev), minor(st->st_rdev), false);
	if (what)
		return err_set(e, ERR_DENIED,
			"--device %s leads to %s: it is not given to containers", path, what);
	if (major(st->st_rdev) == NVIDIA_MAJOR) {
		err_set(e, ERR_DENIED, "--device %s: a GPU is not given as a device", path);
		return err_hint(e, "--gpus gives it, its driver's files and nobody else the same");
	}
	return 0;
}

static int bad(const char *text, struct err *e)
{
	err_set(e, ERR_USAGE, "--device '%.200s': expected /dev/PATH[:PATH[:rwm]]", text);
	return err_hint(e, "or a CDI name, like vendor.com/class=name");
}

int device_node_parse(struct edit_node *n, const char *text, struct arena *mem, struct err *e)
{
	char *path = arena_strdup(mem, text), *inside = strchr(path, ':'), *access = NULL;
	struct stat st;

	if (inside) {
		*inside++ = '\0';
		access = strchr(inside, ':');
		if (access)
			*access++ = '\0';
		/* docker takes the access without a path, too */
		if (!access && *inside && strspn(inside, "rwm") == strlen(inside)) {
			access = inside;
			inside = NULL;
		}
	}
	if (*path != '/' || (inside && *inside != '/') ||
		(access && (!*access || strspn(access, "rwm") != strlen(access))) ||
		!str_utf8(text, strlen(text)))
		return bad(text, e);
	if (sys_fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, "--device %s", path);
	if (check(path, &st, e) < 0)
		return -1;
	*n = (struct edit_node){.path = inside ? inside : path,
		.host_path = path,
		.type = 'c',
		.has_number = true,
		.major = major(st.st_rdev),
		.minor = minor(st.st_rdev),
		.access = access ? access : "rw"};
	return 0;
}
