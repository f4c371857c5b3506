#include "svrun/device-node.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/str.h"
#include "base/sys.h"

/* Whoever has one of these has the host. Source: admin-guide/devices.txt. */
static const struct {
	unsigned major, first, last;
	const char *what;
} refused[] = {
	{1, 1, 2, "the host's memory"},
	{1, 4, 4, "the host's I/O ports"},
	{1, 11, 11, "the kernel's messages"},
	{4, 0, 63, "a console of the host"},
	{5, 1, 1, "the host's console"},
	{10, 144, 144, "the firmware's memory"},
	{10, 231, 231, "the host's memory"},
	{10, 234, 234, "file systems of the host"},
	{10, 236, 237, "disks of the host"},
	{10, 235, 235, "mounts of the host"},
	{13, 0, 255, "what is typed on the host"},
	{21, 0, UINT_MAX, "a disk of the host"},
	{202, 0, UINT_MAX, "registers of the host's processors"},
};
enum { NVIDIA_MAJOR = 195 };

static int check(const char *path, const struct stat *st, struct err *e)
{
	unsigned major_ = major(st->st_rdev), minor_ = minor(st->st_rdev);

	if (S_ISBLK(st->st_mode)) {
		err_set(e, ERR_DENIED, "--device %s: a disk is not given to containers", path);
		return err_hint(e, "mount it on the host, and give the folder: --volume");
	}
	if (S_ISLNK(st->st_mode))
		return err_set(e, ERR_DENIED, "--device %s is a link; name what it leads to", path);
	if (!S_ISCHR(st->st_mode))
		return err_set(e, ERR_USAGE, "--device %s is no device", path);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		if (major_ == refused[i].major && minor_ >= refused[i].first &&
			minor_ <= refused[i].last)
			return err_set(e, ERR_DENIED,
				"--device %s leads to %s: it is not given to "
				"containers",
				path, refused[i].what);
	if (major_ == NVIDIA_MAJOR) {
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
